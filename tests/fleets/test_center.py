"""A keyed fleet whose targets are centred per key: levels, what is learned of the rest, and what it forgets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    DropSmallest,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KeyedFleet,
    Merge,
    Prepared,
    Squared,
)

MEMBER = Prepared(KernelRegressor(budget=Merge(50)), target=None)
PRIOR = Prepared(KernelRegressor(rule=SGD(Squared(), 1.0, schedule="inv_sqrt"), average=True))


def levels_apart(spread, keys=40, events=3000, seed=0):
    """y = 2 x0 + the level of the key."""
    rng = np.random.default_rng(seed)
    key, X = rng.integers(0, keys, size=events), rng.normal(size=(events, 2))
    return key, X, 2 * X[:, 0] + spread * rng.normal(size=keys)[key]


def late(said, y):
    return float(np.abs(said - y)[len(y) // 2 :].mean())


@pytest.mark.parametrize("prior", [None, PRIOR])
def test_how_far_levels_lie_apart_does_not_matter(prior):
    found = []
    for spread in (0.0, 35.0, 1e6):
        key, X, y = levels_apart(spread)
        found.append(late(KeyedFleet(MEMBER, center=True, prior=prior).prequential(key, X, y), y))
    assert max(found) < 1.25 * min(found)
    alone = np.zeros(len(y))
    for one in range(40):
        alone[key == one] = Prepared(KernelRegressor(budget=Merge(50))).prequential(X[key == one], y[key == one])
    assert found[0] < (1.1 if prior is None else 0.8) * late(alone, y)


def level_of(past_keys, past, key):
    """The mean of a key drawn to that of all, by an analysis of variance over what came before."""
    own, names = past[past_keys == key], np.unique(past_keys)
    sizes = np.array([(past_keys == name).sum() for name in names])
    if not len(past) > len(names) > 1:
        return own.mean()
    within = sum(((past[past_keys == name] - past[past_keys == name].mean()) ** 2).sum() for name in names)
    variance = within / (len(past) - len(names))
    rest = ((past - past.mean()) ** 2).sum() - within - (len(names) - 1) * variance
    between = max(rest / (len(past) - (sizes**2).sum() / len(past)), 0.0)
    return past.mean() + (own.mean() - past.mean()) * len(own) * between / (len(own) * between + variance)


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_the_rest_above_the_level_is_what_a_keyed_fleet_learns(spread):
    key, X, y = levels_apart(spread, keys=3, events=60)
    fleet, rest = KeyedFleet(MEMBER, center=True), KeyedFleet(MEMBER)
    said = fleet.prequential(key, X, y)
    told, weights, before = np.zeros(60), np.zeros(60), np.zeros(60)
    for row in range(60):
        if key[row] in key[:row]:
            before[row] = level_of(key[:row], y[:row], key[row])
            told[row], weights[row] = y[row] - before[row], 1.0
        elif row:
            before[row] = y[:row].mean()
    np.testing.assert_allclose(said, before + rest.prequential(key, X, told, weights), atol=1e-9)
    np.testing.assert_allclose(fleet.level([0, 1, 2, 9]), [*(level_of(key, y, k) for k in range(3)), y.mean()])
    np.testing.assert_allclose(fleet.predict(key, X), fleet.level(key) + rest.predict(key, X), atol=1e-9)
    assert fleet.predict_one(1, X[0]) == fleet.predict([1], X[:1])[0]
    assert fleet.memory_bytes_ > rest.memory_bytes_


def test_keys_with_few_events_profit_from_those_that_are_like_them():
    key, X, y = levels_apart(0.5, keys=600)
    alone = np.zeros(len(y))
    for one in np.unique(key):
        past = np.cumsum(y[key == one]) - y[key == one]
        alone[key == one] = past / np.maximum(np.arange(len(past)), 1)
    fleet = KeyedFleet(MEMBER, center=True)
    fleet.prequential(key, X, y)
    assert late(fleet.level(key), y) < 0.9 * late(alone, y)


@pytest.mark.parametrize("more", [{}, {"max_keys": 5}, {"ttl": 30}, {"prior": PRIOR}], ids=str)
def test_chunks_of_any_size_and_files_give_the_same_bits(more, tmp_path):
    key, X, y = levels_apart(5.0, keys=30, events=400)
    names = [f"k{k}" for k in key]
    whole = KeyedFleet(MEMBER, center=True, **more)
    said = whole.prequential(names, X, y)
    parts, singly = KeyedFleet(MEMBER, center=True, **more), KeyedFleet(MEMBER, center=True, **more)
    found = []
    for start in range(0, 400, 37):
        part = slice(start, start + 37)
        found.append(parts.prequential(names[part], X[part], y[part]))
        if "max_keys" not in more:  # whose turn it is to go is not in a file
            parts.save(tmp_path / "model")
            parts = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model")))
    for name, x, target in zip(names, X, y, strict=True):
        singly.learn_one(name, x, target)
    assert np.array_equal(np.concatenate(found), said)
    for other in (parts, singly):
        assert np.array_equal(other.predict(names, X), whole.predict(names, X))


def test_levels_go_with_their_keys():
    fleet = KeyedFleet(MEMBER, center=True).partial_fit([1, 1, 2], np.eye(3), [5.0, 7.0, 100.0])
    assert fleet.forget([1]) == 1
    assert fleet.level([1])[0] == pytest.approx(112 / 3)
    old = KeyedFleet(MEMBER, center=True, ttl=10.0).partial_fit([1, 2], np.eye(2), [5.0, 7.0], time=[0.0, 9.0])
    assert old.predict([1, 2], np.eye(2), time=[19.0, 19.0]).tolist() == [6.0, 7.0]
    many = KeyedFleet(MEMBER, center=True, max_keys=2)
    for start in range(0, 1000, 100):
        many.partial_fit(np.arange(start, start + 100), np.ones((100, 1)), np.ones(100))
    assert len(many._means) <= 33
    weighed = KeyedFleet(MEMBER, center=True).partial_fit(
        [1, 1, 1], np.eye(3), [4.0, 8.0, 99.0], sample_weight=[1.0, 3.0, 0.0]
    )
    assert weighed.level([1])[0] == 7.0


def test_what_does_not_fit_is_refused_and_changes_nothing():
    key, X, y = levels_apart(1.0, events=50)
    fleet = KeyedFleet(MEMBER, center=True).partial_fit(key, X, y)
    before = fleet.to_bytes()
    bad = y.copy()
    bad[7] = np.nan
    for arguments, said in [
        ((key, X, bad), "row 7 is nan"),
        ((key, X, 1e200 * y), "row 0: the coefficients would overflow"),
        ((key, X, np.stack([y, y], axis=1)), r"one value an event, got \(50, 2\)"),
        ((key, X), "requires y"),
        ((key, X[:9], y), "a row a key"),
        ((key, X, y[:9]), r"one value an event, got \(9,\)"),
        ((["a"] * 50, X, y), "of type int, got str"),
        ((key, X, y, [-1.0] * 50), "sample_weight"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            fleet.prequential(*arguments)
    assert fleet.to_bytes() == before
    with pytest.raises(ValueError, match="must be a KernelRegressor"):
        KeyedFleet(KernelClassifier(budget=Merge(9)), center=True).partial_fit(key, X, y > 0)


class WithoutWeights(KernelRegressor):
    def prequential(self, X, y=None):
        return super().prequential(X, y)


def test_a_prior_must_take_weights():
    key, X, y = levels_apart(5.0, keys=3, events=50)
    with pytest.raises(ValueError, match="prior must take sample_weight"):
        KeyedFleet(MEMBER, center=True, prior=WithoutWeights()).partial_fit(key, X, y)


def test_columns_spans_and_late_events():
    """A column of targets, a time to live as a span, and a clock that does not run backwards."""
    rng = np.random.default_rng(4)
    keys, X = rng.integers(0, 5, size=60), rng.normal(size=(60, 2))
    y = 100.0 * keys + X[:, 0]
    model = KernelRegressor(Gaussian(0.5), budget=DropSmallest(10))
    seconds = np.arange(60.0)
    late = np.where(np.arange(60) % 7 == 3, 0.0, seconds)  # some events come long after their time
    plain = KeyedFleet(model, center=True, ttl=9.0).partial_fit(keys, X, y, time=np.maximum.accumulate(late))
    dates = np.datetime64("1970-01-01") + late.astype("timedelta64[s]")
    span = KeyedFleet(model, center=True, ttl=np.timedelta64(9, "s"))
    with pytest.warns(DataConversionWarning):
        span.partial_fit(keys, X, y[:, None], time=dates)
    assert np.array_equal(span.level(range(5)), plain.level(range(5)))
    assert np.array_equal(span.predict(keys, X), plain.predict(keys, X))
    plain.learn_one(2, X[0], 300.0, sample_weight=2.0, time=70.0)
    assert plain.predict_one(4, X[0], time=70.0) == plain.level([4])[0]  # all others are past their time


def test_an_interrupt_keeps_levels_and_learners_in_step(monkeypatch):
    rng = np.random.default_rng(5)
    keys, X = rng.integers(0, 5, size=60), rng.normal(size=(60, 2))
    y = 100.0 * keys + X[:, 0]
    fleet, other = (
        KeyedFleet(KernelRegressor(Gaussian(0.5), budget=DropSmallest(10)), center=True, prior=PRIOR) for _ in range(2)
    )
    for each in (fleet, other):
        each.partial_fit(keys[:20], X[:20], y[:20])

    def stopped(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # as if it came when all was learned
        patch.setattr(fleet, "shown_scores", stopped)
        with pytest.raises(KeyboardInterrupt):
            fleet.prequential(keys[20:], X[20:], y[20:])
    other.partial_fit(keys[20:], X[20:], y[20:])
    assert np.array_equal(fleet.predict(keys, X), other.predict(keys, X))


@pytest.mark.parametrize("cut", [1, 2, 9])
def test_the_first_event_of_a_key_sets_its_level_and_teaches_nothing(cut):
    """Before it the key is answered by the mean of all; from its second event on it learns what lies above its level."""
    keys = np.array([3, 5, 3, 7, 5, 3])
    rows, targets = np.arange(6.0)[:, None], np.array([10.0, 20.0, 12.0, 90.0, 21.0, 15.0])
    fleet = KeyedFleet(KernelRegressor(Gaussian(1e6), budget=DropOldest(9)), center=True)  # no point is near another
    said = [
        fleet.prequential(keys[at : at + cut], rows[at : at + cut], targets[at : at + cut]) for at in range(0, 6, cut)
    ]
    said = np.concatenate(said)
    assert said[0] == 0.0
    assert said[1] == 10.0
    assert said[2] == 10.0
    assert said[3] == pytest.approx((10 + 20 + 12) / 3)
    assert [fleet[key].n_support_ for key in (3, 5, 7)] == [2, 1, 0]
    assert fleet[3].n_seen_ == 3


def test_the_mean_of_all_stays_when_every_key_is_forgotten():
    fleet = KeyedFleet(MEMBER, center=True).partial_fit([1, 1, 2], np.eye(3), [5.0, 7.0, 100.0])
    assert fleet.forget([1, 2]) == 2
    assert fleet.prequential([3], np.eye(3)[:1], [1.0])[0] == pytest.approx(112 / 3)


def test_an_event_without_weight_does_not_move_a_level():
    rows, targets = np.arange(4.0)[:, None], np.array([10.0, 1e6, 12.0, 0.0])
    fleet = KeyedFleet(KernelRegressor(Gaussian(1e6), budget=DropOldest(9)), center=True)
    said = fleet.prequential([1, 1, 1, 2], rows, targets, sample_weight=[1.0, 0.0, 1.0, 0.0])
    assert said.tolist() == [0.0, 10.0, 10.0, 11.0]


@pytest.mark.parametrize(("others", "is_kept"), [(15, True), (16, True), (17, False)])
def test_a_level_is_kept_for_sixteen_events_a_key_of_max_keys(others, is_kept):
    fleet = KeyedFleet(MEMBER, center=True, max_keys=1).partial_fit([1], np.ones((1, 1)), [50.0])
    for other in range(others):
        fleet.partial_fit([2 + other], np.ones((1, 1)), [10.0])
    mean = (50.0 + 10.0 * others) / (1 + others)
    assert (fleet.level([1])[0] > mean + 1) == is_kept
    said = fleet.prequential([1], np.ones((1, 1)), [0.0])[0]
    # By then another event has come.
    assert (said > mean + 1) == (is_kept and others < 16)


def test_a_level_of_little_weight_expires_too():
    fleet = KeyedFleet(MEMBER, center=True, ttl=10.0)
    fleet.partial_fit([1, 2], np.eye(2), [100.0, 0.0], sample_weight=[0.5, 0.5], time=[0.0, 9.0])
    assert fleet.prequential([1], np.eye(2)[:1], [0.0], time=[11.0])[0] == pytest.approx(50.0)


def test_levels_are_counted_in_the_memory():
    fleet = KeyedFleet(MEMBER, center=True).partial_fit(np.arange(40), np.ones((40, 1)), np.arange(40.0))
    plain = KeyedFleet(MEMBER).partial_fit(np.arange(40), np.ones((40, 1)), np.arange(40.0))
    assert fleet.memory_bytes_ - plain.memory_bytes_ == 40 * 280
