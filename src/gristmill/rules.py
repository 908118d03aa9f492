"""Rules: one trial in, one step out.

A rule sees a trial (score, label, k(x,x), step number, weight) and proposes one step: shrink what is there, add one
coefficient for the new point, stay inside a ball. It may also be any Python object that is callable with a `Trial` and
returns a `Step` (or None for no change); see CONTRIBUTING.md for one in ten lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ._validate import (
    Checked,
    Range,
    count,
    flag,
    instance_of,
    non_negative,
    one_of,
    positive,
    positive_or_inf,
)
from .losses import Hinge, Loss


@dataclass(frozen=True, slots=True)
class Trial:
    """What a rule sees of one event. Every score is the one before the update."""

    score: float  #: f(x) + b; with more than two classes the margin f_y - f_r over the best rival
    label: float  #: -1 or +1; the target in regression; +1 in novelty detection and with more than two classes
    self_similarity: float  #: k(x, x); with more than two classes 2 k(x, x)
    step: int  #: t, counted from 1
    weight: float  #: the sample weight, 1 if none was given
    norm2: float  #: ||f||^2, or NaN if the rule does not set `needs_norm = True`


@dataclass(frozen=True, slots=True)
class Step:
    """What a rule proposes; the budget decides how it enters."""

    coefficient: float = 0.0  #: of the new point, sign included; 0 stores nothing
    shrink: float = 1.0  #: factor on everything stored; 0 clears
    intercept: float = 0.0  #: added to the intercept
    radius: float = math.inf  #: afterwards ||f|| is at most this (needs `needs_norm = True`)


class Rule(Checked):
    """Base class of the rules that run in the core."""

    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    #: whether the rule has a meaning for more than two classes (by max-score)
    multiclass: ClassVar[bool] = True

    def _spec(self) -> dict[str, Any]:
        return {"rule": type(self).__name__, **vars(self)}

    def _attributes(self) -> tuple[str, ...]:
        """Names of the adaptive quantities of the fitted model."""
        return ()

    def _for_task(self, task: str) -> None:
        """Refuse a task that has no meaning for this rule, saying what would work."""
        if task not in self.tasks:
            raise ValueError(
                f"{type(self).__name__} is a rule for {' and '.join(self.tasks)}, not for {task}"
            )


@dataclass(frozen=True)
class Perceptron(Rule):
    """On a mistake (y f <= 0) add the point with coefficient y.

    References
    ----------
    Y. Freund, R. E. Schapire, Large Margin Classification Using the Perceptron Algorithm, Machine Learning 37, 1999.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Perceptron, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), Unbounded())
    >>> model.fit([[0.0], [3.0], [0.1]], [-1, 1, -1]).dual_coef_.ravel().tolist()
    [-1.0, 1.0]
    """


@dataclass(frozen=True)
class SGD(Rule):
    """Stochastic gradient descent in the RKHS on reg/2 ||f||^2 + loss: NORMA.

    Parameters
    ----------
    loss : Loss, default=Hinge()
        Any of `Hinge`, `Logistic`, `Squared`, `EpsilonInsensitive`, `Huber`.
    rate : float > 0, default=0.1
        eta in the paper. rate * reg must be at most 1.
    reg : float >= 0, default=0.0
        lambda in the paper: every step multiplies the old coefficients by 1 - rate_t * reg.
    schedule : {"constant", "inv_sqrt"}, default="constant"
        rate_t = rate, or rate / sqrt(t).
    intercept : bool, default=False
        Learn an unregularised offset b by the same steps.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import SGD, Gaussian, Hinge, KernelClassifier, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), SGD(Hinge(), rate=0.5, reg=0.1), Unbounded())
    >>> model.fit([[0.0], [3.0]], [-1, 1]).dual_coef_.ravel().tolist()
    [-0.475, 0.5]
    """

    loss: Loss = field(default_factory=Hinge)
    rate: float = 0.1  # eta
    reg: float = 0.0  # lambda
    schedule: str = "constant"
    intercept: bool = False

    _ranges: ClassVar[dict[str, Range]] = {
        "loss": instance_of(Loss, "a loss such as Hinge() or Squared()"),
        "rate": positive,
        "reg": non_negative,
        "schedule": one_of("constant", "inv_sqrt"),
        "intercept": flag,
    }
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression", "novelty")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate * self.reg > 1:
            raise ValueError(
                f"SGD: rate * reg must be at most 1 (it is the share forgotten in a step), "
                f"got {self.rate!r} * {self.reg!r} = {self.rate * self.reg!r}"
            )

    def _spec(self) -> dict[str, Any]:
        return {**super()._spec(), **self.loss._spec()}

    def _attributes(self) -> tuple[str, ...]:
        return (self.loss.adapts,) if self.loss.adapts else ()

    def _for_task(self, task: str) -> None:
        if task not in self.loss.tasks:
            raise ValueError(
                f"{type(self.loss).__name__} is a loss for {' and '.join(self.loss.tasks)}, not for {task}"
            )
        if task == "novelty" and self.intercept:
            raise ValueError("SGD: intercept=True has no meaning for novelty detection; the margin plays its part")


@dataclass(frozen=True)
class PassiveAggressive(Rule):
    """The smallest step that sets the loss right, up to the aggressiveness C.

    Parameters
    ----------
    C : float > 0, default=1.0
        Aggressiveness; not used by variant 0.
    variant : {0, 1, 2}, default=1
        PA (step l/k), PA-I (at most C), PA-II (l/(k + 1/(2C))).
    epsilon : float >= 0, default=0.1
        Half width of the free tube, for regression only.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz, Y. Singer, Online Passive-Aggressive Algorithms, JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, PassiveAggressive, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), PassiveAggressive(C=0.5), Unbounded())
    >>> model.fit([[0.0], [3.0]], [-1, 1]).dual_coef_.ravel().tolist()
    [-0.5, 0.5]
    """

    C: float = 1.0
    variant: int = 1
    epsilon: float = 0.1

    _ranges: ClassVar[dict[str, Range]] = {
        "C": positive_or_inf,
        "variant": one_of(0, 1, 2),
        "epsilon": non_negative,
    }
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression", "novelty")
