"""The estimators: kernel x rule x budget, for classification, regression and novelty detection."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from . import persist
from ._base import Scores, StreamLearner, takes_short_way
from .losses import Hinge
from .rules import SGD, PassiveAggressive, Rule

_PARAMETERS = """Parameters
    ----------
    kernel : kernel or callable, default=Gaussian(1 / n_features)
        How two points compare; any function k(x, y) on any objects will do.
    rule : rule, default={rule}
        What one event changes; may also be a Python object called with a `Trial`.
    budget : budget, default=DropSmallest(1000)
        How a new point enters and what leaves; may also be a Python object with a method `victim`.
    average : bool, default=False
        Predict with the mean of all hypotheses so far (online-to-batch); needs a budget that drops nothing.
    random_state : int, Generator, RandomState or None
        Seeds budgets that choose at random."""


def _refuse_unfinite(y: npt.NDArray[Any]) -> None:
    if y.dtype.kind != "f" or np.isfinite(y).all():
        return
    row = int(np.flatnonzero(~np.isfinite(y))[0])
    raise ValueError(f"Input y contains {'NaN' if np.isnan(y[row]) else 'infinity'}: row {row} is {y[row]}")


class KernelClassifier(ClassifierMixin, StreamLearner):
    __doc__ = f"""Online kernel classifier: two classes by the sign, more by the highest score.

    Classes may arrive in mid-stream. A binary learner that meets a third class goes on as a max-score learner whose
    first two scores are -f/2 and f/2. Where all classes are known, say so (`classes=` of `partial_fit`): then a stream
    of three or more classes gives the same model bit for bit however it is cut.

    {_PARAMETERS.format(rule="PassiveAggressive()")}

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelClassifier(Gaussian(gamma=0.001), Perceptron(), DropOldest(100))
    >>> scores = model.prequential(X, y)
    >>> print(f"{{(scores.argmax(axis=1) != y).mean():.3f}} wrong with {{model.n_support_}} points")
    0.086 wrong with 100 points
    """

    _task: ClassVar[str] = "classification"
    _default_rule: ClassVar[Rule] = PassiveAggressive()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Self:
        """Go on learning from X, y, in order.

        `classes`, all labels that will ever come, is optional: new ones may arrive at any time.
        """
        self._learn(X, y, sample_weight, want_scores=False, classes=classes)
        return self

    def prequential(self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None) -> Scores:
        """Learn as `partial_fit` does, and return what `decision_function` said of each event before."""
        return self._shown(self._learn(X, y, sample_weight, want_scores=True, classes=classes))

    # The core numbers classes in the order it met them; classes_ is sorted. With two classes the core's second
    # one is positive, and the outward sign is that of classes_[1].

    def _targets(self, y: Any, count: int, classes: Any) -> npt.NDArray[np.float64]:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        check_consistent_length(np.empty(count), y)
        _refuse_unfinite(y)
        with np.errstate(invalid="ignore"):  # labels too large for an integer are found continuous, and said to be
            check_classification_targets(y)
        coming = y if classes is None else np.concatenate([np.asarray(classes), y])
        known = list(self.__dict__.get("_codes", {}))
        found = np.unique(coming)
        if classes is not None and not np.isin(y, classes).all():
            stray = y[~np.isin(y, classes)][0]
            raise ValueError(f"y holds the label {stray!r}, which is not in classes={list(classes)!r}")
        codes = {label: code for code, label in enumerate([*known, *(c for c in found.tolist() if c not in known)])}
        if len({isinstance(label, str) for label in codes}) > 1:
            raise ValueError(f"class labels must be all strings or all numbers, got {list(codes)!r}")
        self._codes = codes
        self.classes_ = np.unique(np.array(list(codes), dtype=found.dtype if not known else None))
        numbers = np.array([codes[label] for label in y.tolist()], dtype=np.float64)
        return numbers if len(codes) > 2 else 2 * numbers - 1

    def _outputs(self) -> int:
        return len(self._codes) if len(self._codes) > 2 else 1

    def _grow(self) -> Any:
        wanted = self._outputs()
        if wanted == self._core.outputs:
            return None
        before = self._core
        self._restore_core(persist.pack_core(before))
        while self._core.outputs < wanted:
            self._core.add_class()
        return before

    def _sign(self) -> float:
        """+1 if the core's positive class is classes_[1]; a lone class so far is the negative one."""
        codes = self._codes
        return 1.0 if len(codes) < 2 or codes[self.classes_.tolist()[1]] == 1 else -1.0

    def _columns(self) -> list[int]:
        return [self._codes[label] for label in self.classes_.tolist()]

    def _shown(self, scores: Scores) -> Scores:
        return self._sign() * scores[:, 0] if scores.shape[1] == 1 else scores[:, self._columns()]

    def decision_function(self, X: Any) -> Scores:
        """f(x) + b: one number an event for two classes (positive: classes_[1]), else one a class."""
        return self._scores(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each event; at a score of exactly 0 it is classes_[1]."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return self.classes_[scores.argmax(axis=1)]
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return self.classes_[(scores >= 0).astype(int)]

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> None:
        """Learn one event."""
        core: Any = self.__dict__.get("_core")
        if takes_short_way(core, x):
            code = self._codes.get(y)
            if code is not None and sample_weight == 1.0:
                core.learn_one(x, code if core.outputs > 1 else 2.0 * code - 1.0, 1.0)
                return
        self._learn([x] if not hasattr(x, "tocsr") else x, np.array([y]), [sample_weight], want_scores=False)

    def score_one(self, x: Any) -> Any:
        """`decision_function` of one event; 0 before anything was learned."""
        core: Any = self.__dict__.get("_core")
        if core is not None and core.outputs > 1:
            return self._core.score(self._one_row(x))[0, self._columns()]
        return self._sign() * self._score_row(x) if core is not None else 0.0

    def predict_one(self, x: Any) -> Any:
        """The class of one event; None before anything was learned."""
        if "_core" not in self.__dict__:
            return None
        score = self.score_one(x)
        if np.ndim(score) == 1:
            return self.classes_[int(np.argmax(score))]
        return self.classes_[-1 if score >= 0 else 0]

    @property
    def dual_coef_(self) -> npt.NDArray[np.float64]:
        """Coefficients at their true scale: a row a stored point, a column an output."""
        return self._shown_columns(super().dual_coef_)

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """The offset of each output."""
        return self._shown_columns(super().intercept_[None, :])[0]

    def _shown_columns(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return self._sign() * values if values.shape[1] == 1 else values[:, self._columns()]

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, fitted = super()._to_file()
        return arrays, {**fitted, **persist.encode_labels(list(self._codes), self.classes_.dtype)}

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        labels, self.classes_ = persist.decode_labels(fitted)
        self._codes = {label: code for code, label in enumerate(labels)}
        super()._from_file(arrays, fitted)
        if self._core.outputs != self._outputs():
            raise persist.ModelFileError("its outputs do not fit its classes")


class KernelRegressor(RegressorMixin, StreamLearner):
    __doc__ = f"""Online kernel regressor.

    {_PARAMETERS.format(rule="PassiveAggressive(C=1.0, epsilon=0.1)")}

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import DropOldest, EpsilonInsensitive, Gaussian, KernelRegressor, SGD
    >>> X = np.linspace(0, 20, 2000)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelRegressor(Gaussian(2.0), SGD(EpsilonInsensitive(0.01), rate=0.1, reg=0.01), DropOldest(100))
    >>> print(f"mean absolute error {{np.abs(y - model.prequential(X, y)).mean():.3f}}")
    mean absolute error 0.042
    """

    _task: ClassVar[str] = "regression"
    _default_rule: ClassVar[Rule] = PassiveAggressive()

    def _targets(self, y: Any, count: int, classes: Any) -> npt.NDArray[np.float64]:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        check_consistent_length(np.empty(count), y)
        targets = np.ascontiguousarray(y, dtype=np.float64)
        _refuse_unfinite(targets)
        return targets

    def predict(self, X: Any) -> Scores:
        """f(x) + b for each event."""
        return self._scores(X)

    def decision_function(self, X: Any) -> Scores:
        """The same as `predict`."""
        return self._scores(X)

    def learn_one(self, x: Any, y: float, sample_weight: float = 1.0) -> None:
        """Learn one event."""
        core: Any = self.__dict__.get("_core")
        if takes_short_way(core, x):
            target = float(y)
            if target - target == 0 and sample_weight == 1.0:
                core.learn_one(x, target, 1.0)
                return
        self._learn([x] if not hasattr(x, "tocsr") else x, [y], [sample_weight], want_scores=False)

    def predict_one(self, x: Any) -> float:
        """f(x) + b of one event; 0 before anything was learned."""
        return float(self._score_row(x))

    score_one = predict_one


class KernelNovelty(OutlierMixin, StreamLearner):
    __doc__ = f"""Online novelty detector: alarms where f(x) falls below a margin that tracks the alarm rate.

    {_PARAMETERS.format(rule="SGD(Hinge(0.0, nu=0.1), rate=0.2, reg=0.01)")}

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, norma_novelty
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> model = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=200)
    >>> scores = model.prequential(X)
    >>> print(f"{{(scores < 0).mean():.3f}} of the events were alarms")
    0.050 of the events were alarms
    """

    _task: ClassVar[str] = "novelty"
    _default_rule: ClassVar[Rule] = SGD(Hinge(0.0, nu=0.1), rate=0.2, reg=0.01)

    def _targets(self, y: Any, count: int, classes: Any) -> npt.NDArray[np.float64]:
        return np.ones(count)

    @property
    def offset_(self) -> float:
        """The margin (its mean over time with average=True): `decision_function` is `score_samples` less this."""
        return float(self._fitted().margin)

    def decision_function(self, X: Any) -> Scores:
        """f(x) - margin: negative for an alarm."""
        return self._scores(X)

    def score_samples(self, X: Any) -> Scores:
        """f(x): the higher, the more familiar."""
        return self._scores(X) + self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """-1 for an alarm, +1 for a familiar event."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> npt.NDArray[np.int64]:
        """Fit, then say of each event of X whether it is an alarm."""
        return self.fit(X, **fit_params).predict(X)

    def learn_one(self, x: Any, y: Any = None, sample_weight: float = 1.0) -> None:
        """Learn one event; y is not used."""
        core: Any = self.__dict__.get("_core")
        if sample_weight == 1.0 and takes_short_way(core, x):
            core.learn_one(x, 1.0, 1.0)
            return
        self._learn([x] if not hasattr(x, "tocsr") else x, None, [sample_weight], want_scores=False)

    def score_one(self, x: Any) -> float:
        """`decision_function` of one event: negative for an alarm; 0 before anything was learned."""
        return float(self._score_row(x))

    def predict_one(self, x: Any) -> int:
        """-1 for an alarm, +1 for a familiar event."""
        return -1 if self.score_one(x) < 0 else 1
