"""SVMD for many classes, against a separate implementation."""

from __future__ import annotations

import numpy as np
import pytest
from many_svmd import ManySVMD

import gristmill
from gristmill import Gaussian, Hinge, KernelClassifier, Logistic, StepSizeAdaptation, Unbounded, merge, svmd

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
Y = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=700) > 0).astype(np.int64)


@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize(("reg", "meta", "decay"), [(0.0, 0.1, 1.0), (0.05, 0.3, 0.9), (0.01, 0.0, 0.0)])
def test_two_classes_are_the_librarys_with_twice_the_kernel(size, reg, meta, decay):
    library = svmd(2.0 * Gaussian(0.7), rate=0.2, reg=reg, meta_rate=meta, decay=decay, size=size)
    scores = library.prequential(X, 2 * Y - 1, classes=[-1, 1])
    many = ManySVMD(Gaussian(0.7), 0.2, reg, meta, decay, size)
    assert np.array_equal(many.mistakes(X, Y), (2 * Y - 1) * scores <= 0)
    assert many.norm2 >= -1e-9


@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize(("reg", "meta", "decay"), [(0.0, 0.1, 1.0), (0.05, 0.3, 0.9), (0.01, 0.0, 0.0)])
@pytest.mark.parametrize("classes", [3, 7])
def test_many_classes_make_the_same_mistakes(size, reg, meta, decay, classes):
    labels = (3 * np.abs(X[:, 0] + X[:, 1])).astype(np.int64) % classes
    library = svmd(Gaussian(0.7), rate=0.2, reg=reg, meta_rate=meta, decay=decay, size=size)
    scores = library.prequential(X, labels, classes=list(range(classes)))
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    many = ManySVMD(Gaussian(0.7), 0.2, reg, meta, decay, size)
    assert np.array_equal(many.mistakes(X, labels), own <= others.max(axis=1))
    assert library.rate_ == pytest.approx(many.rate, rel=1e-9)
    assert 0.02 < np.mean(own <= others.max(axis=1)) < 0.9


def test_a_third_class_splits_the_tangent_too():
    """A model that met two classes goes on as f and v were in both outputs: -1/2 and 1/2 of each."""
    model = KernelClassifier(Gaussian(0.7), StepSizeAdaptation(Hinge(), 0.2, 0.05, 0.3, 0.9), Unbounded())
    model.partial_fit(X[:100], Y[:100])
    before = model.decision_function(X[:20])
    model.partial_fit(X[100:101], [2])
    state = model._run.core.state()
    f, v = np.split(state["coef"].reshape(6, -1)[:, :-1], 2)
    assert np.allclose(f[1], -f[0])
    assert np.allclose(v[1], -v[0])
    assert np.abs(v).max() > 0
    assert np.any(model.decision_function(X[:20])[:, 1] - model.decision_function(X[:20])[:, 0] != before)


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_many_classes_in_files_chunks_and_merges(loss):
    labels = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.0, 0.5])
    rule = StepSizeAdaptation(loss, 0.3, 0.02, 0.1, 0.9)
    whole = KernelClassifier(Gaussian(0.7), rule, gristmill.DropOldest(60)).partial_fit(X, labels)
    cut = KernelClassifier(Gaussian(0.7), rule, gristmill.DropOldest(60))
    for start in range(0, 700, 90):
        cut.partial_fit(X[start : start + 90], labels[start : start + 90])
        cut = gristmill.from_bytes(cut.to_bytes())
    assert np.array_equal(whole.decision_function(X), cut.decision_function(X))
    assert whole.rate_ == cut.rate_


def test_merged_models_merge_their_tangents():
    labels = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.0, 0.5])
    rule = StepSizeAdaptation(Hinge(), 0.3, 0.02, 0.1, 0.9)
    many = KernelClassifier(Gaussian(0.7), rule, Unbounded()).partial_fit(X[:400], labels[:400])
    two = KernelClassifier(Gaussian(0.7), rule, Unbounded()).partial_fit(X[400:500], np.minimum(labels, 1)[400:500])
    both = merge([many, two])
    f = two.decision_function(X)
    halves = np.column_stack([-f / 2, f / 2, 0 * f, 0 * f])
    assert np.allclose(both.decision_function(X), 0.8 * many.decision_function(X) + 0.2 * halves)
    sums = [
        model._run.core.state()["coef"].sum(axis=1) * model._run.core.state()["scale"] for model in (both, many, two)
    ]
    v = sums[2][1]
    order = np.argsort(many._run.labels.names)  # outputs are in the order in which classes came
    merged = np.argsort(both._run.labels.names)
    codes = [list(both._run.labels.names).index(name) for name in two._run.labels.names]
    expected = np.zeros(4)
    expected[merged] = 0.8 * sums[1][4:][order]
    expected[codes] += 0.2 * np.array([-v / 2, v / 2])
    assert np.allclose(sums[0][4:], expected)
    both.partial_fit(X[500:], labels[500:])
    assert both.score(X[500:], labels[500:]) > 0.6


def test_inner_products_are_carried_through_steps_and_drops():
    labels = RNG.integers(4, size=300)
    seen = {}

    class Watched(ManySVMD):
        def _drop(self, values, f, v, place):
            super()._drop(values, f, v, place)
            seen["along"] = self.along, np.sum(f * (values @ v))
            seen["norm2"] = self.norm2, np.sum(f * (values @ f))

    Watched(Gaussian(0.5), 0.3, 0.02, 0.05, 0.95, 30).mistakes(X[:300], labels)
    for carried, plain in seen.values():
        assert carried == pytest.approx(plain)


def test_three_classes_are_learned():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    wrong = ManySVMD(Gaussian(0.5), 0.5, 0.0, 0.01, 0.9, 200).mistakes(X, labels)
    assert wrong[0]  # all scores are 0, and a tie is a mistake
    assert wrong[350:].mean() < 0.5 * wrong[:50].mean()


def test_a_rate_that_runs_away_is_said():
    with pytest.raises(ValueError, match="runs away"):
        ManySVMD(Gaussian(0.001), 1e100, 0.0, 1e300, 1.0, 20).mistakes(1e3 * X, Y)
