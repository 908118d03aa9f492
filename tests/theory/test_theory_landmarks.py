"""How many landmarks a goodness needs: random draws of landmarks and samples stay within the bounds, and by how much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear, minimize

from gristmill import theory

POINTS = 400


@pytest.fixture(scope="module")
def world():
    """A finite population with an indefinite similarity |K| <= 1, weights |w| <= 2 and the predictor f = E[w K]."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(POINTS, 2))
    K = np.tanh(X @ X.T - 0.5)
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] < -1  # not a kernel
    w = 2.0 * np.sign(X[:, 0] * X[:, 1])
    return K, w, K @ w / POINTS


def test_random_landmarks_approximate_the_predictor(world):
    """The mean of |f~ - f| over 300 draws: within B (1 + sqrt(2 log 1/delta))/sqrt(d) but for a share of delta."""
    K, w, f = world
    rng = np.random.default_rng(1)
    for d in (10, 100):
        errors = []
        for _ in range(300):
            chosen = rng.integers(0, POINTS, d)
            errors.append(np.abs(K[:, chosen] @ w[chosen] / d - f).mean())
        bound = 2.0 * (1 + math.sqrt(2 * math.log(1 / 0.05))) / math.sqrt(d)
        assert np.mean(np.array(errors) > bound) <= 0.05
        assert 2 < bound / np.max(errors) < 20
        assert theory.landmark_pairs_for_loss(bound, weight=2.0) == pytest.approx(d, abs=1)


def fitted(features, y, radius, loss):
    """The least mean loss over |w|_2 <= radius, by projected descent with an average over the later half."""
    w, total, slope = np.zeros(features.shape[1]), 0.0, {"tube": lambda e: np.sign(e) * (np.abs(e) > 0.1)}[loss]
    for t in range(1, 1201):
        w = w - radius / math.sqrt(t) * features.T @ slope(features @ w - y) / len(y)
        w *= min(1.0, radius / max(np.linalg.norm(w), 1e-12))
        total = total + w if t > 600 else 0.0
    return total / 600


@pytest.mark.parametrize(("d", "n"), [(50, 100), (200, 1000)])
def test_a_learner_with_landmarks_is_within_the_bound(world, d, n):
    """Regression with a tube: goodness, excess of 5 learners, absolute and squared error."""
    K, _, f = world
    rng = np.random.default_rng(2)
    y = f + 0.3 * rng.normal(size=POINTS).clip(-2, 2)
    goodness = np.maximum(np.abs(f - y) - 0.1, 0).mean()
    bound = theory.landmark_excess_bound(d, n, weight=2.0)
    worst = -math.inf
    for _ in range(5):
        chosen, seen = rng.integers(0, POINTS, d), rng.integers(0, POINTS, n)
        Psi = K[:, chosen] / math.sqrt(d)
        said = Psi @ fitted(Psi[seen], y[seen], 2.0, "tube")
        loss = np.maximum(np.abs(said - y) - 0.1, 0).mean()
        assert loss <= goodness + bound
        useful = theory.regression_utility(goodness, bound, 0.1, 2.0, np.abs(y).max())
        assert np.abs(said - y).mean() <= useful.absolute
        assert np.mean((said - y) ** 2) <= useful.squared
        worst = max(worst, loss - goodness)
    assert worst < bound / 5  # the bound is at least five times too large here
    plan = theory.landmarks_for(bound, weight=2.0)
    assert theory.landmark_excess_bound(plan.landmarks, plan.samples, weight=2.0) <= bound * 1.001


