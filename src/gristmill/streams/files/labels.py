"""The label column of tables: its name, whether labels are numbers, and rows without a label."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from ..._common.types import Numbers
from ..errors import BadRows, StreamError, listed, shown
from ..stream import Chunk
from ..tables.cells import Coded, Misfit, kind_of, missing_in, number_of
from ..tables.frame import Frame
from .bad_cells import text_of_row


def as_labels(values: Numbers) -> Numbers:
    """Labels as whole numbers where they are whole, so that classes read 0 and 1 and not 0.0 and 1.0."""
    if values.dtype.kind == "f" and np.all(values == np.floor(values)) and np.all(np.abs(values) < 2**53):
        return values.astype(np.int64)
    return values.astype(str) if values.dtype.kind == "O" else values


class Labels:
    """The label column, and whether labels are numbers: the first label decides."""

    def __init__(self, target: object, required: bool) -> None:
        self.target, self.required = target, required
        self.name: str | None = None
        self.numbers: bool | None = None

    def settle(self, names: list[str], source: str) -> None:
        """The name of the target, from the names of the first rows."""
        if self.name is not None or self.target is None:
            return
        target = self.target
        if not names:
            raise StreamError(f"{source}: there is no column")
        if target == "last" and "last" not in names:
            target = -1
        if isinstance(target, int):
            if not -len(names) <= target < len(names):
                raise StreamError(f"{source}: there is no column {target}, only {len(names)}")
            self.name = names[target]
        elif str(target) in names or not self.required:
            self.name = str(target)
        else:
            raise StreamError(f"{source}: there is no column {target!r}; there are {listed(names)}")
        if set(names) == {self.name}:
            raise StreamError(f"{source}: there is no column besides the target {self.name!r}")

    def cut(self, frame: Frame, source: str) -> tuple[Chunk, tuple[int, str] | None]:
        """The table and its labels up to the first bad one, and the row and the reason of that."""
        rest, column = frame.without(self.name)
        if self.name is None:
            return Chunk(rest), None
        if column is None:
            if self.required:
                raise StreamError(
                    f"{source}: the column {self.name!r} is missing; there are {listed(list(frame.names))}"
                )
            return Chunk(rest), None
        values = column.objects() if isinstance(column, Coded) else column
        gone = missing_in(values)
        end = int(np.argmax(gone)) if gone.any() else len(values)
        if self.numbers is None and end:
            self.numbers = values.dtype.kind in "iuf" or (
                values.dtype.kind == "O" and kind_of(values[0]) == "number" and not isinstance(values[0], bool)
            )
        why = "the label is missing"
        labels, bad = self._as_numbers(values[:end]) if self.numbers else (values[:end], None)
        if bad is not None:
            end, why = bad, f"the label {shown(values[bad])} is not a finite number"
        labels = np.asarray(labels)[:end]
        labels = as_labels(labels) if labels.dtype.kind in "fO" else labels
        if end < len(values) and not self.required:  # labels are not requested: cells may be empty or anything
            return Chunk(rest), None
        fault = (end, f"column {self.name!r}: {why}") if end < len(values) else None
        return Chunk(rest if fault is None else rest[:end], labels, rest.names), fault

    def _as_numbers(self, values: Any) -> tuple[Any, int | None]:
        if values.dtype.kind in "iuf":
            bad = ~np.isfinite(values)
            return values, int(np.argmax(bad)) if bad.any() else None
        if {*map(type, values)} <= {int, float}:
            with suppress(OverflowError):
                found = np.array(values, dtype=np.float64)
                if np.isfinite(found).all():
                    return found, None
        found = np.full(len(values), math.nan)
        for row, value in enumerate(values):
            try:
                found[row] = number_of(value)
            except Misfit:
                return found, row
        return found, None


def labelled(frames: Iterator[Frame], name: str, labels: Labels, bad: BadRows | None) -> Iterator[Chunk]:
    """Frames with their labels; a row without one is bad, and those before it are handed out first."""
    empty = True
    for frame in frames:
        labels.settle([key for key, since in zip(frame.names, frame.since, strict=True) if not since], name)
        while frame.count:
            chunk, fault = labels.cut(frame, name)
            if chunk.X.count:
                empty = False
                yield chunk
            if fault is None:
                break
            assert frame.where is not None
            what = f"{frame.where(fault[0])}, {fault[1]}"
            if bad is None:
                raise StreamError(what)
            bad.take(what, text_of_row(frame, fault[0]))
            frame = frame[fault[0] + 1 :]
    if empty:
        raise StreamError(f"{name}: the file is empty: there is no row")
