"""The core against the naive twin, step by step over long streams; and ten million steps of the scale."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from oracle import Twin
from scipy.signal import lfilter
from scipy.sparse import csr_array

from gristmill import (
    SGD,
    Alma,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    Exponential,
    FeasibleSet,
    Forget,
    Gaussian,
    Hinge,
    Huber,
    Implicit,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Logistic,
    Manhattan,
    MarginProjection,
    Normalized,
    PassiveAggressive,
    Perceptron,
    Pinball,
    Polynomial,
    Project,
    Romma,
    Sigmoid,
    Squared,
    SquaredEuclidean,
    Step,
    StepSizeAdaptation,
    Unbounded,
    Vovk,
    Window,
)

STEPS = 5000
LEARNER = {
    "binary": KernelClassifier,
    "multiclass": KernelClassifier,
    "regression": KernelRegressor,
    "novelty": KernelNovelty,
}
CLASSES = {"binary": {"classes": [-1, 1]}, "multiclass": {"classes": [0, 1, 2]}}
CLASSIFICATION = {
    "perceptron": Perceptron(),
    "hinge": SGD(Hinge(0.5), 0.2, 0.05),
    "hinge-intercept": SGD(Hinge(1.0), 0.3, 0.02, "inv_sqrt", intercept=True),
    "nu-hinge": SGD(Hinge(0.5, nu=0.3), 0.2, 0.05),
    "logistic": SGD(Logistic(), 0.5, 0.03),
    "pa": PassiveAggressive(1.0, 0),
    "pa-1": PassiveAggressive(0.3, 1),
    "pa-2": PassiveAggressive(0.5, 2),
}
REGRESSION = {
    "squared": SGD(Squared(), 0.3, 0.05, intercept=True),
    "tube": SGD(EpsilonInsensitive(0.1), 0.2, 0.05, "inv_sqrt"),
    "nu-tube": SGD(EpsilonInsensitive(0.1, nu=0.3), 0.1, 0.05),
    "pinball": SGD(Pinball(0.8), 0.2, 0.05),
    "huber": SGD(Huber(0.3), 0.2, 0.05),
    "nu-huber": SGD(Huber(0.3, nu=0.3), 0.1, 0.05),
    "pa": PassiveAggressive(1.0, 0, 0.05),
    "pa-1": PassiveAggressive(0.3, 1, 0.05),
    "pa-2": PassiveAggressive(0.5, 2, 0.05),
}
NOVELTY = {
    "nu": SGD(Hinge(0.0, nu=0.2), 0.1, 0.3),
    "fixed": SGD(Hinge(0.5), 0.1, 0.1),
    "pa": PassiveAggressive(0.2),
}
BUDGETS = {
    "window": Window(30),
    "growing": Window(growth=0.0),
    "oldest": DropOldest(17),
    "smallest": DropSmallest(25),
    "random": DropRandom(20),
}


def stream(task, steps=STEPS, seed=0):
    """Points of norm below 1 in four dimensions, some entries 0; the label depends on them and drifts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, 4)) * (rng.random((steps, 4)) < [1.0, 0.8, 0.8, 0.8])  # no two rows are the same
    X *= 0.95 / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    turn = np.linspace(0, 3, steps)
    values = np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=steps)
    if task == "binary":
        return X, np.where(values > 0, 1, -1)
    if task == "multiclass":
        return X, np.digitize(values, [-0.25, 0.25])
    return X, values


def twin_of(task, kernel, rule, budget, **more):
    kind = "classification" if task in ("binary", "multiclass") else task
    return Twin(kernel, rule, budget, kind, n_classes=3 if task == "multiclass" else None, **more)


def model_of(task, kernel, rule, budget, **more):
    return LEARNER[task](kernel, rule, budget, random_state=5, **more)


def agree(found, wanted, tolerance):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max(initial=0.0) <= tolerance * max(1e-3, np.abs(wanted).max(initial=0.0))