def test_pairs_keep_half_of_the_margin():
    """Two groups on a line, the sign of a difference of similarities: the share of draws that fail is below delta."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=600) + np.repeat([-1.0, 1.0], 300)
    y = np.repeat([-1.0, 1.0], 300)
    K = np.exp(-((X[:, None] - X[None, :]) ** 2) / 4)
    mean = np.array([np.sign(K[i, y == 1][:, None] - K[i, y == -1][None, :]).mean() for i in range(600)])
    margin, excess, delta = 0.3, 0.1, 0.1
    epsilon = np.mean(y * mean < margin)
    d = theory.landmark_pairs_for_margin(excess, margin, delta=delta)
    failures, worst = 0, 0.0
    for _ in range(200):
        plus, minus = rng.choice(np.flatnonzero(y == 1), d), rng.choice(np.flatnonzero(y == -1), d)
        g = np.sign(K[:, plus] - K[:, minus]).mean(axis=1)
        share = np.mean(y * g < margin / 2)
        failures += share > epsilon + excess
        worst = max(worst, share - epsilon)
    assert failures <= 200 * delta
    assert worst <= excess


def test_a_family_of_transfer_functions_costs_a_logarithm():
    one, many = theory.landmark_pairs_for_loss(0.1), theory.landmark_pairs_for_loss(0.1, functions=1000)
    assert one < many < 3 * one
    netted = theory.landmark_pairs_for_loss(0.1, functions=1000, net=True)
    assert netted == pytest.approx(4 * many, abs=4)
    printed = 64 / 0.1**2 * math.log(16 * 1000 / (0.05 * 0.1))
    assert netted < printed
    assert one < 16 / 0.1**2 * math.log(4 / (0.05 * 0.1))


def test_sparse_plan_finds_enough_informative_landmarks():
    plan = theory.landmarks_for(0.5, informative=0.1)
    needed = (3 / 0.5 * (1 + math.sqrt(2 * math.log(5 / 0.05)))) ** 2
    found = np.random.default_rng(4).binomial(plan.landmarks, 0.1, 2000)
    assert np.mean(found < needed) <= 0.01
    assert np.mean(found > 1.5 * plan.landmarks * 0.1) <= 0.01
    assert math.sqrt(18 / plan.steps) <= 0.5 / 3


@pytest.mark.parametrize(("margin", "spacing"), [(0.5, 1.0), (0.2, 1.0), (0.8, 0.3), (1.5, 1.0)])
def test_ordinal_losses_bound_labels_pointwise(margin, spacing):
    """Every point, every label: wrong labels and their distance against the margin loss; and where printed, it fails."""
    rng = np.random.default_rng(5)
    thresholds = np.cumsum(spacing + rng.exponential(size=5))
    f = rng.uniform(thresholds[0] - 3, thresholds[-1] + 3, 4000)
    y = rng.integers(0, 6, 4000)
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    said = np.searchsorted(thresholds, f, side="right")
    loss = np.maximum(margin - (f - edges[y]), 0) + np.maximum(margin - (edges[y + 1] - f), 0)
    useful = theory.ordinal_utility(0.0, 1.0, margin, spacing)
    assert np.all((said != y) <= useful.mislabelled * loss + 1e-12)
    assert np.all(np.abs(said - y) <= useful.absolute * loss + 1e-12)
    tight = np.abs(said - y)[said != y] / loss[said != y]
    assert tight.max() > 0.4 * useful.absolute


@pytest.mark.parametrize("m", [2, 10, 50])
def test_squared_loss_bounds_the_regret_of_ndcg(m):
    rng = np.random.default_rng(6)
    discounts, closest = 1 / np.log1p(np.arange(1, m + 1)), 0.0
    for _ in range(400):
        gains = 2.0 ** rng.integers(0, 4, m) - 1
        if not gains.any():
            continue
        eta = gains / np.sum(np.sort(gains)[::-1] * discounts)
        s = eta + rng.choice([0.02, 0.2]) * rng.normal(size=m)
        regret = 1 - np.sum(eta[np.argsort(-s, kind="stable")] * discounts)
        bound = theory.ranking_utility(float(np.sum((s - eta) ** 2)), 0.0, m)
        assert regret <= bound
        closest = max(closest, regret / bound)
    assert closest > 0.01


@pytest.mark.parametrize("task", ["classification", "ranking"])
def test_a_good_kernel_is_a_good_similarity(task):
    """The weights of the minimiser of the regularised loss over a finite population, by their definition in the proof."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2))
    K = np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=2) / 2)
    y, n = np.where(X[:, 0] > 0, 1.0, -1.0), 60
    excess = 0.2
    direction = np.linalg.solve(K + 1e-3 * np.eye(n), y)
    norm = math.sqrt(direction @ K @ direction)
    gamma = 1 / norm  # <W*, phi>/gamma = K @ direction
    if task == "ranking":  # one document a query, relevances in [0, 1]
        r = (y + 1) / 2
        direction = np.linalg.solve(K + 1e-3 * np.eye(n), r)
        gamma = 1 / math.sqrt(direction @ K @ direction)
        epsilon = np.mean((K @ direction - r) ** 2)
        C = 1 / (2 * excess * gamma**2)
        alpha = np.linalg.solve(K / n + np.eye(n) / (2 * C), r / n)
        loss = np.mean((K @ alpha - r) ** 2)
    else:
        epsilon = np.maximum(0, 1 - y * (K @ direction)).mean()
        C = 1 / (2 * excess * gamma**2)
        # the dual: 0 <= a_i <= C/n
        found = minimize(
            lambda a: (0.5 * (a * y) @ K @ (a * y) - a.sum(), y * (K @ (a * y)) - 1), np.zeros(n), jac=True,
            bounds=[(0, C / n)] * n, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14},
        )  # fmt: skip
        alpha = found.x * y
        loss = np.maximum(0, 1 - y * (K @ alpha)).mean()
    weights = alpha * n
    B = theory.similarity_weight(excess, gamma, task)
    assert np.abs(weights).max() <= B * (1 + 1e-6)
    assert loss <= epsilon + excess + 1e-6
    np.testing.assert_allclose(K @ weights / n, K @ alpha, atol=1e-12)


