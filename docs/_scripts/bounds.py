"""Write docs/results/bounds.md: how far the bounds of `gristmill.theory` are above what random draws give.

Each entry of ROWS runs a learner, or draws landmarks or features, and returns the bound and what was measured in each draw.
`python docs/_scripts/bounds.py` writes the page; tests/theory/test_bounds_page.py measures again and compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, linprog, lsq_linear, minimize

from gristmill import (
    SGD,
    Exponential,
    Gaussian,
    Hinge,
    Implicit,
    KernelClassifier,
    Logistic,
    ilk_classifier,
    projection_classifier,
    projectron,
    projectron_pp,
    theory,
)
from gristmill.features import Compose, FourierFeatures, RandomMaclaurin, n_components_for, n_components_for_composition
from gristmill.pairwise import PairwiseAUC, ReservoirX

PAGE = Path(__file__).parents[1] / "results" / "bounds.md"
Measured = list[tuple[float, float]]  #: of each draw: the bound, and what it is on


class Row(NamedTuple):
    """A theorem, the function that computes it, what is compared where, and a function that does it."""

    theorem: str
    function: str
    what: str
    run: Callable[[], Measured]


# ---- mistakes ----------------------------------------------------------------------------------------------------


@cache
def noisy(seed: int) -> tuple[Any, Any, list[tuple[float, float]]]:
    """400 events, and norm and loss of scaled ridge regressions of all labels, the comparators."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=400) > 0, 1.0, -1.0)
    K, comparators = np.asarray(Gaussian(1.0)(X, X)), []
    for ridge in (10.0, 1.0, 0.1, 0.01):
        coef = np.linalg.solve(K + ridge * np.eye(400), y)
        for scale in (0.5, 1.0, 1.5):
            loss = float(np.maximum(0.0, 1 - scale * y * (K @ coef)).sum())
            comparators.append((scale * math.sqrt(coef @ K @ coef), loss))
    return X, y, comparators


def mistakes(make: Callable[[float, float], Any], bound: Callable[[float, float], float]) -> Measured:
    """Of the learner that `make` gives for norm and loss of the comparator with the least bound."""
    found = []
    for seed in range(4):
        X, y, comparators = noisy(seed)
        least, norm, loss = min((bound(*comparator), *comparator) for comparator in comparators)
        found.append((least, float(np.sum(y * make(norm, loss).prequential(X, y) <= 0))))
    return found


def projection_mistakes() -> Measured:
    """Without noise: the comparator has margin 1 everywhere."""
    found, kernel = [], Gaussian(1.0)
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(600, 2))
        X = X[np.abs(X[:, 0] * X[:, 1]) > 0.3]
        y = np.sign(X[:, 0] * X[:, 1])
        K = np.asarray(kernel(X, X))
        bounds = []
        for ridge in (1.0, 0.1, 0.01, 1e-3):
            coef = np.linalg.solve(K + ridge * np.eye(len(y)), y)
            margin = (y * (K @ coef)).min()
            if margin > 0:
                bounds.append(theory.projection_mistake_bound(1.0, math.sqrt(coef @ K @ coef) / margin))
        scores = projection_classifier(kernel).prequential(X, y)
        found.append((min(bounds), float(np.sum(y * scores <= 0))))
    return found


def norma_learner(norm: float, loss: float) -> Any:
    tuned = theory.norma_mistake_tuning(1.0, norm, 1.0, 400, loss)
    return KernelClassifier(Gaussian(1.0), SGD(Hinge(tuned.margin), tuned.rate, tuned.reg))


def norma_bound(norm: float, loss: float) -> float:
    return theory.norma_mistake_tuning(1.0, norm, 1.0, 400, loss).bound


def projectron_bound(tolerance: float, norm: float, loss: float) -> float:
    return theory.projectron_mistake_bound(tolerance, norm, loss) if norm * tolerance < 1 else math.inf


