"""What the papers call tuned by hand: the best of a small grid, on streams that are not counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.notation import parse


def mistakes(text: str, X: Any, y: Any) -> npt.NDArray[np.int64]:
    """Mistakes so far (y f <= 0, so that a score of 0 counts) of a binary learner, event by event."""
    scores = parse(text).prequential(X, y, classes=[-1, 1])
    return np.cumsum(y * scores <= 0)


def tuned(texts: Sequence[str], kernels: Sequence[str], streams: Sequence[tuple[Any, Any]]) -> str:
    """The text, with {k} replaced by a kernel, that errs least on the given streams together."""
    filled = [text.replace("{k}", kernel) for text in texts for kernel in kernels]
    return min(filled, key=lambda text: sum(int(mistakes(text, *stream)[-1]) for stream in streams))
