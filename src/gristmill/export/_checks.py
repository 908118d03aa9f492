"""The check value of an exported file: one row that is part of it, and what the model answers to that row."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._common.types import Json
from ._plain import (
    AdditiveExpansion,
    CategoryColumn,
    Description,
    Detector,
    Expansion,
    ExportError,
    Floats,
    Neighbours,
    RankMaps,
    Scaling,
)


def with_check(found: Description, model: object) -> Description:
    """The description with its check row and the model's own answers."""
    inputs = _inputs(found)
    table = found.rows.table is not None
    event: Any = [{**inputs, **dict.fromkeys(found.rows.unknown)}] if table else np.array([list(inputs.values())])
    answers: Json = {}
    for verb in ("decision_function", "predict_proba", "predict"):
        if verb == "predict_proba" and found.task != "classification":
            continue
        answer = np.asarray(getattr(model, verb)(event))[0]
        answers[verb] = answer.tolist() if isinstance(answer, np.ndarray | np.generic) else answer
    return dataclasses.replace(found, check_inputs=inputs, check=answers)


def refuse_beyond_single(found: Description) -> None:
    """Raise where a number of a model is infinite, or a divisor 0, in single precision."""
    _look(found, "")


def _look(value: object, where: str) -> None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if not field.name.startswith("check"):
                _look(getattr(value, field.name), field.name)
    elif isinstance(value, tuple | list):
        for each in value:
            _look(each, where)
    elif isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        numbers = np.abs(np.atleast_1d(np.asarray(value, dtype=np.float64)))
        large = numbers[np.isfinite(numbers) & (numbers > np.finfo(np.float32).max)]
        small = numbers[(numbers > 0) & (numbers < np.finfo(np.float32).tiny)] if where == "spread" else large[:0]
        if large.size or small.size:
            what, size = ("large", large.max()) if large.size else ("small", small.min())
            raise ExportError(
                f"a number of the model, {size:g} in {where!r}, is too {what} for single precision; scale the data with "
                "Prepared, or export with number='float64'"
            )


def _inputs(found: Description) -> Json:
    """Something in the middle of what was seen, in the units of the inputs."""
    rows = found.rows
    if rows.table is not None:
        return {
            column.name: next(iter(column.values), "")
            if isinstance(column, CategoryColumn)
            else _typical(column.kind, column.fill)
            for column in rows.table
        }
    if isinstance(found.mixture, Detector):
        some = found.mixture.centre
    elif rows.scaling is not None:
        some = _raw(rows.scaling, 0.25)
    else:
        bodies = [
            expert for expert in found.experts if isinstance(expert.body, Expansion | Neighbours | AdditiveExpansion)
        ]
        some = np.zeros(rows.width)
        for expert in bodies:
            body: Any = expert.body
            if not len(body.points):
                continue
            some = np.nan_to_num(np.nanmean(body.points, axis=0))
            if expert.scaling is not None:
                weights = 1.0 if expert.scaling.weights is None else expert.scaling.weights
                some = _raw(expert.scaling, some / weights)
            break
    return dict(zip(found.names, np.asarray(some, dtype=np.float64).tolist(), strict=True))


def _raw(scaling: Scaling | RankMaps, scaled: Any) -> Floats:
    """Values in the units of the inputs that are scaled to about these."""
    if isinstance(scaling, Scaling):
        return np.asarray(scaling.centre + scaling.spread * scaled)
    wanted = np.broadcast_to(np.asarray(scaled, dtype=np.float64), scaling.scaled.shape)
    between = [np.interp(*line) for line in zip(wanted, scaling.scores, scaling.knots, strict=True)]
    return np.where(scaling.scaled > 0, between, wanted)


def _typical(kind: str, fill: float) -> float:
    if kind == "time":
        return float(round(fill * 86_400.0))
    return float(fill >= 0.5) if kind == "boolean" else fill
