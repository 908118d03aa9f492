"""The Projectron and its average against their twins."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracle import Twin
from twin_cases import (
    KERNEL,
    agree,
    beside_the_twin,
    compositions,
    stream,
)

from gristmill import (
    SGD,
    Alma,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    MarginProjection,
    Perceptron,
    Project,
    Unbounded,
)


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions("projectron")))
def test_the_core_is_the_twin(task, rule, budget, kind):
    beside_the_twin(task, rule, budget, kind)


@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection(), Alma(0.9)], ids=repr)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_bounded_average(task, rule):
    X, y = stream("noisy", task)
    twin = Twin(KERNEL, rule, Project(0.35), n_classes=3 if task == "multiclass" else None, average=True)
    for x, label in zip(X, y, strict=True):
        twin.step(x, label)
    model = KernelClassifier(KERNEL, rule, Project(0.35), average=True).partial_fit(X, y, classes=np.unique(y))
    agree(model.decision_function(X[:30]), [twin.average(x) for x in X[:30]], "the mean hypothesis")
    assert model.support_ids_.tolist() == twin.ids, "no more points than the last hypothesis has"
    if task == "binary":
        agree(model.decision_function(X[:5]), KERNEL(X[:5], model.support_vectors_) @ model.dual_coef_[:, 0], "")


@pytest.mark.parametrize("budget", [Unbounded(), Project(0.3)], ids=repr)
def test_the_average_of_a_detector_averages_its_margin_too(budget):
    X, _ = stream("noisy", "novelty")
    rule = SGD(Hinge(0.0, nu=0.2), 0.1, 0.5)
    twin = Twin(KERNEL, rule, budget, "novelty", average=True)
    wanted = []
    for x in X:
        wanted.append(twin.average(x) if twin.history else 0.0)
        twin.step(x)
    model = KernelNovelty(KERNEL, rule, budget, average=True)
    agree(model.prequential(X), wanted, "before each event")
    agree(model.decision_function(X), [twin.average(x) for x in X], "afterwards")
    agree(model.score_samples(X), model.decision_function(X) + model.offset_, "f alone")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.prequential(X), model.prequential(X))


@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection()], ids=repr)
def test_a_tolerance_above_every_norm_warns_and_stores_nothing(task, rule):
    X, y = stream("noisy", task)
    model = KernelClassifier(KERNEL, rule, Project(1.5))
    with pytest.warns(UserWarning, match=r"tolerance=1\.5 is not below the norm"):
        scores = model.prequential(X, y)
    assert model.n_support_ == 0
    came = (
        0 if task == "binary" else 1 + max(int(np.argmax(y == c)) for c in np.unique(y))
    )  # a class to come scores below
    assert not scores[came:].any()
