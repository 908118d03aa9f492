"""Sphinx extension: parameters, returns and shapes of the methods that all learners share, where a docstring has none.

What `X` is, and what `predict` returns, is the same for every learner: it is written here once. A method whose docstring has
a section Parameters or Returns of its own keeps it.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from sklearn.base import BaseEstimator
from sphinx.application import Sphinx

ROWS = "array-like or sparse matrix of shape (n_samples, n_features)"
#: parameter -> its type, and what it is
PARAMETERS = {
    "X": (ROWS, "Samples in the order of the stream, one a row; behind `Prepared` also a table or a list of dicts."),
    "y": (
        "array-like of shape (n_samples,), or (n_samples, n_targets) in regression",
        "Labels or targets; none for anomalies.",
    ),
    "x": ("array-like of shape (n_features,)", "One sample; behind `Prepared` also a dict."),
    "sample_weight": ("array-like of shape (n_samples,), optional", "How much each sample counts; 1 by default."),
    "classes": ("array-like, optional", "All labels that will ever come; new ones may also come at any time."),
    "coverage": ("float from 0.5 to 0.99", "Share of targets that the interval should hold."),
    "path": ("str or path", "The file; an old one is replaced as a whole."),
    "keys": ("array-like of shape (n_samples,)", "Whose sample each row is."),
    "key": ("str, int or bytes", "Whose sample it is."),
    "time": ("array-like of shape (n_samples,), optional", "When each sample came, for `ttl`."),
    "passes": ("int, optional", "How often to go over the samples."),
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
