"""Base class of all learners: each chunk is one transaction, behind scikit-learn's interface.

A learner runs on a core: one of the compiled ones, or a Python object with the same methods (`learn`, which looks at its
rows before anything changes, `score`, `state`, `restore`, `seen`, `width`, `classes`, `memory_bytes`, `is_plain`). A
subclass defines how its parts become a core; its task (`tasks.py`) encodes labels and decodes scores.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from .. import persist
from .._common import inputs
from .._common.labels import NO_LABELS, LabelTable, LabelView
from .._common.threads import allowed
from .._common.types import Fields, FileFields, Fitted, Labels, State, Table
from ..persist.saved_state import number_of
from ..persist.stored import StoredEstimator
from .tasks import Encoded, Task

Found = TypeVar("Found")
Learner = TypeVar("Learner", bound="StreamEstimator")

_DOUBLE, _ARRAY = np.dtype(np.float64), np.ndarray


@dataclasses.dataclass(eq=False)
class Run:
    """State of a fitted learner: its parts as they were at the first sample, the core, and the labels seen so far.

    A reader takes the run once, then scores, then reads the labels, so it never sees a half-finished update.
    """

    parts: Any
    core: Any = None
    labels: LabelTable = NO_LABELS
    found: dict[str, Any] = dataclasses.field(default_factory=dict)  #: values that are computed once
    early: Any = None  #: statistics of the first events, for warnings; None afterwards
    short: bool | None = None  #: True if `learn_one` may call the core directly; None until checked

    @property
    def targets(self) -> int:
        """How many numbers are to be predicted of each event."""
        return int(self.found.get("targets", 1) if self.core is None else getattr(self.core, "targets", 1))


def task_of(model: object) -> str | None:
    """What a learner is for: classification, regression, novelty, or something else (None)."""
    kinds = {"classification": is_classifier, "regression": is_regressor, "novelty": is_outlier_detector}
    return next((task for task, asks in kinds.items() if asks(model)), None)


def is_event(x: object) -> bool:
    return type(x) is np.ndarray and x.ndim == 1 and x.dtype is _DOUBLE and len(x) > 0


def vector_of(x: object) -> Any:
    """One sample as a row of doubles, or None if it needs full validation."""
    if type(x) is np.ndarray:
        if x.dtype is _DOUBLE:
            return x if x.ndim == 1 else None
    elif type(x) is list or type(x) is tuple:
        try:
            x = np.array(x)
        except ValueError:  # rows of several lengths: full validation raises
            return None
    else:
        return None
    return x.astype(np.float64) if x.ndim == 1 and x.dtype.kind in "fiu" else None


class StreamEstimator(StoredEstimator):
    """Base of the learners on a stream."""

    learning_task: ClassVar[Task]

    _run: Run | None = None  # nothing is learned yet
    _learning_in: int | None = None  # the thread that learns now
    _columns: int | None = None  # by `expect_columns`
    #: weight of each class, for learners with `class_weight`
    class_weight: Any = None
    #: whether `widen` gives it more columns in mid-stream
    widens: ClassVar[bool] = False
    #: whether targets may change their unit in mid-stream (the core has `retarget`)
    retargets: ClassVar[bool] = False
    #: whether sparse rows are handed on as such
    _takes_sparse: ClassVar[bool] = True

    # ---- hooks of subclasses ------------------------------------------------------------------------------------

    def checked_parts(self) -> Any:
        """The checked parts of the model; raises for parameters out of range and for combinations that are not supported."""
        raise NotImplementedError

    def begin_core(self, run: Run, X: Table) -> Any:
        """A new core for rows like X; defaults that depend on the number of columns are filled in here."""
        raise NotImplementedError

    def _targets(self, run: Run, y: Labels, count: int, classes: Labels) -> Encoded:
        """The labels of a chunk as the core takes them, checked against the parts."""
        return self.learning_task.encoded(type(self).__name__, run.labels, y, count, classes)

    def _number(self, run: Run, y: Labels) -> float | None:
        """The core's number of a known label, or None to fall back to `partial_fit`."""
        return self.learning_task.number(run.labels, y)

    def _weighed(self, run: Run, labels: LabelTable, numbers: object, weights: object) -> Any:
        """Sample weights, multiplied by class weights."""
        return weights

    def event_weight(self, run: Run, y: Labels) -> float:
        """Weight of one sample whose label is known."""
        return 1.0

    def n_passes(self) -> int:
        """Number of passes of `fit` over the samples."""
        return 1

    def takes_objects(self) -> bool:
        """Whether samples are arbitrary objects, compared by a Python kernel."""
        return False

    #: rows times bytes of the model below which the core uses one thread in any case
    _little: ClassVar[int] = 1 << 24

    def n_threads(self) -> Any:
        """Number of threads that the core may use, by `n_jobs`."""
        return 1

    def _ask(self, core: Any, call: Callable[..., Found], rows: Any, *given: Any) -> Found:
        """Scores of rows by the core, with `n_jobs` threads; a few rows use one thread, since a pool costs more."""
        jobs = self.n_threads()
        if jobs == 1 or len(rows) == 1:
            return call(rows, *given)
        count, numbers = inputs.extent(rows)
        if count * (core.memory_bytes + 8 * numbers) < self._little:
            return call(rows, *given)
        with allowed(jobs):
            return call(rows, *given)

    # ---- what is learned ----------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._run is not None

    @property
    def fitted_run(self) -> Run | None:
        """What is learned, as one object; None before the first sample."""
        return self._run

    def expect_columns(self, count: int) -> None:
        """The number of columns of a table before rare columns widen it: defaults of the kernel go by it."""
        self._columns = count

    def _started(self) -> Run:
        if self._run is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._run

    @property
    def _engine(self) -> Any:
        return self._started().core

    def _at_rest(self, look: Callable[[Self], Found]) -> Found:
        """Result of `look`, which reads the core several times, at one state: on a copy if another thread learns."""
        run, seen = self._started(), self.n_seen_
        try:
            found = look(self)
        except Exception:
            if self._run is run and self.n_seen_ == seen:
                raise
        else:
            if self._run is run and self.n_seen_ == seen:
                return found
        return look(copy.copy(self))

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return int(self._engine.seen)

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the model keeps; they do not grow with the stream once a budget is full."""
        return int(self._engine.memory_bytes)

    # ---- input --------------------------------------------------------------------------------------------------

    def _read(self, X: Table, first: bool) -> Any:
        """X checked: an array or CSR array of floats, or a list of objects."""
        if self.takes_objects():
            return inputs.objects(X)
        if type(X) is list and len(X) == 1 and is_event(X[0]):  # scikit-learn's checks cost more than one event
            if first:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = len(X[0])
            if len(X[0]) == self.n_features_in_:
                return X[0][None]
        if not first and inputs.is_ready(X, self.__dict__):
            return X
        inputs.refuse_masked(X, "X")
        if not self._takes_sparse or getattr(X, "format", "csr") != "csr":  # else the core checks it
            inputs.check_sparse(X)
        try:
            return validate_data(
                self, X, reset=first, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        except (TypeError, ValueError) as error:
            found = inputs.no_number(X)
            if found is None:
                raise
            raise type(error)(
                f"{error}: X holds {found}, and {type(self).__name__} takes numbers; "
                f"Prepared({type(self).__name__}(...)) takes dicts, and tables with text, dates and missing values"
            ) from error

    def _rows(self, core: Any, X: Any) -> Any:
        """Checked X as the core takes it."""
        if isinstance(X, list):
            return X
        if not self._takes_sparse:
            return np.ascontiguousarray(X.toarray() if inputs.is_sparse(X) else X, dtype=np.float64)
        return inputs.core_rows(X, core.is_single, core.is_sparse)

    # ---- learning -----------------------------------------------------------------------------------------------

    def _learn(
        self,
        X: Table,
        y: Labels,
        sample_weight: Labels = None,
        want_scores: bool = False,
        classes: Labels = None,
        fresh: bool = False,
        passes: int = 1,
    ) -> Any:
        """Learn a chunk in order, as one transaction: after any error the model is as it was before."""
        if self._learning_in == threading.get_ident():
            raise RuntimeError("the model is learning: a kernel or a search must not call the model that calls it")
        before, known = dict(self.__dict__), None if fresh else self._run
        labels = None if known is None else known.labels
        seen = None if known is None else getattr(known.core, "seen", None)
        spare = None if known is None else self.spare_parts(known)
        self._learning_in = threading.get_ident()
        try:
            if known is None:
                self.__dict__.pop("_changed", None)
            self.refuse_changed_parameters("learning on")
            run = Run(self.checked_parts()) if known is None else known
            scores = self._pass(run, X, y, sample_weight, want_scores, classes, passes)
        except BaseException:
            if (
                known is not None and getattr(known.core, "seen", None) != seen
            ):  # interrupted after the core committed the chunk
                self.__dict__.pop("_learning_in", None)
                raise
            self.__dict__.update(before)  # never empty: others may be predicting
            for name in set(self.__dict__) - set(before):
                self.__dict__.pop(name, None)
            if known is not None and labels is not None:
                known.labels = labels
                if spare is not None:
                    self._run = Run(spare, self.restored_core(spare, known.core.state()), labels)
            raise
        self._run = run
        self.__dict__.pop("_learning_in", None)
        if "due" in run.found:
            self._warn_of(run, run.found.pop("due"))
        return None if scores is None else self.learning_task.shown(scores, run.labels.view(len(run.labels)))

    def _pass(self, run: Run, X: Any, y: Labels, weights: Any, want_scores: bool, classes: Labels, passes: int) -> Any:
        first = run.core is None
        X = self._read(X, first)
        count = len(X) if isinstance(X, list) else X.shape[0]
        weights = None if weights is None else inputs.weights(weights, count)
        labels, numbers, known = self._targets(run, y, count, classes)
        weights = self._weighed(run, labels, numbers, weights)
        core = self.begin_core(run, X) if first else run.core
        rows = self._rows(core, X)
        early = None if run.early is None else run.early.copied()
        due = early is not None and len(numbers) > 0 and early.take(X, numbers)
        run.core, run.labels = (
            core,
            labels,
        )  # labels first: a concurrent reader uses only as many labels as it has scores
        start = core.seen if passes > 1 else 0
        met = core.classes
        scores = self._ask(core, core.learn, rows, numbers, weights, want_scores, known)
        if want_scores:
            scores = self.learning_task.with_new_classes_last(scores, numbers, max(met, known))
        for _ in range(passes - 1):
            self._ask(core, core.revisit, rows, numbers, weights, start)
        if first:
            self._check_first(run.parts, X, len(labels))
        run.early = None if due else early
        if due:
            run.found["due"] = early
        return scores

    def _check_first(self, parts: Any, X: Table, classes: int) -> None:
        """Hook: called with the first chunk; warn if the model cannot learn from it."""

    def _warn_of(self, run: Run, early: Any) -> None:
        """Hook: called once the first hundred events are learned; warn if their columns are badly scaled."""

    def spare_parts(self, run: Run) -> Any:
        """A copy of parts written in Python, whose state the core cannot roll back."""
        return None

    def fit(self, X: Table, y: Labels = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or array, or sequence of objects (with a function of two objects)
        y : labels or targets
        """
        self._learn(X, y, fresh=True)
        return self

    def partial_fit(self, X: Table, y: Labels = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model."""
        self._learn(X, y)
        return self

    def prequential(self, X: Any, y: Any = None) -> Any:
        """Learn from X, y as `partial_fit` does, and return what was predicted for each event before."""
        return self._learn(X, y, want_scores=True)

    def learn_one(self, x: object, y: Labels = None) -> None:
        """Learn one event."""
        if not self._learned(x, y):
            self._learn(inputs.single(x), [y])

    def _learned(self, x: Any, y: Labels) -> bool:
        """Learn a vector of numbers by one call of the core; False if the core needs Python or the event full validation."""
        run = self._run
        if run is None:
            return False
        short = run.short
        if short is None:
            short = run.short = bool(run.core.is_plain)
        if not short:
            return False
        if type(x) is not _ARRAY or x.dtype is not _DOUBLE or x.ndim != 1:
            x = vector_of(x)
        if x is None or self._changed:
            return False  # full validation raises
        number = self._number(run, y)
        if number is None:
            return False
        run.core.learn_one(x, number, 1.0 if self.class_weight is None else self.event_weight(run, y))
        early = run.early
        if early is not None and early.take(x[None], np.array([number])):
            run.early = None
            self._warn_of(run, early)
        return True

    # ---- scores -------------------------------------------------------------------------------------------------

    def _scores(self, X: Table) -> tuple[Any, LabelView]:
        """Scores as returned to the user and their labels, of one consistent state."""
        run = self._started()
        scores, classes = self._ask(run.core, run.core.score, self._rows(run.core, self._read(X, first=False)))
        view = run.labels.view(classes)
        return self.learning_task.shown(scores, view), view

    def _scores_one(self, x: object) -> tuple[Any, LabelView]:
        """`_scores` of one event: one call of the core for a vector, full validation for everything else."""
        run = self._started()
        core = run.core
        event = vector_of(x) if core.is_plain and core.outputs == 1 else None
        if event is not None and len(event) > 0:
            classes, score = core.classes, core.score_one(event)
            view = run.labels.view(classes)
            if score is not None and core.classes == classes:  # else another class came in between
                return view.sign * score, view
        scores, view = self._scores_of_row(run, x)
        return scores[0], view

    def _scores_of_row(self, run: Run, x: Any) -> tuple[Any, LabelView]:
        if not self.takes_objects() and not inputs.is_sparse(x):
            if np.iscomplexobj(x):
                raise ValueError(f"Complex data not supported: {x!r}")
            x = np.asarray(x, dtype=np.float64)
            if x.ndim != 1:
                raise ValueError(f"x must be one event, a vector of {run.core.width} numbers, got {x.ndim} dimensions")
        scores, classes = run.core.score(self._rows(run.core, self._read(inputs.single(x), first=False)))
        view = run.labels.view(classes)
        return self.learning_task.shown(scores, view), view

    # ---- saving -------------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        self.checked_parts()

    def restored_core(self, parts: Any, state: dict[str, object]) -> Any:
        """A core with these parts in this state; raises if the state does not fit."""
        raise NotImplementedError

    def parts_fields(self, parts: Any) -> tuple[State, Fitted]:
        """Parts as arrays and plain values."""
        return {}, {}

    def restored_parts(self, arrays: Fields, fitted: Fitted) -> Any:
        """Back from `parts_fields`; takes its arrays out of `arrays`."""
        return self.checked_parts()

    def saved_fields(self) -> FileFields:
        run = self._started()
        extra, fitted = self.parts_fields(run.parts)
        state = run.core.state()
        arrays, objects = persist.flatten(state)
        if objects is not None:
            raise TypeError("a model over Python objects cannot be saved without code; pickle it instead")
        names = run.labels.names[: number_of(state, "classes")]  # another thread may bring more
        if names:
            fitted["labels"] = persist.encode_labels(names)
        return {**arrays, **extra}, {**fitted, **persist.encode_features(self)}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        labels = LabelTable(persist.decode_labels(fitted["labels"]) if "labels" in fitted else ())
        persist.decode_features(self, fitted)
        parts = self.restored_parts(arrays, fitted)
        core = self.restored_core(parts, persist.unflatten(arrays, None))
        if core.classes != len(labels):
            raise persist.ModelFileError("its classes do not fit its labels")
        self._run = Run(parts, core, labels)

    def __getstate__(self) -> dict[str, object]:
        plain = dict(super().__getstate__())
        run = plain.pop("_run", None)
        plain.pop("_learning_in", None)
        if run is not None:
            core = self._packed(run.core)  # before its labels: another thread may bring more of them, never fewer
            plain["_run"] = {"parts": run.parts, "labels": run.labels.names, "core": core}
        return plain

    def __setstate__(self, state: Fields) -> None:
        packed = state.pop("_run", None)
        super().__setstate__(state)
        if packed is not None:
            parts = copy.deepcopy(packed["parts"])  # copy.copy hands over the original's own
            core = self._unpacked(parts, packed["core"])
            self._run = Run(parts, core, LabelTable(packed["labels"][: core.classes]))

    def copied(self) -> Self:
        """A copy in memory of a learner that has begun; it owns what it has learned."""
        run = self._started()
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        if self.spare_parts(run) is None and hasattr(run.core, "widened") and not self.takes_objects():
            other._run = Run(run.parts, run.core.widened(run.core.width), run.labels)
        else:
            parts = copy.deepcopy(run.parts)
            other._run = Run(parts, self.restored_core(parts, run.core.state()), run.labels)
        other._run.early = None if run.early is None else run.early.copied()
        return other

    def _packed(self, core: Any) -> Any:
        """A core for pickle: the bytes of a model file, and Python objects beside them."""
        return persist.pack_core(core)

    def _unpacked(self, parts: object, packed: object) -> Any:
        return self.restored_core(parts, persist.unpack_core(packed))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags


def is_begun(model: StreamEstimator) -> bool:
    """Whether a learner has learned anything."""
    return model._run is not None


def run_of(model: StreamEstimator) -> Run:
    """The state of a fitted learner; NotFittedError before."""
    return model._started()


def core_of(model: StreamEstimator) -> Any:
    """The core of a fitted learner; NotFittedError before."""
    return model._started().core


def with_run(model: Learner, run: Run) -> Learner:
    """The learner itself, in this state from now on."""
    model._run = run
    return model


def refuse_no_weight(sample_weight: Labels) -> None:
    """Raise if all weights are zero."""
    if sample_weight is not None and not np.asarray(sample_weight, dtype=np.float64).any():
        raise ValueError("sample_weight is zero for every event: there is nothing to fit")
