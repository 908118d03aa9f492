"""A stream of tables with a key in each row: rows of numbers beside the keys that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._common.positions import part_of
from ..errors import BadRows, StreamError, listed
from ..stream import Chunk, Stream
from ..tables.cells import Coded, Misfit, is_missing, kind_of, number_of, time_of
from ..tables.frame import Frame
from .bad_cells import place, text_of_row


@dataclass(frozen=True)
class KeyedRows:
    """Rows, their keys and, where a clock is wanted, their times; cut as an array is."""

    keys: list[str]
    rows: Any
    times: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, part: slice) -> KeyedRows:
        return KeyedRows(self.keys[part], self.rows[part], part_of(self.times, part))


@dataclass(frozen=True)
class KeyColumns:
    """The columns with the key and the time of a row.

    Parameters
    ----------
    key : str
    time : str, optional
    labels : Labels, optional
        The reader that has removed the target from the rows.
    """

    key: str
    time: str | None = None
    labels: Any = None

    def cells(self, frame: Frame, name: str, what: str, source: str) -> list[Any]:
        """Cells of one of them; the error for a missing column names the option."""
        column = frame.without(name)[1]
        if column is None and self.labels is not None and name == self.labels.name:
            raise StreamError(
                f"{source}: the column {name!r} of {what} is the target; --target names another, or 'none'"
            )
        if column is None:
            raise StreamError(
                f"{source}: there is no column {name!r} for {what}; there are {listed(list(frame.names))}"
            )
        return list(np.asarray(column.objects() if isinstance(column, Coded) else column).tolist())

    def bad(self, frame: Frame, source: str) -> dict[int, str]:
        """What is wrong with rows, by their number."""
        keys = self.cells(frame, self.key, "--key", source)
        found = {row: f"column {self.key!r}: the key is missing" for row, cell in enumerate(keys) if is_missing(cell)}
        if self.time is not None:
            for row, cell in enumerate(self.cells(frame, self.time, "--time", source)):
                try:
                    _moment(cell)
                except Misfit as error:
                    found.setdefault(row, f"column {self.time!r}: {error}")
        return found

    def of(self, frame: Frame, rows: Any, source: str) -> KeyedRows:
        """Rows of a table beside their keys. Keys are texts: a number in one file is a text in the next."""
        keys = [_text(cell) for cell in self.cells(frame, self.key, "--key", source)]
        if self.time is None:
            return KeyedRows(keys, rows)
        times = [_moment(cell) for cell in self.cells(frame, self.time, "--time", source)]
        return KeyedRows(keys, rows, np.array(times))


def keyed_rows(stream: Stream, columns: Any, named: KeyColumns, bad: BadRows | None, learn: bool) -> Stream:
    """A stream of tables as one of `KeyedRows`; a row without a key, or without a time that is wanted, is a bad row.

    Parameters
    ----------
    stream : Stream of frames
    columns : TableRows
        Whose table leaves the column of the keys out.
    named : KeyColumns
    bad : BadRows, optional
        Where bad rows go; without it the first is an error, after the rows before it.
    learn : bool
        Whether the table takes the rows in.
    """

    def chunks() -> Iterator[Chunk]:
        whole = replace(stream, chunks=lambda: _good(stream, named, bad))
        for frame, rows, y in columns.pieces(whole, bad, learn):
            yield Chunk(named.of(frame, rows, stream.name), y)

    return replace(stream, chunks=chunks)


def _text(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _moment(cell: object) -> float:
    """A number as it is, a date in seconds; to the microsecond, which a double of days since 1970 still tells."""
    if is_missing(cell):
        raise Misfit("the time is missing")
    return number_of(cell) if kind_of(cell) == "number" else round(86_400 * time_of(cell), 6)


def _good(stream: Stream, named: KeyColumns, bad: BadRows | None) -> Iterator[Chunk]:
    for chunk in stream:
        frame, y, start = chunk.X, chunk.y, 0
        for row, why in sorted(named.bad(frame, stream.name).items()):
            if row > start:
                yield Chunk(frame[start:row], None if y is None else y[start:row])
            what = f"{place(frame, row)}, {why}"
            if bad is None:
                raise StreamError(what)
            bad.take(what, text_of_row(frame, row))
            start = row + 1
        if start < frame.count:
            yield Chunk(frame[start:], None if y is None else y[start:]) if start else chunk