def prequential(task, model, X, y, weights=None):
    """The whole stream in uneven chunks."""
    count = X.shape[0]
    parts, edges = [], [edge for edge in (0, 1, 2, 50, 333, 1000, 1001) if edge < count] + [count]
    for a, b in itertools.pairwise(edges):
        piece = None if weights is None else weights[a:b]
        target = None if task == "novelty" else y[a:b]
        parts.append(model.prequential(X[a:b], target, sample_weight=piece, **CLASSES.get(task, {})))
    return np.concatenate(parts)


def same_model(model, twin, tolerance):
    assert model.support_ids_.tolist() == twin.ids
    agree(model.dual_coef_, np.array(twin.coef).reshape(model.dual_coef_.shape), tolerance)
    agree(model.intercept_, twin.intercept, tolerance)
    agree(model.norm_**2, max(twin.norm2(), 0.0), tolerance)  # an indefinite kernel may have a square below 0


def compositions():
    for task, rules in (("binary", CLASSIFICATION), ("regression", REGRESSION), ("novelty", NOVELTY)):
        for number, (rule_name, rule) in enumerate(rules.items()):
            for place, (budget_name, budget) in enumerate(BUDGETS.items()):
                # Every pair once; half of them, in a chessboard, over the long stream.
                steps = STEPS if (number + place) % 2 == 0 else 1200
                yield pytest.param(task, rule, budget, steps, id=f"{task}-{rule_name}-{budget_name}")
    for number, (rule_name, rule) in enumerate(CLASSIFICATION.items()):
        budget_name = list(BUDGETS)[number % len(BUDGETS)]
        yield pytest.param("multiclass", rule, BUDGETS[budget_name], STEPS, id=f"multiclass-{rule_name}-{budget_name}")


@pytest.mark.parametrize(("task", "rule", "budget", "steps"), list(compositions()))
def test_core_is_the_twin(task, rule, budget, steps):
    kernel = Gaussian(1.5)
    X, y = stream(task, steps)
    rng = np.random.default_rng(8)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=len(X)) if isinstance(budget, DropOldest) else None
    if isinstance(budget, DropRandom):
        return follow_random(task, kernel, rule, budget, X, y)
    twin = twin_of(task, kernel, rule, budget)
    wanted = [
        twin.step(x, t, 1.0 if weights is None else weights[i]) for i, (x, t) in enumerate(zip(X, y, strict=True))
    ]
    assert len(twin.evicted) > 100, "the stream must evict"
    wide = csr_array(np.hstack([X[:, :2], np.zeros((len(X), 1500)), X[:, 2:]]))
    for rows in (X, csr_array(X), wide):
        model = model_of(task, kernel, rule, budget)
        agree(prequential(task, model, rows, y, weights), wanted, 1e-9)
        same_model(model, twin, 1e-9)


def follow_random(task, kernel, rule, budget, X, y):
    """The core chooses the point to evict; the twin evicts the same one, and everything else must be equal."""
    model, choices = model_of(task, kernel, rule, budget), []
    twin = twin_of(task, kernel, rule, budget, replay=lambda ids: choices.pop())
    model.prequential(X[:1], None if task == "novelty" else y[:1], **CLASSES.get(task, {}))
    twin.step(X[0], y[0])
    picked = []
    for x, target in zip(X[1:], y[1:], strict=True):
        before, score = model.support_ids_, model.score_one(x)
        model.learn_one(x, target)
        gone = np.setdiff1d(before, model.support_ids_)
        choices.extend(gone.tolist())
        picked += [int(np.flatnonzero(before == one)[0]) for one in gone]
        agree(score, twin.step(x, target), 1e-9)
    assert not choices
    same_model(model, twin, 1e-9)
    counts = np.bincount(picked, minlength=budget.size)
    assert len(picked) > 100
    assert counts.max() < 3 * counts.mean(), "every stored point must be as likely to leave"


