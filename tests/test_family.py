"""Each learner of the online family against its naive twin, step by step; and one learner as another."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import gristmill
from gristmill import (
    SGD,
    Adatron,
    Alma,
    DropRandom,
    DropSmallest,
    FeasibleSet,
    Forget,
    Gaussian,
    Hinge,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Linear,
    Logistic,
    MarginProjection,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Project,
    Romma,
    Squared,
    StepSizeAdaptation,
    Unbounded,
    _core,
    theory,
)
from oracle import Twin, naive_matrix

STEPS = 120
KERNEL = Gaussian(0.6)
CLASSIFIERS = {
    "projectron": (Perceptron(), Project(0.35)),
    "projectron++": (MarginProjection(), Project(0.35)),
    "projectron++ squared": (MarginProjection(squared=True), Project(0.5)),
    "silk": (Implicit(Hinge(), C=0.6, rate=0.8, reg=0.1), DropSmallest(15)),
    "ilk logistic": (Implicit(Logistic(), C=2.0, rate=0.5, reg=0.2), Unbounded()),
    "projected ilk": (Implicit(Hinge(0.5), C=0.6, rate=0.8, reg=0.1), Project(0.3)),
    "projected norma": (SGD(Hinge(), 0.3, 0.1, intercept=True), Project(0.4)),
    "herbster": (FeasibleSet(), Unbounded()),
    "herbster in a ball": (FeasibleSet(radius=1.5), Unbounded()),
    "alma": (Alma(0.8), Unbounded()),
    "projected alma": (Alma(0.9), Project(0.35)),
    "random budget": (Perceptron(), DropRandom(12)),
    "romma": (Romma(), Unbounded()),
    "aggressive romma": (Romma(aggressive=True), Unbounded()),
}
TWO_CLASSES = {
    "forgetron": (Perceptron(), Forget(12)),
    "basic forgetron": (Perceptron(), Forget(12, basic=True)),
    "adatron": (Adatron(0.7, 3.0), Unbounded()),
    "svmd": (StepSizeAdaptation(Hinge(), 0.2, 0.1, 0.3, 0.9), Unbounded()),
    "svmd logistic": (StepSizeAdaptation(Logistic(), 0.3, 0.05, 0.5, 0.95, "linear"), DropSmallest(20)),
}
REGRESSORS = {
    "ilk": (Implicit(Squared(), C=0.7, rate=0.9, reg=0.05), DropSmallest(20)),
    "projected ilk": (Implicit(Squared(), C=0.7), Project(0.3)),
    "herbster": (FeasibleSet(0.05), Unbounded()),
    "herbster in a ball": (FeasibleSet(0.05, 1.2), Unbounded()),
    "projected herbster": (FeasibleSet(0.05, 1.2), Project(0.3)),
    "svmd": (StepSizeAdaptation(Squared(), 0.1, 0.1, 0.2, 0.9), Unbounded()),
}
DETECTORS = {
    "ilk": (Implicit(Hinge(0.7), C=0.2, rate=0.8, reg=0.1), DropSmallest(20)),
    "projected ilk": (Implicit(Hinge(0.7), C=0.2), Project(0.3)),
    "projected norma": (SGD(Hinge(0.0, nu=0.2), 0.1, 0.5), Project(0.3)),
    "svmd": (StepSizeAdaptation(Hinge(0.5), 0.1, 0.1, 0.2, 0.9), Unbounded()),
}


def values_of(kind, X, rng):
    """What the labels are made of."""
    values = X[:, 0] + X[:, 1] * X[:, 2]
    if kind == "drifting":
        turn = np.linspace(0, 3, len(X))
        values = np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1]
    if kind == "separable":
        values = X[:, 0]
    if kind == "random":
        values = rng.normal(size=len(X))
    return values + (0.5 * rng.normal(size=len(X)) if kind in ("noisy", "duplicated") else 0.0)


def stream(kind, task, steps=STEPS, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, 3))
    if kind == "separable":
        X[:, 0] += 0.5 * np.sign(X[:, 0])
    values = values_of(kind, X, rng)
    if kind == "duplicated":
        X = X[rng.integers(0, 25, size=steps)]
    if kind == "degenerate":
        X[rng.random(steps) < 0.3] = 0.0
    if task == "multiclass":
        return X, np.digitize(values, [-0.5, 0.5])
    return X, np.where(values > 0, 1, -1) if task == "binary" else values


STREAMS = ("random", "drifting", "separable", "noisy", "duplicated", "degenerate")
LEARNERS = {"binary": KernelClassifier, "multiclass": KernelClassifier, "regression": KernelRegressor,
            "novelty": KernelNovelty}  # fmt: skip


def agree(found, wanted, what, tolerance=1e-9):
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    assert found.shape == wanted.shape, what
    assert np.abs(found - wanted).max(initial=0.0) <= tolerance * max(1.0, np.abs(wanted).max(initial=0.0)), what


def same(model, twin, what):
    """Stored ids, coefficients, norm and adaptive quantities."""
    assert model.support_ids_.tolist() == twin.ids, what
    agree(model.dual_coef_, np.array(twin.coef).reshape(model.dual_coef_.shape), what)
    agree(model.intercept_, twin.intercept, what)
    agree(model.norm_**2, twin.norm2(), what)
    for name, wanted in (("margin_", twin.width), ("rate_", twin.rate), ("corrections_", twin.corrections)):
        if hasattr(model, name):
            agree(getattr(model, name), wanted, f"{what}: {name}")
    if isinstance(twin.budget, Forget):
        agree(model._engine.budget_state(), [twin.mistakes, twin.damage], f"{what}: damage")


def follow(task, kernel, rule, budget, X, y):
    """An event at a time beside the twin; then again in chunks, bit for bit."""
    kind = "classification" if task in ("binary", "multiclass") else task
    choices = []
    twin = Twin(kernel, rule, budget, kind, 3 if task == "multiclass" else None, replay=lambda ids: choices.pop())
    more = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": [0, 1, 2]}}.get(task, {})
    model, whole = (LEARNERS[task](kernel, rule, budget, random_state=1) for _ in range(2))
    said = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        before = model.support_ids_ if t else np.empty(0, dtype=int)
        said.append(model.prequential(x[None], [label], **more)[0])
        choices.extend(np.setdiff1d(before, model.support_ids_).tolist() if isinstance(budget, DropRandom) else [])
        agree(said[-1], twin.step(x, label), f"the score of event {t}")
        assert model.support_ids_.tolist() == twin.ids, f"the points after event {t}"
        if t % 10 == 0 or t == len(X) - 1:
            same(model, twin, f"after event {t}")
    cut = len(X) // 3
    chunks = [whole.prequential(X[a:b], y[a:b], **more) for a, b in ((0, cut), (cut, len(X)))]
    assert np.array_equal(np.concatenate(chunks), np.array(said))
    assert np.array_equal(whole.dual_coef_, model.dual_coef_)
    return model, twin


def compositions():
    for task, table in (
        ("binary", CLASSIFIERS | TWO_CLASSES),
        ("multiclass", CLASSIFIERS),
        ("regression", REGRESSORS),
        ("novelty", DETECTORS),
    ):
        for number, (name, (rule, budget)) in enumerate(table.items()):
            for place, kind in enumerate(STREAMS):
                # All pairs for two classes; elsewhere every second one, in a chessboard.
                if task == "binary" or (number + place) % 2 == 0:
                    yield pytest.param(task, rule, budget, kind, id=f"{task}-{name}-{kind}")


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions()))
def test_the_core_is_the_twin(task, rule, budget, kind):
    kernel = Linear() if kind == "degenerate" else KERNEL
    if kind == "degenerate" and isinstance(budget, Project):
        kernel = Polynomial(2, 0.5, 0.0)  # six dimensions, so that points both enter and fold
    X, y = stream(kind, task)
    follow(task, kernel, rule, budget, X, y)


@pytest.mark.parametrize("kind", STREAMS)
def test_several_passes_of_the_adatron(kind):
    X, y = stream(kind, "binary", 40)
    kernel, rule = Linear() if kind == "degenerate" else KERNEL, Adatron(0.8, 2.0, passes=4)
    model, twin = KernelClassifier(kernel, rule, Unbounded()).fit(X, y), Twin(kernel, rule)
    for p in range(4):
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            twin.step(x, label, index=None if p == 0 else t)
    same(model, twin, "after four passes")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection(), Alma(0.9)], ids=repr)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_the_bounded_average(task, rule):
    X, y = stream("noisy", task)
    twin = Twin(KERNEL, rule, Project(0.35), n_classes=3 if task == "multiclass" else None, average=True)
    for x, label in zip(X, y, strict=True):
        twin.step(x, label)
    model = KernelClassifier(KERNEL, rule, Project(0.35), average=True).fit(X, y)
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


# ---- degenerate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection()], ids=repr)
def test_a_tolerance_above_every_norm_warns_and_stores_nothing(task, rule):
    X, y = stream("noisy", task)
    model = KernelClassifier(KERNEL, rule, Project(1.5))
    with pytest.warns(UserWarning, match=r"tolerance=1\.5 is not below the norm"):
        scores = model.prequential(X, y)
    assert model.n_support_ == 0
    assert not scores.any()


@pytest.mark.parametrize("rule", [Romma(), FeasibleSet(), Adatron(), PassiveAggressive(), Implicit()], ids=repr)
def test_nothing_is_divided_by_a_point_of_length_0(rule):
    model = KernelClassifier(Linear(), rule, Unbounded())
    scores = model.prequential(np.zeros((5, 2)), [1, -1, 1, 1, -1])
    assert model.n_support_ == 0
    assert not scores.any()


# ---- one learner is another, in the core itself ---------------------------------------------------------


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


def two_outputs(kernel, rule, budget, X, y):
    """The max-score code with two classes: f_1 - f_0, and the points."""
    core = _core.Learner(
        kernel=kernel._program(),
        rule=rule._spec(),
        budget=budget._spec(),
        task="classification",
        outputs=2,
        width=X.shape[1],
        sparse=False,
        single=False,
        average=False,
        seed=0,
    )
    said = core.learn(X, (y > 0).astype(float), None, True)
    ids, order = core.ids()
    return said[:, 1] - said[:, 0], np.array(ids)[order]


@pytest.mark.parametrize(
    ("rule", "budget"),
    [value for name, value in CLASSIFIERS.items() if name not in ("projected norma", "random budget")],
    ids=lambda part: repr(part),
)
def test_two_classes_with_half_the_kernel_are_the_binary_learner(rule, budget):
    X, y = stream("noisy", "binary", 200)
    model = KernelClassifier(KERNEL, rule, budget)
    wanted = model.prequential(X, y, classes=[-1, 1])
    if isinstance(rule, Alma) or getattr(rule, "radius", None):
        X, wanted = (
            X[:1],
            wanted[:1],
        )  # the ball is about ||(f_0, f_1)||, half of ||f||: only the first step agrees
        model = KernelClassifier(KERNEL, rule, budget).fit(X, y[:1])
    found, ids = two_outputs(0.5 * KERNEL, rule, budget, X, y[: len(X)])
    agree(found, wanted, "f_1 - f_0 = f")
    assert ids.tolist() == model.support_ids_.tolist()


# ---- bounds ---------------------------------------------------------------------------------------------


class Bench:
    """A run of the core in the unit ball of a kernel, and comparators for it."""

    def __init__(self, kind, steps=250):
        X, self.y = stream(kind, "binary", steps)
        self.X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        gram = naive_matrix(Gaussian(1.0), self.X)
        self.comparators = [(0.0, np.zeros(steps))]
        for ridge in (10.0, 1.0, 0.1, 1e-4):
            coef = np.linalg.solve(gram + ridge * np.eye(steps), self.y)
            for scale in (0.3, 1.0):
                self.comparators.append((scale * math.sqrt(coef @ gram @ coef), scale * (gram @ coef)))

    def mistakes(self, model):
        return int((self.y * model.prequential(self.X, self.y) <= 0).sum())

    def holds(self, model, bound, margin=1.0):
        made = self.mistakes(model)
        for norm, values in self.comparators:
            limit = bound(norm, float(np.maximum(0, margin - self.y * values).sum()))
            assert limit is None or made <= limit, (made, limit, norm)


@pytest.fixture(scope="module", params=["separable", "noisy", "drifting", "random"])
def bench(request):
    return Bench(request.param)


def test_bounds_of_perceptrons(bench):
    kernel = Gaussian(1.0)
    bench.holds(gristmill.perceptron(kernel), lambda g, d: theory.perceptron_mistake_bound(1.0, g, d))
    bench.holds(
        gristmill.passive_aggressive(kernel, C=0.5),
        lambda g, d: theory.passive_aggressive_mistake_bound(1.0, 0.5, g, d),
    )
    limit = theory.forgetron_norm_limit(100)
    bench.holds(
        gristmill.forgetron(kernel, size=100),
        lambda g, d: theory.forgetron_mistake_bound(100, g, d) if g <= limit else None,
    )


def test_bounds_of_projectrons(bench):
    for tolerance in (0.1, 0.5):
        for model in (
            gristmill.projectron(Gaussian(1.0), tolerance),
            gristmill.projectron_pp(Gaussian(1.0), tolerance),
        ):
            bench.holds(
                model,
                lambda g, d, eta=tolerance: theory.projectron_mistake_bound(eta, g, d) if g * eta < 1 else None,
            )


def test_bounds_of_implicit_steps(bench):
    rate, reg = 0.5, 0.01
    bench.holds(
        gristmill.ilk_classifier(Gaussian(1.0), C=0.5, rate=rate, reg=reg),
        lambda g, d: theory.implicit_mistake_bound(1.0, 0.5, g, len(bench.y), rate, reg, comparator_loss=d),
        margin=1 + rate * reg,
    )


def test_bounds_on_what_can_be_separated():
    bench = Bench("separable")
    found = [(g / (bench.y * u).min(), u) for g, u in bench.comparators if (bench.y * u).min() > 0]
    norm = min(g for g, _ in found)
    for model in (gristmill.romma(Gaussian(1.0)), gristmill.romma(Gaussian(1.0), aggressive=True)):
        assert bench.mistakes(model) <= theory.romma_mistake_bound(1.0, norm)
    assert bench.mistakes(gristmill.projection_classifier(Gaussian(1.0))) <= theory.projection_mistake_bound(1.0, norm)
    ball = gristmill.projection_classifier(Gaussian(1.0), radius=norm)
    assert bench.mistakes(ball) <= theory.projection_mistake_bound(1.0, norm, ball=norm)
    corrections = gristmill.alma(Gaussian(1.0), alpha=0.9).fit(bench.X, bench.y).corrections_
    assert corrections <= theory.alma_separable_bound(0.9, 1 / norm)
