"""Inner maps as they were drawn: what `RandomMaclaurin` sees for every kind of composition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .. import persist
from .._common.types import FileFields, Fitted
from ..kernels import Kernel
from .compositions import Arrays, OneFeatureMaps


@dataclass
class DrawnInner:
    """Independent one-feature maps: `part` and its numbers, or a transformer and the factor it lacks."""

    part: OneFeatureMaps | None
    arrays: Arrays
    transformer: Any = None
    factor: float = 1.0

    def values(self, X: Any) -> npt.NDArray[Any]:
        """A column each."""
        if self.part is not None:
            return self.part.map_values(self.arrays, X)
        if self.transformer is None:
            return np.empty((X.shape[0], 0))
        columns = self.factor * np.asarray(self.transformer.transform(X), dtype=np.float64)
        # A map comes sorted by degree; shuffled once and for all, its columns are independent draws again.
        return columns[:, self.arrays["order"]]

    def pull(self, X: Any, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How sums of the columns by weights, (rows, outputs, columns), change with X."""
        if self.part is not None:
            return self.part.pull_gradient(self.arrays, X, weights)
        if self.transformer is None:
            return np.zeros((*weights.shape[:2], X.shape[1]))
        if not hasattr(self.transformer, "map_gradient"):
            raise TypeError(f"gradient: {self.transformer!r} is a map of another library, whose gradient is unknown")
        shuffled = np.empty_like(weights)
        shuffled[..., self.arrays["order"]] = self.factor * weights
        return np.asarray(self.transformer.map_gradient(X, shuffled))

    def diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        """K(x, x) where it is known; a sampler's own kernel is at most 1 there."""
        if self.part is not None:
            return self.part.kernel_diagonal(X)
        kernel = getattr(self.transformer, "kernel_", None)
        if isinstance(kernel, Kernel):
            return np.asarray(kernel.diagonal(X), dtype=np.float64)
        return np.ones(X.shape[0])

    def to_file(self) -> FileFields:
        if self.part is not None:
            return dict(self.arrays), {}
        if type(self.transformer).__name__ != "RandomMaclaurin":
            raise TypeError(
                "a map over a transformer of another library cannot be saved without code; pickle it instead"
            )
        arrays, fitted = self.transformer.saved_fields()
        arrays["order"] = self.arrays["order"]
        parameters = self.transformer.get_params(deep=False)
        return arrays, {
            **fitted,
            "parameters": {key: persist.encode(value, key) for key, value in parameters.items()},
        }

    @classmethod
    def from_file(cls, inner: object, arrays: Arrays, fitted: Fitted) -> DrawnInner:
        if isinstance(inner, OneFeatureMaps):
            return cls(inner, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
        map_ = persist.estimator("RandomMaclaurin")(
            **{key: persist.decode(value) for key, value in fitted["parameters"].items()}
        )
        map_.restore_fields(arrays, fitted)
        order = np.ascontiguousarray(arrays["order"], dtype=np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(map_.degrees_))):
            raise persist.ModelFileError("its array 'order' is damaged")
        return cls(None, {"order": order}, map_, math.sqrt(len(map_.degrees_)))


def draw_inner(inner: object, width: int, columns: int, rng: np.random.Generator) -> DrawnInner:
    """`columns` independent one-feature maps of any inner map."""
    maclaurin = persist.estimator("RandomMaclaurin")  # its module imports this one
    if isinstance(inner, OneFeatureMaps):
        return DrawnInner(inner, inner.draw_weights(width, columns, rng))
    if columns == 0:
        return DrawnInner(None, {})
    if isinstance(inner, Kernel):
        inner = maclaurin(inner)
    seed = int(rng.integers(2**31 - 1))
    drawn = clone(inner).set_params(n_components=columns, random_state=seed)
    if isinstance(inner, maclaurin):
        if inner.exact_low_order or inner.measure == "optimal":
            raise ValueError(
                "Compose: the inner RandomMaclaurin must have exact_low_order=False and measure='geometric'"
            )
        drawn.set_params(stratified=False, signs="real", structured=False)  # independent columns, all with one law
    drawn.fit(np.zeros((1, width)))
    return DrawnInner(None, {"order": rng.permutation(columns)}, drawn, math.sqrt(columns))
