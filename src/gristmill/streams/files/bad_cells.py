"""Rows with a cell that does not fit its column: an error with its place, or put aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..._common.positions import part_of
from ..errors import BadRows, StreamError
from ..tables.cells import CellError, Coded, is_missing
from ..tables.frame import Frame

Made = TypeVar("Made")


def good_parts(
    frame: Frame, y: Any, take: Callable[[Frame], Made], bad: BadRows | None
) -> Iterator[tuple[Frame, Made, Any]]:
    """The parts of a frame between its bad rows, each with what `take` makes of it, and their labels."""
    while frame.count:
        try:
            taken = take(frame)
        except CellError as caught:
            error = caught
        else:
            yield frame, taken, y
            return
        if error.row:
            head = frame[: error.row]
            yield head, take(head), part_of(y, slice(error.row))
        put_aside(error, frame, bad)
        frame, y = frame[error.row + 1 :], part_of(y, slice(error.row + 1, None))


def put_aside(error: CellError, frame: Frame, bad: BadRows | None) -> None:
    """Put aside the row of an error; without a place for bad rows it is an error with the place of the row."""
    what = f"{place(frame, error.row)}, column {error.column!r}: {error.why}"
    if bad is None:
        raise StreamError(what) from error
    bad.take(what, text_of_row(frame, error.row))


def place(frame: Frame, row: int) -> str:
    """Where a row of a frame came from."""
    return f"row {row}" if frame.where is None else frame.where(row)


def text_of_row(frame: Frame, row: int) -> str:
    """A row for the file of those that were put aside."""
    cells = (
        column.objects() if isinstance(column, Coded) else column
        for column in (c[row : row + 1] for c in frame.columns)
    )
    return ",".join("" if is_missing(cell[0]) else str(cell[0]) for cell in cells)
