"""The twin held to what the mathematics says of it: reductions of one learner to another, and invariants."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from oracle import Twin
from scipy.optimize import minimize

from gristmill.budgets import DropOldest, DropRandom, DropSmallest, Unbounded, Window
from gristmill.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Manhattan,
    Normalized,
    Polynomial,
    Sigmoid,
    SquaredEuclidean,
    Vovk,
)
from gristmill.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Pinball, Squared
from gristmill.rules import SGD, PassiveAggressive, Perceptron


def part(name, **parameters):
    """A stand-in for a rule or budget: an object whose class has this name."""
    return type(name, (SimpleNamespace,), {})(**parameters)


def feasible_set(epsilon=None, radius=None):
    return part("FeasibleSet", epsilon=epsilon, radius=radius)


def implicit(loss, C=1.0, rate=1.0, reg=0.0):
    return part("Implicit", loss=loss, C=C, rate=rate, reg=reg)


def alma(alpha, B=None, C=None):
    return part("Alma", alpha=alpha, B=B, C=C)


def project(tolerance):
    return part("Project", tolerance=tolerance)


def forget(size, basic=False):
    return part("Forget", size=size, basic=basic)


def adapting(loss=None, rate=0.3, reg=0.1, meta_rate=0.0, decay=0.9):
    return part("StepSizeAdaptation", loss=loss or Hinge(), rate=rate, reg=reg, meta_rate=meta_rate, decay=decay)


KERNEL = Gaussian(0.7)


@pytest.fixture(scope="module")
def stream():
    """Two noisy classes in the plane."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=80) > 0, 1.0, -1.0)
    return X, y


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    return X, np.argmax(X @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(80, 3)), axis=1)


def run(twin, X, y):
    return np.array([twin.step(x, label) for x, label in zip(X, y, strict=True)])


def scores(X, y, rule, budget=None, kernel=KERNEL, **options):
    return run(Twin(kernel, rule, budget, **options), X, y)


# ---- kernels


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Linear(), 1.0),
        (Polynomial(3, 0.5, 1.0), 1.5**3),
        (Gaussian(0.5), math.exp(-0.5 * 3.3125)),
        (Laplacian(0.5), math.exp(-0.5 * 2.25)),
        (Exponential(2.0), math.exp(0.25)),
        (Vovk(3), 3.0),
        (Sigmoid(0.5, 0.1), math.tanh(0.6)),
        (Manhattan(), -2.25),
        (SquaredEuclidean(), -3.3125),
        (Normalized(Linear()), 1 / math.sqrt(5 * 0.3125)),
        (0.5 * Linear() + Gaussian(1.0) * Manhattan(), 0.5 - 2.25 * math.exp(-3.3125)),
        (lambda x, z: x[1] * z[1], 0.5),
    ],
)
def test_naive_kernels_by_hand(kernel, value):
    x, z = np.array([1.0, 2.0]), np.array([0.5, 0.25])  # <x,z> = 1, |x-z|^2 = 3.3125, |x-z|_1 = 2.25
    assert oracle.naive_matrix(kernel, [x, x], [z])[1, 0] == pytest.approx(value)


def test_vovk_without_degree_is_the_whole_series():
    assert oracle.naive_matrix(Vovk(), [np.array([0.5])])[0, 0] == pytest.approx(4 / 3)


def test_normalized_kernel_is_zero_where_the_diagonal_is():
    pairs = oracle.naive_matrix(Normalized(Linear()), [np.zeros(2), np.array([3.0, 4.0])])
    np.testing.assert_allclose(pairs, [[0, 0], [0, 1]])
    with pytest.raises(ValueError, match="cannot be normalised"):
        oracle.naive_matrix(Normalized(Sigmoid(1.0, -1.0)), [np.zeros(2), np.zeros(2)])


# ---- one learner is another


