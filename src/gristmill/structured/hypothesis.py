"""A hypothesis over (input, label) pairs as a value: a weighted sum of functions k((x_i, c_i), .).

Nothing here is ever changed in place. An event turns one `Hypothesis` into the next, so a chunk that fails
half-way has changed nothing, whatever the user's kernel or search did.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common import inputs as _input
from ..budgets import DropOldest, DropRandom, DropSmallest
from ..kernels import Kernel

Vector = npt.NDArray[np.float64]

#: a squared residual below this share of the function's own square is rounding (as in expansion/cholesky.hpp)
DEPENDENT = 1e-10

_NONE = np.empty(0)


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """Points, the functions made of them and their coefficients, oldest first."""

    points: Any  #: a table of rows, a CSR array, or a tuple of objects
    ids: npt.NDArray[np.int64]  #: position in the stream of each point, ascending
    of: npt.NDArray[np.int64]  #: for each function its point
    labels: npt.NDArray[np.int64]  #: and the number of its label
    coef: Vector
    total: Vector  #: the coefficients summed over time, for the average
    factor: Vector | None  #: L of the functions' Gram matrix L L^T, where the budget projects
    numbers: dict[Any, int]  #: label -> number; in the order of the label list, or as they were met
    closed: bool  #: whether the labels are a list that was given
    seen: int = 0
    ticks: int = 0  #: hypotheses in the average
    seed: int = 0
    draws: int = 0

    @staticmethod
    def empty(points: Any, labels: list[Any] | None, projects: bool, seed: int) -> Hypothesis:
        whole = np.empty(0, dtype=np.int64)
        factor = np.empty((0, 0), order="F") if projects else None
        numbers = {label: number for number, label in enumerate(labels or ())}
        return Hypothesis(
            points, whole, whole, whole, _NONE, _NONE, factor, numbers, closed=labels is not None, seed=seed
        )

    def weights(self, average: bool) -> Vector:
        """The coefficients that predict: those of now, or their mean over time."""
        return self.total / max(self.ticks, 1) if average else self.coef

    def having(self, **changes: Any) -> Hypothesis:
        return dataclasses.replace(self, **changes)

    def bytes(self) -> int:
        """Bytes kept; of objects only what the references cost."""
        points = self.points
        if isinstance(points, tuple):
            size = 8 * len(points)
        elif _input.is_sparse(points):
            size = points.data.nbytes + points.indices.nbytes + points.indptr.nbytes
        else:
            size = points.nbytes
        arrays = [self.ids, self.of, self.labels, self.coef, self.total]
        return int(size + sum(array.nbytes for array in arrays) + (0 if self.factor is None else self.factor.nbytes))

    def knowing(self, label: Any) -> Hypothesis:
        """With a number for this label."""
        if label in self.numbers:
            return self
        return self.having(numbers={**self.numbers, label: len(self.numbers)})


# ---- points ------------------------------------------------------------------------------------------------


def join(points: Any, x: Any) -> Any:
    """The points and one more: x is a table of one row, or an object in a list."""
    if isinstance(points, tuple):
        return (*points, x[0])
    if _input.is_sparse(points):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([points, x], format="csr"))
    return np.concatenate([points, x])


def without(points: Any, at: int) -> Any:
    if isinstance(points, tuple):
        return points[:at] + points[at + 1 :]
    if _input.is_sparse(points):
        return points[np.delete(np.arange(points.shape[0]), at)]
    return np.delete(points, at, axis=0)


# ---- one event seen by the stored functions ----------------------------------------------------------------


class Lookahead:
    """Kernel values of one event: `row(label)` at all functions, `cross(a, b)` = k((x, a), (x, b))."""

    def row(self, label: Any) -> Vector:
        raise NotImplementedError

    def cross(self, left: Any, right: Any) -> float:
        raise NotImplementedError


class SharedLookahead(Lookahead):
    """Joint kernel k(x, x')[label == label']: one row of kernel values serves every label."""

    def __init__(self, hypothesis: Hypothesis, values: Vector, self_value: float) -> None:
        self._f, self._self = hypothesis, self_value
        self._values = values[hypothesis.of]

    def row(self, label: Any) -> Vector:
        return np.where(self._f.labels == self._f.numbers.get(label, -1), self._values, 0.0)

    def cross(self, left: Any, right: Any) -> float:
        return self._self if left == right else 0.0

    def scores(self, weights: Vector) -> Vector:
        """f(x, c) for every label that has a number, in one pass over the functions."""
        found = np.bincount(self._f.labels, weights=weights * self._values, minlength=len(self._f.numbers))
        return np.asarray(found, dtype=np.float64)


class PairLookahead(Lookahead):
    """A user's joint kernel k(x, label, x', label'), asked for each function."""

    def __init__(self, hypothesis: Hypothesis, function: Callable[..., Any], x: Any, place: str) -> None:
        self._function, self._x, self._place = function, x, place
        names = list(hypothesis.numbers)
        self._stored = [
            (hypothesis.points[i], names[number]) for i, number in zip(hypothesis.of, hypothesis.labels, strict=True)
        ]
        self._rows: dict[Any, Vector] = {}

    def _value(self, label: Any, other: Any, other_label: Any) -> float:
        value = float(self._function(self._x, label, other, other_label))
        if not math.isfinite(value):
            raise ValueError(
                f"{self._place}: the joint kernel returned {value} for the labels {label!r}, {other_label!r}"
            )
        return value

    def row(self, label: Any) -> Vector:
        if label not in self._rows:
            self._rows[label] = np.array([self._value(label, *pair) for pair in self._stored], dtype=np.float64)
        return self._rows[label]

    def cross(self, left: Any, right: Any) -> float:
        return self._value(left, self._x, right)


