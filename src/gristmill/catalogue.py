"""The catalogue: each published algorithm is one short function that composes kernel, rule and budget."""

from __future__ import annotations

from typing import Any, TypeVar

from ._base import StreamLearner
from .budgets import Budget, DropOldest, DropRandom, DropSmallest, Forget, Project, Unbounded, Window
from .learners import KernelClassifier, KernelNovelty, KernelRegressor
from .losses import Hinge, Loss, Squared
from .rules import (
    SGD,
    Adatron,
    Alma,
    FeasibleSet,
    Implicit,
    MarginProjection,
    PassiveAggressive,
    Perceptron,
    Romma,
    StepSizeAdaptation,
)

Model = TypeVar("Model", bound=StreamLearner)


def _built(model: Model) -> Model:
    """The model, once its parts are known to go together: estimators say so at fit, the catalogue at once."""
    model._parts()
    return model


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
    return _built(KernelClassifier(kernel, Perceptron(), Unbounded(), average=average, random_state=random_state))


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
    return _built(
        KernelClassifier(kernel, PassiveAggressive(C, variant), budget, average=average, random_state=random_state)
    )


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
    return _built(KernelRegressor(kernel, rule, budget, average=average, random_state=random_state))


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
    return _built(KernelClassifier(kernel, rule, _truncated(window, size), average=average, random_state=random_state))


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
    return _built(KernelRegressor(kernel, rule, _truncated(window, size), average=average, random_state=random_state))


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
    return _built(KernelNovelty(kernel, rule, _truncated(window, size), average=average, random_state=random_state))


def random_budget_perceptron(kernel: Any, size: int, random_state: Any = None) -> KernelClassifier:
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
    return _built(KernelClassifier(kernel, Perceptron(), DropRandom(size), random_state=random_state))


def forgetron(kernel: Any, size: int, basic: bool = False, random_state: Any = None) -> KernelClassifier:
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
    return _built(KernelClassifier(kernel, Perceptron(), Forget(size, basic), random_state=random_state))


def projectron(
    kernel: Any, tolerance: float = 0.3, average: bool = False, random_state: Any = None
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
    return _built(
        KernelClassifier(kernel, Perceptron(), Project(tolerance), average=average, random_state=random_state)
    )


def projectron_pp(
    kernel: Any,
    tolerance: float = 0.3,
    squared: bool = False,
    average: bool = False,
    random_state: Any = None,
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
    return _built(KernelClassifier(kernel, rule, Project(tolerance), average=average, random_state=random_state))


def alma(
    kernel: Any,
    alpha: float = 0.9,
    tolerance: float | None = None,
    average: bool = False,
    random_state: Any = None,
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
    return _built(KernelClassifier(kernel, Alma(alpha), budget, average=average, random_state=random_state))


def romma(kernel: Any, aggressive: bool = False, average: bool = False, random_state: Any = None) -> KernelClassifier:
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
    return _built(KernelClassifier(kernel, Romma(aggressive), Unbounded(), average=average, random_state=random_state))


def adatron(kernel: Any, rate: float, C: float, passes: int, random_state: Any = None) -> KernelClassifier:
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
    return _built(KernelClassifier(kernel, Adatron(rate, C, passes), Unbounded(), random_state=random_state))


def ilk_classifier(
    kernel: Any,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
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
    rule = Implicit(loss, C, rate, reg)
    return _built(KernelClassifier(kernel, rule, budget, average=average, random_state=random_state))


def ilk_regressor(
    kernel: Any,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
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
    rule = Implicit(Squared(), C, rate, reg)
    return _built(KernelRegressor(kernel, rule, budget, average=average, random_state=random_state))


def ilk_novelty(
    kernel: Any,
    C: float = 1.0,
    rate: float = 1.0,
    reg: float = 0.0,
    margin: float = 1.0,
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
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
    rule = Implicit(Hinge(margin), C, rate, reg)
    return _built(KernelNovelty(kernel, rule, budget, average=average, random_state=random_state))


def projection_classifier(
    kernel: Any, radius: float | None = None, average: bool = False, random_state: Any = None
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
    return _built(
        KernelClassifier(kernel, FeasibleSet(radius=radius), Unbounded(), average=average, random_state=random_state)
    )


def projection_regressor(
    kernel: Any, epsilon: float, radius: float | None = None, average: bool = False, random_state: Any = None
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
    return _built(KernelRegressor(kernel, rule, Unbounded(), average=average, random_state=random_state))


def svmd(
    kernel: Any,
    rate: float,
    reg: float,
    meta_rate: float,
    decay: float,
    loss: Loss = Hinge(),  # noqa: B008  # a frozen value
    size: int | None = None,
    average: bool = False,
    random_state: Any = None,
) -> KernelClassifier:
    """SVMD: NORMA whose rate adapts by stochastic meta-descent in the RKHS; two classes.

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
    return _built(KernelClassifier(kernel, rule, budget, average=average, random_state=random_state))
