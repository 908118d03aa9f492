"""What learners answer with: a number, a class and its probability; on the base of `_stream.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from .._common import inputs
from .._common import labels as _labels
from .._common.labels import LabelTable, LabelView
from .estimator import Run, Scores, StreamEstimator, vector_of


class ScoreMixin(StreamEstimator):
    """Estimator with one score per sample, or one per class."""

    def _scores(self, X: Any) -> tuple[Any, LabelView]:
        """Scores as returned to the user and their labels, of one consistent state."""
        run = self._started()
        scores, classes = self._ask(run.core, run.core.score, self._rows(run.core, self._read(X, first=False)))
        view = run.labels.view(classes)
        return self._shown(scores, view), view

    def _scores_one(self, x: Any) -> tuple[Any, LabelView]:
        """The same of one event: the short way for a vector, the long way for everything else."""
        run = self._started()
        core = run.core
        event = vector_of(x) if core.is_plain and core.outputs == 1 else None
        if event is not None and len(event) > 0:
            classes, score = core.classes, core.score_one(event)
            view = run.labels.view(classes)
            if score is not None and core.classes == classes:  # else another class came in between
                return view.sign * score, view
        scores, view = self._scores_of_row(run, x)
        return scores[0], view

    def _scores_of_row(self, run: Run, x: Any) -> tuple[Any, LabelView]:
        if not self._takes_objects() and not inputs.is_sparse(x):
            if np.iscomplexobj(x):
                raise ValueError(f"Complex data not supported: {x!r}")
            x = np.asarray(x, dtype=np.float64)
            if x.ndim != 1:
                raise ValueError(f"x must be one event, a vector of {run.core.width} numbers, got {x.ndim} dimensions")
        scores, classes = run.core.score(self._rows(run.core, self._read(inputs.single(x), first=False)))
        view = run.labels.view(classes)
        return self._shown(scores, view), view

    def score_one(self, x: Any) -> Any:
        """`decision_function` (`predict` in regression) of one event; 0 before anything was learned."""
        score = 0.0 if self._run is None else self._scores_one(x)[0]
        return float(score) if isinstance(score, float) else score


class LabelMixin(StreamEstimator):
    """Learner from class labels; new classes may arrive with any sample."""

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        return _labels.coded(type(self).__name__, run.labels, y, count, classes)

    def _number(self, run: Run, y: Any) -> float | None:
        try:
            return run.labels.codes.get(y)
        except TypeError:  # not a label: full validation raises
            return None

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes seen so far and those of `classes=`, sorted."""
        if self._run is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'classes_' before it has learned")
        return self._view(self._run).classes

    def _view(self, run: Run) -> LabelView:
        return run.labels.view(run.core.classes)


