"""Means so far of columns that may have gaps, in sums whose order does not depend on how the stream is cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Gaps = npt.NDArray[np.bool_]

_HELD = 256  # single rows that are put by, to be summed together: a sum costs more than a row


class RunningMeans:
    """First value, sum of differences from it, and count, of each column.

    No array is ever written to after it was handed out by `mark`, save beyond what was held then: so a mark is a few
    references, and going back costs nothing.
    """

    def __init__(self) -> None:
        # Differences from the first value: a large offset would drown small ones.
        self.first: Floats = np.empty(0)
        self.total: Floats = np.empty(0)
        self.count: Floats = np.empty(0)
        self._rows: Floats = np.empty((0, 0))
        self._held = 0

    def widen(self, first: Any) -> None:
        """More columns, which begin with these values."""
        self._sum_held()
        fresh = np.zeros(len(first))
        self.first = np.append(self.first, first)
        self.total = np.append(self.total, fresh)
        self.count = np.append(self.count, fresh)
        self._rows = np.empty((0, 0))

    def mark(self) -> tuple[Any, ...]:
        """What to go back to."""
        return self.first, self.total, self.count, self._rows, self._held

    def back(self, mark: tuple[Any, ...]) -> None:
        """To where `mark` was called."""
        self.first, self.total, self.count, self._rows, self._held = mark

    def learn_plain(self, rows: Floats) -> None:
        """Take in rows without gaps."""
        if len(rows) > 1:
            self._sum_held()
            self._sum(rows)
            return
        if self._held == len(self._rows):
            self._sum_held()
            self._rows = np.empty((_HELD, len(self.first)))
        self._rows[self._held] = rows[0]
        self._held += 1

    def _sum_held(self) -> None:
        if self._held:
            self._sum(self._rows[: self._held])
            self._held, self._rows = 0, np.empty((0, 0))

    def _sum(self, rows: Floats) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = rows - self.first
            steps[0] += self.total
            self.total = np.add.accumulate(steps, out=steps)[-1].copy()
        self.count = self.count + len(rows)

    def learn(self, values: Floats, gone: Gaps) -> Floats:
        """Take in rows, and return them with the mean at that time in place of each gap."""
        if not gone.any():
            self.learn_plain(values)
            return values
        self._sum_held()
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.where(gone, 0.0, values - self.first)
            totals = np.add.accumulate(np.vstack([self.total, steps]))
            counts = np.add.accumulate(np.vstack([self.count, ~gone]))
            self.total, self.count = totals[-1].copy(), counts[-1].copy()
            return self._filled(values, gone, totals[1:], counts[1:])

    def fill(self, values: Floats, gone: Gaps) -> Floats:
        """Rows with the mean so far in place of each gap; nothing is taken in."""
        if not gone.any():
            return values
        known = RunningMeans()
        known.back(self.mark())
        known._sum_held()
        with np.errstate(over="ignore", invalid="ignore"):
            return known._filled(values, gone, known.total, known.count)

    def _filled(self, values: Floats, gone: Gaps, totals: Floats, counts: Floats) -> Floats:
        means = self.first + totals / np.maximum(counts, 1.0)
        # A sum that has overflowed tells nothing any more.
        return np.where(gone, np.where(np.isfinite(means), means, self.first), values)

    def to_file(self) -> dict[str, Floats]:
        """Arrays under their names in a model file."""
        self._sum_held()
        return {"table.first": self.first, "table.total": self.total, "table.count": self.count}

    @classmethod
    def from_file(cls, arrays: Mapping[str, Any], size: int) -> RunningMeans:
        """Back from `to_file`; what does not fit is refused."""
        means = cls()
        means.first, means.total, means.count = (
            np.array(arrays[f"table.{name}"], dtype=np.float64) for name in ("first", "total", "count")
        )
        shapes = {means.first.shape, means.total.shape, means.count.shape}
        if shapes != {(size,)} or not np.isfinite(means.first).all() or not (means.count >= 0).all():
            raise ValueError("its table is damaged")
        return means
