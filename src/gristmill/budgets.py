"""Budgets: how a new support vector enters, and which one is removed. Only budgets remove points.

A budget may also be any Python object with a method `victim(stored)`, called when a new point is about to enter. It
returns the position of the stored point to drop in its favour, None to drop nothing, or -1 to refuse the new point.
`stored` has `ids` (positions in the stream), `coef` (true scale; a row a point), `step` (how many events came before)
and `new_coef` (the newcomer's own).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from ._common.ranges import Checked, Range, bytes_in, capacity, flag, is_whole, non_negative, optional
from ._common.ranges import size as size_range


@dataclass(frozen=True, slots=True)
class Stored:
    """What a budget written in Python sees when a new point asks to come in."""

    ids: list[int]  #: position in the stream of each stored point
    coef: npt.NDArray[np.float64]  #: a row a stored point, a column an output; the step's shrinking included
    step: int  #: position in the stream of the newcomer
    new_coef: npt.NDArray[np.float64]  #: the newcomer's own, one an output


class Budget(Checked):
    """Base class of the budgets."""

    #: whether stored points may leave, so that an average over time has no bounded form
    evicts: ClassVar[bool] = True
    #: whether the mean of all hypotheses can be kept over the points that stay
    averages: ClassVar[bool] = False
    #: names of the rules that the budget has a meaning for; empty for any
    rules: ClassVar[tuple[str, ...]] = ()
    #: whether it has a meaning for more than two classes
    multiclass: ClassVar[bool] = True

    def core_spec(self) -> dict[str, object]:
        spec = {"budget": type(self).__name__, **vars(self)}
        if isinstance(spec.get("size"), str):  # the core computes the number of points
            spec |= {"size": 2**62, "bytes": bytes_in(spec["size"])}
        return spec


class Chooser(Protocol):
    """A budget written in Python."""

    def victim(self, stored: Stored, /) -> int | None:
        """The position of the point to drop; None to drop nothing, -1 to refuse the newcomer."""


#: what is taken as a budget
BudgetLike = Budget | Chooser


@dataclass(frozen=True)
class Unbounded(Budget):
    """Keep every point that is ever added: the hypothesis of the original papers, whose memory grows.

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Perceptron, Unbounded
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), Unbounded())
    >>> model.fit([[0.0], [3.0], [0.1]], [-1, 1, -1]).n_support_
    2
    """

    evicts: ClassVar[bool] = False
    averages: ClassVar[bool] = True


@dataclass(frozen=True)
class Window(Budget):
    """Forget every point that is older than so many steps: NORMA's truncation, age counted in events.

    Parameters
    ----------
    steps : int, optional
        tau in the paper: the next score uses the points of the last `steps` events only.
    growth : float >= 0, optional
        Instead of a fixed number, ceil(t^(1/2 + growth)) at step t (epsilon of the paper's Theorem 6).

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004,
    figure 1 and Theorem 6.

    Examples
    --------
    >>> from gristmill import Gaussian, Squared, norma_regressor
    >>> model = norma_regressor(Gaussian(1.0), rate=0.1, reg=0.1, window=2)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 3.0, 4.0]).support_ids_.tolist()
    [2, 3]
    """

    steps: int | None = None  # tau
    growth: float | None = None  # epsilon in Theorem 6

    _ranges: ClassVar[dict[str, Range]] = {"steps": optional(capacity), "growth": optional(non_negative)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.steps is None) == (self.growth is None):
            raise ValueError(f"Window: give either steps or growth, got steps={self.steps!r}, growth={self.growth!r}")


@dataclass(frozen=True)
class DropOldest(Budget):
    """Keep the `size` newest of the points that were added.

    Parameters
    ----------
    size : int or str
        Most points ever stored, or the memory of the model in words, such as "1 MB".

    References
    ----------
    J. Kivinen, A. J. Smola, R. C. Williamson, Online Learning with Kernels, IEEE Trans. Signal Processing 52(8), 2004.

    Examples
    --------
    >>> from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), DropOldest(2))
    >>> model.fit([[0.0], [3.0], [6.0], [9.0]], [-1, 1, -1, 1]).support_ids_.tolist()
    [2, 3]
    """

    size: int | str

    _ranges: ClassVar[dict[str, Range]] = {"size": size_range}


@dataclass(frozen=True)
class DropSmallest(Budget):
    """When full, drop the point with the smallest |coefficient|, be it the new one; the oldest on ties (SILK).

    Parameters
    ----------
    size : int or str
        omega in the paper: most points ever stored; or the memory of the model in words, such as "1 MB".

    References
    ----------
    L. Cheng, S. V. N. Vishwanathan, D. Schuurmans, S. Wang, T. Caelli, Implicit Online Learning with Kernels, NIPS 2006.

    Examples
    --------
    >>> from gristmill import DropSmallest, Gaussian, KernelRegressor, SGD, Squared
    >>> model = KernelRegressor(Gaussian(1.0), SGD(Squared(), rate=0.5, reg=0.0), DropSmallest(2))
    >>> model.fit([[0.0], [3.0], [6.0]], [1.0, 5.0, 3.0]).support_ids_.tolist()
    [1, 2]
    """

    size: int | str  # omega

    _ranges: ClassVar[dict[str, Range]] = {"size": size_range}


@dataclass(frozen=True)
class DropRandom(Budget):
    """When full, drop a uniformly random stored point before the new one enters; or keep a uniform sample of all.

    The generator is seeded by the learner's `random_state` and is part of the model.

    Parameters
    ----------
    size : int or str
        B in the paper: most points ever stored; or the memory of the model in words, such as "1 MB".
    uniform : bool, default=False
        False: every new point enters, so that old ones thin out. True: what is stored is a uniform sample of all points
        that ever asked to enter (Algorithm R), so that a new one may be refused.

    References
    ----------
    G. Cavallanti, N. Cesa-Bianchi, C. Gentile, Tracking the best hyperplane with a simple budget Perceptron,
    Machine Learning 69, 2007. J. S. Vitter, Random Sampling with a Reservoir, ACM Trans. Mathematical Software 11(1), 1985.

    Examples
    --------
    >>> from gristmill import DropRandom, Gaussian, KernelClassifier, Perceptron
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), DropRandom(2), random_state=0)
    >>> model.fit([[0.0], [3.0], [6.0], [9.0]], [-1, 1, -1, 1]).n_support_
    2
    """

    size: int | str  # B
    uniform: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"size": size_range, "uniform": flag}


@dataclass(frozen=True)
class Merge(Budget):
    """When full, merge the least important point into the stored point most similar to it.

    Merging v into u adds a_v k(v, u) / k(u, u) to the coefficient of u, which is the projection of v onto u; the
    squared norm of the change of f is then |a_v|^2 (k(v, v) - k(v, u)^2 / k(u, u)). The point for which this is
    smallest is removed; it may be the new one, and ties go to the oldest. What was learned from a point is mostly kept
    in its partner, so that a small budget loses far less than by dropping points.

    Parameters
    ----------
    size : int or str
        Most points ever stored, or the memory of the model in words, such as "1 MB".

    References
    ----------
    Z. Wang, K. Crammer, S. Vucetic, Breaking the Curse of Kernelization: Budgeted Stochastic Gradient Descent for
    Large-Scale SVM Training, JMLR 13, 2012 (merging and projecting onto few points).

    Examples
    --------
    >>> from gristmill import Gaussian, KernelRegressor, Merge, SGD, Squared
    >>> model = KernelRegressor(Gaussian(1.0), SGD(Squared(), rate=1.0), Merge(2))
    >>> model.fit([[0.0], [3.0], [0.1]], [1.0, 2.0, 1.5]).dual_coef_.ravel().round(2).tolist()
    [1.5, 2.0]
    """

    size: int | str

    averages: ClassVar[bool] = True
    _ranges: ClassVar[dict[str, Range]] = {"size": size_range}


@dataclass(frozen=True)
class Forget(Budget):
    """The Forgetron: shrink all coefficients so far that dropping the oldest point does little harm.

    Belongs to the Perceptron with two classes and a kernel with k(x, x) <= 1.

    Parameters
    ----------
    size : int
        B in the paper: most points ever stored.
    basic : bool, default=False
        False is the self-tuned algorithm, True the first one with its fixed schedule.

    References
    ----------
    O. Dekel, S. Shalev-Shwartz, Y. Singer, The Forgetron: A Kernel-Based Perceptron on a Budget, SIAM J. Computing 37, 2008.

    Examples
    --------
    >>> from gristmill import Forget, Gaussian, KernelClassifier, Perceptron
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), Forget(2))
    >>> model.fit([[0.0], [3.0], [6.0], [9.0]], [-1, 1, -1, 1]).support_ids_.tolist()
    [2, 3]
    """

    size: int  # B
    basic: bool = False

    _ranges: ClassVar[dict[str, Range]] = {"size": capacity, "basic": flag}
    rules: ClassVar[tuple[str, ...]] = ("Perceptron",)
    multiclass: ClassVar[bool] = False


@dataclass(frozen=True)
class Project(Budget):
    """Project a new point onto the span of the stored ones if the residual is within a tolerance; else store it
    (Projectron).

    No point is ever dropped. The number of points is bounded by the kernel and the tolerance, and by `size` if given:
    when full, every new point is projected.

    Parameters
    ----------
    tolerance : float >= 0
        eta in the paper: largest distance between k(x, .) and its projection. (The paper's experiments compare the
        squared distance with their eta: their eta = 0.1 is tolerance = sqrt(0.1).) At or above sqrt(k(x, x)) nothing
        would ever be stored.
    size : int, optional
        Most points ever stored.

    References
    ----------
    F. Orabona, J. Keshet, B. Caputo, Bounded Kernel-Based Online Learning, JMLR 10, 2009.

    Examples
    --------
    >>> from gristmill import Gaussian, KernelClassifier, Perceptron, Project
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), Project(tolerance=0.5))
    >>> model.fit([[0.0], [3.0], [1.6], [1.4]], [-1, 1, -1, 1]).n_support_
    3
    """

    tolerance: float  # eta
    size: int | None = None

    evicts: ClassVar[bool] = False
    averages: ClassVar[bool] = True
    _ranges: ClassVar[dict[str, Range]] = {"tolerance": non_negative, "size": optional(capacity)}
    rules: ClassVar[tuple[str, ...]] = (
        "Perceptron",
        "MarginProjection",
        "Alma",
        "SGD",
        "PassiveAggressive",
        "FeasibleSet",
        "Implicit",
    )


def counted(budget: Any, owner: str) -> int:
    """Size of a budget as a number of points; a size in bytes is refused if the memory of a point is unknown."""
    if isinstance(budget.size, str):
        raise ValueError(
            f"{owner}: a size in bytes needs stored points of a fixed width; give a number, got {budget!r}"
        )
    return int(budget.size)


def points_for(
    memory: str | int,
    n_features: int,
    n_outputs: int = 1,
    dtype: npt.DTypeLike = np.float64,
    budget: Budget | None = None,
) -> int:
    """How many points a model of so much memory stores, everything that it keeps counted.

    Parameters
    ----------
    memory : int or str
        Bytes, or a memory in words such as "1 MB".
    n_features : int
    n_outputs : int, default=1
        1 for two classes, regression and novelty; else the number of classes.
    dtype : {float64, float32}
        The type of the stored points.
    budget : budget, default=Merge
        What the points are kept by: `Merge` keeps a partner for each.

    Examples
    --------
    >>> from gristmill.budgets import points_for
    >>> 3000 < points_for("1 MB", n_features=20) < 5000
    True
    """
    from . import _core

    spec = (Merge(10**9) if budget is None else budget).core_spec() | {"size": 10**9}
    core: Any = _core.learner(
        kernel=[("linear", -1, -1, 0, 0.0, 0.0)], rule={"rule": "Perceptron"}, budget={**spec, "bytes": 0},
        task="classification", width=n_features, sparse=False, single=np.dtype(dtype) == np.float32, average=False, seed=0,
    )  # fmt: skip
    return int(core.points_within(memory if is_whole(memory) else bytes_in(str(memory)), n_outputs))