class ClassificationMixin(LabelMixin, ScoreMixin):
    """A learner that answers with a class."""

    def _of_met_classes(self, scores: Any, numbers: Any, known: int) -> Any:
        if scores.ndim < 2 or scores.shape[1] < 3:
            return scores
        before = np.concatenate([[0.0], np.maximum.accumulate(numbers)[:-1] + 1])
        return _labels.below_others(scores, np.maximum(before, known))

    def _shown(self, scores: Scores, view: LabelView) -> Any:
        if scores.ndim == 1 or scores.shape[1] == 1:
            return view.sign * (scores if scores.ndim == 1 else scores[:, 0])
        return scores[:, view.columns]

    def _shown_slopes(self, slopes: Scores, view: LabelView) -> Scores:
        if slopes.shape[1] == 1:
            return np.negative(slopes, out=slopes)[:, 0] if view.sign < 0 else slopes[:, 0]
        if view.columns != sorted(view.columns):
            # In place, in blocks that stay in the cache: the array may be large, and this function owns it.
            few = 1 + (1 << 18) // max(slopes[0].nbytes, 1)
            for start in range(0, len(slopes), few):
                slopes[start : start + few] = slopes[start : start + few, view.columns]
        return slopes

    def decision_function(self, X: Any) -> Scores:
        """One number an event for two classes (positive: classes_[1]), else one a class."""
        return self._scores(X)[0]

    def _cut(self) -> float:
        """Where the scores of two classes are cut."""
        return 0.0

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each event; at a score of exactly 0 it is classes_[1]."""
        scores, view = self._scores(X)
        return self._answers(scores, view)

    def predict_one(self, x: Any) -> Any:
        """The class of one event; None before anything was learned."""
        if self._run is None:
            return None
        score, view = self._scores_one(x)
        if isinstance(score, float):
            return view.classes[-1 if score >= self._cut() else 0]
        return view.classes[score.argmax()]

    def predict_proba(self, X: Any) -> Scores:
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

    def _shares(self, run: Run, rows: Any) -> tuple[Scores, LabelView]:
        while True:
            scores, classes = self._ask(run.core, run.core.score, rows)
            shares = run.core.probabilities(np.ascontiguousarray(scores.reshape(len(scores), -1)))
            if shares.shape[1] == max(classes, 1):  # else another class came in between
                view = run.labels.view(classes)
                shown = self._shown(scores, view)
                best = shown.argmax(axis=1) if shown.ndim == 2 else (shown >= self._cut()).astype(int)
                return np.ascontiguousarray(_labels.agreeing(shares[:, view.columns], best)), view

    def predict_log_proba(self, X: Any) -> Scores:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
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

    def _answers(self, scores: Scores, view: LabelView) -> npt.NDArray[Any]:
        if scores.ndim == 2:
            return view.classes[scores.argmax(axis=1)]
        if len(view.classes) == 1:
            return np.repeat(view.classes, len(scores))
        return view.classes[(scores >= self._cut()).astype(int)]


class RegressionMixin(ScoreMixin):
    """Regressor with one or several targets."""

    _largest: float = np.inf  #: of a target that it can work with

    def _shown(self, scores: Scores, view: LabelView) -> Any:
        return scores if scores.ndim == 1 or scores.shape[1] > 1 else scores[:, 0]

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        return run.labels, _labels.targets(type(self).__name__, y, count, largest=self._largest), 0

    def _number(self, run: Run, y: Any) -> float | None:
        try:
            number = float(y)
        except TypeError:  # several targets, or not a number: full validation handles both
            return None
        return number if number - number == 0 and abs(number) <= self._largest else None

    def predict(self, X: Any) -> Scores:
        """A number for each event; a row of them for several targets."""
        return self._scores(X)[0]

    def predict_one(self, x: Any) -> Any:
        """The number of one event, or an array of several; 0 before anything was learned."""
        score = self.score_one(x)
        return float(score) if np.ndim(score) == 0 else score


class NoveltyMixin(OutlierMixin, ScoreMixin):
    """Outlier detector: learns without labels; scores below `offset_` are outliers."""

    @property
    def offset_(self) -> float:
        """What `decision_function` is measured from."""
        raise NotImplementedError

    def _targets(self, run: Run, y: Any, count: int, classes: Any) -> tuple[LabelTable, Any, int]:
        return run.labels, np.ones(count), 0

    def _number(self, run: Run, y: Any) -> float | None:
        return 1.0

    def decision_function(self, X: Any) -> Scores:
        """How familiar, less `offset_`: negative for an alarm."""
        return self._scores(X)[0]

    def score_samples(self, X: Any) -> Scores:
        """How familiar: the higher, the more."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """-1 for an alarm, +1 for a familiar event."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> npt.NDArray[np.int64]:
        """Fit to X and return -1 for outliers and 1 for inliers of X."""
        return self.fit(X, **fit_params).predict(X)

    def predict_one(self, x: Any) -> int:
        """-1 for an alarm, +1 for a familiar event."""
        return -1 if self.score_one(x) < 0 else 1
