"""One model on a stream: predictions before learning, metrics, and processor time."""

from __future__ import annotations

import inspect
from collections import deque
from time import perf_counter
from typing import Any

import numpy as np

from .._common.positions import part_of
from .._common.types import Labels, Numbers
from ..streams.stream import Chunk, cut, size
from ..streams.tables.cells import CellError
from .details import Details
from .drift import DriftMarks
from .metrics import PredictionBatch, Tally, choose
from .result import Result

#: a curve longer than this loses every second entry, so that a run takes constant memory however long the
#: stream
_MOST_ENTRIES = 2000
#: events of the smallest piece that a chunk is cut into
_LEAST = 250
#: the same for a report, and the least number of events between two entries of its curve: a stream shorter than a window
#: has a curve, too
_FINE = 25


def task_of(model: Any) -> str:
    """classification, regression or novelty, by scikit-learn's tags."""
    from .._base.estimator import task_of

    task = task_of(model)
    if task is None:
        raise TypeError(f"{type(model).__name__} is neither a classifier, a regressor nor an outlier detector")
    return task


def moved(error: CellError, rows: int) -> CellError:
    """The error of a part of a chunk with the row number of the whole chunk."""
    return CellError(error.row + rows, error.column, error.value, error.why)


def _outlier_labels(y: Labels) -> Numbers:
    labels = np.asarray(y)
    strange = labels[~np.isin(labels, (-1, 1))]
    if strange.size:
        raise ValueError(
            f"the labels of a novelty stream are -1 (novel) and 1 (familiar), as in scikit-learn; got {strange[0]!r}"
        )
    return labels


