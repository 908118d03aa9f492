"""Dense and sparse regression: the least objective, the greedy steps, and what is kept."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVR

from gristmill import Gaussian, LandmarkRegressor, Manhattan, Sigmoid, SparseLandmarkRegressor
from gristmill.similarity.regression import fit_tube
from gristmill.similarity.solvers.greedy import (
    RoundedTube,
    SquaredLoss,
    corrective_squared,
    corrective_tube,
    forward_greedy,
    steadied,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.05 * RNG.normal(size=150)


def tube_objective(w, b, values, targets, C, epsilon):
    return 0.5 * w @ w + C * np.maximum(np.abs(values @ w + b - targets) - epsilon, 0).sum()


# ---- RegLand -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_objective_is_that_of_a_brute_force_solver(epsilon):
    values = RNG.normal(size=(25, 3))
    targets = values @ [1.0, -2.0, 0.5] + 0.3 * RNG.standard_t(3, size=25)
    w, b = fit_tube(values, targets, 2.0, epsilon)
    least = tube_objective(w, b, values, targets, 2.0, epsilon)
    # Variables w, b and one slack an object, held above both sides of the tube.
    signed = np.vstack([np.column_stack([s * values, s * np.ones(25), np.eye(25)]) for s in (1, -1)])
    limits = np.concatenate([targets - epsilon, -targets - epsilon])
    found = minimize(
        lambda z: 0.5 * z[:3] @ z[:3] + 2.0 * z[4:].sum(), np.append(np.zeros(4), np.full(25, 9.0)),
        jac=lambda z: np.concatenate([z[:3], [0.0], np.full(25, 2.0)]), bounds=[(None, None)] * 4 + [(0,
        None)] * 25, constraints={"type": "ineq", "fun": lambda z: signed @ z - limits, "jac": lambda z:
        signed}, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert least == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_liblinear_never_finds_a_lower_objective():
    values = RNG.normal(size=(80, 5))
    targets = values @ [1.0, -2.0, 0.5, 0, 0] + 0.3 * RNG.standard_t(3, size=80)
    least = tube_objective(*fit_tube(values, targets, 2.0, 0.1), values, targets, 2.0, 0.1)
    twin = LinearSVR(C=2.0, epsilon=0.1, random_state=0).fit(values, targets)
    assert least <= tube_objective(twin.coef_, twin.intercept_[0], values, targets, 2.0, 0.1) * (1 + 1e-6)


def test_regressor_is_that_minimiser_in_the_units_of_the_targets():
    k = Sigmoid(0.3, -1.0)
    for factor, shift in ((1.0, 0.0), (1e5, 2e5)):
        y = factor * Y + shift
        model = LandmarkRegressor(k, 20, C=5.0, epsilon=0.01 * factor, random_state=0).fit(X, y)
        values = k(X, X[model.landmark_indices_]) / model.scale_
        centre = np.median(y)
        spread = np.abs(y - centre).max()
        w, b = fit_tube(values, (y - centre) / spread, 5.0, 0.01 * factor / spread)
        assert np.allclose(model.predict(X), centre + spread * (values @ w + b), atol=1e-9 * spread)


def test_the_norm_of_the_weights_grows_with_C():
    sizes = [
        np.linalg.norm(LandmarkRegressor(Gaussian(0.5), 30, C=C, random_state=0).fit(X, Y).coef_)
        for C in (0.01, 0.1, 1.0, 10.0)
    ]
    assert all(a <= b for a, b in pairwise(sizes))


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_liblinear_beneath():
    newton = LandmarkRegressor(Gaussian(0.5), 15, C=0.5, random_state=0).fit(X, Y)
    other = LandmarkRegressor(Gaussian(0.5), 15, C=0.5, solver="liblinear", random_state=0).fit(X, Y)
    assert np.allclose(newton.predict(X), other.predict(X), atol=0.1)


def test_a_manhattan_predictor_is_additive():
    """[E5.2] f(a, b) - f(a, d) - f(c, b) + f(c, d) = 0: no interaction can be learnt."""
    points = RNG.normal(size=(100, 2))
    model = LandmarkRegressor(Manhattan(), 20, random_state=0).fit(points, points[:, 0] * points[:, 1])
    f = model.predict([[0.3, 1.0], [0.3, -2.0], [-1.5, 1.0], [-1.5, -2.0]])
    assert f[0] - f[1] - f[2] + f[3] == pytest.approx(0.0, abs=1e-10)


# ---- greedy selection --------------------------------------------------------------------------------------


def test_fully_corrective_steps_against_a_plain_twin():
    features = RNG.normal(size=(60, 25)) * RNG.uniform(0.2, 2.0, size=25)
    targets = RNG.normal(size=60)
    chosen, weights, offset = corrective_squared(features, targets, 8)
    support, risk = [], []
    fitted = np.full(60, targets.mean())
    for _ in range(8):
        slope = np.abs(features.T @ (targets - fitted))
        slope[support] = -1
        support.append(int(np.argmax(slope)))
        design = np.column_stack([np.ones(60), features[:, support]])
        solution = np.linalg.lstsq(design, targets, rcond=None)[0]
        fitted = design @ solution
        risk.append(np.mean((targets - fitted) ** 2))
    assert chosen.tolist() == support
    assert np.allclose(np.append(offset, weights), solution)
    residual = targets - features[:, chosen] @ weights - offset
    assert np.abs(features[:, chosen].T @ residual).max() < 1e-10
    assert abs(residual.sum()) < 1e-10
    assert all(b <= a for a, b in pairwise(risk))


def test_a_planted_sparse_predictor_is_found():
    points = np.random.default_rng(1).uniform(-3, 3, size=(400, 2))
    k = Gaussian(2.0)
    planted = [5, 100, 377]
    y = k(points, points[planted]) @ [3.0, -2.0, 1.5] + 4.0
    model = SparseLandmarkRegressor(k, n_nonzero=3, n_landmarks=400, random_state=0).fit(points, y)
    assert model.landmark_indices_.tolist() == planted
    assert np.allclose(model.coef_[0] / model.scale_, [3.0, -2.0, 1.5])
    assert model.intercept_[0] == pytest.approx(4.0)
    assert np.allclose(model.predict(points), y)


@pytest.mark.parametrize("loss", [SquaredLoss(), RoundedTube(0.05, 20.0)])
def test_plain_selection_against_a_plain_twin_with_its_certificate(loss):
    features = RNG.uniform(-1, 1, size=(50, 8))
    targets = features @ [0.8, -0.5, 0, 0, 0, 0, 0, 0.2] + 0.1 * RNG.normal(size=50)
    radius = 1.0
    w, gap, steps = forward_greedy(features, targets, loss, radius, 1e-12, 8, 60)
    assert steps == 60
    twin = np.zeros(8)
    bound = 4 * radius**2 * loss.smoothness * np.abs(features).max() ** 2
    for _ in range(60):
        theta = features.T @ loss.slope(features @ twin - targets) / 50
        j = int(np.argmax(np.abs(theta)))
        delta = theta @ twin + radius * np.abs(theta).max()
        eta = min(1.0, delta / bound)
        corner = np.zeros(8)
        corner[j] = -np.sign(theta[j]) * radius
        twin = (1 - eta) * twin + eta * corner
    assert np.allclose(w, twin)
    assert np.abs(w).sum() <= radius + 1e-12

    def risk(v):
        return loss.value(features @ v - targets).mean()

    halves = minimize(
        lambda z: risk(z[:8] - z[8:]), np.full(16, 0.01), bounds=[(0, None)] * 16,
        constraints={"type": "ineq", "fun": lambda z: radius - z.sum()}, options={"maxiter": 500},
    )  # fmt: skip
    assert gap >= risk(w) - halves.fun - 1e-9
    assert risk(w) >= halves.fun - 1e-6


def test_plain_selection_stops_within_its_number_of_landmarks():
    model = SparseLandmarkRegressor(
        Gaussian(0.5), n_nonzero=4, n_landmarks=100, method="plain", radius=5.0, tol=1e-9, random_state=0
    ).fit(X, Y)
    assert 1 <= model.n_landmarks_ <= 4
    assert np.abs(model.coef_).sum() <= 5.0 * np.abs(Y - Y.mean()).max() + 1e-9
    assert model.gap_ > 0


def test_corrective_tube_ends_where_the_gradient_vanishes_on_its_support():
    features = RNG.normal(size=(80, 20))
    targets = features[:, [3, 11]] @ [1.0, -1.0] + 0.5
    loss = RoundedTube(0.01, 50.0)
    chosen, weights, offset = corrective_tube(features, targets, loss, 2)
    assert sorted(chosen.tolist()) == [3, 11]
    slope = loss.slope(features[:, chosen] @ weights + offset - targets)
    assert np.abs(features[:, chosen].T @ slope).max() < 1e-4
    assert abs(slope.sum()) < 1e-4


@pytest.mark.parametrize("loss", [SquaredLoss(), RoundedTube(0.05, 20.0)])
def test_steadied_weights_have_the_least_loss_plus_ridge(loss):
    features = RNG.normal(size=(60, 4))
    targets = features @ [1.0, -1.0, 0.0, 0.5] + 2.0 + 0.3 * RNG.normal(size=60)
    w, b = steadied(features, targets, loss, 0.1)
    residual = loss.slope(features @ w + b - targets)
    assert np.abs(features.T @ residual / 60 + 0.2 * w).max() < 1e-6
    assert abs(residual.mean()) < 1e-6
    dense = SparseLandmarkRegressor(Gaussian(0.01), 60, 150, random_state=0).fit(X, Y)
    calm = SparseLandmarkRegressor(Gaussian(0.01), 60, 150, reg=1e-5, random_state=0).fit(X, Y)
    assert np.abs(calm.coef_).max() < 0.01 * np.abs(dense.coef_).max()


def test_the_rounded_tube_is_close_to_the_tube_and_smooth():
    residual = np.linspace(-1, 1, 2001)
    loss = RoundedTube(0.2, 25.0)
    gap = np.maximum(np.abs(residual) - 0.2, 0) - loss.value(residual)
    assert gap.min() >= -1e-15
    assert gap.max() <= 1 / 50 + 1e-15
    numeric = np.gradient(loss.value(residual), residual)
    assert np.abs(numeric - loss.slope(residual)).max() < 25.0 * 1e-3


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
@pytest.mark.parametrize("method", ["corrective", "plain"])
def test_only_the_chosen_landmarks_are_kept_and_compared_with(method, loss):
    calls = []

    def similarity(a, b):
        calls.append(1)
        return np.exp(-np.sum((a - b) ** 2))

    model = SparseLandmarkRegressor(similarity, 5, 60, method=method, loss=loss, epsilon=0.01, random_state=0)
    model.fit(X, Y)
    assert len(calls) == model.n_evaluations_ == 150 * 60
    calls.clear()
    model.predict(X[:10])
    assert len(calls) == 10 * model.n_landmarks_ <= 50
    assert len(model.landmarks_) == model.coef_.shape[1] == model.n_landmarks_


def test_nearly_dependent_and_constant_columns_do_no_harm():
    matrix = np.ones((40, 40))
    matrix[:, 1] = np.arange(40)
    matrix[:, 2] = np.arange(40) * (1 + 1e-14)
    model = SparseLandmarkRegressor("precomputed", 10, 40, random_state=0)
    model.fit(matrix, 3.0 * np.arange(40) + 1)
    assert np.isfinite(model.coef_).all()
    assert np.allclose(model.predict(matrix), 3.0 * np.arange(40) + 1)
    flat = SparseLandmarkRegressor(Gaussian(1.0), 5).fit(X, np.full(150, 7.0))
    assert np.allclose(flat.predict(X), 7.0)


def test_bad_targets_and_parameters():
    with pytest.raises(ValueError, match="row 1 is nan"):
        LandmarkRegressor().fit([[0.0], [1.0]], [0.0, np.nan])
    with pytest.raises(ValueError, match="2 objects and y 3 targets"):
        LandmarkRegressor().fit([[0.0], [1.0]], [0.0, 1.0, 2.0])
    for name, value in (("n_nonzero", 0), ("method", "omp"), ("radius", -1.0), ("loss", "huber")):
        with pytest.raises((ValueError, TypeError), match=f"{name} must be"):
            SparseLandmarkRegressor(**{name: value}).fit(X, Y)
