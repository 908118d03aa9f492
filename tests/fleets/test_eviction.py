"""Who leaves when there is no more room does not depend on cuts, files, or chunks that were refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Squared,
)

NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropOldest(3), random_state=0)
rng = np.random.default_rng(3)
X = rng.normal(size=(600, 2))
keys = (rng.pareto(1.0, size=600) * 4).astype(int)


@pytest.mark.parametrize("ttl", [None, 30])
@pytest.mark.parametrize("way", ["pickle", "save", "copy"])
def test_a_fleet_from_a_file_drops_the_same_keys(tmp_path, ttl, way):
    def again(fleet):
        if way == "pickle":
            return pickle.loads(pickle.dumps(fleet))
        if way == "copy":
            return copy.deepcopy(fleet)
        fleet.save(tmp_path / "model")
        return gristmill.load(tmp_path / "model")

    whole, cut = (KeyedFleet(NOVELTY, max_keys=7, ttl=ttl) for _ in range(2))
    said = whole.prequential(keys, X)
    for first in range(0, 600, 40):
        at = slice(first, first + 40)
        cut = again(cut) if first else cut
        np.testing.assert_array_equal(cut.prequential(keys[at], X[at]), said[at])
    assert list(cut) == list(whole)
    assert cut.n_dropped_ == whole.n_dropped_ > 100
    assert cut.n_expired_ == whole.n_expired_


def test_a_refused_chunk_does_not_change_who_leaves():
    wild = KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(3), random_state=0)
    fleet, other = (KeyedFleet(wild, max_keys=7, ttl=40) for _ in range(2))
    bad = np.full(40, 0.1)
    bad[39] = 1e150
    for first in range(0, 400, 20):
        at = slice(first, first + 20)
        for one in (fleet, other):
            one.partial_fit(keys[at], X[at] * 0.01, X[at, 0] * 0.01)
            one.forget(list(one)[:1])  # a free record in between
        before = pickle.dumps(fleet.saved_fields())
        with pytest.raises(ValueError, match="row 39"):
            fleet.partial_fit(np.arange(900, 940) % 905, X[:40] * 100, bad)
        assert pickle.dumps(fleet.saved_fields()) == before
    assert list(fleet) == list(other)
    assert fleet.n_dropped_ == other.n_dropped_


@pytest.mark.parametrize(
    "forge",
    [
        {"slots": lambda a: a * 0},
        {"slots": lambda a: a - 1},
        {"slots": lambda a: a + 10**6},
        {"slots": lambda a: a[1:]},
        {"touched": lambda a: a[1:]},
        {"last": lambda a: a * np.nan},
    ],
)
def test_forged_orders_are_refused(forge):
    fleet = KeyedFleet(NOVELTY, max_keys=7).partial_fit(keys, X)
    arrays, fitted = fleet.saved_fields()
    ((name, change),) = forge.items()
    with pytest.raises((ValueError, TypeError)):
        KeyedFleet(NOVELTY, max_keys=7).restore_fields(
            {**arrays, name: np.ascontiguousarray(change(arrays[name]))}, fitted
        )


def test_the_hand_may_point_to_a_record_that_is_free():
    fleet = KeyedFleet(NOVELTY, max_keys=6).partial_fit(np.arange(10), X[:10])
    fleet.forget([4, 5, 6, 7, 8])
    other = pickle.loads(pickle.dumps(fleet))
    for one in (fleet, other):
        one.partial_fit(np.arange(20, 29), X[:9])
    assert list(fleet) == list(other)
    fleet.forget(list(fleet))
    other = gristmill.from_bytes(fleet.to_bytes())
    for one in (fleet, other):
        one.partial_fit(np.arange(20, 29), X[:9])
    assert list(fleet) == list(other)


def test_few_keys_of_once_many_are_saved():
    fleet = KeyedFleet(NOVELTY, max_keys=5000).partial_fit(np.arange(5000), np.tile(X[:500], (10, 1)))
    fleet.forget(np.arange(4998))
    loaded = gristmill.from_bytes(fleet.to_bytes())
    assert list(loaded) == [4998, 4999]
    assert loaded.memory_bytes_ < fleet.memory_bytes_


# ---- one event, and labels --------------------------------------------------------------------------------------------


def test_one_event_has_a_weight_and_a_time():
    y = np.where(X[:, 0] > 0, "up", "down")
    weights = rng.integers(0, 3, size=600) / 2
    model = KernelClassifier(Gaussian(0.5), budget=DropOldest(5), random_state=0)
    whole, single = (KeyedFleet(model, ttl=50.0) for _ in range(2))
    times = np.arange(600) * 1.5
    whole.partial_fit(keys, X, y, weights, time=times)
    for e in range(600):
        single.learn_one(keys[e], X[e], y[e], sample_weight=weights[e], time=times[e])
    assert pickle.dumps(whole.saved_fields()) == pickle.dumps(single.saved_fields())
    assert whole.predict_one(keys[0], X[0], time=900.0) == whole.predict(keys[:1], X[:1], time=[900.0])[0]
    assert whole.score_one(keys[0], X[0], time=900.0) == whole.decision_function(keys[:1], X[:1], time=[900.0])[0]


@pytest.mark.parametrize("model", [KernelClassifier, KernelRegressor])
def test_labels_have_one_dimension(model):
    y = np.arange(8) % 2
    fleet = KeyedFleet(model(Gaussian(0.5), budget=DropOldest(5), random_state=0))
    for bad in (y.reshape(2, 4), y.reshape(1, 8), y[:, None].repeat(2, axis=1), y[:5], y.reshape(2, 4).tolist(), 1):
        with pytest.raises(ValueError, match=r"y must have the shape \(8,\), one value an event, got \("):
            fleet.partial_fit(keys[:8], X[:8], bad)
    assert len(fleet) == 0
    with pytest.warns(UserWarning, match="column-vector y"):
        fleet.partial_fit(keys[:8], X[:8], y[:, None])
    other = KeyedFleet(model(Gaussian(0.5), budget=DropOldest(5), random_state=0)).partial_fit(keys[:8], X[:8], y)
    np.testing.assert_array_equal(fleet.predict(keys, X), other.predict(keys, X))
