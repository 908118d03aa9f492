"""Where a series can be estimated: inside its radius of convergence, and where the variance is finite."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common import inputs as _input
from ._degree_law import Law
from .series import Series


def squared_norms(X: Any) -> npt.NDArray[np.float64]:
    """<x, x> of each row."""
    if _input.is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def refuse_outside(norm2: npt.NDArray[np.float64], radius: float, kernel: object) -> None:
    """Refuse rows outside the radius of convergence, saying the scale that would work."""
    bad = np.flatnonzero(~(norm2 < radius))
    if bad.size:
        raise ValueError(
            f"row {bad[0]} has norm {math.sqrt(norm2[bad[0]]):.6g}, but the series of "
            f"{kernel!r} converges only for "
            f"norms below {math.sqrt(radius):.6g}; multiply the inputs by less than "
            f"{math.sqrt(radius / float(norm2.max())):.6g}"
        )


def refuse_inner_outside(diagonal: npt.NDArray[np.float64], radius: float, outer: object) -> None:
    """The same for a composition, whose inner kernel stands in place of the inner product."""
    bad = np.flatnonzero(~(diagonal < radius))
    if bad.size:
        value = float(diagonal[bad[0]])
        raise ValueError(
            f"row {bad[0]} has K(x, x) = {value:.6g} under the inner kernel, but the series "
            f"of {outer!r} converges "
            f"only below {radius:.6g}; multiply the inner kernel by less than {radius / value:.6g}"
        )


def warn_of_infinite_variance(series: Series, law: Law, X: Any, complex_signs: bool) -> None:
    """Every draw is finite and the mean right even where sum_n a_n^2 m^n / q_n diverges: "
    "only a warning tells."""
    if law.rate == 0 or math.isinf(series.radius):
        return
    norms = squared_norms(X)
    fourth = squared_norms(X.multiply(X).tocsr() if _input.is_sparse(X) else X * X)
    m = 2 * norms**2 - fourth if complex_signs else 3 * norms**2 - 2 * fourth
    row = int(np.argmax(m))
    limit = series.radius**2 * law.rate
    if m[row] >= limit:
        warnings.warn(
            "the variance sum_n a_n^2 m^n / P[N = n] is infinite on the diagonal at row "
            f"{row}: m = {m[row]:.6g} is "
            f"not below radius^2 * lim P[N = n+1] / P[N = n] = {limit:.6g}, so averages "
            "settle slowly or never; "
            f"multiply the inputs by less than {(limit / m[row]) ** 0.25:.6g}, lower p, or set max_degree",
            UserWarning,
            stacklevel=4,
        )