class Ahead:
    """Kernel values of the next rows against the points and against each other, by two matrix products."""

    def __init__(self, kernel: Kernel, hypothesis: Hypothesis, rows: Any, first_row: int) -> None:
        self._known, self._first = hypothesis.ids, hypothesis.seen
        among = kernel(rows, rows)
        _refuse_infinite(among, first_row)
        self._values = np.hstack([values_at(kernel, hypothesis, rows, first_row), among])

    def sight(self, hypothesis: Hypothesis, i: int) -> SharedLookahead:
        ids, old = hypothesis.ids, len(self._known)
        columns = np.where(ids >= self._first, ids - self._first + old, np.searchsorted(self._known, ids))
        return SharedLookahead(hypothesis, self._values[i, columns], float(self._values[i, old + i]))


def values_at(kernel: Kernel, f: Hypothesis, rows: Any, first_row: int) -> Vector:
    """Kernel values of rows at the stored points."""
    if not len(f.ids):
        return np.empty((row_count(rows), 0))
    values: Vector = kernel(rows, list(f.points) if isinstance(rows, list) else f.points)
    _refuse_infinite(values, first_row)
    return values


def _refuse_infinite(values: Vector, first_row: int) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        own = bad[
            bad[:, 0] == bad[:, 1]
        ]  # among themselves it is the row with k(x, x) that is too large, not its partner
        row, column = own[0] if len(own) and values.shape[0] == values.shape[1] else bad[0]
        raise ValueError(f"row {first_row + row}: a kernel value is {values[row, column]}; scale the inputs")


def row_count(rows: Any) -> int:
    return len(rows) if isinstance(rows, list) else int(rows.shape[0])


# ---- steps without projection ------------------------------------------------------------------------------


def add_pair(f: Hypothesis, x: Any, pairs: list[tuple[Any, float]], budget: Any) -> Hypothesis:
    """The event's functions with their coefficients enter; the budget says which point leaves."""
    if isinstance(budget, DropRandom) and len(f.ids) >= int(budget.size):
        # Numbered draws instead of a running generator: the state is one number and travels with the model.
        candidates = len(f.ids) + (f.draws + 1 if budget.uniform else 0)
        victim = int(np.random.default_rng([f.seed, f.draws]).integers(candidates))
        f = f.having(draws=f.draws + 1)
        if victim >= len(f.ids):
            return f
        f = drop(f, victim)
    f = append(f, x, pairs)
    if isinstance(budget, DropOldest) and len(f.ids) > int(budget.size):
        return drop(f, 0)
    if isinstance(budget, DropSmallest) and len(f.ids) > int(budget.size):
        largest = np.zeros(len(f.ids))
        np.maximum.at(largest, f.of, np.abs(f.coef))
        return drop(f, int(np.argmin(largest)))  # the oldest on ties
    return f


