"""What makes no sense is refused by name: by the catalogue at once, by an estimator at its first event."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import gristmill
from gristmill import (
    SGD,
    Adatron,
    Alma,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    FeasibleSet,
    Forget,
    Gaussian,
    Hinge,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Logistic,
    MarginProjection,
    PassiveAggressive,
    Perceptron,
    Project,
    Romma,
    Squared,
    StepSizeAdaptation,
    Unbounded,
    Window,
    catalogue,
)

K = Gaussian(1.0)
#: the arguments that each function of the catalogue needs beside the kernel
NEEDED = {
    "random_budget_perceptron": {"size": 5},
    "forgetron": {"size": 5},
    "norma_classifier": {"rate": 0.1, "reg": 0.1},
    "norma_regressor": {"rate": 0.1, "reg": 0.1},
    "norma_novelty": {"nu": 0.1, "rate": 0.1},
    "projection_regressor": {"epsilon": 0.1},
    "adatron": {"rate": 1.0, "C": 10.0, "passes": 2},
    "svmd": {"rate": 0.1, "reg": 0.0, "meta_rate": 0.1, "decay": 0.9},
}
FUNCTIONS = {name: getattr(catalogue, name) for name in catalogue.__all__}
WRONG = {
    "size": (0, -1, 2.5, True, "5"),
    "window": (0, -3, 1.5),
    "tolerance": (-0.1, math.nan, math.inf),
    "alpha": (0.0, 2.0, -1.0, math.nan),
    "C": (0.0, -1.0, math.nan),
    "variant": (3, -1, "1"),
    "rate": (0.0, -1.0, math.nan, math.inf),
    "reg": (-1.0, math.nan, math.inf),
    "radius": (0.0, -1.0, math.nan, math.inf),
    "epsilon": (-0.1, math.nan),
    "nu": (0.0, 1.5),
    "margin": (0.0, -1.0),
    "passes": (0, 1.5),
    "meta_rate": (-0.1,),
    "decay": (-0.1, 1.1),
    "schedule": ("linear",),
    "aggressive": ("yes", 1),
    "squared": (2,),
    "basic": (None,),
    "intercept": (3,),
}


def parameters():
    for name, function in FUNCTIONS.items():
        for parameter in inspect.signature(function).parameters:
            for value in WRONG.get(parameter, ()):
                yield pytest.param(function, parameter, value, id=f"{name}-{parameter}-{value!r}")


@pytest.mark.parametrize(("function", "parameter", "value"), list(parameters()))
def test_the_catalogue_refuses_a_parameter_at_once(function, parameter, value):
    given = {**NEEDED.get(function.__name__, {}), parameter: value}
    word = {"window": "steps"}.get(parameter, parameter)
    with pytest.raises((ValueError, TypeError), match=rf"(?=.*\b{word}\b).* must be .*, got"):
        function(K, **given)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_catalogue_refuses_what_is_no_kernel(name):
    with pytest.raises(TypeError, match="kernel must be a kernel"):
        FUNCTIONS[name]("rbf", **NEEDED.get(name, {}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_the_catalogue_composes(name):
    model = FUNCTIONS[name](K, **NEEDED.get(name, {}))
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    assert model.fit(X, y).n_seen_ == 30


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, f in FUNCTIONS.items()
        if {"size", "average"} <= set(inspect.signature(f).parameters) and not name.startswith("passive_aggressive")
    ],  # whose size is kept by folding, which keeps the mean too
)
def test_the_catalogue_refuses_an_average_of_what_was_dropped(name):
    given = {**NEEDED.get(name, {}), "size": 5}
    with pytest.raises(ValueError, match=r"average=True needs every point .* use budget=Merge"):
        FUNCTIONS[name](K, average=True, **given)
    if "window" in inspect.signature(FUNCTIONS[name]).parameters:
        with pytest.raises(ValueError, match="average=True"):
            FUNCTIONS[name](K, average=True, **NEEDED.get(name, {}), window=5)


def test_the_catalogue_refuses_a_loss_of_another_task():
    with pytest.raises(ValueError, match="Squared is a loss for regression"):
        gristmill.norma_classifier(K, 0.1, 0.1, loss=Squared())
    with pytest.raises(ValueError, match="Hinge is a loss for"):
        gristmill.norma_regressor(K, 0.1, 0.1, loss=Hinge())
    with pytest.raises(ValueError, match=r"Hinge.*or Squared"):
        gristmill.ilk_classifier(K, loss=EpsilonInsensitive(0.1))
    with pytest.raises(ValueError, match="not for classification"):
        gristmill.svmd(K, **NEEDED["svmd"], loss=Squared())
    with pytest.raises(ValueError, match=r"give window .* or size"):
        gristmill.norma_classifier(K, 0.1, 0.1, window=5, size=5)


SENSELESS = [
    (KernelClassifier, MarginProjection(), Unbounded(), "use budget=Project"),
    (KernelClassifier, MarginProjection(), DropOldest(5), "use budget=Project"),
    (KernelClassifier, Romma(), Project(0.1), "not with Romma"),
    (KernelClassifier, StepSizeAdaptation(), Project(0.1), "not with StepSizeAdaptation"),
    (KernelClassifier, Adatron(), Project(0.1), "not with Adatron"),
    (KernelClassifier, Adatron(), DropSmallest(5), "use budget=Unbounded"),
    (KernelClassifier, Adatron(), Window(5), "use budget=Unbounded"),
    (KernelClassifier, PassiveAggressive(), Forget(5), "works with Perceptron"),
    (KernelClassifier, MarginProjection(), Forget(5), "use budget=Project"),
    (KernelClassifier, FeasibleSet(epsilon=0.1), Unbounded(), "tube for regression"),
    (KernelRegressor, Perceptron(), Unbounded(), "not for regression"),
    (KernelRegressor, MarginProjection(), Project(0.1), "not for regression"),
    (KernelRegressor, Alma(), Unbounded(), "not for regression"),
    (KernelRegressor, Romma(), Unbounded(), "not for regression"),
    (KernelRegressor, Adatron(), Unbounded(), "not for regression"),
    (KernelRegressor, Implicit(Logistic()), Unbounded(), "not for regression"),
    (KernelNovelty, FeasibleSet(), Unbounded(), "not for novelty"),
    (KernelNovelty, Implicit(Squared()), Unbounded(), "not for novelty"),
    (KernelNovelty, SGD(Hinge(), intercept=True), Unbounded(), "no meaning for novelty"),
]


@pytest.mark.parametrize(("learner", "rule", "budget", "message"), SENSELESS, ids=lambda part: repr(part))
def test_parts_that_make_no_sense_together(learner, rule, budget, message):
    model = learner(K, rule, budget)
    before = set(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=message):
        model.learn_one(np.array([0.0]), 1)
    assert set(vars(model)) == before


@pytest.mark.parametrize("budget", [Window(5), DropOldest(5), DropSmallest(5), DropRandom(5), Forget(5)], ids=repr)
def test_no_average_over_points_that_leave(budget):
    with pytest.raises(ValueError, match="average=True needs every point"):
        KernelClassifier(K, Perceptron(), budget, average=True).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("rule", "budget"),
    [(Perceptron(), Forget(5)), (Adatron(), Unbounded())],
    ids=repr,
)
def test_two_classes_only(rule, budget):
    X = [[0.0], [1.0], [2.0]]
    with pytest.raises(ValueError, match="two classes only, got 3; use"):
        KernelClassifier(K, rule, budget).fit(X, [0, 1, 2])
    model = KernelClassifier(K, rule, budget).fit(X, [0, 1, 1])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="two classes only, got 3; use"):
        model.partial_fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="two classes only, got 3; use"):
        model.learn_one(np.array([0.0]), 2)
    assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(model.decision_function(X), before)