class Follower:
    """Feeds one model chunk by chunk and keeps its record.

    Parameters
    ----------
    model : learner
        With a method `prequential`; or with `partial_fit`, and then each chunk is tested before it is trained
        on.
    name : str
    metrics : names of metrics, or None for those of the task
    window : int
        Events over which rolling metrics are taken, and between two entries of the curve; with `details` the curve has
        more entries.
    warmup : int
        Events that are learned but not scored.
    classes : all labels to come, if they are known
    drift : bool
        Mark where the error changed.
    details : bool
        Collect what a report shows beside the metrics.
    """

    def __init__(
        self,
        model: Any,
        name: str,
        metrics: object,
        window: int,
        warmup: int,
        classes: Labels,
        stream: str = "stream",
        drift: bool = False,
        details: bool = False,
    ) -> None:
        self.model, self.window, self.warmup = model, window, warmup
        task = task_of(model)
        self.kinds = choose(metrics, task)
        self.tallies = [kind() for kind in self.kinds]
        self._needs_labels = any(kind.needs_labels for kind in self.kinds)
        self.recent_batches: deque[PredictionBatch] = deque()
        self.since_entry = 0  # events since the last entry of the curve
        self.entry_every = min(window, max(_FINE, window // 40)) if details else window
        self._least = _FINE if details else _LEAST
        self._classes = classes if self._takes_classes() else None
        self.result = Result(name=name, stream=stream, task=task, model=model)
        self.result.details = Details(task) if details else None
        self._drift = drift
        self._marks: DriftMarks | None = None

    def _takes_classes(self) -> bool:
        method = getattr(self.model, "prequential", None) or getattr(self.model, "partial_fit", None)
        if method is None:
            raise TypeError(f"{type(self.model).__name__} has neither prequential nor partial_fit: it cannot stream")
        return "classes" in inspect.signature(method).parameters

    def feed(self, chunk: Chunk) -> CellError | None:
        """Score and learn one chunk, in pieces that end where an entry of the curve is due, or not long after.

        Returns None, or the first cell that the model cannot take; the rows before it are learned, those behind are not.
        """
        start, count = 0, size(chunk)
        while start < count:
            # A call costs the model as much as hundreds of events: late in a long stream pieces may be longer.
            stop = min(count, start + max(self.entry_every - self.since_entry, self._least, self.result.n_events // 16))
            piece = chunk if stop - start == count else cut(chunk, start, stop)
            if self.result.details is not None:
                self.result.details.before(self.model, piece)
            began = perf_counter()
            try:
                scores = self._scores(piece)
            except CellError as error:
                earlier = self.feed(cut(chunk, start, start + error.row)) if error.row else None
                return moved(earlier or error, start)
            self.result.seconds += perf_counter() - began
            self.note(piece.y, scores, stop - start)
            start = stop
        return None

    def _scores(self, chunk: Chunk) -> Any:
        """Predictions before learning; None while the model cannot predict yet."""
        known = {} if self._classes is None else {"classes": np.asarray(self._classes)}
        if hasattr(self.model, "prequential"):
            return self.model.prequential(chunk.X, chunk.y, **known)
        fresh = self.result.n_events == 0
        answer = self.model.decision_function if hasattr(self.model, "decision_function") else self.model.predict
        scores = None if fresh else answer(chunk.X)
        self.model.partial_fit(chunk.X, chunk.y, **(known if fresh else {}))
        return scores

    def note(self, y: Any, scores: Any, count: int) -> None:
        """Record predictions of `count` samples, in parts that end where the curve needs an entry.

        The model has the whole piece behind it by now: metrics are those of the event, stored points and bytes
        those at the end of the piece, which is at most a sixteenth of the stream so far (or 250 events) later.
        """
        start = 0
        while start < count:
            stop = min(count, start + max(self.entry_every - self.since_entry, 1))
            part = slice(start, stop)
            self._note(part_of(y, part), part_of(scores, part), stop - start)
            start = stop
            if self.since_entry >= self.entry_every:
                self.record()

    def _note(self, y: Labels, scores: object, count: int) -> None:
        unscored = min(max(self.warmup - self.result.n_events, 0), count)
        self.result.n_events += count
        self.since_entry += count
        if scores is None or unscored == count:
            return
        batch = self.batch(y, scores).part(unscored, count)
        for tally in self.tallies:
            if tally.needs_labels and batch.y is None:
                raise ValueError(f"the metric {tally.name} needs labels, and the stream has none")
            tally.add(batch)
        if self._drift and (batch.y is not None or self.result.task == "novelty"):
            self.snapshot(batch)
        if self.result.details is not None:
            self.result.details.add(batch, self.result.n_events - len(batch.predicted))
        self.recent_batches.append(batch)
        self.result.n_scored += count - unscored
        held = sum(len(part.predicted) for part in self.recent_batches)
        while held - len(self.recent_batches[0].predicted) >= self.window:
            held -= len(self.recent_batches.popleft().predicted)

    def snapshot(self, batch: PredictionBatch) -> None:
        if self._marks is None:
            self._marks = DriftMarks(self.result.task, self.result.drifts)
        self._marks.add(batch, self.result.n_events - len(batch.predicted))

    def batch(self, y: Labels, scores: Any) -> PredictionBatch:
        """Scores as predictions, beside the labels that came."""
        if self.result.task == "regression":
            return PredictionBatch(np.asarray(y, dtype=float), scores, scores, None)
        if self.result.task == "novelty":
            labels = _outlier_labels(y) if y is not None and self._needs_labels else None
            return PredictionBatch(labels, np.where(scores < 0, -1, 1), scores, None)
        classes = self.model.classes_
        if scores.ndim == 2:
            predicted = classes[scores.argmax(axis=1)]
        else:
            predicted = classes[(scores >= 0).astype(int)] if len(classes) > 1 else np.repeat(classes, len(scores))
        return PredictionBatch(np.asarray(y), predicted, scores, classes)

    def rolling(self) -> list[Tally]:
        """Fresh tallies over the last window."""
        fresh = [kind() for kind in self.kinds]
        left = self.window
        for batch in reversed(self.recent_batches):
            count = len(batch.predicted)
            part = batch.part(max(0, count - left), count)
            for tally in fresh:
                tally.add(part)
            left -= count
            if left <= 0:
                break
        return fresh

    def refresh(self) -> Result:
        """Update the numbers of the result."""
        result, model = self.result, self.model
        result.metrics = {tally.name: tally.value() for tally in self.tallies}
        result.rolling = {tally.name: tally.value() for tally in self.rolling()}
        result.stored = int(getattr(model, "n_support_", 0)) if result.n_events else 0
        result.bytes = int(getattr(model, "memory_bytes_", 0)) if result.n_events else 0
        return result

    def record(self) -> None:
        """Add an entry to the curve."""
        result = self.refresh()
        entry: dict[str, float] = {"event": result.n_events, **result.metrics}
        entry |= {f"rolling_{name}": value for name, value in result.rolling.items()}
        result.curve.append({**entry, "stored": result.stored, "bytes": result.bytes})
        self.since_entry = 0
        if len(result.curve) > _MOST_ENTRIES:
            result.curve = result.curve[1::2]
            self.entry_every *= 2

    def finish(self) -> Result:
        """Close the record at the end of the stream."""
        if self.since_entry:
            self.record()
        return self.refresh()
