"""One learner is another, in the core itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from twin_cases import (
    KERNEL,
    LEARNERS,
    agree,
    stream,
)

from gristmill import (
    SGD,
    Alma,
    DropRandom,
    DropSmallest,
    FeasibleSet,
    Forget,
    Hinge,
    Implicit,
    Linear,
    Logistic,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Project,
    Squared,
    StepSizeAdaptation,
    Unbounded,
)


def scores(rule, budget=None, kernel=KERNEL, kind="noisy", task="binary", random_state=0):
    X, y = stream(kind, task, 300)
    model = LEARNERS[task](kernel, rule, budget or Unbounded(), random_state=random_state)
    return model.prequential(X, y), model


def test_norma_without_margin_and_decay_is_the_perceptron():
    agree(scores(SGD(Hinge(0.0), rate=0.25))[0], 0.25 * scores(Perceptron())[0], "")


@pytest.mark.parametrize("task", ["binary", "multiclass", "novelty"])
def test_implicit_hinge_without_decay_is_pa_one(task):
    for C in (0.1, 0.7):
        agree(scores(Implicit(Hinge(), C=C), task=task)[0], scores(PassiveAggressive(C=C), task=task)[0], task)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_an_infinite_C_is_the_projection_algorithm(task):
    wanted = scores(FeasibleSet(), task=task)[0]
    for rule in (Implicit(Hinge(), C=math.inf), PassiveAggressive(C=math.inf), PassiveAggressive(variant=0)):
        agree(scores(rule, task=task)[0], wanted, repr(rule))


def test_an_infinite_C_is_the_projection_algorithm_for_regression():
    wanted = scores(FeasibleSet(0.0), task="regression")[0]
    agree(scores(Implicit(Squared(), C=math.inf), task="regression")[0], wanted, "")
    agree(scores(FeasibleSet(0.0, radius=1e9), task="regression")[0], wanted, "")


@pytest.mark.parametrize(("kernel", "dimension"), [(Linear(), 3), (Polynomial(2, 1.0, 1.0), 10)], ids=repr)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_projecting_without_tolerance_changes_nothing_and_needs_no_more_points_than_dimensions(kernel, dimension, task):
    for rule in (Perceptron(), Alma(0.9), Implicit(Hinge(), 0.3, 1.0, 0.1)):
        found, model = scores(rule, Project(0.0), kernel, task=task)
        agree(found, scores(rule, Unbounded(), kernel, task=task)[0], repr(rule))
        assert 0 < model.n_support_ <= dimension * (1 if task == "binary" else 3)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_a_huge_budget_is_none(task):
    for rule, budget in (
        (Implicit(Hinge(), 0.5, 1.0, 0.1), DropSmallest(10**6)),
        (Perceptron(), DropRandom(10**6)),
        (Perceptron(), Forget(10**6)),
    ):
        if task == "binary" or not isinstance(budget, Forget):
            assert np.array_equal(scores(rule, budget, task=task)[0], scores(rule, task=task)[0])


def test_step_size_adaptation_that_stands_still_is_norma():
    for loss in (Hinge(), Logistic()):
        still = StepSizeAdaptation(loss, 0.2, 0.1, meta_rate=0.0)
        agree(scores(still)[0], scores(SGD(loss, 0.2, 0.1))[0], repr(loss))
