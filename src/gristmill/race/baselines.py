"""What costs nothing and must be beaten: the class so far most frequent, the one before, the mean so far, the value before.

They stand in a race as experts do: `learn` tells what was said of each event, `score` what would be said now.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.ranges import Checked

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Trivial(Checked):
    """Base of the trivial experts; values without parameters."""

    task: ClassVar[str]

    def begin(self) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Majority(Trivial):
    """The class that has come most often."""

    task: ClassVar[str] = "classification"

    def begin(self) -> Counts:
        return Counts()


@dataclasses.dataclass(frozen=True)
class NoChange(Trivial):
    """The class of the event before."""

    task: ClassVar[str] = "classification"

    def begin(self) -> Repeats:
        return Repeats()


@dataclasses.dataclass(frozen=True)
class RunningMean(Trivial):
    """The mean of all targets so far."""

    task: ClassVar[str] = "regression"

    def begin(self) -> Mean:
        return Mean()


@dataclasses.dataclass(frozen=True)
class LastValue(Trivial):
    """The target of the event before."""

    task: ClassVar[str] = "regression"

    def begin(self) -> Last:
        return Last()


def _as_scores(shares: Floats) -> Floats:
    """Log odds of two classes, logarithms of more; the logarithms are the core's, alike on every machine."""
    from .. import _core

    logs = _core.logarithms(np.ascontiguousarray(shares))
    return logs[:, 1:] - logs[:, :1] if shares.shape[1] == 2 else logs


class Counts:
    """How often each class has come."""

    memory_bytes = 8

    def __init__(self) -> None:
        self.values = np.zeros(2)

    def learn(self, codes: Floats, classes: int) -> Floats:
        self._widen(classes)
        if len(codes) == 1:
            said = self._scores(self.values[None])
            self.values = self.values.copy()
            self.values[int(codes[0])] += 1.0
            return said
        before = np.zeros((len(codes) + 1, len(self.values)))
        before[np.arange(1, len(codes) + 1), codes.astype(np.int64)] = 1.0
        before[0] = self.values
        np.add.accumulate(before, axis=0, out=before)  # whole numbers: exact however they are cut
        self.values = before[-1].copy()
        return self._scores(before[:-1])

    def score(self, count: int, classes: int) -> Floats:
        return np.repeat(self._scores(self.values[None]), count, axis=0)

    def _widen(self, classes: int) -> None:
        if classes > len(self.values):
            self.values = np.pad(self.values, (0, classes - len(self.values)))

    @staticmethod
    def _scores(counts: Floats) -> Floats:
        return _as_scores((counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 0.5 * counts.shape[1]))

    def state(self) -> Floats:
        return self.values

    def restore(self, values: Floats, classes: int) -> None:
        if values.shape != (max(classes, 2),) or not ((values >= 0) & np.isfinite(values)).all():
            raise ValueError("its counts of the classes are damaged")
        self.values = values.copy()


class Repeats:
    """The class before, and how often it was the same again and how often not."""

    memory_bytes = 32

    def __init__(self) -> None:
        self.last, self.same, self.other = -1, 1.0, 1.0

    def learn(self, codes: Floats, classes: int) -> Floats:
        if len(codes) == 1:
            said, code = self.score(1, classes), int(codes[0])
            if self.last >= 0:
                self.same, self.other = self.same + (self.last == code), self.other + (self.last != code)
            self.last = code
            return said
        whole = codes.astype(np.int64)
        before = np.concatenate([[self.last], whole[:-1]])
        known = before >= 0
        same = np.concatenate([[self.same], (known & (before == whole)).astype(float)]).cumsum()
        other = np.concatenate([[self.other], (known & (before != whole)).astype(float)]).cumsum()
        self.last, self.same, self.other = int(whole[-1]), float(same[-1]), float(other[-1])
        return self._scores(before, same[:-1], other[:-1], classes)

    def score(self, count: int, classes: int) -> Floats:
        one = self._scores(np.array([self.last]), np.array([self.same]), np.array([self.other]), classes)
        return np.repeat(one, count, axis=0)

    @staticmethod
    def _scores(last: Any, same: Floats, other: Floats, classes: int) -> Floats:
        count = max(classes, 2)
        shares = np.repeat((other / (same + other) / (count - 1))[:, None], count, axis=1)
        rows = np.flatnonzero(last >= 0)
        shares[rows, last[rows]] = (same / (same + other))[rows]
        shares[last < 0] = 1.0 / count
        return _as_scores(shares)

    def state(self) -> Floats:
        return np.array([self.last, self.same, self.other])

    def restore(self, values: Floats, classes: int) -> None:
        fine = values.shape == (3,) and np.isfinite(values).all() and (values[1:] >= 1).all()
        if not fine or values[0] not in range(-1, max(classes, 1)):
            raise ValueError("its count of repeats is damaged")
        self.last, self.same, self.other = int(values[0]), float(values[1]), float(values[2])


class Mean:
    """The sum of all targets, from the first of them, and how many they were."""

    memory_bytes = 24

    def __init__(self) -> None:
        self.first, self.sum, self.count = 0.0, 0.0, 0.0

    def learn(self, targets: Floats, classes: int) -> Floats:
        if self.count == 0:
            self.first = float(targets[0])
        sums = np.concatenate([[self.sum], targets - self.first])
        np.add.accumulate(sums, out=sums)
        counts = self.count + np.arange(len(targets) + 1)
        said = self.first + sums[:-1] / np.maximum(counts[:-1], 1)
        if self.count == 0:
            said[0] = 0.0
        self.sum, self.count = float(sums[-1]), float(counts[-1])
        return np.asarray(said[:, None])

    def score(self, count: int, classes: int) -> Floats:
        return np.full((count, 1), self.first + self.sum / self.count if self.count else 0.0)

    def state(self) -> Floats:
        return np.array([self.first, self.sum, self.count])

    def restore(self, values: Floats, classes: int) -> None:
        if values.shape != (3,) or not np.isfinite(values).all() or values[2] < 0:
            raise ValueError("its running mean is damaged")
        self.first, self.sum, self.count = map(float, values)


class Last:
    """The target before; 0 before any."""

    memory_bytes = 8

    def __init__(self) -> None:
        self.value = 0.0

    def learn(self, targets: Floats, classes: int) -> Floats:
        said = np.concatenate([[self.value], targets[:-1]])
        self.value = float(targets[-1])
        return said[:, None]

    def score(self, count: int, classes: int) -> Floats:
        return np.full((count, 1), self.value)

    def state(self) -> Floats:
        return np.array([self.value])

    def restore(self, values: Floats, classes: int) -> None:
        if values.shape != (1,) or not np.isfinite(values).all():
            raise ValueError("its last value is damaged")
        self.value = float(values[0])
