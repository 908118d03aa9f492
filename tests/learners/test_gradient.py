"""`gradient`: d f / d x of every kernel learner, of additive trees and of maps, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.kernel_approximation import RBFSampler

from gristmill import (
    SGD,
    Additive,
    DropOldest,
    Exponential,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Manhattan,
    Merge,
    Normalized,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Prepared,
    Project,
    RandomMaclaurin,
    Sigmoid,
    Spline,
    Squared,
    SquaredEuclidean,
    Unbounded,
    Vovk,
)
from gristmill.features import Compose, FeatureClassifier, FeatureRegressor, HomogeneousFeatures

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.7, 0.5),
    "first degree": Polynomial(1, 0.7, 0.5),
    "gaussian": Gaussian(0.8),
    "laplacian": Laplacian(0.6),
    "exponential": Exponential(1.3),
    "vovk": Vovk(),
    "vovk 4": Vovk(4),
    "sigmoid": Sigmoid(0.5, 0.2),
    "manhattan": Manhattan(),
    "squared euclidean": SquaredEuclidean(),
    "normalized polynomial": Normalized(Polynomial(2, 0.5, 1.0)),
    "normalized sum": Normalized(Gaussian(0.5) + Linear() * Polynomial(2, 1.0, 1.0)),
    "normalized twice": Normalized(Normalized(Exponential(1.0)) + 0.5 * Linear()),
    "sum": Gaussian(0.5) + 2.0 * Laplacian(0.3),
    "product": Gaussian(0.5) * Polynomial(2, 0.5, 1.0),
    "product with a distance": Laplacian(0.4) * (Linear() + Gaussian(0.2)),
    "much of all": 0.3 * (Normalized(Polynomial(2, 1.0, 1.0)) * Laplacian(0.2) + Vovk(3)) * Gaussian(0.1),
}


def events(n: int = 300, d: int = 7, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= 0.9 * rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]


#: stores every event, whatever k(x, x) is
STEPS = SGD(Squared(), rate=0.001)


def differences(model, X, step: float = 1e-6):
    out = []
    for j in range(X.shape[1]):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        out.append((model.decision_function(up) - model.decision_function(down)) / (2 * step))
    return np.stack(out, axis=-1)


def away_from_kinks(model, n: int = 40):
    """Events none of whose numbers is near that of a stored point."""
    X = events(n, model.n_features_in_, seed=9)[0]
    X += np.random.default_rng(3).uniform(0.01, 0.02, size=X.shape)
    stored = events(d=model.n_features_in_)[0]
    near = (np.abs(X[:, None] - stored) < 1e-5).any(axis=(1, 2))
    assert near.mean() < 0.5
    return X[~near]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_it_is_what_finite_differences_say(kernel):
    X, y = events()
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit(X, y)
    rows = away_from_kinks(model)
    found = model.gradient(rows)
    assert found.shape == rows.shape
    assert found == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_sparse_rows_in_a_dense_store_agree(kernel):
    X, y = events()
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit(X, y)
    rows = events(30, seed=4)[0]
    assert model.gradient(csr_array(rows)) == pytest.approx(model.gradient(rows), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_points_kept_sparse_agree(kernel):
    X, y = events(200)
    columns = np.arange(7) * 250
    full = np.zeros((len(X), 2000))
    full[:, columns] = X
    wide = csr_array(full)
    narrow = KernelRegressor(kernel, STEPS, Unbounded()).fit(X, y)
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit(wide, y)
    found = model.gradient(wide[:20])
    assert found.shape == (20, 2000)
    assert found[:, columns] == pytest.approx(narrow.gradient(X[:20]), rel=1e-8, abs=1e-8)
    assert not np.delete(found, columns, axis=1).any()


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_single_precision(kernel):
    X, y = events()
    X = X.astype(np.float32)
    labels = (y > 0).astype(int)
    model = KernelClassifier(kernel, Perceptron(), Unbounded()).fit(X, labels)
    double = KernelClassifier(kernel, Perceptron(), Unbounded()).fit(X.astype(np.float64), labels)
    assert np.array_equal(model.support_ids_, double.support_ids_)
    found, wanted = model.gradient(X[:40]), double.gradient(X[:40].astype(np.float64))
    assert found.dtype == np.float64
    assert found == pytest.approx(wanted, rel=2e-3, abs=2e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("budget", [DropOldest(50), Merge(50), Project(0.2)], ids=repr)
def test_three_classes_have_a_gradient_each(budget):
    X, y = events(600)
    labels = np.array(["c", "a", "b"])[np.digitize(y, [-0.3, 0.3])]
    model = KernelClassifier(Gaussian(2.0), Perceptron(), budget).fit(X, labels)
    rows = away_from_kinks(model)
    found = model.gradient(rows)
    assert found.shape == (len(rows), 3, X.shape[1])
    assert found == pytest.approx(differences(model, rows).reshape(found.shape), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("columns", [3, 16, 37])
@pytest.mark.parametrize(("kind", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
@pytest.mark.parametrize("kernel", [Gaussian(0.05), Laplacian(0.1), Gaussian(0.05) + Laplacian(0.1)], ids=repr)
def test_many_classes_are_what_a_plain_sum_gives(kernel, kind, tolerance, columns):
    """Most points are nothing to most classes, and are passed over there."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, columns)).astype(kind), rng.integers(9, size=400)
    model = KernelClassifier(kernel, PassiveAggressive(), DropOldest(150)).fit(X, y)
    assert (model.dual_coef_ == 0).mean() > 0.5
    points, rows = model.support_vectors_.astype(np.float64), X[:75].astype(np.float64)
    apart = rows[:, None] - points
    slopes = np.zeros(apart.shape)
    if "Gaussian" in repr(kernel):
        slopes += -0.1 * Gaussian(0.05)(rows, points)[:, :, None] * apart
    if "Laplacian" in repr(kernel):
        slopes += -0.1 * Laplacian(0.1)(rows, points)[:, :, None] * np.sign(apart)
    plain = np.einsum("rpj,po->roj", slopes, model.dual_coef_)
    assert model.gradient(X[:75]) == pytest.approx(plain, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize(("kind", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplacian(0.1)], ids=repr)
def test_more_points_than_are_summed_at_once(kernel, kind, tolerance, outputs):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1100, 6)).astype(kind), rng.normal(size=(1100, outputs))
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit(X, y[:, 0] if outputs == 1 else y)
    points, rows = model.support_vectors_.astype(np.float64), X[:150].astype(np.float64)
    apart = rows[:, None] - points
    slopes = (2 * apart if isinstance(kernel, Gaussian) else np.sign(apart)) * -0.1 * kernel(rows, points)[:, :, None]
    plain = np.einsum("rpj,po->roj", slopes, model.dual_coef_)
    found = model.gradient(X[:150]).reshape(plain.shape)
    assert found == pytest.approx(plain, rel=tolerance, abs=tolerance * np.abs(plain).max())


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_signs_of_tiny_differences_and_of_none(kind):
    tiny = np.finfo(kind).smallest_subnormal
    numbers = np.array(
        [0.0, -0.0, tiny, -tiny, 3 * tiny, 1.0, np.nextafter(kind(1), kind(2)), -1.0, 2.0, -0.5], dtype=kind
    )
    points = np.stack([numbers, numbers[::-1], np.roll(numbers, 3), numbers, numbers], axis=1)
    model = KernelRegressor(Manhattan(), STEPS, Unbounded()).fit(points, np.linspace(1.0, 2.0, len(points)))
    coefs = model.dual_coef_[:, 0]
    stored = model.support_vectors_
    assert len(stored) == len(points)
    signs = (points[:, None] > stored).astype(float) - (points[:, None] < stored)
    plain = -np.einsum("rpj,p->rj", signs, coefs)
    assert model.gradient(points) == pytest.approx(plain, rel=1e-5, abs=1e-6 * np.abs(coefs).sum())


