"""The contract of every learner, as functions that third parties can run too.

    for check in yield_checks(model):
        check(model)

Each check takes an estimator, works on clones of it, returns nothing if the promise is kept and raises
`CheckError` with the promise if it is not. What applies is found by what the estimator is: its task, whether
its kernel runs in the core, whether its budget is bounded.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector

from .budgets import Budget, DropOldest, Project, Window
from .kernels import as_kernel
from .learners import KernelRegressor
from .losses import Squared
from .persist import load
from .rules import SGD, Rule

Check = Callable[[Any], None]


class CheckError(AssertionError):
    """A promise that the estimator does not keep."""


def require(kept: Any, promise: str) -> None:
    """Raise `CheckError` with the promise's words unless it was kept."""
    if not kept:
        raise CheckError(promise)


# ---- what a check works with ---------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    """One estimator and a stream it can eat; `classes` is given where there are more than two."""

    estimator: Any
    X: Any
    y: Any
    classes: Any = None

    def new(self) -> Any:
        """An unfitted copy with a fixed seed."""
        model = clone(self.estimator)
        return model.set_params(random_state=7) if model.random_state is None else model

    def learn(self, model: Any, rows: slice, verb: str = "partial_fit", **extra: Any) -> Any:
        if self.classes is not None and verb != "fit":
            extra["classes"] = self.classes
        return getattr(model, verb)(self.X[rows], None if self.y is None else self.y[rows], **extra)

    def learn_each(self, model: Any, rows: range) -> None:
        for i in rows:
            if self.classes is not None and i == 0:
                self.learn(model, slice(0, 1))
            else:
                model.learn_one(self.X[i], None if self.y is None else self.y[i])

    def fitted(self) -> Any:
        model = self.new()
        self.learn(model, slice(None))
        return model

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


def is_native(model: Any) -> bool:
    """Whether the kernel runs in the core, on rows of numbers."""
    return model.kernel is None or as_kernel(model.kernel).is_native


def stores_points(model: Any) -> bool:
    """Whether the model is a sum of kernels at stored points; the others have explicit weights, `coef_`."""
    return getattr(model, "stores_points", True)


def _coefficients(model: Any) -> Any:
    return model.dual_coef_ if stores_points(model) else model.coef_


def _stream(model: Any, n_classes: int) -> tuple[Any, Any]:
    """Points of norm below 1 (some kernels ask for that), a third of the entries 0, and their labels."""
    rng = np.random.default_rng(20)
    count = 240 if is_native(model) else 60
    X = rng.normal(size=(count, 5)) * (rng.random((count, 5)) < 0.7)
    X *= 0.9 / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    values = X[:, 0] - X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=count)
    if is_classifier(model):
        return X, np.digitize(values, np.quantile(values, np.arange(1, n_classes) / n_classes))
    return X, None if is_outlier_detector(model) else values


def _cases(model: Any, X: Any, y: Any) -> list[Case]:
    if X is not None:
        known = np.unique(y) if is_classifier(model) else np.empty(0)
        return [Case(model, X, y, known if len(known) > 2 else None)]
    cases = [Case(model, *_stream(model, 2))]
    if is_classifier(model):
        three = Case(model, *_stream(model, 3), classes=[0, 1, 2])
        try:
            three.learn(three.new(), slice(0, 3))
        except ValueError:  # a composition for two classes only says so
            return cases
        cases.append(three)
    return cases


def snapshot(model: Any) -> Any:
    """Everything a model is made of, as values that compare bit for bit."""
    return _frozen(model.__getstate__())


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(field) for key, field in value.items()}
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [_frozen(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, type) or inspect.isroutine(value) or not hasattr(value, "__dict__"):
        return value
    # An estimator says by itself what it is made of; the rest of it is rebuilt from that.
    return type(value).__name__, _frozen(value.__getstate__() if isinstance(value, BaseEstimator) else vars(value))


def _same_bits(left: Any, right: Any) -> bool:
    """Whether two models say and hold the same; the core's own numbering of two classes may differ."""
    if not stores_points(left):
        names = ("coef_", "intercept_", "norm_", "n_seen_")
        return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)
    pairs = [(left.dual_coef_, right.dual_coef_), (left.intercept_, right.intercept_)]
    pairs += [(left.support_ids_, right.support_ids_), (left.norm_, right.norm_)]
    for a, b in zip(_dense(left.support_vectors_), _dense(right.support_vectors_), strict=False):
        pairs.append((a, b))
    alike = all(np.array_equal(a, b) for a, b in pairs)
    return alike and (left.n_seen_, left.n_support_) == (right.n_seen_, right.n_support_)


