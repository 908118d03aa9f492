"""Kernel PCA and kernel k-means on a stream, against scikit-learn's batch ones and against NumPy from all samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as BatchPCA

import gristmill
from gristmill import DropOldest, Gaussian, Laplacian, Merge, Project
from gristmill.kernels import PythonKernel
from gristmill.unsupervised import KernelKMeans, KernelPCA
from gristmill.unsupervised.span import Span, moved

BUDGETS = [Merge(25), Project(0.3, 25), Project(0.5)]


def rows(count=150, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 3)) + 3 * rng.integers(3, size=(count, 1))


def digits():
    X, _ = load_digits(return_X_y=True)
    return X[np.random.default_rng(0).permutation(len(X))][:1000] / 16


def inertia(gram, labels):
    """Within-cluster sum of squares in the RKHS, by kernel values only."""
    clusters = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return sum(np.trace(gram[np.ix_(r, r)]) - gram[np.ix_(r, r)].sum() / len(r) for r in clusters)


# ---- scikit-learn's batch learners --------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.01, 0.05])
def test_300_points_explain_the_variance_of_batch_kernel_pca(gamma):
    X, kernel = digits(), Gaussian(gamma)
    gram = kernel(X, X)
    batch = BatchPCA(10, kernel="precomputed").fit(gram)
    variances = batch.eigenvalues_ / len(X)
    model = KernelPCA(10, kernel, Merge(300)).fit(X)
    assert model.n_support_ <= 300
    np.testing.assert_allclose(model.explained_variance_, variances, rtol=0.05)  # the worst component seen: 0.5 %
    total = np.trace(gram) / len(X) - gram.mean()
    np.testing.assert_allclose(model.explained_variance_ratio_, variances / total, rtol=0.05)
    ours, theirs = model.transform(X)[:, 0], batch.transform(gram)[:, 0]
    assert abs(np.corrcoef(ours, theirs)[0, 1]) > 0.999


@pytest.mark.parametrize("gamma", [0.01, 0.05])
def test_300_points_give_the_inertia_of_batch_kernel_k_means(gamma):
    X, kernel = digits(), Gaussian(gamma)
    gram = kernel(X, X)
    values, vectors = np.linalg.eigh(gram)
    points = vectors * np.sqrt(np.maximum(values, 0.0))
    batch = inertia(gram, KMeans(10, n_init=10, random_state=0).fit(points).labels_)
    model = KernelKMeans(10, kernel, Merge(300), random_state=0).fit(X)
    assert inertia(gram, model.predict(X)) <= 1.05 * batch
    assert batch <= 1.05 * model.inertia_ <= 1.05**2 * batch


def test_all_points_are_batch_kernel_pca():
    X, kernel = rows(40), Laplacian(0.5)
    model = KernelPCA(3, kernel, Merge(40)).fit(X)
    batch = BatchPCA(3, kernel="precomputed")
    wanted = batch.fit_transform(kernel(X, X))
    found = model.transform(X)
    np.testing.assert_allclose(model.explained_variance_, batch.eigenvalues_ / 40, rtol=1e-9)
    np.testing.assert_allclose(found * np.sign((found * wanted).sum(axis=0)), wanted, atol=1e-9)


# ---- NumPy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("decay", [1.0, 0.97])
def test_statistics_are_those_of_projections_one_by_one(budget, decay):
    """Every sample's coefficients are kept and projected again, with dense solves, whenever a point leaves."""
    X, kernel = rows(), Gaussian(0.4)
    model = KernelPCA(2, kernel, budget, decay)
    held, all_coefficients, stored = [], np.empty((0, 0)), []
    for t, x in enumerate(X):
        model.learn_one(x)
        now = model.support_ids_.tolist()
        old = [place for place, at in enumerate(stored) if at in now]
        gone = [place for place in range(len(stored)) if place not in old]
        gram = kernel(X[now], X[now])
        fresh = np.zeros((len(all_coefficients), len(now)))
        fresh[:, : len(old)] = all_coefficients[:, old]
        for place in gone:
            onto = np.linalg.solve(gram, kernel(X[now], X[[stored[place]]])[:, 0])
            fresh += all_coefficients[:, [place]] * onto
        own = np.linalg.solve(gram, kernel(X[now], x[None])[:, 0])
        all_coefficients, stored = np.vstack([fresh, own]), now
        held.append(t)
    weights = decay ** np.arange(len(X) - 1, -1, -1.0)
    moments = model._state().statistics.arrays
    np.testing.assert_allclose(moments["sum"], weights @ all_coefficients, atol=1e-8)
    np.testing.assert_allclose(
        moments["products"], (weights[:, None] * all_coefficients).T @ all_coefficients, atol=1e-8
    )
    np.testing.assert_allclose(moments["weight"], [weights.sum(), weights.sum()])
    span = model._state().span
    np.testing.assert_allclose(span.inverse @ kernel(X[stored], X[stored]), np.eye(len(stored)), atol=1e-8)