# ---- ILK -----------------------------------------------------------------------------------------------------------


def implicit_risk(kind: str) -> Measured:
    rate, reg, steps, kernel = 1.0, 0.1, 300, Gaussian(0.8)
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(steps, 2))
        y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=steps) > 0, 1.0, -1.0)
        K = np.asarray(kernel(X, X))

        def losses(margins: Any) -> Any:
            return np.maximum(0.0, 1 - margins) if kind == "hinge" else np.logaddexp(0.0, -margins)

        loss = Hinge() if kind == "hinge" else Logistic()
        model, risk = KernelClassifier(kernel, Implicit(loss, 1.0, rate, reg, "inv_sqrt")), 0.0
        for t in range(steps):
            before = model.norm_ if t else 0.0
            risk += reg / 2 * before**2 + float(losses(y[t] * model.prequential(X[[t]], y[[t]])[0]))
        a, least, norm = np.zeros(steps), math.inf, 0.0
        for step in range(1, 600):
            margins = y * (K @ a)
            here = float(reg / 2 * a @ K @ a + losses(margins).mean())
            if here < least:
                least, norm = here, math.sqrt(a @ K @ a)
            slope = (margins < 1) * 1.0 if kind == "hinge" else 1 / (1 + np.exp(margins))
            a = a - (reg * a - slope * y / steps) / (reg * (step + 1))
        bound = theory.implicit_risk_bound(least, steps, rate, reg, comparator_norm=norm)
        found.append((bound - steps * least, risk - steps * least))
    return found


# ---- random features -------------------------------------------------------------------------------------------


def maclaurin_error() -> Measured:
    """In a ball of the 1-norm; the bound is the accuracy that was asked for."""
    epsilon, d, radius = 0.5, 3, 0.7
    D = n_components_for(Exponential(1.0), epsilon, 0.05, d, radius)
    X = np.random.default_rng(0).normal(size=(150, d))
    X *= radius / np.abs(X).sum(axis=1, keepdims=True)
    found = []
    for seed in range(3):
        Z = RandomMaclaurin(
            Exponential(1.0), D, measure="geometric", stratified=False, exact_low_order=False, random_state=seed
        ).fit_transform(X)
        found.append((epsilon, float(np.abs(Z @ Z.T - np.exp(X @ X.T)).max())))
    return found


def composition_error() -> Measured:
    epsilon, gamma, X = 0.5, 0.5, np.linspace(-1, 1, 81)[:, None]
    D = n_components_for_composition(
        Exponential(2.0), epsilon, 0.05, 1, 1.0, map_bound=2.0, map_lipschitz=2 * math.sqrt(gamma),
        kernel_lipschitz=math.sqrt(2 * gamma / math.e), kernel_bound=1.0,
    )  # fmt: skip
    exact, found = np.exp(np.exp(-gamma * (X - X.T) ** 2) / 4), []
    for seed in range(3):
        kernel = Compose(Exponential(2.0), FourierFeatures(Gaussian(gamma)))
        Z = RandomMaclaurin(
            kernel, D, measure="geometric", stratified=False, exact_low_order=False, random_state=seed
        ).fit_transform(X)
        found.append((epsilon, float(np.abs(Z @ Z.T - exact).max())))
    return found


# ---- landmarks -------------------------------------------------------------------------------------------------

POINTS = 400


def population() -> tuple[Any, Any, Any]:
    """Points of the plane with an indefinite similarity |K| <= 1, weights |w| <= 2, and the predictor mean(w K)."""
    X = np.random.default_rng(0).uniform(-2, 2, size=(POINTS, 2))
    K, w = np.tanh(X @ X.T - 0.5), 2.0 * np.sign(X[:, 0] * X[:, 1])
    return K, w, K @ w / POINTS


def two_groups() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    y = np.repeat([-1.0, 1.0], 300)
    X = rng.normal(size=600) + y
    return np.exp(-((X[:, None] - X[None, :]) ** 2) / 4), y


