"""NORMA and its relative with adaptive steps: stochastic gradients that forget."""

from __future__ import annotations

from .._common.types import RandomState
from ..budgets import DropOldest, Unbounded
from ..kernels import KernelLike
from ..learners.kernel import KernelClassifier, KernelNovelty, KernelRegressor
from ..losses import Hinge, Loss, Squared
from ..rules import SGD, StepSizeAdaptation
from ._compose import built, truncated


def norma_classifier(
    kernel: KernelLike,
    rate: float,
    reg: float,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    schedule: str = "constant",
    intercept: bool = False,
    window: int | None = None,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
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
    return built(KernelClassifier(kernel, rule, truncated(window, size), average=average, random_state=random_state))


def norma_regressor(
    kernel: KernelLike,
    rate: float,
    reg: float,
    loss: Loss = Squared(),  # noqa: B008  # a frozen value
    schedule: str = "constant",
    window: int | None = None,
    size: int | None = None,
    intercept: bool = False,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelRegressor:
    """NORMA for regression, with squared, epsilon-insensitive, Huber or pinball loss.

    Parameters
    ----------
    kernel : kernel or callable
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    loss : Squared(), EpsilonInsensitive(...), Huber(...) or Pinball(...)
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
    return built(KernelRegressor(kernel, rule, truncated(window, size), average=average, random_state=random_state))


def norma_novelty(
    kernel: KernelLike,
    nu: float,
    rate: float,
    reg: float = 1.0,
    schedule: str = "constant",
    window: int | None = None,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelNovelty:
    """NORMA for novelty detection: nu is the long-run share of alarms.

    A stored point fades by 1 - rate * reg at every event, and a new one comes about once in 1 / nu events. With the
    constant schedule, rate * reg should be well below nu (for example a tenth): otherwise coefficients have decayed before
    the next outlier, the margin rises from -rate (1 - nu) through 0 and falls back once in 1 / nu events, and alarms come at
    these intervals whatever the data are. With the paper's decaying rate, rate / sqrt(t), this ends once t is well above
    (rate * reg / nu)^2. For example nu=0.02 and rate=0.1 leave a constant schedule with a margin between -0.096 and 0.002
    for ever, and "inv_sqrt" with a margin between 0.0003 and 0.003 after 10,000 events.

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
    >>> model = norma_novelty(Gaussian(1.0), nu=0.1, rate=0.05, schedule="inv_sqrt")
    >>> round(model.fit([[0.0], [0.1], [9.0]]).margin_, 3)
    -0.024
    """
    rule = SGD(Hinge(0.0, nu), rate, reg, schedule)
    return built(KernelNovelty(kernel, rule, truncated(window, size), average=average, random_state=random_state))


def svmd(
    kernel: KernelLike,
    rate: float,
    reg: float,
    meta_rate: float,
    decay: float,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelClassifier:
    """SVMD: NORMA whose rate adapts by stochastic meta-descent in the RKHS.

    Parameters
    ----------
    kernel : kernel or callable
    rate : float > 0
        eta_0 in the paper.
    reg : float >= 0
        lambda in the paper.
    meta_rate : float >= 0
        mu in the paper.
    decay : float in [0, 1]
        How long the derivative by the log rate remembers.
    loss : Hinge(...) or Logistic()
    size : int, optional
        Keep the newest so many points.

    References
    ----------
    S. V. N. Vishwanathan, N. N. Schraudolph, A. J. Smola, Step Size Adaptation in Reproducing Kernel Hilbert Space,
    JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, svmd
    >>> round(svmd(Gaussian(1.0), 0.1, 0.0, 0.5, 0.95).fit([[0.0], [0.1], [0.2]], [-1, -1, -1]).rate_, 4)
    0.1159
    """
    budget = Unbounded() if size is None else DropOldest(size)
    rule = StepSizeAdaptation(loss, rate, reg, meta_rate, decay)
    return built(KernelClassifier(kernel, rule, budget, average=average, random_state=random_state))
