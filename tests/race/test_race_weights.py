"""Weights of samples and classes in races: what they do, and that cuts, copies and single events agree."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from model_state import same
from sklearn.metrics import recall_score

from gristmill import AutoClassifier, AutoRegressor, Gaussian, KernelClassifier, KernelRegressor, Merge, Prepared, Race

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
Y = (X[:, 0] + 0.8 * RNG.normal(size=900) > 1.6).astype(int)  # about one in ten
NUMBERS = 30 * X[:, 0] + X[:, 1]
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 3.0], 900, p=[0.2, 0.3, 0.3, 0.2])
RACES = {
    "classes": (AutoClassifier(), Y),
    "balanced": (AutoClassifier(class_weight="balanced"), Y),
    "by label": (AutoClassifier(class_weight={1: 5.0}), Y),
    "numbers": (AutoRegressor(), NUMBERS),
    "race": (Race([KernelClassifier(Gaussian(g), budget=Merge(50)) for g in (0.1, 1.0)], class_weight="balanced"), Y),
    "race of numbers": (Race([KernelRegressor(Gaussian(g), budget=Merge(50)) for g in (0.1, 1.0)]), NUMBERS),
}


def fresh(name):
    model, y = RACES[name]
    return type(model)(**{**model.get_params(deep=False)}), y


@pytest.mark.parametrize("name", RACES)
def test_weights_in_any_cut_with_copies_in_between(name):
    (whole, y), (cut, _), (single, _) = fresh(name), fresh(name), fresh(name)
    expected = whole.prequential(X, y, sample_weight=WEIGHTS)
    found, edges = [], [0, 1, 3, 40, 199, 201, 640, 900]
    for start, stop in itertools.pairwise(edges):
        part = slice(start, stop)
        found.append(cut.prequential(X[part], y[part], sample_weight=WEIGHTS[part]))
        if start == 40:
            cut = pickle.loads(pickle.dumps(cut))
    for place in range(300):
        single.learn_one(X[place], y[place], WEIGHTS[place])
    single.partial_fit(X[300:], y[300:], sample_weight=WEIGHTS[300:])
    assert same(whole, cut)
    assert same(whole, single)
    np.testing.assert_array_equal(np.concatenate(found)[3:], expected[3:])


@pytest.mark.parametrize("name", ["classes", "numbers", "race", "race of numbers"])
def test_weight_one_is_no_weight(name):
    (one, y), (other, _) = fresh(name), fresh(name)
    one.partial_fit(X, y)
    other.partial_fit(X, y, sample_weight=np.ones(900))
    assert same(one, other)


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_an_event_of_weight_zero_is_counted_and_its_label_not_used(name):
    (one, y), (other, _) = fresh(name), fresh(name)
    weights = np.where(np.arange(900) % 3 == 1, 0.0, 1.0)
    one.partial_fit(X, y, sample_weight=weights)
    wrong = np.where(weights == 0, y[0], y)
    other.partial_fit(X, wrong, sample_weight=weights)
    assert same(one, other)
    assert one.n_seen_ == 900


def test_weighed_classes_are_found_more_often():
    recalls = []
    for given in (None, {1: 3.0}, "balanced"):
        model = AutoClassifier(class_weight=given).fit(X[:700], Y[:700])
        recalls.append(recall_score(Y[700:], model.predict(X[700:])))
        np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert recalls[0] < recalls[1] <= recalls[2]


def test_prepared_hands_weights_on():
    one, other = Prepared(AutoClassifier(class_weight={1: 5.0}), None), AutoClassifier(class_weight={1: 5.0})
    other.partial_fit(X, Y, sample_weight=WEIGHTS)
    one.partial_fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    for place in range(5):
        one.learn_one(X[place], Y[place])
        other.learn_one(X[place], Y[place])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_wrong_weights_are_refused_by_name():
    with pytest.raises(ValueError, match="sample_weight is zero for every event"):
        AutoClassifier().fit(X, Y, sample_weight=np.zeros(900))
    with pytest.raises(ValueError, match="number 2 is -1"):
        AutoClassifier().partial_fit(X[:3], Y[:3], sample_weight=[1, 1, -1])
    with pytest.raises(ValueError, match="AutoClassifier: class_weight"):
        AutoClassifier(class_weight="rare").fit(X, Y)
    with pytest.raises(ValueError, match="numbers have no classes"):
        Race([KernelRegressor()], class_weight="balanced").fit(X, NUMBERS)
