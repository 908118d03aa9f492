"""Two-stage multiple kernel learning."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gristmill
from gristmill import (
    Fifo,
    Gaussian,
    KernelClassifier,
    Linear,
    Manhattan,
    Normalized,
    Polynomial,
    ReservoirX,
    TwoStageMKL,
)
from gristmill.pairwise import OnColumns, Simplex

KERNELS = [Gaussian(0.1), Gaussian(5.0), Normalized(Linear()), Normalized(Polynomial(2))]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    return rng.normal(size=(300, 4)) + np.outer(2 * y - 1, [1.5, 0, 0, 0]), y


def naive(X, y, kernels, size, rate):
    """Fifo buffer, hinge, simplex; every kernel value anew."""
    mu = np.full(len(kernels), 1 / len(kernels))
    for t in range(1, len(X)):
        stored = range(max(0, t - size), t)
        z = np.array([[k(X[t], X[j]) for k in kernels] for j in stored])
        same = np.array([1.0 if y[j] == y[t] else -1.0 for j in stored])
        active = same * (z @ mu) < 1
        gradient = -(same * active) @ z / len(z)
        mu = Simplex().project(mu - rate / np.sqrt(t + 1) * gradient)
    return mu


def test_weights_agree_with_the_naive_loop(data):
    X, y = data[0][:60], data[1][:60]
    model = TwoStageMKL(KERNELS, buffer=Fifo(7), rate=0.1).fit(X, y)
    np.testing.assert_allclose(model.weights_, naive(X, y, KERNELS, 7, 0.1), atol=1e-12)


@pytest.mark.parametrize(("constraint", "start"), [("simplex", 0.25), ("l2", 0.5)])
def test_learning_starts_from_equal_weights_on_the_border_of_the_set(data, constraint, start):
    """Of four kernels: 1/4 each in the simplex, 1/sqrt(4) each in the ball. The first event has no pair to learn from."""
    model = TwoStageMKL(KERNELS, constraint=constraint, random_state=0).partial_fit(data[0][:1], data[1][:1])
    assert model.weights_.tolist() == [start] * 4
    X, y = data
    z = np.array([kernel(X[1], X[0]) for kernel in KERNELS])
    same = 1.0 if y[0] == y[1] else -1.0
    margin = same * (z @ np.full(4, start))
    assert model.prequential(X[1:2], y[1:2])[0] == pytest.approx(max(0.0, 1.0 - margin))


def test_one_step_in_the_ball_by_hand(data):
    X, y = data[0][:2], data[1][:2]
    model = TwoStageMKL(KERNELS, constraint="l2", rate=0.1).fit(X, y)
    z = np.array([kernel(X[1], X[0]) for kernel in KERNELS])
    same = 1.0 if y[0] == y[1] else -1.0
    mu = np.full(4, 0.5)
    if same * (z @ mu) < 1:
        mu = mu + 0.1 / np.sqrt(2) * same * z
    mu = np.maximum(mu, 0.0)
    np.testing.assert_allclose(model.weights_, mu / max(1.0, np.linalg.norm(mu)), atol=1e-12)


@pytest.mark.parametrize("constraint", ["simplex", "l2"])
def test_however_the_stream_is_cut_the_weights_are_the_same(data, constraint, tmp_path):
    X, y = data
    make = lambda: TwoStageMKL(  # noqa: E731
        KERNELS,
        [None, (0, 1), None, (2, 3)],
        constraint=constraint,
        buffer=ReservoirX(11),
        rate=0.1,
        random_state=0,
    )
    whole = make().fit(X, y)
    mu = whole.weights_
    assert mu.min() >= 0
    assert mu.sum() == pytest.approx(1.0) if constraint == "simplex" else np.linalg.norm(mu) <= 1 + 1e-12
    chunks = make()
    for first, last in ((0, 1), (1, 14), (14, 200)):
        chunks.partial_fit(X[first:last], y[first:last])
    chunks.save(tmp_path / "m.safetensors")
    chunks = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "m.safetensors")))
    for x, label in zip(X[200:], y[200:], strict=True):
        chunks.learn_one(x, label)
    assert chunks.weights_.tolist() == mu.tolist()
    assert chunks.buffer_ids_.tolist() == whole.buffer_ids_.tolist()


def test_the_kernel_serves_everywhere(data):
    from sklearn.svm import SVC

    X, y = data
    for columns in (None, [None, (0, 1), None, None]):
        model = TwoStageMKL(KERNELS, columns, constraint="l2", random_state=0).fit(X, y)
        kernel = model.kernel_
        views = [k if c is None else OnColumns(k, c) for k, c in zip(KERNELS, columns or [None] * 4, strict=True)]
        expected = sum(w * k(X) for w, k in zip(model.weights_, views, strict=True))
        np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
        assert kernel(X[0], X[1]) == pytest.approx(expected[0, 1])
        np.testing.assert_allclose(kernel.diagonal(X), expected.diagonal(), atol=1e-12)
        assert SVC(kernel=kernel).fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.85
        learner = KernelClassifier(kernel).fit(X[:60], y[:60])
        assert learner.score(X[60:120], y[60:120]) > 0.8
        assert "Gaussian(gamma=0.1)" in repr(kernel)


def test_a_good_kernel_gets_the_weight(data):
    X, y = data
    model = TwoStageMKL([Gaussian(1000.0), Normalized(Linear())], [None, (0,)], random_state=0).fit(X, y)
    assert model.weights_[1] > 0.9


def test_bad_input(data):
    X, y = data
    with pytest.raises(ValueError, match="at least one kernel"):
        TwoStageMKL([]).fit(X, y)
    with pytest.raises(ValueError, match="one entry a kernel, got 1 for 4"):
        TwoStageMKL(KERNELS, [(0,)]).fit(X, y)
    with pytest.raises(ValueError, match="column 9 is asked for, but X has 4 features"):
        TwoStageMKL(KERNELS[:1], [(9,)]).fit(X, y)
    with pytest.raises(ValueError, match="distinct whole numbers"):
        OnColumns(Linear(), (0, 0))
    with pytest.raises(TypeError, match="constraint must be one of"):
        TwoStageMKL(KERNELS, constraint="ball").fit(X, y)
    with pytest.warns(UserWarning, match="Manhattan.*not positive definite"):
        TwoStageMKL([Manhattan()]).fit(X, y)
    model = TwoStageMKL(KERNELS, random_state=0).fit(X, y)
    before = model.weights_.tolist(), model.n_seen_
    bad = X.copy()
    bad[150, 1] = np.inf
    with pytest.raises(ValueError, match="row"):
        model.partial_fit(bad, y)
    assert (model.weights_.tolist(), model.n_seen_) == before
