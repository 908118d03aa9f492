"""A stream of tables whose cells fit their columns: what does not is an error with its place, or put aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .cells import CellError
from .chunks import Chunk, Stream
from .frame import Frame
from .raw import text_of_row
from .source import BadRows, StreamError
from .table import Table


def checked(stream: Stream, table: Table, bad: BadRows | None, learn: bool = True) -> Stream:
    """The stream without the rows that a learner behind such a table could not take.

    Rows before a bad one are handed out before its error.

    Parameters
    ----------
    stream : Stream of frames, as `read(raw=True)` gives it
    table : Table
        Goes along the stream by itself: a copy of what the learners begin with.
    bad : BadRows, optional
        Takes the rows that do not fit; they are an error otherwise.
    learn : bool
        False: only what the table knows already is looked at, as in predicting.
    """
    return replace(stream, chunks=lambda: _chunks(stream, table, bad, learn))


def _chunks(stream: Stream, table: Table, bad: BadRows | None, learn: bool) -> Iterator[Chunk]:
    for chunk in stream:
        if not isinstance(chunk.X, Frame):
            yield chunk
            continue
        frame, y = chunk.X, chunk.y
        while frame.count:
            try:
                table.check(frame, learn)
                yield Chunk(replace(frame, where=None), y)
                break
            except CellError as caught:
                error = caught
            what = f"{_place(frame, error.row)}, column {error.column!r}: {error.why}"
            if error.row:
                head = frame[: error.row]
                table.check(head, learn)
                yield Chunk(replace(head, where=None), _cut(y, slice(error.row)))
            if bad is None:
                raise StreamError(what)
            bad.take(what, text_of_row(frame, error.row))
            frame, y = frame[error.row + 1 :], _cut(y, slice(error.row + 1, None))


def _cut(y: Any, part: slice) -> Any:
    return None if y is None else y[part]


def _place(frame: Frame, row: int) -> str:
    return f"row {row}" if frame.where is None else frame.where(row)