def pairs_for_margin() -> Measured:
    """The fewest pairs with which nine draws of ten keep half of the margin."""
    (K, y), rng, excess, margin = two_groups(), np.random.default_rng(1), 0.05, 0.2
    mean = np.array([np.sign(row[y == 1][:, None] - row[y == -1][None, :]).mean() for row in K])
    plus, minus, epsilon = np.flatnonzero(y == 1), np.flatnonzero(y == -1), np.mean(y * mean < margin)

    def fails(d: int) -> bool:
        kept = np.sign(K[:, rng.choice(plus, d)] - K[:, rng.choice(minus, d)]).mean(axis=1)
        return bool(np.mean(y * kept < margin / 2) > epsilon + excess)

    least = next(d for d in range(1, 1000) if np.mean([fails(d) for _ in range(100)]) <= 0.1)
    return [(float(theory.landmark_pairs_for_margin(excess, margin, delta=0.1)), float(least))]


def pairs_for_loss(functions: int) -> Measured:
    """Mean distance of predictors, the largest over ramps of several slopes."""
    (K, y), rng, excess = two_groups(), np.random.default_rng(2), 0.5
    slopes = np.geomspace(1, 100, functions) if functions > 1 else np.ones(1)
    plus, minus = np.flatnonzero(y == 1), np.flatnonzero(y == -1)
    differences = K[::10, plus][:, :, None] - K[::10, minus][:, None, :]
    means = [np.clip(s * differences, -1, 1).mean(axis=(1, 2)) for s in slopes]
    d = theory.landmark_pairs_for_loss(excess, functions=functions)
    found = []
    for _ in range(40):
        drawn = K[::10, rng.choice(plus, d)] - K[::10, rng.choice(minus, d)]
        near = [np.clip(s * drawn, -1, 1).mean(axis=1) for s in slopes]
        found.append((excess, float(max(np.abs(a - b).mean() for a, b in zip(near, means, strict=True)))))
    return found


def ball_fit(Psi: Any, y: Any, radius: float, norm: int, steps: int) -> Any:
    """Weights of a small mean tube loss in a ball of the 2-norm or of the 1-norm, by steps of Frank and Wolfe."""
    w = np.zeros(Psi.shape[1])
    for t in range(steps):
        errors = Psi @ w - y
        gradient = Psi.T @ (np.clip(errors / 0.02, -1, 1) * (np.abs(errors) > 0.1)) / len(y)
        if norm == 2:
            corner = -radius * gradient / max(float(np.linalg.norm(gradient)), 1e-12)
        else:
            corner, at = np.zeros(len(w)), np.abs(gradient).argmax()
            corner[at] = -radius * np.sign(gradient[at])
        w += 2 / (t + 2) * (corner - w)
    return w


def landmark_excess() -> Measured:
    (K, _, f), rng, d, n = population(), np.random.default_rng(2), 50, 100
    y, found = f + 0.3 * rng.normal(size=POINTS).clip(-2, 2), []
    goodness = np.maximum(np.abs(f - y) - 0.1, 0).mean()
    for _ in range(5):
        chosen, seen = rng.integers(0, POINTS, d), rng.integers(0, POINTS, n)
        Psi = K[:, chosen] / math.sqrt(d)
        predicted = Psi @ ball_fit(Psi[seen], y[seen], 2.0, 2, 1000)
        loss = np.maximum(np.abs(predicted - y) - 0.1, 0).mean()
        found.append((theory.landmark_excess_bound(d, n, weight=2.0), float(loss - goodness)))
    return found


