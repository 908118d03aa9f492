"""A stream of tables as a stream of rows: what the command line puts between a file and its learners.

Rows get the width that the table can grow to at once, with zeros where nothing has come yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .cells import CellError
from .chunks import Chunk, Stream
from .frame import Frame
from .raw import text_of_row
from .scaling import StreamScaler
from .source import BadRows, StreamError
from .table import Table


class TableColumns:
    """A table with its scaling and its target, saved with a model as one.

    Parameters
    ----------
    table : Table
    target : str, int, "last" or None
    scale : {"standard", "minmax"} or None
        Of numbers and elapsed times; nothing else is scaled.
    """

    def __init__(self, table: Table, target: Any = "last", scale: str | None = "standard") -> None:
        self.table, self.target, self.scale = table, target, scale
        self.scaler = None if scale is None else StreamScaler(scale)
        self.width: int | None = None  # of the rows, from the first on

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the columns of the table; None before the first event."""
        return tuple(self.table.kinds_) or None

    @property
    def out_names(self) -> tuple[str, ...]:
        """Of the columns of the rows; those that are still free have none."""
        found = self.table.get_feature_names_out().tolist()
        return (*found, *[""] * ((self.width or 0) - len(found)))

    def learn(self, frame: Frame) -> Any:
        """Take in events, and return their rows; an error changes nothing."""
        mark, before = self.table.mark(), (0, None) if self.scaler is None else self.scaler._mark()
        rows = self.table.learn_transform(frame, self.scaler)
        if self.width is None:
            self.width = (
                self.table.width_ if self.table.missing == "raise" and self.table.is_plain else self.table.bound_
            )
        if rows.shape[1] > self.width:
            self.table.back(mark)
            if self.scaler is not None:
                self.scaler._back(before)
            raise StreamError(
                f"{_place(frame, 0)} or after it: a column that the first events did not have; "
                "say its kind (--column), or drop it (--drop)"
            )
        return _padded(rows, self.width)

    def rows(self, frame: Frame) -> Any:
        """Rows by what is known now."""
        return _padded(self.table.transform(frame, self.scaler), self.width or self.table.width_)

    def over(self, stream: Stream, bad: BadRows | None, learn: bool) -> Stream:
        """The stream as one of rows; the rows before a bad one are handed out before its error."""
        return replace(stream, chunks=lambda: self._chunks(stream, bad, learn))

    def _chunks(self, stream: Stream, bad: BadRows | None, learn: bool) -> Iterator[Chunk]:
        return (Chunk(rows, y) for _, rows, y in self.pieces(stream, bad, learn))

    def pieces(self, stream: Stream, bad: BadRows | None, learn: bool) -> Iterator[tuple[Frame, Any, Any]]:
        """Frames without their bad rows, as they are and as rows, and their labels."""
        take = self.learn if learn else self.rows
        for chunk in stream:
            frame, y = chunk.X, chunk.y
            while frame.count:
                try:
                    yield frame, take(frame), y
                    break
                except CellError as caught:
                    error = caught
                what = f"{_place(frame, error.row)}, column {error.column!r}: {error.why}"
                if error.row:
                    good = frame[: error.row]
                    yield good, take(good), None if y is None else y[: error.row]
                if bad is None:
                    raise StreamError(what)
                bad.take(what, text_of_row(frame, error.row))
                frame, y = frame[error.row + 1 :], None if y is None else y[error.row + 1 :]

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a model file."""
        arrays, plain = self.table.to_file()
        table = {"plain": plain, "arrays": {name: array.tolist() for name, array in arrays.items()}}
        scaler = None
        if self.scaler is not None and self.table.n_scaled:
            state, seen = self.scaler._to_file()
            scaler = {"state": state["scaler_state"].tolist(), "seen": seen}
        return {"target": self.target, "scale": self.scale, "width": self.width, "table": table, "scaler": scaler}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> TableColumns:
        """Back from `to_json`; what does not fit is refused."""
        arrays = {name: np.array(values, dtype=np.float64) for name, values in plain["table"]["arrays"].items()}
        table = Table.from_file(arrays, plain["table"]["plain"])
        if plain["scale"] not in (None, "standard", "minmax"):
            raise ValueError("its scaling is damaged")
        columns = cls(table, plain["target"], plain["scale"])
        if columns.scaler is not None and table.n_scaled:
            state = np.array(plain["scaler"]["state"], dtype=np.float64).reshape(3, -1)
            columns.scaler._from_file({"scaler_state": state}, plain["scaler"]["seen"])
            if columns.scaler.n_features_in_ != table.n_scaled:
                raise ValueError("its scaling does not fit its table")
        width = plain["width"]
        if width is not None and (type(width) is not int or not table.width_ <= width <= table.bound_):
            raise ValueError("its table is damaged")
        columns.width = width
        return columns


def _place(frame: Frame, row: int) -> str:
    return f"row {row}" if frame.where is None else frame.where(row)


def _padded(rows: Any, width: int) -> Any:
    """Rows with zeros behind them."""
    if rows.shape[1] == width:
        return rows
    if hasattr(rows, "tocsr"):
        rows.resize((rows.shape[0], width))
        return rows
    wide = np.zeros((len(rows), width))
    wide[:, : rows.shape[1]] = rows
    return wide
