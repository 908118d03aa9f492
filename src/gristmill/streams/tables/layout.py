"""Which columns a table has, of which kind, and where each stands in the rows: a list of what came, in order.

The list of entries defines the layout: a rollback truncates it, and loading replays it:

    ("column", name)          a column of the table appeared
    ("gap", c)                column c had no value in an event before its kind was known
    ("kind", c, kind)         its first value came; its own columns are appended
    ("missing", c)            its first gap since then; a flag, or the value "missing" of a category, is appended
    ("value", c, text)        a new value of a category; a column is appended
    ("other", c)              a value beyond the bound; one column for all of them is appended
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from .cells import KINDS, LONGEST

Entry = tuple[Any, ...]
Places = npt.NDArray[np.int64]


class Column:
    """What is known of one column of the table."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: str | None = None  # until its first value
        self.gap = False  # a value was missing before the kind was known
        self.place = -1  # of its first own column in the rows
        self.missing = -1  # of its flag, or of its value "missing"
        self.other = -1
        self.slot = -1  # among the columns of numbers
        self.values: dict[str, int] = {}  # of a category: place of each

    def __repr__(self) -> str:
        many = f"[{len(self.values)}]" if self.kind == "category" else ""
        return f"{self.name}={self.kind or 'unknown'}{many}"


