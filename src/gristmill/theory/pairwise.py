"""Learning from pairs: online-to-batch bounds, the regret of OLP, Rademacher averages (tables 6.1-6.3).

All bounds are for losses with values in [0, B], with the constants of the proofs: sums that the text rounds
up are here summed. Tables 6.1 and 6.2 print sqrt(e log d) for norms of the L1 kind, which is below the truth
for d < 7 (0 for d = 1); here it is sqrt(max(e log d, 2 log 2d)), which a direct maximal inequality proves for
every d.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._common.ranges import Range, count, is_real, is_whole, non_negative, one_of, positive
from ._require import require

_probability = Range("a number in (0, 1)", lambda v: is_real(v) and 0 < v < 1)
_events = Range("a whole number >= 2", lambda v: is_whole(v) and v >= 2)
_exponent = Range("a number in (1, 2]", lambda v: is_real(v) and 1 < v <= 2)


def rademacher_auc(n: int, data_norm: float, radius: float, q: float = 2.0, features: int | None = None) -> float:
    """Rademacher average of linear scorers of pairs, {(x, x') -> <w, x - x'> : ||w||_q <= radius}.

    Parameters
    ----------
    n : int >= 1
        Points in the average.
    data_norm : float >= 0
        ||X||_p, the largest p-norm of a point, 1/p + 1/q = 1; for a kernel and q = 2 it is the root of the
        largest k(x, x).
    radius : float > 0
        ||W||_q.
    q : float in (1, 2], default=2.0
        Above 2 the squared norm is not strongly convex and table 6.1 is not proved (nor true: it would
        vanish).
    features : int >= 1, optional
        d: given, the ball is that of the 1-norm, and `data_norm` the largest |x_j|; q is not used.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, table 6.1.

    Examples
    --------
    >>> from gristmill.theory import rademacher_auc
    >>> rademacher_auc(n=100, data_norm=1.0, radius=2.0)
    0.4
    """
    owner = "rademacher_auc"
    require(owner, count, n=n)
    require(owner, non_negative, data_norm=data_norm)
    require(owner, positive, radius=radius)
    if features is not None:
        require(owner, count, features=features)
        return 2 * data_norm * radius * math.sqrt(_log_factor(features) / n)
    require(owner, _exponent, q=q)
    return 2 * data_norm * radius * math.sqrt((q / (q - 1) - 1) / n)


def _log_factor(features: int) -> float:
    return max(math.e * math.log(features), 2 * math.log(2 * features))


def rademacher_matrix(
    n: int,
    norm: str,
    radius: float,
    features: int,
    euclidean: float,
    largest: float = math.inf,
    metric: bool = False,
) -> float:
    """Rademacher average of similarities x^T W x' or metrics (x - x')^T W (x - x') with a bounded norm of W.

    Parameters
    ----------
    n : int >= 1
    norm : {"frobenius", "group", "l1", "trace"}
        (2,2), (2,1), (1,1) or trace norm.
    radius : float > 0
        The bound on it.
    features : int >= 1
        d.
    euclidean : float >= 0
        ||X||_2, the largest length of a point.
    largest : float >= 0
        ||X||_inf, the largest entry of a point; for "group" and "l1".
    metric : bool, default=False
        Differences are at most twice as long, so the average is at most four times as large.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, table 6.2.

    Examples
    --------
    >>> from gristmill.theory import rademacher_matrix
    >>> rademacher_matrix(n=100, norm="frobenius", radius=2.0, features=5, euclidean=1.0)
    0.2
    """
    owner = "rademacher_matrix"
    require(owner, count, n=n, features=features)
    require(owner, one_of("frobenius", "group", "l1", "trace"), norm=norm)
    require(owner, positive, radius=radius)
    require(owner, non_negative, euclidean=euclidean)
    if norm in ("group", "l1"):
        require(owner, non_negative, largest=largest)
    size, factor = {
        "frobenius": (euclidean**2, 1.0),
        "group": (euclidean * largest, _log_factor(features)),
        "l1": (largest**2, _log_factor(features**2)),
        "trace": (euclidean**2, _log_factor(features)),
    }[norm]
    return (4.0 if metric else 1.0) * size * radius * math.sqrt(factor / n)


def rademacher_mkl(n: int, kernels: int, bound: float, constraint: str = "simplex") -> float:
    """Rademacher average of the mixtures sum_i mu_i K_i with mu >= 0 in the simplex or in the unit ball.

    Parameters
    ----------
    n : int >= 1
    kernels : int >= 1
        p.
    bound : float >= 0
        kappa^2: |K_i(x, x')| <= bound.
    constraint : {"simplex", "l2"}, default="simplex"

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, table 6.3.

    Examples
    --------
    >>> from gristmill.theory import rademacher_mkl
    >>> rademacher_mkl(n=100, kernels=4, bound=1.0, constraint="l2")
    0.2
    """
    owner = "rademacher_mkl"
    require(owner, count, n=n, kernels=kernels)
    require(owner, non_negative, bound=bound)
    require(owner, one_of("simplex", "l2"), constraint=constraint)
    factor = math.e * math.log(kernels) if constraint == "simplex" else float(kernels)
    return bound * math.sqrt(factor / n)


def rademacher_of_loss(average: float, lipschitz: float, labels: float = 1.0) -> float:
    """Rademacher average of the losses phi(Y(y, y') h(x, x')): at most L Y times that of the h.

    Parameters
    ----------
    average : float >= 0
        R_n(H).
    lipschitz : float >= 0
        L of phi; 1 for the hinge.
    labels : float >= 0, default=1.0
        The largest |Y(y, y')|.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorem 6.10.

    Examples
    --------
    >>> from gristmill.theory import rademacher_of_loss
    >>> rademacher_of_loss(0.4, lipschitz=1.0)
    0.4
    """
    require("rademacher_of_loss", non_negative, average=average, lipschitz=lipschitz, labels=labels)
    return average * lipschitz * labels


def _deviation(n: int, size: int, average: Callable[[int], float], bound: float, delta: float) -> float:
    """How far the mean risk of the ensemble may lie above the mean of its losses on the way.

    The martingale of the new events (Azuma) takes delta/2; the n - 1 uniform deviations share the other half.
    """
    met = np.minimum(np.arange(1, n), size)  # points that event t = 2 .. n meets
    sizes, times = np.unique(met, return_counts=True)
    complexity = sum(k * average(int(m)) for m, k in zip(sizes, times, strict=True)) / (n - 1)
    uniform = math.sqrt(math.log(2 * (n - 1) / delta) / 2) * float(np.mean(1 / np.sqrt(met)))
    martingale = math.sqrt(2 * math.log(2 / delta) / (n - 1))
    return float(2 * complexity + bound * (uniform + martingale))


def pairwise_risk_bound(
    n: int,
    observed: float,
    average: Callable[[int], float],
    bound: float = 1.0,
    delta: float = 0.05,
    size: int | None = None,
) -> float:
    """The mean risk of the hypotheses h_1 .. h_{n-1}, from the losses that were seen on the way.

    Parameters
    ----------
    n : int >= 2
        Events, drawn independently.
    observed : float >= 0
        The mean over t = 2 .. n of the loss of event t against what it met: all earlier ones, or the buffer.
        For a convex loss the bound also holds for the averaged hypothesis.
    average : callable
        m -> R_m of the losses, as by `rademacher_of_loss(rademacher_auc(m, ...), ...)`.
    bound : float > 0, default=1.0
        B: losses lie in [0, B].
    delta : float in (0, 1), default=0.05
    size : int >= 1, optional
        s, of a buffer that does not look at the stream; without it all pairs are used.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemmas 6.1 and 6.7. The printed Lemma 6.7
    hides a term in 1/sqrt(n-1), and its proof loses a factor 2 of R for the events before the buffer is full;
    both are here.

    Examples
    --------
    >>> from gristmill.theory import pairwise_risk_bound, rademacher_auc
    >>> round(pairwise_risk_bound(100_000, 0.1, lambda m: rademacher_auc(m, 1.0, 0.5), size=1000), 3)
    0.26
    """
    owner = "pairwise_risk_bound"
    _check_setting(owner, n, bound, delta, size)
    require(owner, non_negative, observed=observed)
    return observed + _deviation(n, n if size is None else size, average, bound, delta)


def pairwise_excess_bound(
    n: int,
    regret: float,
    average: Callable[[int], float],
    bound: float = 1.0,
    delta: float = 0.05,
    size: int | None = None,
) -> float:
    """How far the mean risk of h_1 .. h_{n-1} may lie above that of the best hypothesis.

    Parameters
    ----------
    n : int >= 2
    regret : float >= 0
        Of the learner, with respect to all pairs, or to the buffer's if `size` is given: see
        `olp_regret_bound`.
    average : callable
        m -> R_m of the losses.
    bound : float > 0, default=1.0
        B: losses lie in [0, B].
    delta : float in (0, 1), default=0.05
    size : int >= 1, optional
        s of the buffer.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Theorems 6.3 and 6.6.

    Examples
    --------
    >>> from gristmill.theory import pairwise_excess_bound, rademacher_auc
    >>> round(pairwise_excess_bound(100_000, 500.0, lambda m: rademacher_auc(m, 1.0, 0.5), size=1000), 3)
    0.331
    """
    owner = "pairwise_excess_bound"
    _check_setting(owner, n, bound, delta, size)
    require(owner, non_negative, regret=regret)
    return regret / (n - 1) + 2 * _deviation(n, n if size is None else size, average, bound, delta / 2)


def _check_setting(owner: str, n: int, bound: float, delta: float, size: int | None) -> None:
    require(owner, _events, n=n)
    require(owner, positive, bound=bound)
    require(owner, _probability, delta=delta)
    if size is not None:
        require(owner, count, size=size)


def olp_rate(lipschitz: float, diameter: float) -> float:
    """The rate eta with which `olp_regret_bound` is proved: D/(sqrt2 L).

    Parameters
    ----------
    lipschitz : float > 0
        L: the length of a gradient of the loss.
    diameter : float > 0
        D: the largest distance of two hypotheses; twice the radius of a ball.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemma 6.24.

    Examples
    --------
    >>> from gristmill.theory import olp_rate
    >>> round(olp_rate(lipschitz=2.0, diameter=2.0), 4)
    0.7071
    """
    require("olp_rate", positive, lipschitz=lipschitz, diameter=diameter)
    return diameter / (math.sqrt(2) * lipschitz)


def olp_regret_bound(n: int, lipschitz: float, diameter: float) -> float:
    """Most regret of OLP against its buffer's losses: sqrt2 L D sqrt(n - 1), at the rate of `olp_rate`.

    Parameters
    ----------
    n : int >= 2
        Events.
    lipschitz : float > 0
        L.
    diameter : float > 0
        D.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemma 6.24 (where sqrt2 is missing).

    Examples
    --------
    >>> from gristmill.theory import olp_regret_bound
    >>> round(olp_regret_bound(101, lipschitz=2.0, diameter=2.0), 3)
    56.569
    """
    require("olp_regret_bound", _events, n=n)
    require("olp_regret_bound", positive, lipschitz=lipschitz, diameter=diameter)
    return math.sqrt(2) * lipschitz * diameter * math.sqrt(n - 1)


def all_pairs_regret_bound(
    n: int, size: int, buffer_regret: float, average: float, bound: float = 1.0, delta: float = 0.05
) -> float:
    """Most regret with respect to all pairs of a learner that saw the buffer of `ReservoirX` only.

    Parameters
    ----------
    n : int >= 2
    size : int >= 1
        s. Up to event s + 1 the buffer is the stream, and nothing is lost.
    buffer_regret : float >= 0
        With respect to the buffer's losses: `olp_regret_bound`.
    average : float >= 0
        R_s of the losses.
    bound : float > 0, default=1.0
        B.
    delta : float in (0, 1), default=0.05
        Over the draws of the buffer.

    Returns
    -------
    float

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Lemma 6.23 and Theorem 6.13.

    Examples
    --------
    >>> from gristmill.theory import all_pairs_regret_bound
    >>> round(all_pairs_regret_bound(10_000, 1000, 100.0, 0.01), 1)
    1719.5
    """
    owner = "all_pairs_regret_bound"
    _check_setting(owner, n, bound, delta, size)
    require(owner, non_negative, buffer_regret=buffer_regret, average=average)
    lost = max(0, n - size - 1)  # events that meet a sample, not the stream
    if lost == 0:
        return buffer_regret
    confidence = bound * math.sqrt(math.log(2 * lost / delta) / (2 * size))
    # the learner's own hypotheses need a uniform bound, the fixed best one does not
    return buffer_regret + lost * (2 * average + 2 * confidence)
