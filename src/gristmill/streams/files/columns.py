"""Frames as matrices, for learners without a table in front: numbers as they are, categories one-hot or hashed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import BadRows, StreamError, listed, refuse_twins, shown
from ..stream import Chunk
from ..tables.cells import CellError, Coded, categories_in, is_missing, kind_of, missing_in, numbers_in, value_at
from ..tables.frame import Frame, frame_of
from .bad_cells import good_parts, place
from .labels import Labels, labelled

_MISSING = "?"  # a missing category is one more value, called so


@dataclass
class Columns:
    """How the columns of a table become X and y; settled by the first rows, the same ever after.

    Parameters
    ----------
    target : str, int, "last" or None
        The column of the labels; None: there is none.
    categorical : {"onehot", "hash"}, optional
        What becomes of columns that are not numbers. One-hot: a column for each value among the first rows,
        all zero for a value that comes later. Hash: `slots` columns for each, whatever values come.
    slots : int
        Of a hashed column.
    require_target : bool
        False: a table without the target is read without labels (prediction).
    exact : bool
        True: a table with a column that the first one did not have is an error; it is left out otherwise.

    Examples
    --------
    >>> from gristmill.streams import Columns
    >>> columns = Columns(target="price", categorical="onehot")
    >>> chunk = columns.chunk({"size": [1.0, 2.0], "colour": ["red", "blue"], "price": [10, 20]})
    >>> chunk.X.tolist()
    [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """

    target: Any = "last"
    categorical: str | None = None
    slots: int = 16
    require_target: bool = True
    exact: bool = False
    names: tuple[str, ...] | None = None  #: of the columns that are read, without the target
    kinds: dict[str, str] = field(default_factory=dict)  #: of each of them: number, boolean or category
    values: dict[str, list[str]] = field(default_factory=dict)  #: of one-hot columns

    def __post_init__(self) -> None:
        if self.categorical not in (None, "onehot", "hash"):
            raise ValueError(f"categorical must be 'onehot', 'hash' or None, got {self.categorical!r}")
        if self.slots < 1:
            raise ValueError(f"slots must be at least 1, got {self.slots!r}")

    def chunks(self, frames: Iterator[Frame], source: str, bad: BadRows | None) -> Iterator[Chunk]:
        """Frames of one source as matrices and labels; the rows before a bad one come before its error."""
        labels = Labels(self.target, self.require_target)
        for chunk in labelled(frames, source, labels, bad):
            self._settle(chunk.X, labels, source)
            for _, X, y in good_parts(chunk.X, chunk.y, partial(self._matrix, source=source), bad):
                yield Chunk(X, y, self.out_names)

    def chunk(self, table: Mapping[str, Any], source: str = "table") -> Chunk:
        """A table of equal columns as a chunk."""
        return next(self.chunks(iter([frame_of(table)]), source, None))

    @property
    def out_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        found: list[str] = []
        for name in self.names or ():
            if self.kinds[name] != "category":
                found.append(name)
            elif self.categorical == "hash":
                found += [f"{name}#{slot}" for slot in range(self.slots)]
            else:
                found += [f"{name}={value}" for value in self.values.get(name, [])]
        return tuple(found)

    def _settle(self, frame: Frame, labels: Labels, source: str) -> None:
        """Fix the columns by the first frame of a source, or check those of another one."""
        if self.names is not None and not self.kinds:  # the names are those of another source
            self.kinds = {name: _kind(column) for name, column in zip(frame.names, frame.columns, strict=True)}
        if self.names is None:
            refuse_twins(frame.names, source)
            there = [not since for since in frame.since]
            self.target = labels.name
            self.names = tuple(name for name, first in zip(frame.names, there, strict=True) if first)
            self.kinds = {name: _kind(column) for name, column in zip(frame.names, frame.columns, strict=True)}
        for name, column in zip(frame.names, frame.columns, strict=True):
            if self.kinds.get(name) == "category" and name not in self.values:
                coded = categories_in(column, missing_in(column), name)
                self.values[name] = sorted([*coded.values, *([_MISSING] if (coded.codes < 0).any() else [])])
        if frame.is_records:  # what such a row lacks, or has too much, is an error of that row
            return
        here, known = set(frame.names), set(self.names)
        lost = [name for name in self.names if name not in here]
        if lost:
            raise StreamError(f"{source}: the column {lost[0]!r} is missing; there are {listed(frame.names)}")
        more = [name for name in frame.names if name not in known]
        if self.exact and more:
            raise StreamError(
                f"{source}: the column {more[0]!r} is not in the first shard, which has {listed(self.names)}"
            )

    def _matrix(self, frame: Frame, source: str) -> npt.NDArray[np.float64]:
        """Rows of numbers; `CellError` names the first row that cannot be one."""
        assert self.names is not None
        errors: list[CellError] = []
        if frame.is_records:
            known = set(self.names)
            for name, column in zip(frame.names, frame.columns, strict=True):
                if name not in known and not (gone := missing_in(column)).all():
                    errors.append(CellError(int(np.argmin(gone)), name, None, "the column was not there before"))
        columns = dict(zip(frame.names, frame.columns, strict=True))
        X = np.zeros((frame.count, len(self.out_names)))
        start = 0
        for name in self.names:
            column = columns.get(name, Coded(np.full(frame.count, -1), []))
            try:
                start = self._fill(X, start, name, column, frame)
            except CellError as error:
                errors.append(error)
        if errors:
            raise min(errors, key=lambda error: error.row)
        return X

    def _fill(self, X: npt.NDArray[np.float64], start: int, name: str, column: object, frame: Frame) -> int:
        """Put one column of the table into its columns of X; returns the column after them."""
        gone, kind = missing_in(column), self.kinds[name]
        if kind != "category":
            if gone.any():
                raise CellError(int(np.argmax(gone)), name, None, "the value is missing")
            X[:, start] = numbers_in(column, kind, gone, name)
            return start + 1
        if self.categorical is None:
            row = next((row for row in range(frame.count) if _is_word(value_at(column, row))), 0)
            raise StreamError(
                f"{place(frame, row)}, column {name!r}: {shown(str(value_at(column, row)))} is not a number; "
                "give categorical='onehot' or 'hash', drop the column, or read tables (raw=True) for Prepared"
            )
        coded = categories_in(column, gone, name)
        if self.categorical == "hash":
            slots = [zlib.crc32(value.encode()) % self.slots for value in [*coded.values, _MISSING]]
            width = self.slots
        else:
            known = {value: slot for slot, value in enumerate(self.values[name])}
            slots = [known.get(value, -1) for value in [*coded.values, _MISSING]]  # -1: not among the first rows
            width = len(known)
        slot = np.array(slots)[coded.codes]
        rows = np.flatnonzero(slot >= 0)
        X[rows, start + slot[rows]] = 1.0
        return start + width


class Word(NamedTuple):
    """A word in a column whose first cell is a number."""

    value: Any
    row: int


def words_among_numbers(frame: Frame) -> dict[str, Word]:
    """Columns that begin with a number and also hold words, more than a few bad cells; each with its first word."""
    found: dict[str, Word] = {}
    for name, column in zip(frame.names, frame.columns, strict=True):
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            continue
        gone = missing_in(column)
        if gone.all() or kind_of(value_at(column, int(np.argmin(gone)))) != "number" or _kind(column) != "category":
            continue
        row = next(row for row in range(frame.count) if _is_word(value_at(column, row)))
        found[name] = Word(value_at(column, row), row)
    return found


_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")


def decimal_commas(frame: Frame) -> dict[str, str]:
    """Columns whose cells are all numbers with a decimal comma, such as "0,5"; each with its first cell."""
    found: dict[str, str] = {}
    for name, column in zip(frame.names, frame.columns, strict=True):
        if isinstance(column, np.ndarray) and column.dtype.kind != "O":
            continue
        values = column.values if isinstance(column, Coded) else list(column)
        cells = [value for value in values if not is_missing(value)]
        if cells and all(isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) for cell in cells):
            found[name] = cells[0]
    return found


def _kind(column: Any) -> str:
    """number, boolean or category: a few cells that are words among many numbers are bad cells."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufb":
        return "boolean" if column.dtype.kind == "b" else "number"
    values = column.values if isinstance(column, Coded) else list(column)
    counts = np.bincount(column.codes[column.codes >= 0]).tolist() if isinstance(column, Coded) else [1] * len(values)
    filled = words = truths = 0
    for value, count in zip(values, counts, strict=False):
        if not is_missing(value):
            filled += count
            words += count * _is_word(value)
            truths += count * (kind_of(value) == "boolean")
    if words > filled / 20 and (words > 2 or words > filled / 2):
        return "category"
    return "boolean" if truths and truths + words == filled else "number"


def _is_word(value: Any) -> bool:
    """Whether a cell is a word or a time, neither a number nor missing."""
    if is_missing(value) or kind_of(value) not in ("category", "time"):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return True
    return "_" in str(value)  # "inf" is a bad number
