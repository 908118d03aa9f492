"""Targets of a regression as learners want them: about 0, about 1 wide; measured anew only at positions that double.

Before the spread is known, which takes two different targets, nobody who needs it learns.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST = 2  #: events before the spread is looked at
SHIFT = 0.1  #: spreads: a mean that moved less is left where it was
RATIO = 1.25  #: a spread that grew or shrank less is left as it was


class TargetScale:
    """Running mean and spread of the targets, and what the learners are told for now."""

    def __init__(self) -> None:
        self.first = 0.0  #: sums are of differences from the first target: large offsets would drown small spreads
        self.count, self.sum, self.squares = 0, 0.0, 0.0
        self.centre, self.spread = 0.0, 0.0  #: 0: not known yet
        self.next = FIRST  #: the position at which it may move

    @property
    def is_known(self) -> bool:
        return self.spread > 0

    @property
    def mean(self) -> float:
        """Of all targets so far; 0 before the first."""
        return self.first + self.sum / self.count if self.count else 0.0

    def due(self) -> int:
        """Events until it may move."""
        return self.next - self.count

    def inside(self, targets: Floats) -> Floats:
        return (targets - self.centre) / self.spread

    def outside(self, said: Floats) -> Floats:
        if not self.is_known:  # learners have learned nothing
            return np.full(said.shape, self.mean)
        return self.centre + self.spread * said

    def means(self, targets: Floats) -> Floats:
        """The mean of all targets before each of these; 0 before the first."""
        if self.count == 0:
            first, off = float(targets[0]), targets - targets[0]
        else:
            first, off = self.first, targets - self.first
        sums = np.add.accumulate(np.concatenate([[self.sum], off]))[:-1]
        counts = self.count + np.arange(len(targets))
        return np.asarray(np.where(counts > 0, first + sums / np.maximum(counts, 1), 0.0))

    def learn(self, targets: Floats) -> tuple[float, float] | None:
        """Take in targets up to the next position at most; there, if it moves: old targets times this plus that."""
        if self.count == 0:
            self.first = float(targets[0])
        if len(targets) == 1:
            self.take(float(targets[0]))
        else:
            off = targets - self.first
            # One after the other: the sums are the same for any cut.
            self.sum = float(np.add.accumulate(np.concatenate([[self.sum], off]))[-1])
            self.squares = float(np.add.accumulate(np.concatenate([[self.squares], off * off]))[-1])
            self.count += len(targets)
        if self.count < self.next:
            return None
        self.next *= 2
        return self._move()

    def take(self, target: float) -> None:
        """One more target, before the position at which it may move."""
        off = target - self.first
        self.sum += off
        self.squares += off * off
        self.count += 1

    def _move(self, whatever: bool = False) -> tuple[float, float] | None:
        mean = self.sum / self.count
        spread = float(np.sqrt(max(self.squares / self.count - mean * mean, 0.0)))
        centre = self.first + mean
        before, old = self.spread, self.centre
        if not 0 < spread < np.inf:
            return None
        near = abs(centre - old) <= SHIFT * before and before / RATIO <= spread <= before * RATIO
        if before > 0 and near and not whatever:
            return None
        self.centre, self.spread = centre, spread
        return (before / spread, (old - centre) / spread) if before > 0 else None

    def settle(self) -> None:
        """Measured now, wherever that is. requires: nobody has learned by it yet."""
        if self.count:
            self._move(whatever=True)

    def to(self, other: TargetScale) -> tuple[float, float]:
        """What makes targets by this those by another; requires: both are known."""
        return self.spread / other.spread, (self.centre - other.centre) / other.spread

    def copy(self) -> Self:
        return copy.copy(self)

    @classmethod
    def merged(cls, scales: list[Self]) -> Self:
        """Of all that these have seen, measured now."""
        whole = scales[0].copy()
        for other in scales[1:]:
            if whole.count == 0:
                whole.first = other.first
            apart = other.first - whole.first
            whole.squares += other.squares + 2 * apart * other.sum + other.count * apart * apart
            whole.sum += other.sum + other.count * apart
            whole.count += other.count
        while whole.next <= whole.count:
            whole.next *= 2
        if len(scales) > 1:
            whole.settle()
        return whole

    def state(self) -> Floats:
        return np.array([self.first, self.count, self.sum, self.squares, self.centre, self.spread])

    def restore(self, values: Any) -> None:
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (6,) or not np.isfinite(values).all() or not 0 <= values[1] < 2**62 or values[5] < 0:
            raise ValueError("its scale of the targets is damaged")
        self.first, self.sum, self.squares, self.centre, self.spread = map(float, values[[0, 2, 3, 4, 5]])
        self.count, self.next = int(values[1]), FIRST
        while self.next <= self.count:
            self.next *= 2
