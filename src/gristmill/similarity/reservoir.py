"""Landmarks sampled from a stream and a linear part that learns at every event."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from .. import _input, persist
from .._base import _generator
from .._validate import Range, count, flag, optional, positive_or_inf
from .compare import Comparison, default_similarity, size_of, take
from .model import all_or_nothing

Values = npt.NDArray[np.float64]

PARAMETERS = """similarity : kernel or callable, default=Gaussian(1 / n_features)
        A kernel object, or any function of two objects; called once a landmark at every event.
    n_landmarks : int >= 1, default=100
    freeze : int, optional
        After so many events the landmarks stay as they are; without it the reservoir goes on sampling the
        stream.
    C : float > 0, default=1.0
        Most that one event may change a weight's multiplier (PA-I); inf for no bound."""

NOTES = """The first n_landmarks events become landmarks; then event t takes the place of one with
    probability n_landmarks / t,
    so that the landmarks are at all times a uniform sample of the stream. A landmark that leaves takes its
    weights along. The linear part learns by passive-aggressive steps, which need no rate whatever the scale
    of the similarity. However the stream is cut into chunks, the model is the same, bit for bit."""


#: state without a public name, forgotten by a new fit
_HIDDEN = ("_rng", "_store", "_used", "_met")


class StreamLandmarkModel(BaseEstimator):
    """Base of the two stream learners."""

    _ranges: ClassVar[dict[str, Range]] = {
        "n_landmarks": count,
        "freeze": optional(count),
        "C": positive_or_inf,
        "distance": flag,
    }

    similarity: Any
    n_landmarks: int
    freeze: int | None
    C: float
    distance: bool
    random_state: Any

    # ---- landmarks -----------------------------------------------------------------------------------------

    def _comparison(self, width: int = 0) -> Comparison:
        similarity = self.__dict__.get("similarity_", self.similarity)
        comparison = Comparison(default_similarity(width) if similarity is None else similarity, self.distance)
        if comparison.takes == "precomputed":
            raise ValueError("similarity='precomputed' has no meaning on a stream: give a kernel or a function")
        return comparison

    def _read(self, X: Any, first: bool) -> Any:
        if self.similarity is not None and self._comparison().takes == "objects":
            return _input.objects(X)
        X = validate_data(self, X, reset=first, accept_sparse="csr", dtype=np.float64)
        return X.toarray() if _input.is_sparse(X) else np.ascontiguousarray(X)

    def _start(self, X: Any) -> None:
        for name, range_ in self._ranges.items():
            range_.check(type(self).__name__, name, getattr(self, name))
        self._rng = _generator(_generator(self.random_state).integers(2**63))
        width = 0 if isinstance(X, list) else X.shape[1]
        self.similarity_ = self._comparison(width).kernel
        # Vectors live in one block of their final size, so that memory does not grow behind the budget's
        # back.
        self._store: Any = [] if isinstance(X, list) else np.zeros((self.n_landmarks, width))
        self._used = 0
        self.landmark_ids_ = np.full(self.n_landmarks, -1, dtype=np.int64)
        self.n_seen_ = 0
        self.centre_ = np.zeros(self.n_landmarks)
        self._met = np.zeros(self.n_landmarks)
        self.coef_ = np.zeros((self._outputs(), self.n_landmarks))
        self.intercept_ = np.zeros(self._outputs())

    def _outputs(self) -> int:
        return 1

    @property
    def landmarks_(self) -> Any:
        """The landmarks now; `landmark_ids_` says which events they were."""
        return self._store[: self._used]

    def _raw(self, x: Any) -> Values:
        """One object against the landmarks, 0 where none is yet."""
        row = np.zeros(self.n_landmarks)
        if self._used:
            ids = self.landmark_ids_[: self._used]
            row[: self._used] = self._comparison().block(x, self.landmarks_, ids, np.array([self.n_seen_]))[0]
        return row

    def _features(self, raw: Values) -> Values:
        """Similarities less their means so far: what all share must not drown what tells them apart."""
        return np.where(self._met > 0, raw - self.centre_, 0.0)

    def _centre(self, raw: Values) -> None:
        used = slice(0, self._used)
        self._met[used] += 1.0
        self.centre_[used] += (raw[used] - self.centre_[used]) / self._met[used]

    def _sample(self, x: Any) -> None:
        """Reservoir sampling: x may take a place, whose weights go."""
        event = self.n_seen_
        if self.freeze is not None and event >= self.freeze:
            return
        place = self._used if self._used < self.n_landmarks else int(self._rng.integers(event + 1))
        if place >= self.n_landmarks:
            return
        if isinstance(self._store, list):
            self._store[place : place + 1] = [x]
        else:
            self._store[place] = x
        self._used = max(self._used, place + 1)
        self.landmark_ids_[place] = event
        self.coef_[:, place] = 0.0
        self.centre_[place] = self._met[place] = 0.0

    # ---- learning ------------------------------------------------------------------------------------------

    @all_or_nothing
    def _learn(self, X: Any, y: Any, fresh: bool = False, classes: Any = None) -> Values:
        if fresh:
            self._forget()
        first = "coef_" not in self.__dict__
        X = self._read(X, first)
        targets = self._targets(X, y, classes)
        if first:
            self._start(X)
        self._unshare()
        said = []
        for i in range(size_of(X)):
            raw = self._raw(take(X, [i]))
            features = self._features(raw)
            said.append(self._score(features))
            self._step(features, said[-1], targets[i])
            self._centre(raw)
            self._sample(X[i])
            self.n_seen_ += 1
        return np.array(said)

    def _unshare(self) -> None:
        """Work on copies, so that a chunk that fails half-way leaves the model as it was."""
        for name in ("coef_", "intercept_", "centre_", "_met", "landmark_ids_", "_store"):
            self.__dict__[name] = copy.copy(self.__dict__[name])
        self._rng = copy.deepcopy(self._rng)

    def _targets(self, X: Any, y: Any, classes: Any) -> Any:
        raise NotImplementedError

    def _step(self, features: Values, scores: Values, target: Any) -> None:
        raise NotImplementedError

    def _score(self, features: Values) -> Values:
        # Row sums, not a matrix product: one event and many give the same bits.
        return np.asarray((self.coef_ * features).sum(axis=1) + self.intercept_)

    def _move(self, features: Values, loss: float, copies: int) -> float:
        """PA-I: the least step that pays the loss, at most C."""
        size = copies * (float((features * features).sum()) + 1.0)
        return min(float(self.C), loss / size)

    def _forget(self) -> None:
        for name in [n for n in self.__dict__ if (n.endswith("_") and not n.startswith("_")) or n in _HIDDEN]:
            del self.__dict__[name]

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and learn from X, y in one pass, in order."""
        self._learn(X, y, fresh=True)
        return self

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one event."""
        self._learn([x], [y])

    def _scores(self, X: Any) -> Values:
        if "coef_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit first"
            )
        X = self._read(X, first=False)
        return np.array([self._score(self._features(self._raw(take(X, [i])))) for i in range(size_of(X))])

    @property
    def memory_bytes_(self) -> int:
        """Bytes of the numbers that the model keeps; objects of a Python similarity are not counted."""
        held = [self.coef_, self.intercept_, self.centre_, self._met, self.landmark_ids_]
        return sum(a.nbytes for a in held) + (0 if isinstance(self._store, list) else self._store.nbytes)

    def __sklearn_is_fitted__(self) -> bool:
        return "coef_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags

    # ---- saving --------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to a file that holds numbers and parameters, and no code; see `gristmill.load`."""
        persist.save(self, path)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if "coef_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit or partial_fit first"
            )
        kernel = persist.encode(self.similarity_ if self.similarity is None else self.similarity, "similarity")
        arrays = {
            "coef": self.coef_,
            "intercept": self.intercept_,
            "ids": self.landmark_ids_,
            "points": self._store,
            "centre": self.centre_,
            "met": self._met,
        }
        fitted: dict[str, Any] = {"similarity": kernel, "used": self._used, "seen": self.n_seen_}
        fitted["generator"] = self._rng.bit_generator.state
        if hasattr(self, "feature_names_in_"):
            fitted["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        return arrays, fitted

    def _from_file(self, arrays: dict[str, Any], fitted: dict[str, Any]) -> None:
        self.similarity_ = Comparison(persist.decode(fitted["similarity"])).kernel
        self.coef_, self.intercept_ = arrays["coef"].copy(), arrays["intercept"].copy()
        self.landmark_ids_, self._store = arrays["ids"].copy(), arrays["points"].copy()
        self.centre_, self._met = arrays["centre"].copy(), arrays["met"].copy()
        self._used, self.n_seen_ = int(fitted["used"]), int(fitted["seen"])
        self.n_features_in_ = int(self._store.shape[1])
        self._rng = np.random.default_rng()
        self._rng.bit_generator.state = fitted["generator"]
        if "feature_names_in" in fitted:
            self.feature_names_in_ = np.array([str(name) for name in fitted["feature_names_in"]], dtype=object)
        numbers = (self.coef_, self.intercept_, self._store, self.centre_, self._met)
        fits = (
            all(a.dtype == np.float64 and np.isfinite(a).all() for a in numbers)
            and self.coef_.shape == (self._outputs(), self.n_landmarks)
            and self.intercept_.shape == (self._outputs(),)
            and self.centre_.shape == self._met.shape == (self.n_landmarks,)
            and self.landmark_ids_.shape == (self.n_landmarks,)
            and self.landmark_ids_.dtype == np.int64
            and len(self._store) == self.n_landmarks
            and 0 <= self._used <= min(self.n_landmarks, self.n_seen_)
        )
        if not fits:
            raise persist.ModelFileError("its arrays do not fit together")
