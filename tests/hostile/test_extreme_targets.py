"""Whatever a learner has learned from numbers of any size can be saved; what it cannot work with is refused by name."""

from __future__ import annotations

import warnings

import numpy as np
import public_learners
import pytest
from registry import DOORS

import gristmill
from gristmill import DropOldest, Gaussian, Prepared

REGRESSORS = {
    name: door for name, door in DOORS.items() if name.endswith("Regressor") or name == "KeyedFleet(center=True)"
}
EXTRA = {
    "Prepared(AutoRegressor)": lambda: Prepared(gristmill.AutoRegressor(passes=1)),
    "Prepared(KernelRegressor)": lambda: Prepared(gristmill.KernelRegressor(Gaussian(1.0), budget=DropOldest(20))),
    "relevance": lambda: Prepared(gristmill.KernelRegressor(Gaussian(1.0), budget=DropOldest(20)), "relevance"),
}
SCALES = [1e-320, 1e-310, 1e-200, 1e30, 1e39, 1e100, 1e135, 1e150, 1.7e308]
ONE = [1e39, -1e300, 1.7e308, -1e139, 1e200]


def cases():
    X = np.random.default_rng(0).uniform(0.05, 0.95, size=(120, 4))
    y = X[:, 0] - 0.5
    found = {f"all around {scale:g}": (X, y / np.abs(y).max() * scale) for scale in SCALES}
    for value in ONE:
        spoilt = y.copy()
        spoilt[60] = value
        found[f"one of {value:g}"] = (X, spoilt)
    return found


def seen(model):
    return int(model.n_seen_) if hasattr(model, "n_seen_") else int(model._core_.now)


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("name", [*REGRESSORS, *EXTRA])
def test_what_is_learned_can_be_saved_and_what_is_refused_changes_nothing(name, case):
    X, y = cases()[case]
    calm = np.random.default_rng(1).uniform(0.05, 0.95, size=(10, 4))
    door = DOORS.get(name, DOORS["KernelRegressor"])
    model = EXTRA[name]() if name in EXTRA else door.made()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unusual scales
        door.learn(model, calm, calm[:, 1])
        for start in range(0, 120, 30):
            before = model.to_bytes()
            try:
                door.learn(model, X[start : start + 30], y[start : start + 30])
            except ValueError as error:
                said = str(error)
                assert "row" in said, said
                assert model.to_bytes() == before
                assert seen(model) == 10 + start
                break
        again = gristmill.from_bytes(model.to_bytes())
        assert again.to_bytes() == model.to_bytes()
        told = np.frombuffer(door.said(model, X))
    assert np.isfinite(told).all()
    assert door.said(again, X) == told.tobytes()


@pytest.mark.parametrize("value", [-1e300, 1.7e308, 1.1e140])
@pytest.mark.parametrize("name", ["AutoRegressor", "RaceRegressor", *EXTRA])
def test_a_target_that_no_scale_fits_is_named_in_every_way_of_learning(name, value):
    X, y = cases()["all around 1e+30"]
    y = y / 1e30
    model = EXTRA[name]() if name in EXTRA else public_learners.made(name)
    model.partial_fit(X[:50], y[:50])
    before, wrong = model.to_bytes(), y.copy()
    wrong[60] = value
    for learn in (
        lambda: model.partial_fit(X[50:], wrong[50:]),
        lambda: model.prequential(X[50:], wrong[50:]),
        lambda: model.learn_one(X[60], value),
    ):
        with pytest.raises(ValueError, match=r"a number that is too large: row (10|0) is .*at most 1e\+140 works"):
            learn()
        assert model.to_bytes() == before
