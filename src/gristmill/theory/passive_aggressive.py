"""Passive-aggressive learners with a limit on the step, and with a soft one."""

from __future__ import annotations

from .._common.ranges import non_negative, positive, positive_or_inf
from ._require import require, times


def passive_aggressive_mistake_bound(
    radius: float, C: float, comparator_norm: float, comparator_loss: float = 0.0
) -> float:
    """Most mistakes of PA-I: max(R^2, 1/C) (||u||^2 + 2 C D).

    Parameters
    ----------
    radius : float > 0
        R: k(x, x) <= R^2.
    C : float > 0, inf allowed
        Aggressiveness: the largest step.
    comparator_norm : float >= 0
        ||u||.
    comparator_loss : float >= 0, default=0.0
        D: the comparator's cumulative hinge loss with margin 1.

    Returns
    -------
    float
        inf for an infinite C and a comparator that errs.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR
    7, 2006, Theorem 4.

    Examples
    --------
    >>> from gristmill.theory import passive_aggressive_mistake_bound
    >>> passive_aggressive_mistake_bound(radius=1.0, C=0.5, comparator_norm=2.0, comparator_loss=3.0)
    14.0
    """
    owner = "passive_aggressive_mistake_bound"
    require(owner, positive, radius=radius)
    require(owner, positive_or_inf, C=C)
    require(owner, non_negative, comparator_norm=comparator_norm, comparator_loss=comparator_loss)
    return max(radius**2, 1 / C) * (comparator_norm**2 + times(2 * C, comparator_loss))


def passive_aggressive_loss_bound(
    radius: float, C: float, comparator_norm: float, comparator_squared_loss: float = 0.0
) -> float:
    """Largest sum of squared losses of PA-II: (R^2 + 1/(2C)) (||u||^2 + 2 C sum l*^2).

    Parameters
    ----------
    radius : float > 0
        R: k(x, x) <= R^2.
    C : float > 0, inf allowed
        Aggressiveness; inf is the hard learner, PA.
    comparator_norm : float >= 0
        ||u||.
    comparator_squared_loss : float >= 0, default=0.0
        Sum of the squares of the comparator's losses: hinge with margin 1, or beyond the tube in regression.

    Returns
    -------
    float
        It bounds the mistakes as well, each of which has a squared loss of at least 1.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR
    7, 2006, Theorem 5.

    Examples
    --------
    >>> from gristmill.theory import passive_aggressive_loss_bound
    >>> passive_aggressive_loss_bound(radius=1.0, C=0.5, comparator_norm=2.0, comparator_squared_loss=3.0)
    14.0
    """
    owner = "passive_aggressive_loss_bound"
    require(owner, positive, radius=radius)
    require(owner, positive_or_inf, C=C)
    require(owner, non_negative, comparator_norm=comparator_norm, comparator_squared_loss=comparator_squared_loss)
    return (radius**2 + 1 / (2 * C)) * (comparator_norm**2 + times(2 * C, comparator_squared_loss))
