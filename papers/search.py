"""What the papers call tuned by hand: the best of a grid, on streams that are not counted.

A grid is a guess. Where its best entry lies on an edge, the grid is widened there and searched again, so that no
verdict hangs on where somebody's grid ended.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.notation import parse


@dataclass(frozen=True)
class Axis:
    """Values of one parameter, rising, in about equal ratios; how far the search may go beyond them."""

    values: tuple[float, ...]
    least: float = 0.0  #: a value below it is never tried; 0 itself is the end of its axis
    most: float = math.inf
    why: str = ""  #: of an axis that is never widened, the reason

    def below(self) -> tuple[float, ...]:
        """The next value under the smallest, or nothing."""
        first, *rest = self.values
        if not rest or first <= 0:
            return ()
        following = _rounded(first * first / rest[0])
        return (following,) if following >= self.least and following > 0 else ()

    def above(self) -> tuple[float, ...]:
        """The next value over the largest, or nothing."""
        *rest, last = self.values
        if not rest or rest[-1] <= 0:
            return ()
        following = _rounded(last * last / rest[-1])
        return (following,) if following <= self.most else ()


def fixed(*values: float, why: str) -> Axis:
    """An axis that is never widened, and why: a paper prints it, or its ends are the ends of what makes sense."""
    return Axis(values, least=min(values), most=max(values), why=why)


def few(axis: Axis, count: int = 2) -> Axis:
    """So many values of an axis at most, for a quick run that judges nothing."""
    return fixed(*axis.values[1 : 1 + count], why="a quick run")


@dataclass(frozen=True)
class Best:
    """What a search found."""

    values: dict[str, float]
    cost: float
    grid: dict[str, tuple[float, ...]]  #: axis -> its values in the end
    widened: dict[str, tuple[float, float]]  #: axis -> its ends in the end, where they moved
    at_edge: tuple[str, ...]  #: axes that still had their best on an edge when the search gave up

    def remark(self) -> str:
        """For a table: nothing where the first grid was wide enough."""
        notes = [f"{name} widened to {low:g}..{high:g}" for name, (low, high) in self.widened.items()]
        notes += [f"{name} still at its edge" for name in self.at_edge]
        return "; ".join(notes)


#: so often a grid may grow; only a cost that falls without end needs more
WIDENINGS = 10


def search(axes: Mapping[str, Axis], cost: Callable[..., float], quick: bool = False) -> Best:
    """The cheapest entry of a grid that grows until its best entry is inside; `quick`: of the grid as it is.

    A tie goes to what was tried first, so that a grid does not run along a plateau. An infinite cost forbids an entry;
    where all are forbidden, no edge is better than another and the grid stays.

    Examples
    --------
    >>> from papers.search import Axis, search
    >>> best = search({"rate": Axis((0.1, 1.0))}, lambda rate: abs(rate - 30.0))
    >>> best.values["rate"], best.remark()
    (10.0, 'rate widened to 0.1..100')
    """
    grid = dict(axes)
    tried: dict[tuple[float, ...], float] = {}
    for left in range(0 if quick else WIDENINGS, -1, -1):
        for entry in itertools.product(*(axis.values for axis in grid.values())):
            if entry not in tried:
                tried[entry] = cost(**dict(zip(grid, entry, strict=True)))
        best = min(tried, key=lambda entry: tried[entry])
        wider = {name: _wider(axis, value) for (name, axis), value in zip(grid.items(), best, strict=True)}
        if math.isinf(tried[best]):
            wider = grid
        moved = tuple(name for name in grid if wider[name] != grid[name])
        if not moved or left == 0:
            break
        grid = wider
    ends = {name: (axis.values[0], axis.values[-1]) for name, axis in grid.items() if axis.values != axes[name].values}
    values = {name: axis.values for name, axis in grid.items()}
    found = Best(dict(zip(grid, best, strict=True)), tried[best], values, ends, moved)
    for watcher in _WATCHERS:
        watcher.append(found)
    return found


def edges(found: Sequence[Best]) -> str:
    """Of many searches, how many widened their grid, and how many were still at an edge in the end."""
    widened, left = sum(bool(best.widened) for best in found), sum(bool(best.at_edge) for best in found)
    return (
        f"{len(found):,} searches; {widened:,} widened their grid, {left:,} still had their best at its edge in the end"
    )


@contextmanager
def watched() -> Iterator[list[Best]]:
    """A list that every search inside adds what it found to."""
    found: list[Best] = []
    _WATCHERS.append(found)
    try:
        yield found
    finally:
        _WATCHERS.remove(found)


_WATCHERS: list[list[Best]] = []


def _wider(axis: Axis, value: float) -> Axis:
    """The axis with one value more at the end where the best one lies."""
    before = axis.below() if value == axis.values[0] else ()
    after = axis.above() if value == axis.values[-1] else ()
    return replace(axis, values=(*before, *axis.values, *after))


def _rounded(value: float) -> float:
    """Two digits are enough, and read better in a table."""
    return float(f"{value:.2g}")


def mistakes(text: str, X: Any, y: Any) -> npt.NDArray[np.int64]:
    """Mistakes so far (y f <= 0, so that a score of 0 counts) of a binary learner, event by event."""
    scores = parse(text).prequential(X, y, classes=[-1, 1])
    return np.cumsum(y * scores <= 0)


def tuned(text: Callable[..., str], axes: Mapping[str, Axis], streams: Sequence[tuple[Any, Any]]) -> tuple[str, Best]:
    """The learner, by its parameters, that errs least on the given streams together."""
    best = search(axes, lambda **values: sum(int(mistakes(text(**values), *stream)[-1]) for stream in streams))
    return text(**best.values), best
