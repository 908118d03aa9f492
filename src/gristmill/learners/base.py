"""Kernel learners: kernel x rule x budget, a core made of them, and what it stores."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._base.estimator import Run, WeightedStream, refuse_no_weight
from .._common import inputs
from .._common.labels import LabelTable
from .._common.ranges import count
from .._common.seeds import seed_of
from .._common.threads import jobs
from ..budgets import Budget, DropSmallest, Merge
from ..kernels import Kernel, Laplacian, as_kernel
from ..rules import Rule
from . import additive
from .additive_components import AdditiveParts
from .composition import check_composition, check_outputs, check_passes, one_number_of_passes, warn_if_nothing_is_stored
from .explanation import Explaining
from .scale_warnings import ScaleWarnings, warn_that_nothing_is_stored

#: without a budget: what was learned stays when a point leaves; trees cannot fold their terms
_DEFAULT_BUDGET, _TREE_BUDGET = Merge(1000), DropSmallest(1000)


class Parts(NamedTuple):
    """What runs is the model's own: later changes of the parameters or of a Python part are for the next fit."""

    kernel: Any
    rule: Any
    budget: Any
    average: bool
    class_weight: Any = None

    def copied(self) -> Parts:
        """Rules and budgets of gristmill are values; Python objects have a state of their own."""
        if isinstance(self.rule, Rule) and isinstance(self.budget, Budget):
            return self
        rule = self.rule if isinstance(self.rule, Rule) else copy.deepcopy(self.rule)
        budget = self.budget if isinstance(self.budget, Budget) else copy.deepcopy(self.budget)
        return self._replace(rule=rule, budget=budget)


