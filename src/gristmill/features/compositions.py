"""Compositions: f(K(x, y)) for a dot-product kernel f and an inner kernel K that has unbiased one-feature
maps.

A one-feature map is a random W with E[W(x) W(y)] = K(x, y). Algorithm 2 of the reference puts independent
ones where Algorithm 1 has random projections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.inputs import is_sparse
from .._common.ranges import Checked, Range, one_of
from .._common.types import Table
from ..kernels import Gaussian, Kernel, Laplacian
from .series import series_of

Arrays = dict[str, npt.NDArray[Any]]

#: scikit-learn's samplers whose columns are independent one-feature maps, scaled by 1/sqrt(n_components)
_INDEPENDENT_COLUMNS = ("RBFSampler", "SkewedChi2Sampler")


class OneFeatureMaps(Checked):
    """Base of inner maps: `draw_weights` makes independent W, `map_values` evaluates them, a column each."""

    def draw_weights(self, width: int, count: int, rng: np.random.Generator) -> Arrays:
        raise NotImplementedError

    def map_values(self, drawn: Arrays, X: Table) -> npt.NDArray[np.generic]:
        raise NotImplementedError

    def pull_gradient(self, drawn: Arrays, X: Table, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """How sums of the W by weights, (rows, outputs, columns), change with X: (rows, outputs, inputs)."""
        raise NotImplementedError

    def kernel_diagonal(self, X: Table) -> npt.NDArray[np.float64]:
        """K(x, x)."""
        raise NotImplementedError


@dataclass(frozen=True)
class FourierFeatures(OneFeatureMaps):
    """sqrt(2) cos(<w, x> + b): one-feature maps of the Gaussian and Laplacian kernels.

    Parameters
    ----------
    kernel : Gaussian or Laplacian

    References
    ----------
    A. Rahimi, B. Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Exponential, Gaussian, RandomMaclaurin
    >>> from gristmill.features import Compose, FourierFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> kernel = Compose(Exponential(), FourierFeatures(Gaussian(1.0)))
    >>> Z = RandomMaclaurin(kernel, 20000, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.2f} for {np.exp(np.exp(-1.0)):.2f}")
    1.45 for 1.44
    """

    kernel: Gaussian | Laplacian

    _ranges: ClassVar[dict[str, Range]] = {
        "kernel": Range("Gaussian(...) or Laplacian(...)", lambda k: isinstance(k, Gaussian | Laplacian))
    }

    def draw_weights(self, width: int, count: int, rng: np.random.Generator) -> Arrays:
        gamma = self.kernel.gamma
        if isinstance(self.kernel, Gaussian):
            frequencies = np.sqrt(2 * gamma) * rng.standard_normal((width, count))
        else:
            frequencies = gamma * rng.standard_cauchy((width, count))
        return {"frequencies": frequencies, "phases": rng.uniform(0, 2 * np.pi, count)}

    def map_values(self, drawn: Arrays, X: Table) -> npt.NDArray[np.generic]:
        angles = _ordered_product(X, drawn["frequencies"]) + drawn["phases"]
        return np.asarray(np.sqrt(2.0) * np.cos(angles))

    def pull_gradient(self, drawn: Arrays, X: Table, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        angles = _ordered_product(X, drawn["frequencies"]) + drawn["phases"]
        slopes = weights * (-np.sqrt(2.0) * np.sin(angles))[:, None, :]
        return np.asarray(np.einsum("nok,jk->noj", slopes, drawn["frequencies"]))

    def kernel_diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class HomogeneousFeatures(OneFeatureMaps):
    """One-feature maps of the additive chi-square and intersection kernels on non-negative data, without
    bias.

    sum_j 2 x_j y_j / (x_j + y_j) and sum_j min(x_j, y_j) are sqrt(x_j y_j) times the Fourier transform of a
    density at log(x_j / y_j), so W(x) = sum_j e_j sqrt(2 x_j) cos(l_j log x_j + b_j) with l_j from that
    density, signs e_j and phases b_j.

    Parameters
    ----------
    kernel : {"chi2", "intersection"}, default="chi2"

    References
    ----------
    A. Vedaldi, A. Zisserman, Efficient Additive Kernels via Explicit Feature Maps, IEEE TPAMI 34(3), 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Polynomial, RandomMaclaurin
    >>> from gristmill.features import Compose, HomogeneousFeatures
    >>> X = np.array([[0.5, 0.5], [0.25, 0.75]])
    >>> outer = Compose(Polynomial(2), HomogeneousFeatures("intersection"))
    >>> Z = RandomMaclaurin(outer, 50000, random_state=0).fit_transform(X)
    >>> round(float(Z[0] @ Z[1]), 1), round((1 + 0.75) ** 2, 1)
    (3.1, 3.1)
    """

    kernel: str = "chi2"

    _ranges: ClassVar[dict[str, Range]] = {"kernel": one_of("chi2", "intersection")}

    def draw_weights(self, width: int, count: int, rng: np.random.Generator) -> Arrays:
        uniform = rng.uniform(1e-16, 1.0, (width, count))
        if self.kernel == "chi2":  # density sech(pi l)
            frequencies = np.log(np.tan(np.pi * uniform / 2)) / np.pi
        else:  # density (2 / pi) / (1 + 4 l^2)
            frequencies = np.tan(np.pi * (uniform - 0.5)) / 2
        signs = np.where(rng.random((width, count)) < 0.5, -1.0, 1.0)
        return {
            "frequencies": frequencies,
            "phases": rng.uniform(0, 2 * np.pi, (width, count)),
            "signs": signs,
        }

    def map_values(self, drawn: Arrays, X: Table) -> npt.NDArray[np.generic]:
        X = _non_negative(X, self.kernel)
        out = np.zeros((X.shape[0], drawn["signs"].shape[1]))
        for j in range(X.shape[1]):  # coordinate by coordinate: the order of the sums does not depend on the rows
            x = X[:, j]
            there = np.flatnonzero(x)
            angles = np.log(x[there])[:, None] * drawn["frequencies"][j] + drawn["phases"][j]
            out[there] += np.sqrt(2 * x[there])[:, None] * (drawn["signs"][j] * np.cos(angles))
        return out

    def pull_gradient(self, drawn: Arrays, X: Table, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        X = _non_negative(X, self.kernel)
        if (X == 0).any():
            row, column = (int(place) for place in np.argwhere(X == 0)[0])
            raise ValueError(f"gradient: row {row}, column {column} is 0, where {self!r} has no derivative")
        out = np.empty((*weights.shape[:2], X.shape[1]))
        for j in range(X.shape[1]):
            x, frequencies = X[:, j, None], drawn["frequencies"][j]
            angles = np.log(x) * frequencies + drawn["phases"][j]
            slopes = drawn["signs"][j] / np.sqrt(2 * x) * (np.cos(angles) - 2 * frequencies * np.sin(angles))
            out[:, :, j] = np.einsum("nok,nk->no", weights, slopes)
        return out

    def kernel_diagonal(self, X: Any) -> npt.NDArray[np.float64]:
        return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()


def _non_negative(X: Any, kernel: str) -> npt.NDArray[np.float64]:
    X = X.toarray() if is_sparse(X) else np.asarray(X)
    low = X.min(axis=1)
    if (low < 0).any():
        row = int(np.flatnonzero(low < 0)[0])
        raise ValueError(f"the {kernel} kernel compares non-negative rows, but row {row} holds {low[row]:g}")
    return np.asarray(X, dtype=np.float64)


def _ordered_product(X: Any, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """X @ matrix, every sum in the order of the columns: it does not depend on how rows are cut."""
    if is_sparse(X):
        return np.asarray((X.astype(np.float64) @ matrix), dtype=np.float64)  # row by row, in order, by itself
    return np.asarray(np.einsum("ij,jk->ik", np.asarray(X, dtype=np.float64), matrix))


@dataclass(frozen=True)
class Compose(Checked):
    """f(K(x, y)): a dot-product kernel of another kernel, for `RandomMaclaurin`.

    Parameters
    ----------
    outer : dot-product kernel
        Polynomial, Exponential, Vovk, DotProduct, ...
    inner : one-feature maps, kernel or transformer
        `FourierFeatures(Gaussian(...))` or just `Gaussian(...)` or `Laplacian(...)`;
        `HomogeneousFeatures("chi2")`; a dot-product kernel or a `RandomMaclaurin`; scikit-learn's
        `RBFSampler` and `SkewedChi2Sampler`. Any other transformer (`AdditiveChi2Sampler`, a fitted
        `Nystroem`, ...) stands for the kernel <phi(x), phi(y)> of its output.

    References
    ----------
    P. Kar, H. Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Laplacian, Polynomial, RandomMaclaurin
    >>> from gristmill.features import Compose
    >>> X = np.array([[0.0], [1.0]])
    >>> Z = RandomMaclaurin(Compose(Polynomial(2), Laplacian(1.0)), 20000, random_state=0).fit_transform(X)
    >>> round(float(Z[0] @ Z[1]), 1), round(float((1 + np.exp(-1)) ** 2), 1)
    (1.9, 1.9)
    """

    outer: Kernel
    inner: Any

    def __post_init__(self) -> None:
        series_of(self.outer)
        inner = self.inner
        if isinstance(inner, Gaussian | Laplacian):
            object.__setattr__(self, "inner", FourierFeatures(inner))
        elif isinstance(inner, Kernel):
            series_of(inner)  # refuses, by name, what has no map
        elif not isinstance(inner, OneFeatureMaps) and not hasattr(inner, "transform"):
            raise TypeError(
                "Compose: inner must be a kernel, FourierFeatures, HomogeneousFeatures, "
                "RandomMaclaurin or another "
                f"transformer, got {inner!r}"
            )

    def is_transformer(self) -> bool:
        """Whether the inner map is a fixed transformer, after which plain projections do."""
        return not isinstance(self.inner, OneFeatureMaps | Kernel) and type(self.inner).__name__ not in (
            *_INDEPENDENT_COLUMNS,
            "RandomMaclaurin",
        )
