"""Online scaling, the width heuristic, and learners behind them."""

from __future__ import annotations

import model_files
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gristmill
from gristmill import Gaussian, Prepared, norma_novelty, passive_aggressive
from gristmill.streams import StreamScaler, WidthFinder

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3)) * [1.0, 100.0, 1e-3] + [0.0, 1e6, 5.0]
Y = (X[:, 0] > 0).astype(int)


@parametrize_with_checks([StreamScaler(), StreamScaler("minmax")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("method", "batch"), [("standard", StandardScaler), ("minmax", MinMaxScaler)])
def test_in_the_end_it_is_the_batch_scaler(method, batch):
    assert StreamScaler(method).fit(X).transform(X) == pytest.approx(batch().fit(X).transform(X), abs=1e-6)


@pytest.mark.parametrize("method", ["standard", "minmax"])
def test_each_event_is_scaled_by_what_came_before_it(method):
    got = StreamScaler(method).learn_transform(X)
    for row in (0, 1, 7, 499):
        assert got[row] == pytest.approx(StreamScaler(method).fit(X[: row + 1]).transform(X[[row]])[0])


@pytest.mark.parametrize("method", ["standard", "minmax"])
@pytest.mark.parametrize("warmup", [None, 100])
def test_cuts_change_no_bit(method, warmup):
    whole = StreamScaler(method, warmup).learn_transform(X)
    scaler = StreamScaler(method, warmup)
    parts = [scaler.learn_transform(X[start:stop]) for start, stop in ((0, 1), (1, 60), (60, 130), (130, 500))]
    assert np.array_equal(np.concatenate(parts), whole)


def test_frozen_after_the_warm_up():
    scaler = StreamScaler(warmup=100).fit(X[:100])
    before = scaler.transform(X[:5])
    scaler.partial_fit(X[100:] + 1e9)
    assert np.array_equal(scaler.transform(X[:5]), before)


def test_a_constant_column_becomes_zero():
    assert StreamScaler().learn_transform(np.full((5, 1), 7.5)).tolist() == [[0.0]] * 5


def test_bad_settings():
    with pytest.raises(ValueError, match="method must be 'standard' or 'minmax', got 'robust'"):
        StreamScaler("robust").fit(X)
    with pytest.raises(ValueError, match="warmup must be at least 1 or None, got 0"):
        StreamScaler(warmup=0).fit(X)
    with pytest.raises(ValueError, match="size must be at least 2"):
        WidthFinder(1)


def test_width_is_the_median_distance():
    points = RNG.normal(size=(150, 4))
    gaps = ((points[:, None] - points[None]) ** 2).sum(axis=2)[np.triu_indices(150, 1)]
    assert WidthFinder(150).update(points).gamma == pytest.approx(1 / np.median(gaps))
    assert WidthFinder(150).update(csr_array(points)).gamma == pytest.approx(1 / np.median(gaps))
    assert WidthFinder().update(np.ones((10, 5))).gamma == 0.2
    long = RNG.normal(size=(20_000, 4))
    assert WidthFinder(200).update(long).gamma == pytest.approx(1 / 6.7, rel=0.15)
    with pytest.raises(ValueError, match="no event has been seen"):
        WidthFinder().gamma  # noqa: B018


def prepared(**settings):
    return Prepared(passive_aggressive(Gaussian(0.3), size=40), **settings)


@pytest.mark.filterwarnings("ignore:KernelClassifier. column")  # the bare learner says what it thinks of such columns
@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_prepared_is_scaler_then_learner(scale):
    model = prepared(scale=scale)
    scores = model.prequential(X, Y)
    scaled = X if scale is None else StreamScaler(scale).learn_transform(X)
    reference = passive_aggressive(Gaussian(0.3), size=40)
    assert np.array_equal(scores, reference.prequential(scaled, Y))
    assert model.n_support_ == reference.n_support_
    assert model.classes_.tolist() == [0, 1]


def test_prepared_is_the_same_however_it_is_cut_saved_and_loaded(tmp_path):
    whole = prepared().fit(X, Y)
    model = prepared().partial_fit(X[:200], Y[:200])
    model.target_name_ = "y"
    model.save(tmp_path / "model")
    model = gristmill.load(tmp_path / "model")
    for x, y in zip(X[200:210], Y[200:210], strict=True):
        model.learn_one(x, y)
    model.partial_fit(X[210:], Y[210:])
    assert np.array_equal(model.decision_function(X), whole.decision_function(X))
    assert model.target_name_ == "y"
    assert model.predict_one(X[0]) == whole.predict(X[:1])[0]
    assert model.score_one(X[0]) == whole.decision_function(X[:1])[0]
    assert model.memory_bytes_ == whole.memory_bytes_


def test_a_loaded_model_can_be_saved_again(tmp_path):
    prepared().fit(X, Y).save(tmp_path / "one")
    gristmill.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_bad_chunk_changes_nothing():
    model = prepared().fit(X[:100], Y[:100])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="row 1, column 'x2': inf is not a finite number"):
        model.partial_fit(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.inf]]), [0, 1])
    with pytest.raises(ValueError, match="row 0, column 'x0': the value is missing"):
        prepared(missing="raise").partial_fit(np.full((2, 3), np.nan), [0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        model.partial_fit(X[:5], Y[:3])
    assert np.array_equal(model.decision_function(X), before)
    fresh = prepared()
    with pytest.raises(ValueError, match="inconsistent"):
        fresh.partial_fit(X[:5], Y[:3])
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    with pytest.raises(NotFittedError):
        fresh.save("nowhere")


def test_prepared_is_an_estimator():
    model = clone(prepared(scale="minmax", warmup=10))
    assert model.get_params()["scale"] == "minmax"
    detector = Prepared(norma_novelty(Gaussian(0.3), nu=0.1, rate=0.1, schedule="inv_sqrt", size=30)).fit(X)
    assert set(detector.predict(X)) <= {-1, 1}
    assert detector.margin_ == detector.model_.margin_


def test_a_forged_scaling_is_refused(tmp_path):
    model = prepared().fit(X, Y)
    model.save(tmp_path / "model")
    arrays, text = model_files.opened(tmp_path / "model")
    arrays["scaler_state"] = np.ones((3, 2))
    (tmp_path / "forged").write_bytes(model_files.closed(arrays, text))
    with pytest.raises(gristmill.ModelFileError, match="its scaling does not fit its points"):
        gristmill.load(tmp_path / "forged")