def test_the_inverse_after_points_have_entered_and_left():
    X, kernel = rows(60), Gaussian(0.5)
    span = Span.empty(3)
    rng = np.random.default_rng(1)
    for t, x in enumerate(X):
        if len(span) == 12:
            place = int(rng.integers(12))
            span = span.without(place)
        row = kernel(x[None], span.points)[0] if len(span) else np.empty(0)
        coefficients = span.coefficients(row)
        span = span.grown(x, t, row, 1.0, coefficients, 1.0 - row @ coefficients)
        np.testing.assert_allclose(span.inverse @ kernel(span.points, span.points), np.eye(len(span)), atol=1e-8)
    distances = span.distances()
    for place in range(12):
        others = np.delete(np.arange(12), place)
        gram, row = span.gram[np.ix_(others, others)], span.gram[place, others]
        assert distances[place] == pytest.approx(1 - row @ np.linalg.solve(gram, row))
    assert moved(np.array([1.0, 2.0, 3.0]), 1, np.array([10.0, 20.0, 30.0])).tolist() == [21.0, 43.0, 60.0]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_distances_and_groups_by_kernel_values(budget):
    X, kernel = rows(), Gaussian(0.4)
    model = KernelKMeans(3, kernel, budget, random_state=0).fit(X)
    stored, centres = model.support_vectors_, model.dual_coef_
    wanted = 1 - 2 * kernel(X, stored) @ centres + np.diag(centres.T @ kernel(stored, stored) @ centres)
    np.testing.assert_allclose(model.transform(X) ** 2, wanted, atol=1e-8)
    assert model.predict(X).tolist() == wanted.argmin(axis=1).tolist()
    assert model.cluster_weights_.sum() == pytest.approx(150)
    assert set(model.predict(X).tolist()) == {0, 1, 2}


# ---- manners ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KernelPCA, KernelKMeans])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_however_the_stream_is_cut_and_saved(kind, budget, tmp_path):
    X = rows()
    made = lambda: kind(3, Gaussian(0.4), budget, 0.99, **({"random_state": 4} if kind is KernelKMeans else {}))  # noqa: E731
    whole, cut, single = made(), made(), made()
    distances = whole.prequential(X)
    parts = []
    for a, b in ((0, 1), (1, 60), (60, 61), (61, 150)):
        parts.append(cut.prequential(X[a:b]))
        cut.save(tmp_path / "model")
        cut = gristmill.load(tmp_path / "model")
    for x in X:
        single.learn_one(x)
    np.testing.assert_array_equal(np.concatenate(parts), distances)
    for other in (cut, single):
        np.testing.assert_array_equal(other.transform(X), whole.transform(X))
        assert other.memory_bytes_ == whole.memory_bytes_
    np.testing.assert_array_equal(np.vstack([whole.transform(x[None]) for x in X]), whole.transform(X))


@pytest.mark.parametrize("kind", [KernelPCA, KernelKMeans])
def test_memory_is_bounded_and_drift_is_followed(kind):
    X = rows(400)
    model = kind(2, Gaussian(0.4), Merge(20), decay=0.98).fit(X)
    size = model.memory_bytes_
    model.partial_fit(X + 30.0)
    assert model.memory_bytes_ == size
    assert model.n_support_ == 20
    assert (model.support_vectors_[:, 0] > 15).mean() > 0.8
    fixed = kind(2, Gaussian(0.4), Project(0.1, 20)).fit(X).partial_fit(X + 30.0)
    assert fixed.support_vectors_.max() < 15


@pytest.mark.parametrize("kind", [KernelPCA, KernelKMeans])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": lambda a, b: 1.0}, "must be a kernel of gristmill"),
        ({"kernel": PythonKernel(lambda a, b: 1.0)}, "must be a kernel of gristmill"),
        ({"budget": DropOldest(5)}, "budget must be Merge or Project"),
        ({"budget": Merge("1 MB")}, "size in bytes"),
        ({"decay": 0.0}, "decay must be a number in"),
        ({"decay": 1.5}, "decay must be a number in"),
    ],
)
def test_parts_that_make_no_sense(kind, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kind(**given).fit(rows(9))
    with pytest.raises(ValueError, match="must be"):
        kind(0).fit(rows(9))


@pytest.mark.parametrize("kind", [KernelPCA, KernelKMeans])
def test_bad_rows_change_nothing(kind):
    X = rows(40)
    model = kind(2, Gaussian(0.4), Merge(10)).fit(X)
    before = model.to_bytes()
    for bad, message in ((np.nan, "row 3, column 1 is nan"), (1e200, "row 3")):
        broken = X.copy()
        broken[3, 1] = bad
        for verb in (model.partial_fit, model.transform):
            with pytest.raises(ValueError, match=message):
                verb(broken)
    assert model.to_bytes() == before


def test_few_samples():
    model = KernelKMeans(8, Gaussian(1.0)).fit([[0.0, 0.0], [0.0, 0.0]])
    assert model.predict([[1.0, 1.0]]).tolist() == [0]
    assert np.isinf(model.transform([[1.0, 1.0]])[0, 1:]).all()
    components = KernelPCA(5, Gaussian(1.0)).fit([[0.0], [1.0]])
    assert components.explained_variance_[1:].tolist() == pytest.approx([0.0] * 4, abs=1e-12)
    assert KernelPCA(2).get_params()["budget"] is None
    assert KernelKMeans().predict_one([0.0]) is None