@pytest.mark.parametrize("labels", [("no", "yes"), ("yes", "no")])
def test_two_classes_have_one_with_the_sign_of_the_scores(labels):
    X, y = events()
    model = KernelClassifier(Gaussian(2.0), Perceptron()).fit(X, np.where(y > 0, *labels))
    rows = away_from_kinks(model)
    assert model.gradient(rows) == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)


def test_of_the_mean_of_all_hypotheses():
    X, y = events()
    model = KernelClassifier(Gaussian(2.0), Perceptron(), Unbounded(), average=True).fit(X, y > 0)
    rows = away_from_kinks(model)
    assert model.gradient(rows) == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)


def test_of_a_novelty_detector():
    X, _ = events()
    model = KernelNovelty(Gaussian(2.0)).fit(X)
    rows = away_from_kinks(model)
    assert model.gradient(rows) == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=repr)
def test_rows_alone_and_together_agree_bit_for_bit(kernel):
    X, y = events(500, 13)
    model = KernelRegressor(kernel, PassiveAggressive(), Unbounded()).fit(X, y)
    together = model.gradient(X[:101])
    assert np.array_equal(np.vstack([model.gradient(X[i : i + 1]) for i in range(101)]), together)


def test_at_a_kink_the_slope_is_the_mean_of_both_sides():
    model = KernelRegressor(Laplacian(1.0), PassiveAggressive(), Unbounded()).fit([[0.5, 0.0]], [1.0])
    assert model.gradient([[0.5, 0.0]]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_behind_a_scaling_it_is_by_the_raw_column(scale):
    X, y = events(600)
    X = X * [1.0, 100.0, 1e-2, 1.0, 1.0, 5.0, 1.0] + 3.0
    model = Prepared(KernelRegressor(Gaussian(0.2), PassiveAggressive(), DropOldest(100)), scale=scale).fit(X, y)
    rows = X[:20]
    wanted = []
    for j, size in enumerate(X.std(axis=0) * 1e-4):
        shift = np.zeros(7)
        shift[j] = size
        wanted.append((model.predict(rows + shift) - model.predict(rows - shift)) / (2 * size))
    assert model.gradient(rows) == pytest.approx(np.stack(wanted, axis=1), rel=1e-4, abs=1e-5)


# ---- additive trees ----------------------------------------------------------------------------------------------------

ADDITIVE = {
    "laplacian": Additive(Laplacian(1.3)),
    "steps": Additive(Spline(0)),
    "spline": Additive(Spline()),
    "second order": Additive(Spline(2)),
    "third order": Additive(Spline(3)),
    "pairs": Additive(Spline(), columns=[0, 1]) + 0.5 * Additive(Laplacian(2.0), columns=[2, 5]),
    "products": Additive(Spline(), products=[(0, 1), (2, 2)]),
}


@pytest.mark.parametrize("kernel", ADDITIVE.values(), ids=ADDITIVE)
def test_additive_trees_agree_with_finite_differences(kernel):
    X, y = events(400)
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit(np.abs(X), y)
    rows = np.abs(events(60, seed=9)[0]) + 0.0123
    rows = rows[(np.abs(rows[:, None] - np.abs(X)) > 1e-5).all(axis=(1, 2))]
    found = model.gradient(rows)
    assert len(rows) > 20
    assert np.abs(found).max() > 0
    assert found == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)
    assert np.array_equal(model.compile().gradient(rows), found)


