"""What the tests of additive kernels share: data, and rules that do as they are told."""

from __future__ import annotations

import math

import numpy as np
from oracle_kernels import naive_kernel

from gristmill import (
    DropOldest,
    DropRandom,
    DropSmallest,
    KernelRegressor,
    Laplacian,
    Spline,
    Step,
    Unbounded,
    Window,
)

BASES = [Laplacian(3.0), Spline(0), Spline(1), Spline(2), Spline(3)]
BUDGETS = [Unbounded(), Window(40), DropOldest(25), DropSmallest(25), DropRandom(25)]


def data(n=300, width=3, seed=0, scale=1.0):
    """Rows in [0, scale] with one column of few values, and an additive target."""
    X = np.random.default_rng(seed).uniform(size=(n, width))
    X[:, -1] = np.round(X[:, -1] * 4) / 4
    y = np.sin(6 * X[:, 0]) + X[:, 1:].sum(axis=1)
    return X * scale, y


def scores_of(model, X):
    return model.predict(X) if isinstance(model, KernelRegressor) else model.decision_function(X)


def off_naive(model, X):
    """How far the scores are from the naive sum, in units of the sum of absolute terms."""
    k = naive_kernel(model.kernel_)
    stored, coef = model.support_vectors_, model.dual_coef_[:, 0]
    worst = 0.0
    for x, score in zip(X, scores_of(model, X) - model.intercept_[0], strict=True):
        row = k(stored, x)
        size = float(np.abs(row * coef).sum())
        worst = max(worst, abs(score - math.fsum(row * coef)) / max(size, 1e-300))
    return worst


class Scripted:
    """A rule that proposes steps from a list: any interleaving of adding, shrinking and forgetting."""

    def __init__(self, steps):
        self.steps = steps

    def __call__(self, trial):
        coefficient, shrink = self.steps[trial.step - 1]
        return Step(coefficient=coefficient, shrink=shrink)


class InBall:
    """A rule that needs the norm: a plain step, then back into a ball."""

    needs_norm = True

    def __init__(self):
        self.norms = []

    def __call__(self, trial):
        self.norms.append(trial.norm2)
        return Step(coefficient=0.1 * (trial.label - trial.score), radius=2.0)
