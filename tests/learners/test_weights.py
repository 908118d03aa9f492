"""Sample weights of every learner of the family against the twins; points of length 0."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import Twin
from twin_cases import (
    CLASSIFIERS,
    DETECTORS,
    KERNEL,
    REGRESSORS,
    TESTED,
    TWO_CLASSES,
    agree,
    same,
    stream,
)

from gristmill import (
    Adatron,
    DropRandom,
    FeasibleSet,
    Implicit,
    KernelClassifier,
    Linear,
    PassiveAggressive,
    Romma,
    Unbounded,
)


def test_weights():
    """A weight multiplies the loss: the twin knows how for every rule."""
    X, y = stream("noisy", "binary")
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], size=len(X))
    for rule, budget in [*CLASSIFIERS.values(), *TWO_CLASSES.values()]:
        if isinstance(budget, DropRandom):
            continue
        twin = Twin(KERNEL, rule, budget)
        wanted = [twin.step(x, label, weight) for x, label, weight in zip(X, y, weights, strict=True)]
        model = KernelClassifier(KERNEL, rule, budget)
        agree(model.prequential(X, y, sample_weight=weights), wanted, repr(rule))
        same(model, twin, repr(rule))


@pytest.mark.parametrize("rule", [Romma(), FeasibleSet(), Adatron(), PassiveAggressive(), Implicit()], ids=repr)
def test_nothing_is_divided_by_a_point_of_length_0(rule):
    model = KernelClassifier(Linear(), rule, Unbounded())
    scores = model.prequential(np.zeros((5, 2)), [1, -1, 1, 1, -1])
    assert model.n_support_ == 0
    assert not scores.any()


def test_every_composition_has_a_file_of_its_own():
    names = [*CLASSIFIERS, *TWO_CLASSES, *REGRESSORS, *DETECTORS]
    assert set(names) == {name for tested in TESTED.values() for name in tested}
