"""Probabilities of every classifier, and weights of classes: calibrated, saved, the same bits however the stream is cut."""

from __future__ import annotations

import pickle

import numpy as np
import public_learners
import pytest

import gristmill
from gristmill import (
    Adatron,
    Additive,
    DropOldest,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Perceptron,
    Polynomial,
    Prepared,
    Project,
    RandomMaclaurin,
    Unbounded,
    Window,
)
from gristmill.features import FeatureClassifier
from tests.promises.test_every_learner import CLASSIFIERS, MANY, late


def alike(a, b):
    return float(np.exp(-np.sum((np.asarray(a) - np.asarray(b)) ** 2)))


#: one of every hypothesis, and what changes its scores in a way of its own
KINDS = {
    "points": lambda **given: KernelClassifier(Gaussian(2.0), budget=DropOldest(30), **given),
    "window": lambda **given: KernelClassifier(Gaussian(2.0), Perceptron(), Window(20), **given),
    "average": lambda **given: KernelClassifier(Gaussian(2.0), average=True, budget=Unbounded(), **given),
    "span": lambda **given: KernelClassifier(Gaussian(2.0), Perceptron(), Project(0.3), **given),
    "trees": lambda **given: KernelClassifier(Additive(Laplacian(1.0)), **given),
    "weights": lambda **given: FeatureClassifier(RandomMaclaurin(Polynomial(2), 40, random_state=0), **given),
    "objects": lambda **given: KernelClassifier(alike, **given),
}


def check_cuts(make, X, y, tmp_path, file=True):
    whole, single, cut = make(), make(), make()
    whole.prequential(X, y)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    for part in np.split(np.arange(len(X)), [1, 5, 13, 14, 30, 31, 77]):
        cut.partial_fit(X[part], y[part])
        cut = pickle.loads(pickle.dumps(cut))
        if file:
            cut.save(tmp_path / "model")
            cut = gristmill.load(tmp_path / "model")
    wanted = whole.predict_proba(X)
    for other in (single, cut, make().fit(X, y)):
        np.testing.assert_array_equal(wanted, other.predict_proba(X))
        np.testing.assert_array_equal(whole.decision_function(X), other.decision_function(X))
    assert wanted.shape == (len(X), len(whole.classes_))
    np.testing.assert_allclose(wanted.sum(axis=1), 1.0, rtol=1e-12)
    assert (wanted > 0).all()
    np.testing.assert_array_equal(np.log(wanted), whole.predict_log_proba(X))
    assert list(whole.predict_proba_one(X[3])) == whole.classes_.tolist()
    np.testing.assert_allclose(list(whole.predict_proba_one(X[3]).values()), wanted[3], rtol=1e-9)
    return wanted


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("prepared", [False, True])
def test_two_classes_of_every_classifier(name, prepared, tmp_path):
    X, y = public_learners.stream(name, 90)
    make = (lambda: Prepared(public_learners.made(name))) if prepared else (lambda: public_learners.made(name))
    assert make().predict_proba_one(X[0]) == {}
    shares = check_cuts(make, X, y, tmp_path)
    assert shares[y == 1, 1].mean() > shares[y == 0, 1].mean()


@pytest.mark.parametrize("name", MANY)
def test_classes_that_come_late(name, tmp_path):
    X, y = late()
    check_cuts(lambda: public_learners.made(name), X, y, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0, 0: 0.5}])
def test_every_hypothesis(kind, class_weight, tmp_path):
    X, y = public_learners.stream("", 700 if kind == "span" else 90)
    check_cuts(lambda: KINDS[kind](class_weight=class_weight), X, y, tmp_path, file=kind != "objects")


@pytest.mark.parametrize("kind", KINDS)
def test_bad_rows_leave_the_probabilities_alone(kind):
    X, y = public_learners.stream("", 60)
    model = KINDS[kind](class_weight="balanced").fit(X, y)
    before = model.predict_proba(X)
    bad = np.vstack([X[:5], np.full(4, np.nan)]) if kind != "objects" else [*X[:5], [1.0, 2.0]]
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(bad, [0, 1, 0, 1, 1, 0])
    np.testing.assert_array_equal(before, model.predict_proba(X))


