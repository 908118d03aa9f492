"""What is wrong is named, with its place and value, and the model is as it was before."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from gristmill import (
    SGD,
    DropOldest,
    DropSmallest,
    Exponential,
    FeasibleSet,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Linear,
    Logistic,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Squared,
    Step,
    Unbounded,
    Window,
    norma_classifier,
)
from gristmill.checks import snapshot

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def model():
    return KernelClassifier(Gaussian(1.0), SGD(Hinge(), 0.1, 0.1), DropOldest(10)).fit(X, Y)


def spoilt(row, column, value):
    Z = X[:5].copy()
    Z[row, column] = value
    return Z


def refused(model, words, call, kinds=(ValueError, TypeError)):
    before = snapshot(model)
    with pytest.raises(kinds, match=words):
        call()
    assert snapshot(model) == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (spoilt(3, 1, np.nan), "NaN: row 3, column 1"),
        (spoilt(4, 2, -np.inf), "infinity: row 4, column 2"),
        (csr_array(spoilt(2, 1, np.nan)), "NaN: row 2, column 1"),
        (X[:5, :2], "2 features"),
        (X[:0], "0 sample"),
        (X[:5, :0], "0 feature"),
        (X[0], "1D array"),
        ([[1.0, 2.0, 3.0], [1.0]], "inhomogeneous|ragged|sequence"),
        ([["a", "b", "c"]] * 5, "could not convert|numeric"),
        (X[:5] * 1j, "[Cc]omplex"),
        (spoilt(1, 1, 1e200), "row 1 is too large"),
    ],
)
def test_rows(model, rows, words):
    refused(model, words, lambda: model.partial_fit(rows, Y[:5]))
    refused(model, words, lambda: model.predict(rows))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "requires y"),
        (Y[:4], "inconsistent numbers"),
        ([0.5, 1.5, 0.1, 0.2, 0.3], "Unknown label type|continuous"),
        ([0.0, 1.0, np.nan, 0.0, 1.0], "NaN: row 2"),
        ([0.0, 1.0, 0.0, 0.0, np.inf], "infinity: row 4"),
        (np.zeros((5, 2)), "1d"),
        (["a", "b", "a", "b", "a"], "all strings or all numbers"),
    ],
)
def test_labels(model, labels, words):
    refused(model, words, lambda: model.partial_fit(X[:5], labels))


def test_labels_outside_classes(model):
    refused(model, r"label .*7.*not in classes=\[0, 1\]", lambda: model.partial_fit(X[:2], [0, 7], classes=[0, 1]))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 1, -1, 1, 1], "number 2 is -1.0"),
        ([1, 1, 1, 1, np.nan], "number 4 is nan"),
        ([1, np.inf, 1, 1, 1], "number 1 is inf"),
        ([1, 1], r"shape \(5,\), got \(2,\)"),
        (["a"] * 5, "could not convert"),
    ],
)
def test_weights(model, weights, words):
    refused(model, words, lambda: model.partial_fit(X[:5], Y[:5], sample_weight=weights))


def test_one_event(model):
    for x, words in (
        (np.array([1.0, np.nan, 0.0]), "NaN: row 0, column 1"),
        (np.array([1.0, 2.0]), "2 features"),
        (np.array(["a", "b", "c"]), "could not convert|numeric"),
        (np.zeros((3, 3)), "dim"),
    ):
        refused(model, words, lambda x=x: model.learn_one(x, 1))
        refused(model, words.replace("dim", "dimensions"), lambda x=x: model.score_one(x))
    refused(model, "number 0 is -1.0", lambda: model.learn_one(X[0], 1, sample_weight=-1.0))
    refused(model, "all strings or all numbers", lambda: model.learn_one(X[0], "up"))
    novelty = KernelNovelty().fit(X)
    refused(novelty, "number 0 is -2.0", lambda: novelty.learn_one(X[0], sample_weight=-2.0))
    refused(novelty, "number 0 is nan", lambda: novelty.learn_one(X[0], sample_weight=np.nan))


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("kind", [KernelClassifier, KernelRegressor, KernelNovelty])
def test_predicting_before_learning(kind, method):
    with pytest.raises(NotFittedError, match="not fitted yet: call fit"):
        getattr(kind(), method)(X)
    assert not hasattr(kind(), "n_support_")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: DropOldest(0), "size must be a whole number from 1 to .*, got 0"),
        (lambda: DropOldest(2.5), "size must be"),
        (lambda: DropOldest(10**30), "size must be"),
        (lambda: Window(), "either steps or growth"),
        (lambda: Window(10**30), "steps must be"),
        (lambda: SGD(Hinge(), -0.1), "rate must be a number > 0, got -0.1"),
        (lambda: SGD(Hinge(), 0.5, 3.0), "rate \\* reg must be at most 1"),
        (lambda: SGD("hinge"), "loss must be a loss"),
        (lambda: SGD(schedule="sometimes"), "schedule must be one of"),
        (lambda: PassiveAggressive(variant=3), "variant must be one of 0, 1, 2"),
        (lambda: Hinge(nu=1.5), "nu must be"),
        (lambda: KernelClassifier(rule="pa").fit(X, Y), "rule must be a rule"),
        (lambda: KernelClassifier(rule=Perceptron).fit(X, Y), "rule must be a rule"),
        (lambda: KernelClassifier(budget=100).fit(X, Y), "budget must be a budget"),
        (lambda: KernelClassifier(rule=SGD(Squared())).fit(X, Y), "Squared is a loss for regression"),
        (lambda: KernelRegressor(rule=Perceptron()).fit(X, Y), "Perceptron is a rule for classification"),
        (lambda: KernelRegressor(rule=SGD(Logistic())).fit(X, Y), "Logistic is a loss for"),
        (lambda: KernelNovelty(rule=SGD(Hinge(), intercept=True)).fit(X), "intercept"),
        (lambda: KernelClassifier(average=True, budget=DropOldest(3)).fit(X, Y), "use budget=.*Unbounded"),
        (lambda: KernelClassifier(random_state="seed").fit(X, Y), "random_state must be"),
        (lambda: norma_classifier(Gaussian(1.0), 0.1, 0.1, window=3, size=3), "not both"),
    ],
)
def test_parameters_and_compositions(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


# ---- Python parts that misbehave -----------------------------------------------------------------


class Trap:
    """A kernel, rule or budget that works until it is switched to raise."""

    def __init__(self, good, bad=None):
        self.good, self.bad, self.sprung = good, bad, []

    def __deepcopy__(self, memo):
        return self  # so that the test keeps its hand on it

    def __call__(self, *args):
        if self.sprung:
            return self.bad(*args)
        return self.good(*args)

    victim = __call__


def fail(*args):
    raise ZeroDivisionError("the part broke")


def dot(x, y):
    return float(np.dot(x, y))


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (fail, ZeroDivisionError, "the part broke"),
        (lambda x, y: np.nan, ValueError, "row 0: the kernel returned nan for"),
        (lambda x, y: np.inf, ValueError, "the kernel returned inf for"),
        (lambda x, y: "one", (ValueError, TypeError), "could not convert|float"),
        (lambda x, y: None, TypeError, "float"),
        (lambda x, y: x[0], ValueError, "not symmetric: k"),
    ],
)
def test_kernels_that_misbehave(bad, kind, words):
    kernel = Trap(dot, bad)
    model = KernelClassifier(kernel, SGD(Hinge(), 0.1), DropSmallest(8)).fit(X, Y)
    kernel.sprung.append(True)
    rows = np.abs(X[:4]) + np.arange(1.0, 5.0)[:, None]
    refused(model, words, lambda: model.partial_fit(rows, Y[:4]), kind)
    refused(model, words, lambda: model.learn_one(rows[0], 1), kind)
    refused(model, words, lambda: model.decision_function(rows), kind)
    kernel.sprung.clear()
    model.partial_fit(rows, Y[:4])


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (fail, ZeroDivisionError, "the part broke"),
        (lambda t: Step(np.nan), ValueError, "step that is not finite"),
        (lambda t: Step(shrink=np.inf), ValueError, "step that is not finite"),
        (lambda t: Step(intercept=-np.inf), ValueError, "step that is not finite"),
        (lambda t: Step(1.0, radius=-1.0), ValueError, "radius"),
        (lambda t: Step(1.0, radius=np.nan), ValueError, "radius"),
        (lambda t: Step(1.0, radius=2.0), ValueError, "needs_norm = True"),
        (lambda t: Step(1e200), ValueError, "overflow"),
        (lambda t: Step(1.0, shrink=1e200), ValueError, "overflow"),
        (lambda t: Step("much"), TypeError, "coefficient is 'much'"),
        (lambda t: 0.5, TypeError, "must return a Step or None, got 0.5"),
    ],
)
def test_rules_that_misbehave(bad, kind, words):
    rule = Trap(lambda t: Step(0.1 * t.label, 0.9), bad)
    model = KernelClassifier(Gaussian(1.0), rule, DropSmallest(8)).fit(X, Y)
    rule.sprung.append(True)
    refused(model, words, lambda: model.partial_fit(X[:4], Y[:4]), kind)
    refused(model, words, lambda: model.learn_one(X[0], Y[0]), kind)


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (fail, ZeroDivisionError, "the part broke"),
        (lambda s: 99, IndexError, "position below 8, got 99"),
        (lambda s: -2, IndexError, "got -2"),
        (lambda s: "first", TypeError, "got 'first'"),
        (lambda s: 10**30, TypeError, "position, got 1000"),
    ],
)
def test_budgets_that_misbehave(bad, kind, words):
    budget = Trap(lambda s: None if len(s.ids) < 8 else 0, bad)
    model = KernelClassifier(Gaussian(1.0), SGD(Hinge(), 0.1), budget).fit(X, Y)
    assert model.n_support_ == 8
    budget.sprung.append(True)
    wrong = np.where(model.predict(X[:4]) == 1, 0, 1)
    refused(model, words, lambda: model.partial_fit(X[:4], wrong), kind)
    refused(model, words, lambda: model.learn_one(X[0], wrong[0]), kind)


class Counting:
    """A rule with a state of its own, which breaks on its tenth event."""

    def __init__(self):
        self.calls = 0

    def __call__(self, trial):
        self.calls += 1
        if self.calls == 10:
            raise ZeroDivisionError("tenth")
        return Step(trial.label / self.calls)


def test_a_failed_chunk_takes_back_the_state_of_python_parts():
    model = KernelClassifier(Gaussian(1.0), Counting(), Unbounded()).fit(X[:7], Y[:7])
    refused(model, "tenth", lambda: model.partial_fit(X[7:12], Y[7:12]), ZeroDivisionError)
    model.partial_fit(X[7:9], Y[7:9])
    refused(model, "tenth", lambda: model.learn_one(X[9], Y[9]), ZeroDivisionError)
    assert model.n_seen_ == 9


@pytest.mark.parametrize("verb", ["predict", "partial_fit", "dual_coef_"])
def test_a_kernel_that_calls_its_own_model_is_refused_and_does_not_hang(verb):
    model = KernelClassifier(lambda x, y: kernel(x, y), Perceptron(), DropOldest(5))
    inside = []

    def kernel(x, y):
        if inside and inside.pop():
            if verb == "dual_coef_":
                model.dual_coef_  # noqa: B018
            elif verb == "predict":
                model.predict(X[:1])
            else:
                model.partial_fit(X[:1], Y[:1])
        return dot(x, y)

    model.fit(X, Y)
    for call in (lambda: model.predict(X[:2]), lambda: model.partial_fit(X[:2], Y[:2])):
        before = model.dual_coef_
        inside.append(True)
        with pytest.raises(RuntimeError, match="must not call the model that calls it"):
            call()
        inside.clear()
        assert np.array_equal(model.dual_coef_, before)


# ---- overflow ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (Polynomial(50), X * 1e10),
        (Exponential(0.01), np.abs(X) + 5),
        (Linear(), X * 1e153),
    ],
)
def test_kernel_values_that_overflow(kernel, rows):
    model = KernelRegressor(kernel, SGD(Squared(), 0.1), DropOldest(5)).fit(X * 1e-3, X[:, 0])
    for _ in range(3):
        before, error = snapshot(model), None
        try:
            model.partial_fit(rows, 1e3 * X[:, 0])
        except ValueError as raised:
            error = str(raised)
        if error is not None:
            assert "not finite" in error or "overflow" in error
            assert snapshot(model) == before
        assert np.isfinite(model.dual_coef_).all()


def test_learning_that_diverges_stops_with_the_last_good_model():
    model = KernelRegressor(Linear(), SGD(Squared(), 10.0), DropOldest(3))

    def learn_on():
        for i in range(2000):
            model.partial_fit(10 * X[i % 30 : i % 30 + 1], [(-1.0) ** i])

    with pytest.raises(ValueError, match="diverged"):
        learn_on()
    assert np.isfinite(model.dual_coef_).all()


def test_numbers_too_large_for_single_precision():
    model = KernelRegressor(Gaussian(1.0)).fit(X.astype(np.float32), X[:, 0])
    refused(model, "infinity: row 1", lambda: model.partial_fit([[0.0, 0, 0], [1e300, 0, 0]], [0.0, 1.0]))
    refused(model, "too large.*float32", lambda: model.partial_fit([[1e25, 0, 0]], [0.0]))


def test_a_point_whose_own_kernel_value_overflows_is_refused_and_changes_nothing():
    rows = np.array([[0.9], [1.1], [1e5], [0.9]])
    for rule in (SGD(Squared(), 1e-3), PassiveAggressive(), FeasibleSet(epsilon=0.1)):
        model = KernelRegressor(Polynomial(40, 1.0, 0.0), rule, Window(1)).partial_fit(rows[:2], np.ones(2))
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"row 0: k\(x, x\) is not finite"):
            model.partial_fit(rows[2:], np.ones(2))
        assert pickle.dumps(model) == before


def test_an_enormous_growth_keeps_everything():
    model = KernelRegressor(Gaussian(1.0), SGD(Squared(), 0.1), Window(growth=500.0)).fit(X, X[:, 0])
    assert model.n_support_ == 30


# ---- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(1.0), dot])
def test_looking_while_another_thread_learns(kernel):
    model = KernelClassifier(kernel, SGD(Hinge(), 0.1), DropOldest(20)).fit(X, Y)
    rows = X[:5] if kernel is dot else X
    done, errors = threading.Event(), []

    def look():
        while not done.is_set():
            try:
                size = model.dual_coef_.shape[0]
                model.predict(rows)
                model.support_ids_  # noqa: B018
                assert size <= 20
                assert model.memory_bytes_ > 0
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3 if kernel is dot else 60):
        model.partial_fit(rows, Y[: len(rows)])
        model.learn_one(X[0], Y[0])
    done.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_text_names_its_cell_and_what_takes_it():
    import pandas as pd

    table = pd.DataFrame({"size": [1.0, 2.0], "colour": ["3", "blue"]})
    with pytest.raises(ValueError, match=r"'blue' in row 1, column 'colour'.*Prepared\(KernelClassifier"):
        KernelClassifier().fit(table, [0, 1])
    with pytest.raises(ValueError, match=r"'blue' in row 0, column 1.*Prepared\(KernelRegressor"):
        KernelRegressor().fit([[1.0, "blue"]], [0.5])
    with pytest.raises(TypeError, match=r"a dict in row 0.*Prepared\(KernelClassifier"):
        KernelClassifier().learn_one({"size": 1.0}, "red")
    with pytest.raises(ValueError, match=r"y must hold numbers, got .some. in row 0"):
        KernelRegressor().fit(table[["size"]], ["some", "more"])
