"""What was said of the parts of a chunk, put together as if the chunk had been learned in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def cut(values: Any, part: slice) -> Any:
    """Rows of an array, a list, or a Series or DataFrame; None stays None."""
    if values is None:
        return None
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


def in_core_order(model: Any, scores: Floats) -> Floats:
    """Scores in the order in which the core numbers the classes: the sorted order changes when one comes."""
    names = model._run.labels.names
    if not names:
        return scores
    view = model._run.labels.view(len(names))
    if scores.ndim == 1:
        return np.asarray(view.sign * scores)
    found = np.empty_like(scores)
    found[:, view.columns] = scores
    return found


def joined(model: Any, parts: list[Floats]) -> Any:
    """Parts in the core's order, as shown outside: two classes become (-f/2, f/2), and later ones had 0."""
    if not model._run.labels.names:
        return np.concatenate(parts)
    widest = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    if widest:
        for place, part in enumerate(parts):
            narrow = np.column_stack([-0.5 * part, 0.5 * part]) if part.ndim == 1 else part
            parts[place] = np.pad(narrow, ((0, 0), (0, widest - narrow.shape[1])))
    labels = model._run.labels
    return model._shown(np.concatenate(parts), labels.view(len(labels)))
