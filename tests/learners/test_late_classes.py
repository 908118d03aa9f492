"""A class that has not come yet scores below all others, in every cut; predict is the most probable class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from gristmill import (
    AutoClassifier,
    DropOldest,
    Exponential,
    FeatureLearner,
    Fleet,
    Gaussian,
    KernelClassifier,
    KeyedFleet,
    Prepared,
    Race,
    RandomMaclaurin,
)
from gristmill._common.labels import agreeing, below_others
from gristmill.evaluate import prequential

LEARNERS = {
    "kernel": lambda: KernelClassifier(Gaussian(0.5)),
    "features": lambda: FeatureLearner(RandomMaclaurin(Exponential(1.0), 60, random_state=0)),
    "race": lambda: Race([KernelClassifier(Gaussian(0.5)), Prepared(KernelClassifier(budget=DropOldest(30)))]),
    "auto": lambda: AutoClassifier(memory="100 kB"),
    "prepared": lambda: Prepared(KernelClassifier(Gaussian(0.5))),
    "prepared auto": lambda: Prepared(AutoClassifier(memory="100 kB"), None),
}


def late(count=400):
    """Classes p, m and q; from two thirds on also a, which is first in the order of names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 3))
    y = np.where(X[:, 0] > 0.5, "p", np.where(X[:, 0] < -0.5, "m", "q"))
    y[(np.arange(count) >= 2 * count // 3) & (X[:, 1] > 0.8)] = "a"
    return X, y


def met(y):
    """Which of the sorted classes each row's model has met."""
    return np.array([[name in set(y[:row]) for name in sorted(set(y))] for row in range(len(y))])


@pytest.mark.parametrize("name", LEARNERS)
def test_no_row_is_given_a_class_that_has_not_come(name):
    X, y = late()
    model = LEARNERS[name]()
    scores, known = model.prequential(X, y), met(y)
    for row in range(3, len(y)):
        if not known[row].all():
            assert scores[row, ~known[row]].max() < scores[row, known[row]].min()


def answer(model, scores):
    return model.classes_[scores.argmax(axis=-1)] if scores.ndim == 2 else model.classes_[(scores >= 0).astype(int)]


@pytest.mark.parametrize("name", LEARNERS)
def test_answers_are_those_of_any_cut(name):
    X, y = late()
    whole, cut, answers = LEARNERS[name](), LEARNERS[name](), []
    for row in range(len(y)):
        scores = cut.prequential(X[row : row + 1], y[row : row + 1])
        answers.extend(answer(cut, scores) if row >= 3 else [None])
    assert answer(whole, whole.prequential(X, y))[3:].tolist() == answers[3:]


@pytest.mark.parametrize("name", ["kernel", "features"])
def test_answers_are_those_of_one_by_one(name):
    X, y = late()
    whole, one, answers = LEARNERS[name](), LEARNERS[name](), []
    for x, label in zip(X, y, strict=True):
        answers.append(one.predict_one(x) if answers else None)
        one.learn_one(x, label)
    assert answer(whole, whole.prequential(X, y))[3:].tolist() == answers[3:]


def test_a_table_that_widens_before_a_class_comes_is_counted_as_one_by_one():
    X, y = late(600)
    rows = [{"a": x[0], "b": x[1], "place": "here" if i < 300 else "there"} for i, x in enumerate(X)]
    model = Prepared(KernelClassifier(Gaussian(0.5)))
    scores = model.prequential(rows, y)
    wrong = (np.array(sorted(set(y)))[scores.argmax(axis=1)] != y)[3:]
    one, count = Prepared(KernelClassifier(Gaussian(0.5))), 0
    for i, (row, label) in enumerate(zip(rows, y, strict=True)):
        count += i >= 3 and one.predict_one(row) != label
        one.learn_one(row, label)
    assert wrong.sum() == count
    assert wrong.mean() < 0.4
    report = prequential(Prepared(KernelClassifier(Gaussian(0.5))), (rows, list(y)))
    shown = float(str(report).splitlines()[-1].split()[1])
    assert shown == pytest.approx(count / 600, abs=0.01)


def test_classes_that_are_named_count_from_the_first_row():
    X, y = late()
    scores = KernelClassifier(Gaussian(0.5)).prequential(X, y, classes=["a", "m", "p", "q"])
    np.testing.assert_array_equal(scores[0], np.zeros(4))


def test_rows_of_a_model_that_knows_nothing_stay():
    scores = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 5.0], [1.0, 2.0, 3.0]])
    found = below_others(scores.copy(), np.array([0, 2, 3]))
    np.testing.assert_array_equal(found, [[0.0, 0.0, 0.0], [1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])


# ---- probabilities ---------------------------------------------------------------------------------------------------


def unbalanced(classes, count=1500):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(count, 3))
    y = (X[:, 0] + rng.normal(size=count) > 1.2).astype(int)
    if classes > 2:
        y[X[:, 1] + rng.normal(size=count) > 1.5] = 2
    return X, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_predict_is_the_most_probable_class(name, classes):
    X, y = unbalanced(classes)
    model = LEARNERS[name]().fit(X[:1000], y[:1000])
    shares = model.predict_proba(X[1000:])
    np.testing.assert_array_equal(model.predict(X[1000:]), model.classes_[shares.argmax(axis=1)])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    far = np.full((4, 3), 1e3)  # a score of exactly 0
    np.testing.assert_array_equal(model.predict(far), model.classes_[model.predict_proba(far).argmax(axis=1)])


def test_members_of_fleets_agree_with_themselves():
    X, y = unbalanced(2, 600)
    fleet = Fleet(KernelClassifier(Gaussian(0.5)), 2).partial_fit(X.reshape(300, 2, 3), y.reshape(300, 2))
    shares = fleet.predict_proba(X.reshape(300, 2, 3))
    np.testing.assert_array_equal(shares.argmax(axis=-1), fleet.predict(X.reshape(300, 2, 3)))
    np.testing.assert_array_equal(shares[:, 1], fleet[1].predict_proba(X[1::2]))
    keys = np.arange(600) % 3
    keyed = KeyedFleet(KernelClassifier(Gaussian(0.5))).partial_fit(keys, X, y)
    np.testing.assert_array_equal(keyed.predict_proba(keys, X).argmax(axis=-1), keyed.predict(keys, X))


def test_only_rows_out_of_order_change_and_the_loss_hardly_does():
    X, y = unbalanced(3)
    model = KernelClassifier(Gaussian(0.5)).fit(X[:1000], y[:1000])
    core, rows = model._engine, X[1000:]
    scores = np.asarray(core.score(rows)[0])
    raw = np.asarray(core.probabilities(scores))
    found = agreeing(raw, scores.argmax(axis=1))
    ordered = raw.argmax(axis=1) == scores.argmax(axis=1)
    assert 0 < (~ordered).sum() < len(rows) // 2
    np.testing.assert_array_equal(found[ordered], raw[ordered])
    names = model._run.labels.names
    codes = np.array([names.index(label) for label in y[1000:]])
    assert log_loss(codes, found, labels=[0, 1, 2]) < log_loss(codes, raw, labels=[0, 1, 2]) + 0.01
