"""Convex sets that a hypothesis can be kept in; each moves an array to the nearest point of the set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.ranges import Checked, Range, flag, positive

Array = npt.NDArray[np.float64]


class ConvexSet(Checked):
    """Base class of the sets. One of your own needs `project(w)` and `start(shape)`, a point of it."""

    _kind: ClassVar[str] = "none"
    #: numbers of dimensions that an array may have
    _dimensions: ClassVar[tuple[int, ...]] = (1, 2)

    def core_ball(self) -> tuple[str, float]:
        return (self._kind, float(getattr(self, "radius", 0.0)))

    def project(self, w: npt.ArrayLike) -> Array:
        """The nearest point of the set, in the sum of squares."""
        array = np.ascontiguousarray(w, dtype=np.float64)
        if array.ndim not in self._dimensions or (array.ndim == 2 and array.shape[0] != array.shape[1]):
            kinds = {(1, 2): "a vector or a square matrix", (1,): "a vector", (2,): "a square matrix"}
            raise ValueError(
                f"{type(self).__name__} is a set of {kinds[self._dimensions]}, got the shape {array.shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{type(self).__name__}: the array to project must be finite")
        return np.asarray(_core.project(array, self.core_ball(), bool(getattr(self, "psd", False))))

    def start(self, shape: tuple[int, ...]) -> Array:
        """A point of the set to begin at: 0, where it belongs to the set."""
        return np.zeros(shape)


@dataclass(frozen=True)
class L2Ball(ConvexSet):
    """Vectors, or matrices by their (2,2) norm, of length at most `radius`.

    Parameters
    ----------
    radius : float > 0
    psd : bool, default=False
        For matrices: only the symmetric ones without negative eigenvalues.

    Examples
    --------
    >>> from gristmill.pairwise import L2Ball
    >>> L2Ball(1.0).project([3.0, 4.0]).tolist()
    [0.6000000000000001, 0.8]
    """

    radius: float
    psd: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"radius": positive, "psd": flag}
    _kind: ClassVar[str] = "l2"


@dataclass(frozen=True)
class L1Ball(ConvexSet):
    """Arrays whose absolute entries sum to at most `radius`: sparse hypotheses; the (1,1) norm of a matrix.

    Parameters
    ----------
    radius : float > 0
    psd : bool, default=False
        For matrices: only the symmetric ones without negative eigenvalues.

    Examples
    --------
    >>> from gristmill.pairwise import L1Ball
    >>> L1Ball(1.0).project([2.0, 1.5, -0.2]).tolist()
    [0.75, 0.25, 0.0]
    """

    radius: float
    psd: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"radius": positive, "psd": flag}
    _kind: ClassVar[str] = "l1"


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """Vectors with no negative entry that sum to `radius`; begins at the uniform one.

    Parameters
    ----------
    radius : float > 0, default=1.0

    Examples
    --------
    >>> from gristmill.pairwise import Simplex
    >>> Simplex().project([0.5, 1.0, -1.0]).tolist()
    [0.25, 0.75, 0.0]
    """

    radius: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"radius": positive}
    _kind: ClassVar[str] = "simplex"
    _dimensions: ClassVar[tuple[int, ...]] = (1,)

    def start(self, shape: tuple[int, ...]) -> Array:
        """The uniform vector."""
        return np.full(shape, self.radius / shape[0])


@dataclass(frozen=True)
class PSDCone(ConvexSet):
    """Symmetric matrices without negative eigenvalues.

    Examples
    --------
    >>> from gristmill.pairwise import PSDCone
    >>> PSDCone().project([[1.0, 0.0], [0.0, -2.0]]).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    psd: ClassVar[bool] = True
    _dimensions: ClassVar[tuple[int, ...]] = (2,)


@dataclass(frozen=True)
class TraceBall(ConvexSet):
    """Matrices whose singular values sum to at most `radius`: hypotheses of low rank.

    Parameters
    ----------
    radius : float > 0
    psd : bool, default=False
        Only the symmetric ones without negative eigenvalues.

    Examples
    --------
    >>> from gristmill.pairwise import TraceBall
    >>> TraceBall(1.0).project([[2.0, 0.0], [0.0, 1.5]]).diagonal().round(6).tolist()
    [0.75, 0.25]
    """

    radius: float
    psd: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"radius": positive, "psd": flag}
    _kind: ClassVar[str] = "trace"
    _dimensions: ClassVar[tuple[int, ...]] = (2,)


@dataclass(frozen=True)
class GroupBall(ConvexSet):
    """Matrices whose columns have lengths that sum to at most `radius`: whole columns vanish; the (2,1) norm.

    Parameters
    ----------
    radius : float > 0
    psd : bool, default=False
        Only the symmetric ones without negative eigenvalues.

    Examples
    --------
    >>> from gristmill.pairwise import GroupBall
    >>> GroupBall(1.0).project([[3.0, 0.0], [4.0, 0.5]]).round(6).tolist()
    [[0.6, 0.0], [0.8, 0.0]]
    """

    radius: float
    psd: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"radius": positive, "psd": flag}
    _kind: ClassVar[str] = "group"
    _dimensions: ClassVar[tuple[int, ...]] = (2,)


#: the balls of a matrix by the name of their norm
MATRIX_NORMS: dict[str, Any] = {"frobenius": L2Ball, "l1": L1Ball, "group": GroupBall, "trace": TraceBall}