class Problem:
    """The least mean loss of f = K (p w), |w| <= B, as a linear program: of max(0, margins - (signs f + thresholds))."""

    def __init__(self, K, p, task, y, margin=1.0):
        self.K, self.p = K * p, p
        if task == "regression":  # |f - y|
            self.rows = [(i, sign, (), margin * sign * y[i]) for i in range(len(p)) for sign in (1, -1)]
        elif task == "classification":
            self.rows = [(i, y[i], (), margin) for i in range(len(p))]
        else:  # thresholds below and above each of the labels 0 .. largest
            below = [(i, 1, (y[i] - 1, -1), margin) for i in range(len(p)) if y[i] > 0]
            self.rows = below + [(i, -1, (y[i], 1), margin) for i in range(len(p)) if y[i] < y.max()]
        self.thresholds = int(y.max()) if task == "ordinal" else 0

    def _constraints(self):
        """Of the unknowns w, thresholds and losses: loss + sign f + shift >= margin."""
        n, count = len(self.p), len(self.rows)
        A, b = np.zeros((count, n + self.thresholds + count)), np.zeros(count)
        for at, (i, sign, shift, margin) in enumerate(self.rows):
            A[at, :n] = -sign * self.K[i]
            if shift:
                A[at, n + shift[0]] = -shift[1]
            A[at, n + self.thresholds + at], b[at] = -1, -margin
        costs = np.concatenate([np.zeros(n + self.thresholds), [self.p[row[0]] for row in self.rows]])
        return A, b, costs

    def loss(self, scores, thresholds=()):
        total = 0.0
        for i, sign, shift, margin in self.rows:
            moved = shift[1] * thresholds[shift[0]] if shift else 0.0
            total += self.p[i] * max(0.0, margin - sign * scores[i] - moved)
        return total

    def least_loss(self, B):
        A, b, costs = self._constraints()
        n, free = len(self.p), [(None, None)] * self.thresholds
        return linprog(costs, A, b, bounds=[(-B, B)] * n + free + [(0, None)] * len(self.rows)).fun

    def least_weight(self, loss):
        """The least B with which some weights |w| <= B have this mean loss."""
        A, b, costs = self._constraints()
        n = len(self.p)
        box = np.zeros((2 * n, A.shape[1] + 1))
        box[:n, :n], box[n:, :n], box[:, -1] = np.eye(n), -np.eye(n), -1
        A = np.block([[A, np.zeros((len(A), 1))], [costs, 0.0], [box]])
        goal = np.zeros(A.shape[1])
        goal[-1] = 1
        bounds = [(None, None)] * (n + self.thresholds) + [(0, None)] * (len(self.rows) + 1)
        return linprog(goal, A, np.concatenate([b, [loss], np.zeros(2 * n)]), bounds=bounds).fun


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("task", ["regression", "classification", "ordinal"])
def test_some_weights_in_the_box_are_as_good_as_any_kernel_predictor(task, seed):
    """Random populations, directions W of norm 1 and margins: no |w| <= B need lose more than W does, and the excess."""
    rng = np.random.default_rng(seed)
    X, p = rng.normal(size=(14, 2)), rng.dirichlet(np.ones(14))
    K = np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=2) / 2)
    direction = rng.normal(size=14)
    direction /= math.sqrt(direction @ K @ direction)
    values, gamma, excess = K @ direction, rng.uniform(0.1, 0.5), rng.choice([0.05, 0.3])
    margin = rng.choice([0.5, 2.0]) if task == "ordinal" else 1.0
    thresholds = np.sort(rng.choice(values, 2, replace=False)) / gamma
    y = {
        "regression": values / gamma + rng.normal(size=14),
        "classification": np.where(values + 0.3 * rng.normal(size=14) > 0, 1.0, -1.0),
        "ordinal": np.searchsorted(thresholds, values / gamma + rng.normal(size=14)),
    }[task]
    if task == "ordinal":
        y[:3] = 0, 1, 2
    epsilon = Problem(K, p, task, y).loss(values / gamma, thresholds)
    B = theory.similarity_weight(excess, gamma, task, learner_margin=margin)
    allowed = (margin if task == "ordinal" else 1.0) * epsilon + excess
    problem = Problem(K, p, task, y, margin)
    assert problem.least_loss(B) <= allowed + 1e-9
    assert problem.least_weight(allowed) <= B * (1 + 1e-9)


