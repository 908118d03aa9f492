"""Concept drift: where the error of a run changed, by River's ADWIN, if River is installed."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import accumulate, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .metrics import PredictionBatch

#: most marks that are kept
MOST_MARKS = 1000
#: errors of a regressor that set its scale
SCALE_SAMPLES = 200
#: samples on each side of a change, at least
LEAST = 30


def wanted(drift: bool | None) -> bool:
    """The given choice, else whether River is installed."""
    there = find_spec("river") is not None
    if drift and not there:
        raise ImportError("drift=True marks changes by River's ADWIN: pip install 'gristmill[river]'")
    return there if drift is None else drift


class DriftMarks:
    """Marks of where the error of one model changed, found by ADWIN.

    ADWIN watches numbers from 0 to 1: the error of a classifier, the alarms of a detector, and |e| / (|e| + m) of a
    regressor, where m is the mean of |e| over its first 200 errors. A rise is marked wherever it is found. A fall is
    marked only after a rise: a model that is still learning its first concept is no drift.

    Attributes
    ----------
    marks : list of dict
        `event`: samples seen when the change was found; `since`: where the mean error of ADWIN's window changed most
        clearly; `before`, `after`: mean error of the window on both sides of that place, in the units of the metric (error
        rate, share of alarms, mean absolute error).

    References
    ----------
    A. Bifet, R. Gavaldà, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007.
    """

    def __init__(self, task: str, marks: list[dict[str, float]]) -> None:
        from river import drift

        self.task, self.marks = task, marks
        adwin: Any = drift.ADWIN  # which has no types
        self._adwin = adwin()
        self._first: int | None = None
        self._waiting: list[float] = []  #: errors before the scale is known
        self._scale = 1.0 if task != "regression" else 0.0
        self._sums = _RunningSums()
        self._begin = 0  #: of ADWIN's window
        self._rose = False

    def add(self, batch: PredictionBatch, first: int) -> None:
        """Add predictions of consecutive samples; `first` is the position of the first one."""
        if self._first is None:
            self._first = first
        errors = self._errors(batch).tolist()
        if self._scale:
            self._update(errors)
            return
        self._waiting += errors
        if len(self._waiting) >= SCALE_SAMPLES:
            self._scale = max(sum(self._waiting[:SCALE_SAMPLES]) / SCALE_SAMPLES, np.finfo(float).tiny)
            self._update(self._waiting)
            self._waiting = []

    def _update(self, errors: list[float]) -> None:
        """Pass errors to ADWIN; mark each change."""
        adwin, scale, done = self._adwin, self._scale, 0
        shares = [error / (error + scale) for error in errors] if self.task == "regression" else errors
        for place, share in enumerate(shares, 1):
            adwin.update(share)
            if adwin.drift_detected:
                self._sums.extend(errors[done:place])
                self._mark()
                done = place
        self._sums.extend(errors[done:])

    def _mark(self) -> None:
        """Mark a change at the last error. ADWIN begins a new window behind it."""
        assert self._first is not None
        begin, end = self._begin, self._sums.count
        self._begin = end
        cut = self._sums.change(begin, end)
        before, after = self._sums.mean(begin, cut), self._sums.mean(cut, end)
        if after > before or self._rose:
            self._rose = after > before
            if len(self.marks) < MOST_MARKS:
                event, since = self._first + end, self._first + cut
                self.marks.append({"event": event, "since": since, "before": before, "after": after})

    def _errors(self, batch: PredictionBatch) -> npt.NDArray[np.float64]:
        if self.task == "classification":
            return np.asarray(batch.predicted != batch.y, dtype=float)
        if self.task == "novelty":
            return np.asarray(batch.predicted == -1, dtype=float)
        return np.abs(batch.y - batch.predicted)


class _RunningSums:
    """Cumulative sums of errors in bounded memory: older ones are thinned and interpolated."""

    MOST = 8192

    def __init__(self) -> None:
        self.count = 0
        self._places, self._values = [0], [0.0]

    def extend(self, errors: list[float]) -> None:
        """Add errors; the sums are the same however they come in chunks."""
        while errors:
            part = errors[: self.MOST + 1 - len(self._places)]
            errors = errors[len(part) :]
            self._places += range(self.count + 1, self.count + len(part) + 1)
            self._values += islice(accumulate(part, initial=self._values[-1]), 1, None)
            self.count += len(part)
            if len(self._places) > self.MOST:
                half = self.MOST // 2
                self._places[:half] = self._places[:half:2]
                self._values[:half] = self._values[:half:2]

    def mean(self, first: int, last: int) -> float:
        """Mean error of the samples `first` to `last` (exclusive); ``first < last``."""
        at = np.interp([first, last], self._places, self._values)
        return float((at[1] - at[0]) / max(last - first, 1))

    def change(self, first: int, last: int) -> int:
        """Where the mean error changed most clearly between two samples: the cut of least squared deviation."""
        places, values = np.array(self._places), np.array(self._values)
        inside = (places >= first + LEAST) & (places <= last - LEAST)
        at = places[inside]
        if not len(at):
            return (first + last) // 2
        left, right = at - first, last - at
        start, end = np.interp([first, last], places, values)
        gap = (end - values[inside]) / right - (values[inside] - start) / left
        return int(at[np.argmax(gap**2 * left * right)])


def describe(mark: dict[str, float], task: str) -> str:
    """A mark as one line of text."""
    what = {"classification": "error", "novelty": "share of alarms"}.get(task, "mean absolute error")
    way = "rose" if mark["after"] > mark["before"] else "fell"
    sizes = (
        f"{mark['before']:.4g} to {mark['after']:.4g}"
        if task == "regression"
        else f"{mark['before']:.3f} to {mark['after']:.3f}"
    )
    return f"event {mark['event']:,}: the {what} {way} from {sizes} (since about event {mark['since']:,})"
