"""Any table as named columns: frames of pandas and polars, Arrow, dicts of columns, dicts, lists of dicts, arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ..._common.types import Floats, Numbers
from .cells import Coded


@dataclass(frozen=True)
class Frame:
    """Columns of equal length under their names: NumPy arrays, or `Coded` where a source knows the distinct values.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of arrays
        Numbers, truths, datetime64 or objects.
    count : int
        Of rows.
    since : tuple of int
        The row in which each name first came, where rows are dicts; 0 otherwise.
    where : callable, optional
        Returns the origin of a row, such as "data.csv, line 7".
    is_records : bool
        Whether rows came as dicts, each with the names that it happens to have.
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]
    count: int
    since: tuple[int, ...]
    where: Callable[[int], str] | None = field(default=None, compare=False, repr=False)
    is_records: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.count, len(self.names)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice | int) -> Frame:
        if isinstance(part, int):  # one event
            return self[part : part + 1]
        columns = tuple(column[part] for column in self.columns)
        start, stop, _ = part.indices(self.count)
        where = None if self.where is None else partial(_shifted, self.where, start)
        since = tuple(max(row - start, 0) for row in self.since)
        return replace(self, columns=columns, count=max(stop - start, 0), since=since, where=where)

    def without(self, name: str | None) -> tuple[Frame, Any]:
        """The other columns, and this one; None if it is not there."""
        if name not in self.names:
            return self, None
        at = self.names.index(name)
        names, since = self.names[:at] + self.names[at + 1 :], self.since[:at] + self.since[at + 1 :]
        columns = self.columns[:at] + self.columns[at + 1 :]
        return replace(self, names=names, columns=columns, since=since), self.columns[at]


def _shifted(where: Callable[[int], str], start: int, row: int) -> str:
    return where(start + row)


def framed(names: Sequence[str], columns: Sequence[object], count: int) -> Frame:
    return Frame(tuple(names), tuple(columns), count, (0,) * len(names))


def matrix_of(frame: Frame) -> Floats | None:
    """All columns as one array if all are finite numbers; None otherwise."""
    if not all(type(column) is np.ndarray and column.dtype.kind in "iuf" for column in frame.columns):
        return None
    matrix = np.column_stack(frame.columns).astype(np.float64, copy=False)
    return matrix if np.isfinite(matrix).all() else None