def append(f: Hypothesis, x: Any, pairs: list[tuple[Any, float]]) -> Hypothesis:
    for label, _ in pairs:
        f = f.knowing(label)
    return f.having(
        points=join(f.points, x),
        ids=np.append(f.ids, f.seen),
        of=np.append(f.of, [len(f.ids)] * len(pairs)),
        labels=np.append(f.labels, [f.numbers[label] for label, _ in pairs]),
        coef=np.append(f.coef, [coefficient for _, coefficient in pairs]),
        total=np.append(f.total, np.zeros(len(pairs))),
    )


def drop(f: Hypothesis, at: int) -> Hypothesis:
    stay = f.of != at
    of, labels, numbers = f.of[stay], f.labels[stay], f.numbers
    if not f.closed:  # labels that no function has any more are forgotten, or memory would grow with the stream
        used, labels = np.unique(labels, return_inverse=True)
        names = list(numbers)
        numbers = {names[old]: new for new, old in enumerate(used)}
    return f.having(
        points=without(f.points, at),
        ids=np.delete(f.ids, at),
        of=of - (of > at),
        labels=labels,
        numbers=numbers,
        coef=f.coef[stay],
        total=f.total[stay],
    )


# ---- steps with projection ---------------------------------------------------------------------------------


class Projection:
    """How k((x, y), .) - k((x, r), .) lies to the span of the stored functions."""

    def __init__(self, f: Hypothesis, sight: Lookahead, label: Any, rival: Any) -> None:
        assert f.factor is not None
        self._f, self._label, self._rival = f, label, rival
        self.own_self, self.rival_self = sight.cross(label, label), sight.cross(rival, rival)
        self.between = sight.cross(label, rival)
        self.own, self.other = forward(f.factor, sight.row(label)), forward(f.factor, sight.row(rival))
        self.self_value = self.own_self + self.rival_self - 2 * self.between
        difference = self.own - self.other
        self.length2 = float(difference @ difference)
        self.residual = math.sqrt(rest(self.self_value, difference))

    def fold(self, size: float) -> Hypothesis:
        """f += size P(k((x, y), .) - k((x, r), .))."""
        f = self._f
        return f.having(coef=f.coef + size * backward(f.factor, self.own - self.other))

    def add(self, x: Any, size: float) -> Hypothesis:
        """Both functions enter, (x, y) first; one that is in the span already is folded instead."""
        f, at = self._f, len(self._f.ids)
        own_rest, other = rest(self.own_self, self.own), self.other
        if own_rest > 0:
            f = _grown(f, self._label, size, self.own, own_rest, at)
            other = np.append(other, (self.between - self.own @ other) / math.sqrt(own_rest))
        else:
            f = f.having(coef=f.coef + size * backward(f.factor, self.own))
        other_rest = rest(self.rival_self, other)
        if other_rest > 0:
            f = _grown(f, self._rival, -size, other, other_rest, at)
        else:
            f = f.having(coef=f.coef - size * backward(f.factor, other))
        if own_rest == other_rest == 0:
            return f
        return f.having(points=join(f.points, x), ids=np.append(f.ids, f.seen))


def rest(self_value: float, coordinates: Vector) -> float:
    """Squared distance from the span; 0 where it is rounding."""
    left = self_value - float(coordinates @ coordinates)
    return left if left > DEPENDENT * self_value else 0.0


def _grown(f: Hypothesis, label: Any, coefficient: float, z: Vector, rest2: float, at: int) -> Hypothesis:
    f = f.knowing(label)
    size = len(z)
    factor = np.zeros((size + 1, size + 1), order="F")
    factor[:size, :size] = f.factor
    factor[size, :size], factor[size, size] = z, math.sqrt(rest2)
    return f.having(
        factor=factor,
        of=np.append(f.of, at),
        labels=np.append(f.labels, f.numbers[label]),
        coef=np.append(f.coef, coefficient),
        total=np.append(f.total, 0.0),
    )


def forward(factor: Vector, values: Vector) -> Vector:
    """z with L z = k: coordinates on the orthonormal basis that the functions make in turn."""
    from scipy.linalg.blas import dtrsv

    return dtrsv(factor, values, lower=1) if len(values) else _NONE


def backward(factor: Vector | None, z: Vector) -> Vector:
    """a with L^T a = z: coefficients of the functions."""
    from scipy.linalg.blas import dtrsv

    return dtrsv(factor, z, lower=1, trans=1) if len(z) else _NONE
