"""The detector of `AutoNovelty` as a graph: distances to its sample, paths in its trees, a soft minimum of three views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._plain import Detector
from .answers import share_of, stretched
from .graph import Graph, Value

_LINEAR, _FARTHEST, _FIRST = 8.0, 1e6, 6.0
_NEAR, _MOST = 10, 20  # events that a distance, and a density, is the mean of
_LEAST = 1e-9
_SHARP, _WEIGHTS = 1.5, (1.0, 1.0, 0.35)
_TAIL = 0.05
_DEPTH = 7


def score_of(graph: Graph, found: Detector, rows: Value) -> Value:
    """`score_samples`, (events, 1)."""
    codes, beyond = _coded(graph, found, rows)
    views = [*_distances(graph, found, codes, beyond), _paths(graph, found, codes)]
    units = [(view - float(m)) / float(s) for view, m, s in zip(views, found.middles, found.spreads, strict=True)]
    lowest = units[0].at_most(units[1]).at_most(units[2])
    total: Value | None = None
    for unit, weight in zip(units, _WEIGHTS, strict=True):
        part = graph.exp((lowest - unit) * _SHARP) * (weight / sum(_WEIGHTS))
        total = part if total is None else total + part
    assert total is not None
    return _level(graph, found, lowest - graph.log(total) / _SHARP)


def _coded(graph: Graph, found: Detector, rows: Value) -> tuple[Value, Value]:
    """Whole numbers, and how far a row lies outside of what they can say."""
    away = rows - found.centre[None, :]
    size = graph.abs(away * found.unit[None, :])
    far = (graph.log((size - _LINEAR).at_least(0.0) + 1.0) + _LINEAR).at_most(_FARTHEST)
    soft = graph.where(size <= _LINEAR, size, far)
    lone = np.where(found.unit > 0, 0.0, _FIRST)[None, :]
    moved = (graph.abs(away) > 0.0).cast(graph.number) * lone  # columns that had one value only
    z = graph.op("Sign", away) * (soft + moved)
    codes = graph.clip(graph.op("Floor", z * (1.0 / found.step) + 0.5), -found.limit, found.limit)
    beyond = (graph.abs(z) - found.limit * found.step).at_least(0.0).sum()
    return codes, beyond


def _distances(graph: Graph, found: Detector, codes: Value, beyond: Value) -> tuple[Value, Value]:
    """The distance to the nearest, and what is usual there over it, as logarithms."""
    count = min(_MOST, len(found.codes))
    apart = graph.sum_over_columns(codes, found.codes, found.codes.shape[1])
    nearest = graph.op("TopK", apart, graph.whole([count]), extra=1, axis=1, largest=0)  # of equals the first
    slots = Value(graph, f"{nearest.name}_0", np.int64)
    near = _mean(nearest.slice(0, min(_NEAR, count)), min(_NEAR, count), found.step) + beyond
    wide = _mean(nearest, count, found.step) + beyond
    usual = _mean(graph.op("Gather", graph.constant(found.usual), slots, axis=0), count, 1.0)
    return -graph.log(near + _LEAST), graph.log((usual + _LEAST) / (wide + _LEAST))


def _mean(values: Value, count: int, unit: float) -> Value:
    return values.sum() * (unit / count)


def _paths(graph: Graph, found: Detector, codes: Value) -> Value:
    """Mean length of the paths to where the trees put a row: seven steps in all of them at once."""
    trees, inner = found.tree_columns.shape
    first: Any = np.arange(trees)[None, :] * inner
    columns, splits = graph.whole(found.tree_columns.ravel()), graph.constant(found.tree_splits.ravel())
    node = (codes @ np.zeros((found.codes.shape[1], trees))).cast(np.int64)
    for _ in range(_DEPTH):
        place = node + first
        column = graph.op("Gather", columns, place, axis=0)
        has_children = column >= 0
        value = graph.op("GatherElements", codes, column.at_least(0), axis=1)
        right = (value > graph.op("Gather", splits, place, axis=0, dtype=graph.number)).cast(np.int64)
        node = graph.where(has_children, node * 2 + right + 1, node)
    ends = node + np.arange(trees)[None, :] * found.tree_paths.shape[1]
    lengths = graph.op("Gather", graph.constant(found.tree_paths.ravel()), ends, axis=0, dtype=graph.number)
    return lengths.sum() * (1.0 / trees)


def _level(graph: Graph, found: Detector, score: Value) -> Value:
    """The logarithm of the share of the last scores that are lower; by distance in the lowest twentieth."""
    n = len(found.scores)
    place = min(max((n + 1) * _TAIL, 1.0), float(n))
    end = float(np.interp(place, np.arange(1, n + 1), found.scores))
    below = found.scores[found.scores < end]
    excess = float(np.mean(end - below)) if len(below) else 0.0
    tail = (score - end) / (excess if excess > 0 else 1.0) + math.log(_TAIL)
    inside = graph.log(share_of(graph, found.scores, score.at_least(end)))
    return stretched(graph, found, graph.where(score >= end, inside, tail))
