"""JSON lines as frames, and any Python iterable of dicts or pairs as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import BadRows, StreamError
from ..stream import ROWS, Stream
from ..tables.frame import Frame, frame_of
from .columns import Columns
from .source import text_blocks

#: a row with where it stood; or in place of the row what is wrong with it, and its text
Found = tuple[str, Mapping[str, Any] | StreamError, str]


def json_frames(path: object, name: str, bad: BadRows | None) -> Iterator[Frame]:
    """The frames of a file or pipe with one JSON object a line, one a block of lines."""
    return _frames(object_lines(path, name), bad)


def _frames(blocks: Iterator[list[Found]], bad: BadRows | None) -> Iterator[Frame]:
    """The good rows of each block; without a place for bad rows those before the first, and then its error."""
    for found in blocks:
        kept: list[Any] = []
        places: list[str] = []
        ended: StreamError | None = None
        for where, row, text in found:
            if not isinstance(row, StreamError):
                kept.append(row)
                places.append(where)
            elif bad is None:
                ended = row
                break
            else:
                bad.take(str(row), text)
        if kept:
            frame = frame_of(kept)
            yield replace(frame, where=places.__getitem__)
        if ended is not None:
            raise ended


def object_lines(path: object, name: str) -> Iterator[list[Found]]:
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


def from_rows(rows: Iterable[object], columns: Columns | None = None, name: str = "rows", size: int = ROWS) -> Stream:
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

    return Stream(lambda: settings.chunks(_frames(blocks(), None), name, None), name=name)


_LABEL = "\x00label"


def _flat(row: object, columns: Columns, where: str) -> Mapping[str, Any] | StreamError:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], Mapping):
        if columns.names is None:
            columns.target = _LABEL
        return {**row[0], _LABEL: row[1]}
    return StreamError(f"{where}: a row is a dict or a pair (dict, label), got {type(row).__name__}")
