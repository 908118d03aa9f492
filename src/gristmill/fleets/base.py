"""Base of the fleets: valid prototypes, labels of many members, and members as plain estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .. import _core, persist
from .._base.estimator import Run, with_run
from .._common import labels as _labels
from .._common.inputs import is_sparse, refuse_masked
from .._common.labels import NO_LABELS, LabelTable, agreeing
from .._common.ranges import bytes_in
from .._common.seeds import seed_of
from .._common.types import Fields, FileFields, Fitted, Floats
from ..budgets import Budget
from ..learners import additive
from ..learners.composition import check_outputs
from ..learners.kernel import KernelClassifier, KernelNovelty, KernelRegressor
from ..persist.stored import StoredEstimator
from ..rules import Rule
from . import scaling as _scaled_members

_WORKS = (
    "rules such as Perceptron(), SGD(...), Implicit(...), PassiveAggressive(...), FeasibleSet(...) without a radius, and "
    "budgets Window(steps), DropOldest(size), DropSmallest(size), DropRandom(size), Merge(size) work"
)


def shaped(name: str, values: Any, shape: tuple[int, ...]) -> Any:
    """Values in the wanted shape; for a single frame the first axis may be omitted."""
    if values.shape != shape and (shape[0] != 1 or values.shape != shape[1:]):
        raise ValueError(f"{name} must have one value an event, shape {shape}, got shape {values.shape}")
    return values.reshape(shape)


class FleetBase(StoredEstimator):
    """Base of the fleets: many learners with the same kernel, rule and budget."""

    prototype: object
    _core_: Any = None  # nothing is learned yet
    _cores: tuple[object, object]  # for double and single precision
    _table: LabelTable = NO_LABELS

    def _has_begun(self) -> bool:
        """A fleet compares its parameters at each call: assignments and changes of the prototype are seen too."""
        return False

    # ---- parts ----------------------------------------------------------------------------------------------------

    @property
    def label_table(self) -> LabelTable:
        """The labels that the members have seen; a fleet that learns by batches of a log is given them."""
        return self._table

    @label_table.setter
    def label_table(self, table: LabelTable) -> None:
        self._table = table

    def checked_parts(self) -> Any:
        """Kernel, rule and budget of every member; raises for parts that fleets do not support."""
        prototype, owner = self.member_model, type(self).__name__
        if type(prototype) not in (KernelClassifier, KernelRegressor, KernelNovelty):
            raise TypeError(
                f"{owner} takes a KernelClassifier, KernelRegressor or KernelNovelty as its prototype, or one of them "
                f"in Prepared, got {self.prototype!r}"
            )
        parts = prototype.checked_parts()
        if parts.class_weight == "balanced":
            raise ValueError(
                f"{owner} does not count the classes of each member: class_weight='balanced' is not for it; "
                "give a dict, or None"
            )
        if parts.average:
            raise ValueError(f"{owner} cannot average; use a prototype with average=False")
        if parts.kernel is not None and (additive.is_additive(parts.kernel) or not parts.kernel.is_native):
            raise ValueError(f"{owner} cannot run {parts.kernel!r}; kernels such as Gaussian(gamma) work")
        for part, kind in ((parts.rule, Rule), (parts.budget, Budget)):
            if not isinstance(part, kind):
                raise ValueError(f"{owner} cannot run {part!r}, which is written in Python; {_WORKS}")
        size = getattr(parts.budget, "size", None)
        if isinstance(size, int) and size > 2**31:
            raise ValueError(f"{owner}: the budget of a member holds at most {2**31} points, got size={size}")
        _scaled_members.scaling(owner, self.prototype)
        try:
            _core.check_members(parts.rule.core_spec(), parts.budget.core_spec(), prototype.learning_task.name)
        except ValueError as error:
            raise ValueError(f"{owner} cannot run {parts.rule!r} with {parts.budget!r}: {error}; {_WORKS}") from None
        return parts

    def check_parameters(self) -> None:
        self.checked_parts()

    def _settled(self, parts: Any, width: int) -> Any:
        return parts if parts.kernel is not None else parts._replace(kernel=self.member_model.default_kernel(width))

    def _least_bytes(self) -> float:
        """Least bytes of a member, whose whole budget is reserved from the beginning. requires: n_features_in_"""
        size = getattr(self.member_model.budget, "size", 1)
        return float(bytes_in(size)) if isinstance(size, str) else 8.0 * float(size or 1) * (self.n_features_in_ + 2)

    @property
    def member_model(self) -> Any:
        """The learner inside the prototype, without its scaler."""
        return _scaled_members.inner(self.prototype)

    def _made(self, core: Any, parts: Any, width: int, **more: Any) -> Any:
        """A core of these parts; `more`: further arguments of this kind of fleet."""
        parts = self._settled(parts, width)
        return core(
            kernel=parts.kernel.kernel_program(),
            rule=parts.rule.core_spec(),
            budget=parts.budget.core_spec(),
            task=self.member_model.learning_task.name,
            width=width,
            **_scaled_members.scaling(type(self).__name__, self.prototype),
            **more,
        )

    def drawn_seed(self) -> int:
        return seed_of(self.member_model.random_state)

    @property
    def _one_seed(self) -> bool:
        """Whether all members draw the same numbers."""
        return isinstance(self.member_model.random_state, int | np.integer)

    # ---- what is learned --------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._core_ is not None

    def _started(self) -> Any:
        if self._core_ is None:
            raise NotFittedError(f"This {type(self).__name__} instance has not learned anything yet")
        return self._core_

    @property
    def memory_bytes_(self) -> int:
        """Bytes that all members together keep."""
        return int(self._started().memory_bytes)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes seen by any member, sorted."""
        if not isinstance(self.member_model, KernelClassifier):
            raise AttributeError(f"{type(self).__name__!r} of {type(self.member_model).__name__} has no classes_")
        return self._table.view(self._started().classes).classes

    # ---- input ------------------------------------------------------------------------------------------------------

    def _numbers(self, X: Any) -> npt.NDArray[Any]:
        """X as an array of the precision that is stored."""
        if is_sparse(X):
            raise TypeError(f"{type(self).__name__} takes dense rows; use X.toarray()")
        if np.iscomplexobj(X):
            raise ValueError("Complex data not supported")
        refuse_masked(X, "X")
        array = np.asarray(X)
        if array.dtype.kind in "mMUS":
            raise ValueError(
                f"X must hold numbers, got {array.dtype}; Prepared(model) turns columns of a table into numbers"
            )
        if self._core_ is None:  # a scaling makes doubles of its inputs, as it does in front of a learner alone
            single = array.dtype == np.float32 and not _scaled_members.scaling(type(self).__name__, self.prototype)
        else:
            single = self._core_.is_single
        try:
            with np.errstate(over="ignore"):  # the core names the event that became infinite
                return np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers: {error}") from None

    def _codes(self, y: Any, there: Any, classes: object) -> tuple[LabelTable, Any, int]:
        """Labels or targets as numbers: the table afterwards, one number an event, classes known before the first."""
        owner = type(self).__name__
        if isinstance(self.member_model, KernelNovelty):
            return self._table, None, 0
        if y is None:
            raise ValueError(f"{owner} of {type(self.member_model).__name__} requires y to be passed, but y is None")
        refuse_masked(y, "y")
        if hasattr(y, "to_numpy"):
            flat = y.to_numpy().reshape(-1)
        else:  # labels in a list stay what they are: NumPy's strings lose zeros at their end, and 1 beside "a" becomes "1"
            listed = isinstance(y, list | tuple) and isinstance(self.member_model, KernelClassifier)
            flat = np.asarray(y, dtype=object if listed else None).reshape(-1)
        kept = flat if there is None else flat[there]
        numbers = np.zeros(len(flat))
        if isinstance(self.member_model, KernelRegressor):
            found, table, known = _labels.targets(owner, kept, len(kept)), self._table, 0
        else:
            table, found, known = self._labelled(owner, kept, classes)
            if len(table) > max(len(self._table), 2):
                parts = self.member_model.checked_parts()
                check_outputs(parts.rule, parts.budget, len(table))
        numbers[slice(None) if there is None else there] = found
        return table, numbers, known

    def _labelled(self, owner: str, labels: Any, classes: Any) -> tuple[LabelTable, Any, int]:
        """Encode many labels of few distinct values: each value is validated once."""
        if labels.dtype == object or labels.dtype.kind not in "biuUS" or len(labels) == 0:
            return _labels.coded(owner, self._table, list(labels.tolist()), len(labels), classes)
        values, first, place = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        table, codes, known = _labels.coded(owner, self._table, values[order].tolist(), len(values), classes)
        of_value = np.empty(len(values))
        of_value[order] = codes
        return table, of_value[place], known

    def _weights(self, sample_weight: object, shape: tuple[int, ...]) -> Floats | None:
        if sample_weight is None:
            return None
        try:
            weights = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must hold numbers: {error}") from None
        weights = np.broadcast_to(weights, shape) if weights.ndim == 0 else shaped("sample_weight", weights, shape)
        weights = np.ascontiguousarray(weights)
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if bad.size:
            at, value = int(bad[0]), weights.reshape(-1)[bad[0]]
            raise ValueError(f"sample_weight must be finite and not below 0: {self._where(at)} is {value}")
        return weights

    def _where(self, event: int) -> str:
        """How messages name an event."""
        return f"row {event}"

    def _weighed(self, table: LabelTable, numbers: Any, weights: Any) -> Any:
        """Weights of events, times those of their classes where there are any."""
        given = getattr(self.member_model, "class_weight", None)
        if not isinstance(given, dict) or not len(table):
            return weights
        each = np.array([given.get(name, 1.0) for name in table.names])[numbers.astype(np.int64)]
        return each if weights is None else np.ascontiguousarray(weights * each.reshape(weights.shape))

    # ---- answers ----------------------------------------------------------------------------------------------------

    def shown_scores(self, scores: Any, classes: int) -> Any:
        """Scores of the core, outputs in the last axis, as they are shown outside."""
        if not isinstance(self.member_model, KernelClassifier):
            return scores[..., 0]
        view = self._table.view(classes)
        return view.sign * scores[..., 0] if scores.shape[-1] == 1 else scores[..., view.columns]

    def predictions_of(self, scores: Any, classes: int) -> Any:
        """Predictions from scores: a class, a number, or -1 for an outlier."""
        if isinstance(self.member_model, KernelRegressor):
            return scores
        if isinstance(self.member_model, KernelNovelty):
            return np.where(scores < 0, -1, 1)
        known = self._table.view(classes).classes
        if len(known) == 0:
            raise NotFittedError(f"this {type(self).__name__} has not learned an event yet, so it has no classes")
        if len(known) > 2:
            return known[scores.argmax(axis=-1)]
        return known[(scores >= 0).astype(int)] if len(known) == 2 else np.broadcast_to(known[0], scores.shape).copy()

    def _shares(self, shares: Any, scores: Any, classes: int) -> Any:
        """Probabilities of the core, classes in the last axis, in the order of `classes_`; scores: as they are shown."""
        columns = self._table.view(classes).columns
        if len(columns) < 2:
            return np.ascontiguousarray(shares[..., columns])
        best = scores.argmax(axis=-1) if len(columns) > 2 else (scores >= 0).astype(int)
        return np.ascontiguousarray(agreeing(shares[..., columns], best))

    def _refuse_shares(self) -> None:
        if not isinstance(self.member_model, KernelClassifier):
            raise AttributeError(f"{type(self).__name__!r} of {type(self.member_model).__name__} has no predict_proba")

    # ---- a member as a learner --------------------------------------------------------------------------------------

    def _learner(self, pack: Fields, seed: int) -> Any:
        """The only member of a pack as a plain estimator."""
        core = self._started()
        model = clone(self.member_model)
        parts = self._settled(self.checked_parts(), core.width)
        alone = model.new_core(parts, core.width, False, core.is_single, seed)
        core.give_member(pack, alone)
        model.n_features_in_ = core.width
        with_run(model, Run(parts, alone, self._table))
        return _scaled_members.prepared(self.prototype, model, pack)

    def _packed(self, model: Any) -> Fields:
        """A plain estimator as the pack of one member."""
        core, (run, scaling) = self._started(), self._run_of(model)
        if run.labels.names[: run.core.classes] != self._table.names[: core.classes]:
            raise ValueError("the learner does not have the same classes in the same order as the fleet")
        found: dict[str, Any] = core.member_from(run.core, scaling)
        return found

    def _run_of(self, model: object) -> tuple[Run, Any]:
        """State of a learner that can become a member, and of its scaler."""
        found, scaling = _scaled_members.unprepared(self.prototype, model)
        run: Any = getattr(found, "_run", None)
        alike = type(found) is type(self.member_model) and run is not None
        if not alike or run.parts != self._settled(self.checked_parts(), run.core.width):
            raise ValueError(
                f"a member must be a learner of the same kind and parts as the prototype, {self.prototype!r}, that has "
                f"learned something; got {found!r}"
            )
        return run, scaling

    # ---- files ------------------------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        raise NotImplementedError

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        raise NotImplementedError

    def _labels_to_file(self) -> dict[str, object]:
        names = self._table.names
        return {"labels": persist.encode_labels(names)} if names else {}

    def _labels_from_file(self, fitted: dict[str, object]) -> LabelTable:
        return LabelTable(persist.decode_labels(fitted["labels"])) if "labels" in fitted else NO_LABELS

    def __getstate__(self) -> dict[str, object]:
        kept = {key: value for key, value in super().__getstate__().items() if key not in ("_core_", "_table")}
        return kept if self._core_ is None else kept | {"_file": self.saved_fields()}

    def __setstate__(self, state: Fields) -> None:
        file = state.pop("_file", None)
        super().__setstate__(state)
        if file is not None:
            self.restore_fields(*file)

    def __deepcopy__(self, memo: object) -> Self:
        copy = type(self).__new__(type(self))
        copy.__setstate__(self.__getstate__())
        return copy
