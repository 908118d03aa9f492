"""Parts of a chunk, and positions of a stream at which something is done again: first, 2 first, 4 first, ..."""

from __future__ import annotations

from typing import Any


def part_of(values: Any, part: slice) -> Any:
    """Rows of an array, a list, or a Series or DataFrame; None stays None."""
    if values is None:
        return None
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


def next_double(first: int, seen: int) -> int:
    """The least of first, 2 first, 4 first, ... above `seen`.

    Examples
    --------
    >>> from gristmill._common.positions import next_double
    >>> [next_double(200, seen) for seen in (0, 199, 200, 1000)]
    [200, 200, 400, 1600]
    """
    position = first
    while position <= seen:
        position *= 2
    return position


def is_double(first: int, seen: int) -> bool:
    """Whether `seen` is one of first, 2 first, 4 first, ..."""
    return seen > 0 and next_double(first, seen - 1) == seen