def test_additive_trees_have_a_gradient_a_class_and_beyond_all_points():
    X, y = events(600)
    labels = np.array(["c", "a", "b"])[np.digitize(y, [-0.3, 0.3])]
    model = KernelClassifier(Additive(Laplacian(2.0)), Perceptron(), DropOldest(100)).fit(X, labels)
    rows = np.vstack([events(60, seed=9)[0] + 0.0123, np.full((1, 7), 3.0), np.full((1, 7), -3.0)])
    rows = rows[(np.abs(rows[:, None] - X) > 1e-5).all(axis=(1, 2))]
    assert len(rows) > 20
    found = model.gradient(rows)
    assert found.shape == (len(rows), 3, 7)
    assert found == pytest.approx(differences(model, rows).reshape(found.shape), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("kernel", "slope"), [(Additive(Laplacian(1.0)), 0.0), (Additive(Spline(0)), 0.5)], ids=repr)
def test_at_a_kink_of_a_tree_the_slope_is_the_mean_of_both_sides(kernel, slope):
    model = KernelRegressor(kernel, STEPS, Unbounded()).fit([[0.5, 0.25]], [1.0])
    coefficient = model.dual_coef_[0, 0]
    assert coefficient > 0
    assert model.gradient([[0.5, 0.25]]) == pytest.approx(np.full((1, 2), slope * coefficient))


def test_a_missing_column_of_a_tree_has_no_slope():
    X, y = events(300)
    model = KernelRegressor(Additive(Laplacian(1.0), missing="skip"), STEPS, Unbounded()).fit(X, y)
    rows = away_from_kinks(model)[:5]
    gaps = rows.copy()
    gaps[:, 2] = np.nan
    found, whole = model.gradient(gaps), model.gradient(rows)
    assert not found[:, 2].any()
    assert np.array_equal(np.delete(found, 2, axis=1), np.delete(whole, 2, axis=1))


# ---- explicit weights through maps -------------------------------------------------------------------------------------

