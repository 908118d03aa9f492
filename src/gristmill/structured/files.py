"""A hypothesis over (input, label) pairs as the arrays of a model file, and back with every array checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.types import Fields
from ..persist.model_file import unflatten
from .core import State, expansion, native
from .search import Label, Search
from .sequences import Sequences


def rows_of(held: State) -> Any:
    """The stored rows in the order of the inputs: a table or a CSR array."""
    points: Any = held.f.points
    slots = held.f.slots
    if not isinstance(points, tuple):
        return points[slots]
    from scipy.sparse import csr_array

    start, columns, values, width = points
    return csr_array((values, columns, start), shape=(len(start) - 1, width))[slots]


def to_arrays(held: State, kernel: object) -> dict[str, Any]:
    """All of it as arrays; label numbers are those of the label list."""
    arrays: Fields = held.f.state()
    if not native(kernel):
        return arrays
    points = rows_of(held)
    if not hasattr(points, "indptr"):
        return {**arrays, "points": points}
    return {
        **arrays,
        "indptr": points.indptr.astype(np.int64),
        "indices": points.indices.astype(np.int32),
        "data": points.data,
        "width": np.array([points.shape[1]], dtype=np.int64),
    }


def _ascend(a: npt.NDArray[np.int64], first: int, below: int) -> bool:
    """Whether whole numbers start at `first`, or are none, and rise strictly to less than `below`."""
    return bool(np.all(np.diff(a) > 0)) and (len(a) == 0 or (a[0] >= first and a[-1] < below))


def from_arrays(
    arrays: Mapping[str, object], kernel: object, search: Search, labels: list[Label] | None, objects: dict[int, Any]
) -> State:
    """The state again; raises ValueError where the arrays do not fit together."""
    state = unflatten(arrays, None)
    points: Any = state.pop("points", None)
    names = ("ids", "first_row", "of", "first_symbol", "symbols", "coef", "total", "factor", "counters")
    ids, first_row, of, first_symbol, symbols, coef, total, factor, counters = (state[name] for name in names)
    sparse = isinstance(points, tuple)
    values = points[2] if sparse else points
    side = len(of) if search.projects else 0
    whole = all(a.dtype == np.int64 and a.ndim == 1 for a in (ids, first_row, of, first_symbol))
    fits = (
        whole
        and symbols.dtype == np.int32
        and symbols.ndim == 1
        and counters.dtype == np.uint64
        and counters.shape == (5,)
        and int(counters[:3].max()) < 2**62
        and all(a.dtype == np.float64 and bool(np.isfinite(a).all()) for a in (coef, total, factor))
        and labels is not None
        and len(first_row) == len(ids) + 1
        and len(first_symbol) == len(of) + 1
        and first_row[0] == first_symbol[0] == 0
        and _ascend(first_row, 0, 2**31)
        and _ascend(first_symbol, 0, 2**31)
        and _ascend(ids, 0, int(counters[0]))
        and first_symbol[-1] == len(symbols)
        and bool(np.all(np.diff(of) >= 0))
        and (len(of) == 0 or (of[0] >= 0 and of[-1] < len(ids)))
        and bool(np.all(np.diff(first_symbol) == np.diff(first_row)[of]))
        and (len(symbols) == 0 or (symbols.min() >= 0 and symbols.max() < len(labels)))
        and coef.shape == total.shape == of.shape
        and factor.shape == (side, side)
        and bool(np.all(np.diag(factor) > 0))
        and (isinstance(kernel, Sequences) or bool(np.all(np.diff(first_row) == 1)))
    )
    if fits and native(kernel):
        count = len(points[0]) - 1 if sparse else len(points)
        fits = (
            count == first_row[-1]
            and values.dtype in (np.float64, np.float32)
            and bool(np.isfinite(values).all())
            and (sparse or (points.ndim == 2 and points.shape[1] > 0))
        )
    if not fits or labels is None:
        raise ValueError("the saved arrays do not fit together")
    width = 0 if points is None else points[3] if sparse else points.shape[1]
    f = expansion(kernel, search, width, sparse, values is not None and values.dtype == np.float32, 0)
    f.restore(points, *(state[name] for name in names))
    return State(f, {label: number for number, label in enumerate(labels)}, objects)
