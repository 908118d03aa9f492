"""A learner a key equals the same learner alone, bit for bit, whatever the order of keys, cuts, disks and files."""

from __future__ import annotations

import copy
import pickle
import sqlite3

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    Gaussian,
    Hinge,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    KeyedFleet,
    Laplacian,
    Linear,
    Logistic,
    Merge,
    ModelFileError,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Squared,
    Unbounded,
    Window,
)
from tests.fleets.test_fleet import same

BUDGETS = [Window(5), DropOldest(6), DropSmallest(6), DropSmallest(21), DropRandom(6), Merge(6), Merge(19)]
NOVELTY = KernelNovelty(Gaussian(0.7), Implicit(Hinge(1.0), 0.1, 1.0, 0.005), DropSmallest(5), random_state=0)


def events(count=400, keys=23, width=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.integers(-5, keys - 5, size=count), rng.normal(size=(count, width)).astype(dtype)


def compare(fleet, keys, X, y=None, weights=None, classes=None, cuts=(1, 50, 51, 200)):
    """Against a dict of learners."""
    told = {} if classes is None else {"classes": classes}
    models, expected = {}, [None] * len(keys)
    for key in dict.fromkeys(list(keys)):
        at = [i for i, other in enumerate(keys) if other == key]
        models[key] = clone(fleet.prototype)
        label, weight = (None if table is None else table[at] for table in (y, weights))
        for i, score in zip(at, models[key].prequential(X[at], label, weight, **told), strict=True):
            expected[i] = score
    said = []
    for at in np.split(np.arange(len(keys)), cuts):
        part = [None if table is None else table[at] for table in (y, weights)]
        some = [keys[i] for i in at] if isinstance(keys, list) else keys[at]
        said.append(fleet.prequential(some, X[at], *part, classes=classes))
    assert np.array_equal(np.concatenate(said), np.array(expected))
    assert set(fleet.keys_) == set(models)
    for key, model in models.items():
        same(fleet[key], model)
    lone = [models[key].decision_function(x[None])[0] for key, x in zip(keys, X, strict=True)]
    assert np.array_equal(fleet.decision_function(keys, X), lone)
    if isinstance(fleet.prototype, KernelClassifier):
        shares = [models[key].predict_proba(x[None])[0] for key, x in zip(keys, X, strict=True)]
        assert np.array_equal(fleet.predict_proba(keys, X), shares)
    else:
        with pytest.raises(AttributeError, match="predict_proba"):
            fleet.predict_proba(keys, X)
    assert np.array_equal(fleet.predict(keys, X), [models[k].predict(x[None])[0] for k, x in zip(keys, X, strict=True)])
    return models


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize(
    "rule",
    [
        Perceptron(),
        SGD(Hinge(0.5, nu=0.3), 0.2, 0.05),
        SGD(Logistic(), 0.5, 0.03, "inv_sqrt", True),
        PassiveAggressive(0.5),
    ],
    ids=repr,
)
def test_classifiers(rule, budget, dtype):
    keys, X = events(dtype=dtype)
    y = np.where(X[:, 0] > 0, "up", "down")
    fleet = KeyedFleet(KernelClassifier(Gaussian(0.7), rule, budget, random_state=3))
    compare(fleet, keys, X, y, classes=["down", "up"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.4), Linear(), Polynomial(2, 0.5, 1.0)], ids=repr)
def test_regressors(kernel, dtype):
    keys, X = events(dtype=dtype)
    weights = np.random.default_rng(2).integers(0, 3, size=len(X)) / 2
    for rule in (
        SGD(Squared(), 0.02, 0.05, intercept=True),
        PassiveAggressive(0.3),
        SGD(EpsilonInsensitive(0.1), 0.1, 0.1),
    ):
        fleet = KeyedFleet(KernelRegressor(kernel, rule, DropSmallest(7), random_state=3))
        compare(fleet, keys, X, np.sin(X[:, 0]).astype(np.float64), weights)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_three_classes(budget):
    keys, X = events()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    fleet = KeyedFleet(KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), budget, random_state=1))
    compare(fleet, keys, X, y, classes=[0, 1, 2])


