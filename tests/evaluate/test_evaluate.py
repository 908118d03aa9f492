"""Prequential runs against what one would compute by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score, root_mean_squared_error
from sklearn.svm import SVC

from gristmill import (
    DropOldest,
    Gaussian,
    KernelClassifier,
    Perceptron,
    norma_novelty,
    norma_regressor,
    passive_aggressive,
    perceptron,
)
from gristmill.evaluate import compare, prequential
from gristmill.evaluate.metrics import find
from gristmill.streams import drifting_digits, from_arrays


def learner():
    return KernelClassifier(Gaussian(0.001), Perceptron(), DropOldest(100))


@pytest.fixture(scope="module")
def two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=3000) > 0, "up", "down")


def test_error_is_the_share_of_wrong_predictions():
    stream = drifting_digits(n_events=2500)
    X, y = stream.arrays()
    model = learner()
    scores = model.prequential(X, y, classes=np.arange(10))
    wrong = scores.argmax(axis=1) != y
    result = prequential(learner(), stream, window=400)
    assert result.metrics["error"] == pytest.approx(wrong.mean(), abs=1e-12)
    assert result.rolling["error"] == pytest.approx(wrong[-400:].mean(), abs=1e-12)
    assert (result.stored, result.bytes) == (model.n_support_, model.memory_bytes_)
    assert result.n_events == result.n_scored == 2500


def test_the_curve_has_an_entry_a_window_whatever_the_chunks():
    X, y = drifting_digits(n_events=2500).arrays()
    wrong = learner().prequential(X, y, classes=np.arange(10)).argmax(axis=1) != y
    for rows in (1000, 70, 2500):
        curve = prequential(learner(), from_arrays(X, y, rows=rows), window=300).curve
        assert [entry["event"] for entry in curve] == [300, 600, 900, 1200, 1500, 1800, 2100, 2400, 2500]
    known = prequential(learner(), drifting_digits(n_events=2500), window=300).curve
    assert known[3]["error"] == pytest.approx(wrong[:1200].mean())
    assert known[3]["rolling_error"] == pytest.approx(wrong[900:1200].mean())
    assert known[-1]["rolling_error"] == pytest.approx(wrong[2200:].mean())


def test_metrics_agree_with_scikit_learn(two_classes):
    X, y = two_classes
    model = passive_aggressive(Gaussian(0.5), size=50)
    scores = model.prequential(X, y, classes=["down", "up"])
    names = ["accuracy", "balanced_accuracy", "log_loss", "roc_auc"]
    fresh = passive_aggressive(Gaussian(0.5), size=50)
    found = prequential(fresh, from_arrays(X, y), names).metrics
    predicted = np.where(scores >= 0, "up", "down")
    assert found["accuracy"] == pytest.approx((predicted == y).mean())
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found["log_loss"] == pytest.approx(log_loss(y == "up", 1 / (1 + np.exp(-scores))))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y == "up", scores), abs=1e-4)


def test_log_loss_of_many_classes_is_that_of_the_softmax():
    X, y = drifting_digits(n_events=1200).arrays()
    scores = learner().prequential(X, y, classes=np.arange(10))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = prequential(learner(), drifting_digits(n_events=1200), "neg_log_loss").metrics["log_loss"]
    assert found == pytest.approx(log_loss(y, chances, labels=np.arange(10)))


def test_regression_and_novelty():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 2))
    y = np.sin(X[:, 0])
    model = norma_regressor(Gaussian(1.0), rate=0.3, reg=0.001, size=100)
    batch = model.prequential(X, y)
    found = prequential(norma_regressor(Gaussian(1.0), rate=0.3, reg=0.001, size=100), (X, y), ["mae", "rmse"])
    assert found.metrics["mae"] == pytest.approx(np.abs(batch - y).mean())
    assert found.metrics["rmse"] == pytest.approx(root_mean_squared_error(y, batch))
    detector = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=100)
    alarms = prequential(detector, from_arrays(X))
    again = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=100).prequential(X)
    assert alarms.metrics["alarm_rate"] == pytest.approx((again < 0).mean())


def test_warm_up_is_learned_but_not_scored():
    stream = drifting_digits(n_events=1500)
    X, y = stream.arrays()
    wrong = learner().prequential(X, y, classes=np.arange(10)).argmax(axis=1) != y
    result = prequential(learner(), stream, warmup=550)
    assert result.metrics["error"] == pytest.approx(wrong[550:].mean())
    assert (result.n_events, result.n_scored) == (1500, 950)


def test_comparison_is_the_same_as_runs_one_by_one():
    stream = drifting_digits(n_events=1200)
    together = compare({"a": learner(), "b": perceptron(Gaussian(0.001))}, stream)
    alone = prequential(perceptron(Gaussian(0.001)), stream)
    assert together["b"].metrics == alone.metrics
    assert [row["model"] for row in together.rows()] == ["a", "b"]
    assert len(together.to_frame()) == 2
    assert len(together.table().splitlines()) == 3
    assert [entry["name"] for entry in json.loads(together.to_json())] == ["a", "b"]


def test_a_learner_without_prequential_is_tested_chunk_by_chunk():
    stream = drifting_digits(n_events=3000)
    X, y = stream.arrays()
    result = prequential(SGDClassifier(random_state=0), stream)
    reference = SGDClassifier(random_state=0).partial_fit(X[:1000], y[:1000], classes=np.arange(10))
    wrong = []
    for start in (1000, 2000):
        part = slice(start, start + 1000)
        wrong.append(reference.predict(X[part]) != y[part])
        reference.partial_fit(X[part], y[part])
    assert result.metrics["error"] == pytest.approx(np.concatenate(wrong).mean())
    assert result.n_scored == 2000


def test_a_long_curve_stays_short():
    X = np.zeros((5000, 1))
    result = prequential(norma_regressor(Gaussian(1.0), rate=0.1, reg=0.1, size=2), (X, X[:, 0]), window=1)
    assert len(result.curve) <= 2001
    assert result.curve[-1]["event"] == 5000


def test_json_has_no_nan():
    result = prequential(learner(), drifting_digits(n_events=50), warmup=50)
    assert json.loads(result.to_json())["metrics"]["error"] is None


def test_wrong_wishes_are_refused_by_name():
    stream = drifting_digits(n_events=100)
    with pytest.raises(ValueError, match="unknown metric 'acuracy'; did you mean 'accuracy'"):
        find("acuracy")
    with pytest.raises(ValueError, match="mae is a metric for regression, not for classification"):
        prequential(learner(), stream, "mae")
    with pytest.raises(ValueError, match="window must be at least 1"):
        prequential(learner(), stream, window=0)
    with pytest.raises(ValueError, match="roc_auc is defined for two classes"):
        prequential(learner(), stream, "roc_auc")
    with pytest.raises(TypeError, match="neither prequential nor partial_fit"):
        prequential(SVC(), stream)
    with pytest.raises(ValueError, match="holds no event"):
        prequential(learner(), iter([]))
