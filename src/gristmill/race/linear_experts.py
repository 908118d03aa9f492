"""Straight lines as experts of a race: least squares on the columns, or on how they changed since the event before."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .baselines import Trivial

Floats = npt.NDArray[np.float64]
FORGET = 0.999  #: what an event leaves of the weight of those before it


@dataclasses.dataclass(frozen=True)
class Line(Trivial):
    """Least squares on the standardised columns, older events forgotten slowly."""

    task: ClassVar[str] = "regression"

    def begin(self) -> LineLane:
        return LineLane(self)


@dataclasses.dataclass(frozen=True)
class LineOfChanges(Trivial):
    """The target before, and least squares of its change on those of the standardised columns."""

    task: ClassVar[str] = "regression"

    def begin(self) -> LineLane:
        return LineLane(self)


class LineLane:
    """One of them in a race. Targets are taken as they come: a line does not ask how they are measured."""

    note, rests, runs = "", False, True
    scales_target = False

    def __init__(self, asked: Trivial) -> None:
        self.asked = asked
        self.changes = isinstance(asked, LineOfChanges)
        self.core: Any = None
        self.first, self.last, self.seen = 0.0, 0.0, 0
        self.row: Floats = np.empty(0)  #: the event before, where changes count

    def learn(self, scaled: Any, numbers: Floats, classes: int) -> Floats:
        rows = scaled[("standard", None)]
        if self.core is None:
            self.core = _core.LeastSquares(rows.shape[1] + (0 if self.changes else 1), FORGET)
            self.first, self.row = float(numbers[0]), rows[0].copy()
        features, base = self._features(rows, np.concatenate([[self.last], numbers[:-1]]))
        said = base + self.core.learn(features, numbers - base)
        if self.seen == 0:
            said[0] = 0.0  # nothing was known
        self.last, self.seen, self.row = float(numbers[-1]), self.seen + len(numbers), rows[-1].copy()
        return np.asarray(said[:, None])

    def _features(self, rows: Floats, before: Floats) -> tuple[Floats, Floats]:
        """What the line is drawn over, and what it is drawn from."""
        if not self.changes:
            return np.hstack([np.ones((len(rows), 1)), rows]), np.full(len(rows), self.first)
        if self.seen == 0:
            before = before.copy()
            before[0] = self.first
        return np.ascontiguousarray(np.diff(np.vstack([self.row, rows]), axis=0)), before

    def score(self, scaled: Any, classes: int) -> Floats:
        rows = scaled[("standard", None)]
        if self.core is None:
            return np.zeros((len(rows), 1))
        if self.changes:
            features, base = np.ascontiguousarray(rows - self.row), np.full(len(rows), self.last)
        else:
            features, base = self._features(rows, np.empty(0))
        return np.asarray((base + self.core.score(features))[:, None])

    @property
    def memory_bytes(self) -> int:
        return 0 if self.core is None else int(self.core.bytes) + self.row.nbytes + 24

    def widen(self, width: int) -> None:
        """Over more columns the line is drawn anew."""
        if self.core is not None:
            self.core = _core.LeastSquares(width + (0 if self.changes else 1), FORGET)
            self.row = np.pad(self.row, (0, width - len(self.row)))

    def composition(self) -> Trivial:
        return self.asked

    def mark(self) -> Any:
        return None if self.core is None else self.core.copy(), self.first, self.last, self.seen, self.row

    def back(self, mark: Any) -> None:
        self.core, self.first, self.last, self.seen, self.row = mark

    def to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        state = {} if self.core is None else self.core.state()
        return {**state, "row": self.row, "ends": np.array([self.first, self.last, float(self.seen)])}, {}

    def from_file(self, arrays: dict[str, Any], fitted: dict[str, Any], width: int, classes: int) -> None:
        ends, row = (np.asarray(arrays[name], dtype=np.float64) for name in ("ends", "row"))
        if ends.shape != (3,) or not np.isfinite(ends).all() or ends[2] < 0 or not np.isfinite(row).all():
            raise ValueError("its line is damaged")
        self.first, self.last, self.seen = float(ends[0]), float(ends[1]), int(ends[2])
        self.row = row.copy()
        if self.seen:
            if row.shape != (width,):
                raise ValueError("its line does not fit its points")
            self.core = _core.LeastSquares(width + (0 if self.changes else 1), FORGET)
            self.core.restore({name: arrays[name] for name in ("weights", "inverse")})