def sparse_excess() -> Measured:
    """A quarter of the objects carries the weights."""
    (K, w, _), rng, excess = population(), np.random.default_rng(4), 1.5
    informative = np.arange(POINTS) % 4 == 0
    f = K[:, informative] @ w[informative] / 2 / informative.sum()
    y, found = f + 0.3 * rng.normal(size=POINTS).clip(-2, 2), []
    goodness = np.maximum(np.abs(f - y) - 0.1, 0).mean()
    plan = theory.landmarks_for(excess, informative=0.25)
    for _ in range(4):
        chosen, seen = rng.integers(0, POINTS, plan.landmarks), rng.integers(0, POINTS, plan.samples)
        predicted = K[:, chosen] @ ball_fit(K[np.ix_(seen, chosen)], y[seen], 1.0, 1, plan.steps)
        loss = np.maximum(np.abs(predicted - y) - 0.1, 0).mean()
        found.append((excess, float(loss - goodness)))
    return found


def shared_excess() -> Measured:
    (K, _, f), rng, n = population(), np.random.default_rng(9), 160
    y, found = f + 0.3 * rng.normal(size=POINTS).clip(-2, 2), []
    for _ in range(4):
        own = rng.integers(0, POINTS, n)
        rows = K[np.ix_(own, own)] / n
        A = np.block([[rows, -np.eye(n)], [-rows, -np.eye(n)]])  # |f - y| <= t
        costs, bounds = np.repeat([0.0, 1.0], n), [(-2.0, 2.0)] * n + [(0, None)] * n
        w = linprog(costs, A, np.concatenate([y[own], -y[own]]), bounds=bounds).x[:n]
        excess = np.abs(K[:, own] @ w / n - y).mean() - np.abs(f - y).mean()
        found.append((theory.shared_landmark_excess_bound(n, weight=2.0), float(excess)))
    return found


def kernel_weight(seed: int | None) -> Measured:
    """The least B by a linear program: on random populations, or on the four points of the tightness proof."""
    found = []
    for draw in range(6 if seed is not None else 1):
        if seed is None:
            gamma, excess = 0.3, 0.1
            rest = math.sqrt(1 - 2 * gamma**2)
            X = np.array([(a * gamma, b * gamma, rest) for a, b in [(1, 1), (1, -1), (-1, 1), (-1, -1)]])
            K, p, y = X @ X.T, np.array([excess, 0.5 - excess, 0.5 - excess, excess]), np.array([1.0, 1, -1, -1])
            allowed = excess
        else:
            rng = np.random.default_rng(seed + draw)
            X, p = rng.normal(size=(14, 2)), rng.dirichlet(np.ones(14))
            K = np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=2) / 2)
            direction = rng.normal(size=14)
            direction /= math.sqrt(direction @ K @ direction)
            gamma, excess = 0.3, 0.1
            y = K @ direction / gamma + 0.3 * rng.normal(size=14)
            allowed = float(p @ np.abs(K @ direction / gamma - y)) + excess
        n = len(p)
        eye, zero, one = np.eye(n), np.zeros((n, n)), np.ones((n, 1))
        A = np.block([
            [K * p, -eye, 0 * one], [-K * p, -eye, 0 * one], [eye, zero, -one], [-eye, zero, -one],
            [np.zeros((1, n)), p[None], np.zeros((1, 1))],
        ])  # fmt: skip
        b = np.concatenate([y, -y, np.zeros(2 * n), [allowed]])
        goal = np.append(np.zeros(2 * n), 1.0)
        least = linprog(goal, A, b, bounds=[(None, None)] * n + [(0, None)] * (n + 1)).fun
        found.append((theory.similarity_weight(excess, gamma), float(least)))
    return found


