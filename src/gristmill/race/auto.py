"""Learners that need no settings: a race of compositions over kernel, width, rate, scaling and memory."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .. import persist
from .._base import late_labels
from .._base.estimator import Run, refuse_no_weight
from .._base.predictors import Classifier, Regressor
from .._base.tasks import Regression, Scores
from .._common import inputs
from .._common.ranges import bytes_in, count, is_whole, open_fraction, optional
from .._common.types import Fields, Labels, RandomState, Table
from ..learners.rule_learner import RuleLearner
from ..prepared.target_scaler import TargetScale
from . import expert_sets
from .baselines import Trivial
from .core import RaceCore
from .expert import target_of
from .race import (
    SHARE,
    TARGETS,
    Racing,
    _task_of_all,
    partial_fit_classes,
    partial_fit_numbers,
    prequential_classes,
    prequential_numbers,
)

#: of AutoClassifier and AutoRegressor
_PARAMETERS = """memory : int or str, default="1 MB"
        Memory limit of the whole model, in words or as a number of bytes.
    random_state : int, Generator, RandomState or None
        The built-in experts draw nothing at random.
    experts : list of learners, optional
        Replace the built-in experts. Their budgets must have a size, which is then set according to the memory.
    passes : int >= 1 or "auto", default="auto"
        Number of passes of `fit` over the data; "auto": until the error on a held-out part no longer decreases, at most
        six. `partial_fit` and `prequential` see each event once.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them: experts learn side by side. The result is the same, bit for bit."""


class Auto(Racing):
    """Base of the learners without settings."""

    memory: Any
    experts: Any
    passes: Any = 1

    def fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Forget everything and learn from X, y, in order; in several passes where `passes` says so.

        Parameters
        ----------
        X : array, DataFrame, or sparse matrix or array
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            Multiplies the losses of an event; an event of weight 0 is counted and scaled, and not learned.
        """
        refuse_no_weight(sample_weight)
        self._learn(X, y, sample_weight, fresh=True, passes=self.passes)
        return self

    def begin_core(self, run: Run, X: Any) -> Any:
        if self.experts is None and inputs.is_sparse(X) and X.shape[1] > expert_sets.MANY:
            return self._fresh_sparse(int(X.shape[1]))
        return super().begin_core(run, X)

    def _fresh_sparse(self, columns: int, parts: Any = None) -> RaceCore:
        """A race over sparse rows of very many columns."""
        share, made = SHARE[self.learning_task.name], self._made_sparse()
        return self._with_weights(
            RaceCore(
                made,
                self.learning_task.name,
                share,
                self.memory_limit(),
                expert_sets.HASHED,
                parts,
                columns=columns,
                quantile=self.quantile,
            )
        )

    def _made_sparse(self) -> list[Any]:
        """The experts for sparse rows of very many columns."""
        raise NotImplementedError

    def _fresh_for(self, plan: Fields) -> RaceCore:
        if "columns" not in plan:
            return super()._fresh_for(plan)
        if self.experts is not None or plan["began"] != expert_sets.HASHED:
            raise persist.ModelFileError("its experts do not fit sparse rows")
        return self._fresh_sparse(plan["columns"], plan["parts"])

    def _rows(self, core: Any, X: Any) -> Any:
        wide = isinstance(core, RaceCore) and core.is_wide
        return inputs.core_rows(X, False, True) if wide else super()._rows(core, X)

    def _pass(self, run: Run, X: Any, y: Any, weights: Any, want_scores: bool, classes: Any, passes: Any) -> Any:
        if passes == 1:
            return super()._pass(run, X, y, weights, want_scores, classes, 1)
        X = self._read(X, first=True)
        weights = None if weights is None else inputs.weights(weights, X.shape[0])
        labels, numbers, known = self._targets(run, y, X.shape[0], classes)
        weights = self._weighed(run, labels, numbers, weights)
        core = self.begin_core(run, X)
        rows = self._rows(core, X)
        if core.is_wide:
            core.learn(rows, numbers, weights, False, known)
        else:
            core.learn_batch(rows, numbers, weights, known, passes)
        run.core, run.labels = core, labels
        return None

    def memory_limit(self) -> int:
        name = type(self).__name__
        if is_whole(self.memory) and 0 < self.memory < 2**63:
            return int(self.memory)
        if not isinstance(self.memory, str):
            raise ValueError(f"{name}: memory must be bytes or words such as '1 MB', got {self.memory!r}")
        try:
            return bytes_in(self.memory)
        except ValueError as error:
            raise ValueError(f"{name}: memory: {error}") from error

    def checked_parts(self) -> Any:
        if self.passes != "auto":
            count.check(type(self).__name__, "passes", self.passes)
        if self.experts is not None:
            _task_of_all(type(self).__name__, self.experts, (self.learning_task.name,))
            self._check_budgets()
        return super().checked_parts()

    def _check_budgets(self) -> None:
        """Raise for an expert whose memory cannot be set."""
        for expert in self.experts:
            inner = getattr(expert, "model", expert)
            if isinstance(inner, Trivial):
                continue
            budget = getattr(inner, "budget", "no budget")
            if budget is not None and not hasattr(budget, "size"):
                raise ValueError(
                    f"{type(self).__name__}: the budget of an expert must have a size, which is then set by the memory, "
                    f"got {budget!r}; use Merge or DropOldest, or a Race, where experts keep their budgets"
                )


