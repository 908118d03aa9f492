"""A parameter that is changed in mid-stream takes effect or is refused by name, however it was changed."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
from sklearn.base import clone

from gristmill import DropOldest, DropSmallest, Gaussian, KernelNovelty, KernelRegressor, KeyedFleet, Prepared

NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropOldest(3), random_state=0)
X = np.random.default_rng(0).normal(size=(60, 2))
keys = np.arange(60) % 12


def regressors(**given):
    return KeyedFleet(KernelRegressor(Gaussian(0.5), budget=DropOldest(3)), **given)


CHANGES = {
    "assigned": (lambda f: setattr(f, "prototype", clone(NOVELTY)), "prototype was KernelRegressor"),
    "set_params": (
        lambda f: f.set_params(prototype__kernel=Gaussian(9.0)),
        r"prototype__kernel was Gaussian\(gamma=0.5\)",
    ),
    "within": (lambda f: f.prototype.set_params(budget=DropSmallest(3)), r"prototype__budget was DropOldest\(size=3\)"),
    "prior": (lambda f: setattr(f, "prior", None), "prior was KernelRegressor"),
    "within the prior": (lambda f: f.set_params(prior__model__kernel__gamma=7.0), "prior__model__kernel was"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_cannot_change_is_refused_at_the_next_call(name):
    change, says = CHANGES[name]
    prior = KernelRegressor(Gaussian(0.1), budget=DropOldest(9))
    fleet = regressors(prior=Prepared(prior) if "within the" in name else prior).partial_fit(keys, X, X[:, 0])
    expected = fleet.predict(keys, X)
    was = (clone(fleet.prototype), clone(fleet.prior))
    change(fleet)
    for call in (
        lambda: fleet.partial_fit(keys, X, X[:, 0]),
        lambda: fleet.predict(keys, X),
        lambda: fleet[3],
        lambda: fleet.keys_,
        lambda: pickle.dumps(fleet),
        lambda: fleet.to_bytes(),
    ):
        with pytest.raises(ValueError, match=f"(?s)KeyedFleet: {says}.*clone"):
            call()
    if name != "assigned":
        clone(fleet).partial_fit(keys, X, X[:, 0])
    fleet.set_params(prototype=was[0], prior=was[1])  # others that mean the same
    np.testing.assert_array_equal(fleet.predict(keys, X), expected)
    fleet.partial_fit(keys, X, X[:, 0])


def test_a_fleet_without_references_is_freed():
    gc.disable()
    try:
        fleet = regressors(prior=KernelRegressor()).partial_fit(keys, X, X[:, 0])
        gone = weakref.ref(fleet)
        del fleet
        assert gone() is None
    finally:
        gc.enable()


def test_fewer_keys_from_now_on(tmp_path):
    fleet = KeyedFleet(NOVELTY).partial_fit(keys, X)
    fleet.set_params(max_keys=5)
    assert len(fleet) == 5
    assert fleet.n_dropped_ == 7
    fleet.max_keys = 8
    fleet.partial_fit(keys, X)
    assert len(fleet) == 8
    fleet.max_keys = None
    assert len(fleet.partial_fit(keys, X)) == 12
    fleet.max_keys = True
    with pytest.raises(ValueError, match="max_keys must be a whole number"):
        fleet.partial_fit(keys, X)


def test_a_spill_file_from_now_on(tmp_path):
    fleet, whole = (KeyedFleet(NOVELTY).partial_fit(keys, X) for _ in range(2))
    fleet.set_params(max_keys=3, spill=tmp_path / "keys.db")
    assert sorted(fleet) == list(range(12))
    assert fleet._core_.live == 3
    np.testing.assert_array_equal(fleet.prequential(keys, X), whole.prequential(keys, X))


@pytest.mark.parametrize("disk", [False, True])
def test_a_time_to_live_from_now_on(tmp_path, disk):
    more = {"max_keys": 3, "spill": tmp_path / "keys.db"} if disk else {}
    fleet = KeyedFleet(NOVELTY, **more).partial_fit(keys, X)
    fleet.ttl = 15
    assert len(fleet) == 12
    fleet.partial_fit(np.full(10, 3), X[:10])
    if not disk:
        assert len(fleet) == 12  # as if all had come when it was set
    fleet.partial_fit(np.full(10, 3), X[:10])
    assert list(fleet) == [3]
    fleet.ttl = None
    assert len(fleet.partial_fit(keys, X)) == 12
    assert len(fleet.partial_fit(np.full(30, 3), X[:30])) == 12
