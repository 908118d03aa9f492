"""The bounds of pairwise learning against measurements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gristmill import ReservoirX, theory
from gristmill.pairwise import AUCPairs, L2Ball, PairwiseLearner


def signs(rng, trials, n):
    return rng.choice([-1.0, 1.0], size=(trials, n))


@pytest.mark.parametrize("q", [1.25, 1.5, 2.0])
def test_average_of_linear_scorers(q):
    """sup over ||w||_q <= r of the mean is r times the dual norm of the mean."""
    rng, n, d, r = np.random.default_rng(0), 20, 6, 1.5
    p = q / (q - 1)
    X = rng.normal(size=(n + 1, d))
    X /= np.linalg.norm(X, ord=p, axis=1, keepdims=True)
    means = signs(rng, 2000, n) @ (X[0] - X[1:]) / n
    measured = r * np.linalg.norm(means, ord=p, axis=1).mean()
    assert measured <= theory.rademacher_auc(n, 1.0, r, q=q)


@pytest.mark.parametrize("d", [1, 2, 6, 50])
def test_average_of_the_l1_ball(d):
    rng, n, r = np.random.default_rng(0), 20, 1.5
    X = rng.choice([-1.0, 1.0], size=(n + 1, d))
    X[0] = -X[1]
    means = signs(rng, 2000, n) @ (X[0] - X[1:]) / n
    measured = r * np.abs(means).max(axis=1).mean()
    assert measured <= theory.rademacher_auc(n, 1.0, r, features=d)


def test_the_printed_l1_average_fails_for_one_feature():
    assert 2 * math.sqrt(math.e * math.log(1) / 20) == 0.0
    assert theory.rademacher_auc(20, 1.0, 1.0, features=1) > 0


@pytest.mark.parametrize("metric", [False, True])
@pytest.mark.parametrize("norm", ["frobenius", "group", "l1", "trace"])
@pytest.mark.parametrize("d", [1, 3, 8])
def test_average_of_matrices(norm, metric, d):
    rng, n, r = np.random.default_rng(0), 15, 0.7
    X = rng.normal(size=(n + 1, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    heads = np.array([np.outer(X[0] - x, X[0] - x) if metric else np.outer(X[0], x) for x in X[1:]])
    means = np.einsum("tn,nij->tij", signs(rng, 1000, n), heads) / n
    dual = {
        "frobenius": lambda m: np.linalg.norm(m),
        "group": lambda m: np.linalg.norm(m, axis=0).max(),
        "l1": lambda m: np.abs(m).max(),
        "trace": lambda m: np.linalg.norm(m, ord=2),
    }[norm]
    measured = r * np.mean([dual(m) for m in means])
    assert measured <= theory.rademacher_matrix(n, norm, r, d, 1.0, float(np.abs(X).max()), metric=metric)


@pytest.mark.parametrize("constraint", ["simplex", "l2"])
@pytest.mark.parametrize("p", [1, 2, 10])
def test_average_of_mixtures(constraint, p):
    rng, n = np.random.default_rng(0), 20
    z = rng.uniform(-1, 1, size=(n, p))
    means = signs(rng, 4000, n) @ z / n
    top = means.max(axis=1) if constraint == "simplex" else np.linalg.norm(np.maximum(means, 0), axis=1)
    assert top.mean() <= theory.rademacher_mkl(n, p, 1.0, constraint) + 0.01


def test_buffer_bound_tends_to_the_all_pairs_bound():
    average = lambda m: 1 / math.sqrt(m)  # noqa: E731
    bounds = [theory.pairwise_risk_bound(1000, 0.1, average, size=s) for s in (10, 100, 999)]
    assert bounds[0] > bounds[1] > bounds[2]
    assert bounds[2] == theory.pairwise_risk_bound(1000, 0.1, average)


def test_explicit_sums_are_below_the_printed_constants():
    n, delta = 5000, 0.05
    printed = 3 * math.sqrt(math.log(n / delta) / (n - 1))
    assert theory.pairwise_risk_bound(n, 0.0, lambda m: 0.0, delta=delta) <= printed


def test_risk_of_the_ensemble_is_below_the_bound():
    rng, n, radius = np.random.default_rng(0), 400, 0.5

    def draw(count):
        y = rng.choice([-1.0, 1.0], size=count)
        X = rng.normal(size=(count, 2)) * 0.3 + np.outer(y, [0.4, 0.0])
        return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y

    X, y = draw(n)
    rate = theory.olp_rate(2.0, 2 * radius)
    model = PairwiseLearner(AUCPairs(), L2Ball(radius), ReservoirX(50), rate=rate, average=True, random_state=0)
    observed = model.prequential(X, y)[1:].mean()
    fresh, labels = draw(500)
    risk = np.mean([AUCPairs().value(model.weights_, x, l, fresh, labels) for x, l in zip(fresh, labels, strict=True)])
    average = lambda m: theory.rademacher_of_loss(theory.rademacher_auc(m, 1.0, radius), 1.0)  # noqa: E731
    bound = theory.pairwise_risk_bound(n, observed, average, bound=2.0, size=50)
    assert risk <= bound
    regret = theory.olp_regret_bound(n, 2.0, 2 * radius)
    assert theory.pairwise_excess_bound(n, regret, average, bound=2.0, size=50) > 0


def test_nothing_is_lost_while_the_buffer_is_the_stream():
    assert theory.all_pairs_regret_bound(50, 49, 7.0, 0.1) == 7.0
    assert theory.all_pairs_regret_bound(51, 49, 7.0, 0.1) > 7.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.rademacher_auc(0, 1.0, 1.0), "n must be a whole number"),
        (lambda: theory.rademacher_auc(5, 1.0, 1.0, q=3.0), r"q must be a number in \(1, 2\]"),
        (lambda: theory.rademacher_matrix(5, "l7", 1.0, 3, 1.0), "norm must be one of"),
        (lambda: theory.rademacher_matrix(5, "l1", 1.0, 3, 1.0), "largest must be"),
        (lambda: theory.pairwise_risk_bound(1, 0.1, lambda m: 0.0), "n must be a whole number >= 2"),
        (lambda: theory.pairwise_excess_bound(9, 1.0, lambda m: 0.0, delta=1.0), "delta must be"),
        (lambda: theory.olp_rate(0.0, 1.0), "lipschitz must be"),
    ],
)
def test_arguments_out_of_range(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