def test_norma_without_margin_and_decay_is_the_perceptron(stream):
    plain = scores(*stream, Perceptron())
    np.testing.assert_allclose(scores(*stream, SGD(Hinge(0.0), rate=0.25)), 0.25 * plain)


def test_implicit_hinge_without_decay_is_pa_one(stream):
    for C in (0.1, 0.7):
        expected = scores(*stream, PassiveAggressive(C=C))
        np.testing.assert_allclose(scores(*stream, implicit(Hinge(), C=C)), expected)


def test_unlimited_aggressiveness_is_the_projection_algorithm(stream):
    expected = scores(*stream, feasible_set())
    for rule in (PassiveAggressive(C=math.inf), PassiveAggressive(variant=0), implicit(Hinge(), C=math.inf)):
        np.testing.assert_allclose(scores(*stream, rule), expected)


def test_projection_regression_is_hard_pa(stream):
    X, _ = stream
    y = np.sin(2 * X[:, 0])
    hard = PassiveAggressive(variant=0, epsilon=0.1)
    expected = scores(X, y, feasible_set(epsilon=0.1), task="regression")
    np.testing.assert_allclose(scores(X, y, hard, task="regression"), expected)


def test_small_implicit_steps_are_gradient_steps(stream):
    """One step of both differs by O(rate^2), and so does any fixed number of steps."""
    apart = []
    for rate in (0.002, 0.001):
        explicit = scores(*stream, SGD(Logistic(), rate=rate, reg=0.3))
        apart.append(np.abs(explicit - scores(*stream, implicit(Logistic(), rate=rate, reg=0.3))).max())
    assert apart[1] == pytest.approx(apart[0] / 4, rel=0.05)


@pytest.mark.parametrize("tolerance", [0.0, 1e-6])
def test_projectron_in_a_finite_space_is_the_perceptron_on_few_points(stream, tolerance):
    kernel = Polynomial(2)  # six dimensions in the plane
    twin = Twin(kernel, Perceptron(), project(tolerance))
    np.testing.assert_allclose(run(twin, *stream), scores(*stream, Perceptron(), kernel=kernel), atol=1e-6)
    assert len(twin.points) <= 6


def test_adapting_with_no_meta_rate_is_norma(stream):
    for loss in (Hinge(0.5), Logistic()):
        expected = scores(*stream, SGD(loss, rate=0.3, reg=0.1))
        np.testing.assert_allclose(scores(*stream, adapting(loss)), expected)


BUDGETS_BEYOND_THE_STREAM = [DropOldest(99), DropSmallest(99), DropRandom(99), Window(99), Unbounded()]


@pytest.mark.parametrize("budget", [*BUDGETS_BEYOND_THE_STREAM, forget(99), forget(99, basic=True)])
def test_a_budget_that_is_never_reached_does_nothing(stream, budget):
    np.testing.assert_array_equal(scores(*stream, Perceptron(), budget), scores(*stream, Perceptron()))


TWO_CLASS_RULES = [
    (Perceptron(), None),
    (Perceptron(), project(0.4)),
    (part("MarginProjection", squared=False), project(0.4)),
    (part("MarginProjection", squared=True), project(0.4)),
    (SGD(Hinge(0.4, nu=0.3), rate=0.2, reg=0.1), DropOldest(9)),
    (SGD(Logistic(), rate=0.2, reg=0.1, schedule="inv_sqrt"), Window(growth=0.1)),
    (PassiveAggressive(C=0.3), DropSmallest(9)),
    (PassiveAggressive(C=0.3, variant=2), None),
    (feasible_set(radius=2.0), None),
    (implicit(Logistic(), reg=0.2), None),
    (alma(0.7), None),
    (alma(0.7), project(0.3)),
    (part("Romma", aggressive=True), None),
    (adapting(Logistic(), meta_rate=0.1), None),
]


