"""ILK: the mistakes of implicit steps with the hinge loss, against a comparator that may move."""

from __future__ import annotations

import math

from .._common.ranges import count, non_negative, positive, positive_or_inf
from ._require import require, times


def implicit_mistake_bound(
    radius: float,
    C: float,
    comparator_norm: float,
    steps: int,
    rate: float = 1.0,
    reg: float = 0.0,
    margin: float = 1.0,
    comparator_loss: float = 0.0,
    path_length: float = 0.0,
    path_energy: float = 0.0,
) -> float:
    """Most mistakes of the implicit learner with the hinge loss and a constant rate.

    This replaces the paper's Theorem 2, whose bound is the optimum over the rate although the rate is not
    tuned, and which fails for small C. With rho' = rho (1 + eta lambda) the bound is

        max(X^2/rho'^2, 1/(eta C rho')) (B^2 + B D1 + (D2/(eta lambda) + T eta lambda B^2)/2 + 2 eta C K).

    Parameters
    ----------
    radius : float > 0
        X: k(x, x) <= X^2.
    C : float > 0, inf allowed
        Weight of the loss.
    comparator_norm : float >= 0
        B: the comparator's norm is at most this at all times.
    steps : int
        T: length of the stream.
    rate : float > 0, default=1.0
        eta.
    reg : float >= 0, default=0.0
        lambda.
    margin : float > 0, default=1.0
        rho of the hinge loss.
    comparator_loss : float >= 0, default=0.0
        K: the comparator's cumulative hinge loss with the larger margin rho (1 + eta lambda).
    path_length, path_energy : float >= 0, default=0.0
        D1 and D2 of a comparator that moves.

    Returns
    -------
    float
        inf where nothing is promised: a moving comparator with reg = 0, or infinite C with a loss.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels,
    NIPS 2006, Theorem 2, replaced as said above.

    Examples
    --------
    >>> from gristmill.theory import implicit_mistake_bound
    >>> implicit_mistake_bound(radius=1.0, C=0.5, comparator_norm=2.0, steps=1000, comparator_loss=3.0)
    14.0
    """
    owner = "implicit_mistake_bound"
    require(owner, positive, radius=radius, rate=rate, margin=margin)
    require(owner, positive_or_inf, C=C)
    require(owner, count, steps=steps)
    require(owner, non_negative, comparator_norm=comparator_norm, reg=reg, comparator_loss=comparator_loss)
    require(owner, non_negative, path_length=path_length, path_energy=path_energy)
    share = rate * reg
    if share == 0 and (path_length > 0 or path_energy > 0):
        return math.inf  # a learner that forgets nothing can be led arbitrarily far away
    wide = margin * (1 + share)  # rho'
    drift = comparator_norm * path_length
    if share > 0:
        drift += (path_energy / share + steps * share * comparator_norm**2) / 2
    start = comparator_norm**2
    return max(radius**2 / wide**2, 1 / (rate * C * wide)) * (start + drift + times(2 * rate * C, comparator_loss))
