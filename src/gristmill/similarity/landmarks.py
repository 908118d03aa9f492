"""Maps from objects to features by their similarities to a few of them: the similarities themselves, or made positive."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .. import persist
from .._common.ranges import Range, flag, one_of
from .._common.types import Labels, RandomState, Table
from .model import OTHERS, SHARED, LandmarkModel, all_or_nothing, largest

Floats = npt.NDArray[np.float64]
_RELATIVE = 1e-10  # of the largest eigenvalue: below it a direction is rounding


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
        similarity: object = None,
        n_landmarks: int = 100,
        selection: object = "random",
        normalize: bool = True,
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
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
    def _fit(self, X: Table) -> npt.NDArray[np.float64]:
        rng, X = self._reset(X)
        block = self.begin_core(X)
        positions = self._choose(block, X, rng)
        values = block.columns(positions)
        self._keep(X, positions, largest(values))
        return values

    def fit(self, X: Table, y: Labels = None) -> Self:
        """Choose the landmarks among the objects of X; y is not used."""
        self._fit(X)
        return self

    def fit_transform(self, X: Table, y: Labels = None) -> npt.NDArray[np.float64]:
        """Choose the landmarks and map X, with each similarity evaluated once."""
        return self._mapped(self._fit(X))

    def transform(self, X: Table) -> npt.NDArray[np.float64]:
        """The similarities of each object to each landmark."""
        return self._mapped(self._raw_similarities(X))

    def _mapped(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return values / (self.scale_ * np.sqrt(self.n_landmarks_)) if self.normalize else values

    @property
    def _n_features_out(self) -> int:
        return self.n_landmarks_


class SpectrumLandmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LandmarkModel):
    __doc__ = f"""Features whose inner products are a similarity made positive: its negative eigenvalues clipped, flipped,
    shifted or squared.

    The similarities S of the landmarks to each other are V diag(l) V^T; an object with the similarities s to the landmarks
    has the features s V diag(a). With all training objects as landmarks, the inner products of the features are the
    positive matrix V diag(l') V^T; with fewer, they are its approximation in the manner of Nystroem. A similarity that is a
    kernel is left as it is by "clip" and "flip". What `Landmarks` gives to a linear method is, up to a rotation, "square".

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        Where there are fewer objects, each of them becomes a landmark. An eigendecomposition of this size is computed.
    selection : {{"random", "diverse"}} or positions, default="random"
    spectrum : {{"clip", "flip", "shift", "square"}}, default="clip"
        l' = max(l, 0), |l|, l - min(l, 0), or l^2. A shift raises what objects have in common with themselves, which a new
        object cannot share with a landmark: only the landmarks' own matrix is shifted.
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_ : the landmarks and their positions in the training set, ascending
    eigenvalues_ : l, ascending; the negative ones say how far the similarity is from a kernel
    components_ : array of shape (n_landmarks, n_features_out), V diag(a)
    n_evaluations_ : how often the similarity was evaluated in `fit`

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, sections 2.2.2 and 4.1.
    Y. Chen, E. K. Garcia, M. R. Gupta, A. Rahimi, L. Cazzanti, Similarity-based Classification: Concepts and Algorithms,
    JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.similarity import SpectrumLandmarks
    >>> S = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
    >>> Z = SpectrumLandmarks("precomputed", spectrum="flip").fit_transform(S)
    >>> (Z @ Z.T).round(6).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """

    _ranges: ClassVar[dict[str, Range]] = {"spectrum": one_of("clip", "flip", "shift", "square")}
    _numbers: ClassVar[tuple[str, ...]] = ("components_", "eigenvalues_")

    components_: Floats
    eigenvalues_: Floats

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        selection: object = "random",
        spectrum: str = "clip",
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.spectrum = spectrum
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def _fit(self, X: Any) -> Floats:
        rng, X = self._reset(X)
        block = self.begin_core(X)
        if self._chosen_beforehand(X):
            raise ValueError(
                f"SpectrumLandmarks needs the similarities of the landmarks to each other: a square matrix, got "
                f"{X.shape[0]} x {X.shape[1]}"
            )
        positions = self._choose(block, X, rng)
        values: Floats = block.columns(positions)
        own = values[positions]
        self.eigenvalues_, vectors = np.linalg.eigh((own + own.T) / 2)
        self.components_ = self._factors(self.eigenvalues_, vectors)
        self._keep(X, positions, largest(values))
        return values

    def _factors(self, eigenvalues: Floats, vectors: Floats) -> Floats:
        """V diag(a) with a = sqrt(l')/l, so that S V diag(a) has the inner products V diag(l') V^T; a shift divides by
        sqrt(l'). Directions without similarity are left out."""
        least = _RELATIVE * max(float(np.abs(eigenvalues).max(initial=0.0)), np.finfo(np.float64).tiny)
        shifted = eigenvalues - min(float(eigenvalues.min(initial=0.0)), 0.0)
        changed = {
            "clip": np.maximum(eigenvalues, 0.0),
            "flip": np.abs(eigenvalues),
            "shift": shifted,
            "square": eigenvalues**2,
        }[self.spectrum]
        kept = (np.abs(eigenvalues) > least) & (changed > 0) & ((self.spectrum != "shift") | (shifted > least))
        if not kept.any():
            raise ValueError(
                f"the similarities of the landmarks have no eigenvalue that spectrum={self.spectrum!r} keeps "
                f"(n_samples={len(eigenvalues)} landmarks)"
            )
        root = np.sqrt(changed[kept])
        factors = 1 / root if self.spectrum == "shift" else root / eigenvalues[kept]
        columns = vectors[:, kept]
        strongest = np.abs(columns).argmax(axis=0)
        signs = np.sign(columns[strongest, np.arange(columns.shape[1])])  # an eigenvector has no sign of its own
        return np.ascontiguousarray(columns * (signs * factors))

    def fit(self, X: Table, y: Labels = None) -> Self:
        """Choose the landmarks among the objects of X and decompose their similarities; y is not used."""
        self._fit(X)
        return self

    def fit_transform(self, X: Table, y: Labels = None) -> Floats:
        """The same, and the features of X, with each similarity evaluated once."""
        return np.asarray(self._fit(X) @ self.components_)

    def transform(self, X: Table) -> Floats:
        """The features of each object."""
        return np.asarray(self._raw_similarities(X) @ self.components_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def _check_shapes(self) -> None:
        count = self.n_landmarks_
        fits = self.components_.ndim == 2 and len(self.components_) == count and self.eigenvalues_.shape == (count,)
        if not fits or not 1 <= self.components_.shape[1] <= count:
            raise persist.ModelFileError("its components do not fit its landmarks")
