"""Argument checks of the bounds, by the same ranges as the learners' parameters."""

from __future__ import annotations

from .._common.ranges import Range


def require(owner: str, range_: Range, **values: object) -> None:
    """Refuse the first value outside the range, naming it."""
    for name, value in values.items():
        range_.check(owner, name, value)


def times(factor: float, loss: float) -> float:
    """factor * loss where an infinite factor times no loss at all is nothing: the hard-margin limit."""
    return 0.0 if loss == 0 else factor * loss
