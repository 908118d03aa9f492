"""Encode any table as rows of the core, online: the first value decides a column's kind; categories add columns."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._common.inputs import check_sparse
from ..._common.types import Fields, FileFields
from .column import NUMBERS, Reading
from .frame import Frame, matrix_of
from .layout import Entry, Layout
from .row_builder import Sheet
from .running_means import RunningMeans
from .schema import KnownColumns

Floats = npt.NDArray[np.float64]
ENTRY_BYTES = 200  #: of one entry of the layout, in Python
CATEGORY_BYTES = 320  #: of a category with a name of some twenty letters, everywhere
NARROW_BYTES = 2000  #: of a table whose rows have one column, or none yet: both look the same in a chunk


class Table(KnownColumns):
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
    flags : bool, default=True
        False: no column tells of a missing number, so that a table of numbers is as wide as its rows for ever.

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
        flags: bool = True,
    ) -> None:
        super().__init__(columns, drop, missing, max_values, text_features, flags)
        self._means = RunningMeans(self._core.means)
        #: of the last events that were taken in: rows from which on there were more columns, and how many
        self.growth: list[tuple[int, int]] = []

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
        rows : array or CSR
            One row an event, `width_` columns; CSR where there are texts, or where X is sparse.
        """
        self.growth = []
        X = _native(X)
        plain = self._plain_rows(X)
        if plain is not None and (scaler is None or self._sparse_width is None):
            return self._learn_plain(plain, scaler)
        X = X if plain is None else _as_sparse(plain)
        if hasattr(X, "tocsr"):
            return self._sparse_rows(X, scaler, learn=True)
        frame = self._frame(X)
        matrix = self._matrix(frame)
        fresh = not self._layout.columns
        if matrix is not None:
            if fresh:
                self._begin_plain(frame.names, matrix, scaler)
                self.named = not _nameless(X)
            return self._learn_plain(X if type(X) is np.ndarray and X.dtype.char in "fd" else matrix, scaler)
        ignored = self._beyond(frame)
        readings, entries = self._read(frame, ignored)
        self._take(entries)
        if fresh:
            self.named = not _nameless(X)
        rows = self._rows(frame.count, readings, scaler, learn=True)
        self.n_seen_ += frame.count
        self._count_ignored(frame, ignored)
        return rows

    def _take(self, entries: list[tuple[int, Entry]]) -> None:
        if not self.n_seen_:
            self.n_first = sum(entry[0] == "column" for row, entry in entries if row == 0)
        for row, entry in entries:
            before = self.width_
            self._layout.take(entry)
            if self.width_ > before:
                self.growth = [step for step in self.growth if step[0] < row] + [(row, self.width_)]

    def transform(self, X: Any, scaler: Any = None) -> Any:
        """Encode rows without learning. An unseen category has no column and becomes zeros."""
        X = _native(X)
        plain = self._plain_rows(X)
        if plain is not None and (scaler is None or self._sparse_width is None):
            return plain if scaler is None else scaler.scale_checked(plain.astype(np.float64, copy=False))
        X = X if plain is None else _as_sparse(plain)
        if hasattr(X, "tocsr"):
            return self._sparse_rows(X, scaler, learn=False)
        frame = self._complete(self._frame(X))
        matrix = self._matrix(frame) if self._layout.columns else None
        if matrix is not None:
            return matrix if scaler is None else scaler.scale_checked(matrix)
        return self._rows(frame.count, self._known_readings(frame), scaler, learn=False)

    def _plain_rows(self, X: Any) -> Any:
        """X itself where it is finite numbers, as all before it were: then there is nothing to do."""
        layout = self._layout
        if not layout.plain or self._left_out:
            return X if self._sparse_width is not None and _finite_rows(X, self._sparse_width) else None
        if type(X) is dict:
            X = self._plain_dict(X)
        return X if _finite_rows(X, layout.width) else None

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
        self.n_first = len(names)
        if scaler is not None:
            scaler.widen_columns(matrix[0], 0)

    def _learn_plain(self, rows: Any, scaler: Any) -> Any:
        if self.missing == "fill" and self._sparse_width is None:
            self._means.learn_plain(rows)
        self.n_seen_ += len(rows)
        return rows if scaler is None else scaler.learn_checked(rows.astype(np.float64, copy=False))

    def _plain_dict(self, x: dict[object, object]) -> Any:
        names = self._layout.by_name
        if x.keys() != names.keys():
            return None
        values = [x[name] for name in names]
        return np.array([values], dtype=np.float64) if {*map(type, values)} <= {float, int} else None

    def _sparse_rows(self, X: Any, scaler: Any, learn: bool) -> Any:
        """Sparse rows as they are, or divided by a scaling that does not centre."""
        wide = self._layout.plain and self._layout.width == X.shape[1]  # rows as sparse as one likes
        if wide and scaler is not None:
            raise TypeError("scale: the rows before these were dense, and are centred: these must be dense, too")
        if (self._layout.columns and not wide) or self._sparse_width not in (None, X.shape[1]):
            raise ValueError(
                f"X has {X.shape[1]} features, but Table is expecting {self.n_features_in_} features as input"
            )
        rows = X if scaler is None else self._divided(X, scaler, learn)
        if learn:
            self._sparse_width = None if wide else int(X.shape[1])
            self.n_first = self.n_first or int(X.shape[1])
            self.n_seen_ += X.shape[0]
        return rows

    @staticmethod
    def _divided(X: Any, scaler: Any, learn: bool) -> Any:
        check_sparse(X)
        X = X.tocsr()
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise ValueError(f"row {row}, column {int(X.indices[bad[0]])}: {X.data[bad[0]]} is not a finite number")
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return scaler.learn_sparse(X) if learn else scaler.scale_sparse(X)

    # ---- filling ---------------------------------------------------------------------------------------------

    def _rows(self, count: int, readings: list[Reading], scaler: object, learn: bool) -> Any:
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

    def _fill_numbers(self, sheet: Sheet, readings: list[Reading], scaler: object, learn: bool) -> None:
        means, layout = self._means, self._layout
        slots = [layout.by_name[reading.name].slot for reading in readings]
        values = np.empty((sheet.count, len(slots)))
        gone = np.empty((sheet.count, len(slots)), dtype=bool)
        for slot, reading in zip(slots, readings, strict=True):
            values[:, slot], gone[:, slot] = reading.values, reading.gone
        starts = {slot: reading.start for slot, reading in zip(slots, readings, strict=True) if reading.start}
        before = means.width
        if learn and before < len(slots):
            by_slot = dict(zip(slots, readings, strict=True))
            means.widen([values[by_slot[slot].start, slot] for slot in range(before, len(slots))])
        filled = means.fill(values, gone, learn and self.missing == "fill")
        first = means.first
        # Of a time the number is what has elapsed since the first.
        for slot, column in enumerate(layout.numbers):
            if column.kind == "time":
                filled[:, slot] -= first[slot]
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
            scaler.widen_columns(np.where(time, 0.0, self._means.first[fresh]), self.n_seen_)
        block = np.ascontiguousarray(filled[:, slots])
        return np.asarray(scaler.learn_checked(block) if learn else scaler.scale_checked(block))

    # ---- going back, and what is known -----------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """The columns of the encoded rows."""
        return self._layout

    @property
    def means(self) -> RunningMeans:
        """Running means of the columns of numbers, which fill missing values."""
        return self._means

    def snapshot(self) -> tuple[Any, ...]:
        """What to go back to, at the cost of a few small copies."""
        counts = self.n_seen_, self.n_first, self.n_ignored_
        return len(self._layout.entries), self._means.core.copy(), self._sparse_width, self.named, counts

    def rollback(self, mark: tuple[Any, ...]) -> None:
        """Forget what came since `snapshot`."""
        entries, self._core.means, self._sparse_width, self.named, counts = mark
        self.n_seen_, self.n_first, self.n_ignored_ = counts
        self._layout = self._layout.first(entries)

    def fresh(self) -> Table:
        """The same settings, and nothing seen."""
        return Table(self.columns, self.drop, self.missing, self.max_values, self.text_features, self.flags)

    def is_alike(self, other: Table) -> bool:
        """Whether the rows of both mean the same, column by column."""
        return (self._layout.entries, self._sparse_width) == (other._layout.entries, other._sparse_width)

    def difference(self, other: Table) -> str:
        """The first columns or categories in which two tables that are not alike differ, as text."""
        mine, its = self._layout.entries, other._layout.entries
        place = next((i for i, pair in enumerate(zip(mine, its, strict=False)) if pair[0] != pair[1]), None)
        place = min(len(mine), len(its)) if place is None else place

        def shown(entries: list[Entry]) -> str:
            if place == len(entries):
                return "nothing more"
            what, *rest = entries[place]
            if what == "column":
                return f"the column {rest[0]!r}"
            name = [entry[1] for entry in entries if entry[0] == "column"][int(rest[0])]
            return f"the {what} {rest[1]!r} of {name!r}" if len(rest) > 1 else f"a {what} of {name!r}"

        return f"{shown(mine)} and {shown(its)}"

    def merged(self, tables: Sequence[Table]) -> Table:
        """One table of all that these have seen, which are alike: counts and sums add up."""
        whole, states = copy.deepcopy(self), [np.array(table._means.core.state()) for table in tables]
        first, total, count = states[0]
        for other in states[1:]:
            total += other[1] + other[2] * (other[0] - first)
            count += other[2]
        whole._means.core.restore(np.stack([first, total, count]))
        whole.n_seen_ = sum(table.n_seen_ for table in tables)
        return whole

    @property
    def nbytes(self) -> int:
        """Estimated memory in bytes."""
        return self._bytes_of(len(self._layout.entries))

    def bytes_at(self, width: int) -> int:
        """Estimated memory in bytes when rows first had `width` columns; for more columns than they have, as much as these
        will take if each is a category of ordinary length.
        """
        if width <= 1:
            return NARROW_BYTES
        later = max(width - self.width_, 0) * CATEGORY_BYTES
        return self._bytes_of(self._core.entries_at(width)) + later

    def scaled_at(self, width: int) -> int:
        """Columns that are scaled, of the first `width` columns of the rows."""
        return width if width <= 1 else int((self.scaled_places < width).sum())

    def _bytes_of(self, entries: int) -> int:
        return ENTRY_BYTES * entries + int(self._core.bytes(entries))

    # ---- copies, and part of a model file ----------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_core", "_layout", "_means")}
        return {
            **state,
            "_entries": list(self._layout.entries),
            "_means": self._means.core.state(),
            "n_seen_": self.n_seen_,
        }

    def __setstate__(self, state: Fields) -> None:
        entries, means = state.pop("_entries"), state.pop("_means")
        self._core = _core.Table(state["missing"], state["flags"])
        self._layout = Layout.read(entries, state["text_features"], state["max_values"], self._core)
        self._means = RunningMeans(self._core.means)
        self._means.core.restore(means)
        for name, value in state.items():
            setattr(self, name, value)

    def to_file(self) -> FileFields:
        """Arrays, and plain values for JSON: copies, which do not change when the table learns on."""
        settings = {
            "columns": self.columns, "drop": list(self.drop), "missing": self.missing, "max_values": self.max_values,
            "text_features": self.text_features, "flags": self.flags,
        }  # fmt: skip
        known = {
            "entries": list(self._layout.entries), "sparse_width": self._sparse_width, "n_seen": self.n_seen_,
            "named": self.named, "n_first": self.n_first, "n_ignored": self.n_ignored_,
        }  # fmt: skip
        return self._means.to_file(), {"settings": settings, **known}

    @classmethod
    def from_file(cls, arrays: Mapping[str, Any], plain: Mapping[str, Any]) -> Self:
        """Back from `to_file`; what does not fit is refused."""
        table = cls(**plain["settings"])
        table._layout = Layout.read(plain["entries"], table.text_features, table.max_values, table._core)
        table._means.read(arrays, len(table._layout.numbers))
        sparse, seen = plain["sparse_width"], plain["n_seen"]
        if type(seen) is not int or seen < 0 or not (sparse is None or (type(sparse) is int and 0 < sparse < 2**31)):
            raise ValueError("its table is damaged")
        table._sparse_width, table.n_seen_, table.named = sparse, seen, bool(plain["named"])
        counts = plain.get("n_first", len(table._layout.columns)), plain.get("n_ignored", 0)
        if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
            raise ValueError("its table is damaged")
        table.n_first, table.n_ignored_ = counts
        return table

    @classmethod
    def of_numbers(cls, names: Sequence[str], named: bool, means: object, n_seen: int, **settings: Any) -> Self:
        """A table that has seen so many rows of plain numbers: first values, sums of differences from them, counts."""
        table = cls(**settings)
        for index, name in enumerate(names):
            table._layout.take(("column", name))
            table._layout.take(("kind", index, "number"))
        table._means.core.restore(np.ascontiguousarray(means, dtype=np.float64))
        table.n_seen_, table.named = n_seen, named
        return table


def _nameless(X: Any) -> bool:
    return isinstance(X, np.ndarray) or (isinstance(X, list | tuple) and not isinstance(X[0], Mapping))


def _as_sparse(rows: object) -> Any:
    """Rows written out, after others that came sparse."""
    from scipy.sparse import csr_array

    return csr_array(rows)


def _native(X: Any) -> Any:
    """Numbers in the order of bytes of this machine."""
    if type(X) is np.ndarray and not X.dtype.isnative:
        return X.astype(X.dtype.newbyteorder("="))
    return X


def _finite_rows(X: Any, width: int) -> bool:
    """Whether X is an array of so many columns of finite numbers."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.char not in "fd" or X.shape[1] != width or not len(X):
        return False
    return bool(_core.is_finite(X) if X.dtype.char == "d" and X.flags.c_contiguous else np.isfinite(X).all())


def padded(rows: Any, width: int) -> Any:
    """Rows with zeros behind them."""
    if rows.shape[1] == width:
        return rows
    if hasattr(rows, "tocsr"):
        rows = rows.copy()
        rows.resize((rows.shape[0], width))
        return rows
    wide = np.zeros((len(rows), width))
    wide[:, : rows.shape[1]] = rows
    return wide