def frame_of(X: Any) -> Frame:
    """A table of any kind as a `Frame`; nothing is converted that need not be."""
    if isinstance(X, Frame):
        return X
    home = type(X).__module__.split(".", 1)[0]
    if home == "pandas":
        return _pandas(X)
    if home == "polars":
        return _polars(X)
    if home == "pyarrow":
        return _arrow(X)
    if isinstance(X, Mapping):
        return _mapping(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return _records(X)
    array = unmasked(X) if isinstance(X, np.ndarray) else _array(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: a table of {array.dtype.name}")
    if array.ndim != 2:
        raise ValueError(f"a table has rows and columns: Expected 2D array, got {array.ndim}D. Reshape your data")
    return framed([f"x{place}" for place in range(array.shape[1])], list(array.T), len(array))


def unmasked(array: Any) -> Any:
    """An array whose masked cells are missing: NaN, NaT or None."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array.data)
    kind = array.dtype.kind
    blank: Any = np.nan if kind in "iuf" else np.datetime64("NaT") if kind == "M" else None
    if kind in "iu":
        array = array.astype(np.float64)
    elif kind not in "fM":
        array = array.astype(object)
    return np.asarray(array.filled(blank))


def _array(X: Any) -> Numbers:
    if hasattr(X, "__array__") and not isinstance(X, str | bytes):
        return np.asarray(X)
    if not isinstance(X, list | tuple):
        raise TypeError(
            f"a table is an array, a frame of pandas or polars, an Arrow table, a dict or a list of dicts, "
            f"got {type(X).__name__}"
        )
    array = np.asarray(X) if not _mixed(X) else np.array(X, dtype=object)
    return array.astype(object) if array.dtype.kind in "US" else array


def _mixed(X: Any) -> bool:
    """Whether NumPy would make strings of everything."""
    return any(isinstance(value, str) or value is None for row in X if isinstance(row, list | tuple) for value in row)


def _mapping(X: Mapping[Any, Any]) -> Frame:
    if X and all(isinstance(value, list | tuple | np.ndarray) or hasattr(value, "to_numpy") for value in X.values()):
        columns = [_column(value) for value in X.values()]
        counts = {len(column) for column in columns}
        if len(counts) > 1:
            raise ValueError(f"the columns have different lengths: {', '.join(map(str, sorted(counts)))}")
        return framed([str(name) for name in X], columns, counts.pop())
    return _records([X])


def _column(values: Any) -> Any:
    home = type(values).__module__.split(".", 1)[0]
    if home in ("pandas", "polars", "pyarrow"):
        return {"pandas": _pandas_column, "polars": _polars_column, "pyarrow": _arrow_column}[home](values)
    if isinstance(values, np.ndarray):
        values = unmasked(values)
        if values.dtype.kind in "biufM":
            return values
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _records(rows: Sequence[Mapping[Any, Any]]) -> Frame:
    names = tuple(rows[0]) if rows and {*map(type, rows)} == {dict} else ()
    if len(names) > 1 and {*map(len, rows)} == {len(names)}:
        with suppress(KeyError):  # then a row has other columns
            columns = [_cells(list(values)) for values in zip(*map(itemgetter(*names), rows), strict=True)]
            return Frame(tuple(map(str, names)), tuple(columns), len(rows), (0,) * len(names), is_records=True)
    since: dict[str, int] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number}: a row is a dict, as those before it, got {type(row).__name__}")
        for name in row:
            if name not in since:
                since[name] = number
    columns = [_cells([row.get(name) for row in rows]) for name in since]
    return Frame(tuple(map(str, since)), tuple(columns), len(rows), tuple(since.values()), is_records=True)


def _cells(values: list[object]) -> Any:
    """Floats as an array of them, everything else as objects."""
    if {*map(type, values)} == {float}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


# ---- pandas, polars, Arrow ----------------------------------------------------------------------------------------


def _pandas(X: Any) -> Frame:
    if not hasattr(X, "columns"):
        raise TypeError("a table is a DataFrame, got a Series; use to_frame()")
    columns = [_pandas_column(X.iloc[:, place]) for place in range(X.shape[1])]
    return framed([str(name) for name in X.columns], columns, len(X))


def _pandas_column(series: Any) -> Any:
    kind = series.dtype
    if isinstance(kind, np.dtype):
        return series.to_numpy() if kind.kind in "biufM" else _objects(series.to_numpy())
    pandas = sys.modules["pandas"]
    if isinstance(kind, pandas.CategoricalDtype):
        return Coded(series.cat.codes.to_numpy().astype(np.int64), list(series.cat.categories))
    if isinstance(kind, pandas.DatetimeTZDtype):
        return series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if pandas.api.types.is_bool_dtype(kind) or not pandas.api.types.is_numeric_dtype(kind):
        return _objects(series.astype(object).to_numpy())
    if pandas.api.types.is_integer_dtype(kind) and not series.hasnans:
        return series.to_numpy(dtype=np.int64) if kind.name[0] in "Ii" else series.to_numpy(dtype=np.uint64)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _objects(values: Any) -> Any:
    return values if values.dtype.kind == "O" else values.astype(object)


def _polars(X: Any) -> Frame:
    if not hasattr(X, "columns"):
        raise TypeError(f"a table is a DataFrame, got a {type(X).__name__}")
    if hasattr(X, "collect"):
        X = X.collect()
    return framed(X.columns, [_polars_column(X[name]) for name in X.columns], len(X))


def _polars_column(series: Any) -> Any:
    polars = sys.modules["polars"]
    kind = series.dtype
    if kind.is_decimal():
        series = series.cast(polars.Float64)
    if series.dtype.is_numeric():
        return series.to_numpy()
    if kind in (polars.Date, polars.Datetime):
        series = series.cast(polars.Datetime("us", getattr(kind, "time_zone", None)))
        if series.dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return series.to_numpy()
    if kind == polars.Boolean and not series.null_count():
        return series.to_numpy()
    if kind in (polars.String, polars.Categorical, polars.Enum):
        distinct = series.cast(polars.String).unique(maintain_order=True).drop_nulls()
        codes = series.cast(polars.String).cast(polars.Enum(distinct)).to_physical()
        return Coded(codes.cast(polars.Int64).fill_null(-1).to_numpy(), distinct.to_list())
    return _column(series.to_list())


def _arrow(X: Any) -> Frame:
    if not hasattr(X, "column_names") and not hasattr(X, "schema"):
        raise TypeError(f"a table is a Table or a RecordBatch, got {type(X).__name__}")
    names = list(X.schema.names)
    return framed(names, [_arrow_column(X.column(place)) for place in range(len(names))], X.num_rows)


def _arrow_column(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_decimal(kind):
        column = column.cast(pa.float64())
        kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or (types.is_boolean(kind) and not column.null_count):
        return _numpy(column)
    if types.is_timestamp(kind) or types.is_date(kind):
        return _numpy(column.cast(pa.timestamp("us"), safe=False))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        if not types.is_dictionary(kind):
            column = column.dictionary_encode()
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        codes = _numpy(column.indices.fill_null(-1)).astype(np.int64)
        return Coded(codes, column.dictionary.to_pylist())
    return _column(column.to_pylist())


def _numpy(column: Any) -> Any:
    """Of an Array or a ChunkedArray, which take different arguments."""
    return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
