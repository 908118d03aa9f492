"""What every landmark model has: objects in, landmarks chosen, similarities out, a file without code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import persist
from .._common import inputs
from .._common.ranges import Range, count, flag
from .._common.seeds import generator
from .._common.types import Fields, FileFields, Fitted, Table
from ..persist.stored import StoredEstimator
from .compare import Block, Comparison, Positions, TrainingBlock, default_similarity, size_of, take
from .solvers import selection as selecting

#: parameters that every landmark model shares, for the docstrings
SHARED = """similarity : kernel, callable or "precomputed", default=Gaussian(1 / n_features)
        A kernel object; any function of two objects (strings, arrays, graphs ...), called only against
        landmarks; or values that were computed before: `fit` takes the square matrix of the training
        objects, or, where n_landmarks is its width, rows against the landmarks only; later rows may be
        against all training objects or against the landmarks only (`landmark_indices_`, in that order). It
        need not be positive definite, nor symmetric: the landmark is the second argument."""

OTHERS = """distance : bool, default=False
        The similarity is a distance: smaller is more similar.
    n_jobs : int, optional
        Workers for a Python function; a surrounding `joblib.parallel_config` decides their kind.
    progress : bool, default=False
        Show a bar while a Python function is called.
    random_state : int, Generator, RandomState or None"""

_BASE_RANGES = {"n_landmarks": count, "distance": flag, "progress": flag}


def all_or_nothing(method: Callable[..., object]) -> Callable[..., Any]:
    """A fit that raises leaves the model as it was before."""

    @functools.wraps(method)
    def guarded(self: object, *args: object, **kwargs: object) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded


class LandmarkModel(StoredEstimator):
    """Base of the landmark models; a subclass fits a linear model over the similarities."""

    _ranges: ClassVar[dict[str, Range]] = {}
    #: fitted arrays that belong in the file, beside the landmarks
    _numbers: ClassVar[tuple[str, ...]] = ("coef_", "intercept_")

    similarity: object
    n_landmarks: int
    selection: object
    distance: bool
    n_jobs: int | None
    progress: bool
    random_state: Any

    def check_parameters(self) -> np.random.Generator:
        for name, range_ in {**_BASE_RANGES, **self._ranges}.items():
            range_.check(type(self).__name__, name, getattr(self, name))
        selecting.check_selection(getattr(self, "selection", "random"))
        if self.similarity is not None:
            self.comparison_of()
        return generator(self.random_state)

    def comparison_of(self, width: int = 0) -> Comparison:
        similarity = default_similarity(width) if self.similarity is None else self.similarity
        return Comparison(similarity, self.distance, self.n_jobs, self.progress)

    def input_kind(self) -> str:
        return "vectors" if self.similarity is None else self.comparison_of().takes

    # ---- input ---------------------------------------------------------------------------------------------

    def _read(self, X: Any, first: bool) -> Any:
        """X checked: an array or CSR array of vectors, a list of objects, or a matrix of values."""
        kind = self.input_kind()
        if kind == "objects":
            return inputs.objects(X)
        inputs.refuse_masked(X, "X")
        if kind == "vectors":
            inputs.check_sparse(X)
            X = validate_data(self, X, reset=first, accept_sparse="csr", dtype=[np.float64, np.float32])
            return X.tocsr() if inputs.is_sparse(X) else np.ascontiguousarray(X)
        if first:
            return validate_data(self, X, dtype=np.float64)
        return check_array(X, dtype=np.float64)

    def _reset(self, X: Table) -> tuple[np.random.Generator, Any]:
        """Check the parameters and forget what was learned; returns the random generator and X as read."""
        rng: np.random.Generator = self.check_parameters()
        self._forget()
        return rng, self._read(X, first=True)

    def begin_core(self, X: Any) -> TrainingBlock:
        """The training objects as a block that will be asked for columns."""
        width = X.shape[1] if self.input_kind() == "vectors" else 0
        self._fit_comparison = self.comparison_of(width)
        if self.input_kind() == "precomputed" and X.shape[0] != X.shape[1] and X.shape[1] != self.n_landmarks:
            raise ValueError(
                f"a precomputed matrix must be square, training objects against training objects, or have "
                f"n_landmarks={self.n_landmarks} columns, one a landmark; got {X.shape[0]} x {X.shape[1]}"
            )
        return TrainingBlock(self._fit_comparison, X)

    def _chosen_beforehand(self, X: Any) -> bool:
        """Whether the columns of a precomputed matrix are the landmarks already."""
        return self.input_kind() == "precomputed" and X.shape[0] != X.shape[1]

    def _choose(self, block: TrainingBlock, X: Any, rng: np.random.Generator, codes: object = None) -> Positions:
        if self._chosen_beforehand(X):
            return np.arange(X.shape[1])
        return selecting.choose(block, self.selection, self.n_landmarks, rng, codes)

    def _compared(self, X: Table, rng: np.random.Generator, codes: object = None) -> tuple[Positions, Block, float]:
        """Landmarks are chosen: their positions, X against each of them over the largest value, and that value."""
        block = self.begin_core(X)
        positions = self._choose(block, X, rng, codes)
        values = block.columns(positions)
        scale = largest(values)
        return positions, values / scale, scale

    def _keep(self, X: Table, positions: Positions, scale: float) -> None:
        """Remember the landmarks, and nothing else of the training objects."""
        self.landmark_indices_ = positions
        self.landmarks_ = None if self.input_kind() == "precomputed" else take(X, positions)
        self.n_landmarks_ = len(positions)
        self.scale_ = scale
        self.n_evaluations_ = self._fit_comparison.evaluations
        if self.input_kind() != "precomputed":
            self.similarity_ = self._fit_comparison.kernel
        del self._fit_comparison

    def _raw_similarities(self, X: Table) -> Block:
        """Each object of X against each landmark."""
        check_is_fitted(self, "landmark_indices_")
        X = self._read(X, first=False)
        if self.input_kind() == "precomputed":
            return self._looked_up(X)
        comparison = Comparison(self.similarity_, self.distance, self.n_jobs, self.progress)
        return comparison.block(X, self.landmarks_, self.landmark_indices_)

    def _similarities(self, X: Table) -> Block:
        """The same, divided by the scale met in training: |K| <= 1 there, as the theory asks."""
        return self._raw_similarities(X) / self.scale_

    def _looked_up(self, X: Any) -> Block:
        width = X.shape[1]
        if width == self.n_features_in_:
            X = X[:, self.landmark_indices_]
        elif width != self.n_landmarks_:
            raise ValueError(
                f"X has {width} columns: precomputed rows must be against all {self.n_features_in_} training "
                f"objects or against the {self.n_landmarks_} landmarks (landmark_indices_)"
            )
        return self.comparison_of().signed(X, self.landmark_indices_)

    # ---- saving --------------------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        check_is_fitted(self, "landmark_indices_")
        persist.encode(self.similarity, "similarity")  # a Python function is refused by name before anything else
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in self._numbers}
        arrays["landmark_indices_"] = self.landmark_indices_
        if self.landmarks_ is not None:
            points = inputs.sparse_rows(self.landmarks_) if inputs.is_sparse(self.landmarks_) else self.landmarks_
            flat, _ = persist.flatten({"points": points})
            arrays |= flat
        fitted: Fitted = {
            "scale": float(self.scale_),
            "n_evaluations": int(self.n_evaluations_),
        }
        if self.landmarks_ is not None:
            fitted["similarity"] = persist.encode(self.similarity_, "similarity")
        return arrays, {**fitted, **persist.encode_features(self)}

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        own = {name: arrays.pop(name) for name in (*self._numbers, "landmark_indices_")}
        if not all(np.issubdtype(a.dtype, np.number) and np.isfinite(a).all() for a in own.values()):
            raise persist.ModelFileError("its numbers are damaged")
        for name, array in own.items():
            setattr(self, name, array)
        self.n_landmarks_ = len(self.landmark_indices_)
        self.scale_, self.n_evaluations_ = float(fitted["scale"]), int(fitted["n_evaluations"])
        persist.decode_features(self, fitted)
        if not (np.isfinite(self.scale_) and self.scale_ > 0 and self.n_landmarks_ > 0):
            raise persist.ModelFileError("its numbers are damaged")
        self._landmarks_from_file(arrays, fitted)
        self._check_shapes()

    def _landmarks_from_file(self, arrays: Mapping[str, object], fitted: dict[str, object]) -> None:
        if self.input_kind() == "precomputed":
            self.landmarks_ = None
            if self.landmark_indices_.min() < 0 or self.landmark_indices_.max() >= self.n_features_in_:
                raise persist.ModelFileError("its landmarks are not among its objects")
            return
        points = persist.unflatten(arrays, None)["points"]
        if isinstance(points, tuple):
            from scipy.sparse import csr_array

            indptr, indices, data, width = points
            points = csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
        self.landmarks_ = points
        self.similarity_ = Comparison(persist.decode(fitted["similarity"])).kernel
        if points.shape != (self.n_landmarks_, self.n_features_in_):
            raise persist.ModelFileError("its landmarks do not have the shape it states")

    def _check_shapes(self) -> None:
        """Raise where the numbers of a file do not fit together."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kind = "vectors" if self.similarity is None else self._safe_kind()
        tags.input_tags.pairwise = kind == "precomputed"
        tags.input_tags.sparse = kind == "vectors"
        tags.input_tags.two_d_array = kind != "objects"
        tags.non_deterministic = False
        return tags

    def _safe_kind(self) -> str:
        try:
            return self.input_kind()
        except (TypeError, ValueError):
            return "vectors"

    def __sklearn_is_fitted__(self) -> bool:
        return "landmark_indices_" in self.__dict__

    def _forget(self) -> None:
        """Before a new fit: nothing of the last one may shine through."""
        for name in [n for n in self.__dict__ if n.endswith("_") and not n.startswith("_")]:
            del self.__dict__[name]


class LinearLandmarkModel(LandmarkModel):
    """A landmark model whose answer is coef_ times the similarities plus intercept_."""

    coef_: npt.NDArray[np.float64]
    intercept_: npt.NDArray[np.float64]

    def _linear(self, X: Table) -> Block:
        values = self._similarities(X) @ self.coef_.T + self.intercept_
        return values[:, 0] if values.shape[1] == 1 else values

    def _check_shapes(self) -> None:
        outputs = len(self.intercept_)
        if self.coef_.shape != (outputs, self.n_landmarks_) or self.intercept_.ndim != 1:
            raise persist.ModelFileError("its coefficients do not fit its landmarks")


def largest(block: Block) -> float:
    """sup |K| over the training objects and landmarks; 1 where all values are 0."""
    return float(np.abs(block).max()) or 1.0


def check_same_length(X: Table, y: Any) -> None:
    if size_of(X) != len(y):
        raise ValueError(f"X holds {size_of(X)} objects and y {len(y)} targets: they must be as many")
