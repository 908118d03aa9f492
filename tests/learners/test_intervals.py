"""Intervals: a naive twin, promised coverage on drifting streams, and the contract of every other number of a model."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    Additive,
    AutoRegressor,
    DropOldest,
    Gaussian,
    KernelRegressor,
    Laplacian,
    PassiveAggressive,
    Polynomial,
    Prepared,
    Project,
    Race,
    RandomMaclaurin,
    Squared,
    Unbounded,
    _core,
)
from gristmill.features import FeatureRegressor

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


class Twin:
    """One target, as adapt/intervals.hpp says it, level by level."""

    def __init__(self):
        self.count, self.mean = 0, 0.0
        self.experts = [[start] * 5 for start in (0.8, 1.6, 2.2, 2.8, 4.2)]
        self.shares = [[0.2] * 5 for _ in LEVELS]
        self.factors = [1.0] * 5

    def thresholds(self):
        means = [
            f * sum(s * t for s, t in zip(shares, experts, strict=True))
            for f, shares, experts in zip(self.factors, self.shares, self.experts, strict=True)
        ]
        return [max(means[: i + 1]) for i in range(5)]

    def half(self, coverage):
        if self.count == 0:
            return math.inf
        return self.mean * np.interp(-np.log1p(-coverage), -np.log1p(-np.array(LEVELS)), self.thresholds())

    def learn(self, error):
        size = abs(error)
        if self.count:
            units = size / self.mean
            for i, (level, said) in enumerate(zip(LEVELS, self.thresholds(), strict=True)):
                for k, step in enumerate((0.005, 0.01, 0.02, 0.05, 0.15)):
                    gap = units - self.experts[i][k]
                    loss = max(level * gap, (level - 1) * gap) / ((1 - level) * said)
                    self.shares[i][k] *= 1 - 0.15 * min(loss, 5)
                    self.experts[i][k] *= math.exp(step * (level - (gap <= 0)))
                total = sum(self.shares[i])
                self.shares[i] = [0.999 * share / total + 0.001 / 5 for share in self.shares[i]]
                self.factors[i] *= math.exp(0.01 * (level - (units <= said)))
        self.count += 1
        self.mean += (size - self.mean) / min(self.count, 128)


def stream(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_t(3, size=n)


def followed(errors, coverage):
    errors = np.ascontiguousarray(errors, dtype=np.float64)[:, None]
    return _core.Intervals(1).follow(np.zeros_like(errors), errors, None, coverage)[:, 0]


def covered(y, intervals):
    return (intervals[..., 0] <= y) & (y <= intervals[..., 1])


LEARNERS = {
    "race": Race([KernelRegressor(Gaussian(gamma), budget=DropOldest(30)) for gamma in (0.1, 1.0)]),
    "auto": AutoRegressor("200 kB"),
    "kernel": KernelRegressor(Gaussian(1.0), budget=DropOldest(40)),
    "merge": KernelRegressor(Gaussian(1.0)),
    "average": KernelRegressor(Gaussian(1.0), budget=Unbounded(), average=True),
    "project": KernelRegressor(Gaussian(1.0), PassiveAggressive(epsilon=0.3), Project(0.2)),
    "additive": KernelRegressor(Additive(Laplacian(1.0)), budget=DropOldest(40)),
    "feature": FeatureRegressor(RandomMaclaurin(Polynomial(2), 40, random_state=0), SGD(Squared(), 0.05)),
}


@pytest.mark.parametrize("coverage", [0.5, 0.6, 0.9, 0.97, 0.99])
def test_half_widths_are_those_of_the_twin(coverage):
    errors = np.random.default_rng(1).standard_t(2, size=800) * np.where(np.arange(800) > 400, 7.0, 1.0)
    twin, halves = Twin(), []
    for error in errors:
        halves.append(twin.half(coverage))
        twin.learn(error)
    np.testing.assert_allclose(followed(errors, coverage), halves, rtol=1e-9)


@pytest.mark.parametrize("level", range(5))
@pytest.mark.parametrize("seed", range(4))
def test_the_factor_counts_the_misses_while_it_meets_no_bound(level, seed):
    """log c / 0.01 = misses - (1 - level) events: the coverage theorem, whose bound is log(10) / 0.01 < 231 misses."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(3000, 2))
    noise = rng.standard_t(3, size=3000) * np.exp(2 * np.sin(np.arange(3000) / rng.uniform(50, 500)))
    y = np.sin(3 * X[:, 0] + np.arange(3000) / 300) + noise
    model = KernelRegressor(Gaussian(1.0), budget=DropOldest(40))
    misses = (~covered(y, model.prequential_interval(X, y, LEVELS[level]))).sum()
    factor = model._engine.state()["intervals"][-5:][level]
    assert 0.1 < factor < 10
    excess = misses - (1 - LEVELS[level]) * (len(y) - 1)  # the first interval is infinite and is not counted
    assert abs(excess - math.log(factor) / 0.01) < 1e-6
    assert abs(excess) < 231


