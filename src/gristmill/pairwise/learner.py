"""The OLP loop over any pairwise loss and any convex set, in Python: for what the core does not have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._base.tasks import REGRESSION
from .._common.ranges import Checked, Range, flag, instance_of, non_negative, positive
from .._common.types import RandomState
from ..losses import Hinge, Loss
from ._base import PairStreamLearner
from ._buffered_rows import BufferedRows
from ._python_loop import PairLoop
from .buffers import check_buffer
from .losses import check_margin_loss, margin_slope, margin_value
from .projections import ConvexSet

Array = npt.NDArray[np.float64]


class PairwiseLoss(Checked):
    """A loss of one event against the events of a buffer. One of your own needs the three methods."""

    def shape(self, width: int) -> tuple[int, ...]:
        """The shape of the hypothesis for so many features."""
        return (width,)

    def value(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> float:
        """The mean loss of (x, y) against the rows `others` with their `labels`."""
        raise NotImplementedError

    def gradient(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        """Its gradient in w, of the shape of w."""
        raise NotImplementedError


@dataclass(frozen=True)
class _MarginPairs(PairwiseLoss):
    phi: Loss = field(default_factory=Hinge)

    _ranges: ClassVar[dict[str, Range]] = {"phi": instance_of(Loss, "a margin loss such as Hinge()")}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_margin_loss(self.phi, type(self).__name__)

    def _margins(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        raise NotImplementedError

    def value(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> float:
        return float(margin_value(self.phi, self._margins(w, x, y, others, labels)).mean())

    def _slopes(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        return margin_slope(self.phi, self._margins(w, x, y, others, labels)) / len(others)


@dataclass(frozen=True)
class AUCPairs(_MarginPairs):
    """phi(sign(y - y') <w, x - x'>): the order of two events; labels may be any ordered numbers.

    Parameters
    ----------
    phi : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.pairwise import AUCPairs
    >>> AUCPairs().value(np.zeros(1), np.array([1.0]), 1.0, np.array([[0.0]]), np.array([-1.0]))
    1.0
    """

    def _margins(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        return np.sign(y - labels) * (w @ x - others @ w)

    def gradient(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        weights = self._slopes(w, x, y, others, labels) * np.sign(y - labels)
        return np.asarray(weights.sum() * x - weights @ others)


@dataclass(frozen=True)
class MetricPairs(_MarginPairs):
    """phi(s (1 - (x - x')^T W (x - x'))), s = +1 for equal labels and -1 for others.

    Parameters
    ----------
    phi : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.pairwise import MetricPairs
    >>> MetricPairs().value(np.eye(1), np.array([1.0]), 0.0, np.array([[0.0]]), np.array([1.0]))
    1.0
    """

    def shape(self, width: int) -> tuple[int, ...]:
        return (width, width)

    def _margins(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        difference = x - others
        distances = np.einsum("ij,jk,ik->i", difference, w, difference)
        return np.asarray(np.where(labels == y, 1.0, -1.0) * (1.0 - distances))

    def gradient(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        weights = -self._slopes(w, x, y, others, labels) * np.where(labels == y, 1.0, -1.0)
        difference = x - others
        return np.asarray((difference * weights[:, None]).T @ difference)


@dataclass(frozen=True)
class AlignmentPairs(_MarginPairs):
    """phi(s x^T W x'), s = +1 for equal labels and -1 for others.

    Parameters
    ----------
    phi : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.pairwise import AlignmentPairs
    >>> AlignmentPairs().value(np.eye(1), np.array([1.0]), 0.0, np.array([[2.0]]), np.array([1.0]))
    3.0
    """

    def shape(self, width: int) -> tuple[int, ...]:
        return (width, width)

    def _margins(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        return np.where(labels == y, 1.0, -1.0) * (others @ (w.T @ x))

    def gradient(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        weights = self._slopes(w, x, y, others, labels) * np.where(labels == y, 1.0, -1.0)
        return np.outer(x, weights @ others)


@dataclass(frozen=True)
class GoodnessPairs(AlignmentPairs):
    """phi(mean of s x^T W x'): the mean inside phi, so never above `AlignmentPairs`, for phi is convex.

    Parameters
    ----------
    phi : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.pairwise import GoodnessPairs
    >>> GoodnessPairs().value(np.eye(1), np.array([1.0]), 0.0, np.array([[2.0], [2.0]]), np.array([1.0, 0.0]))
    1.0
    """

    def _margins(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        return np.asarray(super()._margins(w, x, y, others, labels).mean(keepdims=True))

    def gradient(self, w: Array, x: Array, y: float, others: Array, labels: Array) -> Array:
        slope = margin_slope(self.phi, self._margins(w, x, y, others, labels))[0]
        return np.outer(x, slope * (np.where(labels == y, 1.0, -1.0) @ others) / len(others))


def _read_only(array: Array) -> Array:
    """A view that a user's loss cannot write to."""
    view = array.view()
    view.flags.writeable = False
    return view


class _Loop(PairLoop):
    """The loop: event after event, any loss, any projection."""

    def __init__(self, owner: PairwiseLearner, width: int, seed: int) -> None:
        self.loss, self.set, self.width = owner._loss(), owner.projection, width
        if isinstance(self.set, ConvexSet):
            # a set of the wrong dimension shows here
            self.set.project(self.set.start(self.loss.shape(width)))
        shape = self.loss.shape(width)
        start: Array = np.zeros(shape) if self.set is None else np.asarray(self.set.start(shape), dtype=float)
        rows = BufferedRows(check_buffer(owner.buffer, 100), width, seed)
        super().__init__(start, rows, owner.rate, owner.reg, owner.average)

    def _classes_of(self, labels: Array) -> int:
        return 0  # labels are numbers for the loss

    def _pass(self, rows: Array, labels: Array) -> Array:
        return np.array([self._event(i, x, y) for i, (x, y) in enumerate(zip(rows, labels.tolist(), strict=True))])

    def _event(self, row: int, x: Array, y: float) -> float:
        filled, loss, w = self.rows.filled, 0.0, self.w
        if filled > 0:
            seen = [_read_only(part) for part in (x, self.rows.points[:filled], self.rows.labels[:filled])]
            loss = float(self._number(row, "value", _read_only(w), y, *seen))
            gradient = self._number(row, "gradient", _read_only(w), y, *seen)
            if gradient.shape != w.shape:
                raise ValueError(
                    f"row {row}: the gradient of {self.loss!r} must have the hypothesis's "
                    f"shape {w.shape}, got {gradient.shape}"
                )
            if not np.isfinite(gradient).all() or not np.isfinite(loss):
                raise ValueError(f"row {row}: value or gradient of {self.loss!r} is not finite")
            w = self.stepped(gradient)
            if self.set is not None:
                w = self.set.project(w)
        self.rows.offer(x, y)
        self.take(w, filled)
        return loss

    def _number(self, row: int, method: str, w: Array, y: float, x: Array, others: Array, labels: Array) -> Array:
        """The values of the loss as numbers; anything else is refused by name."""
        returned = getattr(self.loss, method)(w, x, y, others, labels)
        try:
            found = np.asarray(returned)
            if found.dtype.kind not in "biuf" or (method == "value" and found.ndim):
                raise TypeError
        except (TypeError, ValueError):
            what = "a number" if method == "value" else f"an array of shape {w.shape}"
            raise ValueError(f"row {row}: {method}() of {self.loss!r} must return {what}, got {returned!r}") from None
        return found.astype(float)


class PairwiseLearner(PairStreamLearner):
    """Online learning with any pairwise loss (OLP): an event, a step over the buffer, a projection.

    w_t = P[w_{t-1} - rate/sqrt(t) * mean gradient over the buffer]; the first event has no pair and moves
    nothing. It runs in Python. For AUC, metrics and similarities the learners of their own run in the core
    and give the same numbers.

    Parameters
    ----------
    loss : pairwise loss, default=AUCPairs()
        `AUCPairs`, `MetricPairs`, `AlignmentPairs`, `GoodnessPairs`, or an object with `shape`, `value` and
        `gradient`.
    projection : ConvexSet or None, default=None
        `L2Ball`, `L1Ball`, `Simplex`, `PSDCone`, `TraceBall`, `GroupBall`, or an object with `project` and
        `start`.
    buffer : buffer, default=ReservoirX(100)
    rate : float > 0, default=1.0
        eta.
    average : bool, default=False
        `weights_` is the mean of all hypotheses, as in the theory.
    random_state : int, Generator, RandomState or None
    reg : float >= 0, default=0.0
        sigma of a strongly convex regulariser reg/2 |w|^2; the step is then rate/(reg t).

    Attributes
    ----------
    weights_ : array
        w, in the shape of the loss.
    buffer_ids_, n_seen_, n_pairs_, memory_bytes_

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Algorithm 8 (with the sign of the step set
    right).

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.pairwise import AUCPairs, L1Ball, PairwiseLearner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5)); y = np.sign(X[:, 0] + 0.1 * rng.normal(size=300))
    >>> model = PairwiseLearner(AUCPairs(), L1Ball(1.0), random_state=0).fit(X, y)
    >>> print(f"{np.abs(model.weights_).sum():.3f} {model.weights_[0]:.3f}")
    1.000 0.970
    """

    learning_task = REGRESSION

    def __init__(
        self,
        loss: object = None,
        projection: Any = None,
        buffer: object = None,
        rate: float = 1.0,
        average: bool = False,
        random_state: RandomState = None,
        reg: float = 0.0,
    ) -> None:
        self.loss = loss
        self.projection = projection
        self.buffer = buffer
        self.rate = rate
        self.average = average
        self.random_state = random_state
        self.reg = reg

    def checked_parts(self) -> Any:
        self._check_range("rate", positive)
        self._check_range("reg", non_negative)
        self._check_range("average", flag)
        loss = self._loss()
        if isinstance(loss, type) or not all(hasattr(loss, m) for m in ("shape", "value", "gradient")):
            raise TypeError(f"PairwiseLearner: loss must have the methods shape, value and gradient, got {loss!r}")
        fine = self.projection is None or all(hasattr(self.projection, m) for m in ("project", "start"))
        if isinstance(self.projection, type) or not fine:
            raise TypeError(
                f"PairwiseLearner: projection must be a set such as L2Ball(1.0) or None, got {self.projection!r}"
            )
        check_buffer(self.buffer, 100)
        return _Loop, {"owner": clone(self, safe=False)}

    def _loss(self) -> Any:
        return AUCPairs() if self.loss is None else self.loss

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """A loss of any labels has no classes."""
        raise AttributeError("PairwiseLearner has no classes: its labels are numbers for the loss")

    def prequential(self, X: Any, y: Any = None) -> Array:
        """Learn from X, y as `partial_fit` does; returns each event's mean loss against the buffer before."""
        return np.asarray(self._learn(X, y, want_scores=True))

    @property
    def weights_(self) -> Array:
        """The hypothesis."""
        return np.asarray(self._engine.weights())
