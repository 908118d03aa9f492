"""compress: the greedy choice and the projection of a plain loop, the same function with fewer points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gristmill
from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropRandom,
    DropSmallest,
    FeatureLearner,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Merge,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Prepared,
    Project,
    RandomMaclaurin,
    Sigmoid,
    Unbounded,
    _core,
    adatron,
    compress,
    forgetron,
    norma_regressor,
    projectron,
    projectron_pp,
    svmd,
)
from gristmill.checks import snapshot

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
TWO = X[:, 0] * X[:, 1] > 0
THREE = TWO.astype(int) + (X[:, 2] > 0.5)


def naive(K, coefs, visible, size):
    """The plain loop: project, look for the largest residual, add that point; least squares by NumPy each time."""
    chosen = []
    while len(chosen) < size:
        S = np.array(chosen, dtype=int)
        inside = np.linalg.lstsq(K[np.ix_(S, S)], K[S], rcond=None)[0] if len(S) else np.empty((0, len(K)))
        left = coefs @ (K - K[:, S] @ inside)
        distance2 = np.diag(K) - (K[:, S].T * inside).sum(axis=0)
        loss = np.where(distance2 > 1e-8 * np.diag(K), (left[:visible] ** 2).sum(axis=0), 0.0)
        loss[S] = 0
        if not loss.any():
            break
        chosen.append(int(loss.argmax()))
    S = np.array(chosen)
    found = np.linalg.solve(K[np.ix_(S, S)], K[S] @ coefs.T).T
    over = coefs.copy()
    over[:, S] -= found
    lost = np.einsum("oi,ij,oj->", over[:visible], K, over[:visible])
    return chosen, found, lost, np.einsum("oi,ij,oj->", coefs[:visible], K, coefs[:visible])


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.2), Polynomial(2, 1.0, 1.0) + Gaussian(1.0)])
@pytest.mark.parametrize(("n", "outputs", "visible"), [(60, 1, 1), (211, 3, 3), (400, 4, 2)])
def test_the_choice_is_that_of_the_plain_loop(kernel, n, outputs, visible):
    coefs = RNG.normal(size=(outputs, n))
    rows, found, _, norm2, left2 = _core.compress(kernel.kernel_program(), X[:n], coefs, visible, 40)
    chosen, expected, lost, norm = naive(kernel(X[:n], X[:n]), coefs, visible, 40)
    assert rows.tolist() == chosen
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_allclose([norm2, left2], [norm, lost], rtol=1e-9)


def test_more_points_than_the_pool_and_many_rounds():
    points = np.random.default_rng(0).normal(size=(1500, 3))
    K = Gaussian(1.0)(points, points)
    coefs = np.random.default_rng(1).normal(size=(2, 1500))
    rows, found, coordinates, norm2, left2 = _core.compress(Gaussian(1.0).kernel_program(), points, coefs, 2, 200)
    left, Z = coefs @ K, np.zeros((1500, 200))
    for step, row in enumerate(rows):  # the pivoted Cholesky factorisation, column by column
        assert (left**2).sum(axis=0).argmax() == row
        Z[:, step] = (K[row] - Z @ Z[row]) / np.sqrt(K[row, row] - Z[row] @ Z[row])
        np.testing.assert_allclose(coordinates[:, step], left[:, row] / Z[row, step], rtol=1e-6)
        left = left - np.outer(left[:, row] / Z[row, step], Z[:, step])
        left[:, rows[: step + 1]] = 0
    np.testing.assert_allclose(left2, (coefs * left).sum(), rtol=1e-8)
    np.testing.assert_allclose(norm2, np.einsum("oi,ij,oj->", coefs, K, coefs))
    np.testing.assert_allclose((K[:, rows] @ found.T).T, coordinates @ Z.T, atol=1e-6)


def test_equal_points_are_chosen_once_and_nothing_is_chosen_of_nothing():
    points = np.repeat(X[:5], 3, axis=0)
    rows, _, _, _, left2 = _core.compress(Gaussian(1.0).kernel_program(), points, np.ones((1, 15)), 1, 15)
    assert sorted(rows // 3) == [0, 1, 2, 3, 4]
    assert left2 < 1e-20
    rows, coefs, _, norm2, _ = _core.compress(Gaussian(1.0).kernel_program(), points, np.zeros((1, 15)), 1, 15)
    assert (len(rows), coefs.shape, norm2) == (0, (1, 0), 0.0)


@pytest.mark.parametrize("size", [1, 15, 60])
@pytest.mark.parametrize("y", [TWO, THREE])
def test_the_error_is_what_is_lost_in_the_kernels_space(size, y):
    kernel = Gaussian(0.5)
    model = KernelClassifier(kernel, PassiveAggressive(), Unbounded()).fit(X, y)
    before = snapshot(model)
    small, error = compress(model, size)
    assert snapshot(model) == before
    assert (small.n_support_, small.budget, small.n_seen_) == (size, Merge(size), 400)
    points = np.vstack([model.support_vectors_, small.support_vectors_])
    over = np.vstack([model.dual_coef_, -small.dual_coef_])
    lost = np.einsum("io,ij,jo->", over, kernel(points, points), over)
    np.testing.assert_allclose(error, np.sqrt(lost) / model.norm_, rtol=1e-6)
    assert set(small.support_ids_) <= set(model.support_ids_)
    assert 0 < error < 1


MODELS = {
    "all": (KernelClassifier(Gaussian(0.5), PassiveAggressive(), Unbounded()), THREE),
    "mean of all": (KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded(), average=True), THREE),
    "merged": (KernelClassifier(Gaussian(0.5), budget=Merge(90)), TWO),
    "mean of merged": (KernelClassifier(Gaussian(0.5), budget=Merge(90), average=True), TWO),
    "oldest": (KernelRegressor(Gaussian(0.5), budget=DropOldest(90)), X[:, 0]),
    "smallest": (KernelRegressor(Laplacian(0.5), budget=DropSmallest("40 kB")), X[:, 0]),
    "random": (KernelNovelty(Gaussian(0.5), SGD(Hinge(0.0, nu=0.3), 0.1, 0.01), DropRandom(90), random_state=1), None),
    "span": (projectron(Gaussian(0.5), 0.2), THREE),
    "mean in a span": (projectron_pp(Gaussian(0.5), 0.2, average=True), THREE),
    "norm": (gristmill.projection_regressor(Gaussian(0.5), 0.1, radius=2.0).set_params(budget=DropOldest(90)), X[:, 0]),
    "tangent": (svmd(Gaussian(0.5), 0.1, 0.01, 0.1, 0.9, size=90), TWO),
    "intercept": (
        KernelRegressor(Gaussian(0.5), SGD(gristmill.Squared(), 0.1, 0.01, intercept=True), Merge(90)),
        X[:, 0] + 3,
    ),
    "scaled": (Prepared(KernelClassifier(Gaussian(0.5), budget=Merge(90))), TWO),
    "linear": (KernelRegressor(Linear(), budget=Merge(90)), X[:, 0]),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_result_is_a_model_like_any_other(name, tmp_path):
    model, y = MODELS[name]
    model = clone(model).fit(X, y)
    small, error = compress(model, 30)
    assert type(small) is type(model)
    assert small.n_support_ <= 30
    assert (small.n_seen_, error >= 0) == (400, True)
    said, meant = (np.asarray(one.decision_function(X)) for one in (small, model))
    assert np.abs(said - meant).max() <= 1.001 * error * np.linalg.norm(meant) + 1e-6 or error > 0.3
    more = slice(0, 150)
    path = tmp_path / "model"
    small.save(path)
    loaded = gristmill.load(path)
    for one in (small, loaded):
        one.partial_fit(X[more], None if y is None else y[more])
    assert small.to_bytes() == loaded.to_bytes()
    budget = small.budget if hasattr(small, "budget") else small.model.budget
    assert small.n_support_ <= 30
    assert budget.size == 30


def test_norm_and_partners_are_those_of_the_points():
    model = svmd(Gaussian(0.5), 0.1, 0.01, 0.1, 0.9, size=90).fit(X, TWO)
    small, _ = compress(model, 30)
    points, coef = small.support_vectors_, small.dual_coef_
    np.testing.assert_allclose(small.norm_**2, coef[:, 0] @ Gaussian(0.5)(points, points) @ coef[:, 0], rtol=1e-10)
    merged, _ = compress(KernelClassifier(Gaussian(0.5), budget=Merge(90)).fit(X, TWO), 30)
    state = merged._engine.state()
    K = Gaussian(0.5)(state["points"], state["points"]) - np.eye(30)
    assert state["partners"].tolist() == K.argmax(axis=1).tolist()
    np.testing.assert_allclose(state["likeness"], K.max(axis=1) ** 2)


def test_a_larger_size_changes_nothing_but_the_budget():
    for model in (KernelClassifier(Gaussian(0.5), budget=Merge(50)), projectron(Gaussian(0.5), 0.2)):
        model.fit(X, TWO)
        large, error = compress(model, 1000)
        assert error == 0.0
        assert large.budget.size == 1000
        np.testing.assert_array_equal(large.decision_function(X), model.decision_function(X))


def test_sparse_points_singles_and_objects():
    rng = np.random.default_rng(0)
    rows = csr_array(rng.random((120, 3000)) * (rng.random((120, 3000)) < 0.01))
    y = np.arange(120) % 2
    model = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded()).fit(rows, y)
    small, _ = compress(model, 20)
    assert small.support_vectors_.shape == (20, 3000)
    single = KernelClassifier(Gaussian(0.5), budget=Merge(90)).fit(X.astype(np.float32), TWO)
    assert compress(single, 20)[0].support_vectors_.dtype == np.float32
    words = ["ab", "abc", "bc", "bcd", "cd", "cde", "de", "def"]
    ours = KernelClassifier(lambda a, b: len(set(a) & set(b)) + float(a == b), Perceptron(), Unbounded()).fit(
        words, [0, 1] * 4
    )
    few, error = compress(ours, 3)
    assert (few.n_support_, 0 < error < 1) == (3, True)
    assert set(few.support_vectors_) <= set(words)


def test_a_size_in_bytes():
    model = KernelClassifier(Gaussian(0.5), PassiveAggressive(), Unbounded()).fit(X, TWO)
    small, _ = compress(model, "8 kB")
    assert small.budget == Merge("8 kB")
    assert 10 <= small.n_support_ < model.n_support_
    assert small.memory_bytes_ <= 8192


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        (KernelClassifier(Sigmoid(0.1, 0.0)), ValueError, "not positive definite"),
        (KernelClassifier(Additive(Laplacian(1.0))), TypeError, "kept as trees"),
        (FeatureLearner(RandomMaclaurin(Polynomial(2), 10, random_state=0)), TypeError, "stores no points"),
        (forgetron(Gaussian(1.0), 10), ValueError, "Forget.*bounds what each"),
        (norma_regressor(Gaussian(1.0), 0.1, 0.1, window=50), ValueError, "Window.*forgets by age"),
        (adatron(Gaussian(1.0), 0.1, 1.0, 2), ValueError, "Adatron comes back"),
        (gristmill.PairwiseAUC(Gaussian(1.0)), TypeError, "got PairwiseAUC"),
        (KernelClassifier(Gaussian(1.0), budget=Project(0.1)), ValueError, "counts points"),
    ],
)
def test_what_cannot_be_compressed_is_refused_by_name(model, kind, words):
    model.fit(X[:60], X[:60, 0] if "Regress" in repr(model) else TWO[:60])
    with pytest.raises(kind, match=words):
        compress(model, "1 MB" if "Project" in words or "counts" in words else 5)


def test_bad_sizes_and_models_that_have_not_learned():
    model = KernelClassifier(Gaussian(1.0)).fit(X, TWO)
    for size in (0, -1, 1.5, "much", None, True):
        with pytest.raises((ValueError, TypeError), match="size"):
            compress(model, size)
    with pytest.raises(NotFittedError, match="not fitted"):
        compress(KernelClassifier(Gaussian(1.0)), 5)
    with pytest.raises(ValueError, match="changed in mid-stream"):
        compress(model.set_params(kernel__gamma=2.0), 5)