def _dense(points: Any) -> Any:
    return points.toarray() if hasattr(points, "toarray") else points


def close(found: Any, wanted: Any, tolerance: float) -> bool:
    """Agreement relative to the largest number wanted."""
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    size = max(1e-3, float(np.abs(wanted).max(initial=0.0)))
    return found.shape == wanted.shape and bool(np.all(np.abs(found - wanted) <= tolerance * size))


def _said(model: Any, X: Any) -> Any:
    return model.decision_function(X)


# ---- promise 1: the scores are right -------------------------------------------------------------


def check_scores_are_the_naive_sums(case: Case) -> None:
    """decision_function is the sum over support_vectors_, dual_coef_ and intercept_; norm_ is its norm."""
    model = case.fitted()
    for _ in range(3 if is_native(model) else 1):
        rows = model.kernel_(case.X, model.support_vectors_) if model.n_support_ else np.zeros((len(case), 0))
        wanted = rows @ model.dual_coef_ + model.intercept_
        wanted = wanted[:, 0] if wanted.shape[1] == 1 else wanted
        if is_outlier_detector(model):
            wanted = wanted - model.offset_
        require(close(_said(model, case.X), wanted, 1e-9), "scores agree with the naive sum to 1e-9")
        if not model.average and model.n_support_:
            gram = model.kernel_(model.support_vectors_, model.support_vectors_)
            norm2 = float(np.sum(model.dual_coef_ * (gram @ model.dual_coef_)))
            terms = float(np.sum(np.abs(model.dual_coef_) * (np.abs(gram) @ np.abs(model.dual_coef_))))
            gap = abs(model.norm_**2 - max(norm2, 0.0))
            require(gap <= 1e-9 * max(terms, 1e-3), "norm_ is the norm from the Gram matrix")
        case.learn(model, slice(None))


def check_attributes_fit_together(case: Case) -> None:
    """The fitted attributes have the promised shapes and meanings."""
    model = case.fitted()
    outputs = len(case.classes) if case.classes is not None else 1
    require(model.n_seen_ == len(case), "n_seen_ counts the events")
    require(
        model.dual_coef_.shape == (model.n_support_, outputs),
        "dual_coef_ has a row a point, a column an output",
    )
    require(model.dual_coef_.dtype == np.float64, "coefficients are double")
    require(model.intercept_.shape == (outputs,), "intercept_ has one number an output")
    ids = model.support_ids_
    require(len(ids) == model.n_support_ and np.all(np.diff(ids) > 0), "support_ids_ are distinct, oldest first")
    require(len(ids) == 0 or (ids[0] >= 0 and ids[-1] < len(case)), "support_ids_ are positions in the stream")
    for i, point in zip(ids, _dense(model.support_vectors_), strict=True):
        require(np.all(point == case.X[i]), f"support_vectors_ holds event {i} as it came")
    require(model.memory_bytes_ > 0, "memory_bytes_ is a number of bytes")
    size = getattr(model.budget, "size", None)
    require(size is None or model.n_support_ <= size, f"at most {size} points are stored")


