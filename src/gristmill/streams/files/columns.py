"""Named columns to a matrix: numbers as they are, categories one-hot or hashed, the label apart."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import StreamError, listed, shown
from ..stream import Chunk

_LAST = "last"


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

    Examples
    --------
    >>> from gristmill.streams import Columns
    >>> columns = Columns(target="price", categorical="onehot")
    >>> chunk = columns.chunk({"size": [1.0, 2.0], "colour": ["red", "blue"], "price": [10, 20]})
    >>> chunk.X.tolist()
    [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """

    target: Any = _LAST
    categorical: str | None = None
    slots: int = 16
    require_target: bool = True
    names: tuple[str, ...] | None = None  #: of the columns that are read, without the target
    values: dict[str, list[str]] = field(default_factory=dict)  #: of one-hot columns
    text: tuple[str, ...] = ()  #: columns that are not numbers

    def __post_init__(self) -> None:
        if self.categorical not in (None, "onehot", "hash"):
            raise ValueError(f"categorical must be 'onehot', 'hash' or None, got {self.categorical!r}")
        if self.slots < 1:
            raise ValueError(f"slots must be at least 1, got {self.slots!r}")

    def settle(self, names: Sequence[str], text: Sequence[str], source: str) -> None:
        """Fix the columns by the first rows of a source; `text` are those that do not hold numbers."""
        if self.names is not None:
            self._same(names, source)
            return
        if not names:
            raise StreamError(f"{source}: there is no column")
        refuse_twins(names, source)
        self.target = self._target_name(names, source)
        self.names = tuple(name for name in names if name != self.target)
        if not self.names:
            raise StreamError(f"{source}: there is no column besides the target {self.target!r}")
        self.text = tuple(name for name in text if name != self.target)

    def _target_name(self, names: Sequence[str], source: str) -> str | None:
        if self.target is None:
            return None
        if self.target == _LAST and _LAST not in names:
            return names[-1]
        if isinstance(self.target, int):
            if not -len(names) <= self.target < len(names):
                raise StreamError(f"{source}: there is no column {self.target}, only {len(names)}")
            return names[self.target]
        if self.target not in names:
            if not self.require_target:
                return str(self.target)
            raise StreamError(f"{source}: there is no column {self.target!r}; there are {listed(names)}")
        return str(self.target)

    def _same(self, names: Sequence[str], source: str) -> None:
        assert self.names is not None
        there = set(names)
        missing = [name for name in self.names if name not in there]
        if missing:
            raise StreamError(f"{source}: the column {missing[0]!r} is missing; there are {listed(names)}")
        if self.require_target and self.target is not None and self.target not in there:
            raise StreamError(f"{source}: the column {self.target!r} is missing; there are {listed(names)}")

    def check_text(self, name: str, value: Any, where: str) -> None:
        """A column of text is an error unless an encoding is given."""
        if name in self.text and self.categorical is None:
            raise StreamError(
                f"{where}, column {name!r}: {shown(str(value))} is not a number; "
                "say categorical='onehot' or 'hash' (--categorical), or leave the column out"
            )

    @property
    def out_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        found: list[str] = []
        text = set(self.text)
        for name in self.names or ():
            if name not in text:
                found.append(name)
            elif self.categorical == "hash":
                found += [f"{name}#{slot}" for slot in range(self.slots)]
            else:
                found += [f"{name}={value}" for value in self.values.get(name, [])]
        return tuple(found)

    def chunk(self, table: Mapping[str, Any], source: str = "table") -> Chunk:
        """A table of equal columns as a chunk."""
        if self.names is None:
            names = list(table)
            text = [name for name in names if np.asarray(table[name]).dtype.kind not in "biuf"]
            self.settle(names, text, source)
        assert self.names is not None
        for name in self.text:
            self.check_text(name, _first_word(table[name]), source)
            if self.categorical == "onehot" and name not in self.values:
                self.values[name] = sorted({str(value) for value in table[name]})
        out = self.out_names
        count = len(table[self.names[0]])
        X = np.empty((count, len(out)))
        place, words = 0, set(self.text)
        for name in self.names:
            if name in words:
                place = self._fill(X, place, name, table[name])
            else:
                X[:, place] = table[name]
                place += 1
        labels = table.get(self.target) if self.target is not None else None
        return Chunk(X, None if labels is None else np.asarray(labels), out)

    def _fill(self, X: npt.NDArray[np.float64], place: int, name: str, column: Any) -> int:
        words = [str(value) for value in column]
        if self.categorical == "hash":
            slot_of = {word: zlib.crc32(word.encode()) % self.slots for word in set(words)}
            width = self.slots
        else:
            slot_of = {value: slot for slot, value in enumerate(self.values[name])}
            width = len(slot_of)
        X[:, place : place + width] = 0.0
        # A value that the first rows did not have stays all zero.
        hits = [(row, slot_of[word]) for row, word in enumerate(words) if word in slot_of]
        if hits:
            rows, slots = np.array(hits).T
            X[rows, place + slots] = 1.0
        return place + width


def refuse_twins(names: Sequence[str], source: str) -> None:
    """Each name stands for one column."""
    met: set[str] = set()
    for name in names:
        if name in met:
            raise StreamError(f"{source}: the column name {shown(name)} comes twice")
        met.add(name)


def _first_word(column: Any) -> Any:
    """The first value that is not a number, to show to the user."""
    for value in column:
        try:
            float(value)
        except ValueError:
            return value
    return column[0]


def as_labels(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as whole numbers where they are whole, so that classes read 0 and 1 and not 0.0 and 1.0."""
    if values.dtype.kind == "f" and np.all(values == np.floor(values)) and np.all(np.abs(values) < 2**53):
        return values.astype(np.int64)
    return values.astype(str) if values.dtype.kind == "O" else values
