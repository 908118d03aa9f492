"""Files as tables of whatever their cells hold: frames with their labels, for a `Table` to make rows of.

What a cell means is the table's business; here a row is bad only if it cannot be taken apart, or has no label.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import BadRows, StreamError, listed, shown
from ..stream import Chunk
from ..tables.cells import Coded, Misfit, is_missing, kind_of, missing_in, number_of
from ..tables.frame import Frame, frame_of
from .arrow import batches_of
from .columns import as_labels
from .csv import CsvReader
from .json_lines import object_lines
from .source import Block, text_blocks


class Labels:
    """The label column, and whether labels are numbers: the first label decides."""

    def __init__(self, target: Any, required: bool) -> None:
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
        found = np.full(len(values), math.nan)
        for row, value in enumerate(values):
            try:
                found[row] = number_of(value)
            except Misfit:
                return found, row
        return found, None


def raw_chunks(frames: Iterator[Frame], name: str, labels: Labels, bad: BadRows | None) -> Iterator[Chunk]:
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


def text_of_row(frame: Frame, row: int) -> str:
    """A row for the file of those that were put aside."""
    cells = (
        column.objects() if isinstance(column, Coded) else column
        for column in (c[row : row + 1] for c in frame.columns)
    )
    return ",".join("" if is_missing(cell[0]) else str(cell[0]) for cell in cells)


# ---- CSV ----------------------------------------------------------------------------------------------------------


class CsvFrames(CsvReader):
    """Blocks of CSV as frames: numbers where the first cell is one and all the others are, text otherwise."""

    def __init__(self, name: str, header: bool | None, delimiter: str | None, bad: Any, keep: set[str]) -> None:
        super().__init__(name, None, header, delimiter, bad)
        self._keep = keep  # columns that are wanted as text, such as postal codes that begin with 0

    def frames(self, blocks: Iterator[Block]) -> Iterator[Frame]:
        """One a block, and the rows before a bad one before its error."""
        for block in self._headed(blocks):
            if not block.data or block.data.isspace():
                continue
            frame, error = (self._fast_frame(block), None) if self._can_be_fast(block) else (None, None)
            if frame is None:
                frame, error = self._slow_frame(block)
            if frame.count:
                yield frame
            if error is not None:
                raise error

    def _fast_frame(self, block: Block) -> Frame | None:
        import pyarrow as pa

        first = next(
            (row for _, _, row in self._reader(block) if isinstance(row, list) and len(row) == len(self.names)), []
        )
        text = pa.dictionary(pa.int32(), pa.string())
        kinds = {
            name: pa.float64() if name not in self._keep and _is_number(cell) else text
            for name, cell in zip(self.names, first, strict=False)
        }
        for types in (kinds, dict.fromkeys(self.names, text)):
            table = self._parse(block, types, ["", "NA", "NaN", "nan", "null", "?"])
            if table is not None:
                frame = frame_of(table)
                if any(isinstance(c, np.ndarray) and np.isinf(c).any() for c in frame.columns):
                    continue  # as text: an error shows the cell, and not what has become of it
                long = [
                    v
                    for c in frame.columns
                    if isinstance(c, Coded)
                    for v in c.values
                    if len(v) > csv.field_size_limit()
                ]
                return None if long else replace(frame, where=partial(self._where, block))
        return None

    def _where(self, block: Block, row: int) -> str:
        """Line number of a row, computed on request because cells may contain line breaks."""
        lines = [line for line, _, cells in self._reader(block) if isinstance(cells, list)]
        return f"{self.name}, line {lines[row]}"

    def _slow_frame(self, block: Block) -> tuple[Frame, StreamError | None]:
        kept: list[list[str]] = []
        lines: list[int] = []
        ended: StreamError | None = None
        for line, _, row in self._reader(block):
            fault = row if isinstance(row, StreamError) else self._misshapen(line, row)
            if fault is None:
                kept.append(row)  # type: ignore[arg-type]
                lines.append(line)
            elif self.bad is None:
                ended = fault
                break
            else:
                self.bad.take(str(fault), "" if isinstance(row, StreamError) else (self._delimiter or ",").join(row))
        columns = [self._cells(name, cells) for name, cells in zip(self.names, zip(*kept, strict=True), strict=False)]
        names = tuple(self.names)
        return Frame(names, tuple(columns), len(kept), (0,) * len(names), partial(_line, self.name, lines)), ended

    def _cells(self, name: str, cells: tuple[str, ...]) -> Any:
        """Numbers if all are, in plain digits; text otherwise."""
        if name not in self._keep and _DIGITS.fullmatch(cells[0]):
            try:
                found = np.array([float(cell) if _DIGITS.fullmatch(cell) else math.inf for cell in cells])
            except ValueError:
                found = np.array([math.inf])
            if np.isfinite(found).all():
                return found
        return np.array(cells, dtype=object)


_DIGITS = re.compile(r"[-+0-9.eE]+")


def _line(name: str, lines: list[int], row: int) -> str:
    return f"{name}, line {lines[row]}"


def _is_number(cell: str) -> bool:
    return not is_missing(cell) and kind_of(cell) == "number"


def csv_frames(
    path: Any, name: str, header: bool | None, delimiter: str | None, bad: Any, keep: set[str]
) -> Iterator[Frame]:
    """The frames of a CSV file or pipe."""
    return CsvFrames(name, header, delimiter, bad, keep).frames(text_blocks(path, quoted=True))


# ---- JSON lines, Parquet and Arrow --------------------------------------------------------------------------------


def json_frames(path: Any, name: str, bad: BadRows | None) -> Iterator[Frame]:
    """One a block of lines."""
    for found in object_lines(path, name):
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


def arrow_frames(path: Any, name: str) -> Iterator[Frame]:
    """One a batch."""
    row = 1
    for batch in batches_of(path, name):
        frame = frame_of(batch)
        yield replace(frame, where=partial(_row, name, row))
        row += frame.count


def _row(name: str, first: int, row: int) -> str:
    return f"{name}, row {first + row}"
