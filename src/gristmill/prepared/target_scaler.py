"""Targets of a regression as learners want them: about 0, about 1 wide; renewed only at positions that double.

Before the spread is known, which takes two different targets, learners that need it learn nothing. The core has the numbers
(`core/pipeline/target_scale.hpp`); here are merging and the state in a file.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.positions import next_double

Floats = npt.NDArray[np.float64]

FIRST = 2  #: events before the spread is looked at


class TargetScale(_core.TargetScale):
    """Running mean and spread of the targets, and the scale that learners have now."""

    def outside(self, scores: Floats) -> Floats:
        """Scores in the units of the targets; the mean of the targets while learners have learned nothing."""
        return self.centre + self.spread * scores if self.is_known else np.full(scores.shape, self.mean)

    def copy(self) -> Self:
        other = type(self)()
        other.assign(self)
        return other

    @classmethod
    def merged(cls, scales: list[Self]) -> Self:
        """Of all that these have seen, renewed now."""
        whole = scales[0].copy()
        for other in scales[1:]:
            if whole.count == 0:
                whole.first = other.first
            apart = other.first - whole.first
            whole.squares += other.squares + 2 * apart * other.sum + other.count * apart * apart
            whole.sum += other.sum + other.count * apart
            whole.count += other.count
        whole.next = max(whole.next, next_double(FIRST, whole.count))
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
        self.count = int(values[1])
        self.next = next_double(FIRST, self.count)

    def __reduce__(self) -> Any:
        return _from_state, (type(self), self.state())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()


def _from_state(kind: type[TargetScale], values: Floats) -> TargetScale:
    scale = kind()
    scale.restore(values)
    return scale
