"""Every learner keeps every promise: all (catalogue entry, check) pairs, and scikit-learn's own checks."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import gristmill
from gristmill import (
    SGD,
    Density,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    Exponential,
    Gaussian,
    Hinge,
    Huber,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Logistic,
    Manhattan,
    Merge,
    Normalized,
    PassiveAggressive,
    Perceptron,
    Pinball,
    Polynomial,
    Sigmoid,
    SquaredEuclidean,
    Step,
    Unbounded,
    Vovk,
    Window,
    catalogue,
    checks,
)

# What a catalogue function cannot do without; everything else keeps its default.
NEEDED = {
    "kernel": Gaussian(2.0),
    "rate": 0.2,
    "reg": 0.05,
    "nu": 0.2,
    "size": 25,
    "epsilon": 0.1,
    "C": 1.0,
    "passes": 1,
    "meta_rate": 0.05,
    "decay": 0.9,
}
# And every value of these that changes the composition, where the function has the parameter.
VARIED = {
    "size": [20],
    "window": [40],
    "average": [True],
    "variant": [0, 2],
    "intercept": [True],
    "schedule": ["inv_sqrt"],
}


def catalogue_entries():
    for name in catalogue.__all__:
        function = getattr(catalogue, name)
        parameters = inspect.signature(function).parameters
        needed = {key: NEEDED[key] for key, p in parameters.items() if p.default is inspect.Parameter.empty}
        yield pytest.param(function(**needed), id=name)
        for key, values in VARIED.items():
            if key in parameters and key not in needed:
                for value in values:
                    yield pytest.param(function(**needed, **{key: value}), id=f"{name}-{key}={value}")


def test_every_algorithm_of_the_catalogue_is_tried():
    assert (
        set(catalogue.__all__)
        == {name for name, home in gristmill._NAMES.items() if home == "catalogue"}
        == {param.id.split("-")[0] for param in catalogue_entries()}
    )


def cautious(trial):
    """A rule in plain Python: a Perceptron with a margin."""
    if trial.label * trial.score < 0.1:
        return Step(coefficient=0.5 * trial.label * trial.weight, shrink=0.99)
    return None


class Decaying:
    """A rule in plain Python with a state of its own, and a ball."""

    needs_norm = True

    def __init__(self):
        self.updates = 0

    def __call__(self, trial):
        if trial.label * trial.score > 0:
            return None
        self.updates += 1
        return Step(coefficient=trial.label * trial.weight / self.updates**0.5, radius=1.5)


class DropMiddle:
    """A budget in plain Python with a state of its own."""

    def __init__(self, size):
        self.size, self.asked = size, 0

    def victim(self, stored):
        self.asked += 1
        return None if len(stored.ids) < self.size else (self.asked % self.size)


def overlap(x, y):
    return float(np.minimum(np.abs(x), np.abs(y)).sum())


hinge = SGD(Hinge(), rate=0.2, reg=0.05)
tube = SGD(EpsilonInsensitive(0.05), rate=0.2, reg=0.05)
COMPOSITIONS = {
    "defaults-classifier": KernelClassifier(),
    "defaults-regressor": KernelRegressor(),
    "defaults-novelty": KernelNovelty(),
    "linear": KernelClassifier(Linear(), Perceptron(), DropOldest(20)),
    "polynomial": KernelClassifier(Polynomial(2), hinge, DropSmallest(20)),
    "laplacian": KernelClassifier(Laplacian(1.0), PassiveAggressive(), DropRandom(20), random_state=3),
    "exponential": KernelRegressor(Exponential(1.5), tube, DropSmallest(30)),
    "vovk": KernelClassifier(Vovk(), hinge, DropOldest(30)),
    "vovk-degree": KernelClassifier(Vovk(3), hinge, Window(30)),
    "sigmoid": KernelClassifier(Sigmoid(0.5, 0.1), hinge, DropOldest(30)),
    "manhattan": KernelClassifier(Manhattan(), hinge, DropOldest(30)),
    "squared-euclidean": KernelClassifier(SquaredEuclidean(), hinge, DropOldest(30)),
    "normalized": KernelClassifier(Normalized(Polynomial(2)), hinge, DropSmallest(30)),
    "sum": KernelClassifier(0.5 * Gaussian(1.0) + Linear() * Laplacian(0.3), hinge, DropOldest(30)),
    "logistic": KernelClassifier(Gaussian(1.0), SGD(Logistic(), 0.5, 0.01, "inv_sqrt"), DropSmallest(30)),
    "nu-hinge": KernelClassifier(Gaussian(1.0), SGD(Hinge(1.0, nu=0.3), 0.2, 0.05), DropOldest(30)),
    "nu-tube": KernelRegressor(Gaussian(1.0), SGD(EpsilonInsensitive(0.1, nu=0.3), 0.2, 0.05), Window(50)),
    "pinball": KernelRegressor(Gaussian(1.0), SGD(Pinball(0.9), 0.2, 0.05), DropOldest(30)),
    "nu-huber": KernelRegressor(Gaussian(1.0), SGD(Huber(0.1, nu=0.3), 0.2, 0.05), DropSmallest(30)),
    "growing-window": KernelRegressor(Gaussian(1.0), tube, Window(growth=0.1)),
    "averaged": KernelRegressor(Gaussian(1.0), tube, Unbounded(), average=True),
    "novelty-pa": KernelNovelty(Gaussian(1.0), PassiveAggressive(0.1), DropRandom(20)),
    "density": KernelNovelty(Gaussian(1.0), Density(nu=0.1), Merge(20)),
    "density-sampled": KernelNovelty(Laplacian(1.0), Density(0.01, 0.1), DropRandom(20, uniform=True), random_state=5),
    "reservoir": KernelClassifier(Gaussian(1.0), Perceptron(), DropRandom(8, uniform=True), random_state=3),
    "python-rule": KernelClassifier(Gaussian(1.0), cautious, DropOldest(20)),
    "python-rule-state": KernelClassifier(Gaussian(1.0), Decaying(), DropSmallest(20)),
    "python-budget": KernelClassifier(Gaussian(1.0), hinge, DropMiddle(15)),
    "python-kernel": KernelClassifier(overlap, Perceptron(), DropOldest(15)),
    "python-kernel-mixed": KernelRegressor(Normalized(overlap) + Gaussian(1.0), tube, DropSmallest(15)),
    "python-everything": KernelClassifier(overlap, Decaying(), DropMiddle(15)),
}


def pairs():
    for param in [*catalogue_entries(), *(pytest.param(m, id=name) for name, m in COMPOSITIONS.items())]:
        (model,) = param.values
        for check in checks.yield_checks(model):
            yield pytest.param(model, check, id=f"{param.id}-{check.__name__.removeprefix('check_')}")


@pytest.mark.parametrize(("model", "check"), list(pairs()))
def test_promise(model, check):
    check(model)


def test_objects_that_are_not_vectors_keep_the_contract():
    X = ["mill", "grinds", "grain", "and", "the", "river", "drives", "wheel", "of", "at", "night"] * 4
    y = ["m" if "m" in word or "g" in word else "o" for word in X]
    model = KernelClassifier(lambda a, b: len(set(a) & set(b)), Perceptron(), DropOldest(5))
    for check in checks.yield_checks(model, X, np.array(y)):
        if check.__name__ not in ("check_pausing_changes_nothing", "check_copies_are_independent"):
            check(model)  # a lambda cannot be pickled


@pytest.mark.parametrize("broken", ["learns from predicting", "keeps a view", "counts wrong"])
def test_checks_find_broken_learners(broken):
    """A check that cannot fail would be no check."""

    class Broken(KernelClassifier):
        def predict(self, X):
            if broken == "learns from predicting":
                self.partial_fit(X[:1], [0])
            return super().predict(X)

        def learn_one(self, x, y, sample_weight=1.0):
            if broken == "keeps a view":
                self.last = x
            super().learn_one(x, y, sample_weight)

        @property
        def n_seen_(self):
            return super().n_seen_ + (broken == "counts wrong")

    model = Broken(Gaussian(1.0), hinge, DropOldest(10))
    found = []
    for check in checks.yield_checks(model):
        try:
            check(model)
        except checks.CheckError:
            found.append(check.__name__)
        except (TypeError, AttributeError):  # a class inside a function can be neither pickled nor saved
            pass
    wanted = {
        "learns from predicting": "check_predicting_changes_nothing",
        "keeps a view": "check_inputs_are_left_alone",
        "counts wrong": "check_attributes_fit_together",
    }
    assert wanted[broken] in found


IN_ORDER = "an online learner takes one step an event: twice a half is not once a whole, and order counts"
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": IN_ORDER,
    "check_sample_weight_equivalence_on_sparse_data": IN_ORDER,
}
CLASS_WEIGHTS = {"check_class_weight_classifiers": IN_ORDER}
NAMED = {"check_regressors_no_decision_function": "every learner of gristmill has decision_function"}
FAMILIAR = {
    name: "a density finds what it was fitted on familiar: alarms are for events that it has not learned"
    for name in ("check_outliers_train", "check_outliers_train(readonly_memmap=True)", "check_outliers_fit_predict")
}
EXPECTED = {"KernelClassifier": WEIGHTS | CLASS_WEIGHTS, "KernelRegressor": WEIGHTS | NAMED, "KernelNovelty": FAMILIAR}


@parametrize_with_checks(
    [KernelClassifier(), KernelRegressor(), KernelNovelty()],
    expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator).__name__, {}),
)
@pytest.mark.filterwarnings("ignore:.*Prepared:UserWarning")  # their columns have means of a hundred spreads
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def test_every_public_name_exists():
    for name in gristmill.__all__:
        assert getattr(gristmill, name) is not None
