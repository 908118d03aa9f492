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


@dataclasses.dataclass(frozen=True)
class Majority(Trivial):
    """The class that has come most often."""

    task: ClassVar[str] = "classification"


@dataclasses.dataclass(frozen=True)
class NoChange(Trivial):
    """The class of the event before."""

    task: ClassVar[str] = "classification"


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


def baseline_number(expert: Trivial) -> int:
    """How the core numbers this baseline."""
    return (Majority, NoChange, RunningMean, LastValue).index(type(expert))
