"""Herbster's projections onto what the event allows."""

from __future__ import annotations

from .._common.types import RandomState
from ..budgets import Unbounded
from ..kernels import KernelLike
from ..learners.kernel import KernelClassifier, KernelRegressor
from ..rules import FeasibleSet
from ._compose import built


def projection_classifier(
    kernel: KernelLike, radius: float | None = None, average: bool = False, random_state: RandomState = None
) -> KernelClassifier:
    """Herbster's projection algorithm for classification, constrained to a ball if a radius is given.

    Parameters
    ----------
    kernel : kernel or callable
    radius : float > 0, optional
        gamma in the paper.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001.

    Examples
    --------
    >>> from gristmill import Gaussian, projection_classifier
    >>> round(projection_classifier(Gaussian(1.0), radius=0.5).fit([[0.0], [9.0]], [-1, 1]).norm_, 6)
    0.5
    """
    return built(
        KernelClassifier(kernel, FeasibleSet(radius=radius), Unbounded(), average=average, random_state=random_state)
    )


def projection_regressor(
    kernel: KernelLike,
    epsilon: float,
    radius: float | None = None,
    average: bool = False,
    random_state: RandomState = None,
) -> KernelRegressor:
    """Herbster's projection algorithm for epsilon-insensitive regression.

    Parameters
    ----------
    kernel : kernel or callable
    epsilon : float >= 0
        Half width of the free tube.
    radius : float > 0, optional
        gamma in the paper.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001.

    Examples
    --------
    >>> from gristmill import Gaussian, projection_regressor
    >>> round(projection_regressor(Gaussian(1.0), epsilon=0.1).fit([[0.0]], [2.0]).predict_one([0.0]), 3)
    1.9
    """
    rule = FeasibleSet(epsilon, radius)
    return built(KernelRegressor(kernel, rule, Unbounded(), average=average, random_state=random_state))
