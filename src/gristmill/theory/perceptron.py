"""The Perceptron and what stays close to it: Forgetron and ROMMA."""

from __future__ import annotations

import math

from .._common.ranges import Range, is_real, is_whole, non_negative, positive
from ._require import require

# Below 83 points the proof's constants do not close: 1/(B+1) + 2/sqrt(B+1) + 1/(2 sqrt(log(B+1))) > 15/32.
_proved_size = Range("a whole number >= 83, where the theorem starts", lambda v: is_whole(v) and v >= 83)


def perceptron_mistake_bound(radius: float, comparator_norm: float, comparator_loss: float = 0.0) -> float:
    """Most mistakes of the Perceptron: R^2 ||u||^2 + D + R ||u|| sqrt(D).

    Parameters
    ----------
    radius : float > 0
        R: k(x, x) <= R^2.
    comparator_norm : float >= 0
        ||u||.
    comparator_loss : float >= 0, default=0.0
        D: the comparator's cumulative hinge loss with margin 1.

    Returns
    -------
    float

    References
    ----------
    Y. Freund, R. E. Schapire, Large Margin Classification Using the Perceptron Algorithm, Machine Learning
    37, 1999; the form with the hinge loss: C. Gentile, The Robustness of the p-Norm Algorithms, Machine
    Learning 53, 2003.

    Examples
    --------
    >>> from gristmill.theory import perceptron_mistake_bound
    >>> perceptron_mistake_bound(radius=1.0, comparator_norm=2.0, comparator_loss=9.0)
    19.0
    """
    owner = "perceptron_mistake_bound"
    require(owner, positive, radius=radius)
    require(owner, non_negative, comparator_norm=comparator_norm, comparator_loss=comparator_loss)
    length = radius * comparator_norm
    return length**2 + comparator_loss + length * math.sqrt(comparator_loss)


def romma_mistake_bound(radius: float, comparator_norm: float) -> float:
    """Most mistakes of ROMMA, plain or aggressive, on separable data: R^2 ||u||^2.

    Parameters
    ----------
    radius : float > 0
        R: k(x, x) <= R^2.
    comparator_norm : float >= 0
        ||u|| of a u with y u(x) >= 1 on every event.

    Returns
    -------
    float

    References
    ----------
    Y. Li, P. M. Long, The Relaxed Online Maximum Margin Algorithm, Machine Learning 46, 2002.

    Examples
    --------
    >>> from gristmill.theory import romma_mistake_bound
    >>> romma_mistake_bound(radius=1.0, comparator_norm=2.5)
    6.25
    """
    require("romma_mistake_bound", positive, radius=radius)
    require("romma_mistake_bound", non_negative, comparator_norm=comparator_norm)
    return radius**2 * comparator_norm**2


def forgetron_norm_limit(size: int) -> float:
    """The largest norm of a comparator that the Forgetron with so many points can keep up with.

    Parameters
    ----------
    size : int >= 83
        B: points stored. The theorem says nothing about fewer.

    Returns
    -------
    float
        U = sqrt((B+1)/log(B+1))/4.

    References
    ----------
    O. Dekel, S. Shalev-Shwartz, Y. Singer, The Forgetron: A Kernel-Based Perceptron on a Budget, SIAM
    Journal on Computing 37(5), 2008.

    Examples
    --------
    >>> from gristmill.theory import forgetron_norm_limit
    >>> round(forgetron_norm_limit(1000), 4)
    3.0092
    """
    require("forgetron_norm_limit", _proved_size, size=size)
    return math.sqrt((size + 1) / math.log(size + 1)) / 4


def forgetron_mistake_bound(size: int, comparator_norm: float, comparator_loss: float = 0.0) -> float:
    """Most mistakes of the Forgetron, for kernels with k(x, x) <= 1: 2 ||g||^2 + 4 D.

    Parameters
    ----------
    size : int >= 83
        B: points stored.
    comparator_norm : float >= 0
        ||g||, at most `forgetron_norm_limit(size)`.
    comparator_loss : float >= 0, default=0.0
        D: the comparator's cumulative hinge loss with margin 1.

    Returns
    -------
    float

    References
    ----------
    O. Dekel, S. Shalev-Shwartz, Y. Singer, The Forgetron: A Kernel-Based Perceptron on a Budget, SIAM
    Journal on Computing 37(5), 2008.

    Examples
    --------
    >>> from gristmill.theory import forgetron_mistake_bound
    >>> forgetron_mistake_bound(size=100, comparator_norm=1.0, comparator_loss=5.0)
    22.0
    """
    owner = "forgetron_mistake_bound"
    require(owner, _proved_size, size=size)
    limit = forgetron_norm_limit(size)
    within = Range(f"a number from 0 to {limit:.6g} for size = {size}", lambda v: is_real(v) and 0 <= v <= limit)
    require(owner, within, comparator_norm=comparator_norm)
    require(owner, non_negative, comparator_loss=comparator_loss)
    return 2 * comparator_norm**2 + 4 * comparator_loss
