"""Learn online with any similarity, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from .. import persist
from .._base.estimator import Run, StreamEstimator
from .._base.predictors import Classifier, score_of_one
from .._base.tasks import REGRESSION, Classification
from .._common.labels import LabelView
from .._common.ranges import Range, count, flag, non_negative, optional, positive_or_inf
from .._common.seeds import seed_of
from .._common.types import Fields, Fitted, Labels, RandomState, State, Table
from ..persist.saved_state import points_kind
from .compare import Comparison, default_similarity
from .stream_core import LandmarkCore, Sample, Settings

Values = npt.NDArray[np.float64]

PARAMETERS = """similarity : kernel or callable, default=Gaussian(1 / n_features)
        A kernel object, or any function of two objects; called once a landmark at every event.
    n_landmarks : int >= 1, default=100
    freeze : int, optional
        After so many events the landmarks stay as they are; without it the reservoir continues to sample the
        stream.
    C : float > 0, default=1.0
        Most that one event may change a weight's multiplier (PA-I); inf for no bound."""

NOTES = """The first n_landmarks events become landmarks; then event t takes the place of one with probability
    n_landmarks / t, so that the landmarks are at all times a uniform sample of the stream. A landmark that leaves takes its
    weights along. The linear part learns by passive-aggressive steps, which need no rate whatever the scale
    of the similarity. However the stream is cut into chunks, the model is the same, bit for bit."""


