"""Additive kernels: sums of one-coordinate kernels, whose hypotheses are evaluated and changed in O(log m).

`KernelRegressor(kernel=Additive(Spline()), ...)` keeps its terms in one ordered tree a coordinate: a score, a
new term and a removed term cost O(coordinates x log m) instead of O(coordinates x m). Additive kernels add up
and take positive factors: `Additive(Spline(), columns=[0, 1]) + 0.5 * Additive(Laplacian(2.0), columns=[2])`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.ranges import Range, is_real, is_whole, one_of, optional, positive
from .._common.types import Table
from ..budgets import DropOldest, DropRandom, DropSmallest, Unbounded, Window
from ..kernels import Kernel, Laplacian, Node

#: one coordinate as the core takes it: (order of the spline or -1, gamma, column, other column, weight)
Coordinate = tuple[int, float, int, int | None, float]

_BUDGETS = (Unbounded, Window, DropOldest, DropSmallest, DropRandom)
#: rules that look at or change old terms, or keep a second hypothesis over them
_OTHER_RULES = ("MarginProjection", "StepSizeAdaptation", "Adatron", "Density")
_BLOCK = 4096  # stored rows compared at once: a block of intermediate results stays in the cache


class _TreeKernel(Kernel):
    """A kernel whose hypotheses are trees: the core has no program for it, and its matrices are computed by NumPy."""

    def coordinate_parts(self, width: int) -> list[Coordinate]:
        raise NotImplementedError

    def skips_missing_values(self) -> bool:
        return False

    def emit_program(self, program: list[Node]) -> int:
        raise TypeError(
            f"{self!r} is evaluated by trees, so it can be added to other additive kernels and multiplied by "
            "positive numbers, but not be combined with or wrapped in other kernels"
        )

    def __call__(self, X: Any, Y: Any = None) -> Any:
        single = np.ndim(X) == 1 and (Y is None or np.ndim(Y) == 1)
        left = self._rows([X] if single else X)
        right = left if Y is None else self._rows([Y] if single else Y)
        if left.shape[1] != right.shape[1]:
            raise ValueError(f"X has {left.shape[1]} columns, but Y has {right.shape[1]}")
        coordinates = self.coordinate_parts(left.shape[1])
        matrix = np.zeros((len(left), len(right)))
        for start in range(0, len(right), _BLOCK):
            block = matrix[:, start : start + _BLOCK]
            for coordinate in coordinates:
                p, q = (
                    _values(coordinate, left)[:, None],
                    _values(coordinate, right[start : start + _BLOCK])[None, :],
                )
                with np.errstate(invalid="ignore"):
                    part = coordinate[4] * _one_coordinate(coordinate, p, q)
                block += np.where(np.isnan(part), 0.0, part) if self.skips_missing_values() else part
        return float(matrix[0, 0]) if single else matrix

    def diagonal(self, X: Table) -> npt.NDArray[np.float64]:
        """k(x, x) for each row of X."""
        rows = self._rows(X)
        total = np.zeros(len(rows))
        for coordinate in self.coordinate_parts(rows.shape[1]):
            values = _values(coordinate, rows)
            total += coordinate[4] * np.nan_to_num(_one_coordinate(coordinate, values, values))
        return total

    def _rows(self, X: Table) -> npt.NDArray[np.float64]:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        if rows.ndim != 2:
            raise ValueError(f"a kernel compares two vectors or two tables of rows, got {rows.ndim} dimensions")
        bad = np.isinf(rows) if self.skips_missing_values() else ~np.isfinite(rows)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(f"row {row}, column {column} is {rows[row, column]}; impute or drop such rows first")
        for coordinate in self.coordinate_parts(rows.shape[1]):
            below = np.flatnonzero(_values(coordinate, rows) < 0)
            if coordinate[0] >= 0 and below.size:
                raise ValueError(
                    f"row {below[0]}: column {coordinate[2]} is below 0, where Spline is not a kernel; "
                    "scale the inputs to [0, 1], for example with MinMaxScaler"
                )
        return rows


def _values(coordinate: Coordinate, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    column, other = coordinate[2], coordinate[3]
    return rows[:, column] if other is None else rows[:, column] * rows[:, other]


def _one_coordinate(coordinate: Coordinate, p: npt.NDArray[Any], q: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The kernel of one coordinate, without its weight."""
    order, gamma = coordinate[0], coordinate[1]
    apart = np.abs(p - q)
    if order < 0:
        return np.asarray(np.exp(-gamma * apart))
    least, both = np.minimum(p, q), p * q
    total = sum(both**r for r in range(1, order + 1)) + 1.0
    for r in range(order + 1):
        power = 2 * order - r + 1
        total = total + math.comb(order, r) / power * least**power * apart**r
    return np.asarray(total)


