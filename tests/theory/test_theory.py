"""Every bound against runs of the naive twin, and printed forms that fail where they are known to fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import Twin, naive_matrix

from gristmill import theory
from gristmill.budgets import Window
from gristmill.kernels import Gaussian, Linear
from gristmill.losses import Hinge
from gristmill.rules import SGD, PassiveAggressive, Perceptron

STEPS = 160


def part(name, **parameters):
    """A stand-in for a rule or budget: an object whose class has this name."""
    return type(name, (SimpleNamespace,), {})(**parameters)


@dataclass
class Comparator:
    """A function of the RKHS by what the bounds need of it: its norm and its scores on the stream."""

    norm: float
    scores: np.ndarray


class Stream:
    """Points in the unit ball, so that k(x, x) <= 1, with labels that a weight vector explains in part."""

    def __init__(self, kind, kernel, seed=0, steps=STEPS):
        rng = np.random.default_rng(seed)
        self.kernel, self.kind = kernel, kind
        X = rng.normal(size=(steps, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(1.0, 1.5, size=(steps, 1))
        angle = np.linspace(0.0, 1.2 if kind == "drifting" else 0.0, steps)
        self.truth = np.stack([np.cos(angle), np.sin(angle), 0.3 * np.ones(steps)], axis=1)
        y = np.sign((X * self.truth).sum(axis=1))
        if kind == "separable":  # push the points away from the border
            X += 0.15 * y[:, None] * self.truth / np.linalg.norm(self.truth[0])
            X /= max(1.0, np.linalg.norm(X, axis=1).max())
        if kind == "noisy":
            y = y * np.where(rng.uniform(size=steps) < 0.1, -1, 1)
        if kind == "random":
            y = rng.choice([-1.0, 1.0], size=steps)
        self.X, self.y = X, y

    def comparators(self, smallest=1e-2):
        """Ridge solutions, stiff and loose, short and long; the last separates the stream if any does."""
        K = naive_matrix(self.kernel, self.X)
        found = [Comparator(0.0, np.zeros(len(self.y)))]
        for ridge in (10.0, 1.0, smallest):
            coef = np.linalg.solve(K + ridge * np.eye(len(K)), self.y)
            norm, scores = math.sqrt(coef @ K @ coef), K @ coef
            found += [Comparator(scale * norm, scale * scores) for scale in (0.5, 1.0, 3.0)]
        return found

    def separator(self):
        """The shortest of some functions with y u(x) >= 1 everywhere."""
        found = []
        for u in self.comparators(1e-6):
            least = (self.y * u.scores).min()
            if least > 0:
                found.append(Comparator(u.norm / least, u.scores / least))
        return min(found, key=lambda u: u.norm)

    def run(self, rule, budget=None, kernel=None):
        twin = Twin(kernel or self.kernel, rule, budget)
        scores = np.array([twin.step(x, label) for x, label in zip(self.X, self.y, strict=True)])
        return twin, scores

    def mistakes(self, rule, budget=None):
        return int((self.y * self.run(rule, budget)[1] <= 0).sum())

    def loss(self, u, margin=1.0):
        return theory.cumulative_hinge(u.scores, self.y, margin)


@pytest.fixture(params=[Linear(), Gaussian(0.5)], ids=["linear", "gaussian"], scope="module")
def kernel(request):
    return request.param


@pytest.fixture(params=["separable", "noisy", "random", "drifting"], scope="module")
def stream(request, kernel):
    return Stream(request.param, kernel)


@pytest.fixture(scope="module")
def separable(kernel):
    return Stream("separable", kernel)


def least(bound, stream, **options):
    """The best that a bound says, over the comparators it allows."""
    return min(bound(comparator_norm=u.norm, comparator_loss=stream.loss(u), **options) for u in stream.comparators())


# ---- mistakes against fixed comparators


def test_perceptron(stream):
    assert stream.mistakes(Perceptron()) <= least(theory.perceptron_mistake_bound, stream, radius=1.0)


@pytest.mark.parametrize("tolerance", [0.05, 0.3])
def test_projectron(stream, tolerance):
    twin, scores = stream.run(Perceptron(), part("Project", tolerance=tolerance))
    wide, wide_scores = stream.run(part("MarginProjection", squared=False), part("Project", tolerance=tolerance))
    for u in stream.comparators():
        if u.norm * tolerance < 1:
            loss = stream.loss(u)
            bound = theory.projectron_mistake_bound(tolerance, u.norm, loss)
            assert (stream.y * scores <= 0).sum() <= bound
            better = theory.projectron_pp_mistake_bound(tolerance, u.norm, wide.progress, loss)
            assert (stream.y * wide_scores <= 0).sum() <= better <= bound
    assert twin.mistakes == (stream.y * scores <= 0).sum()


def test_projectron_with_long_points(stream):
    """A kernel with k(x, x) up to 9."""
    budget, kernel = part("Project", tolerance=0.5), 9.0 * stream.kernel
    _, scores = stream.run(Perceptron(), budget, kernel)
    for u in stream.comparators():  # the same function has a third of the norm
        if u.norm / 3 * 0.5 < 1:
            bound = theory.projectron_mistake_bound(0.5, u.norm / 3, stream.loss(u), radius=3.0)
            assert (stream.y * scores <= 0).sum() <= bound


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_passive_aggressive(stream, C):
    bound = least(theory.passive_aggressive_mistake_bound, stream, radius=1.0, C=C)
    assert stream.mistakes(PassiveAggressive(C=C)) <= bound
    _, scores = stream.run(PassiveAggressive(C=C, variant=2))
    suffered = (np.maximum(0, 1 - stream.y * scores) ** 2).sum()
    for u in stream.comparators():
        squares = float((np.maximum(0, 1 - stream.y * u.scores) ** 2).sum())
        assert suffered <= theory.passive_aggressive_loss_bound(1.0, C, u.norm, squares)


@pytest.mark.parametrize("basic", [False, True])
@pytest.mark.parametrize("kind", ["noisy", "random"])
def test_forgetron(kernel, kind, basic):
    stream = Stream(kind, kernel, steps=260)
    twin, scores = stream.run(Perceptron(), part("Forget", size=83, basic=basic))
    if kind == "random":
        assert len(twin.points) == 83  # the budget is felt
    for u in stream.comparators():
        if u.norm <= theory.forgetron_norm_limit(83):
            bound = theory.forgetron_mistake_bound(83, u.norm, stream.loss(u))
            assert (stream.y * scores <= 0).sum() <= bound


@pytest.mark.parametrize("aggressive", [False, True])
def test_romma(separable, aggressive):
    bound = theory.romma_mistake_bound(1.0, separable.separator().norm)
    assert separable.mistakes(part("Romma", aggressive=aggressive)) <= bound


# ---- projection algorithms


def test_projection_over_the_whole_stream(separable):
    _, scores = separable.run(part("FeasibleSet", epsilon=None, radius=None))
    squares = (np.maximum(0, 1 - separable.y * scores) ** 2).sum()
    assert squares <= theory.projection_mistake_bound(1.0, separable.separator().norm)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_projection_regression(kernel, epsilon):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 3)) * 2
    coef = rng.normal(size=100) / 10
    K = naive_matrix(kernel, X)
    y = K @ coef + rng.uniform(-epsilon, epsilon, size=100)
    twin = Twin(kernel, part("FeasibleSet", epsilon=epsilon, radius=None), task="regression")
    scores = np.array([twin.step(x, target) for x, target in zip(X, y, strict=True)])
    suffered = (np.maximum(0, np.abs(y - scores) - epsilon) ** 2).sum()
    norm = math.sqrt(coef @ K @ coef)
    assert suffered <= theory.projection_loss_bound(math.sqrt(K.diagonal().max()), norm) + 1e-9


def test_projection_over_a_stretch(kernel):
    """The labels turn round in the middle; in a ball the second half costs no more than its own bound."""
    first, second = Stream("separable", kernel, seed=1), Stream("separable", kernel, seed=2)
    second.y = -second.y
    norm = max(first.separator().norm, second.separator().norm)
    twin = Twin(kernel, part("FeasibleSet", epsilon=None, radius=norm))
    wrong = [
        sum(label * twin.step(x, label) <= 0 for x, label in zip(half.X, half.y, strict=True))
        for half in (first, second)
    ]
    assert max(wrong) <= theory.projection_mistake_bound(1.0, norm, ball=norm)


def test_printed_radius_of_the_kernel_regression_bound_fails():
    """Theorem 6 as printed takes max k(x, x) itself for R."""
    twin = Twin(Linear(), part("FeasibleSet", epsilon=0.0, radius=None), task="regression")
    suffered = (1.0 - twin.step(np.array([0.5]), 1.0)) ** 2  # u = 2
    assert suffered > theory.projection_loss_bound(radius=0.25, comparator_norm=2.0)
    assert suffered <= theory.projection_loss_bound(radius=0.5, comparator_norm=2.0)


# ---- ALMA


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
@pytest.mark.parametrize("alpha", [0.3, 0.9])
def test_alma(separable, alpha, tolerance):
    margin, B = 1 / separable.separator().norm, 2.0
    C = theory.alma_step(alpha, B)
    assert C**2 + 2 * (1 - alpha) * B * C == pytest.approx(1.0)
    budget = part("Project", tolerance=tolerance) if tolerance else None
    twin, scores = separable.run(part("Alma", alpha=alpha, B=B, C=C), budget)
    bound = theory.alma_correction_bound(margin, C, tolerance=tolerance)
    assert (separable.y * scores <= 0).sum() <= twin.corrections <= bound


def test_alma_reaches_its_margin():
    stream = Stream("separable", Gaussian(0.5))
    margin, twin = 1 / stream.separator().norm, Twin(Gaussian(0.5), part("Alma", alpha=0.9, B=None, C=None))
    before = -1
    while twin.corrections > before:
        before = twin.corrections
        for x, label in zip(stream.X, stream.y, strict=True):
            twin.step(x, label)
        assert twin.corrections <= theory.alma_separable_bound(0.9, margin)
    scores = np.array([twin.score(x) for x in stream.X])
    assert (stream.y * scores).min() / math.sqrt(twin.norm2()) >= 0.1 * margin


def test_printed_alma_bound_is_the_fourth_power():
    """With the printed rho the separable bound grows like 1/gamma^4 and not like 1/gamma^2."""
    corrected = [theory.alma_correction_bound(margin, 1.0) * margin**2 for margin in (1e-1, 1e-2, 1e-3)]
    assert corrected == pytest.approx([1.0] * 3, rel=0.02)


# ---- moving comparators: NORMA and ILK


def moving(kind, norm):
    """A stream for the linear kernel and the true weights as a comparator of the given norm."""
    stream = Stream(kind, Linear())
    g = stream.truth * norm / np.linalg.norm(stream.truth, axis=1, keepdims=True)
    hops = np.linalg.norm(np.diff(g, axis=0), axis=1)
    return stream, (stream.X * g).sum(axis=1), float(hops.sum()), float((hops**2).sum())


KINDS = ["separable", "noisy", "random", "drifting"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [1.0, 5.0, 20.0])
def test_norma_tuned_for_margin_errors(kind, norm):
    stream, scores, path_length, path_energy = moving(kind, norm)
    K = theory.cumulative_hinge(scores, stream.y, 1.0)
    for rho in (0.0, 0.6):
        tuned = theory.norma_margin_tuning(1.0, norm, 1.0, rho, STEPS, K, path_length, path_energy)
        _, f = stream.run(SGD(Hinge(rho), tuned.rate, tuned.reg))
        assert (stream.y * f <= rho).sum() <= tuned.bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positive_margin", [False, True])
def test_norma_tuned_for_mistakes(kind, positive_margin):
    stream, scores, path_length, path_energy = moving(kind, 4.0)
    K = theory.cumulative_hinge(scores, stream.y, 1.0)
    tuned = theory.norma_mistake_tuning(1.0, 4.0, 1.0, STEPS, K, path_length, path_energy, positive_margin)
    assert (tuned.margin > 0) == positive_margin
    assert (tuned.reg > 0) == (kind == "drifting")
    assert stream.mistakes(SGD(Hinge(tuned.margin), tuned.rate, tuned.reg)) <= tuned.bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("C", "rate", "reg"), [(1.0, 1.0, 0.02), (0.1, 0.5, 0.1), (1e-3, 1.0, 0.01)])
def test_implicit_against_a_moving_comparator(kind, C, rate, reg):
    for norm in (1.0, 4.0, 15.0):
        stream, scores, path_length, path_energy = moving(kind, norm)
        K = theory.cumulative_hinge(scores, stream.y, 1 + rate * reg)
        rule = part("Implicit", loss=Hinge(), C=C, rate=rate, reg=reg)
        bound = theory.implicit_mistake_bound(1.0, C, norm, STEPS, rate, reg, 1.0, K, path_length, path_energy)
        assert stream.mistakes(rule) <= bound


def test_printed_implicit_bound_fails_for_small_C():
    """Eq. (21) says ||u||^2 X^2 on separable data, whatever C. With a tiny C old points outvote new ones."""
    X = np.array([[1.0, 0.0]] * 200 + [[-0.6, 0.8]] * 200)
    u, y = np.array([1.0, 2.5]), np.ones(400)  # u(x) >= 1 everywhere
    assert (X @ u >= 1).all()
    twin = Twin(Linear(), part("Implicit", loss=Hinge(), C=1e-4, rate=1.0, reg=0.0))
    mistakes = sum(twin.step(x, label) <= 0 for x, label in zip(X, y, strict=True))
    assert mistakes > 9 * (u @ u)
    assert mistakes <= theory.implicit_mistake_bound(1.0, 1e-4, math.sqrt(u @ u), 400)


# ---- NORMA: truncation and risk


@pytest.mark.parametrize("window", [5, 20])
def test_what_truncation_drops_is_small(stream, window):
    rate, reg = 0.4, 0.3
    twin, _ = stream.run(SGD(Hinge(), rate, reg))
    twin.keep([i for i, event in enumerate(twin.ids) if event < STEPS - window])  # the old part alone
    dropped = math.sqrt(twin.norm2())
    assert dropped <= theory.norma_truncation_error(window, rate, reg)
    assert dropped <= theory.norma_norm_bound(reg)


def test_window_is_the_shortest():
    for error in (1e-3, 0.5, 3.0):
        window = theory.norma_window(error, rate=0.1, reg=0.5)
        assert theory.norma_truncation_error(window, 0.1, 0.5) <= error
        if window > 1:
            assert theory.norma_truncation_error(window - 1, 0.1, 0.5) > error


@pytest.mark.parametrize("truncated", [False, True])
def test_norma_risk(stream, truncated):
    rate, reg, growth = 1.8, 0.5, 0.3
    twin = Twin(stream.kernel, SGD(Hinge(), rate, reg, schedule="inv_sqrt"))
    start, risk = theory.norma_truncation_start(rate, reg, growth), 0.0
    assert start < STEPS / 4
    for x, label in zip(stream.X, stream.y, strict=True):
        if truncated and twin.t == start:
            twin.budget = Window(growth=growth)
        risk += reg / 2 * twin.norm2() + max(0.0, 1 - label * twin.score(x))
        twin.step(x, label)
    for u in stream.comparators():
        target = stream.loss(u) / STEPS + reg / 2 * u.norm**2
        assert risk <= theory.norma_risk_bound(target, STEPS, rate, reg, truncated=truncated)


@pytest.mark.parametrize(("share", "growth"), [(0.9, 0.3), (0.5, 0.3), (0.3, 0.4), (1.0, 0.1)])
def test_truncation_start_by_counting(share, growth):
    def safe(t):
        return (np.exp(-share * t**growth) <= share / np.sqrt(t)) & (t ** (0.5 + growth) + 1 <= 0.75 * t)

    start = theory.norma_truncation_start(share, 1.0, growth)
    assert safe(np.arange(start, start + 1e5)).all()
    assert not safe(start - 1)


# ---- numbers, limits and refusals


def test_bounds_are_attained_on_orthonormal_points():
    """u = sum y_i e_i has margin 1 and squared norm n; every point is new, so every point is a mistake."""
    n, y = 12, np.array([1.0, -1.0] * 6)
    tuned = theory.norma_mistake_tuning(1.0, math.sqrt(n), 1.0, n)
    for rule, bound in [
        (Perceptron(), theory.perceptron_mistake_bound(1.0, math.sqrt(n))),
        (part("FeasibleSet", epsilon=None, radius=None), theory.projection_mistake_bound(1.0, math.sqrt(n))),
        (part("Romma", aggressive=False), theory.romma_mistake_bound(1.0, math.sqrt(n))),
        (PassiveAggressive(C=1.0), theory.passive_aggressive_mistake_bound(1.0, 1.0, math.sqrt(n))),
        (
            part("Implicit", loss=Hinge(), C=1.0, rate=1.0, reg=0.0),
            theory.implicit_mistake_bound(1.0, 1.0, math.sqrt(n), n),
        ),
        (SGD(Hinge(tuned.margin), tuned.rate, tuned.reg), tuned.bound),
    ]:
        twin = Twin(Linear(), rule)
        assert sum(label * twin.step(x, label) <= 0 for x, label in zip(np.eye(n), y, strict=True)) == n
        assert bound == pytest.approx(n)


def test_limits_agree_between_theorems():
    plain = theory.perceptron_mistake_bound(1.0, 3.0, 4.0)
    assert theory.projectron_mistake_bound(0.0, 3.0, 4.0) == plain
    assert theory.norma_mistake_tuning(1.0, 3.0, 1.0, 50).bound == theory.perceptron_mistake_bound(1.0, 3.0)
    hard = theory.passive_aggressive_mistake_bound(1.0, math.inf, 3.0)
    assert hard == theory.projection_mistake_bound(1.0, 3.0) == 9.0
    assert theory.passive_aggressive_loss_bound(1.0, math.inf, 3.0) == 9.0
    assert theory.implicit_mistake_bound(1.0, math.inf, 3.0, 50) == 9.0
    assert theory.passive_aggressive_mistake_bound(1.0, math.inf, 3.0, 0.1) == math.inf
    assert theory.implicit_mistake_bound(1.0, 1.0, 3.0, 50, path_length=1.0, path_energy=0.1) == math.inf
    near, at = (theory.norma_mistake_tuning(1.0, 3.0, 1.0, 50, loss).rate for loss in (1e-12, 0.0))
    assert near == pytest.approx(at)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: theory.perceptron_mistake_bound(-1.0, 1.0), "radius must be a number > 0, got -1.0"),
        (lambda: theory.perceptron_mistake_bound(1.0, math.nan), "comparator_norm must be .* got nan"),
        (
            lambda: theory.projectron_mistake_bound(0.5, 2.0),
            r"comparator_norm must be .* < 1/tolerance = 2, got 2",
        ),
        (lambda: theory.projectron_pp_mistake_bound(0.0, 2.0, 1.0), "tolerance must be a number > 0, got 0"),
        (lambda: theory.forgetron_mistake_bound(50, 1.0), "size must be a whole number >= 83.* got 50"),
        (lambda: theory.forgetron_mistake_bound(100, 9.0), "comparator_norm must be .* size = 100, got 9"),
        (lambda: theory.projection_mistake_bound(1.0, 3.0, ball=2.0), "comparator_norm must be .* got 3"),
        (
            lambda: theory.alma_correction_bound(0.1, 1.0, tolerance=0.2),
            "margin must be .* tolerance = 0.2, got 0.1",
        ),
        (lambda: theory.alma_step(1.5, 1.0), r"alpha must be a number in \(0, 1\], got 1.5"),
        (lambda: theory.norma_margin_tuning(1, 1, 0.5, 0.5, 9), "comparator_margin must be .* 0.5, got 0.5"),
        (lambda: theory.norma_mistake_tuning(1, 1, 1, 2.5), "steps must be a whole number >= 1, got 2.5"),
        (
            lambda: theory.norma_risk_bound(0.1, 9, rate=3.0, reg=1.0),
            r"rate \* reg must be at most 1, got 3.0",
        ),
        (
            lambda: theory.norma_truncation_start(0.5, 1.0, 0.5),
            r"growth must be a number in \(0, 1/2\), got 0.5",
        ),
        (lambda: theory.passive_aggressive_mistake_bound(1, 0, 1), "C must be .* got 0"),
        (lambda: theory.implicit_mistake_bound(1, 1, 1, 9, margin=0), "margin must be a number > 0, got 0"),
        (lambda: theory.cumulative_hinge([1.0, 2.0], [1]), r"one length, got shapes \(2,\) and \(1,\)"),
        (lambda: theory.cumulative_hinge([1.0, 2.0], [1, 0]), "labels must be -1 or \\+1, got .*0"),
        (lambda: theory.cumulative_hinge([1.0, math.inf], [1, 1]), "scores must be finite, got .*inf"),
    ],
)
def test_refusals_name_the_parameter_and_the_value(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_text_for_a_number_is_a_type_error():
    with pytest.raises(TypeError, match="radius must be a number > 0, got '1'"):
        theory.romma_mistake_bound("1", 1.0)
