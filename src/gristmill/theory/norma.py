"""NORMA: tuning for a moving target, the price of forgetting, and the cumulative risk.

J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8),
2004.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .._common.ranges import Range, count, is_real, non_negative, positive
from ._require import require

_growth = Range("a number in (0, 1/2)", lambda v: is_real(v) and 0 < v < 0.5)


@dataclass(frozen=True)
class NormaTuning:
    """Parameters of `SGD(Hinge(margin), rate, reg)` and what they guarantee."""

    margin: float  #: rho
    rate: float  #: eta
    reg: float  #: lambda
    bound: float  #: on margin errors (Theorem 2) or mistakes (Theorem 3)


def _step(gap: float, loss: float, capacity: float) -> float:
    """h(x, K, C) of eq. (30), in a form that does not cancel: the two limits in K come out by themselves."""
    if loss == 0:
        return gap / 2
    ratio = capacity / loss
    return ratio * gap / (math.sqrt(ratio * (gap + ratio)) + ratio)


def _tune(
    owner: str,
    gap: float,
    radius: float,
    comparator_norm: float,
    comparator_loss: float,
    path_length: float,
    path_energy: float,
    steps: int,
) -> tuple[float, float, float, float]:
    """h, eta, lambda and the bound for a gap mu - rho; also checks what the two theorems share."""
    require(owner, positive, radius=radius, comparator_norm=comparator_norm)
    require(owner, non_negative, comparator_loss=comparator_loss, path_length=path_length, path_energy=path_energy)
    require(owner, count, steps=steps)
    drift = math.sqrt(steps * path_energy) + path_length
    capacity = radius**2 * (comparator_norm**2 + comparator_norm * drift) / 4  # C, eq. (31)
    h = _step(gap, comparator_loss, capacity)
    free_rate = 2 * h / radius**2  # eta': the rate if nothing were forgotten
    reg = math.sqrt(path_energy / steps) / (comparator_norm * free_rate)  # eq. (32)
    errors, room = comparator_loss / gap, capacity / gap**2
    return (
        h,
        free_rate / (1 + free_rate * reg),
        reg,
        errors + 2 * room + 2 * math.sqrt(room * (errors + room)),
    )


def norma_margin_tuning(
    radius: float,
    comparator_norm: float,
    comparator_margin: float,
    margin: float,
    steps: int,
    comparator_loss: float = 0.0,
    path_length: float = 0.0,
    path_energy: float = 0.0,
) -> NormaTuning:
    """Rate and regularisation for few margin errors, and the bound on y f(x) <= margin (Theorem 2).

    Parameters
    ----------
    radius : float > 0
        X: k(x, x) <= X^2.
    comparator_norm : float > 0
        B: the comparator's norm is at most this at all times.
    comparator_margin : float > margin
        mu: the margin at which the comparator's loss is measured.
    margin : float >= 0
        rho: the learner's own.
    steps : int
        m: length of the stream.
    comparator_loss : float >= 0, default=0.0
        K: at least the comparator's cumulative hinge loss with margin mu.
    path_length, path_energy : float >= 0, default=0.0
        D1 and D2; a target that moves makes the learner forget (reg > 0).

    Returns
    -------
    NormaTuning
        margin, rate, reg and `bound`, on the learner's margin errors.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, Theorem 2.

    Examples
    --------
    >>> from gristmill.theory import norma_margin_tuning
    >>> tuned = norma_margin_tuning(1.0, comparator_norm=3.0, comparator_margin=1.0, margin=0.5, steps=100)
    >>> tuned.rate, tuned.bound
    (0.5, 36.0)
    """
    owner = "norma_margin_tuning"
    require(owner, non_negative, margin=margin)
    above = Range(f"a number > margin = {margin!r}", lambda v: is_real(v) and v > margin)
    require(owner, above, comparator_margin=comparator_margin)
    gap = comparator_margin - margin
    _, rate, reg, bound = _tune(owner, gap, radius, comparator_norm, comparator_loss, path_length, path_energy, steps)
    return NormaTuning(margin, rate, reg, bound)


def norma_mistake_tuning(
    radius: float,
    comparator_norm: float,
    comparator_margin: float,
    steps: int,
    comparator_loss: float = 0.0,
    path_length: float = 0.0,
    path_energy: float = 0.0,
    positive_margin: bool = False,
) -> NormaTuning:
    """Rate, regularisation and margin for few mistakes, and the bound on y f(x) <= 0 (Theorem 3).

    Parameters
    ----------
    radius, comparator_norm, comparator_margin, steps, comparator_loss, path_length, path_energy
        X, B, mu > 0, m, K, D1 and D2 as in `norma_margin_tuning`.
    positive_margin : bool, default=False
        The theorem allows two margins with one bound: 0, or the positive mu - h(mu, K, C).

    Returns
    -------
    NormaTuning
        margin, rate, reg and `bound`, on the learner's mistakes.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, Theorem 3.

    Examples
    --------
    >>> from gristmill.theory import norma_mistake_tuning
    >>> tuned = norma_mistake_tuning(1.0, 3.0, 1.0, steps=100, path_length=2.0, path_energy=0.05)
    >>> round(tuned.rate, 4), round(tuned.reg, 4), round(tuned.bound, 2)
    (0.9926, 0.0075, 21.71)
    """
    owner = "norma_mistake_tuning"
    require(owner, positive, comparator_margin=comparator_margin)
    h, rate, reg, bound = _tune(
        owner, comparator_margin, radius, comparator_norm, comparator_loss, path_length, path_energy, steps
    )
    return NormaTuning(comparator_margin - h if positive_margin else 0.0, rate, reg, bound)


def norma_norm_bound(reg: float, lipschitz: float = 1.0, radius: float = 1.0) -> float:
    """The largest norm NORMA's hypothesis can reach: U = c X / lambda (eq. 34).

    Parameters
    ----------
    reg : float > 0
        lambda.
    lipschitz : float > 0, default=1.0
        c: the loss changes at most so much per unit of score; 1 for hinge, logistic, epsilon-insensitive,
        Huber, max(quantile, 1 - quantile) for pinball.
    radius : float > 0, default=1.0
        X.

    Returns
    -------
    float

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, section V-B.

    Examples
    --------
    >>> from gristmill.theory import norma_norm_bound
    >>> norma_norm_bound(reg=0.5)
    2.0
    """
    require("norma_norm_bound", positive, reg=reg, lipschitz=lipschitz, radius=radius)
    return lipschitz * radius / reg


def _forgotten(owner: str, rate: float, reg: float) -> float:
    """rate * reg after checking that a step forgets no more than everything."""
    require(owner, positive, rate=rate, reg=reg)
    if rate * reg > 1:
        raise ValueError(f"{owner}: rate * reg must be at most 1, got {rate!r} * {reg!r} = {rate * reg!r}")
    return rate * reg


def norma_truncation_error(window: int, rate: float, reg: float, lipschitz: float = 1.0, radius: float = 1.0) -> float:
    """How far, in norm, dropping terms older than `window` steps can move the hypothesis (Proposition 1).

    Parameters
    ----------
    window : int
        tau: the terms of so many last steps are kept.
    rate, reg : float > 0
        eta (constant) and lambda, rate * reg <= 1.
    lipschitz, radius : float > 0, default=1.0
        c (the paper's C in this place) and X. A score moves by at most X times the result.

    Returns
    -------
    float

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, Proposition 1.

    Examples
    --------
    >>> from gristmill.theory import norma_truncation_error
    >>> round(norma_truncation_error(window=100, rate=0.1, reg=0.5), 6)
    0.011841
    """
    owner = "norma_truncation_error"
    require(owner, count, window=window)
    kept = 1 - _forgotten(owner, rate, reg)
    require(owner, positive, lipschitz=lipschitz, radius=radius)
    return float(kept**window) * lipschitz * radius / reg


def norma_window(error: float, rate: float, reg: float, lipschitz: float = 1.0, radius: float = 1.0) -> int:
    """The shortest window whose truncation error is at most `error`: Proposition 1 read backwards.

    Parameters
    ----------
    error : float > 0
        Wanted bound on the norm of what is dropped.
    rate, reg, lipschitz, radius
        As in `norma_truncation_error`.

    Returns
    -------
    int
        For `Window(steps)`.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, Proposition 1.

    Examples
    --------
    >>> from gristmill.theory import norma_window
    >>> norma_window(error=0.01, rate=0.1, reg=0.5)
    104
    """
    require("norma_window", positive, error=error, lipschitz=lipschitz, radius=radius)
    kept = 1 - _forgotten("norma_window", rate, reg)
    share = error * reg / (lipschitz * radius)
    return 1 if kept == 0 or share >= 1 else max(1, math.ceil(math.log(share) / math.log1p(-rate * reg)))


def norma_risk_bound(
    comparator_risk: float,
    steps: int,
    rate: float,
    reg: float,
    lipschitz: float = 1.0,
    radius: float = 1.0,
    truncated: bool = False,
) -> float:
    """Bound on the sum over the stream of reg/2 ||f_t||^2 + loss at x_t, with rates rate/sqrt(t) (Theorem 4).

    The truncated form (Theorem 6) is the corrected one. The proof allows ||f|| up to 3U, so gradients up to
    4cX and distances up to 4U, which gives a = 2 lambda U^2 (16 eta lambda + 4/(eta lambda)) and not the
    printed 2 lambda U^2 (10 eta lambda + 1/(eta lambda)).

    Parameters
    ----------
    comparator_risk : float
        R_reg[g]: the comparator's mean loss on the stream plus reg/2 ||g||^2.
    steps : int
        m.
    rate, reg : float > 0
        eta and lambda, rate * reg < 1 in the theorem.
    lipschitz, radius : float > 0, default=1.0
        c and X.
    truncated : bool, default=False
        The learner keeps ceil(t^(1/2 + growth)) terms from step `norma_truncation_start` on.

    Returns
    -------
    float
        m R_reg[g] + a sqrt(m) + b.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, Theorems 4 and 6.

    Examples
    --------
    >>> from gristmill.theory import norma_risk_bound
    >>> norma_risk_bound(comparator_risk=0.25, steps=10000, rate=0.5, reg=1.0)
    3101.0
    """
    owner = "norma_risk_bound"
    require(owner, Range("a finite number", is_real), comparator_risk=comparator_risk)
    require(owner, count, steps=steps)
    share = _forgotten(owner, rate, reg)
    limit = norma_norm_bound(reg, lipschitz, radius)  # U
    gradients, distances = (16.0, 4.0) if truncated else (2.0, 1.0)
    slope = 2 * reg * limit**2 * (gradients * share + distances / share)  # a
    return steps * comparator_risk + slope * math.sqrt(steps) + limit**2 / (2 * rate)


def norma_truncation_start(rate: float, reg: float, growth: float) -> float:
    """A step from which keeping ceil(t^(1/2 + growth)) terms is safe: t_0 of Theorem 6.

    From it on, for every t: rate reg <= sqrt(t), exp(-rate reg t^growth) <= rate reg/sqrt(t), and
    t^(1/2 + growth) + 1 <= 3t/4. The last puts 1 more for the rounding up, so that the result may lie
    slightly above the smallest such step, which does no harm. Before it, keep everything.

    Parameters
    ----------
    rate, reg : float > 0
        eta and lambda.
    growth : float in (0, 1/2)
        epsilon.

    Returns
    -------
    float
        A whole number; it can be astronomical when growth or rate * reg is small.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, 2004, appendix C.

    Examples
    --------
    >>> from gristmill.theory import norma_truncation_start
    >>> norma_truncation_start(rate=0.5, reg=1.0, growth=0.3)
    1270.0
    """
    owner = "norma_truncation_start"
    share = _forgotten(owner, rate, reg)
    require(owner, _growth, growth=growth)

    # In s = log t both conditions are "positive from some s on"; each is searched where it only rises.
    def decayed(s: float) -> float:
        return share * math.exp(growth * s) - s / 2 + math.log(share)

    def sparse(s: float) -> float:  # divided by t^(1/2 + growth)
        return 0.75 * math.exp((0.5 - growth) * s) - 1 - math.exp(-(0.5 + growth) * s)

    lowest = max(0.0, -math.log(2 * growth * share) / growth)
    begin = max(_last_root(decayed, lowest), _last_root(sparse, 0.0))
    return float(math.ceil(math.exp(begin) - 1e-9)) if begin < 700 else math.inf


def _last_root(rising: Callable[[float], float], low: float) -> float:
    """Where a function that rises from `low` on becomes non-negative; the start itself if it already is."""
    if rising(low) >= 0:
        return 0.0
    high = low + 1
    while rising(high) < 0:
        high = low + 2 * (high - low)
        if high > 1000:
            return math.inf
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return high
