"""A model that is pickled, or saved and loaded, in mid-stream goes on as if nothing had been: the same bits.

Drawn at random: kernels x budgets x rows (dense, CSR, float32) x labels that come late x where the stream is cut.
"""

from __future__ import annotations

import pickle

import numpy as np
import public_learners
import pytest
from scipy.sparse import csr_array

import gristmill
from gristmill import (
    SGD,
    Additive,
    Alma,
    DropOldest,
    DropRandom,
    DropSmallest,
    Exponential,
    Forget,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Linear,
    Manhattan,
    MarginProjection,
    Merge,
    Normalized,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Project,
    Sigmoid,
    Spline,
    Unbounded,
    Vovk,
    Window,
)

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.5, 1.0),
    "gaussian": Gaussian(1.5),
    "laplacian": Laplacian(0.7),
    "exponential": Exponential(1.2),
    "vovk": Vovk(3),
    "sigmoid": Sigmoid(0.5),
    "manhattan": Manhattan(),
    "normalized": Normalized(Polynomial(2)),
    "mixed": 0.5 * Laplacian(1.0) + Linear() * Gaussian(0.3),
    "additive": Additive(Laplacian(1.0)),
    "spline": Additive(Spline(1)),
}
BUDGETS = {
    "all": Unbounded(),
    "window": Window(15),
    "oldest": DropOldest(7),
    "smallest": DropSmallest(7),
    "random": DropRandom(7),
    "forget": Forget(8),
    "project": Project(0.2),
    "merge": Merge(8),
}
ROWS = {
    "dense": np.asarray,
    "csr": csr_array,
    "float32": lambda X: X.astype(np.float32),
    "csr float32": lambda X: csr_array(X.astype(np.float32)),
}
RULES = [Perceptron(), PassiveAggressive(), SGD(Hinge(), 0.3, 0.1), Alma(0.9), MarginProjection()]


def stream(seed, kind):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.05, 0.95, size=(70, 4)) * (rng.random((70, 4)) < 0.7)
    known = np.minimum(2 + np.arange(70) // 20, 4) if seed % 3 else 2  # two classes, or more that come late
    return rng, ROWS[kind](X), np.array(["stone", "grist", "mill", "a"])[rng.integers(known, size=70)]


def paused(model, rng, path):
    if rng.random() < 0.5:
        return pickle.loads(pickle.dumps(model))
    model.save(path)
    return gristmill.load(path)


def compare(model, other, X, y, rng, path):
    whole = model.prequential(X, y)
    cuts = np.sort(rng.choice(np.arange(1, X.shape[0]), 5, replace=False))
    said = []
    for part in np.split(np.arange(X.shape[0]), cuts):
        said.append(other.prequential(X[part], y[part]))
        other = paused(other, rng, path)
    np.testing.assert_array_equal(public_learners.answers(model, X), public_learners.answers(other, X))
    if all(np.ndim(part) == np.ndim(whole) and np.shape(part)[1:] == np.shape(whole)[1:] for part in said):
        np.testing.assert_array_equal(whole, np.concatenate(said))
    np.testing.assert_array_equal(model.prequential(X, y), other.prequential(X, y))  # and it goes on so
    np.testing.assert_array_equal(public_learners.answers(model, X), public_learners.answers(other, X))


#: all pairs but those that are refused: trees hold no inner products
PAIRS = [
    (k, b)
    for k in KERNELS
    for b in BUDGETS
    if k not in ("additive", "spline") or b not in ("forget", "project", "merge")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("kernel", "budget"), PAIRS)
def test_a_pause_changes_no_bit(kernel, budget, rows, tmp_path):
    tried = 0
    for seed in range(3):
        rng, X, y = stream(seed, rows)
        rule = RULES[int(rng.integers(len(RULES)))] if budget != "forget" else Perceptron()
        average = budget == "all" and bool(rng.random() < 0.5)
        made = [KernelClassifier(KERNELS[kernel], rule, BUDGETS[budget], average, random_state=seed) for _ in range(2)]
        try:
            made[0].fit(X, y)
        except (TypeError, ValueError):
            continue  # parts that do not go together, or not with more than two classes
        compare(gristmill.KernelClassifier(**made[0].get_params(deep=False)), made[1], X, y, rng, tmp_path / "model")
        tried += 1
    fits = KERNELS[kernel].positive_definite or budget not in ("project", "merge", "forget")
    assert tried or not fits, f"{kernel} and {budget} were never tried"


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", public_learners.public())
def test_a_pause_changes_no_bit_of_any_learner(name, rows, tmp_path):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = public_learners.stream(name, 50, seed)
        compare(public_learners.made(name), public_learners.made(name), ROWS[rows](X), y, rng, tmp_path / "model")


def test_a_pause_of_a_regressor_with_targets_of_any_size(tmp_path):
    for seed, budget in enumerate(BUDGETS):
        if budget == "forget":
            continue  # of two classes
        rng, X, _ = stream(seed, "dense")
        made = [KernelRegressor(Laplacian(1.0), budget=BUDGETS[budget], random_state=seed) for _ in range(2)]
        compare(*made, X, 10.0 ** rng.uniform(-3, 3, size=70), rng, tmp_path / "model")