def test_targets_just_inside_are_never_missed():
    """The condition of the theorem fails, and the misses stay below (1 - level) events - 231."""
    follower, misses = _core.Intervals(1), 0
    for i in range(4000):
        half = follower.halves(0.9)[0]
        error = 1.0 + i % 3 if i < 20 else 0.999 * half
        misses += i >= 20 and error > half
        follower.follow(np.zeros((1, 1)), np.array([[error]]), None, 0.9)
    assert misses == 0 < 0.1 * 3980 - 231
    assert 0 < half < np.inf


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_said_in_passing_is_what_would_have_been_said_before(name):
    """Event by event, in chunks, saved and loaded, pickled: the same bits."""
    X, y = stream(300)
    one, whole, cut = (clone(LEARNERS[name]) for _ in range(3))
    said = whole.prequential_interval(X, y, 0.8)
    for i in range(len(X)):
        if name != "auto":  # which takes an event into its scaling before it says anything of it
            np.testing.assert_allclose(one.predict_interval_one(X[i], 0.8), said[i], rtol=1e-12)
        one.learn_one(X[i], y[i])
    parts = [cut.prequential_interval(X[:77], y[:77], 0.8)]
    cut = pickle.loads(pickle.dumps(cut))
    parts.append(cut.prequential_interval(X[77:], y[77:], 0.8))
    assert np.array_equal(np.concatenate(parts), said)
    for model in (one, cut):
        assert np.array_equal(model.predict_interval(X, 0.93), whole.predict_interval(X, 0.93))


def test_saved_with_the_model_and_empty_where_a_file_has_none(tmp_path):
    X, y = stream(200)
    model = KernelRegressor(Gaussian(1.0)).fit(X, y)
    model.save(tmp_path / "model")
    assert np.array_equal(gristmill.load(tmp_path / "model").predict_interval(X), model.predict_interval(X))
    state = dict(model._engine.state())
    assert state["intervals"].shape == (57,)
    del state["intervals"]
    without = model.restored_core(model._run.parts, state)
    assert without.intervals().halves(0.9)[0] == np.inf
    for wrong in (-1.0, np.nan, 1e300):
        bent = model._engine.state()
        bent["intervals"] = bent["intervals"].copy()
        bent["intervals"][10] = wrong
        with pytest.raises(ValueError, match="intervals"):
            model.restored_core(model._run.parts, bent)


def test_a_race_saves_them_and_counts_their_bytes(tmp_path):
    X, y = stream(700)
    model = AutoRegressor("100 kB")
    said = model.prequential_interval(X, y, 0.8)
    assert abs(covered(y, said).mean() - 0.8) < 0.02
    assert model.memory_bytes_ <= 100_000
    model.save(tmp_path / "model")
    loaded = gristmill.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))
    state = {name: array for name, array in model._engine.state().items() if name != "intervals"}
    assert model.restored_core(model._run.parts, state).intervals().halves(0.9)[0] == np.inf


def test_an_error_in_a_chunk_leaves_them_as_they_were():
    X, y = stream(100)
    model = KernelRegressor(Gaussian(1.0)).fit(X, y)
    before = model.predict_interval(X)

    class Failing:
        calls = 0

        def __call__(self, trial):
            self.calls += 1
            if self.calls > 20:
                raise RuntimeError("no more")
            return gristmill.rules.Step(coefficient=0.1)

    with pytest.raises(ValueError, match="row 3"):
        model.prequential_interval(X[:5], [1, 2, 3, np.nan, 5])
    assert np.array_equal(model.predict_interval(X), before)
    failing = KernelRegressor(Gaussian(1.0), Failing(), DropOldest(30)).fit(X[:15], y[:15])
    before = failing.predict_interval(X)
    with pytest.raises(RuntimeError, match="no more"):
        failing.partial_fit(X[15:30], y[15:30])
    assert np.array_equal(failing.predict_interval(X), before)


def test_events_of_weight_0_teach_nothing():
    X, y = stream(200)
    weights = (np.arange(200) % 3 > 0).astype(float)
    passed, left_out = KernelRegressor(Gaussian(1.0)), KernelRegressor(Gaussian(1.0))
    said = passed.prequential_interval(X, y, sample_weight=weights)
    others = left_out.prequential_interval(X[weights > 0], y[weights > 0])
    assert np.array_equal(said[weights > 0], others)
    assert np.array_equal(passed.predict_interval(X), left_out.predict_interval(X))


@pytest.mark.parametrize(
    ("coverage", "kind"), [(0.4, ValueError), (0.995, ValueError), ("0.9", TypeError), (None, TypeError)]
)
def test_coverages_out_of_reach_are_refused(coverage, kind):
    X, y = stream(50)
    model = KernelRegressor(Gaussian(1.0)).fit(X, y)
    with pytest.raises(kind, match=r"coverage must be a number from 0\.5 to 0\.99, got"):
        model.predict_interval(X, coverage)
    with pytest.raises(kind, match="coverage"):
        model.prequential_interval(X, y, coverage)
    assert model.n_seen_ == 50


