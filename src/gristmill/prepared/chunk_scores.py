"""Scores of the parts of a chunk, joined as if the chunk had been learned in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._base.estimator import run_of
from .._common.labels import wide

Floats = npt.NDArray[np.float64]


def in_core_order(model: Any, scores: Floats) -> Floats:
    """Scores in the order in which the core numbers the classes: the sorted order changes when one comes."""
    names = run_of(model).labels.names
    if not names:
        return scores
    view = run_of(model).labels.view(len(names))
    if scores.ndim == 1:
        return np.asarray(view.sign * scores)
    found = np.empty_like(scores)
    found[:, view.columns] = scores
    return found


def joined(model: Any, parts: list[Floats], numbers: Any, known: int) -> Any:
    """Parts in the core's order, as shown outside: two classes become (-f/2, f/2), and later ones are below all others.

    numbers: the core's number of the label of each event; known: classes that the model knew before the first.
    """
    if not run_of(model).labels.names:
        return np.concatenate(parts)
    widest = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    if widest:
        parts = [wide(part[:, None] if part.ndim == 1 else part, widest) for part in parts]
    labels = run_of(model).labels
    whole = model.learning_task.with_new_classes_last(np.concatenate(parts), numbers, known)
    return model.learning_task.shown(whole, labels.view(len(labels)))