@dataclass(frozen=True)
class Spline(_TreeKernel):
    """Spline kernel with an infinite number of knots, of one coordinate that is not negative.

    sum_{r<=z} (pq)^r + integral_0^min(p,q) (p-u)^z (q-u)^z du, z the order. For inputs of several columns
    write `Additive(Spline(order))`.

    Parameters
    ----------
    order : {0, 1, 2, 3}, default=1
        z in the paper: 0 learns functions that are linear between the data, 1 cubic ones.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001, equation (2).

    Examples
    --------
    >>> from gristmill import Spline
    >>> Spline(order=1)([2.0], [3.0])
    11.666666666666666
    """

    order: int = 1  # z

    _ranges: ClassVar[dict[str, Range]] = {"order": one_of(0, 1, 2, 3)}

    def coordinate_parts(self, width: int) -> list[Coordinate]:
        if width != 1:
            raise ValueError(f"{self!r} is a kernel of one column, and X has {width}; use Additive({self!r})")
        return [(int(self.order), 1.0, 0, None, 1.0)]


def _tuple(values: object) -> Any:
    """A list as a tuple, so that frozen values can be compared and hashed."""
    return (
        tuple(_tuple(value) for value in values)
        if isinstance(values, Sequence) and not isinstance(values, str)
        else values
    )


def _is_column(value: Any) -> bool:
    return is_whole(value) and value >= 0


_columns = Range(
    "a sequence of distinct column numbers >= 0",
    lambda v: isinstance(v, tuple) and len(v) > 0 and all(map(_is_column, v)) and len(set(v)) == len(v),
)
_pairs = Range(
    "a sequence of pairs of column numbers >= 0",
    lambda v: isinstance(v, tuple) and all(isinstance(p, tuple) and len(p) == 2 and all(map(_is_column, p)) for p in v),
)


@dataclass(frozen=True)
class Additive(_TreeKernel):
    """The sum over coordinates of a one-coordinate kernel; scored and learned in O(coordinates x log m).

    The learned function is a sum of one function a coordinate (`model.components(X)`, `AdditiveDisplay`). Its
    rule may be any that changes one term at a time; its budget `Unbounded`, `Window`, `DropOldest`,
    `DropSmallest` or `DropRandom`. Sparse rows are taken, zeros being values like any other.

    Parameters
    ----------
    base : Spline or Laplacian
        The kernel of one coordinate.
    columns : sequence of int, optional
        The columns it is the sum over; all by default.
    products : sequence of pairs of int, default=()
        Interactions: for each pair the product of the two columns is one more coordinate.
    missing : {"refuse", "skip"}, default="refuse"
        With "skip" a NaN is a missing value: its coordinate contributes nothing, to scores or to learning.
    weight : float > 0, default=1.0
        Written `0.5 * Additive(...)`.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Additive, KernelRegressor, PassiveAggressive, Spline, Unbounded
    >>> X = np.random.default_rng(0).uniform(size=(5000, 3))
    >>> y = np.sin(6 * X[:, 0]) + (X[:, 1] - 0.5) ** 2
    >>> model = KernelRegressor(Additive(Spline(0)), PassiveAggressive(C=1.0, epsilon=0.01), Unbounded())
    >>> error = np.abs(y - model.prequential(X, y))
    >>> print(f"mean absolute error {error[-1000:].mean():.3f}")
    mean absolute error 0.016
    """

    base: Spline | Laplacian
    columns: tuple[int, ...] | None = None
    products: tuple[tuple[int, int], ...] = ()
    missing: str = "refuse"
    weight: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {
        "base": Range("Spline(order) or Laplacian(gamma)", lambda v: type(v) in (Spline, Laplacian)),
        "columns": optional(_columns),
        "products": _pairs,
        "missing": one_of("refuse", "skip"),
        "weight": positive,
    }

    def __post_init__(self) -> None:
        for name in ("columns", "products"):
            values = getattr(self, name)
            object.__setattr__(self, name, _tuple(values.tolist() if isinstance(values, np.ndarray) else values))
        super().__post_init__()

    def skips_missing_values(self) -> bool:
        return self.missing == "skip"

    def coordinate_parts(self, width: int) -> list[Coordinate]:
        columns = range(width) if self.columns is None else self.columns
        largest = max([*columns, *(c for pair in self.products for c in pair)], default=-1)
        if largest >= width:
            raise ValueError(f"{self!r} names column {largest}, but X has {width} columns")
        order, gamma = (self.base.order, 1.0) if isinstance(self.base, Spline) else (-1, self.base.gamma)
        singles: list[tuple[int, int | None]] = [(int(c), None) for c in columns]
        pairs: list[tuple[int, int | None]] = [(int(a), int(b)) for a, b in self.products]
        return [(int(order), float(gamma), a, b, float(self.weight)) for a, b in [*singles, *pairs]]

    def __add__(self, other: object) -> Kernel:
        return AdditiveSum(self, other) if isinstance(other, Additive | AdditiveSum) else super().__add__(other)

    def __mul__(self, other: Any) -> Kernel:
        return replace(self, weight=self.weight * float(other)) if is_real(other) else super().__mul__(other)

    __rmul__ = __mul__