@pytest.mark.parametrize("kind", [str, bytes])
def test_texts_are_keys(kind):
    numbers, X = events()
    keys = [f"device {n}" for n in numbers] if kind is str else [b"\0%d\xff" % n for n in numbers]
    compare(KeyedFleet(NOVELTY), keys, X)


def test_columns_are_keys():
    pandas = pytest.importorskip("pandas")
    numbers, X = events()
    fleet = KeyedFleet(NOVELTY).partial_fit(pandas.Series([f"d{n}" for n in numbers]), X)
    other = KeyedFleet(NOVELTY).partial_fit(np.array([f"d{n}" for n in numbers]), X)
    assert sorted(fleet.keys_) == sorted(other.keys_) == sorted({f"d{n}" for n in numbers})


def test_one_event_at_a_time():
    keys, X = events(120)
    y = np.sign(X[:, 0])
    prototype = KernelClassifier(Gaussian(0.7), Perceptron(), DropOldest(4), random_state=0)
    whole, single = KeyedFleet(prototype), KeyedFleet(prototype)
    scores = whole.prequential(keys, X, y)
    for e in range(len(X)):
        if e > 1:
            assert single.score_one(keys[e], X[e]) == scores[e]
            assert single.predict_one(keys[e], X[e]) in (-1, 1)
        single.learn_one(keys[e], X[e], y[e])
    for key in whole.keys_:
        same(single[key], whole[key])


