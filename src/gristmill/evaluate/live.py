"""A model along a stream of a broker: predict, score, learn, send the answers, save model and position together."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from .._common.positions import part_of
from .._common.types import Json, Options
from ..streams.brokers.contract import BrokerAway, Message, Position, Record, Writer
from ..streams.brokers.decode import Place
from ..streams.brokers.feed import Batch, Feed, Stopped
from ..streams.brokers.order import OrderLog
from ..streams.brokers.stream import Events, Rows
from ..streams.files.bad_cells import put_aside
from ..streams.tables.cells import CellError
from . import progress as bars
from .follower import Follower

#: a model is saved at most this share of the time
_SHARE = 0.05
#: signals that end a run after the batch, and their messages
_SIGNALS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}


def position_of(model: Any, source: str) -> Json | None:
    """What a model keeps of a stream that it has read: `position`, `events`, and `order` with several partitions."""
    found = getattr(model, "stream_positions_", {}).get(source)
    return dict(found) if found is not None else None


class LiveRun:
    """Learns batch by batch, each message exactly once, also across crashes.

    Predictions are flushed before the model is saved, and acknowledged after. A crash may repeat predictions, which carry
    their positions, but never learning.

    Parameters
    ----------
    follower : Follower
        Of the model; takes down what was predicted.
    feed : Feed
    rows : Rows
    save : callable, optional
        Writes the model to its file in one atomic step.
    saved : object, optional
        The model that is saved, if the follower has another face of it.
    writer : Writer, optional
        For answers.
    more : callable, optional
        `more(X)` of one event: further answers before it is learned, such as probabilities; then events are learned one by
        one.
    order : path, optional
        Where the order of several partitions is recorded.
    every : float
        Seconds between two savings, at least.
    ahead : Rows, optional
        Makes rows of events whose labels come later, to be predicted when they come.
    """

    def __init__(
        self,
        follower: Follower,
        feed: Feed,
        rows: Rows,
        save: Callable[[Any], None] | None = None,
        saved: Any = None,
        writer: Writer | None = None,
        more: Callable[[Any], Json] | None = None,
        order: object = None,
        every: float = 1.0,
        ahead: Rows | None = None,
    ) -> None:
        self.follower, self.feed, self.rows, self.writer = follower, feed, rows, writer
        self.model, self.saved = follower.model, follower.model if saved is None else saved
        self.stopped = ""
        self._save, self._more, self._every, self._ahead = save, more, every, ahead
        self._earlier: dict[tuple[str, Any], Any] = {}  # of events whose labels came later: their scores when they came
        self._source = feed.reader.url.name
        known = position_of(self.saved, self._source)
        self.learned: Position = {} if known is None else dict(known["position"])
        self.events = 0 if known is None else int(known["events"])
        self._order_path, self._order_mark = order, (known or {}).get("order")
        self._order: OrderLog | None = None
        self._unsaved = 0
        self._untold = False  # the broker does not know yet what was saved
        self._last, self._took = time.monotonic(), 0.0
        feed.reader.release = self._release

    def run(self, progress: bool | None = None) -> None:
        """Run to the end of the feed or until a signal, then save."""
        if not self.feed.position:
            self.feed.open(self.learned or None)
        self.learned = self.feed.position | self.learned
        with self._signals(), bars.live([self.follower], None, self._title, bars.wanted(progress)) as tick:
            for batch in self.feed.batches():
                if batch.messages:
                    self._take(batch)
                if self._unsaved and (self._is_due() or not batch.messages):
                    self.save()
                elif self._untold:
                    self._acknowledge()
                self.feed.lag()
                tick(self.follower.result.n_events)
            self.save()
            self.feed.lag(now=True)
        if self._order is not None:
            self._order.close()

    def _title(self) -> str:
        return f"{self._source}: {self.feed.counts.line()}"

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first interrupt, or a request to end, lets the batch be learned and saved; the next is at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, _: Any) -> None:
            if self.feed.stop.is_set():
                raise KeyboardInterrupt
            self.stopped = _SIGNALS[signal.Signals(number).name]
            self.feed.stop.set()

        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup does
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # ---- a batch ----------------------------------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        answers: list[Record] = []
        for role, part in groupby(batch.messages, attrgetter("role")):
            answers += self._take_part(role, list(part))
        self.learned = self.learned | batch.position
        self._unsaved += len(batch.messages)
        if self._order_path is not None and self._order is None and len(self.learned) > 1:
            self._order = OrderLog(self._order_path, self._order_mark)
        if self._order is not None:
            self._order.add(batch.messages)
        if self.writer is not None and answers:
            writer = self.writer
            self._patiently(lambda: writer.send(answers))
            self.feed.counts.written += len(answers)

    def _take_part(self, role: str, messages: list[Message]) -> list[Record]:
        """Messages of one role: to be learned, or only predicted because their labels come later."""
        found: list[Record] = []
        letters = self.rows.letters
        if role == "learn":
            self._earlier = {(m.partition, m.offset): m.outcome for m in messages if m.outcome is not None}
            for events in self.rows(messages):
                found += self._learn(events)
        elif role == "predict" and self._ahead is not None:
            for events in self._ahead(messages):
                found += self._predict(events)
        elif role == "bad":
            letters.begin(messages)
            for message in messages:
                letters.take(f"{Place(self._source, message)}: {message.outcome}", "")
        if letters is not None:
            self.feed.counts.bad = letters.count
            self._patiently(letters.send)
        return found

    def _predict(self, events: Events) -> list[Record]:
        """Predictions for events whose labels come later; none before the first label."""
        count = len(events.places)
        if not self.events:
            return self._records(events, {"prediction": [None] * count})
        try:
            scores = (
                self.model.predict(events.X)
                if self.follower.result.task == "regression"
                else self.model.decision_function(events.X)
            )
        except CellError as error:
            put_aside(error, events.frame, self.rows.letters)
            parts = [_part(events, slice(error.row)), _part(events, slice(error.row + 1, count))]
            return [record for part in parts if len(part.places) for record in self._predict(part)]
        except (ValueError, TypeError) as error:
            if count == 1:
                self.rows.letters.take(f"{events.places[0]}: {error}", "")
                return []
            return [record for row in range(count) for record in self._predict(_one(events, row))]
        for place, score in zip(events.places, np.asarray(scores).tolist(), strict=True):
            self.feed.reader.scored(place.part, place.offset, score)  # type: ignore[attr-defined]
        if self.writer is None:
            return []
        batch = self.follower.batch(np.zeros(count), scores)
        columns: dict[str, list[Any]] = {"prediction": batch.predicted.tolist(), "score": np.asarray(scores).tolist()}
        if self._more is not None:
            rows = [self._more(events.X[row : row + 1]) for row in range(count)]
            columns |= {name: [row[name][0] for row in rows] for name in rows[0]}
        return self._records(events, columns)

    def _records(self, events: Events, columns: dict[str, list[object]]) -> list[Record]:
        return [] if self.writer is None else records(self._source, events.places, columns)

    def _learn(self, events: Events) -> list[Record]:
        """Learn events; returns what was predicted of each before."""
        count = len(events.places)
        if self._more is None:
            try:
                scores = self.model.prequential(events.X, events.y)
            except CellError as error:
                return self._learn_around(events, error)
            except (ValueError, TypeError):
                if count == 1 and not self.events:
                    raise
            else:
                return self._records_of(events, scores, None)
        found: list[Record] = []
        for row in range(count):
            alone = _one(events, row)
            try:
                more = self._more(alone.X) if self._more is not None and self.events else None
                scores = self.model.prequential(alone.X, alone.y)
            except CellError as error:
                put_aside(error, alone.frame, self.rows.letters)
                continue
            except (ValueError, TypeError) as error:
                if not self.events:
                    raise
                self.rows.letters.take(f"{alone.places[0]}: {error}", "")
                continue
            found += self._records_of(alone, scores, more)
        return found

    def _learn_around(self, events: Events, error: CellError) -> list[Record]:
        """Learn the events before and behind one with a bad cell, which becomes a dead letter."""
        found = self._learn(_part(events, slice(0, error.row))) if error.row else []
        put_aside(error, events.frame, self.rows.letters)
        rest = _part(events, slice(error.row + 1, len(events.places)))
        return found + (self._learn(rest) if len(rest.places) else [])

    def _records_of(self, events: Events, scores: object, more: Options | None) -> list[Record]:
        self.events += len(events.places)
        self.follower.note(events.y, self._then(events.places, scores), len(events.places))
        if self.writer is None or events.places[0].part.startswith("labels/"):  # those were answered when they came
            return []
        batch = self.follower.batch(events.y, scores)
        columns: dict[str, list[Any]] = {"prediction": batch.predicted.tolist(), "score": np.asarray(scores).tolist()}
        if self.follower.result.task == "novelty":
            columns["alarm"] = (batch.predicted < 0).tolist()
        if hasattr(events.X, "keys"):
            columns["key"] = list(events.X.keys)
        columns |= more or {}
        return records(self._source, events.places, columns)

    def _then(self, places: Sequence[Any], scores: Any) -> Any:
        """The scores of the events when they came, where their labels came later."""
        if not self._earlier:
            return scores
        found = np.array(scores)
        for row, place in enumerate(places):
            earlier = self._earlier.get((place.part, place.offset))
            if earlier is not None and np.shape(earlier) == found.shape[1:]:
                found[row] = earlier
        return found

    # ---- saving -----------------------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        window = self.feed.reader.window
        if window is not None and self._unsaved >= max(1, window // 2):
            return True
        return time.monotonic() - self._last >= max(self._every, self._took / _SHARE)

    def save(self) -> None:
        """Flush predictions, save model and position in one write, then acknowledge to the broker."""
        if not self._unsaved or (self._ahead is not None and not self.events):  # nothing to save
            return
        began = time.monotonic()
        for out in (self.rows.letters, self.writer):
            if out is not None and hasattr(out, "flush"):
                self._patiently(out.flush)
        note: Json = {"position": self.learned, "events": self.events}
        if self._order is not None:
            note["order"] = self._order.sync()
        self.feed.reader.prepare()
        if self._save is not None and self.events:
            self.saved.stream_positions_ = {**getattr(self.saved, "stream_positions_", {}), self._source: note}
            self._save(self.saved)
            self.feed.counts.saved += 1
        self._acknowledge()
        self._unsaved = 0
        self._last = time.monotonic()
        self._took = self._last - began

    def _acknowledge(self) -> None:
        """Acknowledge the saved position to the broker; if it is away, again with the next batch."""
        self._untold = True
        with suppress(BrokerAway):
            self.feed.reader.acknowledge(self.learned)
            self._untold = False

    def _patiently(self, action: Callable[[], Any]) -> None:
        try:
            self.feed.patiently(action)
        except Stopped:
            action()  # once more, and then it is an error

    def _release(self) -> Position:
        self.save()
        return dict(self.learned)


def _one(events: Events, row: int) -> Events:
    return _part(events, slice(row, row + 1))


def _part(events: Events, part: slice) -> Events:
    return Events(events.X[part], part_of(events.y, part), events.places[part], events.frame[part])


def records(source: str, places: Sequence[Any], columns: dict[str, list[Any]]) -> list[Record]:
    """One JSON object an event; a number that JSON does not have is null."""
    names = list(columns)
    return [
        Record(
            source,
            place.part.removeprefix("events/"),
            place.offset,
            json.dumps(dict(zip(names, map(plain, cells), strict=True))).encode(),
        )
        for place, cells in zip(places, zip(*columns.values(), strict=True), strict=True)
    ]


def plain(value: object) -> Any:
    """A value as JSON has it: a number that is not finite is null."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
