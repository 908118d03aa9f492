"""ILK and SILK: implicit steps."""

from __future__ import annotations

from .._common.types import RandomState
from ..budgets import DropSmallest, Unbounded
from ..kernels import KernelLike
from ..learners.kernel import KernelClassifier, KernelNovelty, KernelRegressor
from ..losses import Hinge, Loss, Squared
from ..rules import Implicit
from ._compose import built


def ilk_classifier(
    kernel: KernelLike,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
    schedule: str = "constant",
) -> KernelClassifier:
    """ILK for classification, implicit steps with hinge or logistic loss; SILK when `size` is given.

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Weight of the loss.
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    loss : Hinge(...) or Logistic()
    size : int, optional
        omega in the paper: keep at most so many points, dropping the smallest coefficient.
    schedule : {"constant", "inv_sqrt"}
        "inv_sqrt" is rate/sqrt(t), the schedule of Theorem 3.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, ilk_classifier
    >>> ilk_classifier(Gaussian(1.0), C=0.5).fit([[0.0]], [1]).predict([[0.0]]).item()
    1
    """
    budget = Unbounded() if size is None else DropSmallest(size)
    rule = Implicit(loss, C, rate, reg, schedule)
    return built(KernelClassifier(kernel, rule, budget, average=average, random_state=random_state))


def ilk_regressor(
    kernel: KernelLike,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
    schedule: str = "constant",
) -> KernelRegressor:
    """ILK for regression, implicit steps with the squared loss; SILK when `size` is given.

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Weight of the loss.
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    size : int, optional
        omega in the paper: keep at most so many points, dropping the smallest coefficient.
    schedule : {"constant", "inv_sqrt"}
        "inv_sqrt" is rate/sqrt(t), the schedule of Theorem 3.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, ilk_regressor
    >>> ilk_regressor(Gaussian(1.0)).fit([[0.0]], [2.0]).predict_one([0.0])
    1.0
    """
    budget = Unbounded() if size is None else DropSmallest(size)
    rule = Implicit(Squared(), C, rate, reg, schedule)
    return built(KernelRegressor(kernel, rule, budget, average=average, random_state=random_state))


def ilk_novelty(
    kernel: KernelLike,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    margin: float = 1.0,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
    schedule: str = "constant",
) -> KernelNovelty:
    """ILK for novelty detection: implicit steps towards f(x) >= margin; SILK when `size` is given.

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Weight of the loss.
    rate : float > 0
        eta in the paper.
    reg : float >= 0
        lambda in the paper.
    margin : float > 0
        rho in the paper.
    size : int, optional
        omega in the paper: keep at most so many points, dropping the smallest coefficient.
    schedule : {"constant", "inv_sqrt"}
        "inv_sqrt" is rate/sqrt(t), the schedule of Theorem 3.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, ilk_novelty
    >>> ilk_novelty(Gaussian(1.0), C=0.5).fit([[0.0], [0.0]]).score_one([0.0])
    0.0
    """
    budget = Unbounded() if size is None else DropSmallest(size)
    rule = Implicit(Hinge(margin), C, rate, reg, schedule)
    return built(KernelNovelty(kernel, rule, budget, average=average, random_state=random_state))
