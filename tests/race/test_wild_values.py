"""Wild values, heavy tails and wild targets in learners without settings, and the parts that keep them from doing harm."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import robust_twin

from gristmill import (
    AutoClassifier,
    AutoRegressor,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Merge,
    Prepared,
    Race,
    merge,
)

EVENTS = 3000


def curved(count=EVENTS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=count)


def wrong(X, y, start=EVENTS - 1000, model=None):
    return float(
        ((AutoClassifier() if model is None else model).prequential(X, y) >= 0)[start:].__ne__(y[start:]).mean()
    )


def off(X, y, start=EVENTS - 1000):
    return float(np.abs(AutoRegressor().prequential(X, y) - y)[start:].mean())


@pytest.mark.parametrize("places", [(0,), (0, 1, 2), (EVENTS // 2,)])
def test_a_few_wild_values_do_no_harm(places):
    X, target = curved()
    y = target > 0.9
    clean = wrong(X, y)
    X[list(places), 0] = 1e8
    assert wrong(X, y) < clean + 0.02


def test_heavy_tails_do_little_harm():
    X, target = curved()
    y = target > 0.9
    ranks = wrong(np.exp(3 * X), y)
    assert ranks < 0.15
    standard = AutoClassifier(experts=[Prepared(KernelClassifier(Laplacian(0.6), budget=Merge(1000)))])
    assert wrong(np.exp(3 * X), y, model=standard) > ranks + 0.03


@pytest.mark.parametrize("places", [(0,), (5,), (EVENTS // 2, EVENTS // 2 + 1)])
def test_a_few_wild_targets_do_no_harm(places):
    X, y = curved()
    clean = off(X, y)
    y[list(places)] = 1e9
    assert off(X, y) < 1.25 * clean


def test_a_level_that_moves_is_followed():
    X, y = curved()
    clean = off(X, y)
    y[EVENTS // 2 :] += 30
    assert off(X, y) < 3 * clean


def test_units_do_not_matter():
    X, y = curved(1200)
    X[0, 0], y[3] = 1e8, -1e7
    units = 2.0 ** np.array([7, -3, 0, 12, -20])
    for make, labels in ((AutoClassifier, y > 0.9), (AutoRegressor, y)):
        expected = make().prequential(X, labels)
        np.testing.assert_array_equal(make().prequential(X * units, labels), expected)
    np.testing.assert_array_equal(
        AutoRegressor().prequential(X, 2.0**10 * y), 2.0**10 * AutoRegressor().prequential(X, y)
    )
    moved = AutoRegressor().prequential(X, y + 5000.0) - 5000.0
    np.testing.assert_allclose(np.median(np.abs(moved - AutoRegressor().prequential(X, y))[8:]), 0.0, atol=1e-3)


def test_saved_in_the_middle_it_goes_on_the_same():
    X, y = curved(700)
    for make, labels in ((AutoClassifier, y > 0.9), (AutoRegressor, y)):
        whole = make().partial_fit(X, labels)
        for cuts in ((0, 3, 7, 8, 40, 64, 65, 700), (0, 300, 700)):
            model = make()
            for start, stop in itertools.pairwise(cuts):
                model = pickle.loads(pickle.dumps(model.partial_fit(X[start:stop], labels[start:stop])))
            np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_few_targets_are_predicted_by_their_median():
    X, _ = curved(20)
    model = AutoRegressor()
    found = model.prequential(X[:5], np.array([1e9, 3.0, 1.0, 2.0, 7.0]))
    np.testing.assert_allclose(found, [0.0, 1e9, (1e9 + 3.0) / 2, 3.0, 2.5])
    np.testing.assert_allclose(model.predict(X[5:]), 3.0)


def test_robust_moments_ignore_a_wild_value_and_keep_columns_of_few_values():
    median, quartile, mean, deviation = robust_twin.moments([0.0, 1.0, 2.0, 3.0, 1e8], 3)
    assert (median, quartile) == (2.0, 1.0)
    assert mean < 3.0
    assert deviation < 3.0
    assert robust_twin.moments([0.0] * 7 + [1.0], 3)[1] == 0.0


def test_ranks_race_beside_others_as_they_would_alone():
    X, target = curved(900)
    X, y = np.exp(2 * X), target > 0.9
    scales = ("rank", "rank-relevance")
    race = Race([Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(80)), scale) for scale in scales])
    race.partial_fit(X, y)
    for found, scale in zip(race.experts_, scales, strict=True):
        assert found.scale == scale
        alone = Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(80)), scale).partial_fit(X, y)
        views = race._engine.experts()
        same = next(view for view in views if view.spec.asked.scale == scale).fitted(race._run.labels)
        np.testing.assert_array_equal(same.decision_function(X), alone.decision_function(X))


def test_races_with_ranks_become_one():
    X, target = curved(2000)
    X, y = np.exp(2 * X), target > 0.9
    parts = [AutoClassifier().partial_fit(X[at:1400:2], y[at:1400:2]) for at in (0, 1)]
    whole = merge(parts)
    assert (whole.predict(X[1400:]) != y[1400:]).mean() < 0.25
    numbers = [AutoRegressor().partial_fit(X[at:1400:2], target[at:1400:2]) for at in (0, 1)]
    error = np.abs(merge(numbers).predict(X[1400:]) - target[1400:]).mean()
    assert error < 0.8 * np.abs(target - np.median(target)).mean()