def test_a_class_that_comes_late_comes_to_all(tmp_path):
    keys, X = events(200)
    y = (X[:, 0] > 0).astype(int)
    y[:2] = 0, 1
    y[150] = 2
    prototype = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(5), random_state=0)
    whole, cut = KeyedFleet(prototype), KeyedFleet(prototype)
    spilled = KeyedFleet(prototype, max_keys=3, spill=tmp_path / "keys.db")
    scores = whole.prequential(keys, X, y)
    assert scores.shape == (200, 3)
    cut.partial_fit(keys[:150], X[:150], y[:150])
    spilled.partial_fit(keys[:150], X[:150], y[:150])
    assert np.array_equal(cut.prequential(keys[150:], X[150:], y[150:]), scores[150:])
    assert np.array_equal(spilled.prequential(keys[150:], X[150:], y[150:]), scores[150:])
    for key in whole.keys_:
        same(cut[key], whole[key])
        same(spilled[key], whole[key])
        assert whole[key].classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_classes_that_come_one_by_one_find_what_is_on_disk(size, tmp_path):
    keys, X = events(300, keys=9)
    y = np.minimum(np.arange(300) // 50, np.random.default_rng(0).integers(0, 6, size=300))
    prototype = KernelClassifier(Gaussian(0.7), PassiveAggressive(0.5), DropSmallest(size), random_state=0)
    whole, spilled = KeyedFleet(prototype), KeyedFleet(prototype, max_keys=2, spill=tmp_path / "keys.db")
    for at in np.split(np.arange(300), range(30, 300, 30)):
        said = whole.prequential(keys[at], X[at], y[at])
        assert np.array_equal(spilled.prequential(keys[at], X[at], y[at]), said)
    for key in whole.keys_:
        same(spilled[key], whole[key])


# ---- room ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [1, 4, 22])
def test_what_is_spilled_comes_back_unharmed(tmp_path, most, dtype):
    keys, X = events(dtype=dtype)
    fleet = KeyedFleet(NOVELTY, max_keys=most, spill=tmp_path / "keys.db")
    compare(fleet, keys, X)
    assert fleet._core_.live == most
    assert fleet.n_dropped_ == 0


def test_the_coldest_key_goes():
    X = np.zeros((6, 2))
    fleet = KeyedFleet(NOVELTY, max_keys=3)
    fleet.partial_fit([1, 2, 3, 4], X[:4])  # all were touched, so the first is the coldest
    assert sorted(fleet.keys_) == [2, 3, 4]
    assert fleet.n_dropped_ == 1
    fleet.partial_fit([2, 5], X[:2])  # 2 was touched since
    assert 2 in fleet
    assert 5 in fleet
    assert 3 not in fleet
    with pytest.raises(KeyError):
        fleet[3]
    assert fleet[5].n_seen_ == 1


@pytest.mark.parametrize("cut", [1, 7, 400])
def test_dropping_does_not_depend_on_cuts(cut):
    keys, X = events()
    whole, parts = KeyedFleet(NOVELTY, max_keys=5), KeyedFleet(NOVELTY, max_keys=5)
    expected = whole.prequential(keys, X)
    said = [parts.prequential(keys[i : i + cut], X[i : i + cut]) for i in range(0, len(X), cut)]
    assert np.array_equal(np.concatenate(said), expected)
    assert set(whole.keys_) == set(parts.keys_)
    assert whole.n_dropped_ == parts.n_dropped_ > 100


def test_keys_past_their_time_begin_afresh():
    X = np.random.default_rng(0).normal(size=(8, 2))
    fleet = KeyedFleet(NOVELTY, ttl=3)  # events
    fleet.partial_fit([1, 2, 1, 2, 2, 2, 2, 1], X)
    assert fleet[1].n_seen_ == 1
    assert fleet[2].n_seen_ == 5
    assert fleet.n_expired_ == 1
    clock = KeyedFleet(NOVELTY, ttl=60.0)
    clock.partial_fit([1, 2, 1, 2], X[:4], time=[0.0, 10.0, 60.0, 71.0])
    assert clock[1].n_seen_ == 2
    assert clock[2].n_seen_ == 1
    clock.partial_fit([2], X[:1], time=[121.0])
    assert clock.keys_.tolist() == [2]
    with pytest.raises(ValueError, match="clock"):
        clock.partial_fit([2], X[:1])


def test_keys_are_forgotten(tmp_path):
    keys, X = events()
    for settings in ({}, {"max_keys": 4, "spill": tmp_path / "keys.db"}):
        fleet = KeyedFleet(NOVELTY, **settings).partial_fit(keys, X)
        known = len(fleet)
        gone = fleet.keys_[::2].tolist()
        assert fleet.forget([*gone, 999]) == len(gone)
        assert len(fleet) == known - len(gone)
        assert not any(key in fleet for key in gone)
        fleet.partial_fit([gone[0]], X[:1])
        assert fleet[gone[0]].n_seen_ == 1
        same(fleet[fleet.keys_[0]], fleet[fleet.keys_[0]])


def test_a_key_that_never_came_has_seen_nothing():
    keys, X = events()
    fleet = KeyedFleet(NOVELTY).partial_fit(keys, X)
    assert fleet.decision_function([999], X[:1]).tolist() == [-1.0]
    assert 999 not in fleet


def test_memory_a_key():
    count = 20_000
    prototype = KernelNovelty(Gaussian(0.2), SGD(Hinge(0.0, nu=0.1), 0.2, 0.01), DropOldest(20), random_state=0)
    fleet = KeyedFleet(prototype)
    X = np.random.default_rng(0).normal(size=(count, 5)).astype(np.float32)
    fleet.partial_fit(np.arange(count), X)
    assert fleet.memory_bytes_ / count < 850
    full = fleet.memory_bytes_
    assert fleet.partial_fit(np.arange(count), X).memory_bytes_ == full


# ---- members, files -----------------------------------------------------------------------------------------------


def test_a_member_goes_out_and_in_again():
    keys, X = events()
    fleet = KeyedFleet(NOVELTY).partial_fit(keys, X)
    member = fleet[3].partial_fit(X[:20])
    fleet[3] = fleet[77] = member
    same(fleet[3], member)
    same(fleet[77], member)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("spill", [False, True])
def test_files_and_pickles_go_on(tmp_path, text, spill):
    keys, X = events()
    keys = [f"k{key}" for key in keys] if text else keys
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    prototype = KernelClassifier(Gaussian(0.7), SGD(Hinge(0.5, nu=0.2), 0.3, 0.05), DropRandom(6), random_state=1)
    settings = {"max_keys": 4, "spill": str(tmp_path / "keys.db")} if spill else {}
    fleet = KeyedFleet(prototype, **settings).partial_fit(keys[:250], X[:250], y[:250])
    fleet.save(tmp_path / "fleet")
    others = [gristmill.load(tmp_path / "fleet"), pickle.loads(pickle.dumps(fleet)), copy.deepcopy(fleet)]
    expected = fleet.prequential(keys[250:], X[250:], y[250:])
    for other in others:
        assert np.array_equal(other.prequential(keys[250:], X[250:], y[250:]), expected)
        assert set(other.keys_) == set(fleet.keys_)
        same(other[keys[0]], fleet[keys[0]])


def test_forged_files_are_refused():
    keys, X = events()
    fleet = KeyedFleet(NOVELTY).partial_fit(keys, X)
    arrays, fitted = fleet.saved_fields()
    for name, forge in {
        "sizes": lambda a: a + 9,
        "ids": lambda a: a * 0,
        "coef": lambda a: a * np.nan,
        "points": lambda a: a[1:],
        "keys": lambda a: a * 0,
    }.items():
        with pytest.raises((ValueError, ModelFileError)):
            clone(fleet).restore_fields({**arrays, name: np.ascontiguousarray(forge(arrays[name]))}, fitted)


# ---- the prior ----------------------------------------------------------------------------------------------------


def test_a_key_learns_what_the_prior_leaves_over():
    keys, X = events(600)
    y = np.sin(X[:, 0]) + 0.3 * keys
    prior = KernelRegressor(Gaussian(0.3), SGD(Squared(), 0.2, 0.0), DropOldest(50), random_state=0)
    prototype = KernelRegressor(Gaussian(0.3), SGD(Squared(), 0.3, 0.01), DropSmallest(5), random_state=0)
    fleet, cut = KeyedFleet(prototype, prior=prior), KeyedFleet(prototype, prior=prior)
    said = fleet.prequential(keys, X, y)
    alone = clone(prior)
    first = alone.prequential(X, y)
    rest = KeyedFleet(prototype)
    assert np.array_equal(rest.prequential(keys, X, y - first) + first, said)
    for at in np.split(np.arange(600), [1, 77, 300]):
        cut.partial_fit(keys[at], X[at], y[at])
    same(fleet.prior_, alone)
    for key in fleet.keys_:
        same(fleet[key], rest[key])
        same(cut[key], rest[key])
    assert np.array_equal(fleet.predict(keys, X), rest.predict(keys, X) + alone.predict(X))
    assert prior.__sklearn_is_fitted__() is False


@pytest.mark.parametrize("labels", [(0, 1), ("b", "a"), (0, 1, 2)])
def test_the_score_of_the_prior_is_added(labels):
    keys, X = events(300)
    y = np.array(labels)[np.digitize(X[:, 0], [0.0] if len(labels) == 2 else [-0.5, 0.5])]
    prior = KernelClassifier(Gaussian(0.3), Perceptron(), DropOldest(50), random_state=0)
    prototype = KernelClassifier(Gaussian(0.3), Perceptron(), DropSmallest(5), random_state=0)
    fleet = KeyedFleet(prototype, prior=prior)
    said = fleet.prequential(keys, X, y, classes=labels)
    first = clone(prior).prequential(X, y, classes=labels)
    # The perceptron learns where prior and member together are not right, and only there.
    own = np.searchsorted(fleet.classes_, y)
    if said.ndim == 1:
        right = np.where(own == 1, said, -said) > 0
    else:
        others = np.where(own[:, None] == np.arange(3), -np.inf, said)
        right = said[np.arange(300), own] > others.max(axis=1)
    seen = {key: 0 for key in fleet.keys_}
    for e in range(300):
        if seen[keys[e]] == 0:
            assert np.array_equal(said[e], first[e])
        seen[keys[e]] += 1
    for key in fleet.keys_:
        mine = np.flatnonzero(keys == key)
        wrong = np.flatnonzero(~right[mine])
        assert set(fleet[key].support_ids_) <= set(wrong)
    assert np.array_equal(fleet.predict(keys, X).shape, (300,))


def test_priors_travel_with_the_fleet(tmp_path):
    keys, X = events()
    y = X[:, 0]
    prior = KernelRegressor(Gaussian(0.3), budget=DropOldest(20), random_state=0)
    fleet = KeyedFleet(KernelRegressor(Gaussian(0.3), budget=DropSmallest(5), random_state=0), prior=prior)
    fleet.partial_fit(keys[:200], X[:200], y[:200]).save(tmp_path / "fleet")
    others = [gristmill.load(tmp_path / "fleet"), pickle.loads(pickle.dumps(fleet))]
    expected = fleet.prequential(keys[200:], X[200:], y[200:])
    for other in others:
        assert np.array_equal(other.prequential(keys[200:], X[200:], y[200:]), expected)


# ---- what is refused ----------------------------------------------------------------------------------------------


def test_bad_input_changes_nothing(tmp_path):
    keys, X = events(100)
    y = X[:, 0].copy()
    prototype = KernelRegressor(Gaussian(0.7), SGD(Squared(), 0.3, 0.05), DropSmallest(5), random_state=0)
    fleet = KeyedFleet(prototype, max_keys=6, spill=str(tmp_path / "keys.db")).partial_fit(keys, X, y)
    before = pickle.dumps({key: fleet[key] for key in sorted(fleet.keys_)})
    bad, worse = X.copy(), y.copy()
    bad[70, 1] = np.nan
    worse[3] = np.inf
    for args, said in [
        ((keys, bad, y), "row 70"),
        ((keys, X, worse), "infinity"),
        ((keys[:5], X, y), "shape"),
        ((keys, X[:, :2], y), "shape"),
        ((keys, X, y[:5]), "one value an event"),
        ((keys, X, None), "y is None"),
        ((keys, X, y, -np.ones(100)), "sample_weight"),
    ]:
        with pytest.raises(ValueError, match=said):
            fleet.partial_fit(*args)
        assert pickle.dumps({key: fleet[key] for key in sorted(fleet.keys_)}) == before
    for wrong in (["a"] * 100, [1.5] * 100, [True] * 100, "text", [1, "a"] * 50):
        with pytest.raises(TypeError, match="key"):
            fleet.partial_fit(wrong, X, y)
    with pytest.raises(TypeError, match="dense"):
        fleet.partial_fit(keys, csr_array(X), y)
    assert pickle.dumps({key: fleet[key] for key in sorted(fleet.keys_)}) == before


@pytest.mark.parametrize("settings", [{}, {"max_keys": 6}])
def test_a_key_that_diverges_is_named_and_nothing_has_changed(settings, tmp_path):
    keys, X = events(100)
    y = X[:, 0].copy()
    prototype = KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(3), random_state=0)
    if settings:
        settings = {**settings, "spill": str(tmp_path / "keys.db")}
    fleet = KeyedFleet(prototype, **settings).partial_fit(keys[:40], X[:40], y[:40])
    before = pickle.dumps({key: fleet[key] for key in sorted(fleet.keys_)})
    y[80] = 1e150
    with pytest.raises(ValueError, match="row 80"):
        fleet.partial_fit(np.append(np.arange(500, 540), keys[40:]), X, y)
    assert pickle.dumps({key: fleet[key] for key in sorted(fleet.keys_)}) == before
    y[80] = 0
    fleet.partial_fit(keys[40:45], X[40:45], y[40:45])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ([1, "a"], "row 0 is 1, row 1 is 'a'"),
        (["a", None], "row 0 is 'a', row 1 is None"),
        ([0.5, 1.5], "row 0 is 0.5"),
        ([1, True], "row 1 is True"),
    ],
)
def test_a_key_that_can_be_none_is_named(keys, says):
    with pytest.raises(TypeError, match=says):
        KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3))).partial_fit(keys, np.zeros((2, 2)))