@pytest.mark.parametrize(("rule", "budget"), TWO_CLASS_RULES)
def test_two_classes_with_half_the_kernel_are_the_binary_learner(stream, rule, budget):
    X, y = stream
    binary = scores(X, y, rule, budget)
    both = scores(X, (y > 0).astype(int), rule, budget, kernel=0.5 * KERNEL, n_classes=2)
    np.testing.assert_allclose(both[:, 1] - both[:, 0], binary, atol=1e-9)


# ---- steps do what they are for

LOSS_VALUES = [
    (Hinge(0.5), lambda z, y: max(0.0, 0.5 - y * z)),
    (Logistic(), lambda z, y: np.logaddexp(0.0, -y * z)),
    (Squared(), lambda z, y: (y - z) ** 2 / 2),
    (EpsilonInsensitive(0.3), lambda z, y: max(0.0, abs(y - z) - 0.3)),
    (Huber(0.6), lambda z, y: abs(y - z) - 0.3 if abs(y - z) > 0.6 else (y - z) ** 2 / 1.2),
    (Pinball(0.8), lambda z, y: max(0.8 * (y - z), 0.2 * (z - y))),
]


@pytest.mark.parametrize(("loss", "value"), LOSS_VALUES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("z", [-1.7, -0.45, 0.2, 0.55, 1.9])
def test_push_is_the_derivative_of_the_loss(loss, value, y, z):
    width = oracle.start_width(SGD(loss))
    slope, curvature, _ = oracle.push(loss, width, z, y, novelty=False)
    assert -slope == pytest.approx((value(z + 1e-6, y) - value(z - 1e-6, y)) / 2e-6, abs=1e-6)
    second = (value(z + 1e-4, y) - 2 * value(z, y) + value(z - 1e-4, y)) / 1e-8
    assert curvature == pytest.approx(second, abs=1e-6)


def test_what_happens_exactly_at_the_border():
    """Hinge acts at y f = margin, novelty does not; a tube or a width is left only beyond its edge."""
    assert oracle.push(Hinge(0.5), 0.5, 0.5, 1.0, novelty=False) == (1.0, 0.0, True)
    assert oracle.push(Hinge(0.5), 0.5, 0.5, 1.0, novelty=True) == (0.0, 0.0, False)
    assert oracle.push(EpsilonInsensitive(0.5), 0.5, 0.5, 1.0, novelty=False) == (0.0, 0.0, False)
    assert oracle.push(Huber(0.5), 0.5, 0.5, 1.0, novelty=False) == (1.0, 2.0, False)
    assert oracle.push(Pinball(0.8), 0.8, 0.5, 0.5, novelty=False) == (0.0, 0.0, False)
    one = np.ones(1)
    for rule, moves in ((PassiveAggressive(variant=0), False), (SGD(Hinge(1.0), rate=0.5), True)):
        twin = Twin(Linear(), rule)
        twin.step(one, 1.0, weight=1.0 if not moves else 2.0)
        assert twin.score(one) == 1.0
        twin.step(one, 1.0)
        assert (twin.score(one) != 1.0) == moves


@pytest.mark.parametrize("reg", [0.0, 0.5])
@pytest.mark.parametrize("rate", [0.5, 2.0])
@pytest.mark.parametrize("loss", [Squared(), Hinge(0.8), Logistic()])
def test_an_implicit_step_is_the_minimum_it_stands_for(stream, loss, rate, reg):
    """min over f of 1/2 |f - f_t|^2 + rate (reg/2 |f|^2 + C L(f)), searched in the span of all points."""
    X, y = stream[0][:6], stream[1][:6]
    task = "regression" if isinstance(loss, Squared) else "classification"
    twin = Twin(KERNEL, implicit(loss, 0.9, rate, reg), task=task)
    run(twin, X[:5], y[:5])
    K = oracle.naive_matrix(KERNEL, X)

    def full():
        coef = np.zeros(6)
        coef[twin.ids] = [row[0] for row in twin.coef]
        return coef

    def value(z):
        if isinstance(loss, Squared):
            return 0.5 * (y[5] - z) ** 2
        return max(0.0, 0.8 - y[5] * z) if isinstance(loss, Hinge) else np.logaddexp(0.0, -y[5] * z)

    before = full()

    def objective(a):
        return 0.5 * (a - before) @ K @ (a - before) + rate * (0.5 * reg * a @ K @ a + 0.9 * value(K[5] @ a))

    twin.step(X[5], y[5])
    best = objective(full())
    found = min(
        minimize(objective, full() + shift, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14}).fun
        for shift in (0.0, 0.01)
    )
    assert best <= found + 1e-9