def ranking_weight() -> Measured:
    """By bounded least squares; documents whose gains follow a smooth function."""
    found, m, excess = [], 2, 0.01
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, queries = rng.normal(size=(20, 2)), rng.integers(0, 20, size=(40, m))
        K = np.exp(-((X[:, None] - X[None, :]) ** 2).sum(axis=2) / 2)
        gains = (1 / (1 + np.exp(-3 * X[:, 0])))[queries]
        eta = gains / np.sum(np.sort(gains, axis=1)[:, ::-1] / np.log1p(np.arange(1, m + 1)), axis=1)[:, None]
        mu = np.bincount(queries.ravel(), minlength=20) / queries.size
        rows, wanted = K[queries.ravel()], eta.ravel()
        direction = np.linalg.solve(rows.T @ rows + 0.1 * K, rows.T @ wanted)
        gamma = 1 / math.sqrt(direction @ K @ direction)
        allowed = np.sum((rows @ direction - wanted) ** 2) / len(queries) + excess
        B = theory.similarity_weight(excess, gamma, "ranking", documents=m)

        def over(
            weight: float, rows: Any = rows, mu: Any = mu, wanted: Any = wanted, allowed: float = allowed
        ) -> float:
            return float(2 * lsq_linear(rows * mu, wanted, bounds=(-weight, weight)).cost / 40 - allowed)

        found.append((B, float(brentq(over, 1e-9, B, xtol=1e-3 * B))))
    return found


def ordinal_share() -> Measured:
    """Distance of labels over margin loss, the largest of many points."""
    rng, margin, found = np.random.default_rng(5), 0.5, []
    for _ in range(5):
        thresholds = np.cumsum(1.0 + rng.exponential(size=5))
        f, y = rng.uniform(thresholds[0] - 3, thresholds[-1] + 3, 4000), rng.integers(0, 6, 4000)
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        off = np.abs(np.searchsorted(thresholds, f, side="right") - y)
        loss = np.maximum(margin - (f - edges[y]), 0) + np.maximum(margin - (edges[y + 1] - f), 0)
        found.append((theory.ordinal_utility(0.0, 1.0, margin).absolute, float((off / np.maximum(loss, 1e-12)).max())))
    return found


def ranking_regret() -> Measured:
    """The largest of many queries of ten documents."""
    rng, m, found = np.random.default_rng(6), 10, []
    discounts = 1 / np.log1p(np.arange(1, m + 1))
    for _ in range(300):
        gains = 2.0 ** rng.integers(0, 4, m) - 1
        eta = gains / np.sum(np.sort(gains)[::-1] * discounts)
        s = eta + 0.1 * rng.normal(size=m)
        regret = 1 - np.sum(eta[np.argsort(-s, kind="stable")] * discounts)
        found.append((theory.ranking_utility(float(np.sum((s - eta) ** 2)), 0.0, m), float(regret)))
    return found


# ---- pairs -------------------------------------------------------------------------------------------------------

SIGMA = 0.5


def disc(n: int, rng: Any) -> tuple[Any, Any]:
    """Two classes in the disc of radius 1/2."""
    y = rng.choice([-1.0, 1.0], size=n)
    X = rng.normal(size=(n, 2)) + 0.7 * y[:, None]
    return X / (2 * np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))), y


def pair_risk(w: Any, X: Any, y: Any) -> float:
    margins = ((X @ w)[:, None] - (X @ w)[None, :]) * (y[:, None] - y[None, :]) / 2
    return float(np.logaddexp(0.0, -margins).mean() + SIGMA / 2 * w @ w)


@cache
def pairwise_risks(size: int) -> list[float]:
    """Mean excess risk of PairwiseAUC with logistic loss, reg 0.5 and rate 1 over 400 events, of three streams."""
    X, y = disc(600, np.random.default_rng(99))
    least, found = minimize(pair_risk, np.zeros(2), (X, y), tol=1e-10).fun, []
    for seed in range(3):
        stream, labels = disc(400, np.random.default_rng(seed))
        model = PairwiseAUC(
            loss=Logistic(), buffer=ReservoirX(size), rate=1.0, reg=SIGMA, radius=2.0, average=False, random_state=seed
        )
        risks = [pair_risk(np.zeros(2), X, y)]
        for t in range(0, 400, 8):
            model.partial_fit(stream[t : t + 8], labels[t : t + 8])
            risks.append(pair_risk(np.ravel(model.coef_), X, y))
        found.append(float(np.mean(risks) - least))
    return found


