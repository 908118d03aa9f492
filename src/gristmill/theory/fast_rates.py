"""Fast rates for strongly convex losses: of one sample at a time, and of pairs with and without a buffer.

The loss is g(<h, phi>) + r(h), g with slopes of at most L, |phi| <= R, and r sigma-strongly convex, such as reg/2 |h|^2 with
sigma = reg. The document states the pairwise bounds up to constants; here they are computed with those of its proofs.
"""

from __future__ import annotations

import math

import numpy as np

from .._common.ranges import Range, count, is_real, is_whole, non_negative, positive
from ._require import require

_probability = Range("a number in (0, 1)", lambda v: is_real(v) and 0 < v < 1)
_small_probability = Range("a number in (0, 1/e)", lambda v: is_real(v) and 0 < v < 1 / math.e)
_events = Range("a whole number >= 4", lambda v: is_whole(v) and v >= 4)


def _constant(share: float, lipschitz: float, data_norm: float, dimension: float, delta: float) -> float:
    """C_delta of Theorem 6.4."""
    return (dimension * 4 * (1 + share) * lipschitz * data_norm) ** 2 * (32 + math.log(1 / delta))


def strongly_convex_excess_bound(
    n: int,
    observed: float,
    strength: float,
    lipschitz: float = 1.0,
    data_norm: float = 1.0,
    delta: float = 0.05,
    share: float = 1.0,
    dimension: float = 1.0,
) -> float:
    """How far the risk of any hypothesis lies above the least one, from how far its mean loss on n samples does.

    P(f) - P(f*) <= (1 + share) observed + C/(share sigma n), C = (4 dimension (1 + share) L R)^2 (32 + log(1/delta)),
    for all f at once.

    Parameters
    ----------
    n : int >= 1
        Samples, drawn independently.
    observed : float
        Mean loss of f on the sample less that of f*; at most mean loss of f less the least mean loss.
    strength : float > 0
        sigma: of strong convexity.
    lipschitz : float > 0, default=1.0
        L: slopes of g, without the regulariser.
    data_norm : float > 0, default=1.0
        R: |phi(x)| <= R in the dual norm.
    delta : float in (0, 1), default=0.05
    share : float > 0, default=1.0
        epsilon, chosen beforehand: small where `observed` is large.
    dimension : float >= 1, default=1.0
        C_d: 1 for the 2-norm, sqrt(log d) for the 1-norm and the trace norm.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 6.4.

    Examples
    --------
    >>> from gristmill.theory import strongly_convex_excess_bound
    >>> round(strongly_convex_excess_bound(1_000_000, observed=0.001, strength=1.0), 5)
    0.00424
    """
    owner = "strongly_convex_excess_bound"
    require(owner, count, n=n)
    require(owner, Range("a finite number", is_real), observed=observed)
    require(owner, positive, strength=strength, lipschitz=lipschitz, data_norm=data_norm, share=share)
    require(owner, positive, dimension=dimension)
    require(owner, _probability, delta=delta)
    return (1 + share) * observed + _constant(share, lipschitz, data_norm, dimension, delta) / (share * strength * n)


def strongly_convex_regret_bound(n: int, gradient: float, strength: float) -> float:
    """Most regret of gradient steps 1/(sigma t) on sigma-strongly convex losses: G^2/(2 sigma) (1 + log(n - 1)).

    It is what `pairwise_fast_excess_bound` asks for. With steps from 0, t may count all events, as pairwise learners with
    `reg` and rate 1 do, or only those that have a pair.

    Parameters
    ----------
    n : int >= 4
        Events; the first has no pair.
    gradient : float > 0
        G: the length of a gradient, regulariser included.
    strength : float > 0
        sigma.

    Returns
    -------
    float

    References
    ----------
    E. Hazan, A. Agarwal, S. Kale, Logarithmic Regret Algorithms for Online Convex Optimization, 2007.

    Examples
    --------
    >>> from gristmill.theory import strongly_convex_regret_bound
    >>> round(strongly_convex_regret_bound(1001, gradient=2.0, strength=0.5), 2)
    31.63
    """
    owner = "strongly_convex_regret_bound"
    require(owner, _events, n=n)
    require(owner, positive, gradient=gradient, strength=strength)
    return gradient**2 / (2 * strength) * (1 + math.log(n - 1))