def check_prequential_scores_before_it_learns(case: Case) -> None:
    """prequential says what decision_function said of each event before it was learned, bit for bit.

    With Project to 1e-9: a run is scored by coordinates, a table by coefficients, two sums of one number.
    """
    model, twin = case.new(), case.new()
    said = case.learn(model, slice(None), "prequential")
    # Of two classes the score points to the second: the comparison starts when both have come.
    two = is_classifier(model) and case.classes is None
    start = 1 + (int(np.argmax(case.y != case.y[0])) if two else 0)
    case.learn(twin, slice(0, start))
    projects = isinstance(model.budget, Project)
    for i in range(start, len(case)):
        score = _said(twin, case.X[i : i + 1])[0]
        # A projecting budget scores a stream by coordinates, a table by coefficients: rounded differently.
        alike = np.array_equal(score, said[i]) or (projects and close(score, said[i], 1e-9))
        require(alike, f"prequential agrees at event {i}")
        case.learn(twin, slice(i, i + 1))
    require(_same_bits(model, twin), "prequential learns what partial_fit learns")


# ---- promises 2 and 9: however the stream is cut; the same seed ----------------------------------


def check_cutting_changes_nothing(case: Case) -> None:
    """learn_one in a loop, partial_fit in any chunks, fit, prequential: the same model, bit for bit."""
    whole, count = case.fitted(), len(case)
    again = case.new()
    case.learn(again, slice(None), "fit")
    if getattr(whole.rule, "passes", 1) == 1:  # a rule may ask fit for several
        require(_same_bits(whole, again), "fit gives what one partial_fit gives")
    once = copy.deepcopy(again)
    case.learn(again, slice(None), "fit")
    require(_same_bits(once, again), "fit forgets what was learned before")
    rng = np.random.default_rng(3)
    for pieces in (2, 7, count // 3):
        cut = case.new()
        edges = [0, *sorted(rng.choice(np.arange(1, count), pieces, replace=False).tolist()), count]
        for a, b in pairwise(edges):
            case.learn(cut, slice(a, b), "prequential" if a % 2 else "partial_fit")
        require(_same_bits(whole, cut), f"chunks with the borders {edges} give the model of one chunk")
    single = case.new()
    case.learn_each(single, range(count))
    require(_same_bits(whole, single), "learn_one in a loop gives the model of one chunk")
    require(np.array_equal(_said(whole, case.X), _said(single, case.X)), "the scores are the same, bit for bit")


def check_pausing_changes_nothing(case: Case) -> None:
    """Pickle, deepcopy, or save and load in the middle of the stream: the same model, bit for bit."""
    whole, half = case.fitted(), len(case) // 2
    pauses: list[Callable[[Any], Any]] = [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy]
    if _can_be_saved(whole):
        pauses.append(_through_file)
    for pause in pauses:
        model = case.new()
        case.learn(model, slice(0, half))
        model = pause(model)
        case.learn_each(model, range(half, half + 5))
        model = pause(model)
        case.learn(model, slice(half + 5, None))
        require(_same_bits(whole, model), "a pause in the middle of the stream changes nothing")


def check_same_seed_same_run(case: Case) -> None:
    """Two runs with one seed are the same model, the generator's state included."""
    require(snapshot(case.fitted()) == snapshot(case.fitted()), "the same seed gives the same run")


# ---- promise 3: dense, sparse, single precision --------------------------------------------------


def check_dense_and_sparse_agree(case: Case) -> None:
    """CSR rows give the model of dense rows, also where they are wide enough for the index of non-zeros."""
    from scipy.sparse import csr_array, csr_matrix

    wanted = _said(case.fitted(), case.X)
    for make in (csr_array, csr_matrix):
        sparse = dataclasses.replace(case, X=make(case.X))
        require(close(_said(sparse.fitted(), sparse.X), wanted, 1e-9), f"{make.__name__} agrees with dense rows")
    if case.estimator.kernel is not None:
        wide = np.zeros((len(case), 2000))
        wide[:, 100:2000:400] = case.X
        sparse = dataclasses.replace(case, X=csr_array(wide))
        require(close(_said(sparse.fitted(), sparse.X), wanted, 1e-9), "wide sparse rows agree with dense rows")
        require(close(_said(sparse.fitted(), wide), wanted, 1e-9), "a wide sparse model scores dense rows")


def check_single_precision(case: Case) -> None:
    """float32 rows are stored as float32 and agree with float64 to 1e-4; coefficients stay double."""
    single = dataclasses.replace(case, X=case.X.astype(np.float32))
    double = dataclasses.replace(case, X=single.X.astype(np.float64))
    model = single.fitted()
    if stores_points(model):
        require(model.support_vectors_.dtype == np.float32, "float32 points are stored as float32")
    require(_coefficients(model).dtype == np.float64, "coefficients are double")
    require(close(_said(model, single.X), _said(double.fitted(), double.X), 1e-4), "float32 agrees to 1e-4")


# ---- promise 4: memory ---------------------------------------------------------------------------


def check_memory_is_bounded(case: Case) -> None:
    """memory_bytes_ after many more events equals that at full budget."""
    model = case.new()
    budget = model.budget
    if isinstance(budget, Window):
        return _window_is_bounded(case, model)
    small = budget if budget.size <= 30 else dataclasses.replace(budget, size=30)
    model.set_params(budget=small)
    for _ in range(20):
        case.learn(model, slice(None))
        if model.n_support_ == small.size:
            break
    before = model.memory_bytes_
    case.learn(model, slice(None))
    full = model.memory_bytes_
    for _ in range(20):
        case.learn(model, slice(None))
    require(model.memory_bytes_ == full, f"memory stays at {full} bytes, found {model.memory_bytes_}")
    require(model.n_support_ < small.size or before == full, "memory does not grow once the budget is full")


def _window_is_bounded(case: Case, model: Any) -> None:
    steps = min(model.budget.steps, 50)
    model.set_params(budget=Window(steps))
    filled = KernelRegressor(model.kernel, SGD(Squared(), rate=1e-3), DropOldest(steps + 1))
    filled.fit(case.X, np.ones(len(case)))
    for _ in range(20):
        case.learn(model, slice(None))
        require(model.n_support_ <= steps, f"a window of {steps} steps holds at most as many points")
    outputs = model.dual_coef_.shape[1]
    bound = filled.memory_bytes_ + 8 * 2 * (steps + 17) * (outputs - 1) + 1024
    require(model.memory_bytes_ <= bound, f"memory stays below {bound} bytes, found {model.memory_bytes_}")


# ---- promise 5: bad input ------------------------------------------------------------------------


def _bad_rows(case: Case) -> Iterator[tuple[str, Any]]:
    """Rows that must be refused, by name."""
    X = np.array(case.X[:4])
    for name, value in (("NaN", np.nan), ("infinity", np.inf), ("-infinity", -np.inf)):
        spoilt = X.copy()
        spoilt[3, 1] = value
        yield f"{name} in the last row", spoilt
    yield "too many features", np.hstack([X, X])
    yield "too few features", X[:, :-1]
    yield "no rows", X[:0]
    yield "no features", X[:, :0]
    yield "one dimension", X[0]
    yield "three dimensions", X[None]
    yield "ragged rows", [list(X[0]), list(X[1]), list(X[2]), [1.0]]
    yield "strings", [["a"] * X.shape[1]] * 4
    yield "complex numbers", X * 1j
    yield "None", None


def _bad_targets(case: Case) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    good: Any = None if case.y is None else case.y[:4]
    for name, weights in (
        ("a negative weight", [1.0, 1.0, 1.0, -1.0]),
        ("a NaN weight", [1.0, np.nan, 1.0, 1.0]),
        ("too few weights", [1.0, 1.0]),
        ("weights that are strings", ["a"] * 4),
    ):
        yield name, good, {"sample_weight": weights}
    if case.y is None:
        return
    yield "no y", None, {}
    yield "y too short", case.y[:3], {}
    yield "y with two columns", np.stack([good, good], axis=1), {}
    yield "y with a NaN", [0.0, 1.0, 0.0, np.nan], {}
    yield "y with infinity", [0.0, 1.0, 0.0, np.inf], {}
    if is_classifier(case.estimator):
        yield "y that is not a classification", [0.5, 1.25, 0.75, 2.5], {}
        yield "a label outside classes", np.array([0, 1, 0, 9]), {"classes": [0, 1]}
    else:
        yield "y of strings", ["a", "b", "c", "d"], {}


def check_bad_input_changes_nothing(case: Case) -> None:
    """Whatever is wrong is refused with ValueError or TypeError, and the model is as it was before."""
    models = [case.new(), case.fitted()]
    good_y = None if case.y is None else case.y[:4]
    for model in models:
        for name, X in _bad_rows(case) if is_native(model) else [("no rows", [])]:
            fitted, other_width = model is models[1], name in ("too many features", "too few features")
            if other_width and not fitted:
                continue
            _refused(model, name, partial(model.partial_fit, X, good_y))
            _refused(model, name, partial(model.prequential, X, good_y))
            if not other_width:
                _refused(model, name, partial(model.fit, X, good_y))
            if fitted:
                _refused(model, name, partial(model.predict, X))
        for name, y, extra in _bad_targets(case):
            _refused(model, name, partial(model.partial_fit, case.X[:4], y, **extra))
        target = None if case.y is None else case.y[0]
        if is_native(model):
            for spoilt in (np.array([0.0, np.nan, 0.0, 0.0, 0.0]), np.array(["a"] * 5), np.zeros((2, 2, 2))):
                _refused(model, f"learn_one of {spoilt!r}", partial(model.learn_one, spoilt, target))
        _refused(model, "a weight below 0", partial(model.learn_one, case.X[0], target, -1.0))


def _refused(model: Any, what: str, call: Callable[[], Any]) -> None:
    before = snapshot(model)
    try:
        call()
    except (ValueError, TypeError) as error:
        require(str(error), f"the refusal of {what} says why")
    except Exception as error:
        raise CheckError(f"{what} is refused with ValueError or TypeError, found {error!r}") from error
    else:
        raise CheckError(f"{what} is refused")
    require(snapshot(model) == before, f"{what} changes nothing")


# ---- promise 7: predicting -----------------------------------------------------------------------


def check_predicting_changes_nothing(case: Case) -> None:
    """predict, decision_function and score_one leave the model alone and may run from many threads."""
    model = case.fitted()
    before, scores, answers = snapshot(model), _said(model, case.X), model.predict(case.X)
    with ThreadPoolExecutor(8) as threads:
        several = list(threads.map(lambda _: (_said(model, case.X), model.predict(case.X)), range(16)))
    for some_scores, some_answers in several:
        require(np.array_equal(scores, some_scores), "scores from many threads are the same")
        require(np.array_equal(answers, some_answers), "answers from many threads are the same")
    for i in range(min(20, len(case))):
        require(np.array_equal(model.score_one(case.X[i]), scores[i]), f"score_one agrees at event {i}")
        require(model.predict_one(case.X[i]) == answers[i], f"predict_one agrees at event {i}")
    require(snapshot(model) == before, "predicting changes nothing")


# ---- promises 5 and 8: copies, inputs, files -----------------------------------------------------


def check_copies_are_independent(case: Case) -> None:
    """A clone is unfitted; what a pickled, copied or deep-copied model learns, the original does not."""
    model = case.fitted()
    require(not hasattr(clone(model), "n_seen_"), "a clone is unfitted")
    before = snapshot(model)
    copies: list[Callable[[Any], Any]] = [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy]
    for make in copies:
        other = make(model)
        require(snapshot(other) == before, "a copy is the same model")
        case.learn(other, slice(None))
        require(snapshot(model) == before, "what a copy learns, the original does not")


def check_inputs_are_left_alone(case: Case) -> None:
    """Learning neither changes nor keeps a view of what it is given; read-only rows are welcome."""
    if not isinstance(case.X, np.ndarray):
        return  # objects of any kind are the caller's own business
    X, y = case.X.copy(), None if case.y is None else np.array(case.y)
    X.setflags(write=False)
    model = case.new()
    dataclasses.replace(case, X=X, y=y).learn(model, slice(None))
    require(np.array_equal(X, case.X), "learning does not change X")
    require(y is None or np.array_equal(y, case.y), "learning does not change y")
    before = snapshot(model)
    X.setflags(write=True)
    X[:] = 0.5
    row = np.array(case.X[0])
    require(snapshot(model) == before, "the model keeps no view of X")
    model.learn_one(row, None if y is None else y[0])
    before = snapshot(model)
    row[:] = 0.25
    require(snapshot(model) == before, "the model keeps no view of a row")


def _through_file(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return load(path)


def _can_be_saved(model: Any) -> bool:
    parts = isinstance(model.rule, Rule | None) and isinstance(model.budget, Budget | None)
    return parts and is_native(model)


def check_files_hold_the_whole_model(case: Case) -> None:
    """save and load give the same model bit for bit; Python code is refused and nothing is written."""
    model = case.fitted()
    if _can_be_saved(model):
        other = _through_file(model)
        require(type(other) is type(model), "a file brings back the same class")
        require(snapshot(other) == snapshot(model), "a file brings back the same model")
        require(np.array_equal(_said(other, case.X), _said(model, case.X)), "a loaded model says the same")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        try:
            model.save(path)
        except TypeError as error:
            require("pickle" in str(error), "the refusal to save Python code says what would work")
        else:
            raise CheckError("a model with Python code is not saved")
        require(not any(Path(folder).iterdir()), "a refused save leaves nothing behind")


# ---- weights -------------------------------------------------------------------------------------


def check_weights_have_a_meaning(case: Case) -> None:
    """Weights of 1 are no weights; an event of weight 0 is passed over."""
    ones = case.new()
    case.learn(ones, slice(None), sample_weight=np.ones(len(case)))
    require(_same_bits(ones, case.fitted()), "weights of 1 are no weights")
    before = _coefficients(ones)
    case.learn(ones, slice(0, 3), sample_weight=np.zeros(3))
    require(ones.n_seen_ == len(case) + 3, "events of weight 0 are counted")
    if not isinstance(ones.budget, Window):
        require(np.array_equal(before, _coefficients(ones)), "events of weight 0 are not learned")


# ---- which of them apply -------------------------------------------------------------------------

_POINTS = (check_scores_are_the_naive_sums, check_attributes_fit_together)
_ALWAYS = (
    check_prequential_scores_before_it_learns,
    check_cutting_changes_nothing,
    check_pausing_changes_nothing,
    check_same_seed_same_run,
    check_bad_input_changes_nothing,
    check_predicting_changes_nothing,
    check_copies_are_independent,
    check_inputs_are_left_alone,
    check_files_hold_the_whole_model,
    check_weights_have_a_meaning,
)


def _is_bounded(budget: Any) -> bool:
    return isinstance(budget, Budget) and (
        getattr(budget, "size", None) is not None or getattr(budget, "steps", None) is not None
    )


def _on_all_cases(check: Callable[[Case], None], X: Any, y: Any, estimator: Any) -> None:
    for case in _cases(estimator, X, y):
        check(case)


def yield_checks(estimator: Any, X: Any = None, y: Any = None) -> Iterator[Check]:
    """Every check that applies to an estimator; each is called with the estimator and raises `CheckError`.

    Parameters
    ----------
    estimator : a learner of gristmill, or one that keeps its contract
        It is cloned, never changed.
    X, y : a stream, optional
        Where the kernel compares objects that are not vectors, a few dozen of them with their labels.

    Examples
    --------
    >>> from gristmill import Gaussian, checks, perceptron
    >>> model = perceptron(Gaussian(1.0))
    >>> kept = 0
    >>> for check in checks.yield_checks(model):
    ...     check(model)
    ...     kept += 1
    >>> kept
    14
    """
    checks: list[Callable[[Case], None]] = [*(_POINTS if stores_points(estimator) else ()), *_ALWAYS]
    if is_native(estimator):
        checks += [check_dense_and_sparse_agree, check_single_precision]
    if _is_bounded(estimator.budget):
        checks.append(check_memory_is_bounded)
    for check in checks:
        yield update_wrapper(partial(_on_all_cases, check, X, y), check)
