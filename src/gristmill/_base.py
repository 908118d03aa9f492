"""What every learner has: one core, filled event by event, behind scikit-learn's and River's verbs."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from . import _core, _input, additive, persist
from .budgets import Budget, DropSmallest
from .components import AdditiveParts
from .composition import check_composition, check_outputs, warn_if_nothing_is_stored
from .kernels import Gaussian, Kernel, as_kernel
from .rules import Rule

Scores = npt.NDArray[np.float64]

_DOUBLE = np.dtype(np.float64)


def _generator(random_state: Any) -> np.random.Generator:
    """scikit-learn's and NumPy's ways to say a seed, as one generator."""
    whole = isinstance(random_state, int | np.integer) and random_state >= 0
    if random_state is None or whole or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    raise ValueError(f"random_state must be None, an int >= 0, a Generator or a RandomState, got {random_state!r}")


def takes_short_way(core: Any, x: Any) -> bool:
    """Whether an event is a vector of doubles for a core without Python inside, which takes it with no more ado."""
    return core is not None and type(x) is np.ndarray and core.is_plain and x.ndim == 1 and x.dtype is _DOUBLE


class StreamLearner(AdditiveParts, BaseEstimator):
    """Base of the kernel learners; subclasses say how a label becomes a number and a score an answer."""

    _task: ClassVar[str]
    _default_rule: ClassVar[Rule]

    def __init__(
        self,
        kernel: Any = None,
        rule: Any = None,
        budget: Any = None,
        average: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.budget = budget
        self.average = average
        self.random_state = random_state

    # ---- composition ------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Any, Any]:
        """Rule and budget as they will run; a combination that makes no sense is refused here."""
        if self.kernel is not None:
            as_kernel(self.kernel)
        rule = self._default_rule if self.rule is None else self.rule
        budget = DropSmallest(1000) if self.budget is None else self.budget
        if isinstance(rule, Rule):
            rule._for_task(self._task)
        elif isinstance(rule, type) or not callable(rule):
            raise TypeError(f"rule must be a rule such as Perceptron() or callable with a Trial, got {rule!r}")
        if not isinstance(budget, Budget) and (isinstance(budget, type) or not hasattr(budget, "victim")):
            raise TypeError(
                f"budget must be a budget such as DropOldest(100) or have a method victim(stored), got {budget!r}"
            )
        if additive.is_additive(self.kernel):
            additive.refuse_parts(self.kernel, rule, budget, bool(self.average))
        check_composition(rule, budget, bool(self.average))
        return rule, budget

    def _start(self, width: int, sparse: bool, single: bool, outputs: int) -> None:
        kernel = Gaussian(1.0 / max(width, 1)) if self.kernel is None else as_kernel(self.kernel)
        seed = int(_generator(self.random_state).integers(2**63))
        rule, budget = self._parts()
        # What runs is the model's own: later changes of the parameters or of a Python part are for the next fit.
        self._running = (copy.deepcopy(rule), copy.deepcopy(budget), bool(self.average))
        self._core = self._make_core(kernel, width, sparse, single, outputs, seed)
        self.kernel_ = kernel

    def _make_core(self, kernel: Kernel, width: int, sparse: bool, single: bool, outputs: int, seed: int) -> Any:
        rule, budget, average = self._running
        if additive.is_additive(kernel):
            spec = rule._spec() if isinstance(rule, Rule) else rule
            return additive.make_core(kernel, spec, budget, self._task, width, single, outputs, seed)
        return _core.Learner(
            kernel=kernel._program() if kernel.is_native else kernel._pair,  # type: ignore[attr-defined]
            rule=rule._spec() if isinstance(rule, Rule) else rule,
            budget=budget._spec() if isinstance(budget, Budget) else budget,
            task=self._task,
            outputs=outputs,
            width=width,
            sparse=sparse,
            single=single,
            average=average,
            seed=seed,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "_core" in self.__dict__

    def _fitted(self) -> Any:
        try:
            return self.__dict__["_core"]
        except KeyError:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            ) from None

    def _reset(self) -> None:
        for name in ("_core", "_running", "kernel_", "classes_", "_codes", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    # ---- input ------------------------------------------------------------------------------------------------

    def _takes_objects(self) -> bool:
        return self.kernel is not None and not as_kernel(self.kernel).is_native

    def _validate_X(self, X: Any, first: bool) -> Any:
        if self._takes_objects():
            return _input.objects(X)
        return validate_data(
            self, X, reset=first, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
        )

    def _rows(self, X: Any) -> Any:
        """Validated X as the running core takes it."""
        if isinstance(X, list):
            return X
        return _input.core_rows(X, self._core.is_single, self._core.is_sparse)

    def _targets(self, y: Any, count: int, classes: Any) -> npt.NDArray[np.float64]:
        """Labels as the core's numbers."""
        raise NotImplementedError

    def _outputs(self) -> int:
        return 1

    # ---- learning ---------------------------------------------------------------------------------------------

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        want_scores: bool,
        classes: Any = None,
        fresh: bool = False,
        passes: int = 1,
    ) -> Any:
        """One pass in order. Everything is checked, and on any error undone, before it is kept."""
        before = dict(self.__dict__)
        spare = None if fresh else self._spare_parts()
        if fresh:
            self._reset()
        try:
            return self._learn_checked(X, y, sample_weight, want_scores, classes, passes)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if spare is not None:
                packed = persist.pack_core(self._core)
                self._running = spare
                self._restore_core(packed)
            raise

    def _spare_parts(self) -> Any:
        """Copies of rule and budget where they are Python objects, whose own state the core cannot take back."""
        rule, budget, _ = running = self.__dict__.get("_running", (None, None, None))
        if "_core" not in self.__dict__ or (isinstance(rule, Rule) and isinstance(budget, Budget)):
            return None
        return copy.deepcopy(running)

    def _learn_checked(self, X: Any, y: Any, sample_weight: Any, want_scores: bool, classes: Any, passes: int) -> Any:
        first = "_core" not in self.__dict__
        if first:
            self._parts()
        X = self._validate_X(X, first)
        count = len(X) if isinstance(X, list) else X.shape[0]
        weights = None if sample_weight is None else _input.weights(sample_weight, count)
        labels = self._targets(y, count, classes)
        rule, budget = self._parts() if first else self._running[:2]
        check_outputs(rule, budget, self._outputs())
        if first:
            objects = isinstance(X, list)
            single = not objects and X.dtype == np.float32
            self._start(0 if objects else X.shape[1], _input.is_sparse(X), single, self._outputs())
        rows = self._rows(X)
        self._core.check(rows)
        if first:
            warn_if_nothing_is_stored(self.kernel_, budget, X, self._outputs())
        grown = self._grow()
        try:
            start = self._core.seen
            scores = self._core.learn(rows, labels, weights, want_scores)
            for _ in range(passes - 1):
                self._core.revisit(rows, labels, weights, start)
            return scores
        except BaseException:
            if grown is not None:
                self._core = grown
            raise

    def _grow(self) -> Any:
        """Make room for new classes; returns the core as it was, if it had to change."""
        return None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or array, or sequence of objects (with a callable kernel)
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            Multiplies the loss of an event; an event of weight 0 is passed over.
        """
        if sample_weight is not None and not np.asarray(sample_weight, dtype=np.float64).any():
            raise ValueError("sample_weight is zero for every event: there is nothing to fit")
        self._learn(X, y, sample_weight, want_scores=False, fresh=True, passes=getattr(self.rule, "passes", 1))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from X, y, in order; cutting a stream into chunks in any way gives the same model."""
        self._learn(X, y, sample_weight, want_scores=False)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None) -> Scores:
        """Learn from X, y as `partial_fit` does, and return what was said of each event before it was learned."""
        return self._shown(self._learn(X, y, sample_weight, want_scores=True))

    # ---- scores -----------------------------------------------------------------------------------------------

    def _shown(self, scores: Scores) -> Scores:
        return scores[:, 0]

    def _scores(self, X: Any) -> Scores:
        self._fitted()
        return self._shown(self._core.score(self._rows(self._validate_X(X, first=False))))

    def _score_row(self, x: Any) -> float:
        """The score of one event; the short way for a vector, the long way for everything else."""
        core = self.__dict__.get("_core")
        if core is None:
            return 0.0
        if core.outputs == 1 and takes_short_way(core, x):
            return core.score_one(x)
        return float(core.score(self._one_row(x))[0, 0])

    def _one_row(self, x: Any) -> Any:
        if self._takes_objects():
            return [x]
        if _input.is_sparse(x):
            return self._rows(x)
        if np.iscomplexobj(x):
            raise ValueError(f"Complex data not supported: {x!r}")
        row = np.asarray(x, dtype=np.float64)
        if row.ndim != 1:
            raise ValueError(f"x must be one event, a vector of {self._core.width} numbers, got {row.ndim} dimensions")
        return self._rows(row[None, :])

    # ---- fitted attributes ------------------------------------------------------------------------------------

    @property
    def support_vectors_(self) -> Any:
        """The stored points, oldest first: an array, a CSR array if they are kept sparse, or a list of objects."""
        points, order = self._fitted().points()
        if isinstance(points, tuple):
            from scipy.sparse import csr_array

            indptr, indices, data, width = points
            return csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))[order]
        return [points[slot] for slot in order] if isinstance(points, list) else points[order]

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored point, from 0; oldest first."""
        ids, order = self._fitted().ids()
        return np.array(ids, dtype=np.int64)[order]

    @property
    def dual_coef_(self) -> npt.NDArray[np.float64]:
        """Coefficients at their true scale: a row a stored point, a column an output."""
        coef, order = self._fitted().dual_coef()
        return coef[order]

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """The offset of each output."""
        return self._fitted().intercept()

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return int(self._fitted().size)

    @property
    def n_seen_(self) -> int:
        """How many events have come."""
        return int(self._fitted().seen)

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the model keeps; constant once the budget is full."""
        return int(self._fitted().memory_bytes)

    @property
    def norm_(self) -> float:
        """||f||, over all outputs."""
        return float(np.sqrt(max(self._fitted().norm2, 0.0)))

    def __getattr__(self, name: str) -> Any:
        # Adaptive quantities exist only for the rule that has them: margin_, epsilon_, sigma_, rate_ ...
        if name.endswith("_") and not name.startswith("_") and "_core" in self.__dict__:
            rule = self._running[0]
            if isinstance(rule, Rule) and name in rule._attributes():
                return float(self._core.rule_state()[rule._attributes().index(name)])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- saving -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file that holds numbers and parameters, and no code; see `gristmill.load`."""
        persist.save(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, objects = persist.flatten(self._fitted().state())
        rule, budget, average = self._running
        fitted: dict[str, Any] = {
            "kernel": persist.encode(self.kernel_, "kernel"),
            "rule": persist.encode(rule, "rule"),
            "budget": persist.encode(budget, "budget"),
            "average": average,
        }
        if hasattr(self, "n_features_in_"):
            fitted["n_features_in"] = int(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            fitted["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        if objects is not None:
            raise TypeError("a model over Python objects cannot be saved without code; pickle it instead")
        return arrays, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        self.kernel_ = persist.decode(fitted["kernel"])
        if not isinstance(self.kernel_, Kernel):
            raise persist.ModelFileError(f"its kernel is {self.kernel_!r}")
        rule, budget = persist.decode(fitted["rule"]), persist.decode(fitted["budget"])
        if not isinstance(rule, Rule) or not isinstance(budget, Budget):
            raise persist.ModelFileError(f"its rule is {rule!r} and its budget is {budget!r}")
        rule._for_task(self._task)
        self._running = (rule, budget, bool(fitted["average"]))
        self._restore_core_arrays(persist.unflatten(arrays, None))
        if "n_features_in" in fitted:
            self.n_features_in_ = int(fitted["n_features_in"])
            if self._core.width != self.n_features_in_:
                raise persist.ModelFileError("its points do not have the number of features it states")
        if "feature_names_in" in fitted:
            self.feature_names_in_ = np.array([str(name) for name in fitted["feature_names_in"]], dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        core = state.pop("_core", None)
        if core is not None:
            state["_core"] = persist.pack_core(core)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop("_core", None)
        super().__setstate__(state)
        if packed is not None:
            self._running = copy.deepcopy(self._running)  # copy.copy hands over the original's own
            self._restore_core(packed)

    def _restore_core(self, packed: Any) -> None:
        self._restore_core_arrays(persist.unpack_core(packed))

    def _restore_core_arrays(self, arrays: dict[str, Any]) -> None:
        points = arrays["points"]
        objects, sparse = isinstance(points, list), isinstance(points, tuple)
        width = 0 if objects else int(points[3]) if sparse else points.shape[1]
        values = points[2] if sparse else points
        single = not objects and values.dtype == np.float32
        outputs = len(arrays["intercept"])  # a rule may keep more rows of coefficients than it shows
        if outputs < 1:
            raise ValueError("the saved model has no output")
        self._core = self._make_core(self.kernel_, width, sparse, single, outputs, seed=0)
        self._core.restore(arrays)  # the generator's true state is among the arrays

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        additive.mark_tags(self.kernel, tags)
        tags.non_deterministic = False
        return tags
