"""Sphinx extension: parameters, returns and shapes of methods that learners share, if a docstring has none.

The meaning of `X`, and of the value of `predict`, is the same for every learner: it is written here once. A docstring with
a section Parameters or Returns keeps it.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROWS = "array-like or sparse matrix of shape (n_samples, n_features)"
#: parameter -> its type, and what it is
PARAMETERS = {
    "X": (ROWS, "Samples in the order of the stream, one per row; for `Prepared` also a table or a list of dicts."),
    "y": (
        "array-like of shape (n_samples,), or (n_samples, n_targets) in regression",
        "Labels or targets; none for anomalies.",
    ),
    "x": ("array-like of shape (n_features,)", "One sample; for `Prepared` also a dict."),
    "sample_weight": ("array-like of shape (n_samples,), optional", "Weight of each sample; 1 by default."),
    "classes": ("array-like, optional", "Labels known in advance; others may be added by later samples."),
    "coverage": ("float from 0.5 to 0.99", "Share of targets that the intervals contain."),
    "path": ("str or path", "The file; an existing one is replaced as a whole."),
    "keys": (
        "array-like of shape (n_samples,)",
        "The key of each row: the device, customer or place that it belongs to.",
    ),
    "key": ("str, int or bytes", "The key of the sample."),
    "time": ("array-like of shape (n_samples,), optional", "The time of each sample, for `ttl`."),
    "passes": ("int, optional", "Number of passes over the samples."),
    "top": ("int or None, default=10", "Number of points or columns to show; None shows all."),
    "deep": ("bool, default=True", "Whether the parameters of the parts are included."),
    "params": ("dict", "New values by name, such as `kernel__gamma=0.1`."),
    "width": ("int", "The new number of columns."),
    "pairs": ("array-like of shape (n_pairs, 2, n_features)", "Pairs of samples."),
    "feature_names": ("list of str, optional", "Names of the columns."),
    "input_features": ("list of str, optional", "Ignored; the names are those of the table."),
    "epsilon": ("float", "Largest error of a kernel value."),
    "delta": ("float", "Probability that the error is larger."),
    "n_features": ("int", "Number of columns."),
    "radius": ("float", "Largest norm of a sample."),
}
LABEL = "array-like of shape (n_samples,)"
SCORES = "ndarray of shape (n_samples,), or (n_samples, n_classes) for three or more classes"
#: method -> type of what it returns, and what it is
RETURNS = {
    "fit": ("self", "The learner."),
    "partial_fit": ("self", "The learner."),
    "predict": (
        "ndarray of shape (n_samples,), or (n_samples, n_targets)",
        "Labels; numbers; 1 for usual and -1 for anomalies.",
    ),
    "predict_proba": ("ndarray of shape (n_samples, n_classes)", "Probabilities, in the order of `classes_`."),
    "predict_log_proba": ("ndarray of shape (n_samples, n_classes)", "Their logarithms."),
    "decision_function": (SCORES, "Scores; below 0 is an alarm of an anomaly detector."),
    "prequential": (SCORES, "The score (in regression the prediction) of each sample before it was learned."),
    "score_samples": ("ndarray of shape (n_samples,)", "How usual each sample is: lower is more unusual."),
    "predict_interval": ("ndarray of shape (n_samples, 2), or (n_samples, n_targets, 2)", "Lower and upper ends."),
    "prequential_interval": (
        "ndarray of shape (n_samples, 2), or (n_samples, n_targets, 2)",
        "Ends before each sample was learned.",
    ),
    "predict_one": ("label, float or int", "As `predict`, of one sample."),
    "predict_proba_one": ("dict", "The probability of each class."),
    "score_one": ("float, or ndarray of shape (n_classes,)", "As `decision_function`, of one sample."),
    "predict_interval_one": ("tuple of float", "Lower and upper end."),
    "score": ("float", "Accuracy, or R squared in regression."),
    "gradient": (
        "ndarray of shape (n_samples, n_features), or (n_samples, n_outputs, n_features)",
        "Derivatives of the scores.",
    ),
    "transform": ("ndarray of shape (n_samples, n_components)", "The samples in the new space."),
    "fit_transform": ("ndarray of shape (n_samples, n_components)", "The samples in the new space."),
    "to_bytes": ("bytes", "A model file."),
    "fit_predict": ("ndarray of shape (n_samples,)", "1 for usual samples and -1 for anomalies."),
    "explain": ("Explanation or AnomalyExplanation", "The terms of the score; printed, it is a table."),
    "report": ("RaceReport", "The experts with their weights and errors; printed, it is a table."),
    "components": (
        "ndarray of shape (n_samples, n_coordinates), or (n_samples, n_coordinates, n_classes)",
        "The terms of the score.",
    ),
    "component_names": ("list of str", "A name per coordinate."),
    "compile": ("self", "The learner."),
    "get_params": ("dict", "The values by name."),
    "set_params": ("self", "The learner."),
    "get_feature_names_out": ("ndarray of str", "A name per column."),
    "forget": ("int", "The number of keys that were removed."),
    "level": ("ndarray of shape (n_keys,)", "The mean of each key."),
    "step": ("ndarray of shape (n_members,), or (n_members, n_classes)", "The score of each member before it learned."),
    "get_metric": ("callable", "The distance of two vectors."),
    "get_similarity": ("callable", "The similarity of two vectors."),
    "get_mahalanobis_matrix": ("ndarray of shape (n_features, n_features)", "The matrix of the metric."),
    "pair_distance": ("ndarray of shape (n_pairs,)", "The distance of each pair."),
    "pair_score": ("ndarray of shape (n_pairs,)", "The similarity of each pair."),
    "similarity": ("ndarray of shape (n_samples, n_others)", "The similarity of each pair of rows."),
    "latent": ("ndarray of shape (n_samples,)", "The scores before they are compared with the thresholds."),
    "learn_transform": ("ndarray of shape (n_samples, n_features)", "The scaled samples."),
    "n_components_for": ("int", "Number of features."),
    "truncation_error": ("float", "The largest error."),
}


def sections(name: str, parameters: list[str], text: str) -> list[str]:
    """What a docstring lacks: a section Parameters of the shared ones, and a section Returns."""
    added: list[str] = []
    known = [parameter for parameter in parameters if parameter in PARAMETERS]
    if known and "Parameters\n---" not in text:
        added += ["Parameters", "----------"]
        for parameter in known:
            kind, what = PARAMETERS[parameter]
            added += [f"{parameter} : {kind}", f"    {what}"]
        added += [""]
    if name in RETURNS and "Returns\n---" not in text:
        kind, what = RETURNS[name]
        added += ["Returns", "-------", kind, f"    {what}", ""]
    return added


def complete(_: Sphinx, what: str, name: str, described: Any, __: Any, lines: list[str]) -> None:
    """Put the missing sections before the first section that numpydoc shows after them."""
    owner = getattr(described, "__qualname__", "").rpartition(".")[0]
    if what != "method" or not owner or not _is_learner(name):
        return
    added = sections(name.rpartition(".")[2], list(inspect.signature(described).parameters), "\n".join(lines))
    later = ("Raises", "See Also", "Notes", "References", "Examples")
    titles = (place for place, line in enumerate(lines[1:]) if line.startswith("---") and lines[place] in later)
    place = next(titles, len(lines))
    lines[place:place] = ["", *added] if added else []


def _is_learner(name: str) -> bool:
    """Whether a method of this full name belongs to a learner."""
    module, _, rest = name.partition(".")
    value: Any = __import__(module)
    for part in rest.split(".")[:-1]:
        value = getattr(value, part, None)
    return inspect.isclass(value) and (issubclass(value, BaseEstimator) or hasattr(value, "partial_fit"))


def unlink_attributes(_: Sphinx, what: str, __: str, ___: Any, ____: Any, lines: list[str]) -> None:
    """An attribute is described where it stands, so its name is no link: other classes have attributes of that name."""
    if what == "class":
        lines[:] = [re.sub(r"^(\s*):obj:`(\w+) <[^`]*>`", r"\1**\2**", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", complete, priority=400)  # before numpydoc reads the sections
    app.connect("autodoc-process-docstring", unlink_attributes, priority=600)  # after it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
