"""Herbster's projection algorithms: bounds over a whole stream, and over any stretch of it.

M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001.
"""

from __future__ import annotations

from .._common.ranges import Range, is_real, non_negative, positive
from ._require import require


def _bound(owner: str, radius: float, comparator_norm: float, ball: float | None) -> float:
    require(owner, positive, radius=radius)
    if ball is None:
        require(owner, non_negative, comparator_norm=comparator_norm)
        return radius**2 * comparator_norm**2
    require(owner, positive, ball=ball)
    inside = Range(f"a number from 0 to ball = {ball!r}", lambda v: is_real(v) and 0 <= v <= ball)
    require(owner, inside, comparator_norm=comparator_norm)
    return radius**2 * (ball + comparator_norm) ** 2


def projection_mistake_bound(radius: float, comparator_norm: float, ball: float | None = None) -> float:
    """Most mistakes of the projection classifier, over the stream or any stretch of it (Theorems 2, 4).

    Parameters
    ----------
    radius : float > 0
        R: R^2 is the largest k(x, x) met.
    comparator_norm : float >= 0
        ||u|| of a u with y u(x) >= 1 for every event that is counted.
    ball : float > 0, optional
        gamma, the learner's `radius`. With it the bound holds for any stretch of the stream, from anywhere to
        anywhere, and u (of norm at most gamma) need only be right there.

    Returns
    -------
    float
        R^2 ||u||^2, or R^2 (gamma + ||u||)^2. It bounds also the sum of the squared hinge losses.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001, Theorems 2 and 4.

    Examples
    --------
    >>> from gristmill.theory import projection_mistake_bound
    >>> projection_mistake_bound(1.0, 3.0), projection_mistake_bound(1.0, 3.0, ball=4.0)
    (9.0, 49.0)
    """
    return _bound("projection_mistake_bound", radius, comparator_norm, ball)


def projection_loss_bound(radius: float, comparator_norm: float, ball: float | None = None) -> float:
    """Largest sum of max(0, |y - f| - epsilon)^2 of the projection regressor (Theorems 3, 5 and 6).

    Theorem 6 prints R = max k(x, x); it must be R^2 = max k(x, x), as here.

    Parameters
    ----------
    radius : float > 0
        R: R^2 is the largest k(x, x) met.
    comparator_norm : float >= 0
        ||u|| of a u with |u(x) - y| <= epsilon for every event that is counted.
    ball : float > 0, optional
        gamma, as in `projection_mistake_bound`.

    Returns
    -------
    float

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001, Theorems 3, 5 and 6.

    Examples
    --------
    >>> from gristmill.theory import projection_loss_bound
    >>> projection_loss_bound(radius=2.0, comparator_norm=1.5)
    9.0
    """
    return _bound("projection_loss_bound", radius, comparator_norm, ball)