class _OneAgainstOne(Classification):
    """Each class has scores of its own, also where there are two."""

    def shown(self, scores: Values, view: LabelView) -> Values:
        return view.sign * (scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else super().shown(scores, view)


class StreamLandmarkModel(StreamEstimator):
    """Base of the two stream learners."""

    _ranges: ClassVar[dict[str, Range]] = {
        "n_landmarks": count,
        "freeze": optional(count),
        "C": positive_or_inf,
        "distance": flag,
    }
    _takes_sparse = False

    similarity: object
    n_landmarks: int
    freeze: int | None
    C: float
    distance: bool
    random_state: Any

    def checked_parts(self) -> Settings:
        for name, range_ in self._ranges.items():
            range_.check(type(self).__name__, name, getattr(self, name))
        comparison = Comparison(default_similarity(1) if self.similarity is None else self.similarity, self.distance)
        if comparison.takes == "precomputed":
            raise ValueError("similarity='precomputed' has no meaning on a stream: give a kernel or a function")
        return Settings(comparison, self.n_landmarks, self.freeze, self.C, getattr(self, "epsilon", None))

    def begin_core(self, run: Run, X: Any) -> LandmarkCore:
        width = None if isinstance(X, list) else X.shape[1]
        if self.similarity is None:
            run.parts = run.parts._replace(comparison=Comparison(default_similarity(width or 0), self.distance))
        return LandmarkCore(run.parts, width, seed_of(self.random_state))

    def takes_objects(self) -> bool:
        return self.similarity is not None and Comparison(self.similarity).takes == "objects"

    @property
    def _sample(self) -> Sample:
        sample: Sample = self._engine.sample
        return sample

    @property
    def similarity_(self) -> Any:
        """What compares two objects."""
        return self._started().parts.comparison.kernel

    @property
    def landmarks_(self) -> Any:
        """The present landmarks; `landmark_ids_` has their positions in the stream."""
        sample = self._sample
        return sample.points[: sample.used]

    @property
    def landmark_ids_(self) -> npt.NDArray[np.int64]:
        """The events that the landmarks were, counted from 0; -1 where none is yet."""
        return self._sample.ids

    @property
    def coef_(self) -> Values:
        """The weights of the landmarks: a row a class."""
        return self._sample.coef

    @property
    def intercept_(self) -> Values:
        """The offset of each class."""
        return self._sample.intercept

    # ---- saving --------------------------------------------------------------------------------------------

    def parts_fields(self, parts: Settings) -> tuple[State, Fitted]:
        kernel = parts.comparison.kernel if self.similarity is None else self.similarity
        return {}, {"similarity": persist.encode(kernel, "similarity")}

    def restored_parts(self, arrays: Fields, fitted: Mapping[str, object]) -> Settings:
        persist.justify(8.0 * self.n_landmarks, arrays, "landmarks")
        return self.checked_parts()._replace(comparison=Comparison(persist.decode(fitted["similarity"]), self.distance))

    def restored_core(self, parts: Settings, state: dict[str, object]) -> LandmarkCore:
        kind = points_kind(state)
        core = LandmarkCore(parts, None if kind.objects else kind.width)
        core.restore(state)
        return core


class StreamLandmarkClassifier(StreamLandmarkModel, Classifier):
    __doc__ = f"""Classify a stream with any similarity, in constant memory.

    {NOTES}

    Parameters
    ----------
    {PARAMETERS}
    distance : bool, default=False
        The similarity is a distance: smaller is more similar.
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
    >>> from gristmill import Manhattan
    >>> from gristmill.similarity import StreamLandmarkClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StreamLandmarkClassifier(Manhattan(), n_landmarks=100, random_state=0)
    >>> wrong = (model.prequential(X, y).argmax(axis=1) != y).mean()
    >>> print(f"{{wrong:.2f}} wrong with {{len(model.landmarks_)}} landmarks")
    0.12 wrong with 100 landmarks
    """

    learning_task = _OneAgainstOne()

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        freeze: int | None = None,
        C: float = 1.0,
        distance: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.freeze = freeze
        self.C = C
        self.distance = distance
        self.random_state = random_state

    def partial_fit(self, X: Table, y: Labels = None, classes: Labels = None) -> Self:
        """Go on learning from X, y, in order; `classes`, all labels that will come, is optional."""
        self._learn(X, y, classes=classes)
        return self

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Values:
        """Learn as `partial_fit` does, and return the score of each event before it was learned."""
        return np.asarray(self._learn(X, y, want_scores=True, classes=classes))

    def _by_class(self, name: str) -> Values:
        run = self._started()
        sample: Sample = run.core.sample
        return np.asarray(getattr(sample, name)[run.labels.view(sample.classes).columns])

    @property
    def coef_(self) -> Values:
        """The weights of the landmarks: a row a class."""
        return self._by_class("coef")

    @property
    def intercept_(self) -> Values:
        """The offset of each class."""
        return self._by_class("intercept")

    @property
    def class_count_(self) -> Values:
        """How many events of each class have come."""
        return self._by_class("class_count")


class StreamLandmarkRegressor(RegressorMixin, StreamLandmarkModel):
    __doc__ = f"""Regress on a stream with any similarity, in constant memory.

    {NOTES}

    Parameters
    ----------
    {PARAMETERS}
    epsilon : float >= 0, default=0.1
        Errors up to this cost nothing.
    distance : bool, default=False
        The similarity is a distance: smaller is more similar.
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
    >>> from gristmill import Gaussian
    >>> from gristmill.similarity import StreamLandmarkRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = StreamLandmarkRegressor(Gaussian(1.0), 20, freeze=200, epsilon=0.01, random_state=0)
    >>> predicted = model.prequential(X, y)
    >>> print(f"mean absolute error at the end {{np.abs(predicted - y)[-500:].mean():.2f}}")
    mean absolute error at the end 0.02
    """

    learning_task = REGRESSION
    _ranges: ClassVar[dict[str, Range]] = {**StreamLandmarkModel._ranges, "epsilon": non_negative}

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        freeze: int | None = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        distance: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.freeze = freeze
        self.C = C
        self.epsilon = epsilon
        self.distance = distance
        self.random_state = random_state

    def predict(self, X: Table) -> Values:
        """A number for each event."""
        return self._scores(X)[0]

    def score_one(self, x: object) -> Any:
        """`predict` of one event; 0 before anything was learned."""
        return score_of_one(self, x)

    def predict_one(self, x: object) -> float:
        """The number of one event; 0 before anything was learned."""
        return float(self.score_one(x))
