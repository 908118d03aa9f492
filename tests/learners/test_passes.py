"""Several passes of `fit`: what is stored changes in place, beside the naive twin, and nothing is stored twice."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracle import Twin
from twin_cases import KERNEL, LEARNERS, same, stream

import gristmill
from gristmill import (
    SGD,
    Adatron,
    Additive,
    Alma,
    Density,
    DropOldest,
    DropRandom,
    DropSmallest,
    FeasibleSet,
    Hinge,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    MarginProjection,
    Merge,
    PassiveAggressive,
    Perceptron,
    Project,
    Romma,
    Squared,
    StepSizeAdaptation,
    Unbounded,
    Window,
    adatron,
)

COMPOSITIONS = {
    "pa": (PassiveAggressive(0.5), Unbounded()),
    "pa oldest": (PassiveAggressive(0.5), DropOldest(15)),
    "pa merge": (PassiveAggressive(0.5), Merge(15)),
    "pa smallest": (PassiveAggressive(0.7, 2), DropSmallest(15)),
    "pa project": (PassiveAggressive(0.5), Project(0.4)),
    "pa project few": (PassiveAggressive(0.5), Project(0.1, size=12)),
    "norma": (SGD(Hinge(), 0.3, 0.1, "inv_sqrt", intercept=True), Unbounded()),
    "nu": (SGD(Hinge(0.5, nu=0.2), 0.2, 0.1), Merge(20)),
    "ilk": (Implicit(Hinge(), C=0.6, reg=0.1), DropSmallest(20)),
    "perceptron": (Perceptron(), Merge(12)),
    "alma": (Alma(0.9), Unbounded()),
    "herbster": (FeasibleSet(radius=2.0), Unbounded()),
    "romma": (Romma(), Unbounded()),
    "projectron++": (MarginProjection(), Project(0.35)),
}
REGRESSION = {
    "pa": (PassiveAggressive(0.5), DropOldest(20)),
    "norma": (SGD(Squared(), 0.1, 0.05), Merge(25)),
    "ilk": (Implicit(Squared(), C=0.7), Project(0.3)),
    "svmd": (StepSizeAdaptation(Squared(), 0.1, 0.1, 0.2, 0.9), Unbounded()),
}
CASES = [
    pytest.param(task, *parts, id=f"{task}-{name}")
    for task, table in (("binary", COMPOSITIONS), ("multiclass", COMPOSITIONS), ("regression", REGRESSION))
    for name, parts in table.items()
]


@pytest.mark.parametrize("kind", ["noisy", "duplicated"])
@pytest.mark.parametrize(("task", "rule", "budget"), CASES)
def test_the_core_is_the_twin(task, rule, budget, kind):
    X, y = stream(kind, task, 50)
    if task == "multiclass":  # classes are met in their order
        first = [int(np.flatnonzero(y == c)[0]) for c in range(3)]
        order = [*first, *np.setdiff1d(np.arange(50), first)]
        X, y = X[order], y[order]
    model = LEARNERS[task](KERNEL, rule, budget, passes=3, random_state=0)
    known = {"binary": [-1, 1], "multiclass": [0, 1, 2]}.get(task)
    kind_of_task = "classification" if known else task
    twin = Twin(KERNEL, rule, budget, kind_of_task, 3 if task == "multiclass" else None)
    if known:  # all scores are there from the first event on
        model = LEARNERS[task](KERNEL, rule, budget, random_state=0)
        model._learn(X, y, classes=known, fresh=True, passes=3)
    else:
        model.fit(X, y)
    for p in range(3):
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            twin.step(x, label, index=None if p == 0 else t)
    same(model, twin, "after three passes")
    assert model.n_seen_ == 50
    assert len(set(model.support_ids_.tolist())) == model.n_support_


@pytest.mark.parametrize(
    "budget", [Unbounded(), Merge(30), DropOldest(30), DropSmallest(30), DropRandom(30), Project(0.3)], ids=repr
)
def test_saving_after_passes_changes_nothing_that_comes_later(budget, tmp_path):
    X, y = stream("noisy", "multiclass", 300)
    model = KernelClassifier(KERNEL, PassiveAggressive(0.3), budget, random_state=0, passes=4).fit(X[:200], y[:200])
    model.save(tmp_path / "model.gristmill")
    again, thawed = gristmill.load(tmp_path / "model.gristmill"), pickle.loads(pickle.dumps(model))
    for one in (model, again, thawed):
        one.partial_fit(X[200:], y[200:])
        assert one.n_seen_ == 300
    assert np.array_equal(again.support_ids_, model.support_ids_)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(thawed.decision_function(X), model.decision_function(X))


def test_more_passes_tell_the_training_events_better():
    X, y = stream("noisy", "binary", 400)
    wrong = [(KernelClassifier(KERNEL, passes=passes).fit(X, y).predict(X) != y).mean() for passes in (1, 5)]
    assert wrong[1] < wrong[0]


def test_probabilities_are_learned_in_the_first_pass():
    X, y = stream("noisy", "binary", 200)
    once, often = (KernelClassifier(KERNEL, passes=passes).fit(X, y) for passes in (1, 4))
    fields = [name for name in once._engine.state() if name.startswith("calibration")]
    assert fields
    for name in fields:
        assert np.array_equal(once._engine.state()[name], often._engine.state()[name])


def test_the_argument_of_fit_is_the_parameter():
    X, y = stream("noisy", "binary", 100)
    said = KernelClassifier(KERNEL, passes=3).fit(X, y)
    asked = KernelClassifier(KERNEL).fit(X, y, passes=3)
    assert np.array_equal(said.dual_coef_, asked.dual_coef_)
    assert not np.array_equal(said.dual_coef_, KernelClassifier(KERNEL).fit(X, y).dual_coef_[: len(said.dual_coef_)])
    streamed = KernelClassifier(KERNEL, passes=3).partial_fit(X, y)  # a stream is seen once
    assert np.array_equal(streamed.dual_coef_, KernelClassifier(KERNEL).fit(X, y).dual_coef_)


def test_adatron_and_the_estimator_have_one_setting():
    X, y = stream("separable", "binary", 40)
    by_rule = KernelClassifier(KERNEL, Adatron(0.8, 2.0, passes=4), Unbounded()).fit(X, y)
    by_estimator = KernelClassifier(KERNEL, Adatron(0.8, 2.0), Unbounded(), passes=4).fit(X, y)
    both = KernelClassifier(KERNEL, Adatron(0.8, 2.0, passes=4), Unbounded(), passes=4).fit(X, y)
    assert np.array_equal(by_rule.dual_coef_, by_estimator.dual_coef_)
    assert np.array_equal(by_rule.dual_coef_, both.dual_coef_)
    assert np.array_equal(by_rule.dual_coef_, adatron(KERNEL, 0.8, 2.0, 4).fit(X, y).dual_coef_)
    with pytest.raises(ValueError, match="one setting, and here are two: 3 and 4"):
        KernelClassifier(KERNEL, Adatron(0.8, 2.0, passes=4), Unbounded(), passes=3).fit(X, y)
    with pytest.raises(ValueError, match="one setting, and here are two: 4 and 2"):
        by_rule.fit(X, y, passes=2)


def test_an_error_in_a_later_pass_leaves_the_old_model():
    X, y = stream("noisy", "regression", 60)
    model = KernelRegressor(KERNEL).fit(X, y)
    before = model.dual_coef_
    model.set_params(rule=SGD(Squared(), rate=3.0), budget=Unbounded(), passes=400)
    with pytest.raises(ValueError, match="diverged"):
        model.fit(X, y)
    assert np.array_equal(model.dual_coef_, before)


def test_what_has_a_meaning_once_says_so():
    X, y = stream("noisy", "binary", 30)
    for model, match in (
        (KernelClassifier(KERNEL, budget=Window(5), passes=2), "Window.* forgets by age"),
        (KernelNovelty(KERNEL, Density(), Unbounded(), passes=2), "Density counts every event once"),
        (KernelClassifier(Additive(Laplacian(1.0)), passes=2), "take an event once"),
        (KernelClassifier(KERNEL, passes=0), "passes must be a whole number"),
        (KernelClassifier(KERNEL, passes="auto"), "passes must be a whole number"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            model.fit(X, y)
    with pytest.raises(ValueError, match="forgets by age"):
        KernelClassifier(KERNEL, budget=Window(5)).fit(X, y, passes=3)
    with pytest.raises(ValueError, match="passes must be a whole number"):
        KernelClassifier(KERNEL).fit(X, y, passes=0)