def test_no_events_are_said_to_be_none():
    fleet = KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3))).partial_fit([1, 2], np.zeros((2, 2)))
    for keys in ([], np.zeros(0), np.zeros(0, dtype=np.int64)):
        with pytest.raises(ValueError, match="X holds 0 events"):
            fleet.partial_fit(keys, np.zeros((0, 2)))


def test_a_spill_file_that_cannot_be_used_is_named_before_anything_is_learned(tmp_path):
    (tmp_path / "junk.db").write_bytes(b"no database" * 100)
    for path in (tmp_path / "nowhere" / "keys.db", tmp_path / "junk.db"):
        fleet = KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3)), max_keys=1, spill=path)
        with pytest.raises(OSError, match=r"the spill file .* cannot be used"):
            fleet.partial_fit([1, 2], np.zeros((2, 2)))
        assert len(fleet) == 0
    with pytest.raises(ValueError, match="ttl must be a number above 0"):
        KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3)), ttl="1 h").partial_fit([1], np.zeros((1, 2)))


@pytest.mark.parametrize(
    "change",
    ["UPDATE records SET record = substr(record, 1, 20)", "UPDATE records SET record = 'text'", "DROP TABLE records"],
)
def test_a_damaged_spill_file_changes_nothing(change, tmp_path):
    path, X = tmp_path / "keys.db", np.random.default_rng(0).normal(size=(6, 2))
    fleet = KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3)), max_keys=2, spill=path)
    fleet.partial_fit(np.arange(6), X)
    link = sqlite3.connect(path)
    link.execute(change)
    link.commit()
    link.close()
    before = fleet.decision_function([4, 5], X[:2])
    with pytest.raises((OSError, ValueError), match="damaged"):
        fleet.partial_fit([5, 0], X[:2])
    with pytest.raises((OSError, ValueError), match="damaged"):
        fleet.predict([0], X[:1])
    np.testing.assert_array_equal(fleet.decision_function([4, 5], X[:2]), before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_lies_behind_the_last_point_of_a_record_is_not_looked_at(dtype):
    """Records side by side, of all sizes below a vector and above: each equals a learner alone."""
    rng = np.random.default_rng(3)
    for size in (1, 3, 7, 15, 16, 17, 20, 25, 32, 33, 49, 64, 70):
        model = KernelNovelty(Gaussian(0.5), SGD(Hinge(), rate=0.3, reg=0.01), DropOldest(size), random_state=0)
        X = rng.normal(size=(3 * size + 4, 5)).astype(dtype)
        fleet = KeyedFleet(model).partial_fit(np.repeat([1, 2, 3], len(X)), np.tile(X, (3, 1)))
        alone = clone(model).partial_fit(X)
        for key in (1, 2, 3):
            np.testing.assert_array_equal(fleet.decision_function([key] * len(X), X), alone.decision_function(X))


def test_what_is_not_admitted_is_refused_by_name():
    keys, X = events(10)
    for made, said in [
        (lambda: KeyedFleet(KernelNovelty(Gaussian(1.0), budget=Unbounded())), "Unbounded"),
        (lambda: KeyedFleet(NOVELTY, max_keys=0), "max_keys"),
        (lambda: KeyedFleet(NOVELTY, ttl=-1), "ttl"),
        (lambda: KeyedFleet(NOVELTY, spill="x.db"), "max_keys"),
        (lambda: KeyedFleet(NOVELTY, prior=KernelRegressor()), "prior"),
        (lambda: KeyedFleet(KernelRegressor(budget=DropOldest(3)), prior=KernelClassifier()), "prior"),
    ]:
        with pytest.raises(ValueError, match=said):
            made().partial_fit(keys, X, X[:, 0])


@pytest.mark.parametrize("labels", [["a\0", "a"], [2**63 + 5, -1], [0, 1.0]], ids=repr)
def test_labels_in_a_list_stay_what_they_are(labels):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = [labels[int(x[0] > 0)] for x in X]
    alone = KernelClassifier(Gaussian(0.5), budget=DropOldest(20)).fit(X, y)
    keyed = KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropOldest(20))).partial_fit(np.zeros(40, int), X, y)
    assert keyed.classes_.dtype == alone.classes_.dtype
    assert keyed.predict(np.zeros(40, int), X).tolist() == alone.predict(X).tolist()
    fleet = gristmill.Fleet(KernelClassifier(Gaussian(0.5), budget=DropOldest(20)), 1)
    fleet.partial_fit(X[:, None], [[label] for label in y])
    assert fleet.predict(X[:, None])[:, 0].tolist() == alone.predict(X).tolist()
    with pytest.raises(ValueError, match="all strings or all numbers"):
        keyed.partial_fit([0, 0], X[:2], [1, "a"])
