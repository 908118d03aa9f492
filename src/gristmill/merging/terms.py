"""What a kernel learner stores, taken out of its core and put into another: points, coefficients, ages."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._common.types import Fields
from ..kernels import Kernel

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Terms:
    """f_o = sum_i c_oi k(x_i, .), at the true scale; with an average over time, its mean too."""

    points: Any  #: as the core takes them: a table, (indptr, indices, data, width), or a list of objects
    ids: npt.NDArray[np.int64]  #: position in the stream
    labels: Floats  #: a line a target
    came_sparse: npt.NDArray[np.uint8]
    present: Floats  #: a line an output, auxiliary ones last
    mean: Floats | None  #: a line a visible output

    @classmethod
    def of(cls, state: Fields, outputs: int, kernel: Kernel, average: bool) -> Self:
        """The terms in a core's state."""
        n = len(state["ids"])
        coef = state["coef"].reshape(-1, n) * state["scale"][0]
        mean = None
        if average and "span_sizes" in state:  # which shows the mean
            coef, mean = _span_present(state, kernel), coef
        elif average:
            mean = _expansion_mean(state, coef)[:outputs]
        return cls(
            state["points"],
            state["ids"],
            _labels(state, n),
            state.get("came_sparse", np.zeros(n, np.uint8)),
            coef,
            mean,
        )

    @property
    def shown(self) -> Floats:
        """The coefficients that predictions go by."""
        return self.present if self.mean is None else self.mean

    def with_coefs(self, present: Floats, mean: Floats | None) -> Self:
        return dataclasses.replace(self, present=present, mean=mean)

    def taken(self, rows: Any) -> Self:
        """Some of the terms, in this order."""
        return dataclasses.replace(
            self,
            points=take(self.points, rows),
            ids=self.ids[rows],
            labels=self.labels[:, rows],
            came_sparse=self.came_sparse[rows],
            present=self.present[:, rows],
            mean=None if self.mean is None else self.mean[:, rows],
        )

    def fields(self, ticks: int) -> dict[str, object]:
        """Fields of an equivalent core state; the core derives the rest."""
        return {
            "points": self.points,
            "ids": self.ids,
            **{_label_name(target): np.ascontiguousarray(line) for target, line in enumerate(self.labels)},
            "came_sparse": self.came_sparse,
            "coef": np.ascontiguousarray(self.present),
            "sum": np.empty((0, len(self.ids))) if self.mean is None else self._sums(ticks),
            "lag": np.zeros_like(self.present) if self.mean is not None else np.empty((0, len(self.ids))),
            "scale": np.ones(1),
            "weight": np.zeros(1),
            "doubt": np.zeros(1),
            "floor": np.zeros(1),
            "derive": np.ones(1, np.uint8),
        }

    def _sums(self, ticks: int) -> Floats:
        sums = np.zeros_like(self.present)
        if self.mean is not None:
            sums[: len(self.mean)] = ticks * self.mean
        return sums


def _label_name(target: int) -> str:
    return f"labels{target or ''}"


def _labels(state: Fields, count: int) -> Floats:
    """Labels of the stored points; NaN where unknown."""
    lines: list[Floats] = []
    while _label_name(len(lines)) in state:
        lines.append(state[_label_name(len(lines))])
    return np.array(lines, dtype=np.float64).reshape(-1, count) if lines else np.full((1, count), np.nan)


def _expansion_mean(state: Fields, coef: Floats) -> Floats:
    unscaled = state["coef"].reshape(coef.shape)
    total = state["sum"].reshape(coef.shape) + (state["weight"][0] * unscaled - state["lag"].reshape(coef.shape))
    return np.asarray(total / max(int(state["ticks"][0]), 1))


def _span_present(state: Fields, kernel: Kernel) -> Floats:
    """Coefficients of the present f from its coordinates g on the basis of each output's members: L^T c = g, K = L L^T."""
    from scipy.linalg import cholesky, solve_triangular

    coef = np.zeros((len(state["span_sizes"]), len(state["ids"])))
    starts = np.concatenate([[0], np.cumsum(state["span_sizes"])])
    for output, (begin, end) in enumerate(itertools.pairwise(starts)):
        members = state["members"][begin:end]
        if len(members) == 0:
            continue
        factor = cholesky(gram(kernel, take(state["points"], members)), lower=True)
        coef[output, members] = solve_triangular(factor, state["coordinates"][begin:end], lower=True, trans="T")
    return coef


def gram(kernel: Kernel, points: Any) -> Floats:
    """k(x_i, x_j) of stored points."""
    if isinstance(points, tuple):
        from scipy.sparse import csr_array

        indptr, indices, data, width = points
        points = csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
    return np.asarray(kernel(points, points))


# ---- tables of points -----------------------------------------------------------------------------------------


def count(points: Any) -> int:
    return len(points[0]) - 1 if isinstance(points, tuple) else len(points)


def take(points: Any, rows: Any) -> Any:
    """Some of the points, in this order."""
    if isinstance(points, list):
        return [points[row] for row in rows]
    if not isinstance(points, tuple):
        return np.ascontiguousarray(points[rows])
    indptr, indices, data, width = points
    pieces = [slice(indptr[row], indptr[row + 1]) for row in rows]
    lengths = [piece.stop - piece.start for piece in pieces]
    return (
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.concatenate([indices[:0], *(indices[piece] for piece in pieces)]),
        np.concatenate([data[:0], *(data[piece] for piece in pieces)]),
        width,
    )


def stacked(tables: list[Any]) -> Any:
    """One table below the other; float32 beside float64 becomes float64."""
    if isinstance(tables[0], list):
        return [point for table in tables for point in table]
    if not isinstance(tables[0], tuple):
        return np.ascontiguousarray(np.concatenate(tables))
    ends = [table[0][1:] for table in tables]
    shifts = np.cumsum([0, *(table[0][-1] for table in tables[:-1])])
    return (
        np.concatenate([[0], *(end + shift for end, shift in zip(ends, shifts, strict=True))]).astype(np.int64),
        np.concatenate([table[1] for table in tables]),
        np.concatenate([table[2] for table in tables]),
        tables[0][3],
    )


def same_points(points: object) -> npt.NDArray[np.int64]:
    """A number a point, the same for equal points. Objects are equal where they are one, or equal and hashable."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(_key(points, row), len(known)) for row in range(count(points))], dtype=np.int64)


def _key(points: Any, row: int) -> Any:
    if isinstance(points, tuple):
        piece = slice(points[0][row], points[0][row + 1])
        return points[1][piece].tobytes(), (points[2][piece] + 0.0).tobytes()
    point = points[row]
    if isinstance(point, np.ndarray):
        return point.shape, (point + 0.0).tobytes() if point.dtype.kind in "fiub" else id(point)  # -0 is 0
    try:
        hash(point)
    except TypeError:
        return id(point)
    return type(point), point
