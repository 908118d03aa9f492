"""Race: experts side by side, each event predicted by a mixture whose weights follow their losses."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .. import persist
from .._base import late_labels
from .._base.estimator import Run, StreamEstimator, refuse_no_weight, task_of
from .._base.predictors import Classifier, Regressor
from .._base.tasks import Regression, Scores
from .._common.labels import LARGEST, LabelTable, checked_class_weight
from .._common.ranges import Range, is_real, optional
from .._common.threads import jobs
from .._common.types import Fields, Labels, Table
from ..learners.rule_learner import RuleLearner
from ..prepared.prepared import Prepared
from .baselines import Trivial
from .core import RaceCore, plan_of
from .report import RaceReport

__all__ = ["Race", "RaceClassifier", "RaceRegressor"]

#: of the weights, redistributed evenly after each event
SHARE = {"classification": 0.001, "regression": 0.004}
#: the task of races over numbers
TARGETS = Regression(largest=LARGEST)
_share = Range("a number from 0 to below 1", lambda value: is_real(value) and 0 <= value < 1)


class Racing(StreamEstimator):
    """Base of the learners that run a race: the experts, their weights, and the leader."""

    _takes_sparse = False
    share: float | None = None
    experts: Any = None
    n_jobs: int | None = 1
    #: bytes of the memory that are taken by what prepares rows: the table and the scaling of `Prepared`
    outside_bytes: int = 0
    quantile: float | None = None

    def n_threads(self) -> Any:
        return self.n_jobs

    @property
    def widens(self) -> bool:  # type: ignore[override]  # it follows from the experts
        """Whether rows may get more columns in mid-stream: if all experts allow it."""
        experts = self.experts if isinstance(self.experts, list | tuple) else ()
        inner = [one.model if isinstance(one, Prepared) else one for one in experts if not isinstance(one, Trivial)]
        return all(one.widens for one in inner)

    def _made(self, width: int) -> list[Any]:
        """The experts, for rows of so many columns."""
        raise NotImplementedError

    def memory_limit(self) -> int | None:
        """Bytes that all may take together, or None for experts that keep their budgets."""
        return None

    def checked_parts(self) -> Any:
        optional(_share).check(type(self).__name__, "share", self.share)
        jobs.check(type(self).__name__, "n_jobs", self.n_jobs)
        checked_class_weight(type(self).__name__, self.class_weight)
        return self.memory_limit()

    def new_race(self, width: int, parts: Any = None, outside: int = 0) -> RaceCore:
        """A race that has learned nothing, for rows of this width; parts: of the experts, in a model file."""
        share = SHARE[self.learning_task.name] if self.share is None else float(self.share)
        task, limit = self.learning_task.name, self.memory_limit()
        return self._with_weights(
            RaceCore(self._made(width), task, share, limit, width, parts, outside, quantile=self.quantile)
        )

    def _with_weights(self, core: RaceCore) -> RaceCore:
        """A core that weighs samples by how often their class came, where that is wanted."""
        if isinstance(self.class_weight, str):
            core.balance_classes()
        return core

    def _weighed(self, run: Run, labels: LabelTable, numbers: Any, weights: Any) -> Any:
        return self.learning_task.weighed(self.class_weight, labels, numbers, weights)

    def event_weight(self, run: Run, y: Labels) -> float:
        return self.learning_task.weight(self.class_weight, y)

    def begin_core(self, run: Run, X: Any) -> Any:
        return self.new_race(X.shape[1], outside=self.outside_bytes)

    def _fresh_for(self, plan: Fields) -> RaceCore:
        """A race that has learned nothing, of the experts and the width of a saved one."""
        if "columns" in plan:
            raise persist.ModelFileError(f"it holds a race over sparse rows, which {type(self).__name__} does not run")
        return self.new_race(plan["began"], plan["parts"])

    def restored_core(self, parts: Any, state: Fields) -> Any:
        plan = plan_of(state)
        core = self._fresh_for(plan)
        core.restore(state)
        return core

    def widen(self, width: int) -> None:
        """More columns from now on: every stored point has 0 in them."""
        run = self._started()
        specs = run.core.specs
        if width < run.core.width or not all(spec.is_trivial or spec.model.widens for spec in specs):
            raise ValueError(f"a race of {run.core.width} columns cannot be widened to {width}")
        before = run.core.width
        try:
            run.core.widen(width, self.outside_bytes)
        finally:  # also if an interrupt comes right after
            if run.core.width != before:
                self.n_features_in_ = width
                self.__dict__.pop("feature_names_in_", None)

    # ---- experts ------------------------------------------------------------------------------------------

    @property
    def experts_(self) -> list[Any]:
        """The experts as they run now, without what they have learned."""
        return [expert.composition() for expert in self._engine.experts()]

    @property
    def n_support_(self) -> int:
        """How many points all experts store."""
        return sum(self._engine.sizes)

    @property
    def weights_(self) -> npt.NDArray[np.float64]:
        """The weight of each expert; 0 for one that rests or has left."""
        return np.asarray(self._engine.mixture.weights)

    @property
    def leader_(self) -> Any:
        """The learner with the largest weight, as a model of its own: a copy in its present state."""
        run = self._started()
        if isinstance(run.core, RaceCore) and run.core.is_wide:
            raise AttributeError(
                f"leader_: the experts of {type(self).__name__} share the columns of sparse rows, so that none is a "
                "model of its own; report() shows them"
            )
        experts = run.core.experts()
        weights = experts[0].race.mixture.weights
        running = [expert for expert in experts if expert.runs and not expert.is_trivial]
        if not running:
            raise AttributeError("leader_: no learner is left in the race; report() says why")
        return max(running, key=lambda expert: (weights[expert.place], -expert.place)).fitted(run.labels)

    def explain(self, x: object, top: int | None = 10) -> Any:
        """Why the expert with the largest weight, `leader_`, predicts what it predicts of one event.

        Parameters
        ----------
        x : one event
        top : int or None, default=10
            How many of its stored points to show; None shows all.
        """
        return self.leader_.explain(x, top)

    @property
    def relevance_(self) -> npt.NDArray[np.float64]:
        """How much each column moves the predictions: shares that add up to 1.

        The mean over the experts that learn weights of columns, by their weights in the race; alike before they are updated
        for the first time, after 500 events.
        """
        experts = self._engine.experts()
        total, width = np.zeros(experts[0].race.width), experts[0].race.width
        weights = experts[0].race.mixture.weights
        for view in experts:
            if not view.spec.weighs or not view.runs:
                continue
            found = view.race.relevance(view.place)
            if found is not None and found[1]:
                shares = np.asarray(found[1][-1][1])
                total[: len(shares)] += weights[view.place] * shares
        return total / total.sum() if total.sum() > 0 else np.full(width, 1 / width)

    def report(self) -> RaceReport:
        """Weights, errors and stored points of the experts, and their history; printed, it is a table."""
        return RaceReport.of(self._engine.experts(), self.learning_task.name, self.quantile)


# Methods of the races of each task: assigned, so that learners do not get one more base.


def partial_fit_classes(
    self: Any, X: Table, y: Labels = None, classes: Labels = None, sample_weight: Labels = None
) -> Any:
    """Continue to learn from X, y, in order.

    Parameters
    ----------
    X : array, DataFrame, or sparse matrix or array
    y : labels
    classes : all labels to come, optional
    sample_weight : array of numbers >= 0, optional
        Multiplies the losses of an event; an event of weight 0 is counted and scaled, and not learned.
    """
    self._learn(X, y, sample_weight, classes=classes)
    return self


def prequential_classes(
    self: Any, X: Table, y: Labels = None, classes: Labels = None, sample_weight: Labels = None
) -> Scores:
    """Learn as `partial_fit` does, and return the score of each event before it was learned."""
    found: Scores = self._learn(X, y, sample_weight, want_scores=True, classes=classes)
    return found


def partial_fit_numbers(self: Any, X: Table, y: Labels = None, sample_weight: Labels = None) -> Any:
    """Continue to learn from X, y, in order.

    Parameters
    ----------
    X : array, DataFrame, or sparse matrix or array
    y : targets
    sample_weight : array of numbers >= 0, optional
        Multiplies the losses of an event; an event of weight 0 is counted and scaled, and not learned.
    """
    self._learn(X, y, sample_weight)
    return self


def prequential_numbers(self: Any, X: Table, y: Labels = None, sample_weight: Labels = None) -> Scores:
    """Learn as `partial_fit` does, and return what was predicted for each event before it was learned."""
    found: Scores = self._learn(X, y, sample_weight, want_scores=True)
    return found


class Race(Racing):
    """A mixture of learners whose weights follow their losses (AdaHedge with fixed share).

    `Race(experts)` returns a `RaceClassifier` or a `RaceRegressor`, according to its experts. Each expert learns as it
    would alone. Scores are log odds for two classes, logarithms of probabilities for more, and the weighted mean in
    regression. An expert whose numbers become infinite is removed, and `report()` gives the reason.

    Parameters
    ----------
    experts : list of learners of gristmill, alone or `Prepared`, all for one task
    share : float, default=0.001, or 0.004 for numbers
        alpha in the paper of Herbster and Warmuth: this share of the weights is redistributed evenly after each event, so
        that an expert that was bad can come back.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them: experts learn side by side. The result is the same, bit for bit.
    class_weight : None, "balanced" or dict, default=None
        Of classifiers: multiplies the losses of the events of a class, as in `AutoClassifier`.

    Attributes
    ----------
    experts_ : list
        The experts as they run.
    weights_ : array
        The weight of each.
    leader_ : learner
        A copy of the one with the largest weight, whose predictions are the expert's, bit for bit.

    References
    ----------
    S. de Rooij, T. van Erven, P. Grunwald, W. Koolen, Follow the Leader If You Can, Hedge If You Must, JMLR 15, 2014.
    M. Herbster, M. Warmuth, Tracking the Best Expert, Machine Learning 32, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelClassifier, Race
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> race = Race([KernelClassifier(Gaussian(gamma)) for gamma in (0.001, 0.1, 1.0)])
    >>> scores = race.prequential(X, y)
    >>> print(f"{((scores >= 0) != y).mean():.2f} wrong, led by {race.leader_.kernel}")
    0.05 wrong, led by Gaussian(gamma=1.0)
    """

    def __new__(
        cls, experts: Any = None, share: float | None = None, n_jobs: int | None = 1, class_weight: Any = None
    ) -> Any:
        if cls is not Race:
            return super().__new__(cls)
        return super().__new__(_KINDS[_task_of_all("Race", experts)])

    def __init__(
        self, experts: Any, share: float | None = None, n_jobs: int | None = 1, class_weight: Any = None
    ) -> None:
        self.experts = experts
        self.share = share
        self.n_jobs = n_jobs
        self.class_weight = class_weight

    def _made(self, width: int) -> list[Any]:
        return list(self.experts)

    def fit(self, X: Table, y: Labels = None, sample_weight: Labels = None) -> Self:
        """Forget everything and learn from X, y in one pass, in order.

        Parameters
        ----------
        X : array, DataFrame, or sparse matrix or array
        y : labels or targets
        sample_weight : array of numbers >= 0, optional
            Multiplies the losses of an event; an event of weight 0 is counted and scaled, and not learned.
        """
        refuse_no_weight(sample_weight)
        self._learn(X, y, sample_weight, fresh=True)
        return self

    def checked_parts(self) -> Any:
        task = _task_of_all(type(self).__name__, self.experts)
        if task != self.learning_task.name:
            raise ValueError(f"{type(self).__name__} is for {self.learning_task.name}; these experts are for {task}")
        if task != "classification" and self.class_weight is not None:
            raise ValueError(f"{type(self).__name__}: numbers have no classes: class_weight must be None")
        for expert in self.experts:
            if not isinstance(expert, Trivial):
                expert.check_parameters()
        return super().checked_parts()


class RaceClassifier(Race, Classifier):
    """What `Race` makes of classifiers.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Race
    >>> race = Race([KernelClassifier(Gaussian(1.0)), KernelClassifier(Gaussian(9.0))])
    >>> len(race.fit([[0.0], [2.0]] * 20, ["calm", "storm"] * 20).weights_)
    2
    """

    partial_fit = partial_fit_classes
    prequential = prequential_classes
    learn_one = RuleLearner.learn_one
    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait


class RaceRegressor(Race, Regressor):
    """What `Race` makes of regressors.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KernelRegressor, Race
    >>> X = np.random.default_rng(0).uniform(0, 20, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> race = Race([KernelRegressor(Gaussian(0.001)), KernelRegressor(Gaussian(3.0))])
    >>> print(f"mean absolute error {np.abs(race.prequential(X, y) - y).mean():.2f}")
    mean absolute error 0.02
    """

    learning_task: ClassVar[Regression] = TARGETS
    partial_fit = partial_fit_numbers
    prequential = prequential_numbers
    learn_one = RuleLearner.learn_one
    label, n_waiting_, _wait = late_labels.label, late_labels.n_waiting_, late_labels.wait


_KINDS: dict[str, Any] = {"classification": RaceClassifier, "regression": RaceRegressor}


def _task_of_all(owner: str, experts: Any, allowed: Any = _KINDS) -> str:
    """The one task of all experts; everything else is refused."""
    if isinstance(experts, str) or not hasattr(experts, "__len__") or len(experts) == 0:
        raise ValueError(f"{owner}: experts must be a list of one or more learners, got {experts!r}")
    tasks = {}
    for expert in experts:
        inner = expert.model if isinstance(expert, Prepared) else expert
        if not isinstance(inner, StreamEstimator | Trivial):
            raise TypeError(f"{owner}: an expert must be a learner of gristmill, alone or Prepared, got {expert!r}")
        if isinstance(inner, StreamEstimator) and inner.takes_objects():
            raise TypeError(f"{owner}: experts share rows of numbers, and {expert!r} takes objects of any kind")
        tasks[expert.task if isinstance(expert, Trivial) else task_of(inner)] = expert
    if len(tasks) > 1:
        raise ValueError(f"{owner}: experts must be for one task, got {', '.join(map(repr, tasks.values()))}")
    task = next(iter(tasks))
    if task not in allowed:
        raise ValueError(f"{owner}: experts must be for {' or '.join(allowed)}, got {experts[0]!r}")
    return str(task)
