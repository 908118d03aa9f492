"""The experts of learners that need no settings: few and wide apart on a coarse grid; the race finds the best of them.

Widths follow from the number of columns d: standardised columns lie 2 d apart, squared, in the median. The order is that in
which experts are left out where a memory is too small for all.
"""

from __future__ import annotations

from typing import Any

from ..budgets import DropOldest, Merge
from ..kernels import Gaussian, Laplacian, Linear
from ..learners.kernel import KernelClassifier, KernelRegressor
from ..losses import Hinge, Pinball, Squared
from ..prepared.prepared import Prepared
from ..rules import SGD, PassiveAggressive
from .baselines import (
    LastValue,
    Line,
    LineOfChanges,
    Majority,
    NoChange,
    RunningMean,
    WideAggressive,
    WideLogistic,
    WideSquares,
)


def _room(d: int) -> str:
    """Memory of each expert until that of the race is shared out: at least one block of points."""
    return "1 MB" if d <= 4000 else f"{250 * d} B"


def for_classes(d: int) -> list[Any]:
    """What lasts with `Merge`, at two rates (noisy labels want the lower); the newest, and their vote, for what drifts."""

    def one(kernel: Any, C: float = 1.0, scale: str = "standard") -> Prepared:
        return Prepared(KernelClassifier(kernel, PassiveAggressive(C), Merge(_room(d))), scale)

    vote = SGD(Hinge(1e6), rate=1.0, reg=0.0)  # every event votes for its class, whatever the score
    return [
        one(Laplacian(3 / d)),
        one(Laplacian(3 / d), scale="relevance"),
        one(Gaussian(2 / d), scale="rank-relevance"),
        one(Laplacian(9 / d), scale="rank-relevance"),
        one(Gaussian(0.5 / d), scale="relevance"),
        one(Gaussian(2 / d), C=0.1, scale="rank-relevance"),
        one(Laplacian(3 / d), C=0.1, scale="rank"),
        one(Linear() * (1 / d), C=0.1),
        Prepared(KernelClassifier(Gaussian(8 / d), PassiveAggressive(1.0), DropOldest(_room(d)))),
        Prepared(KernelClassifier(Laplacian(27 / d), vote, DropOldest(_room(d)))),
        Majority(),
        NoChange(),
    ]


WIDEST = 60  #: columns that a line is drawn over: its time and memory are their square


def for_numbers(d: int) -> list[Any]:
    """Passive-Aggressive for little noise, gradient steps and a low C for much; lines for what is straight."""

    def one(kernel: Any, rule: Any, scale: str = "relevance") -> Prepared:
        return Prepared(KernelRegressor(kernel, rule, Merge(_room(d))), scale)

    firm, soft, steps = PassiveAggressive(1.0), PassiveAggressive(0.1), SGD(Squared(), rate=0.3)
    smooth = PassiveAggressive(1.0, variant=2)
    lines: list[Any] = [Line(), LineOfChanges()] if d <= WIDEST else []
    return [
        one(Laplacian(3 / d), steps),
        one(Laplacian(3 / d), firm),
        one(Gaussian(2 / d), soft),
        one(Laplacian(1 / d), steps),
        one(Laplacian(1 / d), smooth, "rank"),
        one(Laplacian(1 / d), firm, "standard"),
        one(Gaussian(0.5 / d), steps, "standard"),
        one(Laplacian(3 / d), soft, "standard"),
        one(Laplacian(9 / d), steps, "standard"),
        *lines,
        LastValue(),
        RunningMean(),
    ]


MANY = 4_000  #: columns above which sparse rows go to linear experts with explicit weights
HASHED = 64  #: numbers to which a sparse row is hashed for kernel experts (`core/pipeline/wide_rows.hpp`)


def for_sparse_classes() -> list[Any]:
    """Linear experts over the columns; kernels over hashed rows, for what is not linear, with few points."""
    kernel = KernelClassifier(Gaussian(0.5 / HASHED), PassiveAggressive(0.1), Merge(_room(HASHED)))
    return [Prepared(kernel), WideLogistic(), WideAggressive(), Majority(), NoChange()]


def for_sparse_numbers() -> list[Any]:
    """A linear expert over the columns, and a kernel over hashed rows with few points."""
    kernel = KernelRegressor(Gaussian(0.5 / HASHED), PassiveAggressive(0.1), Merge(_room(HASHED)))
    return [Prepared(kernel), WideSquares(), LastValue(), RunningMean()]


def for_quantile(d: int, quantile: float) -> list[Any]:
    """Experts for the centre, whose residuals tell the quantile where noise is even, and pinball losses where it is not."""

    def steps(kernel: Any, scale: str = "standard") -> Prepared:
        return Prepared(KernelRegressor(kernel, SGD(Pinball(quantile), rate=0.3), Merge(_room(d))), scale)

    def one(kernel: Any, rule: Any, scale: str = "relevance") -> Prepared:
        return Prepared(KernelRegressor(kernel, rule, Merge(_room(d))), scale)

    firm, soft, even = PassiveAggressive(1.0), PassiveAggressive(0.1), SGD(Squared(), rate=0.3)
    lines: list[Any] = [Line(), LineOfChanges()] if d <= WIDEST else []
    return [
        one(Laplacian(3 / d), even),
        steps(Laplacian(1 / d)),
        one(Laplacian(1 / d), even),
        steps(Laplacian(1 / d), "relevance"),
        one(Laplacian(3 / d), firm),
        steps(Laplacian(0.3 / d)),
        one(Gaussian(2 / d), soft),
        *lines,
        LastValue(),
        RunningMean(),
    ]
