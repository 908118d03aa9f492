"""What an estimator reads of a saved state before there is a core: numbers by name, and the kind of its points.

Everything else in a state belongs to the core that wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class PointsKind(NamedTuple):
    """How stored points are kept."""

    width: int  # columns; 0 for objects
    sparse: bool
    single: bool  # in single precision
    objects: bool


def points_kind(state: Mapping[str, object]) -> PointsKind:
    """The kind of the points of a state: objects in a list, a sparse table as a tuple, or an array."""
    points = state["points"]
    if isinstance(points, list):
        return PointsKind(0, False, False, True)
    if isinstance(points, tuple):
        return PointsKind(int(points[3]), True, points[2].dtype == np.float32, False)
    table = np.asarray(points)
    return PointsKind(table.shape[1], False, table.dtype == np.float32, False)


def number_of(state: Mapping[str, object], name: str) -> int:
    """A whole number that a state holds, such as its `width` or `classes`."""
    return int(np.asarray(state[name]).reshape(-1)[0])
