"""The thesis' protocol for tables of points: random splits, z-scores, and a hold-out inside the training part."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import datasets

TRAIN, HOLD_OUT = 0.6, 0.2  # shares of all points, and of the training part


def rows(name: str) -> tuple[Any, Any]:
    """A data set by its name as a dense array, and its labels."""
    X, y = datasets.load(name).arrays()
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float), np.asarray(y)


def split(X: Any, y: Any, seed: int, most: int, scaled: bool = True) -> tuple[Any, Any, Any, Any]:
    """60 % to train, at most `most`, in random order; the rest to test; z-scores by the training part, or as they are."""
    order = np.random.default_rng(seed).permutation(len(X))
    share = int(TRAIN * len(X))
    train, test = order[: min(share, most)], order[share:]
    if not scaled:
        return X[train], y[train], X[test], y[test]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - mean) / np.where(spread > 0, spread, 1.0)
    return Z[train], y[train], Z[test], y[test]


def hold_out(count: int) -> int:
    """Where the training part is cut: what comes after chooses the parameters."""
    return int((1 - HOLD_OUT) * count)
