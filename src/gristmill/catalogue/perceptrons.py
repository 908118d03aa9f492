"""Perceptrons and their budgets: what mistakes to keep, forget or fold into the others."""

from __future__ import annotations

from .._common.types import RandomState
from ..budgets import DropRandom, Forget, Project, Unbounded
from ..kernels import KernelLike
from ..learners.kernel import KernelClassifier
from ..rules import Adatron, Alma, MarginProjection, Perceptron, Romma
from ._compose import built


def perceptron(kernel: KernelLike, average: bool = False, random_state: RandomState = None) -> KernelClassifier:
    """The kernel Perceptron: on a mistake, add the point.

    Parameters
    ----------
    kernel : kernel or callable
    average : bool
        Predict with the mean of all hypotheses.
    random_state : ignored, for a common signature

    References
    ----------
    Y. Freund, R. E. Schapire, Large Margin Classification Using the Perceptron Algorithm, Machine Learning 37, 1999.

    Examples
    --------
    >>> from gristmill import Gaussian, perceptron
    >>> perceptron(Gaussian(1.0)).fit([[0.0], [3.0], [0.1]], [-1, 1, -1]).n_support_
    2
    """
    return built(KernelClassifier(kernel, Perceptron(), Unbounded(), average=average, random_state=random_state))


def random_budget_perceptron(kernel: KernelLike, size: int, random_state: RandomState = None) -> KernelClassifier:
    """The Perceptron that, when full, drops a random point: RBP, and by max-score its multiclass form.

    Parameters
    ----------
    kernel : kernel or callable
    size : int
        B in the paper.
    random_state : int, Generator, RandomState or None

    References
    ----------
    G. Cavallanti, N. Cesa-Bianchi, C. Gentile, Tracking the best hyperplane with a simple budget Perceptron,
    Machine Learning 69, 2007.

    Examples
    --------
    >>> from gristmill import Gaussian, random_budget_perceptron
    >>> model = random_budget_perceptron(Gaussian(1.0), size=2, random_state=0)
    >>> model.fit([[0.0], [3.0], [6.0], [9.0]], [-1, 1, -1, 1]).n_support_
    2
    """
    return built(KernelClassifier(kernel, Perceptron(), DropRandom(size), random_state=random_state))


def forgetron(kernel: KernelLike, size: int, basic: bool = False, random_state: RandomState = None) -> KernelClassifier:
    """The Forgetron: a budget Perceptron with a mistake bound; two classes.

    Parameters
    ----------
    kernel : kernel or callable
        With k(x, x) <= 1.
    size : int
        B in the paper.
    basic : bool
        False is the self-tuned algorithm, True the first one with its fixed schedule.

    References
    ----------
    O. Dekel, S. Shalev-Shwartz, Y. Singer, The Forgetron: A Kernel-Based Perceptron on a Budget, SIAM J. Computing 37, 2008.

    Examples
    --------
    >>> from gristmill import Gaussian, forgetron
    >>> forgetron(Gaussian(1.0), size=2).fit([[0.0], [3.0], [6.0], [9.0]], [-1, 1, -1, 1]).n_support_
    2
    """
    return built(KernelClassifier(kernel, Perceptron(), Forget(size, basic), random_state=random_state))


def projectron(
    kernel: KernelLike, tolerance: float = 0.3, average: bool = False, random_state: RandomState = None
) -> KernelClassifier:
    """The Projectron: a Perceptron whose mistakes are projected onto the stored points where they can be.

    Parameters
    ----------
    kernel : kernel or callable
    tolerance : float >= 0
        eta in the paper, a bound on the distance (its experiments compare the squared distance).
    average : bool
        Predict with the mean of all hypotheses, in the same bounded memory.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009.

    Examples
    --------
    >>> from gristmill import Gaussian, projectron
    >>> projectron(Gaussian(1.0), tolerance=0.5).fit([[0.0], [3.0], [1.6], [1.4]], [-1, 1, -1, 1]).n_support_
    3
    """
    return built(KernelClassifier(kernel, Perceptron(), Project(tolerance), average=average, random_state=random_state))


def projectron_pp(
    kernel: KernelLike,
    tolerance: float = 0.3,
    squared: bool = False,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelClassifier:
    """Projectron++: the Projectron that also learns from small margins.

    Parameters
    ----------
    kernel : kernel or callable
    tolerance : float >= 0
        eta in the paper.
    squared : bool
        True is the margin step of the paper's experiments, False the proved one.
    average : bool
        Predict with the mean of all hypotheses, in the same bounded memory.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009.

    Examples
    --------
    >>> from gristmill import Gaussian, projectron_pp
    >>> projectron_pp(Gaussian(1.0), tolerance=0.5).fit([[0.0], [3.0], [0.3]], [-1, 1, -1]).n_support_
    2
    """
    rule = MarginProjection(squared)
    return built(KernelClassifier(kernel, rule, Project(tolerance), average=average, random_state=random_state))


def alma(
    kernel: KernelLike,
    alpha: float = 0.9,
    tolerance: float | None = None,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelClassifier:
    """ALMA_2, an approximate maximal margin learner; with a tolerance its projected form.

    Parameters
    ----------
    kernel : kernel or callable
        With k(x, x) <= 1.
    alpha : float in (0, 1]
        The margin reached is (1 - alpha) of the best.
    tolerance : float >= 0, optional
        eta: fold points into the stored ones where they span them this well.

    References
    ----------
    C. Gentile, A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001; F. Orabona, J. Keshet,
    B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009, section 6.

    Examples
    --------
    >>> from gristmill import Gaussian, alma
    >>> round(alma(Gaussian(1.0)).fit([[0.0], [3.0]], [-1, 1]).norm_, 6)
    1.0
    """
    budget = Unbounded() if tolerance is None else Project(tolerance)
    return built(KernelClassifier(kernel, Alma(alpha), budget, average=average, random_state=random_state))


def romma(
    kernel: KernelLike, aggressive: bool = False, average: bool = False, random_state: RandomState = None
) -> KernelClassifier:
    """The relaxed online maximum margin algorithm, plain or aggressive.

    Parameters
    ----------
    kernel : kernel or callable
    aggressive : bool
        Act on every margin below 1, not only on mistakes.

    References
    ----------
    Y. Li, P. M. Long, The Relaxed Online Maximum Margin Algorithm, Machine Learning 46, 2002.

    Examples
    --------
    >>> from gristmill import Gaussian, romma
    >>> round(romma(Gaussian(1.0)).fit([[0.0], [1.0]], [-1, 1]).score_one([1.0]), 6)
    1.0
    """
    return built(KernelClassifier(kernel, Romma(aggressive), Unbounded(), average=average, random_state=random_state))


def adatron(
    kernel: KernelLike, rate: float, C: float, passes: int, random_state: RandomState = None
) -> KernelClassifier:
    """The kernel Adatron: several passes of `fit` over the same points, towards the support vector machine (no offset).

    Parameters
    ----------
    kernel : kernel or callable
    rate : float > 0
        Below 2 / k(x, x).
    C : float > 0
        Largest coefficient.
    passes : int >= 1

    References
    ----------
    T.-T. Friess, N. Cristianini, C. Campbell, The Kernel-Adatron Algorithm, ICML 1998.

    Examples
    --------
    >>> from gristmill import Gaussian, adatron
    >>> round(adatron(Gaussian(1.0), rate=1.0, C=10.0, passes=20).fit([[0.0], [1.0]], [-1, 1]).score_one([1.0]), 6)
    1.0
    """
    return built(KernelClassifier(kernel, Adatron(rate, C, passes), Unbounded(), random_state=random_state))
