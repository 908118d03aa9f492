"""`to_onnx`: a fitted model as an ONNX model that any runtime can run."""

from __future__ import annotations

import json
from typing import Any

from ..._version import __version__
from .._checks import refuse_beyond_single
from .._description import describe, snapshot
from .._plain import COVERAGES, Description, Detector, ExportError, Mixture, NoveltyMixture
from . import anomalies, answers
from .graph import Graph, Value, input_name
from .rows import rows_of


def to_onnx(model: object, number: str = "float64") -> Any:
    """A fitted model as an ONNX model: the same answers in any runtime, without Python and without this library.

    Inputs: `X` of shape (N, columns) for rows of numbers; for a `Prepared` table with categories, times or flags of missing
    values one input a column, of shape (N, 1), under its name: numbers and booleans as numbers (NaN: missing), categories as
    texts ("": missing), times as seconds since 1970 (always double).

    Outputs: `label`, `probabilities` and `scores` (`decision_function`) of a classifier; `prediction` and `intervals`,
    (N, 5, 2) for the coverages 0.5, 0.8, 0.9, 0.95 and 0.99, of a regressor; `label` (1, or -1 for an alarm), `scores` and
    `score_samples` of a novelty detector.

    Parameters
    ----------
    model : fitted KernelClassifier, KernelRegressor, KernelNovelty, FeatureLearner, Prepared, Race or Auto*
    number : {"float64", "float32"}, default="float64"
        The type of what is computed. In double the answers are the library's up to rounding (1e-12); in single precision
        99.9 % of the labels are.

    Returns
    -------
    onnx.ModelProto
        Its metadata hold version, columns, classes, and a row with the library's answers to it.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelClassifier
    >>> from gristmill.export import to_onnx
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelClassifier(Gaussian(1.0)).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'scores', 'probabilities']
    """
    if number not in ("float64", "float32"):
        raise ExportError(f"to_onnx: number must be 'float64' or 'float32', got {number!r}")
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'gristmill[onnx]'") from error
    found = describe(snapshot(model))
    if number == "float32":
        refuse_beyond_single(found)
    graph = Graph(number)
    _fill(graph, found, rows_of(graph, found))
    return graph.model(found.kind.replace("(", "_").replace(")", ""), metadata_of(found, number))


def _fill(graph: Graph, found: Description, rows: Value) -> None:
    by_expert = [answers.scores_of(graph, expert, rows) for expert in found.experts]
    if found.task == "classification":
        if isinstance(found.mixture, Mixture):
            shares = answers.mixed(graph, found, found.mixture, by_expert)
            logs = graph.log(shares)
            scores = logs.slice(1, 2) - logs.slice(0, 1) if found.outputs == 1 else logs
        else:
            assert found.calibration is not None
            scores = by_expert[0]
            shares = answers.probabilities(graph, found.calibration, scores, found.outputs)
        answers.classes(graph, found, scores, shares)
    elif found.task == "regression":
        mixed = by_expert[0] if found.mixture is None else answers.mixed(graph, found, found.mixture, by_expert)  # type: ignore[arg-type]
        answers.numbers(graph, found, mixed)
    else:
        if isinstance(found.mixture, Detector):
            score = anomalies.score_of(graph, found.mixture, rows.cast(graph.number))
        elif isinstance(found.mixture, NoveltyMixture):
            score = answers.novelty_score(graph, found.mixture, by_expert)
        else:
            score = by_expert[0]
        answers.alarms(graph, found, score)


def metadata_of(found: Description, number: str) -> dict[str, str]:
    """What a file says beside its numbers."""
    names = [found.labels[at] for at in found.order]
    return {
        "gristmill.version": __version__,
        "gristmill.model": found.kind,
        "gristmill.task": found.task,
        "gristmill.number": number,
        "gristmill.columns": json.dumps(list(found.names)),
        "gristmill.inputs": json.dumps(["X"] if found.rows.table is None else list(map(input_name, found.names))),
        "gristmill.classes": json.dumps(names),
        "gristmill.coverages": json.dumps(list(COVERAGES) if found.task == "regression" else []),
        "gristmill.check_row": json.dumps(found.check_inputs),
        "gristmill.check_answers": json.dumps(found.check),
    }
