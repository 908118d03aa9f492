"""A stream of tables with a key in each row: rows of numbers beside the keys that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .cells import Coded, is_missing
from .chunks import Chunk, Stream
from .columns import listed
from .raw import text_of_row
from .source import BadRows, StreamError


@dataclass(frozen=True)
class KeyedRows:
    """Rows and their keys, cut as an array is."""

    keys: list[str]
    rows: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, part: slice) -> KeyedRows:
        return KeyedRows(self.keys[part], self.rows[part])


def keyed_rows(stream: Stream, columns: Any, key: str, bad: BadRows | None, learn: bool) -> Stream:
    """A stream of tables as one of `KeyedRows`; a row without a key is a bad row.

    Parameters
    ----------
    stream : Stream of frames
    columns : TableRows
        Whose table leaves the column of the keys out.
    key : str
        The name of that column.
    bad : BadRows, optional
        Where bad rows go; without it the first is an error, after the rows before it.
    learn : bool
        Whether the table takes the rows in.
    """

    def chunks() -> Iterator[Chunk]:
        whole = replace(stream, chunks=lambda: _rows_with_keys(stream, key, bad))
        for frame, rows, y in columns.pieces(whole, bad, learn):
            yield Chunk(KeyedRows(_keys(frame, key, stream.name), rows), y)

    return replace(stream, chunks=chunks)


def _cells(frame: Any, key: str, name: str) -> Any:
    column = frame.without(key)[1]
    if column is None:
        raise StreamError(f"{name}: there is no column {key!r} for --key; there are {listed(list(frame.names))}")
    return column.objects() if isinstance(column, Coded) else column


def _keys(frame: Any, key: str, name: str) -> list[str]:
    """Keys as texts: a number in one file is a text in the next."""
    return [_text(cell) for cell in np.asarray(_cells(frame, key, name)).tolist()]


def _text(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _rows_with_keys(stream: Stream, key: str, bad: BadRows | None) -> Iterator[Chunk]:
    for chunk in stream:
        frame, y, start = chunk.X, chunk.y, 0
        cells = np.asarray(_cells(frame, key, stream.name)).tolist()
        for row in [row for row, cell in enumerate(cells) if is_missing(cell)]:
            if row > start:
                yield Chunk(frame[start:row], None if y is None else y[start:row])
            place = f"row {row}" if frame.where is None else frame.where(row)
            what = f"{place}, column {key!r}: the key is missing"
            if bad is None:
                raise StreamError(what)
            bad.take(what, text_of_row(frame, row))
            start = row + 1
        if start < frame.count:
            yield Chunk(frame[start:], None if y is None else y[start:]) if start else chunk
