"""Losses of a margin u, for pairs: `Hinge` and `Logistic` of `gristmill.losses`, and two more.

At the kink the hinge of a pair is active for u < margin, not at equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .._common.ranges import Range, positive
from ..losses import Hinge, Logistic, Loss

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, margin - u)^2: smooth where the hinge has a kink.

    Parameters
    ----------
    margin : float > 0, default=1.0

    References
    ----------
    P. Zhao, S. C. H. Hoi, R. Jin, T. Yang, Online AUC Maximization, ICML 2011.

    Examples
    --------
    >>> from gristmill import Fifo, PairwiseAUC
    >>> from gristmill.pairwise import SquaredHinge
    >>> model = PairwiseAUC(loss=SquaredHinge(), buffer=Fifo(10), rate=0.1).fit([[0.0], [1.0]], [0, 1])
    >>> round(float(model.coef_[0]), 4)
    0.1414
    """

    margin: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"margin": positive}
    tasks: ClassVar[tuple[str, ...]] = ("pairs",)

    def core_spec(self) -> dict[str, object]:
        return {"loss": "SquaredHinge", "width": self.margin}


@dataclass(frozen=True)
class ExponentialLoss(Loss):
    """exp(-u): its slope has no bound, so keep the rate small or give a radius.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 6.6.2.

    Examples
    --------
    >>> from gristmill import Fifo, PairwiseAUC
    >>> from gristmill.pairwise import ExponentialLoss
    >>> model = PairwiseAUC(loss=ExponentialLoss(), buffer=Fifo(10), rate=0.1).fit([[0.0], [1.0]], [0, 1])
    >>> round(float(model.coef_[0]), 4)
    0.0707
    """

    tasks: ClassVar[tuple[str, ...]] = ("pairs",)


def check_margin_loss(loss: object, owner: str) -> Loss:
    """The margin loss that is meant, None being Hinge(); what has no meaning for pairs is refused by name."""
    if loss is None:
        return Hinge()
    if not isinstance(loss, Hinge | Logistic | SquaredHinge | ExponentialLoss):
        raise TypeError(f"{owner}: loss must be Hinge(), SquaredHinge(), Logistic() or ExponentialLoss(), got {loss!r}")
    if isinstance(loss, Hinge) and loss.nu is not None:
        raise ValueError(f"{owner}: a margin of pairs does not adapt; use Hinge(margin) without nu, got {loss!r}")
    return loss


def margin_value(loss: Loss, u: npt.ArrayLike) -> Array:
    """phi(u) of one of the four losses."""
    u = np.asarray(u, dtype=float)
    if isinstance(loss, Hinge):
        return np.maximum(loss.margin - u, 0.0)
    if isinstance(loss, SquaredHinge):
        return np.maximum(loss.margin - u, 0.0) ** 2
    if isinstance(loss, Logistic):
        return np.asarray(np.logaddexp(0.0, -u))
    return np.asarray(np.exp(-u))


def margin_slope(loss: Loss, u: npt.ArrayLike) -> Array:
    """phi'(u) of one of the four losses; 0 at the hinge's kink."""
    u = np.asarray(u, dtype=float)
    if isinstance(loss, Hinge):
        return np.where(u < loss.margin, -1.0, 0.0)
    if isinstance(loss, SquaredHinge):
        return -2.0 * np.maximum(loss.margin - u, 0.0)
    if isinstance(loss, Logistic):
        return np.asarray(-np.exp(-np.logaddexp(0.0, u)))
    return np.asarray(-np.exp(-u))
