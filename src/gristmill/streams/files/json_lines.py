"""JSON lines, and any Python iterable of dicts or pairs: rows with names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..errors import BadRows, StreamError, shown
from ..stream import ROWS, Chunk, Stream
from .columns import Columns, as_labels
from .source import text_blocks

#: a row with where it stood; or in place of the row what is wrong with it, and its text
Found = tuple[str, Mapping[str, Any] | StreamError, str]


def json_chunks(path: Any, name: str, columns: Columns, bad: BadRows | None) -> Iterator[Chunk]:
    """The chunks of a file or pipe with one JSON object a line."""
    yield from _row_chunks(object_lines(path, name), name, columns, bad)


def object_lines(path: Any, name: str) -> Iterator[list[Found]]:
    """The objects of a file or pipe, one list a block."""
    for block in text_blocks(path):
        found: list[Found] = []
        for number, line in enumerate(block.data.split(b"\n"), start=block.line):
            if line.strip():
                where = f"{name}, line {number}"
                found.append((where, _object(line, where), line.decode("utf-8", errors="replace")))
        yield found


def _object(line: bytes, where: str) -> Mapping[str, Any] | StreamError:
    try:
        value = json.loads(line)
    except ValueError as error:
        return StreamError(f"{where}: {error}")
    except RecursionError:
        return StreamError(f"{where}: the JSON is nested too deeply")
    return value if isinstance(value, dict) else StreamError(f"{where}: this is not a JSON object")


def _row_chunks(blocks: Iterator[list[Found]], name: str, columns: Columns, bad: BadRows | None) -> Iterator[Chunk]:
    empty = True
    for rows in blocks:
        kept, ended = _kept(rows, name, columns, bad)
        if kept:
            empty = False
            table = {key: np.array([row[key] for row in kept]) for key in kept[0]}
            if columns.target in table:
                table[columns.target] = as_labels(table[columns.target])
            yield columns.chunk(table, rows[0][0])
        if ended is not None:
            raise ended
    if empty:
        raise StreamError(f"{name}: there is no row")


def _kept(
    rows: list[Found], name: str, columns: Columns, bad: BadRows | None
) -> tuple[list[dict[str, Any]], StreamError | None]:
    """The good rows: all of them if bad ones are put aside, else those before the first, and the error."""
    kept: list[dict[str, Any]] = []
    for where, row, text in rows:
        try:
            if isinstance(row, StreamError):
                raise row
            if columns.names is None:
                words = [key for key, value in row.items() if isinstance(value, str | bool)]
                columns.settle(list(row), words, name)
            kept.append(_cells(where, row, columns))
        except StreamError as error:
            if bad is None:
                return kept, error
            bad.take(str(error), text)
    return kept, None


def _cells(where: str, row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The values of one row, in the order of the columns; what is missing or too much is an error."""
    assert columns.names is not None
    cells: dict[str, Any] = {}
    text = set(columns.text)
    for key in columns.names:
        if key not in row or row[key] is None:
            raise StreamError(f"{where}, column {key!r}: the value is missing")
        value = row[key]
        if key in text:
            columns.check_text(key, value, where)
            cells[key] = str(value)
        else:
            cells[key] = _number(value, where, key)
    if columns.target is not None:
        if columns.target in row:
            cells[columns.target] = row[columns.target]
        elif columns.require_target:
            raise StreamError(f"{where}: the label {columns.target!r} is missing")
    strange = [key for key in row if key not in cells and key != columns.target]
    if strange:
        raise StreamError(f"{where}: the column {shown(strange[0])} was not there before")
    return cells


def _number(value: Any, where: str, key: str) -> float:
    try:
        number = float(value) if isinstance(value, int | float | np.number) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise StreamError(f"{where}, column {key!r}: {shown(value)} is not a finite number")
    return number


def from_rows(rows: Iterable[Any], columns: Columns | None = None, name: str = "rows", size: int = ROWS) -> Stream:
    """A stream over any iterable of dicts, or of pairs (dict, label), such as River's data sets.

    Parameters
    ----------
    rows : iterable of dict, or of (dict, label)
    columns : Columns, optional
        For dicts: which key is the target (the last by default) and what becomes of text.
    name : str
    size : int
        Events in a chunk.

    Examples
    --------
    >>> from gristmill.streams import from_rows
    >>> rows = [({"height": 1.0, "width": 2.0}, "flat"), ({"width": 1.0, "height": 3.0}, "tall")]
    >>> chunk = next(iter(from_rows(rows)))
    >>> chunk.X.tolist(), chunk.y.tolist()
    ([[1.0, 2.0], [3.0, 1.0]], ['flat', 'tall'])
    """
    settings = columns or Columns()

    def blocks() -> Iterator[list[Found]]:
        source, number = iter(rows), 0
        while batch := list(islice(source, size)):
            places = [f"{name}, row {number + place}" for place in range(1, len(batch) + 1)]
            number += len(batch)
            yield [(where, _flat(row, settings, where), repr(row)) for where, row in zip(places, batch, strict=True)]

    return Stream(lambda: _row_chunks(blocks(), name, settings, None), name=name)


_LABEL = "\x00label"


def _flat(row: Any, columns: Columns, where: str) -> Mapping[str, Any] | StreamError:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], Mapping):
        if columns.names is None:
            columns.target = _LABEL
        return {**row[0], _LABEL: row[1]}
    return StreamError(f"{where}: a row is a dict or a pair (dict, label), got {type(row).__name__}")
