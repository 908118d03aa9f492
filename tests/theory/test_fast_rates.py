"""Fast rates for strongly convex losses: random draws stay below the bounds, and by how much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from gristmill import Logistic, PairwiseAUC, theory
from gristmill.pairwise import ReservoirX

SIGMA = 0.5


def draw(n, rng):
    """Two classes in the disc of radius 1/2, so that differences are at most 1 long."""
    y = rng.choice([-1.0, 1.0], size=n)
    X = rng.normal(size=(n, 2)) + 0.7 * y[:, None]
    return X / (2 * np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))), y


def pair_losses(w, X, y, others, labels):
    """log(1 + exp(-z)) of all pairs, z = <w, x - x'> (y - y')/2; pairs of one class cost log 2."""
    z = (X @ w)[:, None] - (others @ w)[None, :]
    return np.logaddexp(0.0, -z * (y[:, None] - labels[None, :]) / 2)


@pytest.fixture(scope="module")
def population():
    """A sample large enough to stand for the distribution, its risk, and the least risk."""
    X, y = draw(1500, np.random.default_rng(99))

    def risk(w):
        return float(pair_losses(w, X, y, X, y).mean() + SIGMA / 2 * w @ w)

    found = minimize(risk, np.zeros(2), tol=1e-10)
    return risk, found.fun, found.x


def descend(X, y, met, best):
    """Steps 1/(sigma t) on the mean over what each event meets: hypotheses before each step, regret, longest gradient."""
    w, hypotheses, regret, longest = np.zeros(2), [], 0.0, 0.0
    for t in range(1, len(y)):
        others, labels = met(t)
        sign = (y[t] - labels) / 2
        here, there = (np.logaddexp(0.0, -sign * ((X[t] - others) @ h)).mean() + SIGMA / 2 * h @ h for h in (w, best))
        regret += here - there
        hypotheses.append(w)
        share = 1 / (1 + np.exp(sign * ((X[t] - others) @ w)))
        gradient = SIGMA * w - ((share * sign)[:, None] * (X[t] - others)).mean(axis=0)
        longest = max(longest, float(np.linalg.norm(gradient)))
        w = w - gradient / (SIGMA * t)
    return hypotheses, regret, longest


@pytest.mark.parametrize("size", [None, 40])
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_risk_of_the_ensemble_is_within_the_bound(population, seed, size):
    risk, least, best = population
    rng = np.random.default_rng(seed)
    X, y = draw(400, rng)

    def met(t):
        places = np.arange(t) if size is None or t <= size else rng.integers(0, t, size)
        return X[places], y[places]

    hypotheses, regret, longest = descend(X, y, met, best)
    assert longest <= 2.0  # L R and sigma |w|, |w| <= L R/sigma
    allowed = theory.strongly_convex_regret_bound(400, 2.0, SIGMA)
    assert regret <= allowed
    excess = np.mean([risk(w) for w in hypotheses[::10]]) - least
    bound = theory.pairwise_fast_excess_bound(400, allowed, SIGMA, delta=0.05, size=size)
    assert 0 < excess <= bound
    assert bound / excess > 100  # the constants of the proof are far from what a stream needs


@pytest.mark.parametrize("share", [0.1, 1.0, 3.0])
def test_no_hypothesis_is_far_above_what_the_sample_says(share):
    """Theorem 6.4 on the logistic loss with a ridge: 200 samples, many hypotheses, 20 draws."""
    rng = np.random.default_rng(3)
    big, labels = draw(20_000, rng)

    def risk(w, X, y):
        return float(np.logaddexp(0.0, -y * (2 * X @ w)).mean() + SIGMA / 2 * w @ w)

    best = minimize(lambda w: risk(w, big, labels), np.zeros(2), tol=1e-10).x
    least, tightest = risk(best, big, labels), math.inf
    for _ in range(20):
        X, y = draw(200, rng)
        for w in [best + scale * rng.normal(size=2) for scale in (0.05, 0.2, 1.0) for _ in range(5)]:
            observed = risk(w, X, y) - risk(best, X, y)
            bound = theory.strongly_convex_excess_bound(200, observed, SIGMA, share=share)
            excess = risk(w, big, labels) - least
            assert excess <= bound
            tightest = min(tightest, bound / excess)
    assert tightest > 1


def test_the_bound_solves_its_inequality():
    n, regret, delta, bound = 1000, 20.0, 0.1, 1.0
    total = theory.pairwise_fast_excess_bound(n, regret, 1.0, bound=bound, delta=delta) * (n - 1)
    q2 = math.log(8 * math.log(n - 1) / delta)
    harmonic = sum(1 / t for t in range(1, n))

    def solved(e):
        constant = (4 * (1 + e)) ** 2 * (32 + math.log(2 * (n - 1) / delta)) * harmonic / e

        def gap(D):
            return (1 + e) * (regret + max(8 * math.sqrt(D), 6 * bound * math.sqrt(q2)) * math.sqrt(q2)) + constant - D

        return brentq(gap, 1e-9, 1e12)

    assert total == pytest.approx(min(solved(e) for e in np.geomspace(0.2, 5.0, 400)), rel=1e-4)


def test_rates():
    def all_pairs(n):
        return theory.pairwise_fast_excess_bound(n, theory.strongly_convex_regret_bound(n, 2.0, 1.0), 1.0)

    def buffered(size):
        return theory.pairwise_fast_excess_bound(
            10**8, theory.strongly_convex_regret_bound(10**8, 2.0, 1.0), 1.0, size=size
        )

    def slow(n):
        regret = theory.strongly_convex_regret_bound(n, 2.0, 1.0)
        return theory.pairwise_excess_bound(n, regret, lambda m: theory.rademacher_auc(m, 1.0, 1.0))

    assert 0.1 < all_pairs(10**7) / all_pairs(10**6) < 0.13
    assert 0.09 < buffered(10**5) / buffered(10**4) < 0.12
    assert all_pairs(10**4) > slow(10**4)  # large constants
    assert all_pairs(10**7) < slow(10**4) / math.sqrt(1000)  # a better rate


def test_the_learner_takes_the_steps_of_the_regret_bound():
    """PairwiseAUC with reg: rate/(reg t), on its own buffer."""
    X, y = draw(60, np.random.default_rng(1))
    learner = PairwiseAUC(loss=Logistic(), buffer=ReservoirX(1000), rate=1.0, reg=SIGMA, radius=100.0, average=False)
    learner.partial_fit(X, y)
    w = np.zeros(2)
    for t in range(1, 60):
        sign = (y[t] - y[:t]) / 2
        share = 1 / (1 + np.exp(sign * ((X[t] - X[:t]) @ w)))
        w = w - (SIGMA * w - ((share * sign)[:, None] * (X[t] - X[:t])).mean(axis=0)) / (SIGMA * (t + 1))
    np.testing.assert_allclose(np.ravel(learner.coef_), w, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_regret_of_the_learner_is_within_the_bound(seed):
    """All pairs of 150 events, against the best fixed hypothesis of the stream."""
    X, y = draw(150, np.random.default_rng(seed))
    learner = PairwiseAUC(loss=Logistic(), buffer=ReservoirX(1000), rate=1.0, reg=SIGMA, radius=100.0, average=False)

    def loss(w, t):
        return float(pair_losses(w, X[t : t + 1], y[t : t + 1], X[:t], y[:t]).mean() + SIGMA / 2 * w @ w)

    suffered = 0.0
    for t in range(150):
        if t:
            suffered += loss(np.ravel(learner.coef_), t)
        learner.partial_fit(X[t : t + 1], y[t : t + 1])
    least = minimize(lambda w: sum(loss(w, t) for t in range(1, 150)), np.zeros(2), tol=1e-6).fun
    assert 0 < suffered - least <= theory.strongly_convex_regret_bound(150, 2.0, SIGMA)


def test_refusals():
    with pytest.raises(ValueError, match="n must be a whole number >= 4, got 3"):
        theory.pairwise_fast_excess_bound(3, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1/e\), got 0.5"):
        theory.pairwise_fast_excess_bound(100, 1.0, 1.0, delta=0.5)
    with pytest.raises(ValueError, match="strength must be a number > 0, got 0"):
        theory.strongly_convex_excess_bound(100, 0.1, 0.0)
