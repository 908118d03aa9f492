"""Scales of the targets of a regressor, one or several: targets to the learner, its predictions back to their units."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._common import labels
from .target_scaler import TargetScale

Floats = npt.NDArray[np.float64]
Move = tuple[Floats, Floats]  #: factor and shift of each target


class Targets:
    """A scale a target. Numbers are an array (events,) of one target, or (events, targets)."""

    def __init__(self, scales: tuple[TargetScale, ...] = ()) -> None:
        self.scales = scales  #: none before the first event

    # ---- what is known ---------------------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether there is something to learn."""
        return any(scale.is_known for scale in self.scales)

    @property
    def centre(self) -> Any:
        """The prediction where the learner's is 0: a number, or one per target."""
        found = [scale.centre if scale.is_known else scale.mean for scale in self.scales]
        return found[0] if len(found) == 1 else np.array(found)

    @property
    def spread(self) -> Any:
        """The unit of the learner's predictions; 0 where it is not known yet."""
        return self.scales[0].spread if len(self.scales) == 1 else np.array([scale.spread for scale in self.scales])

    @property
    def nbytes(self) -> int:
        return 56 * len(self.scales)

    # ---- in --------------------------------------------------------------------------------------------------

    def read(self, owner: str, y: Any, count: int) -> Floats:
        """y as numbers; what is none is refused, and what has no square."""
        return labels.targets(owner, y, count, several=True, largest=labels.LARGEST)

    def begin(self, numbers: Floats) -> None:
        if not self.scales:
            self.scales = tuple(TargetScale() for _ in range(1 if numbers.ndim == 1 else numbers.shape[1]))

    def due(self) -> int:
        """Events until a scale may move."""
        return self.scales[0].due()

    def cuts(self, count: int) -> set[int]:
        """Where the next events are cut."""
        position, found = self.due(), set()
        step = self.scales[0].next
        while position < count:
            found.add(position)
            position, step = position + step, 2 * step
        return found

    def inside(self, numbers: Floats) -> Floats:
        """Scaled targets; 0 where the scale is not known yet."""
        columns = numbers.reshape(len(numbers), -1).T
        scaled = [
            scale.inside(np.ascontiguousarray(column)) if scale.is_known else np.zeros(len(column))
            for scale, column in zip(self.scales, columns, strict=True)
        ]
        return np.ascontiguousarray(np.stack(scaled, axis=1).reshape(numbers.shape))

    def learn(self, numbers: Floats) -> Move | None:
        """Take in targets up to the next position at most; there, if one moves: factors and shifts."""
        columns = numbers.reshape(len(numbers), -1).T
        moved = [scale.learn(np.ascontiguousarray(column)) for scale, column in zip(self.scales, columns, strict=True)]
        return None if all(move is None for move in moved) else _moves(moved)

    def learn_batch(self, numbers: Floats) -> None:
        """All targets of a batch, before the learner learns any of them."""
        self.begin(numbers)
        edges = [0, *sorted(self.cuts(len(numbers))), len(numbers)]
        for start, stop in itertools.pairwise(edges):
            self.learn(numbers[start:stop])
        for scale in self.scales:
            scale.settle()

    # ---- out -------------------------------------------------------------------------------------------------

    def means(self, numbers: Floats) -> Floats:
        """Predictions while nothing is learned: the mean so far."""
        columns = numbers.reshape(len(numbers), -1).T
        means = [scale.means(np.ascontiguousarray(column)) for scale, column in zip(self.scales, columns, strict=True)]
        return np.stack(means, axis=1).reshape(numbers.shape)

    def outside(self, scores: object) -> Any:
        """What the learner says, in the units of the targets; one event or several."""
        return self.centre + self.spread * scores

    def interval(self, ends: Any) -> Any:
        """The same of intervals, ends in the last axis; everything is possible where nothing is known."""
        spread, centre = self.spread, self.centre
        if len(self.scales) > 1:
            spread, centre = spread[:, None], centre[:, None]
        unknown = np.broadcast_to(spread == 0, ends.shape)
        with np.errstate(invalid="ignore"):  # 0 times infinity
            found = centre + spread * ends
        return np.where(unknown, np.broadcast_to([-np.inf, np.inf], ends.shape), found)

    def interval_one(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The same of one event."""
        low, high = np.moveaxis(self.interval(np.stack([low, high], axis=-1)), -1, 0)
        return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)

    # ---- several models --------------------------------------------------------------------------------------

    def to(self, other: Targets) -> Move:
        """What makes targets by this those by another."""
        pairs = zip(self.scales, other.scales, strict=True)
        return _moves([mine.to(its) if mine.is_known and its.is_known else None for mine, its in pairs])

    @classmethod
    def merged(cls, several: list[Self]) -> Self:
        some = [targets for targets in several if targets.scales]
        if not some:
            return cls()
        return cls(tuple(TargetScale.merged(list(scales)) for scales in zip(*(t.scales for t in some), strict=True)))

    def copy(self) -> Self:
        return type(self)(tuple(scale.copy() for scale in self.scales))

    def state(self) -> Floats:
        return np.stack([scale.state() for scale in self.scales])

    @classmethod
    def from_state(cls, values: object) -> Self:
        scales = []
        for line in np.asarray(values, dtype=np.float64):
            scales.append(TargetScale())
            scales[-1].restore(line)
        if not scales or len({scale.count for scale in scales}) > 1:
            raise ValueError("its scale of the targets is damaged")
        return cls(tuple(scales))


def _moves(moved: list[tuple[float, float] | None]) -> Move:
    both = np.array([(1.0, 0.0) if move is None else move for move in moved])
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
