"""Inputs as the core takes them: C-ordered floats, (indptr, indices, data, width), or a list of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._common.types import Labels, Table

#: what the core takes
Rows = Any

_REAL = (np.float64, np.float32)
_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def is_sparse(X: Table) -> bool:
    """Whether X is a scipy.sparse matrix or array (asked without importing scipy)."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def is_ready(X: Table, known: Mapping[str, object]) -> bool:
    """Whether rows for a model with the attributes `known` can skip scikit-learn's validation: the core checks the rest.

    Everything else (another width, type or order, no rows, column names) goes through full validation.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and (X.dtype is _DOUBLE or X.dtype is _SINGLE)
        and X.shape[1] == known.get("n_features_in_")
        and X.shape[0] > 0
        and X.flags.c_contiguous
        and "feature_names_in_" not in known
    )


def check_sparse(X: Any) -> None:
    """Refuse a CSR or CSC table whose indices point outside it: SciPy and the core follow them without looking."""
    if getattr(X, "format", None) not in ("csr", "csc"):
        return  # SciPy has validated it
    lines, across = X.shape if X.format == "csr" else X.shape[::-1]
    ends, indices = X.indptr, X.indices
    if (
        len(ends) != lines + 1
        or ends[0] != 0
        or ends[-1] > min(len(indices), len(X.data))
        or (ends[1:] < ends[:-1]).any()
    ):
        raise ValueError("X is a damaged sparse table: its indptr does not fit its indices")
    used = indices[: ends[-1]]
    if len(used) and (used.min() < 0 or used.max() >= across):
        at = int(np.flatnonzero((used < 0) | (used >= across))[0])
        line = int(np.searchsorted(ends, at, side="right")) - 1
        what = ("row", "column") if X.format == "csr" else ("column", "row")
        raise ValueError(
            f"X is a damaged sparse table: {what[0]} {line} has the {what[1]} {used[at]}, and there are {across}"
        )


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array with masked values: NumPy would hand on what is under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = [int(at[0]) for at in np.nonzero(np.ma.getmaskarray(values))]
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise ValueError(
            f"{name} is a masked array with masked values, the first in {where}; fill them, or leave such events out"
        )


def sparse_rows(X: Any, dtype: Any = None) -> Rows:
    """A scipy.sparse matrix or array as the core's tuple; columns ascend within a row and are distinct."""
    check_sparse(X)
    X = X.tocsr()
    if dtype is not None and X.dtype != dtype:
        with np.errstate(over="ignore"):  # the core names the row that became infinite
            X = X.astype(dtype)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data),
        int(X.shape[1]),
    )


def kernel_rows(X: Any) -> Rows:
    """Rows for a kernel matrix: float32 stays float32, everything else becomes float64."""
    if is_sparse(X):
        return sparse_rows(X, None if X.dtype in _REAL else np.float64)
    array = np.asarray(X)
    if array.dtype not in _REAL:
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"a kernel compares two vectors or two tables of rows, got {array.ndim} dimensions")
    return np.ascontiguousarray(array)


def core_rows(X: Any, single: bool, sparse_store: bool) -> Rows:
    """Validated X (array or CSR) as rows for a learner of the given precision and store."""
    dtype = np.float32 if single else np.float64
    if is_sparse(X):
        return sparse_rows(X, dtype)
    array = X
    if X.dtype != dtype or not X.flags.c_contiguous:
        with np.errstate(over="ignore"):  # the core names the row that became infinite
            array = np.ascontiguousarray(X, dtype=dtype)
    if not sparse_store:
        return array
    # A very wide model keeps an index of non-zeros; a dense row is one with many of them.
    from scipy.sparse import csr_array

    return sparse_rows(csr_array(array), dtype)


def extent(rows: Any) -> tuple[int, int]:
    """How many rows for a core these are, and how many numbers are in them."""
    if isinstance(rows, list):
        return len(rows), len(rows)
    return (len(rows[0]) - 1, len(rows[2])) if isinstance(rows, tuple) else (rows.shape[0], rows.size)


def weights(sample_weight: Labels, count: int) -> Any:
    """Weights of events as float64: finite, >= 0, one an event, or one number for all."""
    refuse_masked(sample_weight, "sample_weight")
    array = np.asarray(sample_weight, dtype=np.float64)
    array = np.repeat(array, count) if array.ndim == 0 else np.ascontiguousarray(array)
    if array.shape != (count,):
        raise ValueError(f"sample_weight must have one number an event: shape ({count},), got {array.shape}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight must be finite and not below 0, negative values have no meaning: "
            f"number {bad[0]} is {array[bad[0]]}"
        )
    return array


def objects(X: Any) -> list[Any]:
    """Anything with a length as a list of objects for a Python kernel; rows of an array as vectors."""
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy()
    if is_sparse(X):
        return [X[[i]] for i in range(X.shape[0])]
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__len__"):
        raise TypeError(f"X must be a sequence of objects, got {type(X).__name__}")
    if len(X) == 0:
        raise ValueError("Found array with 0 sample(s): X must hold at least one object")
    return [x.copy() if isinstance(x, np.ndarray) else x for x in X]


def no_number(X: Any) -> str | None:
    """Describe the first cell of a table that is no number; None if there is none, or X is no table."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        for name in X.columns:
            for row, value in enumerate(X[name].tolist()):
                if not _could_be_number(value):
                    return f"{value!r} in row {row}, column {name!r}"
        return None
    rows = X if isinstance(X, list | tuple) or getattr(X, "dtype", None) is not None else []
    for row, values in enumerate(rows):
        if isinstance(values, dict):
            return f"a dict in row {row}"
        for column, value in enumerate(values if isinstance(values, list | tuple | np.ndarray) else []):
            if not _could_be_number(value):
                return f"{value!r} in row {row}, column {column}"
    return None


def _could_be_number(value: Any) -> bool:
    if isinstance(value, complex | np.complexfloating):
        return True  # the message of the original error names the cause
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def single(x: Any) -> Any:
    """One event as a table, or list, of one."""
    refuse_masked(x, "x")
    return x if is_sparse(x) else [x]
