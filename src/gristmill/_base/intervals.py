"""Coverages of prediction intervals, and intervals from half widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.ranges import is_real

#: the coverages that are tracked; what lies between them is interpolated
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def checked_coverage(coverage: Any) -> float:
    """The coverage, if there are intervals for it; else ValueError."""
    if not is_real(coverage) or not LEVELS[0] <= coverage <= LEVELS[-1]:
        kind = ValueError if is_real(coverage) else TypeError
        raise kind(f"coverage must be a number from {LEVELS[0]} to {LEVELS[-1]}, got {coverage!r}")
    return float(coverage)


def around(scores: npt.NDArray[np.float64], halves: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Lower and upper ends, in the last axis."""
    return np.stack([scores - halves, scores + halves], axis=-1)
