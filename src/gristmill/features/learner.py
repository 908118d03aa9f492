"""FeatureLearner: the online rules over explicit weights in the space of a map, in constant memory."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import persist
from .._base.estimator import Run
from .._base.predictors import Classifier, Detector, Regressor
from .._base.tasks import SEVERAL_TARGETS, Regression, Scores
from .._common.threads import jobs
from .._common.types import Fields, Fitted, Labels, RandomState, State, Table
from ..budgets import Unbounded
from ..learners.kernel import KernelClassifier, KernelNovelty, KernelRegressor
from ..learners.rule_learner import Parts, RuleLearner
from ..persist.saved_state import points_kind
from ..rules import SGD, Adatron, Density, MarginProjection, Rule, RuleLike, StepSizeAdaptation
from ._files import map_from_file, map_to_file
from ._mapped import MappedCore, stateless
from .maclaurin import RandomMaclaurin

_TASKS = {
    "classification": "FeatureClassifier",
    "regression": "FeatureRegressor",
    "novelty": "FeatureNovelty",
}
#: attributes of learners that store points
_OF_POINTS = {"support_vectors_", "support_ids_", "dual_coef_", "n_support_", "explain"}


class FeatureLearner(RuleLearner):
    """An online learner over explicit weights in the space of a map: a kernel's work in constant memory and
    time.

    `FeatureLearner(map, rule)` gives a `FeatureClassifier`, `FeatureRegressor` or `FeatureNovelty`, whichever
    the rule is for; where it is for more than one, classification comes first, and `task` says otherwise.

    Parameters
    ----------
    map : transformer, default=RandomMaclaurin(Exponential(), 500)
        The map. One that needs only the number of inputs is drawn at the first event; one that looks at data
        (a scaler, `measure="optimal"`) must have been fitted before, so that the model does not depend on how
        the stream is cut.
    rule : rule, default=that of the task
        Any rule of the kernel learners, or a Python object called with a `Trial`.
    task : {"classification", "regression", "novelty"}, optional
    average : bool, default=False
        Predict with the mean of all weights so far.
    random_state : int, Generator, RandomState or None
        Seeds a map that has no random_state of its own.
    n_jobs : int or None, default=1
        Threads, as scikit-learn counts them; the result is the same for any number.

    Attributes
    ----------
    coef_ : array of shape (n_outputs, n_mapped_features)
    map_ : the map as it runs

    References
    ----------
    P. Kar, H. Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import FeatureLearner, PassiveAggressive, Polynomial, RandomMaclaurin
    >>> X, y = load_digits(return_X_y=True)
    >>> map = RandomMaclaurin(Polynomial(3, coef0=0.1), 500, random_state=0)
    >>> model = FeatureLearner(map, PassiveAggressive())
    >>> scores = model.prequential(X / 70, y)
    >>> print(f"{(scores.argmax(axis=1) != y).mean():.3f} wrong with {model.coef_.shape[1]} weights a class")
    0.100 wrong with 500 weights a class
    """

    stores_points = False
    _little = 1 << 20  # a map costs more than its weights are

    def __new__(
        cls, map: object = None, rule: object = None, task: str | None = None, *rest: Any, **named: object
    ) -> Any:
        if cls is not FeatureLearner:
            return super().__new__(cls)
        name = _task_of(rule) if task is None else task
        if name not in _TASKS:
            raise ValueError(f"FeatureLearner: task must be one of {list(_TASKS)!r} or None, got {task!r}")
        return super().__new__(globals()[_TASKS[name]])

    def __init__(
        self,
        map: Any = None,
        rule: RuleLike | None = None,
        task: str | None = None,
        average: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.map = map
        self.rule = rule
        self.task = task
        self.average = average
        self.random_state = random_state
        self.n_jobs = n_jobs

    def n_threads(self) -> int | None:
        return self.n_jobs

    # ---- composition ---------------------------------------------------------------------------------------

    def checked_parts(self) -> Parts:
        if self.task is not None and self.task != self.learning_task.name:
            raise ValueError(
                f"{type(self).__name__} is for {self.learning_task.name}; task={self.task!r} is for FeatureLearner"
            )
        jobs.check(type(self).__name__, "n_jobs", self.n_jobs)
        rule = self._checked_rule(self._default_rule)
        if isinstance(rule, MarginProjection | Adatron | StepSizeAdaptation | Density):
            raise ValueError(
                f"{type(rule).__name__} works on stored points, and explicit weights have "
                "none; use Perceptron, SGD, "
                "PassiveAggressive, Implicit, FeasibleSet, Alma or Romma"
            )
        if self.map is not None and (isinstance(self.map, type) or not hasattr(self.map, "transform")):
            raise TypeError(f"map must be a transformer such as RandomMaclaurin(Polynomial(3)), got {self.map!r}")
        # The map stands where a kernel does, once it is drawn; nothing is stored that could have to leave.
        return Parts(None, rule, Unbounded(), bool(self.average), self._class_weight()).copied()

    def begin_core(self, run: Run, X: Any) -> Any:
        run.parts = run.parts._replace(kernel=self._drawn_map(X.shape[1]))
        return self._for_targets(run, self._mapped_core(run.parts, X.shape[1], X.dtype == np.float32))

    def _drawn_map(self, width: int) -> Any:
        chosen = RandomMaclaurin(n_components=500) if self.map is None else self.map
        try:
            check_is_fitted(chosen)
            fitted = not stateless(chosen)
        except NotFittedError:
            fitted = False
        if fitted:
            return copy.deepcopy(chosen)
        if not stateless(chosen):
            raise ValueError(
                f"the map {chosen!r} learns from the data it is fitted on, so the model would "
                "depend on how the stream is cut into chunks; "
                "fit it on a sample first (sklearn.frozen.FrozenEstimator keeps it fitted through clone)"
            )
        drawn = clone(chosen) if isinstance(chosen, BaseEstimator) else copy.deepcopy(chosen)
        if self.random_state is not None and getattr(drawn, "random_state", 0) is None:
            drawn.set_params(random_state=self.random_state)
        return drawn.fit(np.zeros((1, width)))

    def _mapped_core(self, parts: Parts, width: int, single: bool) -> MappedCore:
        spec = parts.rule.core_spec() if isinstance(parts.rule, Rule) else parts.rule
        return MappedCore(
            parts.kernel, width, spec, self.learning_task.name, single, parts.average, parts.class_weight == "balanced"
        )

    def restored_core(self, parts: Parts, state: dict[str, object]) -> Any:
        kind = points_kind(state)
        core = self._mapped_core(parts, kind.width, kind.single)
        core.restore(state)
        return core

    # ---- fitted attributes ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """The weights at their true scale: a row an output, a column a feature of the map."""
        return self._at_rest(lambda model: np.ascontiguousarray(model._outward(model._engine.coef().T).T))

    def __getattr__(self, name: str) -> Any:
        if name in _OF_POINTS:
            raise AttributeError(f"{type(self).__name__} stores no points; its weights are coef_")
        return super().__getattr__(name)

    @property
    def map_(self) -> Any:
        """The map as it runs."""
        if self._run is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'map_' before it has learned")
        return self._run.parts.kernel

    # ---- saving --------------------------------------------------------------------------------------------

    def parts_fields(self, parts: Parts) -> tuple[State, Fitted]:
        arrays, text = map_to_file(parts.kernel)
        return arrays, {"map": text, "rule": persist.encode(parts.rule, "rule"), "average": parts.average}

    def restored_parts(self, arrays: Fields, fitted: Fitted) -> Parts:
        rule = persist.decode(fitted["rule"])
        if not isinstance(rule, Rule):
            raise persist.ModelFileError(f"its rule is {rule!r}")
        rule.check_task(self.learning_task.name)
        map_ = map_from_file(arrays, fitted["map"])
        if map_.n_features_in_ != fitted.get("n_features_in", map_.n_features_in_):
            raise persist.ModelFileError("its map does not have the number of features it states")
        return Parts(map_, rule, Unbounded(), bool(fitted["average"]), self._class_weight())


def _task_of(rule: object) -> str:
    """The first task that a rule is for."""
    if isinstance(rule, SGD) or hasattr(rule, "loss"):
        return str(rule.loss.tasks[0])
    return rule.tasks[0] if isinstance(rule, Rule) else "classification"


class FeatureClassifier(FeatureLearner, Classifier):
    """Online classifier over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Perceptron, Polynomial, RandomMaclaurin
    >>> from gristmill.features import FeatureClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = FeatureClassifier(RandomMaclaurin(Polynomial(2), 50, random_state=0), Perceptron())
    >>> print(f"{((model.prequential(X, y) >= 0) != y).mean():.3f} wrong")
    0.078 wrong
    """

    _default_rule = KernelClassifier._default_rule

    def __init__(
        self,
        map: Any = None,
        rule: RuleLike | None = None,
        task: str | None = None,
        average: bool = False,
        random_state: RandomState = None,
        class_weight: object = None,
        n_jobs: int | None = 1,
    ) -> None:
        super().__init__(map, rule, task, average, random_state, n_jobs)
        self.class_weight = class_weight

    def partial_fit(self, X: Table, y: Labels = None, sample_weight: Labels = None, classes: Labels = None) -> Self:
        """Continue to learn from X, y, in order; `classes`, the labels known in advance, is optional."""
        self._learn(X, y, sample_weight, classes=classes)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Scores:
        """Learn as `partial_fit` does, and return the score of each event before it was learned."""
        return np.asarray(self._learn(X, y, sample_weight, want_scores=True, classes=classes))


class FeatureRegressor(FeatureLearner, Regressor):
    """Online regressor over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import PassiveAggressive, Polynomial, RandomMaclaurin
    >>> from gristmill.features import FeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> map = RandomMaclaurin(Polynomial(2), 50, random_state=0)
    >>> model = FeatureRegressor(map, PassiveAggressive(epsilon=0.01))
    >>> print(f"mean absolute error {np.abs(y - model.prequential(X, y))[-1000:].mean():.3f}")
    mean absolute error 0.007
    """

    learning_task: ClassVar[Regression] = SEVERAL_TARGETS
    retargets = True
    _default_rule = KernelRegressor._default_rule

    __init__ = FeatureLearner.__init__  # scikit-learn looks for parameters in the class itself


class FeatureNovelty(FeatureLearner, Detector):
    """Online novelty detector over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from gristmill import Hinge, SGD
    >>> from gristmill.features import FeatureNovelty
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> rule = SGD(Hinge(0.0, nu=0.05), rate=0.05, reg=1.0)
    >>> model = FeatureNovelty(RBFSampler(gamma=0.5, n_components=300, random_state=0), rule)
    >>> print(f"{(model.prequential(X) < 0).mean():.3f} of the events were alarms")
    0.050 of the events were alarms
    """

    _default_rule = KernelNovelty._default_rule

    __init__ = FeatureLearner.__init__  # scikit-learn looks for parameters in the class itself

    @property
    def offset_(self) -> float:
        """The margin (its mean over time with average=True): `decision_function` is `score_samples` less this."""
        return float(self._engine.margin)