def test_projection_steps_land_on_the_constraint_and_stay_in_the_ball(stream):
    X, y = stream
    free, bound, travelled = Twin(KERNEL, feasible_set()), Twin(KERNEL, feasible_set(radius=1.5)), 0.0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        if label * free.step(x, label) < 1:
            assert free.score(x) == pytest.approx(label)
            travelled += free.coef[-1][0] ** 2  # ||w_{t+1} - w_t||^2, as k(x, x) = 1
        assert (t in free.ids) == (label * free.score(x) == pytest.approx(1.0))
        bound.step(x, label)
        assert bound.norm2() <= 1.5**2 + 1e-12
    K = oracle.naive_matrix(KERNEL, X)
    assert travelled <= y @ np.linalg.solve(K, y)  # a function that is right everywhere: u(x) = y


@pytest.mark.parametrize("loss", [Hinge(0.7), Logistic()])
def test_norma_stays_in_its_ball(stream, loss):
    twin = Twin(KERNEL, SGD(loss, rate=0.5, reg=0.4))
    for x, label in zip(*stream, strict=True):
        twin.step(x, label)
        assert math.sqrt(twin.norm2()) <= 1 / 0.4


def test_alma_stays_in_the_unit_ball(stream):
    for budget in (None, project(0.3)):
        twin = Twin(KERNEL, alma(0.6), budget)
        for x, label in zip(*stream, strict=True):
            twin.step(x, label)
            assert twin.norm2() <= 1 + 1e-12


@pytest.mark.parametrize("aggressive", [False, True])
def test_romma_keeps_both_constraints(aggressive):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y = np.sign(X @ [1.0, -1.0, 0.5])
    twin, norm = Twin(Linear(), part("Romma", aggressive=aggressive)), 0.0
    weights = np.zeros(3)
    for x, label in zip(X, y, strict=True):
        before = twin.step(x, label)
        acted = label * before < 1 if aggressive else label * before <= 0
        new = np.array([row[0] for row in twin.coef]) @ np.array(twin.points)
        if acted:
            assert label * twin.score(x) >= 1 - 1e-9
            assert new @ weights >= weights @ weights - 1e-9
        weights = new
        assert twin.norm2() >= norm - 1e-9
        norm = twin.norm2()


@pytest.mark.parametrize("size", [1, 5, 12])
def test_forgetron_pays_at_most_its_allowance(stream, size):
    twin, mistakes = Twin(KERNEL, Perceptron(), forget(size)), []
    for t, (x, label) in enumerate(zip(*stream, strict=True)):
        if label * twin.step(x, label) <= 0:
            mistakes.append(t)
        assert twin.damage <= 15 / 32 * twin.mistakes + 1e-12
        assert twin.ids == mistakes[-size:]
        sizes = [abs(row[0]) for row in twin.coef]
        assert sizes == sorted(sizes)
    assert min(sizes) > 0
    assert max(sizes) <= 1


def test_projectron_steps_stay_within_the_tolerance(stream):
    twin = Twin(KERNEL, Perceptron(), project(0.4))
    for x, label in zip(*stream, strict=True):
        residual, _, _ = twin.projection(x, np.ones(1))
        stored, f, before = len(twin.points), twin.score(x), twin.norm2()
        twin.step(x, label)
        if label * f > 0:
            assert twin.norm2() == before
        elif residual <= 0.4:
            assert len(twin.points) == stored
            assert twin.score(x) == pytest.approx(f + label * (1 - residual**2))
        else:
            assert len(twin.points) == stored + 1