@pytest.mark.parametrize("rule", [SGD(Hinge(0.5), 0.3, 0.05, intercept=True), PassiveAggressive(0.5)])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_the_average_is_the_mean_of_all_hypotheses(task, rule):
    if task == "regression" and isinstance(rule, SGD):
        rule = SGD(Huber(0.5), 0.2, 0.05, intercept=True)
    X, y = stream(task, 300)
    model = model_of(task, Gaussian(1.0), rule, Unbounded(), average=True)
    prequential(task, model, X, y)
    twin = twin_of(task, Gaussian(1.0), rule, Unbounded(), average=True)
    for x, target in zip(X, y, strict=True):
        twin.step(x, target)
    agree(model.decision_function(X[:40]), [twin.average(x) for x in X[:40]], 1e-9)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(3, 0.5, 1.0),
        Laplacian(0.7),
        Exponential(1.2),
        Vovk(),
        Vovk(4),
        Sigmoid(0.5, 0.1),
        Manhattan(),
        SquaredEuclidean(),
        Normalized(Polynomial(2)),
        0.5 * Gaussian(2.0) + Linear() * Laplacian(0.5),
        Normalized(Gaussian(1.0) + 0.3 * Polynomial(2)) * Exponential(2.0),
    ],
    ids=repr,
)
def test_every_kernel_in_the_loop(kernel):
    X, y = stream("regression", 1200)
    rule, budget = SGD(Huber(0.3), 0.05, 0.1), DropOldest(20)
    twin = twin_of("regression", kernel, rule, budget)
    wanted = [twin.step(x, t) for x, t in zip(X, y, strict=True)]
    wide = csr_array(np.hstack([X, np.zeros((len(X), 1100))]))
    for rows in (X, csr_array(X), wide):
        model = KernelRegressor(kernel, rule, budget)
        agree(prequential("regression", model, rows, y), wanted, 1e-9)
        same_model(model, twin, 1e-9)
    single = KernelRegressor(kernel, rule, budget)
    agree(prequential("regression", single, X.astype(np.float32), y), wanted, 1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("task", "rule"),
    [
        ("binary", SGD(Logistic(), 0.5, 0.03)),
        ("multiclass", SGD(Logistic(), 0.5, 0.03, "inv_sqrt")),
        ("regression", SGD(Squared(), 0.2, 0.05)),
        ("regression", SGD(Huber(0.5), 0.2, 0.05, intercept=True)),
    ],
    ids=["binary", "multiclass", "squared", "huber"],
)
def test_single_precision_stays_close(task, rule, sparse):
    """Losses without a kink: rounding cannot turn a decision, so the whole run must agree."""
    X, y = stream(task)
    single = X.astype(np.float32)
    twin = twin_of(task, Gaussian(1.5), rule, DropOldest(20))
    wanted = [twin.step(x, t) for x, t in zip(single.astype(float), y, strict=True)]
    for rows in (single, np.hstack([single, np.zeros((STEPS, 1100), dtype=np.float32)])):
        model = model_of(task, Gaussian(1.5), rule, DropOldest(20))
        agree(prequential(task, model, csr_array(rows) if sparse else rows, y), wanted, 1e-4)
        assert model.support_vectors_.dtype == np.float32


@dataclasses.dataclass
class PythonBall:
    """`FeasibleSet` again in plain Python: a rule that keeps ||f|| inside a ball."""

    epsilon: float = 0.0
    radius: float = 1.0
    needs_norm = True

    def __call__(self, trial):
        loss = max(0.0, abs(trial.label - trial.score) - self.epsilon)
        if loss == 0 or trial.self_similarity <= 0:
            return None
        size = math.copysign(loss / trial.self_similarity, trial.label - trial.score)
        return Step(coefficient=size, radius=self.radius)


