"""merge of races: expert by expert, with the losses of all; learning that goes on; refusals by name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gristmill
from gristmill import (
    AutoClassifier,
    AutoNovelty,
    AutoRegressor,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Prepared,
    Race,
    Unbounded,
    merge,
)
from gristmill.checks import snapshot
from gristmill.race.expert import scaler_of

FEWEST = 50  #: points that each of several experts has memory for (core/race/memory_shares.cpp)
RNG = np.random.default_rng(3)
UNITS = np.array([1.0, 1000.0, 0.01])
Z = RNG.normal(size=(2400, 3))
X = Z * UNITS + [0.0, 50.0, 3.0]
TWO = np.where(Z[:, 0] * Z[:, 1] > 0, "yes", "no")
THREE = np.where(Z[:, 2] > 0.8, "maybe", TWO)
NUMBERS = 5000 + 100 * np.sin(2 * Z[:, 0]) + 40 * Z[:, 1]
CUTS = (slice(0, 500), slice(500, 1200), slice(1200, 1600))
TEST = slice(1600, 2400)

RACES = {
    "two": (AutoClassifier(memory="100 kB"), TWO),
    "three": (AutoClassifier(memory="100 kB"), THREE),
    "numbers": (AutoRegressor(memory="100 kB"), NUMBERS),
    "novelty": (AutoNovelty(memory="100 kB"), None),
    "own": (
        Race([
            KernelClassifier(Gaussian(g), PassiveAggressive(), Merge(80), random_state=0) for g in (0.1, 1.0)
        ]),
        TWO,
    ),
    "own numbers": (
        Race([Prepared(KernelRegressor(k, budget=Merge(80), random_state=0)) for k in (Gaussian(0.5), Laplacian(0.5))]),
        NUMBERS,
    ),
}  # fmt: skip


def taught(name, part):
    model, y = RACES[name]
    return clone(model).partial_fit(X[part], None if y is None else y[part])


def loss(model, y):
    said = model.predict(X[TEST])
    return float(np.abs(said - y[TEST]).mean()) if y.dtype.kind == "f" else float((said != y[TEST]).mean())


@pytest.mark.parametrize("name", RACES)
def test_parts_become_one_race(name):
    model, y = RACES[name]
    parts = [taught(name, part) for part in CUTS]
    before = [snapshot(part) for part in parts]
    whole = merge(parts)
    assert [snapshot(part) for part in parts] == before
    assert whole.n_seen_ == 1600
    np.testing.assert_allclose(whole.weights_.sum(), 1.0)
    if hasattr(model, "memory"):
        assert whole.memory_bytes_ <= 100_000
    if y is None:
        assert (whole.predict(X[TEST]) == -1).mean() < 0.05
        assert whole.predict([[90.0, 0.0, 0.0]])[0] == -1
        return
    chance = 0.05 if name == "own" else 0.0  # over columns as they come nothing much is learned
    assert loss(whole, y) <= np.mean([loss(part, y) for part in parts]) + chance
    np.testing.assert_array_equal(whole._engine.mixture.errors, sum(part._engine.mixture.errors for part in parts))
    np.testing.assert_array_equal(whole._engine.mixture.events, sum(part._engine.mixture.events for part in parts))
    for key in whole._engine.scaling_keys:
        united, *each = (scaler_of(race._engine, key) for race in (whole, *parts))
        np.testing.assert_allclose(united.transform(X[:5]), merge(each).transform(X[:5]))


@pytest.mark.parametrize("name", RACES)
def test_learning_goes_on_in_any_cut_and_files_keep_it(name, tmp_path):
    y = RACES[name][1]
    whole = merge([taught(name, part) for part in CUTS])
    whole.save(tmp_path / "race")
    loaded, pickled = gristmill.load(tmp_path / "race"), pickle.loads(pickle.dumps(whole))
    rows, told = X[TEST][:300], None if y is None else y[TEST][:300]
    said = whole.prequential(rows, told)
    at_once = [pickled.prequential(rows, told)]
    parts = [loaded.prequential(rows[i : i + 70], None if y is None else told[i : i + 70]) for i in range(0, 300, 70)]
    np.testing.assert_array_equal(said, at_once[0])
    np.testing.assert_array_equal(said, np.concatenate(parts))
    assert whole.to_bytes() == loaded.to_bytes() == pickled.to_bytes()
    assert whole.n_seen_ == 1900
    if hasattr(whole, "memory"):
        assert whole.memory_bytes_ <= 100_000
    assert str(whole.n_seen_ // 1000) in str(whole.report())


def test_an_expert_is_what_its_parts_merged_are():
    model, y = RACES["own"]
    parts = [taught("own", part) for part in CUTS]
    whole = merge(parts)
    for place in range(2):
        alone = merge([
            clone(model.experts[place]).partial_fit(X[part], y[part]) for part in CUTS
        ])  # fmt: skip
        inner = whole._engine.learner(place)
        sign = 1 if list(alone.classes_) == list(whole.classes_) else -1
        np.testing.assert_allclose(
            inner.score(X[TEST])[0][:, 0], sign * alone._engine.score(X[TEST])[0][:, 0], rtol=1e-12
        )


def test_class_lists_are_united():
    a = AutoClassifier(memory="100 kB").partial_fit(X[CUTS[0]], TWO[CUTS[0]])
    b = AutoClassifier(memory="100 kB").partial_fit(X[CUTS[1]], THREE[CUTS[1]])
    backwards = AutoClassifier(memory="100 kB").partial_fit(X[CUTS[2]][::-1], TWO[CUTS[2]][::-1])
    whole = merge([a, b, backwards])
    assert list(whole.classes_) == ["maybe", "no", "yes"]
    assert whole.predict_proba(X[:4]).shape == (4, 3)
    np.testing.assert_allclose(whole.predict_proba(X[:4]).sum(axis=1), 1.0)
    assert (whole.predict(X[TEST]) == THREE[TEST]).mean() > 0.6
    before = (whole.predict(X[TEST]) == THREE[TEST]).mean()
    whole.partial_fit(X[TEST][:400], THREE[TEST][:400])
    assert (whole.predict(X[TEST][400:]) == THREE[TEST][400:]).mean() > before - 0.05


def test_the_order_of_labels_does_not_matter():
    y = TWO[CUTS[0]]
    first = int(np.flatnonzero(y != y[0])[0])
    turned = np.r_[first, np.delete(np.arange(500), first)]  # the other class comes first
    a = AutoClassifier(memory="100 kB").partial_fit(X[CUTS[0]], y)
    b = AutoClassifier(memory="100 kB").partial_fit(X[CUTS[0]][turned], y[turned])
    one, other = merge([a, a]), merge([b, a])
    assert (one.predict(X[TEST]) == other.predict(X[TEST])).mean() > 0.95
    assert (one.predict(X[TEST]) == a.predict(X[TEST])).mean() > 0.97


def test_the_memory_may_be_another_and_weights_count():
    parts = [taught("two", part) for part in CUTS[:2]]
    small, large = merge(parts, "60 kB"), merge(parts, "300 kB")
    assert small.memory_bytes_ <= 60_000 < large.memory_bytes_ <= 300_000
    assert small.get_params()["memory"] == "60 kB"
    first = merge(parts, weights=[1, 0])
    assert (first.predict(X[TEST]) == parts[0].predict(X[TEST])).mean() > 0.97


def test_what_does_not_go_together_is_refused_by_name():
    a = taught("own", CUTS[0])
    other = Race([
        KernelClassifier(Gaussian(g), PassiveAggressive(), Merge(80), random_state=0) for g in (0.1, 2.0)
    ]).partial_fit(X[CUTS[1]], TWO[CUTS[1]])  # fmt: skip
    with pytest.raises(
        ValueError, match=r"(?s)models 0 and 1 race different experts: number 1 is .*gamma=1\.0.*gamma=2\.0"
    ):
        merge([a, other])
    fewer = Race([KernelClassifier(Gaussian(0.1), budget=Merge(80))]).partial_fit(X[CUTS[1]], TWO[CUTS[1]])
    with pytest.raises(ValueError, match="race 2 and 1 experts"):
        merge([a, fewer])
    unscaled = Race([Prepared(KernelClassifier(Gaussian(1.0)), s) for s in ("standard", "minmax")]).fit(
        X[:99], TWO[:99]
    )
    scaled = Race([Prepared(KernelClassifier(Gaussian(1.0)), "standard")] * 2).fit(X[:99], TWO[:99])
    with pytest.raises(ValueError, match=r"(?s)number 1 is .*minmax"):
        merge([unscaled, scaled])
    auto = taught("two", CUTS[0])
    with pytest.raises(ValueError, match="size must be words such as '1 MB', got 100"):
        merge([auto, auto], 100)
    narrow = AutoClassifier(memory="100 kB").partial_fit(X[:99, :2], TWO[:99])
    with pytest.raises(ValueError, match="different columns: 3 and 2"):
        merge([auto, narrow])
    with pytest.raises(TypeError, match="one kind"):
        merge([auto, taught("numbers", CUTS[0])])
    with pytest.raises(NotFittedError, match="AutoClassifier"):
        merge([auto, AutoClassifier()])
    whole = Race([KernelClassifier(Gaussian(0.1), budget=Unbounded(), random_state=0)]).fit(X[:200], TWO[:200])
    assert merge([whole, whole], 20).n_support_ <= 20


def test_behind_prepared():
    parts = [Prepared(AutoClassifier(memory="100 kB"), None).partial_fit(X[part], TWO[part]) for part in CUTS[:2]]
    whole = merge(parts)
    assert whole.model_.n_seen_ == 1200
    assert (whole.predict(X[TEST]) == TWO[TEST]).mean() > 0.8
    scaled = [Prepared(AutoClassifier(memory="100 kB")).partial_fit(X[part], TWO[part]) for part in CUTS[:2]]
    with pytest.raises(TypeError, match="scales columns by itself"):
        merge(scaled)


def test_with_more_classes_fewer_experts_run_with_room_for_enough_points():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(400, 30)), np.arange(400) % 8
    parts = [
        AutoClassifier(memory="150 kB", random_state=0).partial_fit(rows[:200], labels[:200]),
        AutoClassifier(memory="150 kB", random_state=0).partial_fit(rows[200:], labels[200:] + 8),
    ]
    whole = merge(parts)
    core = whole._engine
    shares = core.shares
    assert core.classes == 16
    assert 1 <= len(shares) < len(parts[0]._engine.shares)
    assert min(core.learner(place).points_within(room, 16) for place, room in shares.items()) >= FEWEST
    assert [view.place for view in core.experts() if view.runs and not view.is_trivial] == sorted(shares)
