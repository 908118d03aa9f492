"""Metric and similarity against the plain loop in Python, and the generic learner itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gristmill
from gristmill import Fifo, Hinge, Logistic, PairwiseMetric, PairwiseSimilarity, Reservoir, ReservoirX
from gristmill.pairwise import (
    AlignmentPairs,
    AUCPairs,
    ExponentialLoss,
    GoodnessPairs,
    L2Ball,
    MetricPairs,
    PairwiseLearner,
    PSDCone,
    Simplex,
    SquaredHinge,
)
from gristmill.pairwise.projections import MATRIX_NORMS

LOSSES = [Hinge(), SquaredHinge(0.7), Logistic()]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    return rng.normal(size=(120, 5)) + 1.5 * rng.normal(size=(3, 5))[y], y


@pytest.mark.parametrize("phi", [*LOSSES, ExponentialLoss()], ids=str)
@pytest.mark.parametrize("make", [AUCPairs, MetricPairs, AlignmentPairs, GoodnessPairs])
def test_gradients_by_finite_differences(make, phi):
    rng = np.random.default_rng(3)
    loss = make(phi)
    w = rng.normal(size=loss.shape(4)) * 0.3
    x, others, labels = rng.normal(size=4), rng.normal(size=(6, 4)), rng.integers(2, size=6).astype(float)
    gradient = loss.gradient(w, x, 1.0, others, labels)
    for index in np.ndindex(*w.shape):
        step = np.zeros_like(w)
        step[index] = 1e-6
        up, down = loss.value(w + step, x, 1.0, others, labels), loss.value(w - step, x, 1.0, others, labels)
        assert gradient[index] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_goodness_is_never_above_alignment():
    """Jensen: phi of the mean is at most the mean of phi."""
    rng = np.random.default_rng(0)
    for phi in (*LOSSES, ExponentialLoss()):
        for _ in range(20):
            args = (
                rng.normal(size=(3, 3)),
                rng.normal(size=3),
                1.0,
                rng.normal(size=(5, 3)),
                rng.integers(2, size=5),
            )
            assert GoodnessPairs(phi).value(*args) <= AlignmentPairs(phi).value(*args) + 1e-12


def test_metric_loss_is_convex_and_the_printed_square_is_not():
    """With M^2 for M, as one place of the thesis prints it, the loss of a pair of two classes has a bump."""
    rng = np.random.default_rng(0)
    loss, worst = MetricPairs(Hinge()), 0.0
    for _ in range(200):
        a, b = (m @ m.T for m in rng.normal(size=(2, 2, 2)))
        x, other, label = rng.normal(size=2), rng.normal(size=(1, 2)), rng.integers(2, size=1).astype(float)
        values = [loss.value(w, x, 1.0, other, label) for w in (a, (a + b) / 2, b)]
        assert values[1] <= (values[0] + values[2]) / 2 + 1e-12
        d = x - other[0]
        squares = [max(0.0, 1 + (1 - (d @ w @ d) ** 2)) for w in (a, (a + b) / 2, b)]
        worst = max(worst, squares[1] - (squares[0] + squares[2]) / 2)
    assert worst > 0.1


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("norm", list(MATRIX_NORMS))
@pytest.mark.parametrize("radius", [None, 0.3])
def test_metric_agrees_with_the_plain_loop(data, loss, norm, radius):
    X, y = data
    set_ = PSDCone() if radius is None else MATRIX_NORMS[norm](radius, psd=True)
    common = {"buffer": ReservoirX(9), "rate": 0.1, "random_state": 2}
    model = PairwiseMetric(loss, norm=norm, radius=radius, init="zero", **common).fit(X, y)
    twin = PairwiseLearner(MetricPairs(loss), set_, **common).fit(X, y)
    np.testing.assert_allclose(model.metric_, twin.weights_, atol=1e-8)
    assert np.linalg.eigvalsh(model.metric_).min() >= -1e-10
    np.testing.assert_array_equal(model.metric_, model.metric_.T)


@pytest.mark.parametrize(
    "how", [{"reg": 0.5}, {"average": True}, {"buffer": Fifo(7)}, {"buffer": Reservoir(7)}], ids=str
)
def test_metric_options_agree_with_the_plain_loop(data, how):
    X, y = data
    common = {"buffer": ReservoirX(9), "rate": 0.1, "random_state": 2, **how}
    model = PairwiseMetric(init="zero", **common).fit(X, y)
    twin = PairwiseLearner(MetricPairs(), PSDCone(), **common)
    losses = twin.prequential(X, y)
    np.testing.assert_allclose(model.metric_, twin.weights_, atol=1e-9)
    np.testing.assert_allclose(PairwiseMetric(init="zero", **common).prequential(X, y), losses, atol=1e-9)


@pytest.mark.parametrize("psd", [True, False])
@pytest.mark.parametrize(("goal", "make"), [("alignment", AlignmentPairs), ("goodness", GoodnessPairs)])
@pytest.mark.parametrize("norm", [None, *MATRIX_NORMS])
def test_similarity_agrees_with_the_plain_loop(data, psd, goal, make, norm):
    X, y = data
    set_ = (PSDCone() if psd else None) if norm is None else MATRIX_NORMS[norm](0.3, psd=psd)
    how = {} if norm is None else {"norm": norm, "radius": 0.3}
    common = {"buffer": ReservoirX(9), "rate": 0.1, "random_state": 2}
    model = PairwiseSimilarity(psd=psd, goal=goal, **how, **common).fit(X, y)
    twin = PairwiseLearner(make(), set_, **common).fit(X, y)
    np.testing.assert_allclose(model.matrix_, twin.weights_, atol=1e-8)


def test_inside_the_cone_no_eigenvalues_are_asked_for(data):
    X, y = data
    model = PairwiseMetric(rate=1e-4).fit(X, y)
    assert model.n_projections_ == 0
    border = PairwiseMetric(rate=1.0).fit(X, y)
    assert 0 < border.n_projections_ <= len(X)


def test_cone_is_kept_over_a_long_run():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=3000)
    X = rng.normal(size=(3000, 12)) + rng.normal(size=(4, 12))[y]
    model = PairwiseMetric(buffer=ReservoirX(20), rate=0.3, random_state=0)
    for first in range(0, 3000, 250):
        model.partial_fit(X[first : first + 250], y[first : first + 250])
        assert np.linalg.eigvalsh(model.metric_).min() >= -1e-10


def test_metric_turns_away_from_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1500)
    X = rng.normal(size=(1500, 12))
    X[:, 0] += 3.0 * y
    model = PairwiseMetric(rate=1.0, random_state=0).fit(X / np.sqrt(12), y)
    weights = model.metric_.diagonal()
    assert weights[0] > 5 * weights[1:].max()


def estimators():
    yield PairwiseMetric(buffer=ReservoirX(9), rate=0.1, random_state=2)
    yield PairwiseMetric(Logistic(), Fifo(9), rate=0.1, norm="trace", radius=1.0, average=True)
    yield PairwiseSimilarity(buffer=Reservoir(9), random_state=2, psd=True, reg=0.1)
    yield PairwiseSimilarity(goal="goodness", norm="group", radius=1.0, random_state=3)
    yield PairwiseLearner(AUCPairs(), L2Ball(1.0), random_state=4, average=True)


def shown(model):
    name = {PairwiseMetric: "metric_", PairwiseSimilarity: "matrix_", PairwiseLearner: "weights_"}[type(model)]
    return getattr(model, name).tolist(), model.buffer_ids_.tolist(), model.n_seen_, model.n_pairs_


@pytest.mark.parametrize("model", list(estimators()), ids=str)
def test_however_the_stream_is_cut_the_model_is_the_same(data, model, tmp_path):
    X, y = data
    expected = shown(model.fit(X, y))
    chunks = type(model)(**model.get_params(deep=False))
    for first, last in ((0, 1), (1, 30), (30, 31), (31, 90)):
        chunks.partial_fit(X[first:last], y[first:last])
    chunks.save(tmp_path / "m.safetensors")
    chunks = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "m.safetensors")))
    for x, label in zip(X[90:], y[90:], strict=True):
        chunks.learn_one(x, label)
    assert shown(chunks) == expected
    assert chunks.memory_bytes_ > 0


def test_metric_as_users_of_metric_learn_expect(data):
    X, y = data
    model = PairwiseMetric(rate=0.1, random_state=0).fit(X, y)
    L, W = model.components_, model.metric_
    np.testing.assert_allclose(L.T @ L, W, atol=1e-12)
    pairs = np.stack([X[:10], X[10:20]], axis=1)
    distances = model.pair_distance(pairs)
    np.testing.assert_allclose(distances, np.linalg.norm(model.transform(X[:10]) - model.transform(X[10:20]), axis=1))
    np.testing.assert_allclose([model.get_metric()(a, b) for a, b in pairs], distances)
    np.testing.assert_array_equal(model.pair_score(pairs), -distances)
    np.testing.assert_array_equal(model.get_mahalanobis_matrix(), W)
    assert model.get_feature_names_out().shape == (5,)


def test_similarity_of_pairs_and_tables(data):
    X, y = data
    model = PairwiseSimilarity(random_state=0).fit(X, y)
    K = model.similarity(X[:4], X[4:7])
    assert K.shape == (4, 3)
    assert K[1, 2] == pytest.approx(model.get_similarity()(X[1], X[6]))
    assert model.pair_score(np.stack([X[:1], X[4:5]], axis=1))[0] == pytest.approx(K[0, 0])


class BrokenLoss:
    def __init__(self, answer):
        self.answer = answer

    def shape(self, width):
        return (width,)

    def value(self, w, x, y, others, labels):
        return 0.0

    def gradient(self, w, x, y, others, labels):
        return np.ones_like(w) if len(others) < 20 else self.answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [(np.ones(3), r"shape \(5,\).*got \(3,\)"), (np.full(5, np.nan), "not finite"), (1.0, "shape")],
)
def test_a_loss_with_a_bad_gradient_changes_nothing(data, answer, words):
    X, y = data
    model = PairwiseLearner(BrokenLoss(answer)).fit(X[:10], y[:10])
    before = shown(model)
    with pytest.raises(ValueError, match=r"row 10.*" + words):
        model.partial_fit(X[10:40], y[10:40])
    assert shown(model) == before
    with pytest.raises(TypeError, match="holds no code"):
        model.save("nowhere.safetensors")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PairwiseMetric(norm="nuclear"), "norm must be one of"),
        (PairwiseMetric(init="random"), "init must be one of"),
        (PairwiseMetric(rate=-1.0), "rate must be a number > 0"),
        (PairwiseMetric(radius=0.0), "radius must be a number > 0 or None"),
        (PairwiseSimilarity(goal="best"), "goal must be one of"),
        (PairwiseSimilarity(psd="yes"), "psd must be True or False"),
        (PairwiseLearner(loss=Hinge()), "must have the methods shape, value and gradient"),
        (PairwiseLearner(projection="ball"), "projection must be a set"),
        (PairwiseLearner(MetricPairs(), Simplex()), "a set of a vector"),
    ],
)
def test_parameters_out_of_range(data, model, words):
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(*data)
    assert not hasattr(model, "n_features_in_")


def test_bad_rows_change_nothing(data):
    X, y = data
    bad = X.copy()
    bad[7, 2] = np.nan
    for model in (
        PairwiseMetric(random_state=0),
        PairwiseSimilarity(random_state=0),
        PairwiseLearner(random_state=0),
    ):
        model.fit(X, y)
        before = shown(model)
        with pytest.raises(ValueError, match="row 7, column 2"):
            model.partial_fit(bad, y)
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(X[:, :3], y)
        assert shown(model) == before


def test_divergence_is_an_error_and_undone(data):
    X, y = data
    model = PairwiseMetric(ExponentialLoss(), rate=1.0).fit(X[:3], y[:3])
    before = shown(model)
    with pytest.raises(ValueError, match="smaller rate"):
        model.partial_fit(1e80 * X, y)
    assert shown(model) == before


def test_regret_of_olp_stays_below_its_bound():
    """Lemma 6.24, eta = D/(sqrt2 L): the losses exceed those of any w by at most sqrt2 L D sqrt(n-1)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=300))
    L, D = 2.0, 2.0  # |x - x'| <= 2, a ball of radius 1
    model = PairwiseLearner(AUCPairs(), L2Ball(1.0), ReservoirX(20), rate=D / (np.sqrt(2) * L), random_state=0)
    seen, ids = [], []
    for i in range(300):
        if i:
            ids.append(model.buffer_ids_)
        seen.append(model.prequential(X[i : i + 1], y[i : i + 1])[0])
    candidates = rng.normal(size=(40, 3))
    candidates /= np.maximum(1.0, np.linalg.norm(candidates, axis=1, keepdims=True))
    best = min(sum(AUCPairs().value(w, X[t], y[t], X[b], y[b]) for t, b in enumerate(ids, 1)) for w in candidates)
    assert sum(seen) - best <= gristmill.theory.olp_regret_bound(300, lipschitz=L, diameter=D)
