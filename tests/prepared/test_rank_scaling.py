"""scale="rank": maps are those of the twin, stored points follow them, wild values and heavy tails do not matter."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import rank_twin
from scipy.special import ndtri
from sklearn.base import clone

import gristmill
from gristmill import (
    Additive,
    AutoClassifier,
    Exponential,
    FeatureLearner,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    Prepared,
    RandomMaclaurin,
    _core,
    merge,
)
from gristmill.streams.rank import RankScaler


def columns(count=900, seed=0):
    """A lognormal column, one of whole numbers, one of two values, a constant one that wakes up, and one that jumps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 5))
    X[:, 0] = np.exp(3 * X[:, 0])
    X[:, 1] = rng.integers(7, size=count)
    X[:, 2] = rng.random(count) < 0.3
    X[: count // 2, 3] = 4.0
    X[2 * count // 3 :, 4] += 30.0
    return X


def curved(count, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(count, 4))
    return Z, (np.sin(2 * Z[:, 0]) + Z[:, 1] ** 2 - 0.9 > 0).astype(int)


def error(model, X, y, start):
    scores = model.prequential(X, y)
    return float(((scores >= 0) != y)[start:].mean())


# ---- the core is its twin ------------------------------------------------------------------------------------------


def test_normal_quantiles_are_right():
    shares = np.concatenate([np.linspace(0.001, 0.999, 999), 10.0 ** -np.arange(3.0, 15.0)])
    np.testing.assert_allclose(_core.normal_quantile(shares), ndtri(shares), rtol=1e-13, atol=1e-14)


def test_scaled_rows_and_renewals_are_those_of_the_twin():
    X = columns()
    scaler, twin = RankScaler(), rank_twin.Scaling(X[0])
    found = scaler.learn_transform(X)
    expected = np.array([twin.learn(x) for x in X])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert [row + 1 for row in scaler.passages] == twin.renewed
    far = np.vstack([X[:50], X[:50] * 1e6, -X[:50] * 1e6])
    np.testing.assert_allclose(scaler.transform(far), [twin.scale(x) for x in far], rtol=1e-9, atol=1e-9)
    stored = np.random.default_rng(1).normal(size=(40, 5)) * 2
    np.testing.assert_allclose(scaler._scaling.follow(stored), [twin.follow(z) for z in stored], rtol=1e-8, atol=1e-8)


def test_cuts_and_units_change_no_bit():
    X = columns()
    whole, cut = RankScaler(), RankScaler()
    expected = whole.learn_transform(X)
    parts = [cut.learn_transform(X[a:b]) for a, b in ((0, 1), (1, 17), (17, 400), (400, 900))]
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    units = 2.0 ** np.array([7, -3, 0, 12, -20])
    np.testing.assert_array_equal(RankScaler().learn_transform(X * units), expected)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.learn_transform(X), whole.learn_transform(X))


def test_a_frozen_scaling_stays():
    X = columns()
    scaler = RankScaler(warmup=100)
    scaler.learn_transform(X[:100])
    expected = scaler.transform(X)
    scaler.learn_transform(X[100:])
    np.testing.assert_array_equal(scaler.transform(X), expected)


# ---- in front of a learner -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [KernelClassifier(Laplacian(0.5), budget=Merge(60)), KernelClassifier(Gaussian(0.5))])
def test_cuts_files_and_one_by_one_give_the_same_model(model, tmp_path):
    Z, y = curved(500)
    X = np.exp(2 * Z)
    whole, cut, one = (Prepared(model, scale="rank") for _ in range(3))
    expected, found, start = whole.prequential(X, y), [], 0
    for stop in (1, 3, 70, 71, 260, 500):
        found.append(cut.prequential(X[start:stop], y[start:stop]))
        cut.save(tmp_path / "model")
        cut, start = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model"))), stop
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(cut.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(one.decision_function(X), whole.decision_function(X))


def test_stored_points_follow_the_maps():
    Z, y = curved(300)
    X = np.exp(Z)
    model = Prepared(KernelClassifier(Gaussian(0.5)), scale="rank").fit(X, y)
    ids = model.model_.support_ids_
    np.testing.assert_allclose(model.model_.support_vectors_, model.scaler_.transform(X[ids]), atol=0.35)
    last = max(model.scaler_._scaling.seen - 1, 0)
    assert last == 299


@pytest.mark.parametrize(
    "model",
    [
        KernelClassifier(Gaussian(0.5), budget=Merge(80)),
        KernelClassifier(Laplacian(0.5), average=True),
        gristmill.norma_classifier(Gaussian(0.5), 0.5, 0.01),
        gristmill.alma(Gaussian(0.5)),
        gristmill.projectron(Gaussian(0.5), tolerance=0.2),
        KernelClassifier(Additive(Laplacian(0.5))),
    ],
    ids=repr,
)
def test_stored_points_and_all_that_depends_on_them_follow_at_once(model):
    Z, y = curved(400)
    raw = np.exp(2 * Z)
    scaler = RankScaler()
    X = scaler.learn_transform(raw)
    model = clone(model).fit(X, y)
    expected = scaler._scaling.follow(np.asarray(model.support_vectors_, dtype=float))
    coefficients, ids = model.dual_coef_, model.support_ids_
    core = model._engine
    core.follow_ranks(scaler._scaling, np.arange(4), np.ones(4))
    np.testing.assert_allclose(core.points()[0][core.points()[1]], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.support_ids_, ids)
    np.testing.assert_allclose(model.dual_coef_, coefficients, rtol=1e-6, atol=1e-8)
    kernel = model.kernel_ if hasattr(model, "kernel_") else model.kernel
    gram = kernel(expected, expected)
    if not getattr(model, "average", False):  # else the coefficients are those of the average
        norm2 = np.einsum("so,st,to->", coefficients, gram, coefficients)
        np.testing.assert_allclose(core.norm2, norm2, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    new, labels = curved(300, seed=3)
    np.testing.assert_array_equal(again.prequential(new, labels), model.prequential(new, labels))


def test_weighed_points_follow_by_their_columns():
    Z, y = curved(200)
    scaler = RankScaler()
    X = scaler.learn_transform(np.exp(2 * Z))
    weights, model = np.array([2.0, 0.5, 1.0, 4.0]), KernelClassifier(Gaussian(0.2))
    model.fit(X * weights, y)
    expected = scaler._scaling.follow(np.asarray(model.support_vectors_) / weights) * weights
    model._engine.follow_ranks(scaler._scaling, np.arange(4), weights)
    points, order = model._engine.points()
    np.testing.assert_allclose(points[order], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="no such column"):
        model._engine.follow_ranks(scaler._scaling, np.array([4]), weights)


def test_heavy_tails_and_wild_values_do_not_matter():
    Z, y = curved(3000)
    learner = KernelClassifier(Laplacian(0.75), budget=Merge(300))
    clean = error(Prepared(learner, scale="rank"), Z, y, 2000)
    wild = Z.copy()
    wild[0, 0] = 1e8
    assert error(Prepared(learner, scale="rank"), wild, y, 2000) < clean + 0.03
    tails = np.exp(3 * Z)
    assert error(Prepared(learner, scale="rank"), tails, y, 2000) < clean + 0.03
    assert error(Prepared(learner), tails, y, 2000) > clean + 0.05


def test_regression_and_tables():
    Z, _ = curved(600)
    target = np.sin(Z[:, 0]) * 100
    model = Prepared(KernelRegressor(Gaussian(0.5)), scale="rank")
    off = np.abs(model.prequential(np.exp(2 * Z), target) - target)[300:].mean()
    assert off < 0.5 * np.abs(target - target.mean()).mean()
    rows = [{"a": float(z[0]), "hue": "red" if z[1] > 0 else "blue"} for z in Z]
    labels = [row["a"] > 0 for row in rows]
    table, cut = (Prepared(KernelClassifier(), scale="rank") for _ in range(2))
    table.partial_fit(rows, labels)
    for start in range(0, 600, 97):
        cut.partial_fit(rows[start : start + 97], labels[start : start + 97])
    assert table.predict(rows).tolist() == cut.predict(rows).tolist()
    assert np.mean(table.predict(rows) == labels) > 0.9


def test_bad_rows_change_nothing():
    Z, y = curved(120)
    model = Prepared(KernelClassifier(), scale="rank", missing="raise").fit(Z[:100], y[:100])
    before = model.to_bytes()
    bad = Z[100:].copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        model.partial_fit(bad, y[100:])
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(Z[100:], np.full(20, np.nan))
    assert model.to_bytes() == before


def test_merged_points_come_through_the_united_maps():
    Z, y = curved(600)
    X = np.exp(2 * Z)
    parts = [Prepared(KernelClassifier(Gaussian(0.5)), scale="rank").fit(X[at:400:2], y[at:400:2]) for at in (0, 1)]
    whole = merge(parts)
    assert whole.scaler_.n_seen_ == 400
    assert (whole.predict(X[400:]) != y[400:]).mean() < 0.25
    state = whole.scaler_._scaling.state()
    assert len(np.asarray(state["sample"])) == 256 * 4


def test_what_cannot_be_is_refused_by_name():
    from scipy.sparse import csr_array

    Z, y = curved(80)
    with pytest.raises(TypeError, match='scale="rank" orders the values of every column'):
        Prepared(KernelClassifier(), scale="rank").fit(csr_array(Z), y)
    with pytest.raises(ValueError, match='scale="rank" moves the stored points of one learner'):
        Prepared(AutoClassifier(), scale="rank").fit(Z, y)
    model = Prepared(KernelClassifier(), scale="rank").fit(Z, y)
    with pytest.raises(TypeError, match="slope depends on the row"):
        model.gradient(Z)
    features = Prepared(FeatureLearner(RandomMaclaurin(Exponential(1.0), 50, random_state=0)), scale="rank")
    assert features.fit(Z, y).predict(Z).shape == (80,)


def test_values_that_are_too_close_to_divide_by_stay_finite():
    """5e-324 beside 0: no number lies between, and half the distance is 0."""
    scaler = RankScaler()
    column = np.array([0.0, 0.0, 5e-324, 1.0, 0.0, 5e-324, 0.0, 5e-324, 5e-324, 0.0] * 4)[:, None]
    assert np.isfinite(scaler.learn_transform(column)).all()
    far = scaler.transform([[-1.0], [1e300]])
    assert np.isfinite(far).all()
    assert far[0, 0] < scaler.transform([[0.0]])[0, 0] < far[1, 0]
