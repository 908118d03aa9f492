"""Experts of a race without parameters: most frequent class, previous class or value, running mean, linear models.

They run in the core (`core/race/expert.hpp`); here they are values that name them.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from .._common.ranges import Checked


@dataclasses.dataclass(frozen=True)
class Trivial(Checked):
    """Base of the experts without parameters."""

    task: ClassVar[str]
    #: whether it learns next to nothing, so that others are compared with it
    is_baseline: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class Majority(Trivial):
    """The class that has come most often."""

    task: ClassVar[str] = "classification"


@dataclasses.dataclass(frozen=True)
class NoChange(Trivial):
    """The class of the event before."""

    task: ClassVar[str] = "classification"


@dataclasses.dataclass(frozen=True)
class ClassMeans(Trivial):
    """The class whose mean is nearest, in units of the deviations within classes; it comes once there are 16 classes."""

    task: ClassVar[str] = "classification"
    is_baseline: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class RunningMean(Trivial):
    """The mean of all targets so far."""

    task: ClassVar[str] = "regression"


@dataclasses.dataclass(frozen=True)
class LastValue(Trivial):
    """The target of the event before."""

    task: ClassVar[str] = "regression"


@dataclasses.dataclass(frozen=True)
class Line(Trivial):
    """Least squares on the standardised columns, with slow forgetting of older events."""

    task: ClassVar[str] = "regression"


@dataclasses.dataclass(frozen=True)
class LineOfChanges(Trivial):
    """The target before, plus least squares of its change on the changes of the standardised columns."""

    task: ClassVar[str] = "regression"


@dataclasses.dataclass(frozen=True)
class WideLinear(Trivial):
    """Base of the linear experts over sparse rows of very many columns, with explicit weights and a step size for each."""

    number: ClassVar[int]  #: how the core numbers it
    is_baseline: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class WideLogistic(WideLinear):
    """Gradient steps on the logarithmic loss, shortened by the gradients so far (AdaGrad)."""

    task: ClassVar[str] = "classification"
    number: ClassVar[int] = 0


@dataclasses.dataclass(frozen=True)
class WideAggressive(WideLinear):
    """Passive-Aggressive steps, weighed by the confidence in each weight (AROW)."""

    task: ClassVar[str] = "classification"
    number: ClassVar[int] = 1


@dataclasses.dataclass(frozen=True)
class WideSquares(WideLinear):
    """Least squares by steps that are weighed by the confidence in each weight (AROW)."""

    task: ClassVar[str] = "regression"
    number: ClassVar[int] = 2


def baseline_number(expert: Trivial) -> int:
    """How the core numbers this baseline."""
    return (Majority, NoChange, RunningMean, LastValue).index(type(expert))