def pairwise_fast_excess_bound(
    n: int,
    regret: float,
    strength: float,
    lipschitz: float = 1.0,
    data_norm: float = 1.0,
    bound: float = 1.0,
    delta: float = 0.05,
    size: int | None = None,
    dimension: float = 1.0,
) -> float:
    """How far the mean risk of h_1 .. h_{n-1} lies above the least risk, for strongly convex losses of pairs.

    The sum D of the excess risks solves D <= (1 + e) (regret + max(8 L R sqrt(D/sigma), 6 B q) q) + C H/(e sigma) with
    q = sqrt(log(8 log(n - 1)/delta)), C that of Theorem 6.4 for delta/(2n - 2) and H = sum_t 1/min(t - 1, s); half of delta
    goes to each of the two parts. The result is the least of D/(n - 1) over e. For logarithmic regret it falls as log^2(n)/n
    with all pairs (Theorem 6.5), and as log(n)/s with a buffer (Theorem 6.9), where `pairwise_excess_bound` falls as
    1/sqrt(n) and 1/sqrt(s). The constants are large: with L = R = sigma = 1 the slow bound is the smaller one up to some
    3 million events.

    Parameters
    ----------
    n : int >= 4
        Events, drawn independently.
    regret : float >= 0
        Of the learner with respect to all pairs, or to the buffer's if `size` is given:
        `strongly_convex_regret_bound`.
    strength : float > 0
        sigma.
    lipschitz : float > 0, default=1.0
        L: slopes of g, without the regulariser.
    data_norm : float > 0, default=1.0
        R: |phi(z, z')| <= R, for AUC the largest |x - x'|.
    bound : float > 0, default=1.0
        B: g lies in [0, B].
    delta : float in (0, 1/e), default=0.05
    size : int >= 1, optional
        s, of a buffer that does not look at the stream; without it all pairs are used.
    dimension : float >= 1, default=1.0
        C_d: 1 for the 2-norm, sqrt(log d) for the 1-norm and the trace norm.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorems 6.5 and 6.9.

    Examples
    --------
    >>> from gristmill.theory import pairwise_fast_excess_bound, strongly_convex_regret_bound
    >>> n = 10_000_000
    >>> round(pairwise_fast_excess_bound(n, strongly_convex_regret_bound(n, 2.0, 1.0), strength=1.0), 4)
    0.0068
    """
    owner = "pairwise_fast_excess_bound"
    require(owner, _events, n=n)
    require(owner, non_negative, regret=regret)
    require(
        owner, positive, strength=strength, lipschitz=lipschitz, data_norm=data_norm, bound=bound, dimension=dimension
    )
    require(owner, _small_probability, delta=delta)
    if size is not None:
        require(owner, count, size=size)
    met = n - 1 if size is None else min(size, n - 1)
    harmonic = math.fsum(1 / t for t in range(1, met + 1)) if met <= 10_000 else math.log(met) + 1
    harmonic += (n - 1 - met) / met
    q2 = math.log(8 * math.log(n - 1) / delta)
    steps = np.geomspace(1e-4, 1e4, 4001)  # e
    constant = (4 * dimension * (1 + steps) * lipschitz * data_norm) ** 2 * (32 + math.log(2 * (n - 1) / delta))
    base = (1 + steps) * regret + constant * harmonic / (steps * strength)
    root = (1 + steps) * 8 * lipschitz * data_norm * math.sqrt(q2 / strength)
    spread = ((root + np.sqrt(root**2 + 4 * base)) / 2) ** 2  # D <= base + root sqrt(D)
    total = np.maximum(spread, base + (1 + steps) * 6 * bound * q2)
    return float(np.min(total)) / (n - 1)
