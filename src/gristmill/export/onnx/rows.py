"""Inputs of a graph to the rows of a model: columns of a table to their places, gaps filled, columns scaled."""

from __future__ import annotations

import math

import numpy as np

from ...streams.tables.cells import MISSING
from ...streams.tables.row_builder import ONE_HOT
from .._plain import FAR, CategoryColumn, Description, Floats, NumberColumn, RankMaps, Rows, Scaling
from .graph import Graph, Value

# sin(x) / x and cos(x) in powers of x^2, on [0, pi / 4], as the library has them
_SINE = [1.0 / math.factorial(2 * k + 1) * (-1) ** k for k in range(10)]
_COSINE = [1.0 / math.factorial(2 * k) * (-1) ** k for k in range(10)]


def rows_of(graph: Graph, found: Description) -> Value:
    """Inputs as the description names them, and the rows that they make: of a table with times in double.

    Sines of weekdays differ by single bits where they should not, and ranks tell such values apart.
    """
    rows = found.rows
    if rows.table is None:
        x = graph.input("X", graph.number, ["N", rows.width])
        if rows.fills is not None:
            gone = graph.op("IsNaN", x, dtype=np.bool_)
            x = graph.where(gone, graph.constant(rows.fills[None, :]), x)
    else:
        x = _of_table(graph, rows)
    return x if rows.scaling is None else scaled(graph, x, rows.scaling)


def scaled(graph: Graph, x: Value, scaling: Scaling | RankMaps) -> Value:
    if isinstance(scaling, RankMaps):
        return _ranked(graph, x, scaling)
    z = (x - scaling.centre[None, :]) / scaling.spread[None, :]
    if scaling.soft_clips:
        over = (graph.abs(z) - FAR).at_least(0.0)
        inside = FAR + over / (1.0 + over / FAR)
        z = graph.where(over > 0.0, graph.op("Sign", z) * inside, z)
    return z if scaling.weights is None else z * scaling.weights[None, :]


def _ranked(graph: Graph, x: Value, maps: RankMaps) -> Value:
    """A piecewise linear map a column: the outer score, and of each segment the share that lies below the value."""
    first, last = maps.knots[:, 0], maps.knots[:, -1]
    wide, rise = np.diff(maps.knots, axis=1), np.diff(maps.scores, axis=1)
    apart = graph.op("Unsqueeze", x, graph.whole([2])) - maps.knots[None, :, :-1]
    shares = graph.clip(apart / np.where(wide > 0, wide, 1.0)[None], 0.0, 1.0)
    steps = graph.op("ReduceSum", shares * rise[None], graph.whole([2]), keepdims=0)
    z = steps + maps.scores[None, :, 0]
    z = z + _beyond(graph, x - last[None, :], maps.high_unit)
    z = z - _beyond(graph, -(x - first[None, :]), maps.low_unit)
    known = (maps.scaled * (maps.low_unit > 0))[None, :]
    z = graph.where(graph.constant(known > 0, np.bool_), z, x * (1.0 - maps.scaled)[None, :])
    return z if maps.weights is None else z * maps.weights[None, :]


def _beyond(graph: Graph, away: Value, unit: Floats) -> Value:
    """l / (1 + l / 2) with l = log(1 + away / unit); 0 between the ends."""
    size = graph.log(away.at_least(0.0) / np.where(unit > 0, unit, 1.0)[None, :] + 1.0)
    return size / (size / 2.0 + 1.0)


def _of_table(graph: Graph, rows: Rows) -> Value:
    assert rows.table is not None
    parts = [
        _category(graph, column, rows.width)
        if isinstance(column, CategoryColumn)
        else _number(graph, column, rows.width)
        for column in rows.table
    ]
    number = max(part.dtype for part in parts)
    total = parts[0].cast(number)
    for part in parts[1:]:
        total = total + part.cast(number)
    return total


def _unit(place: int, width: int) -> Floats:
    return np.eye(1, width, place)


def _number(graph: Graph, column: NumberColumn, width: int) -> Value:
    """One input, (events, 1), at its place; NaN is a missing value. Times are seconds since 1970, always in double."""
    time = column.kind == "time"
    dtype = np.dtype(np.float64) if time else graph.number
    raw = graph.input(column.name, dtype, ["N", 1])
    gone = graph.op("IsNaN", raw, dtype=np.bool_)
    days = raw / 86_400.0 if time else raw
    value = graph.where(gone, column.fill, days)
    if time:
        value = value - column.first
    part = value @ _unit(column.place, width)
    if time:
        part = part + _circles(graph, column, graph.where(gone, 0.0, days), gone, width)
    if column.missing >= 0:
        part = part + gone.cast(dtype) @ _unit(column.missing, width)
    return part


def _circles(graph: Graph, column: NumberColumn, days: Value, gone: Value, width: int) -> Value:
    """Hour and weekday as sine and cosine; the middle of the circle where the time is missing."""
    day = graph.op("Floor", days)
    turns = (days - day, _modulo(graph, day + 3.0, 7.0) / 7.0)  # 1970 began on a Thursday
    there = graph.where(gone, 0.0, days * 0.0 + 1.0)
    total: Value | None = None
    for offset, turn in zip((1, 3), turns, strict=True):
        for more, value in enumerate(_circle(graph, turn)):
            part = (value * there) @ _unit(column.place + offset + more, width)
            total = part if total is None else total + part
    assert total is not None
    return total


def _modulo(graph: Graph, x: Value, by: float) -> Value:
    return x - graph.op("Floor", x / by) * by


def _circle(graph: Graph, turns: Value) -> tuple[Value, Value]:
    eighth = graph.op("Floor", turns * 8.0)
    rest = turns * 8.0 - eighth
    odd = _modulo(graph, eighth, 2.0) >= 1.0
    angle = graph.where(odd, 1.0 - rest, rest) * (math.pi / 4)
    square = angle * angle
    sine, cosine = square * 0.0, square * 0.0
    for odd_power, even_power in zip(reversed(_SINE), reversed(_COSINE), strict=True):
        sine, cosine = sine * square + odd_power, cosine * square + even_power
    sine = sine * angle
    swap = _modulo(graph, graph.op("Floor", (eighth + 1.0) / 2.0), 2.0) >= 1.0
    up, right = graph.where(swap, cosine, sine), graph.where(swap, sine, cosine)
    up = graph.where(eighth >= 4.0, -up, up)
    left = graph.op("And", eighth >= 2.0, eighth <= 5.0, dtype=np.bool_)
    return up, graph.where(left, -right, right)


def _category(graph: Graph, column: CategoryColumn, width: int) -> Value:
    """One input of texts, (events, 1): each value has a row of its own in a small table."""
    raw = graph.input(column.name, str, ["N", 1])
    places = [*column.values.values(), column.missing, column.other]
    table = np.zeros((len(places), width))
    for line, place in enumerate(places):
        if place >= 0:
            table[line, place] = ONE_HOT
    known = {text: line for line, text in enumerate(column.values)}
    lines = {word: known.get(word, len(places) - 1) for word in ("true", "false")}
    lines |= {word: len(places) - 2 for word in sorted(MISSING)}
    for word, line in lines.items():
        for spelling in (word, word.upper(), word.capitalize()):
            known.setdefault(spelling, line)
    code = graph.op(
        "LabelEncoder",
        graph.op("Squeeze", raw, graph.whole([1])),
        dtype=np.int64,
        domain="ai.onnx.ml",
        keys_strings=list(known),
        values_int64s=list(known.values()),
        default_int64=len(places) - 1,
    )
    return graph.op("Gather", graph.constant(table), code, axis=0)
