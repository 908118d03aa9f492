"""Parts written in Python, and points that overflow, in every learner that takes them: one message, one behaviour."""

from __future__ import annotations

import gc
import inspect
import pickle
import weakref

import numpy as np
import public_learners
import pytest

from gristmill import (
    Additive,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Polynomial,
    RandomMaclaurin,
    Step,
)
from gristmill.features import FeatureClassifier, FeatureNovelty, FeatureRegressor

LEARNERS = public_learners.public()


def taking(part):
    """The learners with such a parameter."""
    return [name for name, kind in LEARNERS.items() if part in inspect.signature(kind).parameters]


# ---- k(x, x) = inf ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*taking("kernel"), *taking("similarity")])
def test_a_point_of_infinite_length_is_refused_by_its_row(name):
    part = "kernel" if name in taking("kernel") else "similarity"
    X, y = public_learners.stream(name, 20)
    X[13] *= 1e10  # to the power of 50 it is too much
    model = public_learners.made(name, **{part: Polynomial(50)}).partial_fit(X[:10], y[:10])
    said = public_learners.answers(model, X[:10])
    for learn in (model.partial_fit, model.prequential):
        with pytest.raises(ValueError, match=r"row 3: .*(finite|is inf)"):
            learn(X[10:], y[10:])
    with pytest.raises(ValueError, match=r"row 0: .*(finite|is inf)"):
        model.learn_one(X[13], y[13])
    assert model.n_seen_ == 10
    np.testing.assert_array_equal(public_learners.answers(model, X[:10]), said)
    model.partial_fit(X[10:13], y[10:13])


# ---- who refers to whom -------------------------------------------------------------------------------------------


class Kernel:
    def __call__(self, x, y):
        return float(np.dot(x, y))


class Rule:
    def __call__(self, trial):
        return Step(coefficient=0.1 * trial.label)


class Budget:
    def victim(self, stored):
        return None if len(stored.ids) < 5 else 0


PYTHON = {"kernel": Kernel, "similarity": Kernel, "rule": Rule, "budget": Budget}
PARTS = [(name, part) for part in PYTHON for name in taking(part)]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_part_that_refers_to_its_model_is_collected_with_it(name, part):
    X, y = public_learners.stream(name, 12)
    value = PYTHON[part]()
    try:
        model = public_learners.made(name, **{part: value}).partial_fit(X, y)
    except (TypeError, ValueError) as error:
        refused = str(error).lower()
        if part not in refused:
            raise
        return  # it takes no such part in Python, and says so
    value.model = model
    for inner in vars(model._run.parts).values() if hasattr(model._run.parts, "__dict__") else model._run.parts or ():
        if type(inner) is PYTHON[part]:
            inner.model = model  # the copy that runs
    gone = weakref.ref(model)
    core = model._run.core
    core_gone = weakref.ref(core) if hasattr(core, "__weakref__") else None
    del model, value, core
    inner = None
    gc.collect()
    assert gone() is None
    assert core_gone is None or core_gone() is None


def test_most_parts_may_be_python():
    assert {("KernelClassifier", "kernel"), ("FeatureRegressor", "rule"), ("KernelNovelty", "budget")} <= set(PARTS)


# ---- a rule's radius ----------------------------------------------------------------------------------------------

MAP = RandomMaclaurin(n_components=8, random_state=0)
HOMES = {
    "kernel": (KernelClassifier, KernelRegressor, KernelNovelty, {}),
    "additive": (KernelClassifier, KernelRegressor, KernelNovelty, {"kernel": Additive(Laplacian(1.0))}),
    "feature": (FeatureClassifier, FeatureRegressor, FeatureNovelty, {"map": MAP}),
}
RULED = [(home, kind, given) for home, (*kinds, given) in HOMES.items() for kind in kinds]


class Radius:
    """A rule that asks for a ball from its fourth event on."""

    def __init__(self, radius, needs_norm):
        self.radius, self.needs_norm = radius, needs_norm

    def __call__(self, trial):
        return Step(coefficient=0.1, **({"radius": self.radius} if trial.step > 3 else {}))


def test_every_learner_with_a_rule_is_among_them():
    assert set(taking("rule")) - {"StructuredLearner"} == {kind.__name__ for _, kind, _ in RULED}


@pytest.mark.parametrize(("home", "kind", "given"), RULED)
@pytest.mark.parametrize(
    ("radius", "needs_norm", "words"),
    [
        (-1.0, True, "row 1: .*radius.*>= 0"),
        (float("nan"), True, "row 1: .*radius.*>= 0"),
        ("wide", True, "radius"),
        (2.0, False, "row 1: .*needs_norm = True"),
    ],
)
def test_a_radius_that_makes_no_sense_is_refused_alike(home, kind, given, radius, needs_norm, words):
    X = np.random.default_rng(0).uniform(0.1, 0.9, size=(8, 4))
    model = kind(rule=Radius(radius, needs_norm), **given)
    model.partial_fit(X[:2], [0, 1])
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match=words):
        model.partial_fit(X[2:], [0, 1] * 3)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(("home", "kind", "given"), RULED)
def test_a_radius_is_kept(home, kind, given):
    X = np.random.default_rng(0).uniform(0.1, 0.9, size=(40, 4))
    model = kind(rule=Radius(0.25, True), **given).partial_fit(X, np.arange(40) % 2)
    assert model.norm_ <= 0.25 * (1 + 1e-9)