@pytest.mark.parametrize("budget", [DropOldest(20), DropSmallest(20), Window(25)], ids=repr)
def test_the_norm_is_right_over_a_long_run(budget):
    X, y = stream("regression", 2000)
    twin = twin_of("regression", Gaussian(1.5), FeasibleSet(0.05, 0.8), budget)
    wanted = [twin.step(x, t) for x, t in zip(X, y, strict=True)]
    for rule in (PythonBall(0.05, 0.8), FeasibleSet(0.05, 0.8)):
        model = KernelRegressor(Gaussian(1.5), rule, budget)
        agree(prequential("regression", model, X, y), wanted, 1e-9)
        same_model(model, twin, 1e-9)
    assert twin.norm2() <= 0.8**2 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("task", "rule", "budget"),
    [
        ("binary", Perceptron(), Forget(20)),
        ("binary", Perceptron(), Forget(90, basic=True)),
        ("binary", Perceptron(), Project(0.3)),
        ("multiclass", Perceptron(), Project(0.4)),
        ("binary", MarginProjection(), Project(0.3)),
        ("binary", Alma(0.9), DropOldest(20)),
        ("binary", Alma(0.7), Project(0.2)),
        ("binary", Romma(), DropSmallest(20)),
        ("binary", Romma(aggressive=True), DropOldest(20)),
        ("binary", FeasibleSet(radius=2.0), DropOldest(20)),
        ("multiclass", Implicit(Hinge(), 0.5, 1.0, 0.1), DropSmallest(20)),
        ("binary", Implicit(Logistic(), 1.0, 0.5, 0.1), DropOldest(20)),
        ("regression", Implicit(Squared(), 1.0, 0.5, 0.1), DropSmallest(20)),
        ("binary", StepSizeAdaptation(Hinge(), 0.2, 0.1, 0.05, 0.9), DropOldest(20)),
        ("regression", StepSizeAdaptation(Huber(0.5), 0.1, 0.1, 0.05, 0.9), DropOldest(20)),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_the_rest_of_the_family_is_the_twin(task, rule, budget):
    """Norms from the Gram matrix make this twin slow: shorter streams, still with hundreds of steps."""
    X, y = stream(task, 700)
    twin = twin_of(task, Gaussian(1.5), rule, budget)
    wanted = [twin.step(x, t) for x, t in zip(X, y, strict=True)]
    for rows in (X, csr_array(X)):
        model = model_of(task, Gaussian(1.5), rule, budget)
        agree(prequential(task, model, rows, y), wanted, 1e-8)
        assert model.support_ids_.tolist() == twin.ids
        agree(model.dual_coef_, np.array(twin.coef).reshape(model.dual_coef_.shape), 1e-6)


def test_ten_million_steps_of_the_lazy_scale():
    """On points +-1 NORMA with squared loss and the newest m points is a linear filter, which scipy runs.

    With d_t = c_t x_t: d_t = rate (y_t x_t - sum_k (1 - rate reg)^k d_{t-1-k}), k < m. The scale shrinks by a
    tenth a step, so that it is multiplied into the coefficients about 4,500 times.
    """
    steps, rate, reg, size = 10_000_000, 0.05, 2.0, 8
    shrink = 1 - rate * reg
    rng = np.random.default_rng(11)
    model = KernelRegressor(Linear(), SGD(Squared(), rate, reg), DropOldest(size))
    below = np.concatenate([[1.0], rate * shrink ** np.arange(size)])
    memory = np.zeros(size)
    for _ in range(10):
        x = rng.integers(0, 2, steps // 10) * 2.0 - 1.0
        y = rng.normal(size=steps // 10)
        entered, memory = lfilter([rate], below, y * x, zi=memory)
        wanted = y - entered * x / rate
        assert np.abs(model.prequential(x[:, None], y) - wanted).max() < 1e-9
    ages = np.arange(size)[::-1]
    agree(model.dual_coef_[:, 0] * model.support_vectors_[:, 0], entered[-size:] * shrink**ages, 1e-9)
    assert model.n_seen_ == steps
