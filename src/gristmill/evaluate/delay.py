"""Delayed labels: an event is predicted on arrival and learned when its label arrives."""

from __future__ import annotations

from collections import deque
from time import perf_counter
from typing import Any

import numpy as np

from ..streams.errors import BadRows
from ..streams.files.bad_cells import put_aside
from ..streams.stream import Chunk, size
from ..streams.tables.cells import CellError
from ..streams.tables.frame import Frame, frame_of
from .follower import Follower, moved


class DelayedFollower(Follower):
    """A follower whose labels arrive `delay` events after their own.

    Event by event: the newest is scored, then the one that came `delay` events ago is learned. The labels of
    the last `delay` events never arrive, and what comes before the first label cannot be scored.
    """

    def __init__(self, *arguments: Any, delay: int, bad: BadRows | None = None) -> None:
        super().__init__(*arguments)
        self.delay, self._bad = delay, bad
        self._waiting: deque[tuple[object, object]] = deque()

    def feed(self, chunk: Chunk) -> CellError | None:
        """Score each event, then learn the one whose label has arrived; return the first cell that does not fit."""
        if chunk.y is None and self.result.task != "novelty":
            raise ValueError("delayed labels need labels, and the stream has none")
        y = np.asarray(chunk.y) if chunk.y is not None else None
        scores: list[Any] = []
        start = 0
        for place in range(size(chunk)):
            x, label = chunk.X[place], None if y is None else y[place].item()
            began = perf_counter()
            try:
                score = self._score(x)
            except CellError as error:
                if scores:
                    self._note_part(y, scores, start, place)
                return moved(error, place)
            self._waiting.append((np.array(x) if isinstance(x, np.ndarray) else x, label))
            if len(self._waiting) > self.delay:
                late, its_label = self._waiting.popleft()
                try:
                    self._learn(late, its_label)
                except CellError as error:  # of a column that no earlier event had
                    put_aside(error, frame_of(late), self._bad)
            self.result.seconds += perf_counter() - began
            if scores and not _alike(score, scores[-1]):
                self._note_part(y, scores, start, place)
                scores, start = [], place
            scores.append(score)
        if scores:
            self._note_part(y, scores, start, size(chunk))
        return None

    def _score(self, x: object) -> Any:
        return self.model.score_one(x) if self._learned() else None

    def _learned(self) -> bool:
        return getattr(self.model, "n_seen_", 0) > 0

    def _learn(self, x: object, label: object) -> None:
        if self._classes is not None and not self._learned():
            self.model.partial_fit(
                x if isinstance(x, Frame) else [x], np.array([label]), classes=np.asarray(self._classes)
            )
            return
        self.model.learn_one(x, label)

    def _note_part(self, y: Any, scores: list[object], start: int, stop: int) -> None:
        batch = None if scores[0] is None else np.array(scores)
        self.note(None if y is None else y[start:stop], batch, stop - start)


def _alike(left: Any, right: Any) -> bool:
    """Whether two scores fit into one array: both exist and have as many classes."""
    return (left is None) == (right is None) and np.shape(left) == np.shape(right)
