"""What can become one model, and how much each of several counts in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .._base.estimator import core_of, is_begun, run_of
from .._common.params import same
from ..budgets import Budget
from ..learners.rule_learner import RuleLearner
from ..rules import Rule
from .terms import Floats


def shares_of(models: list[Any], weights: object) -> Floats:
    """How much each model counts; they add up to 1."""
    if isinstance(weights, str):
        if weights != "n_seen":
            raise ValueError(f'merge: weights must be "n_seen" or a number a model, got {weights!r}')
        weights = [model.n_seen_ for model in models]
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(models),) or not np.isfinite(numbers).all() or (numbers < 0).any() or not numbers.any():
        raise ValueError(
            f"merge: weights must be {len(models)} finite numbers >= 0, one a model and not all 0, got {weights!r}"
        )
    return np.asarray(numbers / numbers.sum())


def check(models: Sequence[object]) -> None:
    """Refuse, by name, what cannot become one model."""
    for model in models:
        if not isinstance(model, RuleLearner):
            raise TypeError(
                f"merge: {type(model).__name__} cannot be merged; kernel learners, feature learners, races of them, "
                "Prepared and StreamScaler can"
            )
        if not is_begun(model):
            raise NotFittedError(f"merge: this {type(model).__name__} instance is not fitted yet")
        model.refuse_changed_parameters("merge")
        parts = run_of(model).parts
        if not isinstance(parts.rule, Rule) or not isinstance(parts.budget, Budget):
            raise TypeError(
                f"merge: {parts.rule!r} with {parts.budget!r} cannot be merged: "
                "parts written in Python keep state of their own"
            )
    for at, model in enumerate(models[1:], 1):
        _check_alike(models[0], model, at)


def _check_alike(first: Any, other: Any, at: int) -> None:
    mine, its = run_of(first).parts, run_of(other).parts
    pairs = {name: (getattr(mine, name), getattr(its, name)) for name in ("rule", "average", "class_weight")}
    pairs["budget"] = (sizeless(mine.budget), sizeless(its.budget))
    if getattr(first, "stores_points", True):
        pairs["kernel"] = (mine.kernel, its.kernel)
    elif not _same_map(mine.kernel, its.kernel):
        raise ValueError(f"merge: models 0 and {at} have weights over different maps; give each the same random_state")
    for name, (a, b) in pairs.items():
        if not same(a, b):
            raise ValueError(f"merge: models 0 and {at} have different parts: {name} is {a!r} and {b!r}")
    check_columns(first, other, at)
    targets = [0 if core_of(model).classes else int(core_of(model).outputs) for model in (first, other)]
    if 0 not in targets and targets[0] != targets[1]:
        raise ValueError(f"merge: models 0 and {at} predict {targets[0]} and {targets[1]} targets")
    if core_of(first).is_sparse != core_of(other).is_sparse:
        raise ValueError(
            f"merge: model {at if core_of(other).is_sparse else 0} keeps its points sparse, the other dense"
        )


def check_columns(first: Any, other: Any, at: int) -> None:
    """Refuse models of other columns than the first's."""
    if core_of(first).width != core_of(other).width:
        raise ValueError(
            f"merge: models 0 and {at} have different columns: {core_of(first).width} and {core_of(other).width}"
        )
    names: list[Any] = [getattr(model, "feature_names_in_", None) for model in (first, other)]
    if all(name is not None for name in names) and not np.array_equal(names[0], names[1]):
        raise ValueError(f"merge: models 0 and {at} have columns of different names: {names[0]} and {names[1]}")


def sizeless(budget: Budget) -> Any:
    return type(budget), {name: value for name, value in vars(budget).items() if name != "size"}


def _same_map(a: Any, b: Any) -> bool:
    width = int(a.n_features_in_)
    probe = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3, width)) / width
    try:
        return type(a) is type(b) and bool(np.array_equal(a.transform(probe), b.transform(probe)))
    except ValueError:
        return False
