"""Saving and loading after every chunk changes no bit, over tables that gain columns, categories and classes.

`make fuzz` tries 600 streams of each case (GRISTMILL_SEEDS), the ordinary tests a few.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill import Additive, Gaussian, Laplacian, Linear, Polynomial
from gristmill.features import FeatureClassifier, FeatureNovelty, FeatureRegressor, RandomMaclaurin

SEEDS = int(os.environ.get("GRISTMILL_SEEDS", "12"))
BUDGET = gm.Merge(12)
#: a learner, its scaling, and whether its rows may widen in mid-stream
CASES: dict[str, tuple[Any, str | None, bool]] = {
    "classifier": (lambda: gm.KernelClassifier(), "standard", True),
    "window": (lambda: gm.KernelClassifier(Gaussian(0.3), budget=gm.DropOldest(12)), "minmax", True),
    "projection": (lambda: gm.KernelClassifier(Laplacian(0.3), budget=gm.Project(0.1, 12)), "standard", True),
    "average": (
        lambda: gm.KernelClassifier(Gaussian(0.3), gm.SGD(gm.Hinge(), 0.5, 0.01), BUDGET, average=True),
        None,
        True,
    ),
    "balanced": (lambda: gm.KernelClassifier(Gaussian(0.3), budget=BUDGET, class_weight="balanced"), "standard", True),
    "trees": (lambda: gm.KernelClassifier(Additive(Laplacian(0.5)), budget=gm.DropSmallest(12)), "standard", False),
    "ranks": (lambda: gm.KernelClassifier(Gaussian(0.3), budget=BUDGET), "rank", True),
    "relevance": (lambda: gm.KernelClassifier(Gaussian(0.3), budget=BUDGET), "relevance", True),
    "regressor": (lambda: gm.KernelRegressor(Gaussian(0.3), budget=BUDGET), "standard", True),
    "regressor of ranks": (lambda: gm.KernelRegressor(Gaussian(0.3), budget=BUDGET), "rank", True),
    "novelty": (lambda: gm.KernelNovelty(Gaussian(0.3), budget=gm.DropOldest(12)), "standard", True),
    "density": (lambda: gm.KernelNovelty(), "standard", True),
    "features": (lambda: FeatureClassifier(RandomMaclaurin(Polynomial(2), 40, random_state=0)), "standard", False),
    "features of numbers": (lambda: FeatureRegressor(RandomMaclaurin(Linear(), 40, random_state=0)), "minmax", False),
    "novelty of features": (
        lambda: FeatureNovelty(RandomMaclaurin(Polynomial(2), 40, random_state=0)),
        "standard",
        False,
    ),
    "experts": (
        lambda: gm.Race([gm.KernelClassifier(), gm.Prepared(gm.KernelClassifier(Laplacian(0.3), budget=BUDGET))]),
        "standard",
        True,
    ),
    "experts in Python": (
        lambda: gm.Race(
            [
                gm.KernelClassifier(Gaussian(0.3), budget=BUDGET),
                FeatureClassifier(RandomMaclaurin(Polynomial(2), 40, random_state=0)),
            ]
        ),
        "standard",
        False,
    ),
    "experts of numbers": (
        lambda: gm.Race([gm.KernelRegressor(), gm.Prepared(gm.KernelRegressor(Laplacian(0.3), budget=BUDGET))]),
        None,
        True,
    ),
    "race": (lambda: gm.AutoClassifier(memory="300 kB", passes=1), "standard", True),
    "race of numbers": (lambda: gm.AutoRegressor(memory="300 kB", passes=1), "standard", True),
    "anomalies": (lambda: gm.AutoNovelty(memory="300 kB"), "standard", True),
}


@st.composite
def streams(draw: Any, widens: bool) -> tuple[list[dict[str, Any]], list[int]]:
    """Events with numbers, truths, categories and gaps, all of which may come late; and where they are cut."""
    rng = np.random.RandomState(draw(st.integers(0, 10_000)))
    count, late = draw(st.integers(12, 60)), draw(st.integers(1, 60))
    events = []
    for place in range(count):
        event: dict[str, Any] = {
            "a": float(rng.normal(5, 2)),
            "hue": ["red", "green", "blue", "grey"][rng.randint(2 + 2 * (place > late))],
            "on": bool(rng.randint(2)),
        }
        if rng.rand() < 0.1 and place:
            event["a" if rng.randint(2) else "hue"] = None
        if widens and place > late:
            event[f"new{rng.randint(3)}"] = float(rng.normal()) if rng.randint(3) else None
        events.append(event)
    return events, sorted(draw(st.sets(st.integers(1, count - 1), min_size=2, max_size=6)))


def answers_of(name: str, count: int) -> Any:
    rng = np.random.RandomState(count)
    if name in ("novelty", "density", "anomalies", "novelty of features"):
        return None
    if "numbers" in name or "regressor" in name:
        return rng.normal(50, 9, size=count)
    return np.array([f"c{rng.randint(2 + place // 20)}" for place in range(count)])


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=SEEDS, deadline=None)
@given(data=st.data())
def test_saving_after_every_chunk_changes_no_bit(name: str, data: Any) -> None:
    make, scale, widens = CASES[name]
    events, cuts = data.draw(streams(widens))
    y = answers_of(name, len(events))
    part = lambda start, stop: (events[start:stop], None if y is None else y[start:stop])  # noqa: E731
    alone = gm.Prepared(make(), scale=scale).partial_fit(*part(0, cuts[0]))
    saved = gm.from_bytes(alone.to_bytes())
    for start, stop in zip(cuts, [*cuts[1:], len(events)], strict=True):
        one, other = (model.prequential(*part(start, stop)) for model in (alone, saved))
        np.testing.assert_array_equal(one, other)
        for x in events[start:stop]:
            assert alone.predict_one(x) == saved.predict_one(x)
        assert alone.to_bytes() == saved.to_bytes()
        saved = gm.from_bytes(saved.to_bytes())
    x, label = events[-1], None if y is None else y[-1]
    for model in (alone, saved):
        model.learn_one(x, label)
    assert alone.to_bytes() == saved.to_bytes()