class StreamLearner(AdditiveParts, Explaining, WeightedStream):
    """Base of the kernel learners; subclasses encode labels and decode scores."""

    widens = True
    _task: ClassVar[str]
    _default_rule: ClassVar[Rule]
    #: columns of the table before scaling, if a scaler is in front; None for plain rows
    _columns: int | None = None

    def __init__(
        self,
        kernel: Any = None,
        rule: Any = None,
        budget: Any = None,
        average: bool = False,
        random_state: Any = None,
        passes: int = 1,
        n_jobs: int | None = 1,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.budget = budget
        self.average = average
        self.random_state = random_state
        self.passes = passes
        self.n_jobs = n_jobs

    def _jobs(self) -> Any:
        return self.n_jobs

    # ---- composition ------------------------------------------------------------------------------------------

    def _parts(self) -> Any:
        """Kernel, rule and budget as they will run; a combination that makes no sense is refused here."""
        jobs.check(type(self).__name__, "n_jobs", self.n_jobs)
        kernel = None if self.kernel is None else as_kernel(self.kernel)
        default = _TREE_BUDGET if additive.is_additive(kernel) else _DEFAULT_BUDGET
        budget = default if self.budget is None else self.budget
        rule = self._checked_rule(self._rule_for(kernel, budget))
        if not isinstance(budget, Budget) and (isinstance(budget, type) or not hasattr(budget, "victim")):
            raise TypeError(
                f"budget must be a budget such as DropOldest(100) or have a method victim(stored), got {budget!r}"
            )
        if additive.is_additive(kernel):
            additive.refuse_parts(kernel, rule, budget, bool(self.average))
        check_composition(rule, budget, bool(self.average))
        check_passes(self._passes(), kernel, rule, budget)
        return Parts(kernel, rule, budget, bool(self.average), self._class_weight()).copied()

    def _default_kernel(self, columns: int) -> Kernel:
        """For scaled columns: the best single one over the streams of `benchmarks.streams`."""
        return Laplacian(3.0 / columns)

    def _rule_for(self, kernel: Any, budget: Any) -> Rule:
        """The rule where none is given."""
        return self._default_rule

    def _class_weight(self) -> Any:
        """How much the classes weigh, where there are any."""
        return None

    def _checked_rule(self, default: Rule) -> Any:
        rule = default if self.rule is None else self.rule
        if isinstance(rule, Rule):
            rule._for_task(self._task)
        elif isinstance(rule, type) or not callable(rule):
            raise TypeError(f"rule must be a rule such as Perceptron() or callable with a Trial, got {rule!r}")
        return rule

    def _passes(self) -> int:
        """Number of passes of `fit`, set by the estimator or by its rule."""
        own = getattr(self, "passes", 1)
        count.check(type(self).__name__, "passes", own)
        return one_number_of_passes(own, getattr(self.rule, "passes", 1))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, passes: int | None = None) -> Self:
        """Forget everything and learn from X, y, in order; in as many passes as the parameter says, or `passes` here.

        In a later pass the coefficient of an event that is stored changes in place, and one that is not may enter again:
        nothing is stored twice. Events are counted, and probabilities learned, in the first pass.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or array, or sequence of objects (with a callable kernel)
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            Multiplies the loss of an event; an event of weight 0 is passed over.
        passes : int >= 1, optional
            Instead of the parameter of that name.
        """
        refuse_no_weight(sample_weight)
        often = self._passes()
        if passes is not None:
            count.check(type(self).__name__, "passes", passes)
            often = one_number_of_passes(often, passes)
            parts = self._parts()
            check_passes(often, parts.kernel, parts.rule, parts.budget)
        self._learn(X, y, sample_weight, fresh=True, passes=often)
        return self

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        labels, numbers, known = super()._targets(run, y, count, classes)
        if len(labels) > 2:
            check_outputs(run.parts.rule, run.parts.budget, len(labels))
        return labels, numbers, known

    def _begin(self, run: Run, X: Any) -> Any:
        width, single = (0, False) if isinstance(X, list) else (X.shape[1], X.dtype == np.float32)
        if run.parts.kernel is None:
            run.parts = run.parts._replace(kernel=self._default_kernel(self._columns or width))
        bare = self._columns is None and not isinstance(X, list) and not inputs.is_sparse(X)
        looks = bare and not additive.is_additive(run.parts.kernel), bare and self._task == "regression"
        if any(looks) or self._task == "regression":
            run.early = ScaleWarnings(*looks)
        return self._make_core(run.parts, width, inputs.is_sparse(X), single, seed_of(self.random_state))

    def _make_core(self, parts: Parts, width: int, sparse: bool, single: bool, seed: int) -> Any:
        core = self._bare_core(parts, width, sparse, single, seed)
        if parts.class_weight == "balanced":
            core.balance_classes()
        return core

    def _bare_core(self, parts: Parts, width: int, sparse: bool, single: bool, seed: int) -> Any:
        kernel = parts.kernel
        rule = parts.rule._spec() if isinstance(parts.rule, Rule) else parts.rule
        if additive.is_additive(kernel):
            return additive.make_core(kernel, rule, parts.budget, self._task, width, single, seed)
        return _core.learner(
            kernel=kernel._program() if kernel.is_native else kernel._pair,
            rule=rule,
            budget=parts.budget._spec() if isinstance(parts.budget, Budget) else parts.budget,
            task=self._task,
            width=width,
            sparse=sparse,
            single=single,
            average=parts.average,
            seed=seed,
        )

    def widen(self, width: int) -> None:
        """More columns from now on: every stored point has 0 in them."""
        run = self._started()
        old, state = run.core.width, run.core.state()
        if isinstance(state["points"], list) or width < old:
            raise ValueError(f"a model of {old} columns cannot be widened to {width}")
        if isinstance(state["points"], tuple):
            state["points"] = (*state["points"][:3], width)
        else:
            state["points"] = np.pad(state["points"], ((0, 0), (0, width - old)))
            if additive.is_additive(run.parts.kernel):
                state = additive.widened(state, run.parts.kernel, old, width)
        self._run = Run(run.parts, self._restored(run.parts, state), run.labels)
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)

    def _look_at(self, parts: Parts, X: Any, classes: int) -> None:
        warn_if_nothing_is_stored(parts.kernel, parts.budget, X, classes if classes > 2 else 1)

    def _tell(self, run: Run, early: ScaleWarnings) -> None:
        early.warn(type(self).__name__, getattr(self, "feature_names_in_", None))
        if self._task == "regression" and early.moved and getattr(run.core, "size", 1) == 0:
            warn_that_nothing_is_stored(type(self).__name__, run.parts.rule)

    def _spare(self, run: Run) -> Any:
        parts = run.parts
        return None if isinstance(parts.rule, Rule) and isinstance(parts.budget, Budget) else parts.copied()

    def _takes_objects(self) -> bool:
        return self.kernel is not None and not as_kernel(self.kernel).is_native

    @property
    def kernel_(self) -> Kernel:
        """The kernel that runs."""
        run = self._run
        if run is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'kernel_' before it has learned")
        kernel: Kernel = run.parts.kernel
        return kernel

    def _outward(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Outputs of the core, in the last axis, as they are shown outside."""
        return values

    def gradient(self, X: Any) -> npt.NDArray[np.float64]:
        """How the scores change with each column: d f / d x at each event, (n, d); (n, classes, d) for three or more.

        Where a kernel has a kink (an L1 distance at equal numbers) the slope is the mean of both sides. Additive kernels
        and `RandomMaclaurin` maps have gradients too; a kernel or a map that only Python knows has none.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> X = np.random.default_rng(0).normal(size=(2000, 3))
        >>> model = KernelRegressor(Gaussian(0.2)).fit(X, np.sin(X[:, 0]))
        >>> np.abs(model.gradient(X)).mean(axis=0).round(1).tolist()
        [0.7, 0.0, 0.0]
        """
        run = self._started()
        values, classes = run.core.gradient(self._rows(run.core, self._read(X, first=False)))
        return self._shown_slopes(values, run.labels.view(classes))

    # ---- fitted attributes ------------------------------------------------------------------------------------

    @property
    def support_vectors_(self) -> Any:
        """The stored points, oldest first: an array, a CSR array if they are kept sparse, or a list of objects."""
        points, order = self._engine.points()
        if isinstance(points, tuple):
            from scipy.sparse import csr_array

            indptr, indices, data, width = points
            return csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))[order]
        return [points[slot] for slot in order] if isinstance(points, list) else points[order]

    @property
    def support_ids_(self) -> npt.NDArray[np.int64]:
        """Position in the stream of each stored point, from 0; oldest first."""
        ids, order = self._engine.ids()
        return np.array(ids, dtype=np.int64)[order]

    @property
    def dual_coef_(self) -> npt.NDArray[np.float64]:
        """Coefficients at their true scale: a row a stored point, a column an output."""
        coef, order = self._engine.dual_coef()
        return coef[order]

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """The offset of each output."""
        return self._engine.intercept()

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return int(self._engine.size)

    @property
    def norm_(self) -> float:
        """||f||, over all outputs."""
        return float(np.sqrt(max(self._engine.norm2, 0.0)))

    def __getattr__(self, name: str) -> Any:
        # Adaptive quantities exist only for the rule that has them: margin_, epsilon_, sigma_, rate_ ...
        if name.endswith("_") and not name.startswith("_") and self._run is not None:
            rule = self._run.parts.rule
            if isinstance(rule, Rule) and name in rule._attributes():
                return float(self._run.core.rule_state()[rule._attributes().index(name)])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- saving -----------------------------------------------------------------------------------------------

    def _parts_to_file(self, parts: Parts) -> tuple[dict[str, Any], dict[str, Any]]:
        named = parts._asdict()
        del named["class_weight"]  # set by the parameter
        return {}, {name: persist.encode(value, name) for name, value in named.items()}

    def _parts_from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> Parts:
        kernel, rule, budget = (persist.decode(fitted[name]) for name in ("kernel", "rule", "budget"))
        if not (isinstance(kernel, Kernel) and isinstance(rule, Rule) and isinstance(budget, Budget)):
            raise persist.ModelFileError(f"its kernel is {kernel!r}, its rule {rule!r} and its budget {budget!r}")
        rule._for_task(self._task)
        check_composition(rule, budget, bool(fitted["average"]))
        return Parts(kernel, rule, budget, bool(fitted["average"]), self._class_weight())

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        super()._from_file(arrays, fitted)
        if self._engine.width != self.n_features_in_:
            raise persist.ModelFileError("its points do not have the number of features it states")

    def _restored(self, parts: Parts, state: dict[str, Any]) -> Any:
        points = state["points"]
        objects, sparse = isinstance(points, list), isinstance(points, tuple)
        width = 0 if objects else int(points[3]) if sparse else points.shape[1]
        values = points[2] if sparse else points
        single = not objects and values.dtype == np.float32
        core = self._make_core(parts, width, sparse, single, 0)
        core.restore(state)  # the generator's true state is among the arrays
        return core

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        additive.mark_tags(self.kernel, tags)
        return tags