MAPS = {
    "polynomial": RandomMaclaurin(Polynomial(3, coef0=0.5), 300, random_state=0),
    "real signs": RandomMaclaurin(Polynomial(3, coef0=0.5), 300, signs="real", random_state=0),
    "low order": RandomMaclaurin(Exponential(1.0), 200, exact_low_order=True, random_state=0),
    "structured": RandomMaclaurin(Polynomial(4), 300, structured=True, random_state=0),
    "structured, real": RandomMaclaurin(Polynomial(4), 300, structured=True, signs="real", random_state=0),
    "first degree": RandomMaclaurin(Polynomial(1), 30, exact_low_order=True, random_state=0),
    "of a gaussian": RandomMaclaurin(Compose(Polynomial(2), Gaussian(0.5)), 200, random_state=0),
    "of a map": RandomMaclaurin(Compose(Exponential(1.0), Polynomial(2)), 200, random_state=0),
}


@pytest.mark.parametrize("map_", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("average", [False, True])
def test_maps_agree_with_finite_differences(map_, average):
    X, y = events(300)
    model = FeatureRegressor(map_, SGD(Squared(), rate=0.05), average=average).fit(X, y)
    rows = events(40, seed=3)[0]
    found = model.gradient(rows)
    assert np.abs(found).max() > 0
    assert found == pytest.approx(differences(model, rows), rel=1e-5, abs=1e-6)
    assert model.gradient(csr_array(rows)) == pytest.approx(found, rel=1e-9, abs=1e-12)
    assert np.array_equal(np.vstack([model.gradient(rows[i : i + 1]) for i in range(40)]), found)


@pytest.mark.parametrize("name", ["polynomial", "structured", "low order"])
def test_maps_in_single_precision(name):
    X, y = events(300)
    model = FeatureRegressor(MAPS[name], SGD(Squared(), rate=0.05)).fit(X, y)
    single = FeatureRegressor(MAPS[name], SGD(Squared(), rate=0.05)).fit(X.astype(np.float32), y)
    wanted = model.gradient(X[:40])
    assert single.gradient(X[:40].astype(np.float32)) == pytest.approx(
        wanted, rel=2e-3, abs=1e-3 * np.abs(wanted).max()
    )


def test_maps_have_a_gradient_a_class():
    X, y = events(600)
    labels = np.array(["c", "a", "b"])[np.digitize(y, [-0.3, 0.3])]
    model = FeatureClassifier(MAPS["polynomial"], Perceptron()).fit(X, labels)
    found = model.gradient(X[:30])
    assert found.shape == (30, 3, 7)
    assert found == pytest.approx(differences(model, X[:30]).reshape(found.shape), rel=1e-5, abs=1e-6)


def test_homogeneous_features_have_one_above_zero():
    X, y = events(300)
    X = np.abs(X) + 0.05
    map_ = RandomMaclaurin(Compose(Polynomial(2), HomogeneousFeatures("intersection")), 100, random_state=0)
    model = FeatureRegressor(map_, SGD(Squared(), rate=0.001)).fit(X, y)
    assert model.gradient(X[:20]) == pytest.approx(differences(model, X[:20], 1e-7), rel=1e-4, abs=1e-5)
    X[3, 2] = 0.0
    with pytest.raises(ValueError, match="row 3, column 2 is 0, where HomogeneousFeatures"):
        model.gradient(X[:20])


def test_refused_by_name():
    X, y = events(100)
    sampled = FeatureRegressor(RBFSampler(n_components=20, random_state=0)).fit(X, y)
    with pytest.raises(TypeError, match=r"RBFSampler.* map of another library"):
        sampled.gradient(X)
    inside = RandomMaclaurin(Compose(Polynomial(2), RBFSampler(random_state=0)), 30, random_state=0)
    with pytest.raises(TypeError, match=r"RBFSampler.* map of another library"):
        FeatureRegressor(inside).fit(X, y).gradient(X)
    mapped = FeatureRegressor(MAPS["polynomial"]).fit(X, y)
    with pytest.raises(ValueError, match=r"NaN|nan"):
        mapped.gradient(np.full((1, 7), np.nan))
    with pytest.raises(ValueError, match="overflow"):
        mapped.gradient(np.full((1, 7), 1e200))
    python = KernelRegressor(lambda a, b: float(np.dot(a, b))).fit(list(X), y)
    with pytest.raises(ValueError, match="written in Python has no gradient"):
        python.gradient(list(X))
    model = KernelRegressor(Gaussian(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="7 features"):
        model.gradient(X[:, :3])
    with pytest.raises(ValueError, match=r"NaN|nan"):
        model.gradient(np.full((1, 7), np.nan))
