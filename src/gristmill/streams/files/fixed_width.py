"""Rows of a fixed width from a table, as the learners of all keys of a file need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import BadRows, StreamError
from ..stream import Stream
from ..tables.frame import Frame
from ..tables.table import Table, padded
from .bad_cells import good_parts, place


class TableRows:
    """A table and its target. Rows get the width that the table can grow to at once, with zeros where nothing has come yet.

    Parameters
    ----------
    table : Table
    target : str, int, "last" or None
    """

    def __init__(self, table: Table, target: object = "last") -> None:
        self.table, self.target = table, target
        self.width: int | None = None  # of the rows, from the first on

    @property
    def out_names(self) -> tuple[str, ...]:
        """Of the columns of the rows; those that are still free have none."""
        found = self.table.get_feature_names_out().tolist()
        return (*found, *[""] * ((self.width or 0) - len(found)))

    def learn(self, frame: Frame) -> Any:
        """Take in events, and return their rows; an error changes nothing."""
        mark = self.table.snapshot()
        rows = self.table.learn_transform(frame)
        if self.width is None:
            self.width = (
                self.table.width_ if self.table.missing == "raise" and self.table.is_plain else self.table.bound_
            )
        if rows.shape[1] > self.width:
            self.table.rollback(mark)
            raise StreamError(
                f"{place(frame, 0)} or after it: a column that the first events did not have; "
                "say its kind (--column), or drop it (--drop)"
            )
        return padded(rows, self.width)

    def rows(self, frame: Frame) -> Any:
        """Rows by what is known now."""
        return padded(self.table.transform(frame), self.width or self.table.width_)

    def pieces(self, stream: Stream, bad: BadRows | None, learn: bool) -> Iterator[tuple[Frame, Any, Any]]:
        """Frames without their bad rows, as they are and as rows, and their labels."""
        take = self.learn if learn else self.rows
        for chunk in stream:
            yield from good_parts(chunk.X, chunk.y, take, bad)

    def to_json(self) -> dict[str, object]:
        """Plain values, for a model file."""
        arrays, plain = self.table.to_file()
        table = {"plain": plain, "arrays": {name: array.tolist() for name, array in arrays.items()}}
        return {"target": self.target, "width": self.width, "table": table}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> TableRows:
        """Back from `to_json`; what does not fit is refused."""
        arrays = {name: np.array(values, dtype=np.float64) for name, values in plain["table"]["arrays"].items()}
        table = Table.from_file(arrays, plain["table"]["plain"])
        rows, width = cls(table, plain["target"]), plain["width"]
        if width is not None and (type(width) is not int or not table.width_ <= width <= table.bound_):
            raise ValueError("its table is damaged")
        rows.width = width
        return rows
