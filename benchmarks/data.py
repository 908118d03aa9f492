"""Data of the benchmarks: whole sets as dense arrays, shuffled where the file is sorted, standardised where said."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from gristmill import datasets

SEED = 20


def arrays(name: str) -> tuple[Any, Any]:
    """A named data set, dense; FileNotFoundError says how to get one that is not in the data home."""
    X, y = datasets.load(name).arrays()
    X = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)


def shuffled(X: Any, y: Any, events: int | None = None, seed: int = SEED) -> tuple[Any, Any]:
    """The first events of a fixed random order."""
    order = np.random.default_rng(seed).permutation(len(y))[:events]
    return np.ascontiguousarray(X[order]), y[order]


def standardised(X: Any, *others: Any) -> Any:
    """Columns less their mean over their deviation, both of the first table; a constant column becomes zero."""
    spread = X.std(axis=0)
    spread[spread == 0] = 1.0
    done = tuple((part - X.mean(axis=0)) / spread for part in (X, *others))
    return done if others else done[0]


def digest(X: Any, y: Any) -> str:
    """A short name of these very numbers."""
    found = hashlib.sha256(np.ascontiguousarray(X).tobytes())
    found.update("\n".join(map(str, np.asarray(y).tolist())).encode())
    return found.hexdigest()[:16]
