"""The catalogue: each published algorithm is one short function that composes kernel, rule and budget."""

from __future__ import annotations

from typing import Any

from .budgets import Budget, DropOldest, DropSmallest, Unbounded, Window
from .learners import KernelClassifier, KernelNovelty, KernelRegressor
from .losses import Hinge, Loss, Squared
from .rules import SGD, PassiveAggressive, Perceptron


def _truncated(window: int | None, size: int | None) -> Budget:
    """NORMA's own ways to forget: by age in steps, or the oldest stored point."""
    if window is not None and size is not None:
        raise ValueError(f"give window (age in steps) or size (stored points), not both: got {window!r} and {size!r}")
    if window is not None:
        return Window(window)
    return Unbounded() if size is None else DropOldest(size)


def perceptron(kernel: Any, average: bool = False, random_state: Any = None) -> KernelClassifier:
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
    return KernelClassifier(kernel, Perceptron(), Unbounded(), average=average, random_state=random_state)


def passive_aggressive(
    kernel: Any,
    C: float = 1.0,
    variant: int = 1,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
) -> KernelClassifier:
    """Passive-Aggressive classification: PA, PA-I and PA-II (variants 0, 1, 2).

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Aggressiveness.
    variant : {0, 1, 2}
    size : int, optional
        Keep at most so many points, dropping the one with the smallest coefficient.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> round(passive_aggressive(Gaussian(1.0), C=0.5).fit([[0.0], [3.0]], [-1, 1]).score_one([3.0]), 3)
    0.5
    """
    budget = Unbounded() if size is None else DropSmallest(size)
    return KernelClassifier(kernel, PassiveAggressive(C, variant), budget, average=average, random_state=random_state)


def passive_aggressive_regressor(
    kernel: Any,
    C: float = 1.0,
    epsilon: float = 0.1,
    variant: int = 1,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
) -> KernelRegressor:
    """Passive-Aggressive regression with a free tube of half width epsilon.

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Aggressiveness.
    epsilon : float >= 0
    variant : {0, 1, 2}
    size : int, optional
        Keep at most so many points, dropping the one with the smallest coefficient.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive_regressor
    >>> round(passive_aggressive_regressor(Gaussian(1.0)).fit([[0.0]], [0.6]).predict_one([0.0]), 3)
    0.5
    """
    budget = Unbounded() if size is None else DropSmallest(size)
    rule = PassiveAggressive(C, variant, epsilon)
    return KernelRegressor(kernel, rule, budget, average=average, random_state=random_state)


def norma_classifier(
    kernel: Any,
    rate: float,
    reg: float,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    schedule: str = "constant",
    intercept: bool = False,
    window: int | None = None,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
) -> KernelClassifier:
    """NORMA for classification: gradient steps on reg/2 ||f||^2 + loss.

    Parameters
    ----------
    kernel : kernel or callable
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    loss : Hinge(...) or Logistic()
        `Hinge(margin, nu=nu)` is the nu soft margin.
    schedule : {"constant", "inv_sqrt"}
        rate, or rate / sqrt(t).
    intercept : bool
        Learn an offset b.
    window : int, optional
        tau in the paper: forget points older than so many steps.
    size : int, optional
        Keep the newest so many stored points instead.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, norma_classifier
    >>> model = norma_classifier(Gaussian(1.0), rate=0.5, reg=0.1)
    >>> round(model.fit([[0.0], [3.0]], [-1, 1]).score_one([0.0]), 3)
    -0.475
    """
    rule = SGD(loss, rate, reg, schedule, intercept)
    return KernelClassifier(kernel, rule, _truncated(window, size), average=average, random_state=random_state)


def norma_regressor(
    kernel: Any,
    rate: float,
    reg: float,
    loss: Loss = Squared(),  # noqa: B008  # a frozen value
    schedule: str = "constant",
    window: int | None = None,
    size: int | None = None,
    intercept: bool = False,
    average: bool = False,
    random_state: Any = None,
) -> KernelRegressor:
    """NORMA for regression, with squared, epsilon-insensitive or Huber loss.

    Parameters
    ----------
    kernel : kernel or callable
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    loss : Squared(), EpsilonInsensitive(...) or Huber(...)
    schedule : {"constant", "inv_sqrt"}
    window : int, optional
        tau in the paper: forget points older than so many steps.
    size : int, optional
        Keep the newest so many stored points instead.
    intercept : bool
        Learn an offset b.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, norma_regressor
    >>> norma_regressor(Gaussian(1.0), rate=0.5, reg=0.0).fit([[0.0]], [4.0]).predict_one([0.0])
    2.0
    """
    rule = SGD(loss, rate, reg, schedule, intercept)
    return KernelRegressor(kernel, rule, _truncated(window, size), average=average, random_state=random_state)


def norma_novelty(
    kernel: Any,
    nu: float,
    rate: float,
    reg: float = 1.0,
    schedule: str = "constant",
    window: int | None = None,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
) -> KernelNovelty:
    """NORMA for novelty detection: nu is the long-run share of alarms.

    Parameters
    ----------
    kernel : kernel or callable
    nu : float in (0, 1]
    rate : float > 0
        eta in the paper.
    reg : float >= 0, default=1.0
        lambda in the paper.
    schedule : {"constant", "inv_sqrt"}
    window : int, optional
        tau in the paper: forget points older than so many steps.
    size : int, optional
        Keep the newest so many stored points instead.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, norma_novelty
    >>> model = norma_novelty(Gaussian(1.0), nu=0.1, rate=0.5)
    >>> round(model.fit([[0.0], [0.1], [9.0]]).margin_, 3)
    -0.35
    """
    rule = SGD(Hinge(0.0, nu), rate, reg, schedule)
    return KernelNovelty(kernel, rule, _truncated(window, size), average=average, random_state=random_state)