def pairwise_excess(size: int | None, fast: bool) -> Measured:
    n, regret = 400, theory.strongly_convex_regret_bound(400, 2.0, SIGMA)
    if fast:
        bound = theory.pairwise_fast_excess_bound(n, regret, SIGMA, size=size)
    else:  # |w| <= 2: the logistic loss of differences of length 1 is at most log(1 + e^2), the regulariser 1
        largest = math.log1p(math.exp(2)) + 1
        bound = theory.pairwise_excess_bound(
            n, regret, lambda m: theory.rademacher_auc(m, 0.5, 2.0), largest, size=size
        )
    return [(bound, excess) for excess in pairwise_risks(n if size is None else size)]


def strongly_convex_excess() -> Measured:
    """200 samples, 60 hypotheses near the best one, epsilon = 1; the excess less twice the observed one."""
    rng, found = np.random.default_rng(3), []
    big, labels = disc(20_000, rng)

    def risk(w: Any, X: Any, y: Any) -> float:
        return float(np.logaddexp(0.0, -y * (2 * X @ w)).mean() + SIGMA / 2 * w @ w)

    best = minimize(risk, np.zeros(2), (big, labels), tol=1e-10).x
    for _ in range(10):
        X, y = disc(200, rng)
        tried = [best + 0.1 * rng.normal(size=2) for _ in range(60)]
        gaps = [risk(w, big, labels) - risk(best, big, labels) - 2 * (risk(w, X, y) - risk(best, X, y)) for w in tried]
        found.append((theory.strongly_convex_excess_bound(200, 0.0, SIGMA), float(max(gaps))))
    return found


ROWS = [
    Row("Herbster, theorem 2", "projection_mistake_bound", "mistakes, separable classes", projection_mistakes),
    Row(
        "NORMA, theorem 3",
        "norma_mistake_tuning",
        "mistakes, 400 events",
        partial(mistakes, norma_learner, norma_bound),
    ),
    Row(
        "Projectron, theorem 3",
        "projectron_mistake_bound",
        "mistakes, tolerance 0.05",
        partial(mistakes, lambda *_: projectron(Gaussian(1.0), 0.05), partial(projectron_bound, 0.05)),
    ),
    Row(
        "Projectron, theorem 4",
        "projectron_pp_mistake_bound",
        "mistakes, tolerance 0.05, progress not counted",
        partial(mistakes, lambda *_: projectron_pp(Gaussian(1.0), 0.05), partial(projectron_bound, 0.05)),
    ),
    Row(
        "ILK, theorem 2",
        "implicit_mistake_bound",
        "mistakes, C = 0.5",
        partial(
            mistakes,
            lambda *_: ilk_classifier(Gaussian(1.0), C=0.5, rate=1.0, reg=0.0),
            lambda norm, loss: theory.implicit_mistake_bound(1.0, 0.5, norm, 400, comparator_loss=loss),
        ),
    ),
    Row("ILK, theorem 3", "implicit_risk_bound", "regret of 300 events, hinge loss", partial(implicit_risk, "hinge")),
    Row("", "", "regret of 300 events, logistic loss", partial(implicit_risk, "logistic")),
    Row("thesis, theorem 3.10", "features.n_components_for", "largest error of exp(t), three columns", maclaurin_error),
    Row(
        "thesis, theorem 3.14",
        "features.n_components_for_composition",
        "largest error of exp(k/4), Gaussian k",
        composition_error,
    ),
    Row("thesis, theorem 4.2", "landmark_pairs_for_margin", "pairs that keep half of the margin", pairs_for_margin),
    Row("thesis, theorem 4.7", "landmark_pairs_for_loss", "mean distance of predictors", partial(pairs_for_loss, 1)),
    Row(
        "thesis, theorem 4.3", "landmark_pairs_for_loss", "the same, worst of 20 functions", partial(pairs_for_loss, 20)
    ),
    Row("thesis, theorem 5.5", "landmark_excess_bound", "excess loss, 50 landmarks, 100 samples", landmark_excess),
    Row("thesis, theorems 5.8, 5.9", "landmarks_for", "excess loss, a quarter informative", sparse_excess),
    Row("thesis, theorem 5.6", "similarity_weight", "least weight, random populations", partial(kernel_weight, 0)),
    Row("", "", "least weight, the four points of the proof", partial(kernel_weight, None)),
    Row("thesis, theorem 5.16", "ordinal_utility", "distance of labels per unit of loss", ordinal_share),
    Row("thesis, theorem 5.20", "ranking_utility", "1 - NDCG of ten documents", ranking_regret),
    Row("thesis, theorem 5.21", "similarity_weight", "least weight, two documents", ranking_weight),
    Row(
        "thesis, theorem 6.3",
        "pairwise_excess_bound",
        "excess risk, all pairs of 400 events",
        partial(pairwise_excess, None, False),
    ),
    Row(
        "thesis, theorem 6.6",
        "pairwise_excess_bound",
        "excess risk, a buffer of 40",
        partial(pairwise_excess, 40, False),
    ),
    Row(
        "thesis, theorem 6.4", "strongly_convex_excess_bound", "excess not seen in 200 samples", strongly_convex_excess
    ),
    Row(
        "thesis, theorem 6.5",
        "pairwise_fast_excess_bound",
        "excess risk, all pairs of 400 events",
        partial(pairwise_excess, None, True),
    ),
    Row(
        "thesis, theorem 6.9",
        "pairwise_fast_excess_bound",
        "excess risk, a buffer of 40",
        partial(pairwise_excess, 40, True),
    ),
    Row("thesis, theorem B.3", "shared_landmark_excess_bound", "excess loss, 160 landmarks", shared_excess),
]


