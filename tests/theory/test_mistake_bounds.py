"""The bounds of the papers on the mistakes that the core makes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import naive_matrix
from twin_cases import (
    stream,
)

import gristmill
from gristmill import (
    Gaussian,
    theory,
)


class Bench:
    """A run of the core in the unit ball of a kernel, and comparators for it."""

    def __init__(self, kind, steps=250):
        X, self.y = stream(kind, "binary", steps)
        self.X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        gram = naive_matrix(Gaussian(1.0), self.X)
        self.comparators = [(0.0, np.zeros(steps))]
        for ridge in (10.0, 1.0, 0.1, 1e-4):
            coef = np.linalg.solve(gram + ridge * np.eye(steps), self.y)
            for scale in (0.3, 1.0):
                self.comparators.append((scale * math.sqrt(coef @ gram @ coef), scale * (gram @ coef)))

    def mistakes(self, model):
        return int((self.y * model.prequential(self.X, self.y) <= 0).sum())

    def holds(self, model, bound, margin=1.0):
        made = self.mistakes(model)
        for norm, values in self.comparators:
            limit = bound(norm, float(np.maximum(0, margin - self.y * values).sum()))
            assert limit is None or made <= limit, (made, limit, norm)


@pytest.fixture(scope="module", params=["separable", "noisy", "drifting", "random"])
def bench(request):
    return Bench(request.param)


def test_bounds_of_perceptrons(bench):
    kernel = Gaussian(1.0)
    bench.holds(gristmill.perceptron(kernel), lambda g, d: theory.perceptron_mistake_bound(1.0, g, d))
    bench.holds(
        gristmill.passive_aggressive(kernel, C=0.5),
        lambda g, d: theory.passive_aggressive_mistake_bound(1.0, 0.5, g, d),
    )
    limit = theory.forgetron_norm_limit(100)
    bench.holds(
        gristmill.forgetron(kernel, size=100),
        lambda g, d: theory.forgetron_mistake_bound(100, g, d) if g <= limit else None,
    )


def test_bounds_of_projectrons(bench):
    for tolerance in (0.1, 0.5):
        for model in (
            gristmill.projectron(Gaussian(1.0), tolerance),
            gristmill.projectron_pp(Gaussian(1.0), tolerance),
        ):
            bench.holds(
                model,
                lambda g, d, eta=tolerance: theory.projectron_mistake_bound(eta, g, d) if g * eta < 1 else None,
            )


class Classes:
    """Four classes, and comparators for the kernel delta_cd k: two prototypes change at a time, so that R^2 = 2 k(x, x)."""

    def __init__(self, noise, steps=250, classes=4):
        rng = np.random.default_rng(5)
        self.X, _ = stream("noisy", "binary", steps)
        gram = naive_matrix(Gaussian(1.0), self.X)
        self.y = (gram[:, :classes] + noise * rng.normal(size=(steps, classes))).argmax(axis=1)
        own = np.eye(classes)[self.y]
        self.comparators = [(0.0, np.zeros((steps, classes)))]
        for ridge in (1.0, 0.1, 1e-3):
            coef = np.linalg.solve(gram + ridge * np.eye(steps), own - 1 / classes)
            for scale in (0.5, 1.0, 2.0):
                self.comparators.append((scale * math.sqrt(np.sum(coef * (gram @ coef))), scale * (gram @ coef)))

    def margins(self, scores):
        """Score of the class less that of the best other one."""
        others = scores.copy()
        others[np.arange(len(scores)), self.y] = -np.inf
        return scores[np.arange(len(scores)), self.y] - others.max(axis=1)

    def closest(self, model, bound, margin=1.0):
        """The largest share of a bound that the mistakes are; the comparators' losses are at this margin."""
        mistakes = np.sum(self.margins(model.prequential(self.X, self.y)) <= 0)
        limits = [bound(norm, float(np.maximum(0, margin - self.margins(g)).sum())) for norm, g in self.comparators]
        return mistakes / min(limits)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("tolerance", [0.1, 0.5])
def test_bounds_of_projectrons_with_classes(noise, tolerance):
    """Theorem 6, by hand as well."""
    R = math.sqrt(2)

    def bound(norm, loss):
        if norm * tolerance >= 1:
            return math.inf
        q = 1 - tolerance * norm
        found = theory.projectron_mistake_bound(tolerance, norm, loss, radius=R)
        assert found == pytest.approx((R * norm / q) ** 2 + loss / q + R * norm / q * math.sqrt(loss / q))
        return found

    for make in (gristmill.projectron, gristmill.projectron_pp):
        assert 0.03 < Classes(noise).closest(make(Gaussian(1.0), tolerance), bound) <= 1


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize(("rate", "reg", "C"), [(1.0, 0.0, 1.0), (0.5, 0.01, 0.5)])
def test_bounds_of_implicit_steps_with_classes(noise, rate, reg, C):
    """The replaced theorem 2 holds for several classes: the rival is fixed before the step, and its loss is in the hinge."""
    model = gristmill.ilk_classifier(Gaussian(1.0), C=C, rate=rate, reg=reg)

    def bound(norm, loss):
        return theory.implicit_mistake_bound(math.sqrt(2), C, norm, 250, rate, reg, comparator_loss=loss)

    assert 0.1 < Classes(noise).closest(model, bound, margin=1 + rate * reg) <= 1


def test_bounds_of_implicit_steps(bench):
    rate, reg = 0.5, 0.01
    bench.holds(
        gristmill.ilk_classifier(Gaussian(1.0), C=0.5, rate=rate, reg=reg),
        lambda g, d: theory.implicit_mistake_bound(1.0, 0.5, g, len(bench.y), rate, reg, comparator_loss=d),
        margin=1 + rate * reg,
    )


def test_bounds_on_what_can_be_separated():
    bench = Bench("separable")
    found = [(g / (bench.y * u).min(), u) for g, u in bench.comparators if (bench.y * u).min() > 0]
    norm = min(g for g, _ in found)
    for model in (gristmill.romma(Gaussian(1.0)), gristmill.romma(Gaussian(1.0), aggressive=True)):
        assert bench.mistakes(model) <= theory.romma_mistake_bound(1.0, norm)
    assert bench.mistakes(gristmill.projection_classifier(Gaussian(1.0))) <= theory.projection_mistake_bound(1.0, norm)
    ball = gristmill.projection_classifier(Gaussian(1.0), radius=norm)
    assert bench.mistakes(ball) <= theory.projection_mistake_bound(1.0, norm, ball=norm)
    corrections = gristmill.alma(Gaussian(1.0), alpha=0.9).fit(bench.X, bench.y).corrections_
    assert corrections <= theory.alma_separable_bound(0.9, 1 / norm)
