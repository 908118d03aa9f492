"""Rules: one trial in, one step out.

A rule sees a trial (score, label, k(x,x), step number, weight) and proposes one step: shrink what is there, add one
coefficient for the new point, stay inside a ball. It may also be any Python object that is callable with a `Trial` and
returns a `Step` (or None for no change); see CONTRIBUTING.md for one in ten lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from ._common.ranges import (
    Checked,
    Range,
    count,
    flag,
    fraction,
    instance_of,
    is_real,
    non_negative,
    one_of,
    optional,
    positive,
    positive_or_inf,
)
from .losses import Hinge, Logistic, Loss, Squared


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

    def core_spec(self) -> dict[str, object]:
        return {"rule": type(self).__name__, **vars(self)}

    def state_names(self) -> tuple[str, ...]:
        """Names of the adaptive quantities of the fitted model."""
        return ()

    def check_task(self, task: str) -> None:
        """Refuse a task that has no meaning for this rule, saying what would work."""
        if task not in self.tasks:
            raise ValueError(f"{type(self).__name__} is a rule for {' and '.join(self.tasks)}, not for {task}")


#: what is taken as a rule: one of these, or any function of a trial
RuleLike = Rule | Callable[[Trial], Step | None]


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
        Any of `Hinge`, `Logistic`, `Squared`, `EpsilonInsensitive`, `Huber`, `Pinball`.
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

    def core_spec(self) -> dict[str, object]:
        return {**super().core_spec(), **self.loss.core_spec()}

    def state_names(self) -> tuple[str, ...]:
        return (self.loss.adapts,) if self.loss.adapts else ()

    def check_task(self, task: str) -> None:
        _loss_for_task(self.loss, task)
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


@dataclass(frozen=True)
class FeasibleSet(Rule):
    """Project onto the hypotheses that get this event right: Herbster's projection algorithms.

    Parameters
    ----------
    epsilon : float >= 0, optional
        Half width of the free tube, for regression only (0 if not given).
    radius : float > 0, optional
        gamma in the paper: stay inside the ball of this radius, which makes the bounds hold on every segment of the
        stream. Without it nothing is constrained.

    References
    ----------
    M. Herbster, Learning Additive Models Online with Fast Evaluating Kernels, COLT 2001.

    Examples
    --------
    >>> from gristmill import FeasibleSet, Gaussian, KernelRegressor, Unbounded
    >>> model = KernelRegressor(Gaussian(1.0), FeasibleSet(epsilon=0.1), Unbounded())
    >>> round(model.fit([[0.0]], [2.0]).predict_one([0.0]), 3)
    1.9
    """

    epsilon: float | None = None
    radius: float | None = None  # gamma

    _ranges: ClassVar[dict[str, Range]] = {"epsilon": optional(non_negative), "radius": optional(positive)}
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")

    def check_task(self, task: str) -> None:
        super().check_task(task)
        if task != "regression" and self.epsilon is not None:
            raise ValueError(
                f"FeasibleSet: epsilon={self.epsilon!r} is the width of a tube for regression; omit it for {task}"
            )


@dataclass(frozen=True)
class Implicit(Rule):
    """The exact minimiser of 1/2 ||f - f_t||^2 + rate (reg/2 ||f||^2 + C loss): ILK, and SILK with `DropSmallest`.

    Parameters
    ----------
    loss : Loss, default=Hinge()
        Hinge and logistic for classification, squared for regression, hinge for novelty detection. The margin must be
        above 0 and cannot adapt (no `nu`).
    C : float > 0, default=1.0
        Weight of the loss.
    rate : float > 0, default=1.0
        eta in the paper. Implicit steps need no condition on it.
    reg : float >= 0, default=0.0
        lambda in the paper.
    schedule : {"constant", "inv_sqrt"}, default="constant"
        "inv_sqrt" is rate/sqrt(t), t the number of the event: the schedule of Theorem 3, whose bound is
        `gristmill.theory.implicit_risk_bound`.

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, Implicit, KernelRegressor, Squared, Unbounded
    >>> model = KernelRegressor(Gaussian(1.0), Implicit(Squared(), C=1.0), Unbounded())
    >>> model.fit([[0.0]], [2.0]).predict_one([0.0])
    1.0
    """

    loss: Loss = field(default_factory=Hinge)
    C: float = 1.0
    rate: float = 1.0  # eta
    reg: float = 0.0  # lambda
    schedule: str = "constant"

    _ranges: ClassVar[dict[str, Range]] = {
        "loss": instance_of(Hinge | Logistic | Squared, "Hinge(...), Logistic() or Squared()"),
        "C": positive_or_inf,
        "rate": positive,
        "reg": non_negative,
        "schedule": one_of("constant", "inv_sqrt"),
    }
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression", "novelty")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.loss, Hinge) and (self.loss.nu is not None or self.loss.margin == 0):
            raise ValueError(
                f"Implicit: loss must be a hinge with a fixed margin > 0, got {self.loss!r}; SGD takes any"
            )
        if isinstance(self.loss, Logistic) and not math.isfinite(self.C):
            raise ValueError("Implicit: the logistic loss needs a finite C, its step grows without bound")

    def core_spec(self) -> dict[str, object]:
        return {**super().core_spec(), **self.loss.core_spec()}

    def check_task(self, task: str) -> None:
        _loss_for_task(self.loss, task)


@dataclass(frozen=True)
class Alma(Rule):
    """ALMA_2: an approximately maximal margin, with a step that falls with the number of corrections.

    Give it a kernel with k(x, x) <= 1, such as `Gaussian` or `Normalized(...)`.

    Parameters
    ----------
    alpha : float in (0, 1], default=0.9
        The margin reached is (1 - alpha) of the best.
    B : float > 0, optional
        Scale of the margin asked for; sqrt(8)/alpha if not given.
    C : float > 0, optional
        Scale of the step; sqrt(2) if not given.

    References
    ----------
    C. Gentile, A New Approximate Maximal Margin Classification Algorithm, JMLR 2, 2001.

    Examples
    --------
    >>> from gristmill import Alma, Gaussian, KernelClassifier, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), Alma(alpha=0.9), Unbounded()).fit([[0.0], [3.0]], [-1, 1])
    >>> round(model.norm_, 6), model.corrections_
    (1.0, 2.0)
    """

    alpha: float = 0.9
    B: float | None = None
    C: float | None = None

    _ranges: ClassVar[dict[str, Range]] = {"alpha": fraction, "B": optional(positive), "C": optional(positive)}

    def state_names(self) -> tuple[str, ...]:
        return ("corrections_",)


@dataclass(frozen=True)
class Romma(Rule):
    """The relaxed online maximum margin algorithm.

    Parameters
    ----------
    aggressive : bool, default=False
        Act on every margin below 1, not only on mistakes.

    References
    ----------
    Y. Li, P. M. Long, The Relaxed Online Maximum Margin Algorithm, Machine Learning 46, 2002.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Romma, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), Romma(), Unbounded()).fit([[0.0], [1.0]], [-1, 1])
    >>> round(model.score_one([1.0]), 6)
    1.0
    """

    aggressive: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"aggressive": flag}


@dataclass(frozen=True)
class MarginProjection(Rule):
    """Projectron++: learns from mistakes, and from points with a small margin whose projection is accurate.

    Works with the budget `Project` only, whose tolerance it shares.

    Parameters
    ----------
    squared : bool, default=False
        False is the rule that the paper proves, True the one that its experiments used (it acts more often).

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, MarginProjection, Project
    >>> model = KernelClassifier(Gaussian(1.0), MarginProjection(), Project(tolerance=0.5))
    >>> model.fit([[0.0], [3.0], [0.3]], [-1, 1, -1]).n_support_
    2
    """

    squared: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"squared": flag}


@dataclass(frozen=True)
class Adatron(Rule):
    """The kernel Adatron: clipped dual coordinate ascent. `fit` makes several passes over the same points.

    Parameters
    ----------
    rate : float > 0, default=1.0
        eta in the literature; below 2 / k(x, x), and 1 / k(x, x) is exact coordinate ascent.
    C : float > 0, default=inf
        Largest coefficient.
    passes : int >= 1, default=1
        How often `fit` goes over its data. `partial_fit` and `learn_one` see each event once.

    References
    ----------
    T.-T. Friess, N. Cristianini, C. Campbell, The Kernel-Adatron Algorithm, ICML 1998.

    Examples
    --------
    >>> from gristmill import Adatron, Gaussian, KernelClassifier, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), Adatron(rate=1.0, C=10.0, passes=20), Unbounded())
    >>> round(model.fit([[0.0], [1.0]], [-1, 1]).score_one([1.0]), 6)
    1.0
    """

    rate: float = 1.0
    C: float = math.inf
    passes: int = 1

    _ranges: ClassVar[dict[str, Range]] = {"rate": positive, "C": positive_or_inf, "passes": count}
    multiclass: ClassVar[bool] = False


@dataclass(frozen=True)
class StepSizeAdaptation(Rule):
    """SVMD: gradient steps whose rate follows its own gradient, through the derivative v of f by the log rate.

    With more than two classes, f and v have an output for each class, and the loss is that of the margin over the
    strongest rival; one rate serves all classes.

    Parameters
    ----------
    loss : Loss, default=Hinge()
        Any loss without `nu`.
    rate : float > 0, default=0.1
        eta_0; the fitted attribute `rate_` is the present one.
    reg : float >= 0, default=0.0
        lambda: every step multiplies the old coefficients by 1 - rate * reg.
    meta_rate : float >= 0, default=0.1
        mu, the rate at which log(rate) moves; 0 gives NORMA.
    decay : float in [0, 1], default=0.95
        How long v remembers.
    form : {"exponential", "linear"}, default="exponential"
        rate * exp(-meta_rate <g, v>), or rate * max(1/2, 1 - meta_rate <g, v>).

    References
    ----------
    S. V. N. Vishwanathan, N. N. Schraudolph, A. J. Smola, Step Size Adaptation in Reproducing Kernel Hilbert Space,
    JMLR 7, 2006.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, StepSizeAdaptation, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), StepSizeAdaptation(rate=0.1, meta_rate=0.5), Unbounded())
    >>> round(model.fit([[0.0], [0.1], [0.2]], [-1, -1, -1]).rate_, 4)
    0.1159
    """

    loss: Loss = field(default_factory=Hinge)
    rate: float = 0.1  # eta_0
    reg: float = 0.0  # lambda
    meta_rate: float = 0.1  # mu
    decay: float = 0.95  # lambda of SMD
    form: str = "exponential"

    _ranges: ClassVar[dict[str, Range]] = {
        "loss": instance_of(Loss, "a loss such as Hinge() or Squared()"),
        "rate": positive,
        "reg": non_negative,
        "meta_rate": non_negative,
        "decay": Range("a number in [0, 1]", lambda v: is_real(v) and 0 <= v <= 1),
        "form": one_of("exponential", "linear"),
    }
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression", "novelty")

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self.loss, "nu", None) is not None:
            raise ValueError(f"StepSizeAdaptation: loss must not adapt, got {self.loss!r}; omit nu, or use SGD")
        if self.rate * self.reg >= 1:
            raise ValueError(f"StepSizeAdaptation: rate * reg must be below 1, got {self.rate!r} * {self.reg!r}")

    def core_spec(self) -> dict[str, object]:
        return {**super().core_spec(), **self.loss.core_spec()}

    def state_names(self) -> tuple[str, ...]:
        return ("rate_",)

    def check_task(self, task: str) -> None:
        _loss_for_task(self.loss, task)


@dataclass(frozen=True)
class Density(Rule):
    """Kernel density: every event enters with its weight, and an alarm is a score below a running quantile.

    The score is the weighted mean of k(x, .) over the stored points: points that a budget drops no longer count, points
    that `Merge` merges still do. A coefficient is the event's share of the weight before the budget acts, so that where
    all weights are equal and a budget of n points drops one, the coefficients sum to n/(n+1) and the score is that
    multiple of the mean; the threshold has the same factor.
    The threshold `offset_` is the `nu`-quantile of the last 1,000 scores, each computed
    before its event was learned, so that the share of alarms is about `nu` whatever the distribution of the scores.
    There is no alarm in the first 50 events. The kernel must not be negative; a narrow one is best, with a width of
    about half the distance to the fifth neighbour.

    Parameters
    ----------
    decay : float in [0, 1), default=0.0
        Share of its weight that everything stored loses at each event.
    nu : float in (0, 1), default=0.01
        The alarm rate.
    neighbours : float in [0, 1), default=0.0
        Above 0 the score is local: how far a stored point's neighbours were when it came, over how far the event's own are,
        as a geometric mean over those that are its neighbours: this share of the stored points (0.05 serves well), at least
        two. How far is -log k, the squared distance times gamma for a Gaussian. The score is about 1 among others, be they
        close together or far apart, and less outside; the idea is that of the local outlier factor. For kernels that are 1
        between equal points; there is no gradient.

    References
    ----------
    E. Parzen, On Estimation of a Probability Density Function and Mode, Annals of Mathematical Statistics 33(3), 1962.
    M. Breunig, H.-P. Kriegel, R. Ng, J. Sander, LOF: Identifying Density-Based Local Outliers, SIGMOD 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Density, DropRandom, Gaussian, KernelNovelty
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> model = KernelNovelty(Gaussian(2.0), Density(nu=0.02), DropRandom(500, uniform=True), random_state=0)
    >>> print(f"{(model.prequential(X) < 0).mean():.3f} of the events were alarms")
    0.016 of the events were alarms
    """

    decay: float = 0.0
    nu: float = 0.01
    neighbours: float = 0.0

    _ranges: ClassVar[dict[str, Range]] = {
        "decay": Range("a number in [0, 1)", lambda v: is_real(v) and 0 <= v < 1),
        "nu": Range("a number in (0, 1)", lambda v: is_real(v) and 0 < v < 1),
        "neighbours": Range("a number in [0, 1)", lambda v: is_real(v) and 0 <= v < 1),
    }
    tasks: ClassVar[tuple[str, ...]] = ("novelty",)
    multiclass: ClassVar[bool] = False


def _loss_for_task(loss: Loss, task: str) -> None:
    if task not in loss.tasks:
        raise ValueError(f"{type(loss).__name__} is a loss for {' and '.join(loss.tasks)}, not for {task}")
