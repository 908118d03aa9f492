"""From the body of a request to a learner, and from the scores of a learner to its predictions."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np

from ..._common.types import Json
from .errors import ServiceError

TASKS = ("classification", "regression", "novelty")


class Spec(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON body that creates a model or a challenger.

    Parameters
    ----------
    learner : str
        "auto", or a learner as `gristmill learners` lists them, with its kernel.
    task : str, optional
        For "auto": classification, regression or novelty.
    memory : str or int
        For "auto".
    alarm_rate : float
        For novelty by "auto": the share of alarms.
    scale : str, optional
        In front of other learners: standard, minmax, rank, relevance or none.
    columns : dict
        Kinds of columns by name, where the first value does not tell.
    missing : str
        fill, or raise: a missing value is an error.
    seed : int
        Of everything random.
    """

    learner: str = "auto"
    task: str | None = None
    memory: str | int = "1 MB"
    alarm_rate: float = 0.01
    scale: str | None = None
    columns: dict[str, str] | None = None
    missing: str = "fill"
    seed: int = 0


def plain_spec(spec: Spec) -> Json:
    """As JSON; what has its default is left out."""
    found: Json = msgspec.to_builtins(spec)
    return found


def task_of(model: Any) -> str | None:
    """What a learner is for, as scikit-learn's tags say; None for anything else."""
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor

    kinds = {"classification": is_classifier, "regression": is_regressor, "novelty": is_outlier_detector}
    try:
        return next((task for task, asks in kinds.items() if asks(model)), None)
    except AttributeError:  # a text may stand for a number, or for Prepared(1)
        return None


def build(spec: Spec) -> Any:
    """A learner that has learned nothing; what makes no sense is refused with 422."""
    try:
        model = _built(spec)
        checked(model)
        model.get_params(deep=True)
        _try(model)
        return model
    except ServiceError:
        raise
    except (TypeError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ServiceError(f"learner {spec.learner[:200]!r}: {' '.join(str(error).split())[:1000]}") from None


def _built(spec: Spec) -> Any:
    from ...notation import parse
    from ...prepared import Prepared

    if spec.task is not None and spec.task not in TASKS:
        raise ServiceError(f"task must be one of {', '.join(TASKS)}, got {spec.task[:200]!r}", value=spec.task[:200])
    if len(spec.learner) > 2000:
        raise ServiceError(f"learner has {len(spec.learner)} characters, at most 2000 are read")
    table: Json = {"columns": spec.columns, "missing": spec.missing}
    if spec.learner == "auto":
        return Prepared(_auto(spec), None if spec.scale in (None, "none") else spec.scale, **table)
    model = parse(spec.learner, seed=spec.seed)
    found = task_of(model)
    if spec.task is not None and found != spec.task:
        raise ServiceError(f"task is {spec.task}, and {spec.learner[:200]!r} is for {found or 'something else'}")
    if isinstance(model, Prepared):
        return model
    scale = "standard" if spec.scale is None else spec.scale
    return Prepared(model, None if scale == "none" else scale, **table)


def _auto(spec: Spec) -> Any:
    from ... import AutoClassifier, AutoNovelty, AutoRegressor

    if spec.task is None:
        raise ServiceError(f"task is missing: the learner 'auto' needs one of {', '.join(TASKS)}")
    if spec.task == "novelty":
        return AutoNovelty(alarm_rate=spec.alarm_rate, memory=spec.memory, random_state=spec.seed)
    if spec.task == "classification":
        return AutoClassifier(memory=spec.memory, random_state=spec.seed)
    return AutoRegressor(memory=spec.memory, random_state=spec.seed)


def checked(model: Any) -> str:
    """The task of a model that the service can run; others are refused."""
    task = task_of(model)
    if task is None or not hasattr(model, "prequential") or hasattr(model, "keys_"):
        name = type(getattr(model, "model", model)).__name__
        raise ServiceError(f"{name} cannot be served: a model is a classifier, a regressor or a novelty detector")
    return task


def _try(model: Any) -> None:
    """Let a copy learn two events, so that parameters out of range are found now and not at the first event."""
    from sklearn.base import clone

    rows = [{"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5}]
    columns = getattr(model, "columns", None)
    trial = clone(model)
    if columns:
        trial.set_params(columns=None)
    task = task_of(model)
    try:
        trial.partial_fit(rows, None if task == "novelty" else [0, 1])
    except ServiceError:
        raise
    if columns:
        from ...prepared import Prepared

        Prepared(model.model, model.scale, columns=columns).partial_fit(
            [dict.fromkeys(columns) | row for row in rows], None if task == "novelty" else [0, 1]
        )


# ---- what a learner predicts ----------------------------------------------------------------------------------------


def predictions(model: Any, task: str, scores: Any) -> Any:
    """Labels, numbers, or 1 and -1 (alarm), of the scores of `prequential`."""
    scores = np.asarray(scores)
    if task == "novelty":
        return np.where(scores < 0, -1, 1)
    if task == "regression":
        return scores
    classes = np.asarray(model.classes_)
    if scores.ndim == 2:
        return classes[scores.argmax(axis=1)]
    return classes[np.minimum((scores >= 0).astype(int), len(classes) - 1)]


def reasons(model: Any, row: Any, top: int = 3) -> list[Json]:
    """The columns that make an event novel: how much more familiar it would be with a column at its usual value.

    The value of each column in turn is left out, so that the table in front of the learner puts its mean there.
    """
    if not isinstance(row, dict) or not 0 < len(row) <= 200 or not hasattr(model, "table_"):
        return []
    rows = [row, *({**row, name: None} for name in row)]
    try:
        scores = np.asarray(model.decision_function(rows), dtype=float)
    except (TypeError, ValueError):
        return []
    gains = scores[1:] - scores[0]
    order = np.argsort(-gains, kind="stable")[:top]
    names = list(row)
    return [{"column": names[j], "value": row[names[j]], "gain": float(gains[j])} for j in order if gains[j] > 0]


def explanation(model: Any, row: Any) -> Json:
    """Why a learner predicts what it predicts of one event, as JSON."""
    explain = getattr(model, "explain", None)
    if explain is None:
        found = reasons(model, row, 10) if task_of(model) == "novelty" else None
        if found is None:
            name = type(getattr(model, "model", model)).__name__
            raise ServiceError(f"{name} does not explain its predictions; kernel learners do", 422)
        return {"columns": found}
    explained = explain(row)
    fields = {field.name: getattr(explained, field.name) for field in dataclasses.fields(explained)}
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
