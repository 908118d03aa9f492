"""CSV as frames: blocks of lines through pyarrow's parser; where it fails row by row, to report where and why."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..._common.types import Numbers
from ..errors import BadRows, StreamError, refuse_twins
from ..tables.cells import MISSING, Coded, is_missing, kind_of
from ..tables.frame import Frame, frame_of
from .source import LONE_CR, Block, text_blocks

_DELIMITERS = ",;\t|"
MANY = 10_000  # columns: a block then holds so few rows that a column costs pyarrow more than its cells do Python
_SAMPLE = 1 << 16  # bytes of a block whose cells decide which of its columns are parsed as numbers
_COLUMN = re.compile(r"CSV column #(\d+)")  # in errors of pyarrow
_DIGITS = re.compile(r"[-+0-9.eE]+")
#: cells that pyarrow reads as a gap in a column of numbers; other spellings of "missing" take the way through text
_GAPS = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN", "NaT"})


class CsvReader:
    """Frames of one CSV source: numbers where the first cell of a column is one and all others are, text otherwise.

    The first block settles delimiter and names.

    Parameters
    ----------
    name : str
        Of the source, for messages.
    header : bool, optional
        Found out otherwise.
    delimiter : str, optional
        Found out otherwise.
    bad : BadRows, optional
        Takes rows that cannot be taken apart; they are an error otherwise.
    keep : set of str
        Columns that are wanted as text, such as postal codes that begin with 0.
    """

    def __init__(
        self, name: str, header: bool | None, delimiter: str | None, bad: BadRows | None, keep: set[str]
    ) -> None:
        self.name, self.bad = name, bad
        self._header, self._delimiter, self._keep = header, delimiter, keep
        self.names: list[str] = []
        self._fast = find_spec("pyarrow") is not None

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

    def _headed(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks without blank lines at the beginning and without the header, whose names are known then."""
        first = True
        for block in blocks:
            if first:
                block = _without_blank_head(block)
                if not block.data:
                    continue
                block = self._name(block)
                first = False
            yield block
        if first:
            raise StreamError(f"{self.name}: the file is empty")

    def _name(self, block: Block) -> Block:
        head = block.data.split(b"\n", 1)[0].decode("utf-8", errors="replace")
        if self._delimiter is None:
            self._delimiter = max(_DELIMITERS, key=head.count)
        reader = self._reader(block)
        line, after, cells = next(reader, (block.line, block.line, []))
        if isinstance(cells, StreamError):
            raise cells
        if self._header is None:
            self._header = not any(_is_number(cell) for cell in cells)
        if self._header:
            self.names = [cell.strip() for cell in cells]
            block = Block(after, _after_lines(block.data, after - block.line))
        else:
            self.names = [f"x{place}" for place in range(len(cells))]
        refuse_twins(self.names, f"{self.name}, line {line}")
        return block

    def _reader(self, block: Block) -> Iterator[tuple[int, int, list[str] | StreamError]]:
        """Rows of a block with their line and the line after them, or what is wrong; empty lines are no rows."""
        lines = block.data.decode("utf-8", errors="replace").split("\n")
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=self._delimiter or ",")
        while True:
            line = block.line + reader.line_num
            try:
                row: list[str] | StreamError = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                row = StreamError(f"{self.name}, line {line}: {_csv_fault(str(error))}")
            if isinstance(row, StreamError) or len(row) > 1 or (row and row[0].strip()):
                yield line, block.line + reader.line_num, row

    def _can_be_fast(self, block: Block) -> bool:
        alone = block.data.count(b"\r") != block.data.count(b"\r\n")  # pyarrow would end a line there
        return self._fast and len(self.names) < MANY and not alone

    def _fast_frame(self, block: Block) -> Frame | None:
        """The block by pyarrow; None where rows are misshapen or a cell is too long."""
        import pyarrow as pa

        text = pa.dictionary(pa.int32(), pa.string())
        kinds = {name: pa.float64() if is_number else text for name, is_number in self._numeric(block).items()}
        while True:
            try:
                frame = frame_of(self._parse(block, kinds))
            except pa.ArrowInvalid as error:
                found = _COLUMN.search(str(error))
                column = None if found is None else self.names[int(found[1])]
            else:  # an infinite number as text, too: an error shows the cell, and not what has become of it
                column = next((n for n, c in zip(frame.names, frame.columns, strict=True) if _is_infinite(c)), None)
                if column is None:
                    return None if _has_long_text(frame) else replace(frame, where=partial(self._where, block))
            if column is None or kinds[column] == text:
                return None
            kinds[column] = text

    def _numeric(self, block: Block) -> dict[str, bool]:
        """Whether each column holds numbers, by its first cell that is not missing, in the first rows."""
        end = _end_of_line(block.data, _SAMPLE)
        rows = (cells for _, _, cells in self._reader(Block(block.line, block.data[:end])) if isinstance(cells, list))
        found: dict[str, bool] = {}
        for row in rows:
            for name, cell in zip(self.names, row, strict=False):
                if name not in found and not is_missing(cell):
                    found[name] = name not in self._keep and kind_of(cell) == "number"
            if len(found) == len(self.names):
                break
        return {name: found.get(name, False) for name in self.names}

    def _parse(self, block: Block, kinds: dict[str, object]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(
            pa.BufferReader(block.data),
            read_options=arrow_csv.ReadOptions(
                column_names=self.names, use_threads=False, block_size=len(block.data) + 1
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter or ",", newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=kinds, null_values=_GAPS),
        )

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

    def _cells(self, name: str, cells: tuple[str, ...]) -> Numbers:
        """Numbers if all are, in plain digits; text otherwise."""
        if name not in self._keep and _DIGITS.fullmatch(cells[0]):
            try:
                found = np.array([float(cell) if _DIGITS.fullmatch(cell) else math.inf for cell in cells])
            except ValueError:
                found = np.array([math.inf])
            if np.isfinite(found).all():
                return found
        return np.array(cells, dtype=object)

    def _misshapen(self, line: int, row: list[str]) -> StreamError | None:
        if len(row) == len(self.names):
            return None
        return StreamError(f"{self.name}, line {line}: {len(row)} columns, expected {len(self.names)}")


def _is_infinite(column: object) -> bool:
    return isinstance(column, np.ndarray) and bool(np.isinf(column).any())


def _has_long_text(frame: Frame) -> bool:
    longest = csv.field_size_limit()
    return any(len(value) > longest for c in frame.columns if isinstance(c, Coded) for value in c.values)


def _line(name: str, lines: list[int], row: int) -> str:
    return f"{name}, line {lines[row]}"


def _is_number(cell: str) -> bool:
    return not is_missing(cell) and kind_of(cell) == "number"


def _csv_fault(message: str) -> str:
    """The error of Python's CSV reader as a message."""
    if "field larger" in message:
        return f"a field is longer than {csv.field_size_limit():,} characters"
    return LONE_CR if "new-line" in message else message


def _without_blank_head(block: Block) -> Block:
    """The block from its first line on that is not blank, without a byte order mark."""
    data = block.data.removeprefix(b"\xef\xbb\xbf")
    start = 0
    while start < len(data) and not data[start : (end := _end_of_line(data, start))].strip():
        start = end
    return Block(block.line + data.count(b"\n", 0, start), data[start:])


def _after_lines(data: bytes, count: int) -> bytes:
    """What stands behind the first so many lines."""
    start = 0
    for _ in range(count):
        start = data.find(b"\n", start) + 1 or len(data)
    return data[start:]


def _end_of_line(data: bytes, start: int) -> int:
    """The end of the line that stands at a position."""
    return data.find(b"\n", start) + 1 or len(data)


def csv_frames(
    path: object, name: str, header: bool | None, delimiter: str | None, bad: BadRows | None, keep: set[str]
) -> Iterator[Frame]:
    """The frames of a CSV file or pipe."""
    return CsvReader(name, header, delimiter, bad, keep).frames(text_blocks(path, quoted=True))