def test_more_coverage_is_never_narrower():
    X, y = stream(400)
    model = KernelRegressor(Gaussian(1.0)).fit(X, y)
    halves = [np.ptp(model.predict_interval(X[:1], c)[0]) for c in np.linspace(0.5, 0.99, 99)]
    assert (np.diff(halves) >= 0).all()
    assert halves[0] < halves[-1]


def test_before_the_first_event_everything_is_possible():
    X, y = stream(10)
    assert KernelRegressor().predict_interval_one(X[0]) == (-np.inf, np.inf)
    said = KernelRegressor().prequential_interval(X, y)
    assert said.shape == (10, 2)
    assert said[0].tolist() == [-np.inf, np.inf]
    assert np.isfinite(said[1:]).all()


def test_units_of_the_target_do_not_matter():
    errors = np.random.default_rng(2).normal(size=500)
    for factor in (2.0**40, 2.0**-60):
        assert np.array_equal(followed(errors * factor, 0.9), followed(errors, 0.9) * factor)


def test_answers_that_are_always_right_have_no_width_and_come_back_from_it():
    noise = np.random.default_rng(3).normal(size=2000)
    for start in ([], noise):
        errors = np.concatenate([start, np.zeros(50_000), noise])
        halves = followed(errors, 0.9)
        assert halves[-2001] < 1e-100
        inside = np.abs(noise) <= halves[-2000:]
        assert inside.mean() > 0.75  # so many hits before are paid back by some misses
        assert abs(inside[-500:].mean() - 0.9) <= 0.04
    wild = np.concatenate([np.full(300, 1e200), np.full(300, 1e-200), np.full(300, 1e250)])
    assert np.isfinite(followed(wild, 0.99)[1:]).all()


def drifting():
    rng = np.random.default_rng(4)
    n, t = 10_000, np.arange(10_000)
    z = rng.normal(size=n)
    return {
        "the same": z,
        "jumps of scale": z * np.where((t // 2500) % 2, 20.0, 1.0),
        "waves of scale": z * np.exp(1.5 * np.sin(t / 1500)),
        "heavy tails": rng.standard_t(2, size=n),
        "jumps of bias": z + 3 * ((t // 2000) % 3),
        "a walk": z + 0.05 * np.cumsum(rng.normal(size=n)),
        "swings": z + 5 * np.sin(t / 50),
        "growing better": z / np.sqrt(1 + t),
        "one side": rng.exponential(size=n) - 0.7,
    }


@pytest.mark.parametrize("name", drifting())
@pytest.mark.parametrize("coverage", LEVELS)
def test_coverage_holds_on_drifting_streams(name, coverage):
    """Whole streams within 1 point; of windows of 500 events 95 % within 4 points, none beyond 7."""
    errors = drifting()[name]
    inside = np.abs(errors) <= followed(errors, coverage)
    off = np.abs(inside.reshape(-1, 500).mean(axis=1) - coverage)
    assert abs(inside.mean() - coverage) <= 0.01
    assert (off <= 0.04).mean() >= 0.95
    assert off.max() <= 0.07


def test_a_learner_on_a_stream_that_changes_is_covered():
    X, y = stream(6000, seed=5)
    y[3000:] = 4 * y[3000:] + 2
    said = KernelRegressor(Gaussian(1.0), budget=DropOldest(200)).prequential_interval(X, y, 0.9)
    inside = covered(y, said)
    assert abs(inside.mean() - 0.9) <= 0.01
    assert np.abs(inside.reshape(-1, 500).mean(axis=1) - 0.9).max() <= 0.07


@pytest.mark.parametrize("scale", ["standard", "relevance", None])
def test_prepared_hands_them_on(scale):
    X, y = stream(1200)
    model, cut = (Prepared(KernelRegressor(Gaussian(1.0), budget=DropOldest(40)), scale) for _ in range(2))
    assert cut.predict_interval_one(X[0]) == (-np.inf, np.inf)
    said = model.prequential_interval(X, y, 0.8)
    parts = [cut.prequential_interval(X[a:b], y[a:b], 0.8) for a, b in ((0, 1), (1, 700), (700, 1200))]
    assert np.array_equal(np.concatenate(parts), said)
    assert abs(covered(y, said).mean() - 0.8) < 0.02
    assert tuple(model.predict_interval(X, 0.95)[7]) == model.predict_interval_one(X[7], 0.95)


def test_memory_is_bounded_and_counted():
    X, y = stream(2000)
    model = KernelRegressor(Gaussian(1.0), budget=DropOldest(50)).fit(X[:1000], y[:1000])
    full = model.memory_bytes_
    model.partial_fit(X[1000:], y[1000:])
    assert model.memory_bytes_ == full