def test_projectron_pp_moves_the_score_by_its_step(stream):
    twin, margin_steps = Twin(Gaussian(0.1), part("MarginProjection", squared=False), project(0.6)), 0
    for x, label in zip(*stream, strict=True):
        progress, f = twin.progress, label * twin.score(x)
        twin.step(x, label)
        if twin.progress > progress:
            margin_steps += 1
            assert 0 < f < label * twin.score(x) <= 1 + 1e-9
    assert margin_steps > 5


def test_multiclass_projectron_folds_where_it_can(three_classes):
    X, y = three_classes
    kernel = Polynomial(1)  # three dimensions for each class
    twin = Twin(kernel, Perceptron(), project(0.0), n_classes=3)
    expected = scores(X, y, Perceptron(), kernel=kernel, n_classes=3)
    np.testing.assert_allclose(run(twin, X, y), expected, atol=1e-6)
    assert np.array(twin.member).sum(axis=0).max() <= 3


def test_adatron_climbs_the_dual_to_a_hard_margin(stream):
    X, y = stream[0][:25], stream[1][:25]
    twin, dual = Twin(KERNEL, part("Adatron", rate=0.9, C=2.0)), 0.0
    for _ in range(60):
        for i in range(25):
            twin.step(X[i], y[i], index=i)
            now = sum(abs(row[0]) for row in twin.coef) - twin.norm2() / 2
            assert now >= dual - 1e-12
            dual = now
    inside = [i for i, row in zip(twin.ids, twin.coef, strict=True) if 1e-6 < abs(row[0]) < 2 - 1e-6]
    np.testing.assert_allclose([y[i] * twin.score(X[i]) for i in inside], 1.0, atol=1e-2)


def test_adapting_without_memory_compares_neighbouring_gradients(stream):
    """decay = 0: the logarithm of the rate moves by meta_rate * rate_t * <g_{t+1}, g_t>."""
    X, y = stream[0][:12], stream[1][:12]
    twin = Twin(KERNEL, adapting(Logistic(), rate=0.2, reg=0.3, meta_rate=0.4, decay=0.0))
    K = oracle.naive_matrix(KERNEL, X)
    f, old = np.zeros(12), None
    for t in range(12):
        gradient = 0.3 * f
        gradient[t] -= y[t] / (1 + math.exp(y[t] * (K[t] @ f)))
        rate = twin.rate
        twin.step(X[t], y[t])
        if old is not None:
            assert math.log(twin.rate / rate) == pytest.approx(0.4 * rate * gradient @ K @ old)
        f, old = f - twin.rate * gradient, gradient
        assert twin.score(X[t]) == pytest.approx(K[t] @ f)


def test_tangent_is_the_derivative_in_the_logarithm_of_the_rates(stream):
    X, y = stream[0][:15], stream[1][:15]
    runs = [
        Twin(KERNEL, adapting(Logistic(), rate=0.2 * math.exp(shift), reg=0.3, decay=1.0))
        for shift in (-1e-5, 0.0, 1e-5)
    ]
    for twin in runs:
        run(twin, X, y)
    slope = (np.array(runs[2].coef) - np.array(runs[0].coef)) / 2e-5
    np.testing.assert_allclose(np.array(runs[1].tangent), slope, atol=1e-7)


# ---- budgets, weights, adaptive quantities, averages


def test_window_counts_events_and_not_points(stream):
    twin = Twin(KERNEL, Perceptron(), Window(10))
    for t, (x, label) in enumerate(zip(*stream, strict=True)):
        twin.step(x, label)
        assert all(t - 10 < event <= t for event in twin.ids)
    assert 0 < len(twin.ids) < 10


