"""CSV: blocks of lines through pyarrow's parser; on any error row by row, to report where and why."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..errors import BadRows, StreamError, shown
from ..stream import Chunk
from .columns import Columns, as_labels, refuse_twins
from .source import LONE_CR, Block, text_blocks

_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 17  # bytes of the first block, which decides the kinds of columns
MANY = 10_000  # columns: a block then holds so few rows that a column costs pyarrow more than its cells do Python


class CsvReader:
    """Decodes blocks of one CSV source. The first block settles delimiter, names and kinds of columns."""

    columns: Columns

    def __init__(
        self, name: str, columns: Columns | None, header: bool | None, delimiter: str | None, bad: Any
    ) -> None:
        self.name, self.bad = name, bad
        if columns is not None:
            self.columns = columns
        self._header, self._delimiter = header, delimiter
        self.names: list[str] = []
        self._text: set[str] = set()
        self._wanted: list[str] = []  # the columns that are needed, the target included where the source has it
        self._fast = find_spec("pyarrow") is not None

    def chunks(self, blocks: Iterator[Block]) -> Iterator[Chunk]:
        first = True
        for block in self._headed(blocks):
            if first:
                self._settle(block)
                first = False
            self._refuse_text(block)
            table, error = self._decode(block) if block.data and not block.data.isspace() else (None, None)
            if table is not None:
                yield self.columns.chunk(table, f"{self.name}, line {block.line}")
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

    # ---- the first block
    # ------------------------------------------------------------------------------------

    def _name(self, block: Block) -> Block:
        head = block.data.split(b"\n", 1)[0].decode("utf-8", errors="replace")
        if self._delimiter is None:
            self._delimiter = max(_DELIMITERS, key=head.count)
        reader = self._reader(block)
        line, after, cells = next(reader, (block.line, block.line, []))
        if isinstance(cells, StreamError):
            raise cells
        if self._header is None:
            self._header = not any(is_number(cell) for cell in cells)
        if self._header:
            self.names = [cell.strip() for cell in cells]
            block = Block(after, _after_lines(block.data, after - block.line))
        else:
            self.names = [f"x{place}" for place in range(len(cells))]
        refuse_twins(self.names, f"{self.name}, line {line}")
        return block

    def _settle(self, block: Block) -> None:
        end = _end_of_line(block.data, _SAMPLE)
        whole = [row for _, row in self._rows(Block(block.line, block.data[:end])) if len(row) == len(self.names)]
        known, text = set(self.columns.names or ()), set(self.columns.text)
        self._text = {  # by a model, or by an earlier reading, it may be known what is text
            name
            for place, name in enumerate(self.names)
            if (name in text if name in known else _is_text([row[place] for row in whole]))
        }
        self.columns.settle(self.names, [name for name in self.names if name in self._text], self.name)
        wanted = {*(self.columns.names or ()), self.columns.target}
        self._wanted = [name for name in self.names if name in wanted]

    def _refuse_text(self, block: Block) -> None:
        """Text columns without an encoding: the error names the first cell that is not a number."""
        columns = self.columns
        if columns.categorical is not None or not columns.text:
            return
        text = set(columns.text)
        for line, row in self._rows(block):
            for name, cell in zip(self.names, row, strict=False):
                if name in text and not is_number(cell):
                    columns.check_text(name, cell, f"{self.name}, line {line}")

    def _rows(self, block: Block) -> list[tuple[int, list[str]]]:
        """Rows of a block with their line numbers, without those that cannot be read at all."""
        return [(line, row) for line, _, row in self._reader(block) if not isinstance(row, StreamError)]

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

    # ---- every block
    # ----------------------------------------------------------------------------------------

    def _decode(self, block: Block) -> tuple[dict[str, Any] | None, StreamError | None]:
        """A block as a table, and what ended it early: the rows before a bad one are still good."""
        if self._can_be_fast(block):
            table = self._decode_fast(block)
            if table is not None:
                return table, None
        return self._decode_slow(block)

    def _can_be_fast(self, block: Block) -> bool:
        alone = block.data.count(b"\r") != block.data.count(b"\r\n")  # pyarrow would end a line there
        return self._fast and len(self.names) < MANY and not alone

    def _parse(self, block: Block, kinds: dict[str, Any], missing: list[str], wanted: list[str] | None = None) -> Any:
        """Parse with pyarrow; None on any error, so that the row-wise parser can report it."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        try:
            return arrow_csv.read_csv(
                pa.BufferReader(block.data),
                read_options=arrow_csv.ReadOptions(
                    column_names=self.names, use_threads=False, block_size=len(block.data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter or ",", newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds, null_values=missing, include_columns=wanted or self.names
                ),
            )
        except pa.ArrowInvalid:
            return None

    def _decode_fast(self, block: Block) -> dict[str, Any] | None:
        import pyarrow as pa

        kinds = {name: pa.string() if name in self._text else pa.float64() for name in self.names}
        table = self._parse(block, kinds, [], self._wanted)
        if table is None:
            return None
        found = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            values = column.to_numpy()
            if values.dtype.kind == "f":
                if not np.isfinite(values).all():
                    return None
            elif max(map(len, values), default=0) > csv.field_size_limit():
                return None
            found[name] = values
        return self._labelled(found)

    def _labelled(self, table: dict[str, Any]) -> dict[str, Any] | None:
        target = self.columns.target
        if target in table:
            table[target] = as_labels(table[target])
        return table if len(next(iter(table.values()))) else None

    def _decode_slow(self, block: Block) -> tuple[dict[str, Any] | None, StreamError | None]:
        kept: list[list[Any]] = []
        ended: StreamError | None = None
        for line, _, row in self._reader(block):
            try:
                if isinstance(row, StreamError):
                    raise row
                kept.append(self._values(line, row))
            except StreamError as error:
                if self.bad is None:
                    ended = error
                    break
                self.bad.take(str(error), "" if isinstance(row, StreamError) else (self._delimiter or ",").join(row))
        if not kept:
            return None, ended
        columns = zip(self._wanted, zip(*kept, strict=True), strict=True)
        return self._labelled({name: np.array(values) for name, values in columns}), ended

    def _misshapen(self, line: int, row: list[str]) -> StreamError | None:
        if len(row) == len(self.names):
            return None
        return StreamError(f"{self.name}, line {line}: {len(row)} columns where there were {len(self.names)}")

    def _values(self, line: int, row: list[str]) -> list[Any]:
        misshapen = self._misshapen(line, row)
        if misshapen is not None:
            raise misshapen
        where = f"{self.name}, line {line}"
        cells = dict(zip(self.names, row, strict=True))
        values: list[Any] = []
        for name in self._wanted:
            cell = cells[name]
            if name in self._text:
                values.append(cell)
            elif is_number(cell):
                values.append(float(cell))
            else:
                what = f"{shown(cell)} is not a finite number" if cell.strip() else "the value is missing"
                raise StreamError(f"{where}, column {name!r}: {what}")
        return values


def _csv_fault(said: str) -> str:
    """The error of Python's CSV reader as a message."""
    if "field larger" in said:
        return f"a field is longer than {csv.field_size_limit():,} characters"
    return LONE_CR if "new-line" in said else said


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


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


_MISSING = {"?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing"}


def _is_word(cell: str) -> bool:
    """Neither a number nor one of the usual spellings of "missing"."""
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() not in _MISSING
    return "_" in cell


def _is_text(cells: list[str]) -> bool:
    """Whether a column is text rather than numbers with a few bad cells."""
    filled = [cell for cell in cells if cell.strip()]
    words = sum(_is_word(cell) for cell in filled)
    return words > len(filled) / 20 and (words > 2 or words > len(filled) / 2)


def csv_chunks(
    path: Any, name: str, columns: Columns, bad: BadRows | None, header: bool | None, delimiter: str | None
) -> Iterator[Chunk]:
    """The chunks of a CSV file or pipe."""
    return CsvReader(name, columns, header, delimiter, bad).chunks(text_blocks(path, quoted=True))
