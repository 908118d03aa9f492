"""Ten thousand random operations, good and bad: no crash, no hang; after an error the model is as it was."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import gristmill
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
from gristmill.checks import snapshot

CASES, BATCHES = 10_500, 15
# Everything a caller may meet; a crash, a hang or a warning is none of them.
ALLOWED = (ValueError, TypeError, IndexError, ZeroDivisionError, KeyError)
WIDTH = 4


class Mischief:
    """Where parts that misbehave draw from; outside of any model, so that an error does not rewind it."""

    rng = np.random.default_rng(0)

    @classmethod
    def pick(cls, good, *bad):
        """The good one, or now and then one of the bad."""
        chosen = bad[int(cls.rng.integers(len(bad)))] if cls.rng.random() < 0.03 else good
        return chosen() if callable(chosen) else chosen


def broken():
    raise ZeroDivisionError("a part broke")


def wild_kernel(x, y):
    if np.iscomplexobj(x) or np.iscomplexobj(y):
        raise TypeError("numbers must be real")
    with np.errstate(all="ignore"):
        value = float(np.exp(-np.sum((np.asarray(x, dtype=float) - np.asarray(y, dtype=float)) ** 2)))
    return Mischief.pick(value, broken, np.nan, np.inf, "text", None, -1e300, value + 1.0)


class WildRule:
    needs_norm = True

    def __init__(self):
        self.calls = 0

    def __call__(self, trial):
        self.calls += 1
        good = Step(0.3 * trial.label, 0.95, 0.01, 5.0)
        bad = [
            Step(np.nan),
            Step(1.0, np.inf),
            Step(1e307),
            Step(1.0, 1e301),
            Step(1.0, 0.0),
            Step(1.0, -1.0),
        ]
        bad += [Step(1.0, radius=-1.0), Step(1.0, radius=0.0), Step("a"), 3.0, None, Step(0.0, 1e-320)]
        return Mischief.pick(good, broken, *bad)


class WildBudget:
    def __init__(self):
        self.calls = 0

    def victim(self, stored):
        self.calls += 1
        good = None if len(stored.ids) < 6 else self.calls % 6
        return Mischief.pick(good, broken, 99, -2, -1, "first", 1.5, 10**30)


KERNELS = [
    None, Gaussian(0.5), Linear(), Polynomial(9), Polynomial(2), Laplacian(1.0), Exponential(0.5),
    Vovk(), Vovk(3), Sigmoid(1.0), Manhattan(), SquaredEuclidean(),
    Normalized(Polynomial(2)), Normalized(Sigmoid(1.0, -1.0)),
    0.5 * Gaussian(1.0) + Linear() * Laplacian(0.5), wild_kernel, wild_kernel,
]  # fmt: skip
BUDGETS = [
    None, Unbounded(), DropOldest(5), DropSmallest(5), DropRandom(4), Window(6),
    Window(growth=0.1), WildBudget(), DropOldest(1), Project(0.3), Project(0.05), Forget(5),
]  # fmt: skip
RULES = {
    KernelClassifier: [
        None, Perceptron(), SGD(Hinge(), 0.3, 0.1), SGD(Logistic(), 1.0, 0.5, "inv_sqrt", intercept=True),
        SGD(Hinge(1.0, nu=0.2), 0.5, 2.0), PassiveAggressive(1.0, 0), PassiveAggressive(0.1, 2), WildRule(),
        Romma(), Alma(0.9), FeasibleSet(), Implicit(Hinge(), 1.0, 1.0, 0.1), Implicit(Logistic()),
        MarginProjection(),
        StepSizeAdaptation(Hinge(), 0.1, 0.1, 0.5, 0.9), Perceptron(), Perceptron(),
    ],
    KernelRegressor: [
        None, SGD(Squared(), 5.0), SGD(Squared(), 0.1, 0.1), SGD(EpsilonInsensitive(0.1, nu=0.5), 0.3),
        SGD(Huber(0.1, nu=0.5), 0.3, 0.1), PassiveAggressive(np.inf, 0), WildRule(),
        FeasibleSet(0.1, 2.0), Implicit(Squared(), 1.0, 1.0, 0.1),
    ],
    KernelNovelty: [None, SGD(Hinge(0.0, nu=0.1), 0.5, 1.0), PassiveAggressive(), WildRule()],
}  # fmt: skip


class Fuzzer:
    def __init__(self, seed, folder):
        self.rng, self.path = np.random.default_rng(seed), folder / "model.safetensors"
        Mischief.rng = np.random.default_rng(seed + 1)
        self.outcomes = {"fine": 0, "refused": 0}

    def choose(self, options):
        return options[int(self.rng.integers(len(options)))]

    def model(self):
        kind = self.choose(list(RULES))
        budget = self.choose(BUDGETS)
        average = isinstance(budget, Unbounded) and self.rng.random() < 0.5
        return kind(self.choose(KERNELS), self.choose(RULES[kind]), budget, average, int(self.rng.integers(99)))

    # -- inputs

    def rows(self, count):
        X = self.rng.normal(size=(count, WIDTH)) * 10.0 ** self.rng.integers(-2, 2)
        X *= self.rng.random((count, WIDTH)) < 0.8
        if self.rng.random() < 0.65:
            forms = [
                np.asarray,
                np.asfortranarray,
                lambda a: a.astype(np.float32),
                np.ndarray.tolist,
                csr_array,
            ]
            forms += [coo_array, lambda a: np.round(a).astype(int), lambda a: np.repeat(a, 2, axis=0)[::2]]
            return self.choose(forms)(X)
        spoilt, value = X.copy(), self.choose([np.nan, np.inf, -np.inf, 1e200, 1e308, -1e155, 1e39])
        spoilt[self.rng.integers(count), self.rng.integers(WIDTH)] = value
        bad = [
            spoilt,
            spoilt,
            spoilt,
            csr_array(spoilt),
            X[:, :-1],
            np.hstack([X, X]),
            X[:0],
            X[:, :0],
            X[0],
            X[None],
        ]
        bad += [
            X.astype(str),
            X * 1j,
            None,
            3,
            "rows",
            [[1.0], [1.0, 2.0]],
            X.astype(object),
            [None] * count,
            {},
        ]
        bad += [
            np.full((count, WIDTH), "2020-01-01", dtype="M8[D]"),
            csr_array(np.zeros((count, 3000))),
            X > 0,
            [X],
            [],
        ]
        return self.choose(bad)

    def target(self, model, count):
        if self.rng.random() < 0.8:
            if isinstance(model, KernelRegressor):
                return self.rng.normal(size=count)
            if isinstance(model, KernelNovelty):
                return None
            return self.rng.integers(0, self.choose([2, 2, 2, 3, 4]), size=count)
        bad = [
            None,
            np.full(count, np.nan),
            np.full(count, 1e300),
            np.zeros(count + 1),
            np.zeros((count, 2)),
            ["a"] * count,
        ]
        bad += [
            "a",
            1.5,
            np.arange(count) + 0.5,
            [None] * count,
            np.array([np.inf] * count),
            [{}] * count,
            np.zeros(0),
        ]
        return self.choose(bad)

    def weights(self, count):
        good = [None, None, None, np.ones(count), self.rng.random(count), np.zeros(count), 2.0]
        bad = [
            -np.ones(count),
            np.full(count, np.nan),
            np.ones(count + 1),
            "heavy",
            np.full(count, 1e300),
            [[1.0]] * count,
        ]
        return self.choose(bad if self.rng.random() < 0.2 else good)

    # -- operations

    def learn(self, model):
        count = int(self.rng.integers(1, 9))
        verb = self.choose(["partial_fit", "partial_fit", "prequential", "fit"])
        extra = {"sample_weight": self.weights(count)}
        if isinstance(model, KernelClassifier) and verb != "fit" and self.rng.random() < 0.2:
            extra["classes"] = self.choose([[0, 1], [0, 1, 2], ["a", "b"], [], [1.5, 2.5], 3, [[0, 1]]])
        getattr(model, verb)(self.rows(count), self.target(model, count), **extra)

    def learn_one(self, model):
        X = self.rows(1)
        x = X[0] if isinstance(X, np.ndarray | list) and len(X) else X
        y = self.target(model, 1)
        y = y[0] if isinstance(y, np.ndarray | list) and len(y) else y
        model.learn_one(x, y, self.choose([1.0, 1.0, 1.0, 0.0, 0.5, -1.0, np.nan, "w"]))

    def look(self, model):
        X = self.rows(int(self.rng.integers(1, 9)))
        verb = self.choose(["predict", "decision_function", "score_one", "predict_one"])
        if verb.endswith("_one") and isinstance(X, np.ndarray | list) and len(X):
            X = X[0]
        before = snapshot(model)
        try:
            answer = getattr(model, verb)(X)
            if verb == "decision_function":
                assert np.isfinite(answer).all()
        finally:
            assert snapshot(model) == before, "looking changed the model"

    def read(self, model):
        for name in (
            "dual_coef_",
            "intercept_",
            "norm_",
            "support_ids_",
            "support_vectors_",
            "memory_bytes_",
        ):
            if hasattr(model, name) and name in ("dual_coef_", "intercept_"):
                assert np.isfinite(getattr(model, name)).all()

    def pause(self, model):
        how = self.choose(["pickle", "copy", "deepcopy", "file"])
        if how == "file":
            model.save(self.path)
            other = gristmill.load(self.path)
        elif how == "pickle":
            other = pickle.loads(pickle.dumps(model))
        else:
            other = getattr(copy, how)(model)
        assert snapshot(other) == snapshot(model)
        return other

    def step(self, model):
        operation = self.choose([self.learn] * 5 + [self.learn_one] * 3 + [self.look] * 2 + [self.read, self.pause])
        before, error = snapshot(model), None
        try:
            other = operation(model)
        except ALLOWED as raised:
            error = raised
        self.outcomes["fine" if error is None else "refused"] += 1
        if error is None:
            return model if other is None else other
        assert str(error)
        assert snapshot(model) == before, f"{operation.__name__} changed the model and failed with {error!r}"
        return model


@pytest.mark.filterwarnings("ignore:Project. tolerance")  # said on purpose where nothing would be stored
@pytest.mark.parametrize("seed", range(BATCHES))
def test_nothing_breaks(seed, tmp_path):
    fuzzer = Fuzzer(seed, tmp_path)
    model = fuzzer.model()
    for case in range(CASES // BATCHES):
        if case % 25 == 0:
            model = fuzzer.model()
        model = fuzzer.step(model)
    assert fuzzer.outcomes["fine"] > CASES // BATCHES // 5, "the good must be among the bad"
    assert fuzzer.outcomes["refused"] > CASES // BATCHES // 5