class Layout:
    """The columns of a table and of its rows; both only ever grow.

    core: the same columns in the core, which encodes single events; it follows every entry.
    """

    def __init__(self, text_features: int, core: _core.Table) -> None:
        self.text_features = text_features
        self.core = core
        self.entries: list[Entry] = []
        self.columns: list[Column] = []
        self.by_name: dict[str, Column] = {}
        self.index: dict[str, int] = {}  # of each name among the columns
        self.numbers: list[Column] = []  # those with one number an event, in order of arrival
        self.width = 0
        self.settled = 0  # columns whose kind is known
        self._places: tuple[Places, Places, Places] | None = None
        self._plain: bool | None = None
        self._owners: Places | None = None
        self._taking = False  # True while an entry is being added, and after an interrupt of that

    # ---- growing and going back ------------------------------------------------------------------------------

    def take(self, entry: Entry) -> None:
        """Append an entry."""
        self._taking = True
        self._append(entry)
        self._append_to_core(entry)
        self.entries.append(entry)
        self._places = self._plain = self._owners = None
        self._taking = False

    def _append(self, entry: Entry) -> None:
        if entry[0] == "column":
            self.index[entry[1]] = len(self.columns)
            self.columns.append(Column(entry[1]))
            self.by_name[entry[1]] = self.columns[-1]
        else:
            self._grow(entry[0], self.columns[entry[1]], entry)

    def _append_to_core(self, entry: Entry) -> None:
        what, core = entry[0], self.core
        if what == "column":
            core.add_column()
        elif what == "gap":
            core.add_gap(entry[1])
        elif what == "kind":
            core.add_kind(entry[1], entry[2], self.own(entry[2]))
        elif what == "missing":
            core.add_missing(entry[1])
        elif what == "other":
            core.add_other(entry[1])
        else:
            core.add_value(entry[1], entry[2])

    def _grow(self, what: str, column: Column, entry: Entry) -> None:
        if what == "gap":
            column.gap = True
            return
        place, self.width = self.width, self.width + 1
        if what == "kind":
            column.kind, column.place = entry[2], place
            self.width = place + self.own(entry[2])
            self.settled += 1
            if entry[2] in ("number", "boolean", "time"):
                column.slot = len(self.numbers)
                self.numbers.append(column)
        elif what == "missing":
            column.missing = place
        elif what == "other":
            column.other = place
        else:
            column.values[entry[2]] = place

    def first(self, count: int) -> Layout:
        """The layout after its first `count` entries; itself if it is whole and has no more. The core follows."""
        self.core.truncate(count)
        if len(self.entries) == count and not self._taking:
            return self
        layout = Layout(self.text_features, self.core)
        for entry in self.entries[:count]:
            layout._append(entry)
            layout.entries.append(entry)
        return layout

    def own(self, kind: str) -> int:
        """How many columns of the rows a kind has from the beginning."""
        return {"number": 1, "boolean": 1, "time": 5, "category": 0, "text": self.text_features}[kind]

    # ---- what stands where ---------------------------------------------------------------------------------

    @property
    def places(self) -> tuple[Places, Places, Places]:
        """Of the numbers in the rows; slots of those that are to be scaled; and the places of these."""
        if self._places is None:
            where = np.array([column.place for column in self.numbers], dtype=np.int64)
            slots = [column.slot for column in self.numbers if column.kind != "boolean"]
            scaled = np.array(slots, dtype=np.int64)
            self._places = where, scaled, where[scaled]
        return self._places

    @property
    def plain(self) -> bool:
        """Whether the rows are the table: one number a column, all of them known, and none was ever missing."""
        if self._plain is None:
            self._plain = len(self.columns) == len(self.numbers) == self.width == self.settled > 0 and all(
                column.kind == "number" and column.place == at for at, column in enumerate(self.columns)
            )
        return self._plain

    @property
    def owners(self) -> Places:
        """Of each column of the rows, which column of the table it is made of."""
        if self._owners is None:
            grown = [entry for entry in self.entries if entry[0] not in ("column", "gap")]
            many = [self.own(entry[2]) if entry[0] == "kind" else 1 for entry in grown]
            self._owners = np.repeat(np.array([entry[1] for entry in grown], dtype=np.int64), many)
        return self._owners

    def names_out(self) -> list[str]:
        """Of the columns of the rows."""
        found: list[str] = []
        for entry in self.entries:
            if entry[0] in ("column", "gap"):
                continue
            name = self.columns[entry[1]].name
            if entry[0] == "kind":
                found += _own_names(name, entry[2], self.text_features)
            elif entry[0] == "value":
                found.append(f"{name}={entry[2]}")
            else:
                found.append(f"{name}:{entry[0]}")
        return found

    # ---- files ---------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, entries: Any, text_features: int, most_values: int, core: _core.Table) -> Layout:
        """Again from its list; a forged or damaged list is refused. requires: the core is fresh."""
        layout = cls(text_features, core)
        for entry in entries:
            if not layout._fits(entry, most_values):
                raise ValueError("its table is damaged")
            layout.take(tuple(entry))
        return layout

    def _fits(self, entry: object, most_values: int) -> bool:
        if not isinstance(entry, list | tuple) or not 2 <= len(entry) <= 3 or not isinstance(entry[0], str):
            return False
        what, which = entry[0], entry[1]
        if what == "column":
            return len(entry) == 2 and isinstance(which, str) and which not in self.by_name
        if type(which) is not int or not 0 <= which < len(self.columns):
            return False
        column = self.columns[which]
        if what == "gap":
            return len(entry) == 2 and column.kind is None and not column.gap
        if what == "kind":
            return len(entry) == 3 and column.kind is None and entry[2] in KINDS
        if what == "missing":
            return len(entry) == 2 and column.kind is not None and column.missing < 0
        if column.kind != "category":
            return False
        if what == "other":
            return len(entry) == 2 and column.other < 0
        fresh = len(entry) == 3 and isinstance(entry[2], str) and entry[2] not in column.values
        return what == "value" and fresh and len(column.values) < most_values and len(entry[2]) <= LONGEST


def _own_names(name: str, kind: str, text_features: int) -> list[str]:
    if kind == "time":
        return [f"{name}:{part}" for part in ("elapsed", "hour sine", "hour cosine", "weekday sine", "weekday cosine")]
    if kind == "text":
        return [f"{name}#{slot}" for slot in range(text_features)]
    return [] if kind == "category" else [name]


def checked_kinds(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Validate the user's `columns`; the error lists the valid kinds."""
    kinds = {str(name): kind for name, kind in (columns or {}).items()}
    for name, kind in kinds.items():
        if kind not in (*KINDS, "drop"):
            raise ValueError(f"columns: {name!r} must be one of {', '.join(KINDS)} or drop, got {kind!r}")
    return kinds
