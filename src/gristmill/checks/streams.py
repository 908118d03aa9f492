"""Promises 2, 4 and 9: however the stream is cut, the same seed, bounded memory."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..budgets import DropOldest, Window
from ..learners.kernel import KernelRegressor
from ..losses import Squared
from ..rules import SGD
from .cases import Case, budget_of, require, same_bits, snapshot
from .files import can_be_saved, through_file


def check_cutting_changes_nothing(case: Case) -> None:
    """learn_one in a loop, partial_fit in any chunks, fit, prequential: the same model, bit for bit."""
    if case.classes is None and is_classifier(case.estimator) and len(set(case.y)) > 2:
        check_cutting_changes_nothing(dataclasses.replace(case, classes=sorted(set(case.y))))
    whole, count = case.fitted(), len(case)
    again = case.new()
    case.learn(again, slice(None), "fit")
    if (
        case.classes is None and getattr(whole, "passes", 1) == getattr(whole.rule, "passes", 1) == 1
    ):  # fit may make several
        require(same_bits(whole, again), "fit gives what one partial_fit gives")
    once = copy.deepcopy(again)
    case.learn(again, slice(None), "fit")
    require(same_bits(once, again), "fit forgets what was learned before")
    rng = np.random.default_rng(3)
    for pieces in (2, 7, count // 3):
        cut = case.new()
        edges = [0, *sorted(rng.choice(np.arange(1, count), pieces, replace=False).tolist()), count]
        for a, b in pairwise(edges):
            case.learn(cut, slice(a, b), "prequential" if a % 2 else "partial_fit")
        require(same_bits(whole, cut), f"chunks with the borders {edges} give the model of one chunk")
    single = case.new()
    case.learn_each(single, range(count))
    require(same_bits(whole, single), "learn_one in a loop gives the model of one chunk")
    require(
        np.array_equal(whole.decision_function(case.X), single.decision_function(case.X)),
        "the scores are the same, bit for bit",
    )


def check_pausing_changes_nothing(case: Case) -> None:
    """Pickle, deepcopy, or save and load in the middle of the stream: the same model, bit for bit."""
    whole, half = case.fitted(), len(case) // 2
    pauses: list[Callable[[Any], Any]] = [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy]
    if can_be_saved(whole):
        pauses.append(through_file)
    for pause in pauses:
        model = case.new()
        case.learn(model, slice(0, half))
        model = pause(model)
        case.learn_each(model, range(half, half + 5))
        model = pause(model)
        case.learn(model, slice(half + 5, None))
        require(same_bits(whole, model), "a pause in the middle of the stream changes nothing")


def check_same_seed_same_run(case: Case) -> None:
    """Two runs with one seed are the same model, the generator's state included."""
    require(snapshot(case.fitted()) == snapshot(case.fitted()), "the same seed gives the same run")


def check_memory_is_bounded(case: Case) -> None:
    """memory_bytes_ after many more events equals that at full budget."""
    model = case.new()
    budget = budget_of(model)
    if isinstance(budget, Window):
        return _window_is_bounded(case, model)
    small = budget if budget.size <= 30 else dataclasses.replace(budget, size=30)
    model.set_params(budget=small)
    for _ in range(20):
        case.learn(model, slice(None))
        if model.n_support_ == small.size:
            break
    before = model.memory_bytes_
    case.learn(model, slice(None))
    full = model.memory_bytes_
    for _ in range(20):
        case.learn(model, slice(None))
    require(model.memory_bytes_ == full, f"memory stays at {full} bytes, found {model.memory_bytes_}")
    require(model.n_support_ < small.size or before == full, "memory does not grow once the budget is full")


def _window_is_bounded(case: Case, model: Any) -> None:
    steps = min(model.budget.steps, 50)
    model.set_params(budget=Window(steps))
    filled = KernelRegressor(model.kernel, SGD(Squared(), rate=1e-3), DropOldest(steps + 1))
    filled.fit(case.X, np.ones(len(case)))
    for _ in range(20):
        case.learn(model, slice(None))
        require(model.n_support_ <= steps, f"a window of {steps} steps holds at most as many points")
    outputs = model.dual_coef_.shape[1]
    bound = filled.memory_bytes_ + 8 * 2 * (steps + 17) * (outputs - 1) + 1024
    require(model.memory_bytes_ <= bound, f"memory stays below {bound} bytes, found {model.memory_bytes_}")
