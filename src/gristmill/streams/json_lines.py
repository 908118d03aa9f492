"""JSON lines, and any Python iterable of dicts or pairs: rows with names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from .chunks import ROWS, Chunk, Stream
from .columns import Columns, as_labels
from .source import BadRows, StreamError, text_blocks


def json_chunks(path: Any, name: str, columns: Columns, bad: BadRows | None) -> Iterator[Chunk]:
    """The chunks of a file or pipe with one JSON object a line."""
    yield from _row_chunks(_objects(path, name, bad), name, columns, bad)


def _objects(path: Any, name: str, bad: BadRows | None) -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """Lists of (where, object), one list a block."""
    for block in text_blocks(path):
        found = []
        for number, line in enumerate(block.data.split(b"\n"), start=block.line):
            if not line.strip():
                continue
            where = f"{name}, line {number}"
            try:
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise StreamError(f"{where}: this is not a JSON object")
            except ValueError as error:
                wrapped = error if isinstance(error, StreamError) else StreamError(f"{where}: {error}")
                if bad is None:
                    raise wrapped from None
                bad.take(str(wrapped), line.decode("utf-8", errors="replace"))
                continue
            found.append((where, value))
        yield found


def _row_chunks(
    blocks: Iterator[list[tuple[str, Mapping[str, Any]]]], name: str, columns: Columns, bad: BadRows | None
) -> Iterator[Chunk]:
    empty = True
    for rows in blocks:
        if rows and columns.names is None:
            first = rows[0][1]
            text = [key for key, value in first.items() if isinstance(value, str | bool)]
            columns.settle(list(first), text, name)
        kept = []
        for where, row in rows:
            try:
                kept.append(_cells(where, row, columns))
            except StreamError as error:
                if bad is None:
                    raise
                bad.take(str(error), json.dumps(row, default=str))
        if kept:
            empty = False
            names = list(kept[0])
            table = {key: np.array([row[key] for row in kept]) for key in names}
            if columns.target in table:
                table[columns.target] = as_labels(table[columns.target])
            yield columns.chunk(table, rows[0][0])
    if empty:
        raise StreamError(f"{name}: there is no row")


def _cells(where: str, row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The values of one row, in the order of the columns; what is missing or too much is an error."""
    assert columns.names is not None
    cells: dict[str, Any] = {}
    for key in columns.names:
        if key not in row or row[key] is None:
            raise StreamError(f"{where}, column {key!r}: the value is missing")
        value = row[key]
        if key in columns.text:
            columns.check_text(key, value, where)
            cells[key] = str(value)
        elif isinstance(value, int | float | np.number) and math.isfinite(value):
            cells[key] = float(value)
        else:
            raise StreamError(f"{where}, column {key!r}: {value!r} is not a finite number")
    if columns.target is not None:
        if columns.target in row:
            cells[columns.target] = row[columns.target]
        elif columns.require_target:
            raise StreamError(f"{where}: the label {columns.target!r} is missing")
    strange = [key for key in row if key not in cells and key != columns.target]
    if strange:
        raise StreamError(f"{where}: the column {strange[0]!r} was not there before")
    return cells


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

    def blocks() -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
        source, number = iter(rows), 0
        while batch := list(islice(source, size)):
            found = []
            for row in batch:
                number += 1
                found.append((f"{name}, row {number}", _flat(row, settings, f"{name}, row {number}")))
            yield found

    return Stream(lambda: _row_chunks(blocks(), name, settings, None), name=name)


_LABEL = "\x00label"


def _flat(row: Any, columns: Columns, where: str) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], Mapping):
        if columns.names is None:
            columns.target = _LABEL
        return {**row[0], _LABEL: row[1]}
    raise StreamError(f"{where}: a row is a dict or a pair (dict, label), got {type(row).__name__}")