class AutoClassifier(Auto, Classifier):
    __doc__ = """A classifier that needs no settings: one pass, bounded memory, columns in any units.

    Several learners, the experts, run side by side: kernels of several families and widths, several rates, columns with
    and without learned weights, budgets for data with and without drift, and trivial predictors (the most frequent
    class, the previous class). The prediction is a mixture of theirs, weighted by their losses. All experts start with
    a small part of the memory; after 200, 400, 800, ... events memory moves from the experts with large losses to the
    best ones.

    Parameters
    ----------
    {parameters}
    class_weight : None, "balanced" or dict, default=None
        Multiplies the losses of the events of a class, those by which probabilities are calibrated included: predictions
        and probabilities are those for classes that are so much more frequent. "balanced": n / (k n_c) from the counts so
        far; a dict by label, 1 for labels that it lacks.

    Attributes
    ----------
    leader_ : learner
        A copy of the expert with the largest weight.
    weights_ : array
        Weight of each expert.
    experts_ : list
        The experts, without what they have learned.

    References
    ----------
    S. de Rooij, T. van Erven, P. Grunwald, W. Koolen, Follow the Leader If You Can, Hedge If You Must, JMLR 15, 2014.
    K. Jamieson, A. Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import AutoClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AutoClassifier()
    >>> scores = model.prequential(X, y)
    >>> print(f"{(scores.argmax(axis=1) != y).mean():.3f} wrong in {model.memory_bytes_ / 1e6:.1f} MB")
    0.037 wrong in 0.7 MB
    """.replace("{parameters}", _PARAMETERS)

    partial_fit = partial_fit_classes
    prequential = prequential_classes
    learn_one = RuleLearner.learn_one
    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait

    def __init__(
        self,
        memory: object = "1 MB",
        random_state: RandomState = None,
        experts: object = None,
        passes: object = "auto",
        n_jobs: int | None = 1,
        class_weight: Any = None,
    ) -> None:
        self.memory = memory
        self.random_state = random_state
        self.experts = experts
        self.passes = passes
        self.n_jobs = n_jobs
        self.class_weight = class_weight

    def _made(self, width: int) -> list[Any]:
        return expert_sets.for_classes(width) if self.experts is None else list(self.experts)

    def _made_sparse(self) -> list[Any]:
        return expert_sets.for_sparse_classes()

    def new_race(self, width: int, parts: Any = None, outside: int = 0) -> RaceCore:
        core = super().new_race(width, parts, outside)
        if self.experts is None:
            core.allow_class_means()
        return core


class AutoRegressor(Auto, Regressor):
    __doc__ = """A regressor that needs no settings: one pass, bounded memory, columns and targets in any units.

    Experts run side by side as in `AutoClassifier`; besides kernels there are linear models of the columns and of their
    changes, and trivial predictors (the mean so far, the previous value). Targets are centred and scaled for the
    kernels; median and scale are updated after 8, 16, 32, ... events, and when the level has moved. Wild targets are
    clipped.

    With `quantile` the model predicts a number below which that share of the targets lies. Some experts learn by the pinball
    loss then, and each takes part twice: as it is, and shifted by the quantile of its last 250 residuals. The mixture is
    weighted by pinball losses, and corrected by the share of targets below it, so that the share is right in the long run
    whatever the stream does. `predict_interval` then lies around the quantile.

    Parameters
    ----------
    {parameters}
    quantile : float in (0, 1), optional
        Of the targets, which is predicted in place of their centre.

    Attributes
    ----------
    leader_ : learner
        A copy of the kernel learner with the largest weight: a `Prepared` that scales targets as the race does.
    weights_ : array
        Weight of each expert.
    experts_ : list
        The experts, without what they have learned.

    References
    ----------
    S. de Rooij, T. van Erven, P. Grunwald, W. Koolen, Follow the Leader If You Can, Hedge If You Must, JMLR 15, 2014.
    R. Koenker, G. Bassett, Regression Quantiles, Econometrica 46(1), 1978.
    I. Gibbs, E. Candes, Adaptive Conformal Inference Under Distribution Shift, NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)) * [1.0, 1000.0, 0.001]
    >>> y = 50_000 + 100 * np.sin(2 * X[:, 0])
    >>> model = AutoRegressor()
    >>> scores = model.prequential(X, y)
    >>> print(f"mean absolute error {np.abs(scores - y)[1000:].mean():.0f}, of the mean {np.abs(y - y.mean()).mean():.0f}")
    mean absolute error 2, of the mean 65
    """.replace("{parameters}", _PARAMETERS)

    learning_task: ClassVar[Regression] = TARGETS
    partial_fit = partial_fit_numbers
    prequential = prequential_numbers
    learn_one = RuleLearner.learn_one
    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait

    def __init__(
        self,
        memory: object = "1 MB",
        random_state: RandomState = None,
        experts: object = None,
        passes: object = "auto",
        n_jobs: int | None = 1,
        quantile: float | None = None,
    ) -> None:
        self.memory = memory
        self.random_state = random_state
        self.experts = experts
        self.passes = passes
        self.n_jobs = n_jobs
        self.quantile = quantile

    def checked_parts(self) -> Any:
        optional(open_fraction).check(type(self).__name__, "quantile", self.quantile)
        return super().checked_parts()

    def _made(self, width: int) -> list[Any]:
        if self.experts is not None:
            return list(self.experts)
        if self.quantile is not None:
            return expert_sets.for_quantile(width, float(self.quantile))
        return expert_sets.for_numbers(width)

    def _made_sparse(self) -> list[Any]:
        return expert_sets.for_sparse_numbers()

    def decision_function(self, X: Any) -> Scores:
        """The same as `predict`."""
        return self.predict(X)

    def _target(self) -> TargetScale:
        return target_of(self._engine) or TargetScale()

    @property
    def target_centre_(self) -> float:
        """Subtracted from the targets before a kernel learner learns them."""
        return self._target().centre

    @property
    def target_spread_(self) -> float:
        """By which they are divided then; 0 before it is known."""
        return self._target().spread
