"""Passive-aggressive learners: the smallest step that puts the event right."""

from __future__ import annotations

from .._common.types import RandomState
from ..budgets import Budget, DropSmallest, Merge, Unbounded
from ..kernels import KernelLike
from ..learners.additive import is_additive
from ..learners.kernel import KernelClassifier, KernelRegressor
from ..rules import PassiveAggressive
from ._compose import built


def _bounded(kernel: KernelLike, size: int | None) -> Budget:
    if size is None:
        return Unbounded()
    return DropSmallest(size) if is_additive(kernel) else Merge(size)


def passive_aggressive(
    kernel: KernelLike,
    C: float = 1.0,
    variant: int = 1,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelClassifier:
    """Passive-Aggressive classification: PA, PA-I and PA-II (variants 0, 1, 2).

    Parameters
    ----------
    kernel : kernel or callable
    C : float > 0
        Aggressiveness.
    variant : {0, 1, 2}
    size : int, optional
        Keep at most so many points, folding the one that is missed least onto the one most like it (`Merge`; with an
        additive kernel the one with the smallest coefficient is dropped).

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> round(passive_aggressive(Gaussian(1.0), C=0.5).fit([[0.0], [3.0]], [-1, 1]).score_one([3.0]), 3)
    0.5
    """
    budget = _bounded(kernel, size)
    return built(
        KernelClassifier(kernel, PassiveAggressive(C, variant), budget, average=average, random_state=random_state)
    )


def passive_aggressive_regressor(
    kernel: KernelLike,
    C: float = 1.0,
    epsilon: float = 0.1,
    variant: int = 1,
    size: int | None = None,
    average: bool = False,
    random_state: RandomState = None,
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
        Keep at most so many points, folding the one that is missed least onto the one most like it (`Merge`; with an
        additive kernel the one with the smallest coefficient is dropped).

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive_regressor
    >>> round(passive_aggressive_regressor(Gaussian(1.0)).fit([[0.0]], [0.6]).predict_one([0.0]), 3)
    0.5
    """
    budget = _bounded(kernel, size)
    rule = PassiveAggressive(C, variant, epsilon)
    return built(KernelRegressor(kernel, rule, budget, average=average, random_state=random_state))
