"""The public face of each task: what a classifier, a regressor and a novelty detector answer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin

from .. import _core
from .._common import inputs
from .._common import labels as _labels
from .._common.labels import LabelView
from .._common.types import Labels, Table
from .estimator import Run, StreamEstimator
from .intervals import around, checked_coverage
from .tasks import CLASSIFICATION, NOVELTY, REGRESSION, Classification, Novelty, Regression, Scores


class Classifier(ClassifierMixin, StreamEstimator):
    """A learner that answers with a class; new classes may arrive with any sample."""

    learning_task: ClassVar[Classification] = CLASSIFICATION

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """The classes seen so far and those of `classes=`, sorted."""
        return classes_of(self)

    def _view(self, run: Run) -> LabelView:
        return run.labels.view(run.core.classes)

    def score_one(self, x: object) -> Any:
        """`decision_function` of one event; 0 before anything was learned."""
        return score_of_one(self, x)

    def decision_function(self, X: Table) -> Scores:
        """One number an event for two classes (positive: classes_[1]), else one a class."""
        return self._scores(X)[0]

    def _cut(self) -> float:
        """Where the scores of two classes are cut."""
        return 0.0

    def predict(self, X: Table) -> npt.NDArray[np.generic]:
        """The class of each event; at a score of exactly 0 it is classes_[1]."""
        scores, view = self._scores(X)
        return self.learning_task.answers(scores, view, self._cut())

    def predict_one(self, x: object) -> Any:
        """The class of one event; None before anything was learned."""
        if self._run is None:
            return None
        score, view = self._scores_one(x)
        if isinstance(score, float):
            return view.classes[-1 if score >= self._cut() else 0]
        return view.classes[score.argmax()]

    def predict_proba(self, X: Table) -> Scores:
        """The probability of each class: a row an event, a column a class, in the order of `classes_`.

        sigmoid(a f + b) for two classes, softmax over a f_c + b_c for more. The few numbers a and b are part of the
        model: they are learned by Newton steps on the logarithmic loss of the scores made before each sample was
        learned, about the last thousand events counting. Weights of events and classes do not touch them. The class with
        the largest probability is the one that `predict` returns: where b would change the order, larger probabilities are
        lowered to that of this class.

        Parameters
        ----------
        X : rows as in `predict`

        References
        ----------
        J. Platt, Probabilistic Outputs for Support Vector Machines, Advances in Large Margin Classifiers, 1999.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelClassifier
        >>> X = np.random.default_rng(0).normal(size=(2000, 2))
        >>> y = X[:, 0] * X[:, 1] > 0
        >>> model = KernelClassifier(Gaussian(1.0)).fit(X, y)
        >>> print(f"{model.predict_proba([[1.0, 1.0], [1.0, -1.0]])[:, 1].round(1)}")
        [1. 0.]
        """
        run = self._started()
        rows = self._rows(run.core, self._read(X, first=False))
        return self._shares(run, rows)[0]

    def _shares(self, run: Run, rows: object) -> tuple[Scores, LabelView]:
        while True:
            scores, classes = self._ask(run.core, run.core.score, rows)
            shares = run.core.probabilities(np.ascontiguousarray(scores.reshape(len(scores), -1)))
            if shares.shape[1] == max(classes, 1):  # else another class came in between
                view = run.labels.view(classes)
                best = self.learning_task.best(self.learning_task.shown(scores, view), self._cut())
                return np.ascontiguousarray(_labels.agreeing(shares[:, view.columns], best)), view

    def predict_log_proba(self, X: Table) -> Scores:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict_proba_one(self, x: object) -> dict[Any, float]:
        """The probability of each class for one event; nothing before anything was learned.

        Examples
        --------
        >>> from gristmill import Gaussian, KernelClassifier
        >>> model = KernelClassifier(Gaussian(1.0)).fit([[0.0], [2.0]] * 20, ["calm", "storm"] * 20)
        >>> print(f"{model.predict_proba_one([2.0])['storm']:.1f}")
        1.0
        """
        run = self._run
        if run is None:
            return {}
        shares, view = self._shares(run, self._rows(run.core, self._read(inputs.single(x), first=False)))
        return dict(zip(view.classes.tolist(), shares[0].tolist(), strict=True))


class Regressor(RegressorMixin, StreamEstimator):
    """A learner that answers with a number, or several, and the interval around it."""

    learning_task: ClassVar[Regression] = REGRESSION

    def predict(self, X: Table) -> Scores:
        """A number for each event; a row of them for several targets."""
        return self._scores(X)[0]

    def decision_function(self, X: Table) -> Scores:
        """The same as `predict`."""
        return self.predict(X)

    def score_one(self, x: object) -> Any:
        """`predict` of one event; 0 before anything was learned."""
        return score_of_one(self, x)

    def predict_one(self, x: object) -> Any:
        """The number of one event, or an array of several; 0 before anything was learned."""
        score = self.score_one(x)
        return float(score) if np.ndim(score) == 0 else score

    def predict_interval(self, X: Table, coverage: float = 0.9) -> Scores:
        """An interval for each event, (n, 2), that holds a share `coverage` of the targets; (n, targets, 2) for several.

        Adaptive conformal inference: the half width follows the errors of the predictions made before each sample was
        learned. At each of the levels below, a factor c between 0.1 and 10 multiplies the width, and log c / 0.01 is the
        number of misses minus (1 - level) times the number of events, as long as c has not met a bound. So among n
        events at most (1 - level) n + 231 are missed if c never meets 10, however the stream drifts, and at least
        (1 - level) n - 231 if c never meets 0.1. Without that condition nothing is promised: targets that always lie
        just inside the interval are never missed. The errors are measured in units of their
        running mean; for each of the levels 0.5, 0.8, 0.9, 0.95 and 0.99 thresholds with five step sizes
        are tracked, each weighted by its pinball loss, and coverages between two levels are interpolated. The model
        keeps 57 numbers a target for it. Weights of events do not touch them, but for weight 0.

        Parameters
        ----------
        X : rows as in `predict`
        coverage : float from 0.5 to 0.99, default=0.9

        References
        ----------
        I. Gibbs, E. J. Candès, Adaptive Conformal Inference Under Distribution Shift, NeurIPS 2021.
        I. Gibbs, E. J. Candès, Conformal Inference for Online Prediction with Arbitrary Distribution Shifts, JMLR 25, 2024.
        A. N. Angelopoulos, E. J. Candès, R. J. Tibshirani, Conformal PID Control for Time Series Prediction, NeurIPS 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-2, 2, size=(4000, 1))
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=4000)
        >>> model = KernelRegressor(Gaussian(2.0)).fit(X[:3000], y[:3000])
        >>> low, high = model.predict_interval(X[3000:], coverage=0.9).T
        >>> print(f"{((low <= y[3000:]) & (y[3000:] <= high)).mean():.1f} of the targets lie inside")
        0.9 of the targets lie inside
        """
        level = checked_coverage(coverage)
        scores = self._scores(X)[0]
        return around(scores, self._halves(level))

    def predict_interval_one(self, x: object, coverage: float = 0.9) -> tuple[Any, Any]:
        """The interval of one event, lower and upper end; everything is possible before anything was learned."""
        level = checked_coverage(coverage)
        if self._run is None:
            return -np.inf, np.inf
        score, half = self.score_one(x), self._halves(level)
        return score - half, score + half

    def prequential_interval(
        self, X: Table, y: Labels, coverage: float = 0.9, sample_weight: Labels = None
    ) -> npt.NDArray[np.float64]:
        """Learn as `partial_fit` does, and return the interval of each event before it was learned.

        The first event of a stream gets everything from -inf to inf.

        Examples
        --------
        >>> import numpy as np
        >>> from gristmill import Gaussian, KernelRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-2, 2, size=(4000, 1))
        >>> noise = np.where(np.arange(4000) < 2000, 0.1, 1.0)  # the sensor breaks
        >>> y = np.sin(2 * X[:, 0]) + noise * rng.normal(size=4000)
        >>> low, high = KernelRegressor(Gaussian(2.0)).prequential_interval(X, y, coverage=0.8).T
        >>> print(f"{((low <= y) & (y <= high))[2000:].mean():.2f} of the targets lie inside after the break")
        0.80 of the targets lie inside after the break
        """
        level = checked_coverage(coverage)
        known = None if self._run is None else self._run.core.intervals()
        scores = self._learn(X, y, sample_weight, want_scores=True)
        predicted = np.ascontiguousarray(scores.reshape(len(scores), -1))
        targets = _labels.targets(type(self).__name__, y, len(predicted), predicted.shape[1] > 1).reshape(
            predicted.shape
        )
        weights = None if sample_weight is None else inputs.weights(sample_weight, len(predicted))
        follower = _core.Intervals(predicted.shape[1]) if known is None else known
        return around(scores, follower.follow(predicted, targets, weights, level).reshape(scores.shape))

    def _halves(self, level: float) -> Any:
        halves = self._started().core.intervals().halves(level)
        return float(halves[0]) if len(halves) == 1 else halves


class Detector(OutlierMixin, StreamEstimator):
    """Outlier detector: learns without labels; scores below `offset_` are outliers."""

    learning_task: ClassVar[Novelty] = NOVELTY

    @property
    def offset_(self) -> float:
        """What `decision_function` is measured from."""
        raise NotImplementedError

    def decision_function(self, X: Table) -> Scores:
        """How familiar, less `offset_`: negative for an alarm."""
        return self._scores(X)[0]

    def score_samples(self, X: Table) -> Scores:
        """How familiar: the higher, the more."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Table) -> npt.NDArray[np.int64]:
        """-1 for an alarm, +1 for a familiar event."""
        return self.learning_task.answers(self.decision_function(X))

    def score_one(self, x: object) -> Any:
        """`decision_function` of one event; 0 before anything was learned."""
        return score_of_one(self, x)

    def fit_predict(self, X: Table, y: Labels = None, **fit_params: Any) -> npt.NDArray[np.int64]:
        """Fit to X and return -1 for outliers and 1 for inliers of X."""
        return self.fit(X, **fit_params).predict(X)

    def predict_one(self, x: object) -> int:
        """-1 for an alarm, +1 for a familiar event."""
        return -1 if self.score_one(x) < 0 else 1


def classes_of(model: StreamEstimator) -> npt.NDArray[np.generic]:
    """`classes_` of a learner from class labels."""
    run = model.fitted_run
    if run is None:
        raise AttributeError(f"{type(model).__name__!r} object has no attribute 'classes_' before it has learned")
    return run.labels.view(run.core.classes).classes


def score_of_one(model: StreamEstimator, x: object) -> Any:
    """The score of one event; 0 before anything was learned."""
    score = 0.0 if model.fitted_run is None else model._scores_one(x)[0]
    return float(score) if isinstance(score, float) else score
