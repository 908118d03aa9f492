"""The adapters under River's own checks, in River's pipelines, and against the learners themselves."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from gristmill import (
    AutoClassifier,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    norma_novelty,
    passive_aggressive,
    passive_aggressive_regressor,
)
from gristmill.river import AnomalyDetector, Classifier, Regressor
from river import base, checks, compose, datasets, evaluate, metrics, preprocessing


class _Frauds:
    """Stands in for River's CreditCard, which must be downloaded: 30 features, and 2 % of events far off."""

    def take(self, count):
        rng = np.random.default_rng(0)
        for _ in range(count):
            odd = rng.random() < 0.02
            row = rng.normal(size=30) + (4.0 if odd else 0.0)
            yield {f"V{place}": float(value) for place, value in enumerate(row)}, int(odd)


def adapters():
    for kind in (Classifier, Regressor, AnomalyDetector):
        yield kind(**next(kind._unit_test_params()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:river")
@pytest.mark.filterwarnings("ignore:.*Prepared:UserWarning")  # their columns come as they are
@pytest.mark.parametrize("model", list(adapters()), ids=lambda model: type(model).__name__)
def test_river_checks(model, monkeypatch):
    is_old = not hasattr(base, "AnomalyDetector")
    monkeypatch.setattr(datasets, "CreditCard", _Frauds)
    run = 0
    for check in checks.yield_checks(model):
        if is_old and "check_roc_auc" in str(check):
            continue  # before 0.26 it scored an event after the detector had learned it
        check(model.clone())
        run += 1
    assert run > (14 if is_old else 20)  # River 0.22 has fifteen checks for regressors


def test_classifier_in_a_pipeline():
    model = preprocessing.StandardScaler() | Classifier(passive_aggressive(Gaussian(0.1), size=100))
    score = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert score.get() > 0.85


def test_text_features_go_through_rivers_encoder():
    rows = [({"colour": c, "n": n}, c == "red") for n, c in enumerate(["red", "blue", "green"] * 60)]
    encode = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (encode + (compose.SelectType(int) | preprocessing.StandardScaler())) | Classifier(
        passive_aggressive(Gaussian(1.0), size=20)
    )
    assert evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get() > 0.9
    with pytest.raises(ValueError, match="the feature 'colour' is 'red', which is not a number"):
        Classifier(passive_aggressive(Gaussian(1.0))).learn_one({"colour": "red"}, True)


def test_growing_features_change_no_score():
    rng = np.random.default_rng(0)
    names = [f"f{place}" for place in range(40)]
    adapter = Classifier(passive_aggressive(Gaussian(0.05), size=30))
    reference = passive_aggressive(Gaussian(0.05), size=30)
    for step in range(300):
        known = names[: 2 + step // 8]
        x = {name: rng.normal() for name in known}
        y = bool(x["f0"] > 0)
        adapter.learn_one(x, y)
        reference.learn_one(np.array([x.get(name, 0.0) for name in names]), y)
    assert adapter.n_support_ == 30
    for _ in range(20):
        x = {name: rng.normal() for name in rng.permutation(names[:30])}
        wanted = reference.predict_proba_one(np.array([x.get(name, 0.0) for name in names]))[True]
        assert adapter.predict_proba_one(x)[True] == pytest.approx(wanted, rel=1e-9)


def test_memory_is_honest_and_pickle_keeps_everything():
    small, large = (Classifier(passive_aggressive(Gaussian(0.1), size=size)) for size in (10, 1000))
    rng = np.random.default_rng(1)
    for _ in range(2000):
        x = {str(place): rng.normal() for place in range(20)}
        y = int(rng.integers(3))
        small.learn_one(x, y)
        large.learn_one(x, y)
    assert large._raw_memory_usage - small._raw_memory_usage > 900 * 20 * 8
    again = pickle.loads(pickle.dumps(large))
    assert again.predict_proba_one(x) == large.predict_proba_one(x)
    assert again.n_support_ == large.n_support_


def test_batches_of_new_classes_are_learned_as_single_events():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    y = pd.Series(np.digitize(X["a"], [-0.5, 0.5]).astype(str))
    many, one = (Classifier(passive_aggressive(Gaussian(0.3), size=50)) for _ in range(2))
    many.learn_many(X[:100], y[:100])
    many.learn_many(X[100:], y[100:])
    for (_, row), label in zip(X.iterrows(), y, strict=True):
        one.learn_one(row.to_dict(), label)
    assert np.array_equal(many._learner.dual_coef_, one._learner.dual_coef_)


def test_wrong_models_and_values_are_refused():
    with pytest.raises(TypeError, match="Regressor needs a gristmill learner for regression"):
        Regressor(passive_aggressive(Gaussian(1.0)))
    detector = AnomalyDetector(norma_novelty(Gaussian(1.0), nu=0.1, rate=0.1, size=5))
    with pytest.raises(ValueError, match="'heat' is nan, which is not finite"):
        detector.learn_one({"heat": float("nan")})
    assert detector.score_one({"heat": 1.0}) == 0.0
    assert Regressor(passive_aggressive_regressor(Gaussian(1.0))).predict_one({}) == 0.0


@pytest.mark.parametrize("model", [KernelClassifier(), AutoClassifier(random_state=0)], ids=lambda m: type(m).__name__)
def test_widths_go_by_the_number_of_names(model):
    """Defaults such as gamma = 1 / d would be wrong if the adapter kept spare columns from the start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] * X[:, 1] > 0).tolist()
    adapter, bare = Classifier(model), type(model)(**model.get_params(deep=False))
    for x, label in zip(X, y, strict=True):
        adapter.learn_one(dict(zip("abc", x.tolist(), strict=True)), label)
        bare.learn_one(x, label)
    said = [adapter.predict_one(dict(zip("abc", x.tolist(), strict=True))) for x in X[:20]]
    assert said == bare.predict(X[:20]).tolist()
    assert adapter._learner.n_features_in_ == 3


def by_rows(adapter):
    """The same adapter without its own way of single events."""
    adapter._single_events = lambda: None
    return adapter


@pytest.mark.parametrize("kind", [Classifier, Regressor, AnomalyDetector])
def test_known_names_are_learned_and_answered_as_rows_of_the_learner(kind):
    """Names come and go; truths are numbers; new names and classes come in between."""
    models = {
        Classifier: passive_aggressive(Gaussian(0.5), size=20),
        Regressor: KernelRegressor(Gaussian(0.5), random_state=0),
        AnomalyDetector: norma_novelty(Gaussian(0.5), nu=0.1, rate=0.1, size=20),
    }
    one, other = kind(models[kind]), by_rows(kind(models[kind]))
    rng = np.random.default_rng(0)
    verbs = {
        Classifier: ("predict_one", "predict_proba_one"), Regressor: ("predict_one",), AnomalyDetector: ("score_one",)
    }  # fmt: skip
    quick = 0
    for step in range(300):
        names = [f"f{place}" for place in rng.permutation(4 + step // 60) if rng.random() < 0.8] or ["f0"]
        x = {name: bool(rng.integers(2)) if name == "f1" else float(rng.normal()) for name in names}
        asked = {**x, "unknown": 1.0}
        for verb in verbs[kind]:
            assert getattr(one, verb)(asked) == getattr(other, verb)(asked)
        label = {
            Classifier: (int(rng.integers(2 + step // 100)),),
            Regressor: (float(rng.normal()),),
            AnomalyDetector: (),
        }[kind]
        quick += one._events is not None
        one.learn_one(x, *label)
        other.learn_one(x, *label)
    assert quick > 150
    assert other._events is None
    assert one._learner.n_seen_ == 300
    again = pickle.loads(pickle.dumps(one))
    again.learn_one(x, *label)
    one.learn_one(x, *label)
    for verb in verbs[kind]:
        assert getattr(one, verb)(x) == getattr(again, verb)(x)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "red", [1.0], 10**400])
def test_a_value_that_is_no_number_is_refused_after_known_names_too(value):
    adapter = Classifier(passive_aggressive(Gaussian(0.5), size=20))
    for step in range(5):
        adapter.learn_one({"a": float(step), "b": 1.0}, step % 2)
    with pytest.raises((ValueError, OverflowError)):
        adapter.learn_one({"a": value, "b": 1.0}, 1)
    with pytest.raises((ValueError, OverflowError)):
        adapter.predict_one({"a": value, "b": 1.0})
    assert adapter._learner.n_seen_ == 5
