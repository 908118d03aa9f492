"""Projectron, Projectron++ and ALMA with projections.

F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009.
"""

from __future__ import annotations

import math

from .._common.ranges import Range, fraction, is_real, non_negative, positive
from ._require import require


def _bound(
    owner: str,
    tolerance: float,
    comparator_norm: float,
    comparator_loss: float,
    progress: float,
    radius: float,
) -> float:
    require(owner, non_negative, tolerance=tolerance, comparator_loss=comparator_loss, progress=progress)
    require(owner, positive, radius=radius)
    limit = 1 / tolerance if tolerance > 0 else math.inf
    below = Range(f"a number >= 0 and < 1/tolerance = {limit:.6g}", lambda v: is_real(v) and 0 <= v < limit)
    require(owner, below, comparator_norm=comparator_norm)
    scale = max(1.0, radius)  # the proof needs k <= R^2 with R >= 1
    left = 1 - tolerance * comparator_norm  # q: what projections leave of the margin
    length, loss = scale * comparator_norm / left, comparator_loss / left
    return length**2 + loss + length * math.sqrt(max(0.0, loss - progress / scale**2))


def projectron_mistake_bound(
    tolerance: float, comparator_norm: float, comparator_loss: float = 0.0, radius: float = 1.0
) -> float:
    """Most mistakes of the Projectron (Theorem 3).

    Parameters
    ----------
    tolerance : float >= 0
        eta: the largest norm of what a projection leaves out, `Project(tolerance)`.
    comparator_norm : float >= 0
        ||g||, below 1/eta.
    comparator_loss : float >= 0, default=0.0
        D_1: the comparator's cumulative hinge loss with margin 1.
    radius : float > 0, default=1.0
        R: k(x, x) <= R^2; the paper has R = 1. With several classes R^2 = 2 max k(x, x) (Theorem 6).

    Returns
    -------
    float
        With q = 1 - eta ||g||: R^2 ||g||^2/q^2 + D/q + (R ||g||/q) sqrt(D/q). Tolerance 0 is the
        Perceptron's bound.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, Theorem 3.

    Examples
    --------
    >>> from gristmill.theory import projectron_mistake_bound
    >>> projectron_mistake_bound(tolerance=0.25, comparator_norm=2.0, comparator_loss=2.0)
    28.0
    """
    return _bound("projectron_mistake_bound", tolerance, comparator_norm, comparator_loss, 0.0, radius)


def projectron_pp_mistake_bound(
    tolerance: float,
    comparator_norm: float,
    progress: float,
    comparator_loss: float = 0.0,
    radius: float = 1.0,
) -> float:
    """Most mistakes of Projectron++ with its proved margin step, `squared=False` (Theorem 4).

    Parameters
    ----------
    tolerance, comparator_norm, comparator_loss, radius
        eta > 0, ||g||, D_1 and R as in `projectron_mistake_bound`.
    progress : float >= 0
        B: the sum over the margin steps of tau (2 l - tau ||Pk||^2 - 2 delta/eta), from the run itself.

    Returns
    -------
    float

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, Theorem 4 (Theorem
    6 for several classes).

    Examples
    --------
    >>> from gristmill.theory import projectron_pp_mistake_bound
    >>> projectron_pp_mistake_bound(tolerance=0.25, comparator_norm=2.0, progress=3.0, comparator_loss=2.0)
    24.0
    """
    owner = "projectron_pp_mistake_bound"
    require(owner, positive, tolerance=tolerance)
    return _bound(owner, tolerance, comparator_norm, comparator_loss, progress, radius)


def alma_step(alpha: float, B: float) -> float:
    """The C of ALMA_2 that its mistake bound asks for: the positive root of C^2 + 2 (1 - alpha) B C = 1.

    Parameters
    ----------
    alpha : float in (0, 1]
        Share of the margin given away.
    B : float > 0
        Scale of the margin, as in `Alma(alpha, B, C)`.

    Returns
    -------
    float

    References
    ----------
    C. Gentile, A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001.

    Examples
    --------
    >>> from gristmill.theory import alma_step
    >>> alma_step(alpha=0.25, B=1.0), alma_step(alpha=1.0, B=3.0)
    (0.5, 1.0)
    """
    require("alma_step", fraction, alpha=alpha)
    require("alma_step", positive, B=B)
    half = (1 - alpha) * B
    return 1 / (half + math.hypot(half, 1.0))


def alma_correction_bound(margin: float, C: float, comparator_loss: float = 0.0, tolerance: float = 0.0) -> float:
    """Most corrections, so also mistakes, of ALMA_2 with or without projections (Theorem 7).

    The paper prints rho = 1/(C^2 (gamma - eta)^2) where its own proof needs that value for rho^2; here it is
    rho^2.

    Parameters
    ----------
    margin : float > tolerance
        gamma: the margin at which the comparator, of norm at most 1, is measured; k(x, x) <= 1.
    C : float > 0
        The learner's step, such that C^2 + 2 (1 - alpha) B C = 1: see `alma_step`.
    comparator_loss : float >= 0, default=0.0
        D_gamma: the comparator's cumulative hinge loss with margin gamma.
    tolerance : float >= 0, default=0.0
        eta: the largest residual of an instance that is projected.

    Returns
    -------
    float

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, Theorem 7.

    Examples
    --------
    >>> from gristmill.theory import alma_correction_bound
    >>> round(alma_correction_bound(margin=0.5, C=1.0, tolerance=0.25), 4)
    16.9443
    """
    owner = "alma_correction_bound"
    require(owner, non_negative, tolerance=tolerance, comparator_loss=comparator_loss)
    above = Range(f"a number > tolerance = {tolerance!r}", lambda v: is_real(v) and v > tolerance)
    require(owner, above, margin=margin)
    require(owner, positive, C=C)
    left = margin - tolerance
    loss, room = comparator_loss / left, 1 / (C * left) ** 2  # room: rho^2
    return loss + room / 2 + math.sqrt(room**2 / 4 + room * loss + room)


def alma_separable_bound(alpha: float, margin: float) -> float:
    """Most corrections of ALMA_2 with its default B and C on separable data.

    After that many it separates the data with margin at least (1 - alpha) gamma.

    Parameters
    ----------
    alpha : float in (0, 1]
        Share of the margin given away.
    margin : float in (0, 1]
        gamma: the largest margin of a function of norm 1, with k(x, x) = 1.

    Returns
    -------
    float
        2/gamma^2 (2/alpha - 1)^2 + 8/alpha - 4.

    References
    ----------
    C. Gentile, A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001.

    Examples
    --------
    >>> from gristmill.theory import alma_separable_bound
    >>> alma_separable_bound(alpha=1.0, margin=0.5)
    12.0
    """
    require("alma_separable_bound", fraction, alpha=alpha, margin=margin)
    return 2 / margin**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4
