"""Theorem 3.14: how many features make a composition accurate everywhere at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gristmill import Exponential, Gaussian, Vovk
from gristmill.features import Compose, FourierFeatures, RandomMaclaurin, n_components_for_composition

GAMMA = 0.5


def features_for(epsilon, d=1, delta=0.05, kernel=Exponential(2.0), radius=1.0, p=2.0):  # noqa: B008  # a frozen value
    return n_components_for_composition(
        kernel, epsilon, delta, d, radius, map_bound=2.0, map_lipschitz=2 * math.sqrt(GAMMA * d),
        kernel_lipschitz=math.sqrt(2 * GAMMA / math.e), kernel_bound=1.0, p=p,
    )  # fmt: skip


def test_the_error_is_within_epsilon_everywhere_and_how_loose_that_is():
    """On a grid of the domain; the error falls as 1/sqrt(D), so that its square says how many features would have done."""
    epsilon, X = 0.5, np.linspace(-1, 1, 81)[:, None]
    D = features_for(epsilon)
    exact = np.exp(np.exp(-GAMMA * (X - X.T) ** 2) / 4)
    worst = []
    for seed in range(3):
        Z = RandomMaclaurin(Compose(Exponential(2.0), FourierFeatures(Gaussian(GAMMA))), n_components=D, measure="geometric",
                            stratified=False, exact_low_order=False, random_state=seed).fit_transform(X)  # fmt: skip
        worst.append(np.abs(Z @ Z.T - exact).max())
    assert max(worst) <= epsilon
    assert 50 < (epsilon / max(worst)) ** 2 < 50_000  # so many times too many


def test_constants_are_those_of_the_fourier_map():
    rng = np.random.default_rng(0)
    w = rng.normal(scale=math.sqrt(2 * GAMMA), size=(20_000, 3))
    assert np.mean(math.sqrt(2) * np.linalg.norm(w, axis=1)) <= 2 * math.sqrt(GAMMA * 3)
    x = np.linspace(-4, 4, 10_001)
    steepest = np.abs(np.gradient(np.exp(-GAMMA * x**2), x)).max()
    assert steepest == pytest.approx(math.sqrt(2 * GAMMA / math.e), rel=1e-4)


def test_the_split_of_delta_is_the_best():
    """The closed form against a scan over the radius of the net."""
    epsilon, delta, d, R = 0.3, 0.1, 2, 1.5
    C = 2 * math.exp(2 * 2.0 / 4)
    L = (
        math.sqrt(2 * GAMMA / math.e) * math.exp(1 / 4) / 4
        + 2 * math.sqrt(GAMMA * d) * math.sqrt(2) * math.exp(2 / 4) / 4
    )

    def needed(r):
        left = delta - 4 * r * L / epsilon
        return 8 * C**2 / epsilon**2 * (math.log(2 / left) + 2 * d * math.log(8 * R / r))

    best = min(needed(r) for r in np.linspace(1e-5, 0.9999, 20_000) * delta * epsilon / (4 * L))
    assert features_for(epsilon, d, delta, radius=R) == pytest.approx(best, rel=1e-4)


def test_refusals():
    with pytest.raises(ValueError, match="not below the radius of convergence 1"):
        features_for(0.1, kernel=Vovk())
    with pytest.raises(ValueError, match="epsilon must be a number > 0, got 0"):
        features_for(0.0)
    with pytest.raises(ValueError, match=r"p must be a number > 1, got 1\.0"):
        features_for(0.1, p=1.0)
