"""What is known of the columns of a table, and any table read by it: nothing is changed by reading."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..errors import listed
from .cells import CellError, Coded, missing_in
from .column import Reading
from .frame import Frame, frame_of
from .layout import Entry, Layout, checked_kinds

#: columns that may come after the first event: ever new keys of dicts must not widen a model without bound
LATE_COLUMNS = 1000


class KnownColumns:
    """Settings and columns of a `Table`."""

    def __init__(
        self,
        columns: Mapping[str, str] | None,
        drop: Iterable[str],
        missing: str,
        max_values: int,
        text_features: int,
        flags: bool,
    ) -> None:
        if missing not in ("fill", "raise"):
            raise ValueError(f"missing must be 'fill' or 'raise', got {missing!r}")
        for name, number in (("max_values", max_values), ("text_features", text_features)):
            if type(number) is not int or not 1 <= number <= 1 << 22:
                raise ValueError(f"{name} must be between 1 and {1 << 22}, got {number!r}")
        self.columns = checked_kinds(columns)
        self.drop = (drop,) if isinstance(drop, str) else tuple(drop)
        self.missing, self.max_values, self.text_features, self.flags = missing, max_values, text_features, bool(flags)
        self._left_out = {*self.drop, *(name for name, kind in self.columns.items() if kind == "drop")}
        self._core = _core.Table(missing, self.flags)
        self._layout = Layout(text_features, self._core)
        self._sparse_width: int | None = None  # rows came sparse, and are handed on as they are
        self.named = False  # whether the columns came with names
        self.n_first = 0  # columns of the first event
        self.n_ignored_ = 0  # values of columns beyond the bound

    # ---- reading: nothing is changed -------------------------------------------------------------------------

    def _frame(self, X: Any) -> Frame:
        frame = frame_of(X)
        if self._sparse_width is not None:
            raise ValueError("the rows before these were sparse: these must be sparse, too")
        if frame.count == 0:
            raise ValueError("Found array with 0 sample(s): a table must hold at least one row")
        if not frame.names:
            raise ValueError(f"0 feature(s) (shape=({frame.count}, 0)) while a minimum of 1 is required: a column")
        if isinstance(X, np.ndarray | list) and frame.names[0] == "x0" and self._layout.columns:
            frame = self._by_position(frame)
        if len(set(frame.names)) < len(frame.names):
            twice = next(name for at, name in enumerate(frame.names) if name in frame.names[:at])
            raise ValueError(f"the column name {twice!r} comes twice")
        # After arrays, whose columns have no names, a table under names is another one; a new key of a dict is not.
        if "x0" in self._layout.by_name and not any(name in self._layout.by_name for name in frame.names):
            before = listed(list(self._layout.by_name))
            raise ValueError(f"none of the columns {listed(frame.names)} was there before; there were {before}")
        return frame

    def _complete(self, frame: Frame) -> Frame:
        """A table to answer for: a dict may lack a name, but a table that lacks columns has probably lost them."""
        known = [column.name for column in self._layout.columns if column.kind is not None]
        lost = [name for name in known if name not in frame.names]
        if not lost or frame.is_records:
            return frame
        message = f"the table lacks {listed(lost)}, which the model was trained with; it has {listed(frame.names)}"
        if len(lost) == len(known):
            raise ValueError(message)
        warnings.warn(f"{message}; all their values count as missing", UserWarning, stacklevel=6)
        return frame

    def _by_position(self, frame: Frame) -> Frame:
        """An array has no names: its columns are those of the table, in order."""
        names = [column.name for column in self._layout.columns]
        if len(frame.names) == len(names):
            return Frame(tuple(names), frame.columns, frame.count, frame.since)
        if self._left_out and set(names) <= set(frame.names):
            return frame
        raise ValueError(f"X has {len(frame.names)} features, but Table is expecting {len(names)} features as input")

    def checked_parts(self, frame: Frame) -> list[tuple[str, Any, int]]:
        """The columns to read; those that the table lacks now have a gap in every row."""
        parts = [
            (name, column, since)
            for name, column, since in zip(frame.names, frame.columns, frame.since, strict=True)
            if name not in self._left_out
        ]
        if not parts and not self._layout.columns:
            raise ValueError(f"there is no column left: {listed(frame.names)} are dropped")
        there = {name for name, _, _ in parts}
        gone = Coded(np.full(frame.count, -1), [])
        return parts + [(column.name, gone, 0) for column in self._layout.columns if column.name not in there]

    def _beyond(self, frame: Frame) -> set[str]:
        """Names that come too late: beyond those of the first event at most `LATE_COLUMNS` are added."""
        known = self._layout.by_name
        used = max(0, len(known) - self.n_first) if self.n_seen_ else 0
        beyond: set[str] = set()
        for name, since in zip(frame.names, frame.since, strict=True):
            if name in known or name in self._left_out or not (self.n_seen_ or since):
                continue
            used += 1
            if used > LATE_COLUMNS:
                beyond.add(name)
        return beyond

    def _count_ignored(self, frame: Frame, names: set[str]) -> None:
        if not names:
            return
        if not self.n_ignored_:
            warnings.warn(
                f"{LATE_COLUMNS:,} columns have come after the first event; further ones, such as "
                f"{next(name for name in frame.names if name in names)!r}, are ignored, and n_ignored_ counts their values",
                UserWarning,
                stacklevel=6,
            )
        for name, column in zip(frame.names, frame.columns, strict=True):
            if name in names:
                self.n_ignored_ += int(np.count_nonzero(~missing_in(column)))

    def _readings(self, parts: Sequence[tuple[str, object, int]]) -> list[Reading]:
        """Parse all columns; if several fail, raise the error of the earliest row."""
        found: list[Reading] = []
        errors: list[CellError] = []
        for name, column, _ in parts:
            try:
                reading = Reading(name, column, self._layout.by_name.get(name), self.columns.get(name))
                if self.missing == "raise":
                    reading.refuse_gaps()
                found.append(reading)
            except CellError as error:
                errors.append(error)
        if errors:
            raise min(errors, key=lambda error: error.row)
        return found

    def _read(
        self, frame: Frame, ignored: AbstractSet[str] = frozenset()
    ) -> tuple[list[Reading], list[tuple[int, Entry]]]:
        """The columns, and what they bring to the layout with its row, in the order of events and then of columns."""
        parts = [part for part in self.checked_parts(frame) if part[0] not in ignored]
        readings = self._readings(parts)
        came: list[tuple[int, int, int, Entry]] = []
        fresh = len(self._layout.columns)
        for (name, _, since), reading in zip(parts, readings, strict=True):
            known = self._layout.by_name.get(name)
            index = self._layout.index.get(name, fresh)
            fresh += known is None
            if known is None and self.missing == "raise" and (self.n_seen_ or since):
                raise CellError(since, name, None, "the column was not there before")
            late = bool(self.n_seen_ or since)
            brought = reading.entries(index, known, since, late, self.max_values, self.flags)
            came += [(row, index, place, entry) for place, (row, entry) in enumerate(brought)]
        came.sort(key=lambda item: item[:3])
        # A column's entry carries its index until here, so that all can be sorted alike.
        return readings, [(row, ("column", entry[2]) if entry[0] == "column" else entry) for row, *_, entry in came]

    def _known_readings(self, frame: Frame) -> list[Reading]:
        settled = {column.name for column in self._layout.columns if column.kind is not None}
        return self._readings([part for part in self.checked_parts(frame) if part[0] in settled])

    # ---- what is known ---------------------------------------------------------------------------------------

    @property
    def width_(self) -> int:
        return self._sparse_width or max(self._layout.width, 1)

    @property
    def core(self) -> _core.Table:
        """The same columns in the core, which encodes single events."""
        return self._core

    @property
    def index(self) -> dict[str, int]:
        """Of each name among the columns."""
        return self._layout.index

    @property
    def left_out(self) -> set[str]:
        """Names that are passed over."""
        return self._left_out

    @property
    def n_seen_(self) -> int:
        return int(self._core.seen)

    @n_seen_.setter
    def n_seen_(self, count: int) -> None:
        self._core.seen = count

    @property
    def is_plain(self) -> bool:
        """Whether the rows are the table itself: all numbers, and none was ever missing."""
        return self._layout.plain

    @property
    def is_sparse(self) -> bool:
        """Whether rows came sparse, and are handed on as they are."""
        return self._sparse_width is not None

    @property
    def scaled_places(self) -> npt.NDArray[np.int64]:
        """Columns of the rows that a scaler takes in."""
        return self._layout.places[2]

    @property
    def owners(self) -> npt.NDArray[np.int64] | None:
        """Of each column of the rows, which column of the table it is made of; None where each is its own."""
        return None if self.is_sparse or self._layout.plain else self._layout.owners

    def by_column(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Numbers of the first columns of the rows, added up by columns of the table."""
        if self.owners is None:
            return shares
        owners = self._layout.owners[: len(shares)]
        return np.asarray(np.bincount(owners, shares, minlength=len(self._layout.columns)))

    @property
    def n_scaled(self) -> int:
        """How many columns of the rows a scaler takes in: numbers, and elapsed times."""
        return len(self._layout.places[1])

    @property
    def names(self) -> list[str]:
        """Of the columns of the table; those of sparse rows have none but their places."""
        return [f"x{at}" for at in range(self.width_)] if self.is_sparse else list(self.kinds_)

    @property
    def n_features_in_(self) -> int:
        return self._sparse_width or len(self._layout.columns)

    @property
    def kinds_(self) -> dict[str, str | None]:
        return {column.name: column.kind for column in self._layout.columns}

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        return np.array([column.name for column in self._layout.columns], dtype=object)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Names of the columns of the rows: a number's own, hue=red, size:missing, when:hour sine."""
        return np.array(self._layout.names_out(), dtype=object)

    @property
    def bound_(self) -> int:
        if self._sparse_width is not None:
            return self._sparse_width
        total = 0
        for column in self._layout.columns:
            kind = column.kind or self.columns.get(column.name)
            kinds = (kind,) if kind else ("time", "category")
            total += max(self._most(kind) for kind in kinds)
        return max(total, 1)

    def _most(self, kind: str) -> int:
        return self.max_values + 2 if kind == "category" else self._layout.own(kind) + self.flags

    def describe(self) -> list[dict[str, object]]:
        """One line a column: its name, its kind, whether it had gaps, and how many values a category has."""
        lines: list[dict[str, Any]] = []
        for column in self._layout.columns:
            line: dict[str, Any] = {"column": column.name, "kind": column.kind or "unknown"}
            if column.kind == "category":
                line["values"] = len(column.values)
                line["others"] = column.other >= 0
            line["missing"] = column.gap or column.missing >= 0
            lines.append(line)
        return lines

    def __repr__(self) -> str:
        known = list(map(repr, self._layout.columns))
        declared = [f"{name}={kind}" for name, kind in self.columns.items() if name not in self._layout.by_name]
        return f"Table({listed(known + declared)})"
