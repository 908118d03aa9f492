"""Kernel learners: kernel x rule x budget, a core made of them, and what it stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._base.estimator import Run, refuse_no_weight
from .._common import inputs
from .._common.ranges import count
from .._common.seeds import seed_of
from .._common.threads import jobs
from .._common.types import Fitted, Labels, RandomState, State, Table
from ..budgets import Budget, BudgetLike, DropSmallest, Merge
from ..kernels import Kernel, KernelLike, Laplacian, as_kernel
from ..persist.saved_state import points_kind
from ..rules import Rule, RuleLike
from . import additive
from .composition import check_composition, check_passes, one_number_of_passes, warn_if_nothing_is_stored
from .explanation import Explanation, Stored, explained
from .rule_learner import Parts, RuleLearner
from .scale_warnings import ScaleWarnings, warn_that_nothing_is_stored

#: without a budget: what was learned stays when a point leaves; trees cannot fold their terms
_DEFAULT_BUDGET, _TREE_BUDGET = Merge(1000), DropSmallest(1000)


class KernelLearner(RuleLearner):
    """Base of the kernel learners: stored points and their coefficients."""

    widens = True
    #: columns of the table before scaling, if a scaler is in front; None for plain rows

    def __init__(
        self,
        kernel: KernelLike | None = None,
        rule: RuleLike | None = None,
        budget: BudgetLike | None = None,
        average: bool = False,
        random_state: RandomState = None,
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

    def n_threads(self) -> Any:
        return self.n_jobs

    # ---- composition ------------------------------------------------------------------------------------------

    def checked_parts(self) -> Any:
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
        check_passes(self.n_passes(), kernel, rule, budget)
        return Parts(kernel, rule, budget, bool(self.average), self._class_weight()).copied()

    def default_kernel(self, columns: int) -> Kernel:
        """For scaled columns: the best single one over the streams of `benchmarks.streams`."""
        return Laplacian(3.0 / columns)

    def _rule_for(self, kernel: object, budget: object) -> Rule:
        """The rule where none is given."""
        return self._default_rule

    def n_passes(self) -> int:
        """Number of passes of `fit`, set by the estimator or by its rule."""
        own = getattr(self, "passes", 1)
        count.check(type(self).__name__, "passes", own)
        return one_number_of_passes(own, getattr(self.rule, "passes", 1))

    def fit(self, X: Table, y: Labels = None, sample_weight: Labels = None, passes: int | None = None) -> Self:
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
        often = self.n_passes()
        if passes is not None:
            count.check(type(self).__name__, "passes", passes)
            often = one_number_of_passes(often, passes)
            parts = self.checked_parts()
            check_passes(often, parts.kernel, parts.rule, parts.budget)
        self._learn(X, y, sample_weight, fresh=True, passes=often)
        return self

    def begin_core(self, run: Run, X: Any) -> Any:
        width, single = (0, False) if isinstance(X, list) else (X.shape[1], X.dtype == np.float32)
        if run.parts.kernel is None:
            run.parts = run.parts._replace(kernel=self.default_kernel(self._columns or width))
        bare = self._columns is None and not isinstance(X, list) and not inputs.is_sparse(X)
        looks = bare and not additive.is_additive(run.parts.kernel), bare and self.learning_task.name == "regression"
        if any(looks) or self.learning_task.name == "regression":
            run.early = ScaleWarnings(*looks)
        core = self.new_core(run.parts, width, inputs.is_sparse(X), single, seed_of(self.random_state))
        return self._for_targets(run, core)

    def new_core(self, parts: Parts, width: int, sparse: bool, single: bool, seed: int) -> Any:
        core = self._bare_core(parts, width, sparse, single, seed)
        if parts.class_weight == "balanced":
            core.balance_classes()
        return core

    def _bare_core(self, parts: Parts, width: int, sparse: bool, single: bool, seed: int) -> Any:
        kernel = parts.kernel
        rule = parts.rule.core_spec() if isinstance(parts.rule, Rule) else parts.rule
        if additive.is_additive(kernel):
            return additive.make_core(kernel, rule, parts.budget, self.learning_task.name, width, single, seed)
        return _core.learner(
            kernel=kernel.kernel_program() if kernel.is_native else kernel.value_of_pair,
            rule=rule,
            budget=parts.budget.core_spec() if isinstance(parts.budget, Budget) else parts.budget,
            task=self.learning_task.name,
            width=width,
            sparse=sparse,
            single=single,
            average=parts.average,
            seed=seed,
        )

    def widen(self, width: int) -> None:
        """More columns from now on: every stored point has 0 in them."""
        run = self._started()
        parts, core = run.parts, run.core
        if width < core.width or not (additive.is_additive(parts.kernel) or parts.kernel.is_native):
            raise ValueError(f"a model of {core.width} columns cannot be widened to {width}")
        if additive.is_additive(parts.kernel):
            wide = self.new_core(parts, width, False, core.is_single, 0)
            wide.take_widened(core)
        else:
            wide = core.widened(width)
        self._run = Run(parts, wide, run.labels)
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)

    def _check_first(self, parts: Parts, X: Table, classes: int) -> None:
        warn_if_nothing_is_stored(parts.kernel, parts.budget, X, classes if classes > 2 else 1)

    def _warn_of(self, run: Run, early: ScaleWarnings) -> None:
        early.warn(type(self).__name__, getattr(self, "feature_names_in_", None))
        if self.learning_task.name == "regression" and early.moved and getattr(run.core, "size", 1) == 0:
            warn_that_nothing_is_stored(type(self).__name__, run.parts.rule)

    def takes_objects(self) -> bool:
        return self.kernel is not None and not as_kernel(self.kernel).is_native

    @property
    def kernel_(self) -> Kernel:
        """The kernel that runs."""
        run = self._run
        if run is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'kernel_' before it has learned")
        kernel: Kernel = run.parts.kernel
        return kernel

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
        return self._at_rest(lambda model: model._outward(model._ordered_coef()))

    def _ordered_coef(self) -> npt.NDArray[np.float64]:
        coef, order = self._engine.dual_coef()
        return coef[order]

    @property
    def n_support_(self) -> int:
        """How many points are stored."""
        return int(self._engine.size)

    # ---- explanations -----------------------------------------------------------------------------------------

    def explain(self, x: object, top: int | None = 10) -> Explanation:
        """The stored points with the largest contributions to the score of one event.

        Parameters
        ----------
        x : one event
        top : int or None, default=10
            How many points to show; None shows all.

        References
        ----------
        B. Schölkopf, A. J. Smola, Learning with Kernels, MIT Press, 2002: f(x) is a sum over stored points.

        Examples
        --------
        >>> from gristmill import Gaussian, KernelClassifier, Perceptron
        >>> model = KernelClassifier(Gaussian(1.0), Perceptron()).fit([[0.0], [3.0], [1.4]], ["low", "high", "high"])
        >>> why = model.explain([2.8])
        >>> why.labels[0], int(why.ids[0]), round(float(why.contributions[0]), 3)
        ('high', 1, -0.961)
        """
        return explained(self, Stored(self.support_vectors_, self.dual_coef_, self.support_ids_), x, top)

    def _additive_core(self, asked: str) -> Any:
        core = self._engine
        if not additive.is_additive(self.kernel_):
            raise TypeError(f"{asked} needs an additive kernel such as Additive(Spline()), got {self.kernel_!r}")
        return core

    def compile(self) -> Self:
        """Freeze an additive model for serving: sorted arrays instead of trees, several times faster.

        Scores agree with those of the trees to rounding. Learning one more event drops the arrays again, and
        they are not saved.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Additive, KernelRegressor, Laplacian
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> model = KernelRegressor(Additive(Laplacian(1.0))).fit(X, np.sin(X[:, 0]))
        >>> before = model.predict(X)
        >>> bool(np.allclose(model.compile().predict(X), before, atol=1e-12))
        True
        """
        self._additive_core("compile()").compile()
        return self

    def components(self, X: Table) -> npt.NDArray[np.float64]:
        """The part of each coordinate in the score of each event: they and `intercept_` sum to f(x) + b.

        One row an event, one column a coordinate (see `component_names`); with more than two classes a last
        axis for the classes.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Additive, KernelRegressor, Spline
        >>> X = np.random.default_rng(0).uniform(size=(500, 2))
        >>> model = KernelRegressor(Additive(Spline())).fit(X, X[:, 0] ** 2)
        >>> bool(np.allclose(model.components(X).sum(axis=1) + model.intercept_, model.predict(X)))
        True
        """
        return np.asarray(self._at_rest(lambda model: model._components(X)))

    def _components(self, X: Table) -> npt.NDArray[np.float64]:
        core = self._additive_core("components()")
        parts = core.components(self._rows(core, self._read(X, first=False)))
        rows, outputs, coordinates = parts.shape
        shown = self._outward(parts.transpose(0, 2, 1).reshape(-1, outputs))
        shown = shown.reshape(rows, coordinates, -1)
        return np.asarray(shown[:, :, 0] if shown.shape[2] == 1 else shown)

    def component_names(self, feature_names: Any = None) -> list[str]:
        """The name of each coordinate: that of its column, or of the two columns whose product it is."""
        core = self._additive_core("component_names()")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", None)
        if feature_names is None:
            feature_names = [f"x{column}" for column in range(core.width)]
        if len(feature_names) != core.width:
            raise ValueError(f"feature_names has {len(feature_names)} names, but the model has {core.width} columns")
        return additive.names_of(self.kernel_, feature_names)

    # ---- saving -----------------------------------------------------------------------------------------------

    def parts_fields(self, parts: Parts) -> tuple[State, Fitted]:
        named = parts._asdict()
        del named["class_weight"]  # set by the parameter
        return {}, {name: persist.encode(value, name) for name, value in named.items()}

    def restored_parts(self, arrays: Mapping[str, object], fitted: Mapping[str, object]) -> Parts:
        kernel, rule, budget = (persist.decode(fitted[name]) for name in ("kernel", "rule", "budget"))
        if not (isinstance(kernel, Kernel) and isinstance(rule, Rule) and isinstance(budget, Budget)):
            raise persist.ModelFileError(f"its kernel is {kernel!r}, its rule {rule!r} and its budget {budget!r}")
        rule.check_task(self.learning_task.name)
        check_composition(rule, budget, bool(fitted["average"]))
        return Parts(kernel, rule, budget, bool(fitted["average"]), self._class_weight())

    def restored_core(self, parts: Parts, state: dict[str, object]) -> Any:
        kind = points_kind(state)
        core = self.new_core(parts, kind.width, kind.sparse, kind.single, 0)
        core.restore(state)  # the generator's true state is among the arrays
        return core

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        additive.mark_tags(self.kernel, tags)
        return tags