@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize(("excess", "margin"), [(0.01, 1.0), (0.2, 1.0), (0.05, 0.4), (0.05, 3.0)])
@pytest.mark.parametrize("task", ["regression", "classification", "ordinal"])
def test_weights_of_a_good_kernel_are_within_four_times_the_least(task, gamma, excess, margin):
    """The four points of the tightness proofs, two of them heavy: less than a quarter of B does not do."""
    if task != "ordinal":
        margin = 1.0
    heavy = excess / margin
    p = np.array([heavy, 0.5 - heavy, 0.5 - heavy, heavy])
    rest = math.sqrt(1 - 2 * gamma**2)
    X = np.array([(gamma, gamma, rest), (gamma, -gamma, rest), (-gamma, gamma, rest), (-gamma, -gamma, rest)])
    y = np.array([1, 1, 0, 0]) if task == "ordinal" else np.array([1.0, 1.0, -1.0, -1.0])
    assert Problem(X @ X.T, p, task, y).loss(X[:, 0] / gamma, (0.0,)) == pytest.approx(0.0, abs=1e-12)
    needed = Problem(X @ X.T, p, task, y, margin).least_weight(excess)
    B = theory.similarity_weight(excess, gamma, task, learner_margin=margin)
    assert B / 4 * (1 - 1e-9) <= needed <= B


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_good_kernel_is_a_good_similarity_for_ranking(m, seed):
    """Queries of m documents; weights in the box by bounded least squares."""
    rng = np.random.default_rng(seed)
    X, queries, excess = rng.normal(size=(20, 2)), rng.integers(0, 20, size=(30, m)), 0.3
    K = np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=2) / 2)
    mu = np.bincount(queries.ravel(), minlength=20) / queries.size
    gains = rng.random(queries.shape)
    eta = gains / np.sum(np.sort(gains, axis=1)[:, ::-1] / np.log1p(np.arange(1, m + 1)), axis=1)[:, None]
    target = rng.normal(size=20)
    direction = np.linalg.solve(K + 0.1 * np.eye(20), target)
    gamma = 3 / math.sqrt(direction @ K @ direction)
    values = K @ direction / 3  # <W, phi>/gamma with |W| = 1
    epsilon = np.mean(np.sum((values[queries] - eta) ** 2, axis=1))
    B = theory.similarity_weight(excess, gamma, "ranking", documents=m)
    system = (K * mu)[queries.ravel()] / math.sqrt(len(queries))
    wanted = eta.ravel() / math.sqrt(len(queries))

    def least(bound):
        return 2 * lsq_linear(system, wanted, bounds=(-bound, bound)).cost

    assert least(B) <= epsilon + excess + 1e-9
    assert least(B / 100) <= epsilon + excess  # a hundredth is enough for these


