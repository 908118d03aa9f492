"""A stream of tables whose cells fit their columns: what does not is an error with its place, or put aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..errors import BadRows, StreamError
from ..stream import Chunk, Stream
from ..tables.cells import CellError
from ..tables.frame import Frame
from ..tables.table import Table
from .frames import text_of_row


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
        False: only known columns are checked, as in prediction.
    """
    return replace(stream, chunks=lambda: _chunks(stream, table, bad, learn))


def _chunks(stream: Stream, table: Table, bad: BadRows | None, learn: bool) -> Iterator[Chunk]:
    for chunk in stream:
        if not isinstance(chunk.X, Frame):
            yield chunk
            continue
        for frame, _, y in good_parts(chunk.X, chunk.y, lambda part: table.check(part, learn), bad):
            yield Chunk(replace(frame, where=None), y)


def good_parts(
    frame: Frame, y: Any, take: Callable[[Frame], Any], bad: BadRows | None
) -> Iterator[tuple[Frame, Any, Any]]:
    """The parts of a frame between its bad rows, each with what `take` makes of it, and their labels."""
    while frame.count:
        try:
            taken = take(frame)
        except CellError as caught:
            error = caught
        else:
            yield frame, taken, y
            return
        what = f"{place(frame, error.row)}, column {error.column!r}: {error.why}"
        if error.row:
            head = frame[: error.row]
            yield head, take(head), _cut(y, slice(error.row))
        if bad is None:
            raise StreamError(what)
        bad.take(what, text_of_row(frame, error.row))
        frame, y = frame[error.row + 1 :], _cut(y, slice(error.row + 1, None))


def _cut(y: Any, part: slice) -> Any:
    return None if y is None else y[part]


def place(frame: Frame, row: int) -> str:
    """Where a row of a frame came from, in words."""
    return f"row {row}" if frame.where is None else frame.where(row)
