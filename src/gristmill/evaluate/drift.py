"""Where the error of a run changed: River's ADWIN over what each event cost, where River is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from .metrics import Said

#: so many marks are kept: a stream that never rests would fill any memory
MOST_MARKS = 1000


def wanted(drift: bool | None) -> bool:
    """An explicit wish, else whether River is there."""
    there = find_spec("river") is not None
    if drift and not there:
        raise ImportError("drift=True marks changes by River's ADWIN: pip install 'gristmill[river]'")
    return there if drift is None else drift


class DriftMarks:
    """Marks of where the error of one model changed.

    A classifier's error is 0 or 1, a detector's alarms take its place, and a regressor's |y - f| counts as
    |y - f| / (|y - f| + m), m the mean of |y - f| so far: ADWIN asks for numbers from 0 to 1.

    Attributes
    ----------
    marks : list of dict
        `event`: events seen when the change was found; `since`: where it began, as far as ADWIN can tell; `before`,
        `after`: means of what it watches on both sides.

    References
    ----------
    A. Bifet, R. Gavaldà, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007.
    """

    def __init__(self, task: str, marks: list[dict[str, float]]) -> None:
        from river import drift

        self.task, self.marks = task, marks
        adwin: Any = drift.ADWIN  # which has no types
        self._adwin = adwin()
        self._sum = self._count = 0.0

    def add(self, said: Said, first: int) -> None:
        """Add predictions of consecutive samples; `first` is the position of the first one."""
        for place, cost in enumerate(self._costs(said).tolist()):
            before = self._adwin.estimation
            self._adwin.update(cost)
            if self._adwin.drift_detected and len(self.marks) < MOST_MARKS:
                event = first + place + 1
                since = max(event - int(self._adwin.width), 0)
                self.marks.append({"event": event, "since": since, "before": before, "after": self._adwin.estimation})

    def _costs(self, said: Said) -> npt.NDArray[np.float64]:
        if self.task == "classification":
            return np.asarray(said.predicted != said.y, dtype=float)
        if self.task == "novelty":
            return np.asarray(said.predicted == -1, dtype=float)
        off = np.abs(said.y - said.predicted)
        sums = self._sum + np.cumsum(off)
        means = sums / (self._count + np.arange(1, len(off) + 1))
        self._sum, self._count = float(sums[-1]), self._count + len(off)
        return off / np.maximum(off + means, np.finfo(float).tiny)


def told(mark: dict[str, float], task: str) -> str:
    """A mark as a line for people."""
    what = {"classification": "error", "novelty": "share of alarms"}.get(task, "size of the errors")
    way = "rose" if mark["after"] > mark["before"] else "fell"
    sizes = "" if task == "regression" else f" from {mark['before']:.3f} to {mark['after']:.3f}"
    return f"event {mark['event']:,}: the {what} {way}{sizes} (since about event {mark['since']:,})"