@dataclass(frozen=True)
class AdditiveSum(_TreeKernel):
    """The sum of two additive kernels; written `a + b`.

    Examples
    --------
    >>> from gristmill import Additive, Laplacian, Spline
    >>> kernel = Additive(Spline(0), columns=[0]) + Additive(Laplacian(1.0), columns=[1])
    >>> kernel([2.0, 5.0], [3.0, 5.0])
    4.0
    """

    left: Additive | AdditiveSum
    right: Additive | AdditiveSum

    _ranges: ClassVar[dict[str, Range]] = {
        side: Range("an additive kernel", lambda v: isinstance(v, Additive | AdditiveSum)) for side in ("left", "right")
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({part.missing for part in self.summands()}) > 1:
            raise ValueError('the parts of a sum must agree on missing="refuse" or missing="skip"')

    def summands(self) -> Iterator[Additive]:
        for side in (self.left, self.right):
            yield from side.summands() if isinstance(side, AdditiveSum) else [side]

    def skips_missing_values(self) -> bool:
        return next(self.summands()).skips_missing_values()

    def coordinate_parts(self, width: int) -> list[Coordinate]:
        return self.left.coordinate_parts(width) + self.right.coordinate_parts(width)

    def __add__(self, other: object) -> Kernel:
        return AdditiveSum(self, other) if isinstance(other, Additive | AdditiveSum) else super().__add__(other)

    def __mul__(self, other: Any) -> Kernel:
        if not is_real(other):
            return super().__mul__(other)
        return AdditiveSum(self.left * other, self.right * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


def is_additive(kernel: object) -> bool:
    """Whether a learner keeps this kernel's hypothesis in trees."""
    return isinstance(kernel, _TreeKernel)


def names_of(kernel: Any, columns: Sequence[Any]) -> list[str]:
    """The name of each coordinate, by the names of the columns."""
    return [
        str(columns[a]) if b is None else f"{columns[a]} × {columns[b]}"
        for _, _, a, b, _ in kernel.coordinate_parts(len(columns))
    ]


def refuse_parts(kernel: object, rule: object, budget: object, average: bool) -> None:
    """Refuse what trees cannot do, saying what would work."""
    name = type(rule).__name__
    if name in _OTHER_RULES:
        raise ValueError(
            f"{name} changes terms that are already stored, and the trees of {kernel!r} take one at a time; "
            "use PassiveAggressive, SGD, Perceptron or another rule that adds one term a step"
        )
    if not isinstance(budget, _BUDGETS):
        raise ValueError(
            f"{type(budget).__name__} works on the Gram matrix or on a list of all points, and {kernel!r} "
            "keeps trees instead; use "
            + ", ".join(kind.__name__ for kind in _BUDGETS[:-1])
            + f" or {_BUDGETS[-1].__name__}"
        )
    if average:
        raise ValueError(f"average=True is not kept for {kernel!r}, whose trees hold the present hypothesis only")


def make_core(kernel: Any, rule: object, budget: Any, task: str, width: int, single: bool, seed: int) -> Any:
    """The core's learner over trees; the same methods as its learner over stored points."""
    from .. import _core

    return _core.TreeLearner(
        coordinates=kernel.coordinate_parts(width),
        width=width,
        single=single,
        skip_missing=kernel.skips_missing_values(),
        rule=rule,
        budget=budget.core_spec(),
        task=task,
        seed=seed,
    )


def mark_tags(kernel: Any, tags: Any) -> None:
    """What scikit-learn should know of the inputs: whether NaN, and whether negative numbers, are taken."""
    if not is_additive(kernel):
        return
    tags.input_tags.allow_nan = kernel.skips_missing_values()
    parts = list(kernel.summands()) if isinstance(kernel, AdditiveSum) else [kernel]
    tags.input_tags.positive_only = any(isinstance(getattr(part, "base", part), Spline) for part in parts)
