"""Any table to the rows of the core, online: a column's first value tells its kind, categories and gaps grow columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .cells import CellError, Coded
from .columns import listed
from .frame import Frame, frame_of, matrix_of
from .layout import Entry, Layout, checked_kinds
from .reading import NUMBERS, Reading
from .running import RunningMeans
from .sheet import Sheet

Floats = npt.NDArray[np.float64]


class Table:
    """Between any table and the rows of a learner: online, bounded, and the same bits however the stream is cut.

    A number is a number; a boolean 0 or 1; a category has a column for each value, in the order in which they come; a
    time has the days since the first, and hour and weekday on the circle; a text has its hashed words. The kind of a column
    is that of its first value that is not missing, unless `columns` says another. A string means what it means in a CSV
    file, whatever the source: "1.5" is a number, "true" a boolean, "2024-05-17" a time, "" and "NA" are missing. A missing
    number is replaced by the mean so far, and a column that tells so is appended when that first happens; for a category,
    missing is one more value.

    Columns of the rows are only ever appended: `width_` grows, and a row from before is the same with zeros behind it.

    Parameters
    ----------
    columns : dict, optional
        Kinds by name: number, boolean, category, time, text, or drop.
    drop : iterable of str
        Columns that are left out.
    missing : {"fill", "raise"}, default="fill"
        "raise": a gap is an error.
    max_values : int, default=100
        Of one category; later values share one column, "other".
    text_features : int, default=1024
        Columns of a text.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the table, whatever their kind.
    width_ : int
        Columns of the rows, now.
    bound_ : int
        The most that it can become if no new column of the table comes.
    kinds_ : dict
        Name to kind; None where no value has come yet.
    n_seen_ : int
        Events.

    Examples
    --------
    >>> from gristmill.streams import Table
    >>> table = Table()
    >>> rows = [{"size": 1.0, "hue": "red"}, {"size": None, "hue": "blue"}, {"size": 2.0, "hue": "red"}]
    >>> table.learn_transform(rows).round(2).tolist()
    [[1.0, 0.71, 0.0, 0.0], [1.0, 0.0, 1.0, 0.71], [2.0, 0.71, 0.0, 0.0]]
    >>> table.get_feature_names_out().tolist()
    ['size', 'hue=red', 'size:missing', 'hue=blue']
    >>> table
    Table(size=number, hue=category[2])
    """

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        drop: Iterable[str] = (),
        missing: str = "fill",
        max_values: int = 100,
        text_features: int = 1024,
    ) -> None:
        if missing not in ("fill", "raise"):
            raise ValueError(f"missing must be 'fill' or 'raise', got {missing!r}")
        for name, number in (("max_values", max_values), ("text_features", text_features)):
            if type(number) is not int or not 1 <= number <= 1 << 22:
                raise ValueError(f"{name} must be between 1 and {1 << 22}, got {number!r}")
        self.columns = checked_kinds(columns)
        self.drop = (drop,) if isinstance(drop, str) else tuple(drop)
        self.missing, self.max_values, self.text_features = missing, max_values, text_features
        self._left_out = {*self.drop, *(name for name, kind in self.columns.items() if kind == "drop")}
        self._layout = Layout(text_features)
        self._means = RunningMeans()
        self._sparse_width: int | None = None  # rows came sparse, and are handed on as they are
        self.n_seen_ = 0

    # ---- events to rows --------------------------------------------------------------------------------------

    def learn_transform(self, X: Any, scaler: Any = None) -> Any:
        """Take in events, and return each as a row by what was known when it came.

        Parameters
        ----------
        X : array, CSR, DataFrame of pandas or polars, Arrow table, dict of columns, dict (one event), or list of dicts
        scaler : StreamScaler, optional
            Takes in and scales the columns of numbers and of elapsed times, and no others.

        Returns
        -------
        rows : array of shape (n, width_); CSR where there are texts, or where X is sparse
        """
        plain = self._plain_rows(X)
        if plain is not None:
            return self._learn_plain(plain, scaler)
        if hasattr(X, "tocsr"):
            return self._sparse_rows(X, scaler, learn=True)
        frame = self._frame(X)
        matrix = self._matrix(frame)
        if matrix is not None:
            if not self._layout.columns:
                self._begin_plain(frame.names, matrix, scaler)
            return self._learn_plain(matrix, scaler)
        readings, entries = self._read(frame)
        for entry in entries:
            self._layout.take(entry)
        rows = self._rows(frame.count, readings, scaler, learn=True)
        self.n_seen_ += frame.count
        return rows

    def transform(self, X: Any, scaler: Any = None) -> Any:
        """Rows by what is known now; nothing is taken in. A value that was never met has no column, and is all zeros."""
        plain = self._plain_rows(X)
        if plain is not None:
            return plain if scaler is None else scaler._scale(plain.astype(np.float64, copy=False))
        if hasattr(X, "tocsr"):
            return self._sparse_rows(X, scaler, learn=False)
        frame = self._frame(X)
        matrix = self._matrix(frame) if self._layout.columns else None
        if matrix is not None:
            return matrix if scaler is None else scaler._scale(matrix)
        settled = {column.name for column in self._layout.columns if column.kind is not None}
        readings = self._readings([part for part in self._parts(frame) if part[0] in settled])
        return self._rows(frame.count, readings, scaler, learn=False)

    def _plain_rows(self, X: Any) -> Any:
        """X itself where it is finite numbers, as all before it were: then there is nothing to do."""
        layout = self._layout
        if not layout.plain or self._left_out:
            return None
        if type(X) is dict:
            X = self._plain_dict(X)
        if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.char not in "fd" or X.shape[1] != layout.width:
            return None
        return X if len(X) and np.isfinite(X).all() else None

    def _matrix(self, frame: Frame) -> Any:
        """The table as an array, if it is finite numbers and so was all that came before."""
        layout = self._layout
        fresh = not layout.columns and not self.columns and not self._left_out
        if fresh or (layout.plain and not self._left_out and frame.names == tuple(layout.by_name)):
            return matrix_of(frame)
        return None

    def _begin_plain(self, names: tuple[str, ...], matrix: Floats, scaler: Any) -> None:
        for index, name in enumerate(names):
            self._layout.take(("column", name))
            self._layout.take(("kind", index, "number"))
        self._means.widen(matrix[0])
        if scaler is not None:
            scaler._widen(matrix[0], 0)

    def _learn_plain(self, rows: Any, scaler: Any) -> Any:
        if self.missing == "fill":
            self._means.learn_plain(rows)
        self.n_seen_ += len(rows)
        return rows if scaler is None else scaler._learn_rows(rows.astype(np.float64, copy=False))

    def _plain_dict(self, x: dict[Any, Any]) -> Any:
        names = self._layout.by_name
        if x.keys() != names.keys():
            return None
        values = [x[name] for name in names]
        return np.array([values], dtype=np.float64) if {*map(type, values)} <= {float, int} else None

    def _sparse_rows(self, X: Any, scaler: Any, learn: bool) -> Any:
        if scaler is not None:
            raise TypeError("scale: sparse rows cannot be centred without losing their zeros; use scale=None")
        if self._layout.columns or self._sparse_width not in (None, X.shape[1]):
            raise ValueError(
                f"X has {X.shape[1]} features, but Table is expecting {self.n_features_in_} features as input"
            )
        if learn:
            self._sparse_width = int(X.shape[1])
            self.n_seen_ += X.shape[0]
        return X

    # ---- reading: nothing is changed -------------------------------------------------------------------------

    def _frame(self, X: Any) -> Frame:
        frame = frame_of(X)
        if self._sparse_width is not None:
            raise ValueError("the rows before these were sparse: these must be sparse, too")
        if frame.count == 0:
            raise ValueError("Found array with 0 sample(s): a table must hold at least one row")
        if not frame.names:
            raise ValueError("0 feature(s): a table must hold at least one column")
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

    def _by_position(self, frame: Frame) -> Frame:
        """An array has no names: its columns are those of the table, in order."""
        names = [column.name for column in self._layout.columns]
        if len(frame.names) == len(names):
            return Frame(tuple(names), frame.columns, frame.count, frame.since)
        if self._left_out and set(names) <= set(frame.names):
            return frame
        raise ValueError(f"X has {len(frame.names)} features, but Table is expecting {len(names)} features as input")

    def _parts(self, frame: Frame) -> list[tuple[str, Any, int]]:
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

    def _readings(self, parts: Sequence[tuple[str, Any, int]]) -> list[Reading]:
        """Every column read; where several do not fit, the first row is the one that is told."""
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

    def _read(self, frame: Frame) -> tuple[list[Reading], list[Entry]]:
        """The columns, and what they bring to the layout, in the order of events and then of columns."""
        parts = self._parts(frame)
        readings = self._readings(parts)
        came: list[tuple[int, int, int, Entry]] = []
        fresh = len(self._layout.columns)
        index_of = {column.name: index for index, column in enumerate(self._layout.columns)}
        for (name, _, since), reading in zip(parts, readings, strict=True):
            known = self._layout.by_name.get(name)
            index = index_of.get(name, fresh)
            fresh += known is None
            if known is None and self.missing == "raise" and (self.n_seen_ or since):
                raise CellError(since, name, None, "the column was not there before")
            late = bool(self.n_seen_ or since)
            brought = reading.entries(index, known, since, late, self.max_values)
            came += [(row, index, place, entry) for place, (row, entry) in enumerate(brought)]
        came.sort(key=lambda item: item[:3])
        # A column's entry carries its index until here, so that all can be sorted alike.
        return readings, [("column", entry[2]) if entry[0] == "column" else entry for *_, entry in came]

    # ---- filling ---------------------------------------------------------------------------------------------

    def _rows(self, count: int, readings: list[Reading], scaler: Any, learn: bool) -> Any:
        sheet = Sheet(count, self._layout, "text" in self.columns.values())
        numbers = [reading for reading in readings if reading.kind in NUMBERS]
        if numbers:
            self._fill_numbers(sheet, numbers, scaler, learn)
        for reading in readings:
            column = self._layout.by_name[reading.name]
            if reading.kind == "category":
                sheet.fill_category(column, reading)
            elif reading.kind is not None:
                sheet.fill_flag(column, reading)
            if reading.kind == "time":
                sheet.fill_circles(column, reading)
            elif reading.kind == "text":
                sheet.fill_text(column, reading)
        return sheet.finish()

    def _fill_numbers(self, sheet: Sheet, readings: list[Reading], scaler: Any, learn: bool) -> None:
        means, layout = self._means, self._layout
        slots = [layout.by_name[reading.name].slot for reading in readings]
        values = np.empty((sheet.count, len(slots)))
        gone = np.empty((sheet.count, len(slots)), dtype=bool)
        for slot, reading in zip(slots, readings, strict=True):
            values[:, slot], gone[:, slot] = reading.values, reading.gone
        starts = {slot: reading.start for slot, reading in zip(slots, readings, strict=True) if reading.start}
        before = len(means.first)
        if learn and before < len(slots):
            by_slot = dict(zip(slots, readings, strict=True))
            means.widen([values[by_slot[slot].start, slot] for slot in range(before, len(slots))])
        filled = means.learn(values, gone) if learn and self.missing == "fill" else means.fill(values, gone)
        # Of a time the number is what has elapsed since the first.
        for slot, column in enumerate(layout.numbers):
            if column.kind == "time":
                filled[:, slot] -= means.first[slot]
        scaled = self._scaled(filled, scaler, learn, before) if scaler is not None else None
        for slot, start in starts.items():  # before its first value a column is not there
            filled[:start, slot] = 0.0
        where, _, places = layout.places
        sheet.put(where, filled)
        if scaled is not None:
            sheet.put(places, scaled)

    def _scaled(self, filled: Floats, scaler: Any, learn: bool, before: int) -> Floats | None:
        """The columns that have a unit, scaled. Before its first value a column is as if it had always had that."""
        _, slots, _ = self._layout.places
        if not slots.size:
            return None
        if learn and slots[-1] >= before:
            fresh = slots[slots >= before]
            time = np.array([self._layout.numbers[slot].kind == "time" for slot in fresh])
            scaler._widen(np.where(time, 0.0, self._means.first[fresh]), self.n_seen_)
        block = np.ascontiguousarray(filled[:, slots])
        return np.asarray(scaler._learn_rows(block) if learn else scaler._scale(block))

    # ---- going back, and what is known -----------------------------------------------------------------------

    def mark(self) -> tuple[Any, ...]:
        """What to go back to, at the cost of a few small copies."""
        return len(self._layout.entries), self._means.mark(), self._sparse_width, self.n_seen_

    def back(self, mark: tuple[Any, ...]) -> None:
        """Forget what came since `mark`."""
        entries, means, self._sparse_width, self.n_seen_ = mark
        if entries < len(self._layout.entries):
            self._layout.drop(entries)
        self._means.back(means)

    @property
    def width_(self) -> int:
        return self._sparse_width or max(self._layout.width, 1)

    @property
    def is_plain(self) -> bool:
        """Whether the rows are the table itself: all numbers, and none was ever missing."""
        return self._layout.plain

    @property
    def n_scaled(self) -> int:
        """How many columns of the rows a scaler takes in: numbers, and elapsed times."""
        return len(self._layout.places[1])

    @property
    def n_features_in_(self) -> int:
        return self._sparse_width or len(self._layout.columns)

    @property
    def kinds_(self) -> dict[str, str | None]:
        return {column.name: column.kind for column in self._layout.columns}

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        return np.array([column.name for column in self._layout.columns], dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
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
            total += max(self.max_values + 2 if kind == "category" else self._layout.own(kind) + 1 for kind in kinds)
        return max(total, 1)

    @property
    def nbytes(self) -> int:
        """Bytes that it keeps, as good as one can tell."""
        return 200 * len(self._layout.entries) + 3 * self._means.first.nbytes

    def describe(self) -> list[dict[str, Any]]:
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
        said = [f"{name}={kind}" for name, kind in self.columns.items() if name not in self._layout.by_name]
        return f"Table({listed(known + said)})"

    # ---- part of a model file --------------------------------------------------------------------------------

    def to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays, and plain values for JSON."""
        settings = {
            "columns": self.columns, "drop": list(self.drop), "missing": self.missing, "max_values": self.max_values,
            "text_features": self.text_features,
        }  # fmt: skip
        known = {"entries": self._layout.entries, "sparse_width": self._sparse_width, "n_seen": self.n_seen_}
        return self._means.to_file(), {"settings": settings, **known}

    @classmethod
    def from_file(cls, arrays: Mapping[str, Any], plain: Mapping[str, Any]) -> Self:
        """Back from `to_file`; what does not fit is refused."""
        table = cls(**plain["settings"])
        table._layout = Layout.read(plain["entries"], table.text_features, table.max_values)
        table._means = RunningMeans.from_file(arrays, len(table._layout.numbers))
        sparse, seen = plain["sparse_width"], plain["n_seen"]
        if type(seen) is not int or seen < 0 or not (sparse is None or (type(sparse) is int and 0 < sparse < 2**31)):
            raise ValueError("its table is damaged")
        table._sparse_width, table.n_seen_ = sparse, seen
        return table
