"""What a report shows beside the metrics: confusions, predictions against targets, calibration, coverage, worst errors."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..streams.stream import Chunk, size
from ..streams.tables.cells import Coded
from ..streams.tables.frame import Frame, framed
from .metrics import PredictionBatch

#: rows of each piece of the stream whose probability or interval is asked for before they are learned
_ASKED = 100
#: rows by which columns are judged
_SAMPLE = 300
#: pairs of target and prediction that are kept
_PAIRS = 2000
#: classes with a row of their own in the table of confusions
MOST_CLASSES = 20
#: errors that are listed
WORST = 10
#: bins of the calibration table
BINS = 10
#: coverage of the intervals
COVERAGE = 0.9


@dataclass(frozen=True, order=True)
class Mistake:
    """One large error; ordered by its size."""

    loss: float
    event: int
    truth: str
    predicted: str


class Details:
    """Collects along a run, in bounded memory.

    Probabilities and intervals are those of the model at the beginning of each piece of the stream (25 events or more),
    for the first rows of the piece; everything else is of every event before it was learned.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        self.confusions: Counter[tuple[str, str]] = Counter()
        self.pairs: list[tuple[float, float]] = []
        self.sure, self.right, self.count = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS, dtype=np.int64)
        self.covered = self.intervals = 0
        self.widths = 0.0
        self.sample: Any = None  #: the first rows of the last piece
        self._worst: list[Mistake] = []
        self._seen = 0
        self._random = np.random.default_rng(0)

    @property
    def worst(self) -> list[Mistake]:
        """The worst errors, or without labels the alarms with the lowest scores; the worst first."""
        return sorted(self._worst, reverse=True)

    def relevance(self, model: Any, names: Sequence[str]) -> dict[str, float] | None:
        """How much the predictions of some recent rows change if a column is shuffled: shares that add up to 1.

        Of a detector it is the scores that change: few rows are alarms.
        """
        rows = self.sample
        if rows is None or size(Chunk(rows)) < 20:
            return None
        frame = rows if isinstance(rows, Frame) else framed(names, list(np.asarray(rows).T), len(rows))
        if not set(names) <= set(frame.names):
            return None
        found: dict[str, float] = {}
        with suppress(ValueError, TypeError):  # a bad cell, or objects
            answer = model.decision_function if self.task == "novelty" else model.predict
            before = np.asarray(answer(frame))
            order = self._random.permutation(frame.count)
            for name in names:
                after = np.asarray(answer(_shuffled(frame, name, order)))
                found[name] = float(
                    np.mean(after != before) if self.task == "classification" else np.abs(after - before).mean()
                )
        total = sum(found.values())
        return {name: share / total for name, share in found.items()} if total and len(found) == len(names) else None

    # ---- before a piece is learned -----------------------------------------------------------------------------

    def before(self, model: Any, piece: Chunk) -> None:
        """Ask the model for probabilities or intervals of the first rows of a piece."""
        self.sample = _without_source(piece.X[: min(_SAMPLE, size(piece))])
        if piece.y is None or not getattr(model, "n_seen_", 0):
            return
        rows, y = piece.X[: min(_ASKED, size(piece))], np.asarray(piece.y[:_ASKED])
        with suppress(ValueError, TypeError, AttributeError):  # a bad cell, or a model that has no such answer
            if self.task == "classification":
                self._calibrate(np.asarray(model.predict_proba(rows)), np.asarray(model.classes_), y)
            elif self.task == "regression":
                self._cover(np.asarray(model.predict_interval(rows, COVERAGE)), y)

    def _calibrate(self, shares: Any, classes: Any, y: Any) -> None:
        sure, right = shares.max(axis=1), classes[shares.argmax(axis=1)] == y
        bins = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
        self.sure += np.bincount(bins, sure, BINS)
        self.right += np.bincount(bins, right, BINS)
        self.count += np.bincount(bins, minlength=BINS)

    def _cover(self, intervals: Any, y: Any) -> None:
        finite = np.isfinite(intervals).all(axis=1)
        low, high = intervals[finite].T
        self.covered += int(((low <= y[finite]) & (y[finite] <= high)).sum())
        self.intervals += int(finite.sum())
        self.widths += float((high - low).sum())

    # ---- predictions -------------------------------------------------------------------------------------------

    def add(self, batch: PredictionBatch, first: int) -> None:
        """Predictions of consecutive events; `first` is the number of events before them."""
        if batch.y is None:
            if self.task == "novelty":
                self._keep_worst(np.where(batch.predicted == -1, -batch.scores, 0.0), first, None, batch.predicted)
            return
        y, predicted = np.asarray(batch.y), np.asarray(batch.predicted)
        if self.task == "regression":
            self._keep_pairs(y, predicted)
            losses = np.abs(y - predicted)
        else:
            self.confusions.update(zip(map(str, y.tolist()), map(str, predicted.tolist()), strict=True))
            losses = np.where(y != predicted, _confidence(batch), 0.0)
        self._keep_worst(losses, first, y, predicted)

    def _keep_worst(self, losses: Any, first: int, y: Any, predicted: Any) -> None:
        """The largest losses of a batch, or the lowest scores of alarms, among the worst of all."""
        for place in np.argsort(-losses, kind="stable")[:WORST].tolist():
            if losses[place] > 0 and first + place:  # the first event had no prediction
                truth = "" if y is None else _text(y[place])
                self._take(Mistake(float(losses[place]), first + place + 1, truth, _text(predicted[place])))

    def _take(self, mistake: Mistake) -> None:
        if len(self._worst) < WORST:
            heapq.heappush(self._worst, mistake)
        else:
            heapq.heappushpop(self._worst, mistake)

    def _keep_pairs(self, y: Any, predicted: Any) -> None:
        """A uniform sample of all pairs so far."""
        for pair in zip(y.tolist(), predicted.tolist(), strict=True):
            self._seen += 1
            if len(self.pairs) < _PAIRS:
                self.pairs.append(pair)
            elif (place := int(self._random.integers(self._seen))) < _PAIRS:
                self.pairs[place] = pair


def _confidence(batch: PredictionBatch) -> Any:
    """How far the winning score was from zero, or from the mean of the others."""
    scores = np.asarray(batch.scores)
    if scores.ndim == 1:
        return np.abs(scores)
    finite = np.where(np.isfinite(scores), scores, np.nan)
    with np.errstate(invalid="ignore"):
        found = np.nanmax(finite, axis=1) - np.nanmean(finite, axis=1) if scores.shape[1] else np.zeros(len(scores))
    return np.nan_to_num(found, nan=0.0)


def _text(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


def _without_source(rows: object) -> Any:
    """Rows without a reference to the block of the file."""
    return replace(rows, where=None) if isinstance(rows, Frame) else rows


def _shuffled(frame: Frame, name: str, order: Any) -> Frame:
    """The table with the cells of one column in another order."""
    columns = list(frame.columns)
    at = frame.names.index(name)
    column = columns[at]
    columns[at] = Coded(column.codes[order], column.values) if isinstance(column, Coded) else column[order]
    return replace(frame, columns=tuple(columns))
