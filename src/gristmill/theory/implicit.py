"""ILK and SILK: the mistakes of implicit steps against a comparator that may move, and their cumulative risk."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .._common.ranges import Range, count, is_real, non_negative, positive, positive_or_inf
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
        X: k(x, x) <= X^2; with more than two classes 2 k(x, x) <= X^2.
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


def implicit_risk_bound(
    comparator_risk: float,
    steps: int,
    rate: float,
    reg: float,
    C: float = 1.0,
    radius: float = 1.0,
    comparator_norm: float | None = None,
    dropped: npt.ArrayLike | None = None,
) -> float:
    """Bound on the sum over the stream of reg/2 ||f_t||^2 + C loss at x_t, with rates rate/sqrt(t) (Theorem 3).

    For `Implicit(Hinge(...) or Logistic(), C, rate, reg, schedule="inv_sqrt")` and U = C X/lambda it is

        T R[g] + (4 eta C^2 X^2 + (B + U)^2/(2 eta)) sqrt(T) + B^2/(2 eta),

    which is the printed bound for B = U. The theorem says "for any g"; its proof needs ||g|| <= U, which the minimiser
    fulfils.

    Parameters
    ----------
    comparator_risk : float
        R[g]: C times the comparator's mean loss on the stream, plus reg/2 ||g||^2.
    steps : int
        T.
    rate, reg : float > 0
        eta and lambda.
    C : float > 0, default=1.0
        Weight of the loss.
    radius : float > 0, default=1.0
        X: k(x, x) <= X^2; with more than two classes 2 k(x, x) <= X^2.
    comparator_norm : float >= 0, optional
        B: the comparator's norm, U if not given.
    dropped : array of shape (steps,), optional
        For SILK: the norm |alpha| sqrt(k(x, x)) of the term that left after each event, 0 where none did. It adds
        d (B + U + d/2)/eta_t for each. The paper claims sqrt(T) for SILK as well, with 4 eta (1 + 2/lambda) C^2 X^2 in
        place of 4 eta C^2 X^2; that is false for a buffer of a fixed size: on two points that come in turn, a buffer of
        one point pays a constant excess at every event.

    Returns
    -------
    float

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels,
    NIPS 2006, Theorem 3, with the changes above.

    Examples
    --------
    >>> from gristmill.theory import implicit_risk_bound
    >>> implicit_risk_bound(comparator_risk=0.25, steps=10000, rate=0.5, reg=1.0)
    3101.0
    """
    owner = "implicit_risk_bound"
    require(owner, Range("a finite number", is_real), comparator_risk=comparator_risk)
    require(owner, count, steps=steps)
    require(owner, positive, rate=rate, reg=reg, C=C, radius=radius)
    limit = C * radius / reg  # U
    norm = limit if comparator_norm is None else comparator_norm
    require(owner, non_negative, comparator_norm=norm)
    slope = 4 * rate * (C * radius) ** 2 + (norm + limit) ** 2 / (2 * rate)  # a
    bound = steps * comparator_risk + slope * math.sqrt(steps) + norm**2 / (2 * rate)
    if dropped is None:
        return bound
    lost = np.asarray(dropped, dtype=np.float64)
    if lost.shape != (steps,) or not np.all(np.isfinite(lost) & (lost >= 0)):
        raise ValueError(f"{owner}: dropped must be {steps} numbers >= 0, got an array of shape {lost.shape}")
    rates = rate / np.sqrt(np.arange(1, steps + 1))
    return bound + float(np.sum(lost * (norm + limit + lost / 2) / rates))
