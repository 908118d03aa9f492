"""The learner of all keys goes back when a chunk is refused, without a copy for each."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import clone

from gristmill import (
    SGD,
    AutoRegressor,
    DropOldest,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Prepared,
    Squared,
)
from gristmill.fleets.key_store import KeyStore
from gristmill.fleets.prior import UndoablePrior
from tests.fleets.test_fleet import same

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
y = np.sin(X[:, 0])
keys = rng.integers(0, 9, size=400)
PRIOR = KernelRegressor(Gaussian(0.3), budget=DropOldest(20), random_state=0)
#: of which an event can be refused after the prior has learned it
WILD = KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(3), random_state=0)


@pytest.mark.parametrize("prior", [PRIOR, Prepared(PRIOR), AutoRegressor(memory="100 kB", random_state=0)], ids=repr)
@pytest.mark.parametrize("most", [1000, 30])
def test_a_refused_chunk_is_unlearned_by_the_prior(monkeypatch, prior, most):
    monkeypatch.setattr("gristmill.fleets.prior._MOST", most)
    fleet, other = (KeyedFleet(WILD, prior=clone(prior)) for _ in range(2))
    bad = y[:50].copy()
    bad[40] = 1e150
    for cut in range(0, 200, 25):
        at = slice(cut, cut + 25)
        for one in (fleet, other):
            one.partial_fit(keys[at], X[at] * 0.1, y[at])
        if cut:
            with pytest.raises(ValueError, match=r"row [34]"):
                fleet.partial_fit(np.zeros(50, int), X[:50] * 100, bad)
    assert fleet.prior_.n_seen_ == 200
    for x, target, key in zip(X[200:230], y[200:230], keys[200:230], strict=True):
        for one in (fleet, other):
            one.learn_one(key, x * 0.1, target)
    np.testing.assert_array_equal(fleet.predict(keys, X * 0.1), other.predict(keys, X * 0.1))


def test_an_event_does_not_cost_a_copy(monkeypatch):
    copies = []
    real = copy.deepcopy
    monkeypatch.setattr("gristmill.fleets.prior.copy.deepcopy", lambda thing: copies.append(thing) or real(thing))
    fleet = KeyedFleet(PRIOR, prior=PRIOR)
    for key, x, target in zip(keys, X, y, strict=True):
        fleet.learn_one(key, x, target)
    assert len(copies) <= 2
    alone = clone(PRIOR).partial_fit(X, y)
    same(fleet.prior_, alone)


def test_arrays_that_are_used_again_do_not_matter(monkeypatch):
    row, target = X[:1].copy(), y[:1].copy()
    prior = UndoablePrior(clone(PRIOR))
    for i in range(30):
        row[:], target[:] = X[i], y[i]
        prior.learn(row, target, None, None)
        prior.keep()
    prior.learn(row, target, None, None)
    prior.roll_back()
    same(prior.learner, clone(PRIOR).partial_fit(X[:30], y[:30]))


def test_a_bad_row_is_found_before_the_prior_learns():
    fleet = KeyedFleet(PRIOR, prior=PRIOR).partial_fit(keys[:50], X[:50], y[:50])
    seen = fleet.prior_
    bad = X[:20].copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        fleet.partial_fit(keys[:20], bad, y[:20])
    assert fleet.prior_.n_seen_ == 50
    assert seen.n_seen_ == 50


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("spill", [False, True])
def test_an_interrupt_leaves_prior_and_keys_at_the_same_event(tmp_path, monkeypatch, moment, spill):
    more = {"max_keys": 3, "spill": tmp_path / "keys.db"} if spill else {}
    fleet = KeyedFleet(PRIOR, prior=PRIOR, **more).partial_fit(keys[:100], X[:100], y[:100])
    learn = KeyStore.learn

    def interrupted(self, *given):
        if moment == "after":
            learn(self, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(KeyStore, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.partial_fit(keys[100:150], X[100:150], y[100:150])
    monkeypatch.undo()
    bad = X[:5] * np.inf
    with pytest.raises(ValueError, match="infinity"):
        fleet.partial_fit(keys[:5], bad, y[:5])
    seen = 150 if moment == "after" else 100
    assert fleet.prior_.n_seen_ == sum(fleet[key].n_seen_ for key in fleet) == seen
    fleet.partial_fit(keys[seen:], X[seen:], y[seen:])
    whole = KeyedFleet(PRIOR, prior=PRIOR).partial_fit(keys, X, y)
    np.testing.assert_array_equal(fleet.predict(keys, X), whole.predict(keys, X))


@pytest.mark.parametrize("names", [(0, 1), (1, 0), ("a", "b"), ("b", "a"), (2, 0, 1), ("c", "a", "b")], ids=str)
def test_a_key_that_never_came_says_what_the_prior_says_whichever_label_came_first(names):
    """The core counts labels in the order in which they came, a learner sorts them."""
    codes = np.arange(200) % len(names)
    labels = np.array(names)[codes]
    rows = X[:200] + 2.0 * codes[:, None]
    prior = KernelClassifier(Gaussian(0.3), budget=DropOldest(40), random_state=0)
    fleet = KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropOldest(10), random_state=0), prior=prior)
    fleet.partial_fit(keys[:200], rows, labels)
    stranger = np.full(200, 999)
    assert labels[0] == names[0]
    np.testing.assert_array_equal(fleet.decision_function(stranger, rows), fleet.prior_.decision_function(rows))
    np.testing.assert_array_equal(fleet.predict(stranger, rows), fleet.prior_.predict(rows))
    assert (fleet.predict(stranger, rows) == labels).mean() > 0.8
