"""Targets of a regression as learners want them: about 0, about 1 wide; measured anew only at positions that double.

Before the spread is known, which takes eight events and two different targets, nobody who needs it learns.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST = 8  #: events before the spread is looked at
SHIFT = 0.1  #: spreads: a mean that moved less is left where it was
RATIO = 1.25  #: a spread that grew or shrank less is left as it was


class TargetScale:
    """Running mean and spread of the targets, and what the learners are told for now."""

    def __init__(self) -> None:
        self.first = 0.0  #: sums are of differences from the first target: large offsets would drown small spreads
        self.count, self.sum, self.squares = 0, 0.0, 0.0
        self.centre, self.spread = 0.0, 0.0  #: 0: not known yet

    @property
    def is_known(self) -> bool:
        return self.spread > 0

    def due(self) -> int:
        """Events until it may move."""
        position = FIRST
        while position <= self.count:
            position *= 2
        return position - self.count

    def inside(self, targets: Floats) -> Floats:
        return (targets - self.centre) / self.spread

    def outside(self, said: Floats) -> Floats:
        if not self.is_known:  # learners have learned nothing
            return np.full(said.shape, self.first + self.sum / self.count if self.count else 0.0)
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
        off = targets - self.first
        # One after the other: the sums are the same for any cut.
        self.sum = float(np.add.accumulate(np.concatenate([[self.sum], off]))[-1])
        self.squares = float(np.add.accumulate(np.concatenate([[self.squares], off * off]))[-1])
        self.count += len(targets)
        times = self.count // FIRST
        if self.count % FIRST or times & (times - 1):
            return None
        return self._move()

    def _move(self) -> tuple[float, float] | None:
        mean = self.sum / self.count
        spread = float(np.sqrt(max(self.squares / self.count - mean * mean, 0.0)))
        centre = self.first + mean
        before, old = self.spread, self.centre
        if not 0 < spread < np.inf:
            return None
        if before > 0 and abs(centre - old) <= SHIFT * before and before / RATIO <= spread <= before * RATIO:
            return None
        self.centre, self.spread = centre, spread
        return (before / spread, (old - centre) / spread) if before > 0 else None

    def copy(self) -> Self:
        return copy.copy(self)

    def state(self) -> Floats:
        return np.array([self.first, self.count, self.sum, self.squares, self.centre, self.spread])

    def restore(self, values: Any) -> None:
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (6,) or not np.isfinite(values).all() or values[1] < 0 or values[5] < 0:
            raise ValueError("its scale of the targets is damaged")
        self.first, self.sum, self.squares, self.centre, self.spread = map(float, values[[0, 2, 3, 4, 5]])
        self.count = int(values[1])
