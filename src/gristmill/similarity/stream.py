"""Learn online with any similarity, in constant memory."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin

from .. import persist
from .._validate import Range, non_negative
from . import linear
from .labels import class_labels
from .regression import real_targets
from .reservoir import NOTES, PARAMETERS, StreamLandmarkModel

Values = npt.NDArray[np.float64]


class StreamLandmarkClassifier(ClassifierMixin, StreamLandmarkModel):
    __doc__ = f"""Classify a stream with any similarity, in constant memory.

    {NOTES}

    Parameters
    ----------
    {PARAMETERS}
    distance : bool, default=False
        The similarity is a distance: the smaller, the more alike.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    landmarks_, landmark_ids_ : the landmarks and the events they were, counted from 0
    coef_, intercept_ : a row and a number a class
    classes_, class_count_ : the classes, and how many events of each have come
    n_seen_, memory_bytes_ : events so far, and bytes of the numbers kept

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR
    7, 2006. P. Kar, P. Jain, Similarity-based Learning via Data Driven Embeddings, NIPS 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gristmill import Manhattan, StreamLandmarkClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StreamLandmarkClassifier(Manhattan(), n_landmarks=100, random_state=0)
    >>> wrong = (model.prequential(X, y).argmax(axis=1) != y).mean()
    >>> print(f"{{wrong:.2f}} wrong with {{len(model.landmarks_)}} landmarks")
    0.12 wrong with 100 landmarks
    """

    def __init__(
        self,
        similarity: Any = None,
        n_landmarks: int = 100,
        freeze: int | None = None,
        C: float = 1.0,
        distance: bool = False,
        random_state: Any = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.freeze = freeze
        self.C = C
        self.distance = distance
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning from X, y, in order; `classes`, all labels that will come, is optional."""
        self._learn(X, y, classes=classes)
        return self

    def prequential(self, X: Any, y: Any, classes: Any = None) -> Values:
        """Learn as `partial_fit` does, and return what `decision_function` said of each event before."""
        return self._shown(self._learn(X, y, classes=classes))

    def _targets(self, X: Any, y: Any, classes: Any) -> Any:
        y = class_labels(type(self).__name__, X, y)
        if classes is not None and not np.isin(y, classes).all():
            stray = y[~np.isin(y, classes)].tolist()[0]
            raise ValueError(f"y holds the label {stray!r}, which is not in classes={list(classes)!r}")
        coming = np.unique(y if classes is None else np.concatenate([np.asarray(classes), y]))
        known = self.__dict__.get("classes_")
        self.classes_ = coming if known is None else np.unique(np.concatenate([known, coming]))
        if known is not None and len(self.classes_) > len(known):
            # A new class begins with no weights; the rows stand in the order of classes_.
            places = np.searchsorted(self.classes_, known)
            for name in ("coef_", "intercept_", "class_count_"):
                grown = np.zeros((len(self.classes_), *self.__dict__[name].shape[1:]))
                grown[places] = self.__dict__[name]
                self.__dict__[name] = grown
        return np.searchsorted(self.classes_, y)

    def _outputs(self) -> int:
        return len(self.classes_)

    def _start(self, X: Any) -> None:
        super()._start(X)
        self.class_count_ = np.zeros(self._outputs())

    def _unshare(self) -> None:
        super()._unshare()
        self.class_count_ = self.class_count_.copy()

    def _step(self, features: Values, scores: Values, target: int) -> None:
        self.class_count_[target] += 1.0
        # Only classes that have come are rivals: so it does not matter whether later ones are known already.
        rivals = np.where(self.class_count_ > 0, scores, -np.inf)
        rivals[target] = -np.inf
        rival = int(np.argmax(rivals))
        if rivals[rival] == -np.inf:
            return
        loss = 1.0 - (scores[target] - scores[rival])
        if loss > 0:
            step = self._move(features, float(loss), copies=2)
            for row, sign in ((target, step), (rival, -step)):
                self.coef_[row] += sign * features
                self.intercept_[row] += sign

    def _shown(self, scores: Values) -> Values:
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def decision_function(self, X: Any) -> Values:
        """One number an event for two classes (positive: classes_[1]), else one a class."""
        return self._shown(self._scores(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each event."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        return np.asarray(self.classes_[linear.answers(scores.reshape(len(scores), -1))])

    def score_one(self, x: Any) -> Any:
        """`decision_function` of one event; 0 before anything was learned."""
        return self.decision_function([x])[0] if "coef_" in self.__dict__ else 0.0

    def predict_one(self, x: Any) -> Any:
        """The class of one event; None before anything was learned."""
        return self.predict([x])[0] if "coef_" in self.__dict__ else None

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, fitted = super()._to_file()
        arrays["class_count"] = self.class_count_
        return arrays, {**fitted, **persist.encode_labels(self.classes_.tolist(), self.classes_.dtype)}

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        _, self.classes_ = persist.decode_labels(fitted)
        self.class_count_ = arrays["class_count"].copy()
        if self.class_count_.shape != self.classes_.shape or self.class_count_.dtype != np.float64:
            raise persist.ModelFileError("its classes do not fit together")
        super()._from_file(arrays, fitted)


class StreamLandmarkRegressor(RegressorMixin, StreamLandmarkModel):
    __doc__ = f"""Regress on a stream with any similarity, in constant memory.

    {NOTES}

    Parameters
    ----------
    {PARAMETERS}
    epsilon : float >= 0, default=0.1
        Errors up to this cost nothing.
    distance : bool, default=False
        The similarity is a distance: the smaller, the more alike.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    landmarks_, landmark_ids_ : the landmarks and the events they were, counted from 0
    coef_, intercept_, n_seen_, memory_bytes_

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR
    7, 2006. P. Kar, P. Jain, Supervised Learning with Similarity Functions, NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, StreamLandmarkRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = StreamLandmarkRegressor(Gaussian(1.0), 20, freeze=200, epsilon=0.01, random_state=0)
    >>> said = model.prequential(X, y)
    >>> print(f"mean absolute error at the end {{np.abs(said - y)[-500:].mean():.2f}}")
    mean absolute error at the end 0.02
    """

    _ranges: ClassVar[dict[str, Range]] = {**StreamLandmarkModel._ranges, "epsilon": non_negative}

    def __init__(
        self,
        similarity: Any = None,
        n_landmarks: int = 100,
        freeze: int | None = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        distance: bool = False,
        random_state: Any = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.freeze = freeze
        self.C = C
        self.epsilon = epsilon
        self.distance = distance
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Go on learning from X, y, in order."""
        self._learn(X, y)
        return self

    def prequential(self, X: Any, y: Any) -> Values:
        """Learn as `partial_fit` does, and return what `predict` said of each event before."""
        return np.asarray(self._learn(X, y)[:, 0])

    def _targets(self, X: Any, y: Any, classes: Any) -> Any:
        return real_targets(type(self).__name__, X, y)

    def _step(self, features: Values, scores: Values, target: float) -> None:
        error = target - float(scores[0])
        loss = abs(error) - self.epsilon
        if loss > 0:
            step = np.sign(error) * self._move(features, loss, copies=1)
            self.coef_[0] += step * features
            self.intercept_[0] += step

    def predict(self, X: Any) -> Values:
        """A number for each event."""
        return self._scores(X)[:, 0]

    def predict_one(self, x: Any) -> float:
        """A number for one event; 0 before anything was learned."""
        return float(self.predict([x])[0]) if "coef_" in self.__dict__ else 0.0

    score_one = predict_one
