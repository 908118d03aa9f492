"""How a race mixes its experts: the share that goes round, losses that are far off, classes that are new, intervals."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import AutoClassifier, DropOldest, Gaussian, KernelClassifier, KernelRegressor, Prepared, Race

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 1))
Y = 3 * X[:, 0] + 0.1 * RNG.normal(size=700)


def experts():
    return [
        KernelRegressor(Gaussian(0.5), budget=DropOldest(50), random_state=0),
        KernelRegressor(Gaussian(500.0), budget=DropOldest(5), random_state=0),
    ]


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_the_share_that_goes_round_keeps_an_expert_alive_and_says_nothing(share):
    race = Race(experts(), share=share).partial_fit(X[:300], Y[:300])
    own = np.array([expert.partial_fit(X[:300], Y[:300]).predict(X[:40]) for expert in experts()])
    weights = race.weights_ - share / 2
    assert (weights >= -1e-15).all()
    assert weights.sum() == pytest.approx(1 - share)
    np.testing.assert_allclose(race.predict(X[:40]), weights @ own / weights.sum(), rtol=1e-12)


def test_a_loss_that_is_far_off_counts_as_twenty_mean_errors():
    """However far: a target of 1e9 moves the weights no more than one of 1e3."""
    found = []
    for target in (1e3, 1e6, 1e9, -1e9):
        race = Race(experts()).partial_fit(X[:400], Y[:400])
        before = race.weights_
        race.partial_fit(X[400:401], [target])
        assert race.weights_[0] > 0.98
        assert np.abs(race.weights_ - before).max() > 1e-4
        found.append(race.weights_)
    np.testing.assert_allclose(found[1:], [found[0]] * 3, rtol=1e-12)


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_a_class_that_an_event_brings_has_almost_no_probability_before_it(cut):
    rows = RNG.normal(size=(300, 2))
    y = (rows[:, 0] > 0).astype(int)
    y[200] = 2
    model = AutoClassifier("200 kB", passes=1, random_state=0)
    said = [model.prequential(rows[at : at + cut], y[at : at + cut]) for at in range(0, 300, cut)]
    row = next(part[200 - at] for at, part in zip(range(0, 300, cut), said, strict=True) if at <= 200 < at + cut)
    assert row.shape == (3,)
    assert np.log(1e-9) <= row[2] < np.log(1e-9) + 0.3
    assert np.exp(row).sum() == pytest.approx(1.0, abs=1e-12)


def test_intervals_are_rescaled_with_the_targets():
    """Two targets that lie close make a tiny unit, in which the next errors are huge: they are told in the new unit."""
    rows, noise = RNG.normal(size=(64, 2)), RNG.normal(size=62)
    model = Prepared(KernelRegressor(Gaussian(0.5), budget=DropOldest(50)))
    model.partial_fit(rows, np.concatenate([[0.0, 0.001], noise]))
    low, high = model.predict_interval(rows[:3], 0.9).T
    assert (high - low > 2.0).all()
    assert (high - low < 12.0).all()


@pytest.mark.parametrize("kind", ["one", "keys"])
def test_an_event_without_weight_changes_no_probability(kind):
    from gristmill import KeyedFleet

    rows, keys = RNG.normal(size=(200, 2)), np.arange(200) % 5
    y = (rows[:, 0] > 0).astype(int)
    y[0] = y[1]  # classes are numbered as they come, with and without the first sample, whose weight is 0
    weights = np.where(np.arange(200) % 3, 1.0, 0.0)
    kept = weights > 0
    model = KernelClassifier(Gaussian(0.5), budget=DropOldest(20), random_state=0)
    if kind == "one":
        told = model.partial_fit(rows, y, sample_weight=weights).predict_proba(rows)
        wanted = (
            KernelClassifier(Gaussian(0.5), budget=DropOldest(20), random_state=0)
            .partial_fit(rows[kept], y[kept])
            .predict_proba(rows)
        )
    else:
        told = KeyedFleet(model).partial_fit(keys, rows, y, sample_weight=weights).predict_proba(keys, rows)
        wanted = KeyedFleet(model).partial_fit(keys[kept], rows[kept], y[kept]).predict_proba(keys, rows)
    np.testing.assert_array_equal(told, wanted)
    assert np.abs(told - 0.5).max() > 0.2
