"""A hypothesis over (input, label) pairs as the arrays of a model file, and back with every array checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common import inputs
from ..persist.model_file import unflatten
from .hypothesis import Hypothesis


def to_arrays(f: Hypothesis) -> dict[str, Any]:
    """All of it as arrays; label numbers are those of the label list."""
    arrays = {
        "ids": f.ids,
        "of": f.of,
        "labels": f.labels,
        "coef": f.coef,
        "total": f.total,
        "factor": np.empty((0, 0)) if f.factor is None else np.ascontiguousarray(f.factor),
        "counters": np.array([f.seen, f.ticks, f.seed, f.draws], dtype=np.int64),
    }
    if inputs.is_sparse(f.points):
        points = f.points
        return {
            **arrays,
            "indptr": points.indptr.astype(np.int64),
            "indices": points.indices.astype(np.int32),
            "data": points.data,
        }
    return {**arrays, "points": f.points}


def from_arrays(arrays: dict[str, Any], labels: list[Any] | None, projects: bool, width: int) -> Hypothesis:
    """The hypothesis again; raises ValueError where the arrays do not fit together."""
    sparse = {"width": np.array([width])} if "indptr" in arrays else {}
    state = unflatten({**arrays, **sparse}, None)
    points = state["points"]
    if isinstance(points, tuple):
        from scipy.sparse import csr_array

        points = csr_array((points[2], points[1], points[0]), shape=(len(points[0]) - 1, width))
    ids, of, numbers, coef, total = (state[name] for name in ("ids", "of", "labels", "coef", "total"))
    factor, counters = state["factor"], state["counters"]
    count = len(coef) if projects else 0
    finite = all(np.isfinite(a).all() for a in (coef, total, factor, points.data if sparse else points))
    whole = all(a.dtype == np.int64 and a.ndim == 1 for a in (ids, of, numbers, counters))
    fits = (
        whole
        and finite
        and labels is not None
        and points.ndim == 2
        and points.shape == (len(ids), width)
        and coef.dtype == total.dtype == factor.dtype == np.float64
        and coef.shape == total.shape == of.shape == numbers.shape
        and factor.shape == (count, count)
        and counters.shape == (4,)
        and counters.min() >= 0
        and bool(np.all(np.diff(ids) > 0))
        and (len(ids) == 0 or (ids[0] >= 0 and ids[-1] < counters[0]))
        and (len(of) == 0 or (of.min() >= 0 and of.max() < len(ids)))
        and (len(of) == 0 or (numbers.min() >= 0 and numbers.max() < len(labels)))
        and bool(np.all(np.diag(factor) > 0))
    )
    if not fits or labels is None:
        raise ValueError("the saved arrays do not fit together")
    seen, ticks, seed, draws = (int(c) for c in counters)
    table = {label: number for number, label in enumerate(labels)}
    return Hypothesis(
        points,
        ids,
        of,
        numbers,
        coef,
        total,
        np.asfortranarray(factor) if projects else None,
        table,
        closed=True,
        seen=seen,
        ticks=ticks,
        seed=seed,
        draws=draws,
    )