def test_smallest_goes_the_oldest_first_on_ties():
    X = [np.array([float(10 * i)]) for i in range(4)]
    twin = Twin(Gaussian(1.0), SGD(Squared(), rate=0.5), DropSmallest(2), task="regression")
    run(twin, X, [2.0, 2.0, 4.0, 1.0])
    assert twin.ids == [1, 2]
    assert twin.evicted == [0, 3]


def test_random_budget_replays_what_it_is_told(stream):
    rng = np.random.default_rng(5)
    first = Twin(KERNEL, Perceptron(), DropRandom(6), replay=lambda ids: ids[rng.integers(len(ids))])
    again = run(first, *stream)
    second = Twin(KERNEL, Perceptron(), DropRandom(6), replay=first.evicted)
    np.testing.assert_array_equal(run(second, *stream), again)
    assert len(first.ids) == 6
    assert first.ids == second.ids


def test_weight_zero_is_passed_over_and_weights_scale_steps(stream):
    X, y = stream
    with_gap, without = (Twin(KERNEL, SGD(Hinge(), rate=0.3, schedule="inv_sqrt")) for _ in range(2))
    for i in range(30):
        with_gap.step(X[i], y[i], weight=float(i % 3 != 0))
        if i % 3:
            without.step(X[i], y[i])
    assert with_gap.score(X[40]) == without.score(X[40])
    assert with_gap.seen == 30
    assert with_gap.t == 20
    heavy = Twin(KERNEL, Perceptron())
    heavy.step(X[0], 1.0, weight=2.5)
    assert heavy.coef[0][0] == 2.5
    capped = Twin(KERNEL, PassiveAggressive(C=0.1))
    capped.step(X[0], 1.0, weight=3.0)
    assert capped.coef[0][0] == pytest.approx(0.3)


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_nu_is_the_share_on_the_wrong_side(nu):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 1))
    novelty = Twin(KERNEL, SGD(Hinge(0.0, nu=nu), rate=0.05, reg=1.0), Window(60), task="novelty")
    assert np.mean(run(novelty, X, np.ones(1500))[300:] < 0) == pytest.approx(nu, abs=0.04)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=1500)
    for loss in (EpsilonInsensitive(0.1, nu=nu), Huber(1.0, nu=nu)):
        twin = Twin(KERNEL, SGD(loss, rate=0.05, reg=0.01), DropOldest(60), task="regression")
        outside = 0
        for t, (x, target) in enumerate(zip(X, y, strict=True)):
            width = twin.width
            outside += (abs(target - twin.step(x, target)) > width) and t >= 300
        assert outside / 1200 == pytest.approx(nu, abs=0.04)


@pytest.mark.parametrize(
    ("rule", "task"),
    [
        (SGD(Hinge(), rate=0.3, reg=0.2, intercept=True), "classification"),
        (SGD(Squared(), rate=0.3), "regression"),
    ],
)
def test_average_is_the_mean_over_the_steps(stream, rule, task):
    X, y = stream
    twin, probe = Twin(KERNEL, rule, DropOldest(7), task=task, average=True), X[50]
    seen = []
    for x, label in zip(X[:30], y[:30], strict=True):
        seen.append(twin.score(probe))
        twin.step(x, label)
    assert twin.average(probe) == pytest.approx(np.mean(seen))


def test_intercepts_of_many_classes_move_in_pairs(three_classes):
    twin = Twin(KERNEL, SGD(Hinge(), rate=0.3, intercept=True), n_classes=3)
    run(twin, *three_classes)
    assert np.abs(twin.intercept).max() > 0.1
    assert twin.intercept.sum() == pytest.approx(0.0)


def test_a_point_without_length_is_never_divided_by():
    zero, one = np.zeros(2), np.array([1.0, 0.0])
    for rule in (feasible_set(), PassiveAggressive(), implicit(Hinge()), part("Romma", aggressive=False)):
        twin = Twin(Linear(), rule)
        twin.step(zero, 1.0)
        twin.step(one, 1.0)
        assert twin.ids == [1]
