"""Theorem 3 of ILK: the cumulative risk of implicit steps with rates eta/sqrt(t)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from gristmill import DropSmallest, Gaussian, Hinge, Implicit, KernelClassifier, Linear, Logistic, theory

STEPS = 400


def stream(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(STEPS, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=STEPS) > 0, 1.0, -1.0)
    return X, y


def losses(kind, margins):
    return np.maximum(0.0, 1 - margins) if kind == "Hinge" else np.logaddexp(0.0, -margins)


def run(K, y, kind, C, rate, reg, size=STEPS):
    """ILK by its formulas, SILK with a size: scores, squared norms before each event, norms of what was dropped after it."""
    coef, scores, norms, dropped = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))
    for t, label in enumerate(y):
        scores[t], norms[t] = K[t] @ coef, coef @ K @ coef
        eta = rate / math.sqrt(t + 1)
        keep = 1 / (1 + eta * reg)
        cap, kept = keep * eta * C, keep * scores[t] * label
        if kind == "Hinge":
            step = min(max((1 - kept) / K[t, t], 0.0), cap)
        else:
            step = brentq(
                lambda u, kept=kept, cap=cap, t=t: u - cap / (1 + math.exp(kept + u * K[t, t])), 0.0, cap, xtol=1e-15
            )
        coef *= keep
        coef[t] = label * step
        stored = np.flatnonzero(coef)
        if len(stored) > size:
            least = stored[np.argmin(np.abs(coef[stored]))]
            dropped[t] = abs(coef[least]) * math.sqrt(K[least, least])
            coef[least] = 0.0
    return scores, norms, dropped


def best_risk(kernel, X, y, C, reg, kind):
    """The least mean risk over the stream and its norm, by gradient descent in the dual coefficients."""
    K, a = kernel(X, X), np.zeros(len(y))
    best, norm = math.inf, 0.0
    for step in range(1, 600):
        margins = y * (K @ a)
        risk = reg / 2 * a @ K @ a + C * losses(kind, margins).mean()
        if risk < best:
            best, norm = risk, math.sqrt(max(a @ K @ a, 0.0))
        slope = (margins < 1) * 1.0 if kind == "Hinge" else 1 / (1 + np.exp(margins))
        a = a - (reg * a - C * slope * y / len(y)) / (reg * (step + 1))
    return best, norm


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
@pytest.mark.parametrize(("rate", "reg", "C"), [(1.0, 0.1, 1.0), (3.0, 0.02, 0.5), (0.2, 1.0, 2.0)])
def test_the_bound_holds_and_how_loose_it_is(loss, rate, reg, C):
    """Against zero, the minimiser and random functions, on three draws; the regret is measured against the bound."""
    kernel, kind = Gaussian(0.8), type(loss).__name__
    shares = []
    for seed in range(3):
        X, y = stream(seed)
        scores, norms, _ = run(kernel(X, X), y, kind, C, rate, reg)
        assert np.sqrt(norms.max()) <= C / reg
        risk = float(np.sum(reg / 2 * norms + C * losses(kind, y * scores)))
        best, norm = best_risk(kernel, X, y, C, reg, kind)
        for target, size in [(C * float(losses(kind, np.zeros(1))[0]), 0.0), (best, norm)]:
            bound = theory.implicit_risk_bound(target, STEPS, rate, reg, C, comparator_norm=size)
            assert risk <= bound <= theory.implicit_risk_bound(target, STEPS, rate, reg, C)
        shares.append((risk - STEPS * best) / (bound - STEPS * best))
    assert 0 < np.mean(shares) < 0.2  # a regret is at most a fifth of what the theorem allows here


@pytest.mark.parametrize("size", [5, 40, STEPS])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_the_library_runs_the_schedule(loss, size):
    X, y = stream(0)
    kernel = Gaussian(0.8)
    wanted = run(kernel(X, X), y, type(loss).__name__, 1.0, 2.0, 0.1, size)[0]
    model = KernelClassifier(kernel, Implicit(loss, 1.0, 2.0, 0.1, "inv_sqrt"), DropSmallest(size))
    np.testing.assert_allclose(model.prequential(X, y), wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [5, 40])
def test_silk_pays_for_what_it_drops(size):
    reg, rate, kernel = 0.1, 1.0, Gaussian(0.8)
    for seed in range(3):
        X, y = stream(seed)
        scores, norms, dropped = run(kernel(X, X), y, "Hinge", 1.0, rate, reg, size)
        risk = float(np.sum(reg / 2 * norms + losses("Hinge", y * scores)))
        assert np.count_nonzero(dropped) > 50
        best, norm = best_risk(kernel, X, y, 1.0, reg, "Hinge")
        assert risk <= theory.implicit_risk_bound(best, STEPS, rate, reg, comparator_norm=norm, dropped=dropped)


def test_the_printed_claim_for_silk_is_false():
    """Two points in turn, a buffer of one: the excess at each event does not shrink, and passes any multiple of sqrt(T)."""
    steps, rate, reg = 40_000, 1.0, 0.01
    model = KernelClassifier(Linear(), Implicit(Hinge(), 1.0, rate, reg, "inv_sqrt"), DropSmallest(1))
    X = np.tile(np.eye(2), (steps // 2, 1))
    y = np.tile([1, -1], steps // 2)
    scores = model.prequential(X, y)
    risk = np.maximum(0.0, 1 - y * scores).sum()  # without the norm, which only adds
    comparator = steps * reg / 2 * 2.0  # g = (1, -1) has no loss
    limit = 1 / reg
    assert comparator + (4 * rate + 2 * limit**2 / rate) * math.sqrt(steps) > risk  # so far
    late = np.maximum(0.0, 1 - y * scores)[-1000:].mean()
    assert late > 0.9  # each event costs so much more than g: linear in T
    printed = (4 * rate * (1 + 2 / reg) + 2 * limit**2 / rate, limit**2 / (2 * rate))
    crossing = (printed[0] / (late - reg)) ** 2
    assert (late - reg) * 4 * crossing > printed[0] * math.sqrt(4 * crossing) + printed[1]


def test_refusals():
    with pytest.raises(ValueError, match="reg must be a number > 0, got 0"):
        theory.implicit_risk_bound(0.1, 10, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"dropped must be 10 numbers >= 0, got an array of shape \(3,\)"):
        theory.implicit_risk_bound(0.1, 10, 1.0, 1.0, dropped=[0.0, 0.1, 0.2])
    with pytest.raises(TypeError, match="schedule must be one of"):
        Implicit(schedule="linear")
