"""Ordered labels: the EXC objective against a brute-force solver, thresholds, and bad labels."""

import numpy as np
import pytest
from scipy.optimize import minimize

from gristmill import Gaussian, LandmarkOrdinal, Manhattan
from gristmill.similarity.ordinal import fit_between, fit_thresholds

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 5, size=(150, 2))
Y = np.floor(X[:, 0] + 0.3 * RNG.normal(size=150)).clip(0, 4).astype(int)


def losses(scores, ranks, thresholds, margin):
    """The two hinges of Definition 5.14, added, for each object."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    low, high = scores - edges[ranks], edges[ranks + 1] - scores
    return np.maximum(margin - low, 0) + np.maximum(margin - high, 0)


def brute_force(values, ranks, labels, margin, C, spacing=None, fixed=None):
    """The same objective with slack variables, by a general solver."""
    n, d = values.shape
    free = labels - 1 if fixed is None else 1  # thresholds, or the offset
    rows, limits = [], []
    for i in range(n):
        for side, index in ((1, ranks[i] - 1), (-1, ranks[i])):
            if not 0 <= index < labels - 1:
                continue
            row = np.zeros(d + free + 2 * n)
            row[:d] = side * values[i]
            if fixed is None:
                row[d + index] = -side
                limits.append(margin)
            else:
                row[d] = side
                limits.append(margin + side * fixed[index])
            row[d + free + 2 * i + (side < 0)] = 1.0
            rows.append(row)
    if fixed is None:
        for i in range(labels - 2):
            row = np.zeros(d + free + 2 * n)
            row[d + i + 1], row[d + i] = 1.0, -1.0
            rows.append(row)
            limits.append(spacing)
    A, c = np.array(rows), np.array(limits)
    start = np.zeros(d + free + 2 * n)
    start[d : d + free] = spacing * np.arange(free) if fixed is None else 0.0
    start[d + free :] = 20.0
    gradient = np.append(np.zeros(d + free), np.full(2 * n, C))
    found = minimize(
        lambda z: 0.5 * z[:d] @ z[:d] + gradient @ z,
        start,
        jac=lambda z: gradient + np.append(z[:d], np.zeros(free + 2 * n)),
        bounds=[(None, None)] * (d + free) + [(0, None)] * (2 * n),
        constraints={"type": "ineq", "fun": lambda z: A @ z - c, "jac": lambda z: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("margin", [0.3, 0.5, 1.2])
def test_fixed_thresholds_match_a_brute_force_solver(margin):
    values = RNG.normal(size=(20, 3))
    ranks = np.digitize(values @ [1.0, -0.5, 0.2] + 0.3 * RNG.normal(size=20), [-0.8, 0.0, 0.8])
    fixed = np.array([1.5, 2.5, 3.5])
    w, b = fit_between(values, ranks, fixed, margin, 2.0)
    ours = 0.5 * w @ w + 2.0 * losses(values @ w + b, ranks, fixed, margin).sum()
    assert ours == pytest.approx(brute_force(values, ranks, 4, margin, 2.0, fixed=fixed), rel=1e-5)


@pytest.mark.parametrize("spacing", [0.2, 1.0])
def test_learned_thresholds_match_a_brute_force_solver(spacing):
    values = RNG.normal(size=(20, 3))
    ranks = np.digitize(values @ [1.0, -0.5, 0.2] + 0.3 * RNG.normal(size=20), [-0.8, 0.0, 0.8])
    w, b = fit_thresholds(values, ranks, 4, 0.5, 2.0, spacing)
    assert np.diff(b).min() >= spacing - 1e-9
    ours = 0.5 * w @ w + 2.0 * losses(values @ w, ranks, b, 0.5).sum()
    assert ours == pytest.approx(brute_force(values, ranks, 4, 0.5, 2.0, spacing=spacing), rel=1e-5)


def test_equal_thresholds_are_the_tube_around_the_middles():
    """[E5.4] With spacing 1 and margin g <= 1/2 the loss of a middle label is the tube of width 1/2 - g."""
    scores = np.linspace(-2, 7, 500)
    for rank in (1, 2):
        for margin in (0.2, 0.5):
            found = losses(scores, np.full(500, rank), np.array([1.5, 2.5, 3.5]), margin)
            assert np.allclose(found, np.maximum(np.abs(scores - (rank + 1)) - (0.5 - margin), 0))
    one_sided = losses(scores, np.zeros(500, int), np.array([1.5, 2.5, 3.5]), 0.5)
    assert np.allclose(one_sided, np.maximum(scores - 1.0, 0))


def test_a_wrong_label_costs_at_least_the_margin():
    thresholds = np.array([1.5, 2.5, 3.5])
    scores = RNG.uniform(-1, 6, 400)
    ranks = RNG.integers(0, 4, 400)
    wrong = np.searchsorted(thresholds, scores, side="right") != ranks
    assert losses(scores, ranks, thresholds, 0.4)[wrong].min() >= 0.4


@pytest.mark.parametrize("thresholds", ["equal", "learned", [-1.0, 0.0, 2.0, 3.0]])
def test_labels_are_cut_from_one_score(thresholds):
    model = LandmarkOrdinal(Manhattan(), 30, thresholds=thresholds, C=10.0, random_state=0).fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    score = model.latent(X)
    expected = [sum(b <= s for b in model.thresholds_) for s in score]
    assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(model.decision_function(X).argmax(axis=1), expected)
    assert np.abs(model.predict(X) - Y).mean() < 0.4
    if thresholds == "equal":
        assert model.thresholds_.tolist() == [1.5, 2.5, 3.5, 4.5]


def test_labels_in_words_and_labels_that_are_missing():
    words = np.array(["low", "middle", "high", "top", "never"])
    model = LandmarkOrdinal(Manhattan(), 20, labels=words.tolist(), C=10.0, random_state=0)
    model.fit(X, words[np.minimum(Y, 3)])
    assert model.classes_.tolist() == words.tolist()
    numbers = LandmarkOrdinal(Manhattan(), 20, labels=range(5), C=10.0, random_state=0)
    numbers.fit(X, np.minimum(Y, 3))
    assert np.array_equal(model.predict(X), words[numbers.predict(X)])
    learned = LandmarkOrdinal(Manhattan(), 20, thresholds="learned", labels=range(6), random_state=0)
    learned.fit(X, Y)
    assert np.diff(learned.thresholds_).min() >= 1.0 - 1e-9


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (["a", "b", "c"], {}, "ordered labels.*labels="),
        ([1.5, 2.0, 3.0], {}, "whole numbers"),
        ([1, 2, 4], {}, "label 3, between 1 and 4"),
        ([1, 1, 1], {}, "1 class"),
        ([1, 2, np.nan], {}, "NaN"),
        ([1, 2, 5], {"labels": [1, 2, 3]}, r"y\[2\] is 5"),
        ([1, 2, 2], {"labels": [1, 2, 2]}, "twice"),
        ([1, 2, 3], {"thresholds": [1.0]}, "2 ascending numbers"),
        ([1, 2, 3], {"thresholds": [2.0, 1.0]}, "ascending"),
        ([1, 2, 3], {"thresholds": "even"}, "thresholds must be"),
        ([1, 2, 3], {"margin": 0.0}, "margin must be"),
        ([1, 2], {}, "3 objects and y 2"),
    ],
)
def test_labels_and_thresholds_that_make_no_sense_are_refused(y, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LandmarkOrdinal(Gaussian(1.0), **parameters).fit([[0.0], [1.0], [2.0]], y)