@pytest.mark.parametrize("n", [40, 160])
def test_landmarks_that_are_the_training_samples(world, n):
    """The least mean loss over |w_i| <= B on the landmarks themselves; and the bound by hand."""
    K, _, f = world
    rng = np.random.default_rng(9)
    y = f + 0.3 * rng.normal(size=POINTS).clip(-2, 2)
    goodness = np.abs(f - y).mean()
    bound = theory.shared_landmark_excess_bound(n, weight=2.0, delta=0.1)
    sum_of_terms = 5 / math.sqrt(n) + 2 / n + 5 * math.sqrt(2 * math.log(20) / n)
    assert bound == pytest.approx(2.0 * sum_of_terms)
    assert theory.shared_landmark_excess_bound(n, 2.0, 3.0, 0.1) == pytest.approx(3 * bound)
    worst = 0.0
    for _ in range(4):
        own = rng.integers(0, POINTS, n)
        A, b, costs = Problem(K[np.ix_(own, own)], np.full(n, 1 / n), "regression", y[own])._constraints()
        w = linprog(costs, A, b, bounds=[(-2.0, 2.0)] * n + [(0, None)] * 2 * n).x[:n]
        loss = np.abs(K[:, own] @ w / n - y).mean()
        assert loss <= goodness + bound
        worst = max(worst, loss - goodness)
    assert worst < bound / 5  # at least five times too large here


def test_a_sample_moves_the_deviation_by_no_more_than_six():
    """Theorem B.2: g(S) = sup over weights of risk less training loss, of two samples that differ in one point."""
    rng = np.random.default_rng(10)
    K, y, n, B = rng.choice([-1.0, 1.0], size=(40, 40)), rng.choice([-1.0, 1.0], 40), 5, 1.0

    def deviation(own):
        """Losses -y f are Lipschitz and linear, so that the supremum is attained at a corner."""
        risk, trained = (y @ K[:, own]) / 40, (y[own] @ K[np.ix_(own, own)]) / n
        return B / n * np.abs(trained - risk).sum()

    moves = []
    for _ in range(3000):
        own = rng.integers(0, 40, n)
        other = own.copy()
        other[rng.integers(n)] = rng.integers(40)
        moves.append(abs(deviation(own) - deviation(other)))
    assert 0.3 * 6 * B / n < max(moves) <= 6 * B / n  # 4 B/n is what these losses can reach


def test_sparse_and_dense_goodness_are_the_same_predictor(world):
    """Theorem 5.10 on a finite population: conditional means over the informative ones."""
    K, w, _ = world
    informative = np.random.default_rng(8).random(POINTS) < 0.25
    tau = informative.mean()
    f = K[:, informative] @ w[informative] / informative.sum()
    dense = w * informative / tau
    np.testing.assert_allclose(K @ dense / POINTS, f)
    assert np.abs(dense).max() == pytest.approx(theory.dense_weight(2.0, tau))


def test_refusals():
    with pytest.raises(ValueError, match=r"excess must be a number in \(0, 1\), got 1.5"):
        theory.landmark_pairs_for_margin(1.5, 0.1)
    with pytest.raises(ValueError, match=r"informative must be a number in \(0, 1\], got 0"):
        theory.landmarks_for(0.1, informative=0)
    with pytest.raises(TypeError, match="task must be one of"):
        theory.similarity_weight(0.1, 0.1, "clustering")
