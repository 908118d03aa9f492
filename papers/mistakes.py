"""Mistakes of a learner along a stream, counted from scores: a tie is a mistake, as in the papers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.notation import parse


def follow(text: str, X: Any, y: Any, seed: int = 0) -> tuple[npt.NDArray[np.bool_], Any]:
    """Whether each event was a mistake, two classes or more, and the model in the end."""
    model = parse(text, seed=seed)
    labels, own = np.unique(y, return_inverse=True)
    scores = model.prequential(X, y, classes=labels)
    if scores.ndim == 1:
        return np.where(own == 1, scores, -scores) <= 0, model
    rows = np.arange(len(own))
    right = scores[rows, own].copy()
    scores[rows, own] = -np.inf
    return right <= scores.max(axis=1), model
