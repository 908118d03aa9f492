"""The map from objects to their similarities to a few of them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._common.ranges import Range, flag
from .model import OTHERS, SHARED, LandmarkModel, all_or_nothing, largest


class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkModel):
    __doc__ = f"""Map an object to its similarities to landmarks, so that any linear method can learn from it.

    With `normalize` the map is K(x, l_i) / (sup |K| sqrt(d)), whose norm is at most 1 on the training
    objects, as the guarantees ask; without it, the similarities as they are.

    What a map can express depends on the similarity: sums of Manhattan() are additive in the coordinates, so
    no interaction can be learnt; sums of SquaredEuclidean() are a|x|^2 + <b, x> + c, whatever the number of
    landmarks.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        d in the thesis; where there are fewer objects, each of them becomes a landmark.
    selection : {{"random", "diverse"}} or positions, default="random"
        "diverse" (DSELECT) adds, one at a time, the object least similar on average to the landmarks so far.
        Both cost objects x landmarks evaluations.
    normalize : bool, default=True
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the landmarks and their positions in the training set, ascending
    scale_ : sup |K| over the training objects and landmarks
    n_evaluations_ : how often the similarity was evaluated in `fit`

    References
    ----------
    P. Kar, P. Jain, Similarity-based Learning via Data Driven Embeddings, NIPS 2011.
    M.-F. Balcan, A. Blum, On a Theory of Learning with Similarity Functions, ICML 2006.

    Examples
    --------
    >>> from gristmill import Landmarks
    >>> def shared(a, b):
    ...     return len(set(a) & set(b))
    >>> model = Landmarks(shared, n_landmarks=2, selection=[0, 2], normalize=False)
    >>> float(model.fit_transform(["grist", "mill", "stream"]).sum())
    19.0
    """

    _ranges: ClassVar[dict[str, Range]] = {"normalize": flag}
    _numbers: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        similarity: Any = None,
        n_landmarks: int = 100,
        selection: Any = "random",
        normalize: bool = True,
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: Any = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.normalize = normalize
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def _fit(self, X: Any) -> npt.NDArray[np.float64]:
        rng, X = self._anew(X)
        block = self._begin(X)
        positions = self._choose(block, X, rng)
        values = block.columns(positions)
        self._keep(X, positions, largest(values))
        return values

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks among the objects of X; y is not used."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.float64]:
        """Choose the landmarks and map X, with each similarity evaluated once."""
        return self._mapped(self._fit(X))

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """The similarities of each object to each landmark."""
        return self._mapped(self._raw_similarities(X))

    def _mapped(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return values / (self.scale_ * np.sqrt(self.n_landmarks_)) if self.normalize else values

    @property
    def _n_features_out(self) -> int:
        return self.n_landmarks_
