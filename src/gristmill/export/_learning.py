"""What a learner needs to go on learning elsewhere, and a learner from what came back: through the fields of model files."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base.estimator import core_of, run_of
from .._common.types import Fields
from ..budgets import Budget
from ..rules import Rule
from ._plain import ExportError, Floats

#: rules and budgets that a device can run
RULES = ("Perceptron", "PassiveAggressive", "SGD", "Implicit")
BUDGETS = ("DropOldest", "DropSmallest", "Merge")
MOST = 32_767  #: points, the largest number that an int of C is sure to hold


@dataclass(frozen=True)
class Learning:
    """Rule, budget and all numbers that change while learning, under the names that model files give them."""

    rule: Any
    budget: str
    capacity: int  # points
    core: Fields
    means: Floats | None = None  # of a table: first values, sums of differences from them, counts
    moments: Floats | None = None  # of a standard scaling: first values, sums and sums of squares of differences
    scaled: int = 0  # events in the moments
    warmup: int | None = None  # the scaling stays as it is after so many events
    target: Floats | None = None  # first, count, sum, squares, centre, spread


def learning_of(model: Any) -> Learning:
    """How a fitted learner goes on; what a device cannot do is refused by name. requires: `describe` has accepted it."""
    import gristmill as g

    if not isinstance(model, g.Prepared):
        _refuse_parts(model)
        return _learner(model, model.saved_fields()[0])
    pipeline: Any = model.pipeline
    _refuse_parts(pipeline.model)
    if pipeline.table.is_sparse:
        raise ExportError(
            "Prepared over sparse rows, which are not centred, cannot learn on a device; fit a dense array"
        )
    if pipeline.relevance is not None:
        raise ExportError("Prepared(scale='relevance') cannot learn on a device; use scale='standard'")
    if pipeline.standard is not None and pipeline.standard.method != "standard":
        raise ExportError(
            f"Prepared(scale={pipeline.standard.method!r}) cannot learn on a device; use scale='standard' or None"
        )
    arrays, fitted = model.saved_fields()
    inner = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
    found = _learner(pipeline.model, inner)
    scaled = pipeline.standard is not None
    return Learning(
        found.rule,
        found.budget,
        found.capacity,
        found.core,
        np.array([arrays["table.first"], arrays["table.total"], arrays["table.count"]], dtype=np.float64),
        np.asarray(arrays["scaler_state"], dtype=np.float64) if scaled else None,
        int(fitted["scaler"]["n_seen"]) if scaled else 0,
        pipeline.standard.warmup if scaled else None,
        np.asarray(arrays["targets"], dtype=np.float64)[0] if "targets" in arrays else None,
    )


def _no(model: object, what: str, instead: str) -> ExportError:
    return ExportError(f"{type(model).__name__}: {what} cannot learn on a device; {instead}")


def _refuse_parts(model: Any) -> None:
    parts = run_of(model).parts
    rule, budget = type(parts.rule).__name__, type(parts.budget).__name__
    if not isinstance(parts.rule, Rule) or rule not in RULES:
        raise _no(model, f"the rule {rule}", f"use one of {', '.join(RULES)}")
    if not isinstance(parts.budget, Budget) or budget not in BUDGETS:
        raise _no(model, f"the budget {budget}", f"use one of {', '.join(BUDGETS)}")
    if hasattr(parts.kernel, "coordinate_parts"):
        raise _no(model, f"the additive kernel {parts.kernel!r}", "use a kernel of all columns")
    if parts.average:
        raise _no(model, "average=True", "use average=False")
    if parts.class_weight is not None:
        raise _no(model, f"class_weight={parts.class_weight!r}", "use class_weight=None")


def _learner(model: Any, arrays: Fields) -> Learning:
    parts = run_of(model).parts
    if "points" not in arrays:
        raise _no(model, "a model of sparse rows", "fit it with a dense array")
    if model.learning_task.name == "classification" and int(arrays["classes"][0]) < 2:
        raise _no(model, "a model of one class", "fit it with all classes, or say them: partial_fit(X, y, classes=...)")
    if model.learning_task.name == "regression" and len(arrays["intercept"]) > 1:
        raise _no(model, "a regressor of several targets", "export one model a target")
    from ..merging.compression import points_within

    capacity = points_within(model, parts, core_of(model), parts.budget.size)
    if capacity > MOST:
        raise _no(model, f"a budget of {capacity:,} points", f"use {MOST:,} at most")
    return Learning(parts.rule, type(parts.budget).__name__, capacity, arrays)


def restored(model: Any, changes: Fields, events: int) -> Any:
    """A new model like this one, with other numbers in its fields; the fields of the learner begin with "core."."""
    from sklearn.base import clone

    import gristmill as g

    arrays, fitted = model.saved_fields()
    arrays, fitted = dict(arrays), copy.deepcopy(fitted)
    prefix = "model." if isinstance(model, g.Prepared) else ""
    for name, value in changes.items():
        if name == "scaled":
            fitted["scaler"]["n_seen"] = int(value)
            continue
        name = f"{prefix}{name.removeprefix('core.')}" if name.startswith("core.") else name
        before = np.asarray(arrays[name])
        arrays[name] = np.ascontiguousarray(np.asarray(value).astype(before.dtype))
    if prefix:
        fitted["table"]["n_seen"] = events
    fresh = clone(model)
    fresh.restore_fields(arrays, fitted)
    return fresh