def nearest(found: Measured) -> tuple[float, float]:
    """The draw that comes nearest to its bound."""
    return max(found, key=lambda draw: draw[1] / draw[0])


def factor(found: Measured) -> float:
    """How many times too large the bound is there."""
    bound, measured = nearest(found)
    return bound / measured


def number(x: float) -> str:
    """Two digits."""
    short = float(f"{x:.2g}")
    return f"{short:,.0f}" if short >= 10 else f"{short:.2g}"


TEXT = """# How loose the bounds are

No bound of {py:obj}`gristmill.theory` was exceeded in any of the draws below. They are too large by these factors:

- numbers of mistakes: 2 to 20; the regret of ILK: 80 to 300,
- what holds for each label or query (theorems 5.16 and 5.20 of the thesis): 1 to 5,
- weights, landmarks and features: 4 to 600, and 150 to 3,000 for the loss of models learned on them,
- the risk of learners of pairs: 3,000; with the fast rates (theorems 6.5 and 6.9) more than 100,000 at 400 events.
  With constants of 1 they are the smaller ones from 3 million events on.

So bounds compare algorithms and settings.
Numbers of landmarks, features and points are better chosen by a hold-out.

Each line is the draw that came nearest to its bound; other data may come nearer.
`python docs/_scripts/bounds.py` measures it, and a test measures it again.
[Every numbered result](numbered.md) names the tests of each bound.

| | function | what is bounded | bound | measured | times too large |
|---|---|---|---|---|---|
"""


def written() -> str:
    """The page."""
    lines = []
    for row in ROWS:
        found = row.run()
        place = row.function if "." in row.function else f"theory.{row.function}"
        values = *(number(x) for x in nearest(found)), number(factor(found))
        link = f"{{py:obj}}`gristmill.{place}`" if row.function else ""
        lines.append(f"| {row.theorem} | {link} | {row.what} | " + " | ".join(values) + " |")
    return TEXT + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
