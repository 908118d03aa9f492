"""FeatureLearner: the online rules over explicit weights in the space of a map, in constant memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import persist
from .._base import StreamLearner
from ..budgets import Unbounded
from ..learners import KernelClassifier, KernelNovelty, KernelRegressor
from ..rules import SGD, Adatron, MarginProjection, Rule, StepSizeAdaptation
from .files import map_from_file, map_to_file, without_map
from .maclaurin import RandomMaclaurin
from .mapped import MappedCore, stateless

_TASKS = {
    "classification": "FeatureClassifier",
    "regression": "FeatureRegressor",
    "novelty": "FeatureNovelty",
}


class FeatureLearner(StreamLearner):
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
    0.096 wrong with 500 weights a class
    """

    stores_points = False
    kernel_: Any
    kernel = None  # the map is in its place
    budget = None  # nothing is stored that could have to leave

    def __new__(cls, map: Any = None, rule: Any = None, task: str | None = None, *rest: Any, **named: Any) -> Any:
        if cls is not FeatureLearner:
            return super().__new__(cls)
        name = _task_of(rule) if task is None else task
        if name not in _TASKS:
            raise ValueError(f"FeatureLearner: task must be one of {list(_TASKS)!r} or None, got {task!r}")
        return super().__new__(globals()[_TASKS[name]])

    def __init__(
        self,
        map: Any = None,
        rule: Any = None,
        task: str | None = None,
        average: bool = False,
        random_state: Any = None,
    ) -> None:
        self.map = map
        self.rule = rule
        self.task = task
        self.average = average
        self.random_state = random_state

    # ---- composition ---------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Any, Any]:
        if self.task is not None and self.task != self._task:
            raise ValueError(f"{type(self).__name__} is for {self._task}; task={self.task!r} is for FeatureLearner")
        rule = self._default_rule if self.rule is None else self.rule
        if isinstance(rule, Rule):
            rule._for_task(self._task)
        elif isinstance(rule, type) or not callable(rule):
            raise TypeError(f"rule must be a rule such as Perceptron() or callable with a Trial, got {rule!r}")
        if isinstance(rule, MarginProjection | Adatron | StepSizeAdaptation):
            raise ValueError(
                f"{type(rule).__name__} works on stored points, and explicit weights have "
                "none; use Perceptron, SGD, "
                "PassiveAggressive, Implicit, FeasibleSet, Alma or Romma"
            )
        if self.map is not None and (isinstance(self.map, type) or not hasattr(self.map, "transform")):
            raise TypeError(f"map must be a transformer such as RandomMaclaurin(Polynomial(3)), got {self.map!r}")
        return rule, Unbounded()  # nothing is stored that could have to leave

    def _start(self, width: int, sparse: bool, single: bool, outputs: int) -> None:
        # What runs is the model's own: later changes of the parameters are for the next fit.
        self._running = (*copy.deepcopy(self._parts()), bool(self.average))
        self.kernel_ = None
        self.map_ = self._drawn_map(width)
        self._core = self._make_core(None, width, sparse, single, outputs, 0)

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
                f"the map {chosen!r} looks at the data it is fitted on, so the model would "
                "depend on how the stream is cut; "
                "fit it on a sample first (sklearn.frozen.FrozenEstimator keeps it fitted through clone)"
            )
        drawn = clone(chosen) if isinstance(chosen, BaseEstimator) else copy.deepcopy(chosen)
        if self.random_state is not None and getattr(drawn, "random_state", 0) is None:
            drawn.set_params(random_state=self.random_state)
        return drawn.fit(np.zeros((1, width)))

    def _make_core(self, kernel: Any, width: int, sparse: bool, single: bool, outputs: int, seed: int) -> Any:
        rule, _, average = self._running
        spec = rule._spec() if isinstance(rule, Rule) else rule
        return MappedCore(self.map_, width, spec, self._task, outputs, single, average)

    def _restore_core_arrays(self, arrays: dict[str, Any]) -> None:
        points = arrays["points"]
        single, outputs = points.dtype == np.float32, arrays["coef"].shape[0]
        self._core = self._make_core(None, points.shape[1], False, single, outputs, 0)
        self._core.restore(arrays)

    def _reset(self) -> None:
        super()._reset()
        for name in ("map_", "_running"):
            self.__dict__.pop(name, None)

    # ---- fitted attributes ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """The weights at their true scale: a row an output, a column a feature of the map."""
        coef: npt.NDArray[np.float64] = self._fitted().coef()
        return coef

    # ---- saving --------------------------------------------------------------------------------------------

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, _ = persist.flatten(self._fitted().state())
        map_arrays, map_text = map_to_file(self.map_)
        rule, _, average = self._running
        fitted: dict[str, Any] = {
            "map": map_text,
            "rule": persist.encode(rule, "rule"),
            "average": average,
        }
        if hasattr(self, "n_features_in_"):
            fitted["n_features_in"] = int(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            fitted["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return {**arrays, **map_arrays}, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        rule = persist.decode(fitted["rule"])
        if not isinstance(rule, Rule):
            raise persist.ModelFileError(f"its rule is {rule!r}")
        rule._for_task(self._task)
        self._running = (rule, Unbounded(), bool(fitted["average"]))
        self.kernel_ = None
        self.map_ = map_from_file(arrays, fitted["map"])
        self._restore_core_arrays(persist.unflatten(without_map(arrays), None))
        if self._core.width != self.map_.n_features_in_:
            raise persist.ModelFileError("its map does not have the number of features it states")
        if "n_features_in" in fitted:
            self.n_features_in_ = int(fitted["n_features_in"])
            if self._core.width != self.n_features_in_:
                raise persist.ModelFileError("its map does not have the number of features it states")
        if "feature_names_in" in fitted:
            self.feature_names_in_ = np.array([str(name) for name in fitted["feature_names_in"]], dtype=object)


def _task_of(rule: Any) -> str:
    """The first task that a rule is for."""
    if isinstance(rule, SGD) or hasattr(rule, "loss"):
        return str(rule.loss.tasks[0])
    return rule.tasks[0] if isinstance(rule, Rule) else "classification"


class _NoPoints:
    """Weights instead of stored points: what belongs to points is not there."""

    def _absent(self) -> Any:
        raise AttributeError(f"{type(self).__name__} stores no points; its weights are coef_")

    support_vectors_ = support_ids_ = dual_coef_ = n_support_ = property(_absent)


class FeatureClassifier(_NoPoints, KernelClassifier, FeatureLearner):
    """Online classifier over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import FeatureClassifier, Perceptron, Polynomial, RandomMaclaurin
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = FeatureClassifier(RandomMaclaurin(Polynomial(2), 50, random_state=0), Perceptron())
    >>> print(f"{((model.prequential(X, y) >= 0) != y).mean():.3f} wrong")
    0.078 wrong
    """

    __init__ = FeatureLearner.__init__

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """The weights at their true scale: a row an output, a column a feature of the map."""
        return np.ascontiguousarray(self._shown_columns(self._fitted().coef().T).T)


class FeatureRegressor(_NoPoints, KernelRegressor, FeatureLearner):
    """Online regressor over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import FeatureRegressor, PassiveAggressive, Polynomial, RandomMaclaurin
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> map = RandomMaclaurin(Polynomial(2), 50, random_state=0)
    >>> model = FeatureRegressor(map, PassiveAggressive(epsilon=0.01))
    >>> print(f"mean absolute error {np.abs(y - model.prequential(X, y))[-1000:].mean():.3f}")
    mean absolute error 0.007
    """

    __init__ = FeatureLearner.__init__


class FeatureNovelty(_NoPoints, KernelNovelty, FeatureLearner):
    """Online novelty detector over the features of a map; see `FeatureLearner` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from gristmill import FeatureNovelty, Hinge, SGD
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> rule = SGD(Hinge(0.0, nu=0.05), rate=0.05, reg=1.0)
    >>> model = FeatureNovelty(RBFSampler(gamma=0.5, n_components=300, random_state=0), rule)
    >>> print(f"{(model.prequential(X) < 0).mean():.3f} of the events were alarms")
    0.050 of the events were alarms
    """

    __init__ = FeatureLearner.__init__