@pytest.mark.parametrize("classes", [2, 5])
def test_probabilities_are_those_of_the_stream(classes):
    """Labels are drawn, so that the true probability of each class is known."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6000, 2))
    logits = np.stack([2 * np.cos(c) * X[:, 0] + 2 * np.sin(c) * X[:, 1] for c in range(classes)], axis=1)
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) < rng.random((len(X), 1))).sum(axis=1)
    model = gristmill.norma_classifier(Gaussian(0.3), rate=0.05, reg=0.01, loss=gristmill.Logistic(), size=500)
    said = np.empty((len(X), classes))
    model.partial_fit(X[:50], y[:50], classes=range(classes))
    for at in range(50, len(X), 50):
        said[at : at + 50] = model.predict_proba(X[at : at + 50])
        model.partial_fit(X[at : at + 50], y[at : at + 50])
    late_part = slice(1000, None)
    gap = np.abs(said[late_part] - true[late_part]).mean()
    shares = np.bincount(y, minlength=classes) / len(y)
    assert gap < 0.5 * np.abs(shares - true[late_part]).mean(), gap
    top, right = said[late_part].max(axis=1), said[late_part].argmax(axis=1) == y[late_part]
    bins = np.minimum((top * 15).astype(int), 14)
    error = sum(abs((top - right)[bins == b].sum()) for b in range(15)) / len(top)
    assert error < (0.03 if classes == 2 else 0.05), error


def test_the_scale_of_the_scores_does_not_matter():
    X, y = public_learners.stream("", 400)
    small = KernelClassifier(Gaussian(2.0), gristmill.SGD(gristmill.Hinge(2.0**-20), rate=2.0**-20)).fit(X, y)
    large = KernelClassifier(Gaussian(2.0), gristmill.SGD(gristmill.Hinge(1.0), rate=1.0)).fit(X, y)
    np.testing.assert_array_equal(small.decision_function(X) * 2.0**20, large.decision_function(X))
    np.testing.assert_allclose(small.predict_proba(X), large.predict_proba(X), atol=0.02)


def test_later_passes_do_not_touch_the_calibration():
    X, y = public_learners.stream("", 60)
    once, often = (KernelClassifier(Gaussian(2.0), Adatron(0.5, 10.0, passes=p), Unbounded()).fit(X, y) for p in (1, 5))
    for name, array in once._engine.state().items():
        if name.startswith("calibration"):
            np.testing.assert_array_equal(array, often._engine.state()[name])


def test_a_file_without_a_calibration_still_loads():
    X, y = public_learners.stream("", 60)
    model = KernelClassifier(Gaussian(2.0)).fit(X, y)
    state = {name: array for name, array in model._engine.state().items() if not name.startswith("calibration")}
    old = model.restored_core(model._run.parts, state)
    assert old.probabilities(np.zeros((1, 1))).tolist() == [[0.5, 0.5]]
    forged = {**model._engine.state(), "calibration": np.array([1.0, -1.0, 1.0, 1.0, 0.0])}
    with pytest.raises(ValueError, match="calibration"):
        model.restored_core(model._run.parts, forged)


# ---- weights of classes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "objects"])
def test_weights_of_classes_are_weights_of_events(kind):
    X, y = public_learners.stream("", 120)
    given = {0: 0.25, 1: 2.0}
    by_class = KINDS[kind](class_weight=given).fit(X, y)
    by_event = KINDS[kind]().fit(X, y, [given[label] for label in y])
    np.testing.assert_array_equal(by_class.decision_function(X), by_event.decision_function(X))
    balanced, counts, weights = KINDS[kind](class_weight="balanced").fit(X, y), {}, []
    for label in y.tolist():
        counts[label] = counts.get(label, 0) + 1
        weights.append(sum(counts.values()) / (len(counts) * counts[label]))
    by_event = KINDS[kind]().fit(X, y, weights)
    np.testing.assert_array_equal(balanced.decision_function(X), by_event.decision_function(X))


def test_balance_finds_the_rare_class():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 2))
    y = (X[:, 0] + rng.normal(size=4000) > 2.2).astype(int)
    found = []
    for class_weight in (None, "balanced"):
        model = gristmill.norma_classifier(Gaussian(0.3), rate=0.1, reg=0.001, size=300)
        model.set_params(class_weight=class_weight)
        found.append(((model.prequential(X, y) >= 0) & (y == 1))[1000:].sum() / (y[1000:] == 1).sum())
    assert found[1] > found[0] + 0.2, found


@pytest.mark.parametrize("wrong", ["balance", 1.0, {0: -1.0}, {0: float("nan")}, {0: "a"}, True, [1, 2]])
def test_weights_that_are_none_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="class_weight"):
        KernelClassifier(class_weight=wrong).fit([[0.0], [1.0]], [0, 1])
