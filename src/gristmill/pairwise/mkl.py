"""Two-stage multiple kernel learning on a stream: the weights of the kernels, then any kernel learner."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._common.ranges import flag, is_whole, non_negative, one_of, positive
from .._common.types import Labels, RandomState, Table
from ..kernels import Kernel, _Composite, as_kernel, pair_value
from ._base import LossTask, PairStreamLearner
from ._buffered_rows import BufferedRows
from ._python_loop import PairLoop
from .buffers import check_buffer
from .losses import check_margin_loss, margin_slope, margin_value
from .projections import Simplex

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OnColumns(_Composite):
    """A kernel that sees some of the columns only: one view of the data.

    Parameters
    ----------
    base : kernel
    columns : sequence of int
        Which features it sees.

    Examples
    --------
    >>> from gristmill import Linear
    >>> from gristmill.pairwise import OnColumns
    >>> OnColumns(Linear(), (0, 2))([1.0, 5.0, 2.0], [3.0, 7.0, 4.0])
    11.0
    """

    base: Kernel
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", as_kernel(self.base))
        columns = tuple(self.columns)
        if not columns or not all(is_whole(c) and c >= 0 for c in columns) or len(set(columns)) < len(columns):
            raise ValueError(f"OnColumns: columns must be distinct whole numbers >= 0, got {self.columns!r}")
        object.__setattr__(self, "columns", tuple(int(c) for c in columns))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    @property
    def is_native(self) -> bool:
        return False

    def _view(self, X: Table) -> Any:
        array = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        if max(self.columns) >= array.shape[-1]:
            raise ValueError(
                f"OnColumns: column {max(self.columns)} is asked for, rows have {array.shape[-1]} features"
            )
        return array[..., list(self.columns)]

    def value_of_pair(self, x: Any, y: Any) -> float:
        return pair_value(self.base, self._view(x), self._view(y))

    def __call__(self, X: Table, Y: Any = None) -> Any:
        return self.base(self._view(X), None if Y is None else self._view(Y))

    def diagonal(self, X: Table) -> Array:
        return self.base.diagonal(self._view(X))


@dataclass(frozen=True)
class Mixture(_Composite):
    """A weighted sum of kernels of which some do not run in the core.

    Parameters
    ----------
    weights : sequence of float > 0
    kernels : sequence of kernels, as many

    Examples
    --------
    >>> from gristmill import Linear
    >>> from gristmill.pairwise import OnColumns
    >>> from gristmill.pairwise.mkl import Mixture
    >>> Mixture((0.5, 2.0), (Linear(), OnColumns(Linear(), (0,))))([1.0, 2.0], [1.0, 1.0])
    3.5
    """

    weights: tuple[float, ...]
    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(w) for w in self.weights))
        object.__setattr__(self, "kernels", tuple(as_kernel(k) for k in self.kernels))
        if not self.weights or len(self.weights) != len(self.kernels) or not all(w > 0 for w in self.weights):
            raise ValueError(f"Mixture: give as many weights > 0 as kernels, got {self.weights!r}")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    @property
    def is_native(self) -> bool:
        return False

    def value_of_pair(self, x: object, y: Labels) -> float:
        return sum(w * pair_value(k, x, y) for w, k in zip(self.weights, self.kernels, strict=True))

    def __call__(self, X: Table, Y: object = None) -> Any:
        return sum(w * k(X, Y) for w, k in zip(self.weights, self.kernels, strict=True))

    def diagonal(self, X: Any) -> Array:
        values = np.zeros(len(X))
        for weight, kernel in zip(self.weights, self.kernels, strict=True):
            values = values + weight * kernel.diagonal(X)
        return values

    def __repr__(self) -> str:
        return " + ".join(f"{w!r} * {k!r}" for w, k in zip(self.weights, self.kernels, strict=True))


class _Mixing(PairLoop):
    """The loop over a chunk, whose kernel values are computed in blocks; w is mu."""

    _block: ClassVar[int] = 128

    def __init__(self, owner: TwoStageMKL, width: int, seed: int) -> None:
        self.kernels, self.width = owner._views(width), width
        self.loss, self.simplex = check_margin_loss(owner.loss, "TwoStageMKL"), owner.constraint == "simplex"
        p = len(self.kernels)
        start: Array = np.full(p, 1.0 / p if self.simplex else 1.0 / np.sqrt(p))
        rows = BufferedRows(check_buffer(owner.buffer, 100), width, seed)
        super().__init__(start, rows, owner.rate, owner.reg, owner.average)

    def _pass(self, rows: Array, labels: Array) -> Array:
        losses = np.zeros(len(rows))
        for first in range(0, len(rows), self._block):
            block = slice(first, first + self._block)
            losses[block] = self._learn_block(first, np.ascontiguousarray(rows[block]), labels[block])
        return losses

    def _learn_block(self, first: int, rows: Array, labels: Array) -> Array:
        """All kernel values of a block first: against the buffer, and of its rows with each other."""
        filled, size = self.rows.filled, len(self.rows.labels)
        stored = np.ascontiguousarray(self.rows.points[:filled])
        values = np.empty((len(rows), filled + len(rows), len(self.kernels)))
        for p, kernel in enumerate(self.kernels):
            if filled:
                values[:, :filled, p] = kernel(rows, stored)
            values[:, filled:, p] = kernel(rows, rows)
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, _, p = bad[0]
            raise ValueError(f"row {first + row}: the kernel {self.kernels[p]!r} is not finite there")
        where = np.zeros(size, dtype=np.int64)
        where[:filled] = np.arange(filled)
        losses = np.zeros(len(rows))
        for i, (x, y) in enumerate(zip(rows, labels.tolist(), strict=True)):
            mu, losses[i] = self._step(values[i], where, y)
            met = self.rows.filled
            slots, sources = self.rows.offer(x, y)
            if sources:
                old = where.copy()
                for slot, source in enumerate(sources):
                    where[slot] = old[source] if source < len(sources) else filled + i
            where[slots] = filled + i
            self.take(mu, met)
        return losses

    def _step(self, values: Array, where: npt.NDArray[np.int64], y: float) -> tuple[Array, float]:
        filled = self.rows.filled
        if filled == 0:
            return self.w, 0.0
        z = values[where[:filled]]
        same = np.where(self.rows.labels[:filled] == y, 1.0, -1.0)
        margins = same * (z @ self.w)
        gradient = (same * margin_slope(self.loss, margins)) @ z / filled
        return self._project(self.stepped(gradient)), float(margin_value(self.loss, margins).mean())

    def _project(self, mu: Array) -> Array:
        if self.simplex:
            return Simplex().project(mu)
        mu = np.maximum(mu, 0.0)  # the ball, not the sphere, which is not convex
        norm = float(np.sqrt(mu @ mu))
        return mu / norm if norm > 1.0 else mu

    def _may_be(self, weights: Array) -> bool:
        return super()._may_be(weights) and not (weights < 0).any()


class TwoStageMKL(PairStreamLearner):
    """Weights of base kernels from pairs: sum_i mu_i K_i shall be high within a class and low between.

    The loss of a pair is phi(s sum_i mu_i K_i(x, x')), s = +1 for one class and -1 for two. The first stage
    ends with `kernel_`, a kernel like any other: for the learners here, for scikit-learn's
    `SVC(kernel=model.kernel_)`, and to print. Kernels of one scale compare best: wrap them in `Normalized`.

    Parameters
    ----------
    kernels : sequence of kernels
    columns : sequence of (sequence of int, or None), optional
        For each kernel the features that it sees; None for all.
    loss : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()
        phi.
    constraint : {"simplex", "l2"}, default="simplex"
        Weights that are not negative and sum to 1 (few of them survive), or lie in the unit ball.
    buffer : buffer, default=ReservoirX(100)
    rate : float > 0, default=1.0
        eta.
    average : bool, default=False
        Use the mean of all weights, as the theory does.
    random_state : int, Generator, RandomState or None
    reg : float >= 0, default=0.0

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        mu.
    kernel_ : kernel
        sum_i mu_i K_i over the kernels with a weight above 0.
    buffer_ids_, n_seen_, n_pairs_, memory_bytes_, classes_

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 6.6.4 (with the ball for the sphere);
    A. Kumar, A. Niculescu-Mizil, K. Kavukcuoglu, H. Daume, A Binary Classification Framework for Two-Stage
    Multiple Kernel Learning, ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from gristmill import Gaussian, Linear, Normalized, TwoStageMKL
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> kernels = [Gaussian(0.01), Gaussian(10.0), Normalized(Linear())]
    >>> model = TwoStageMKL(kernels, random_state=0).fit(scale(X), y)
    >>> model.kernel_
    1.0 * Normalized(base=Linear())
    """

    learning_task = LossTask()

    def __init__(
        self,
        kernels: Any = (),
        columns: Any = None,
        loss: object = None,
        constraint: str = "simplex",
        buffer: object = None,
        rate: float = 1.0,
        average: bool = False,
        random_state: RandomState = None,
        reg: float = 0.0,
    ) -> None:
        self.kernels = kernels
        self.columns = columns
        self.loss = loss
        self.constraint = constraint
        self.buffer = buffer
        self.rate = rate
        self.average = average
        self.random_state = random_state
        self.reg = reg

    def _views(self, width: int) -> list[Kernel]:
        """The base kernels as they will run; a width of 0 leaves the columns unchecked."""
        if isinstance(self.kernels, Kernel) or callable(self.kernels):
            raise ValueError(f"TwoStageMKL: kernels must be a list of kernels, got {self.kernels!r}")
        kernels = [as_kernel(kernel) for kernel in self.kernels]
        if not kernels:
            raise ValueError("TwoStageMKL: kernels must hold at least one kernel, got none")
        columns = [None] * len(kernels) if self.columns is None else list(self.columns)
        if len(columns) != len(kernels):
            raise ValueError(
                f"TwoStageMKL: columns must hold one entry a kernel, got {len(columns)} for {len(kernels)}"
            )
        views = [k if c is None else OnColumns(k, tuple(c)) for k, c in zip(kernels, columns, strict=True)]
        for view in views:
            if isinstance(view, OnColumns) and max(view.columns) >= width > 0:
                raise ValueError(f"TwoStageMKL: column {max(view.columns)} is asked for, but X has {width} features")
        return views

    def checked_parts(self) -> Any:
        self._check_range("rate", positive)
        self._check_range("reg", non_negative)
        self._check_range("average", flag)
        self._check_range("constraint", one_of("simplex", "l2"))
        check_margin_loss(self.loss, "TwoStageMKL")
        for kernel in self._views(0):
            if not kernel.positive_definite:
                warnings.warn(
                    f"TwoStageMKL: {kernel!r} is not positive definite, so the mixture may not be a kernel",
                    stacklevel=4,
                )
        check_buffer(self.buffer, 100)
        return _Mixing, {"owner": clone(self, safe=False)}

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Array:
        """Learn from X, y as `partial_fit` does; returns each event's mean loss against the buffer before."""
        return np.asarray(self._learn(X, y, want_scores=True, classes=classes))

    @property
    def weights_(self) -> Array:
        """mu."""
        return np.asarray(self._engine.weights())

    @property
    def kernel_(self) -> Kernel:
        """The mixture as a kernel."""
        views = self._views(self._engine.width)
        kept = [(float(w), view) for w, view in zip(self.weights_, views, strict=True) if w > 0]
        if not kept:
            raise ValueError("TwoStageMKL: every weight is 0, so there is no kernel; learn longer or use the simplex")
        if not all(view.is_native for _, view in kept):
            return Mixture(tuple(w for w, _ in kept), tuple(view for _, view in kept))
        mixture = kept[0][0] * kept[0][1]
        for weight, view in kept[1:]:
            mixture = mixture + weight * view
        return mixture
