"""Labels that come on another topic: a reader of events and one of labels, joined by an id.

An event is predicted when it comes and waits on disk. It is learned when its label comes, in the order of the labels. A
label that comes before its event waits, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..._common.types import Json
from .contract import BrokerAway, Message, Position, Reader
from .decode import Decoder
from .url import Url
from .waiting import Waiting

EVENTS, LABELS = "events", "labels"
_COUNT = ""  # beside the partitions: messages so far, and the newest timestamp among them


class Pair(Reader):
    """Two readers as one, whose partitions are called `events/...` and `labels/...`.

    Parameters
    ----------
    events, labels : Reader
    """

    def __init__(self, events: Reader, labels: Reader) -> None:
        self.url = events.url
        self.parts = {EVENTS: events, LABELS: labels}
        windows = [reader.window for reader in self.parts.values() if reader.window is not None]
        self.window = min(windows, default=None)
        self.idle = max(float(getattr(reader, "idle", 0.0)) for reader in self.parts.values())

    def open(self, position: Position | None) -> None:
        for name, reader in self.parts.items():
            reader.open(None if position is None else _within(position, name) or None)

    def start(self) -> Position:
        return {f"{n}/{p}": place for n, reader in self.parts.items() for p, place in reader.start().items()}

    def poll(self, most: int, wait: float) -> list[Message]:
        """Events first: a label seldom comes before its event."""
        found = self._poll(EVENTS, max(1, most // 2), wait / 2)
        try:
            return found + self._poll(LABELS, max(1, most - len(found)), 0.0 if found else wait / 2)
        except BrokerAway:
            if not found:
                raise
            return found  # the next call tells it

    def _poll(self, name: str, most: int, wait: float) -> list[Message]:
        messages = self.parts[name].poll(most, wait)
        return [message._replace(partition=f"{name}/{message.partition}") for message in messages]

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        for name, reader in self.parts.items():
            mine = [
                message._replace(partition=message.partition.partition("/")[2])
                for message in messages
                if message.partition.startswith(f"{name}/")
            ]
            after = reader.advanced(_within(position, name), mine)
            position = position | {f"{name}/{p}": place for p, place in after.items()}
        return position

    def ends(self) -> Position | None:
        ends = {name: reader.ends() for name, reader in self.parts.items()}
        if any(found is None for found in ends.values()):
            return None
        return {f"{n}/{p}": place for n, found in ends.items() for p, place in (found or {}).items()}

    def reached(self, position: Position, ends: Position) -> bool:
        return all(reader.reached(_within(position, n), _within(ends, n)) for n, reader in self.parts.items())

    def behind(self, position: Position) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, reader in self.parts.items():
            for unit, value in reader.behind(_within(position, name)).items():
                found[unit] = found.get(unit, 0.0) + value if unit == "messages" else max(found.get(unit, 0.0), value)
        return found

    def acknowledge(self, position: Position) -> None:
        for name, reader in self.parts.items():
            reader.acknowledge(_within(position, name))

    def close(self) -> None:
        for reader in self.parts.values():
            reader.close()


def _within(position: Position, name: str) -> Position:
    """The part of a position that belongs to one of the two."""
    head = f"{name}/"
    return {p.removeprefix(head): place for p, place in position.items() if p.startswith(head)}


class Joined(Reader):
    """Events and labels, joined: each message is to be predicted, to be learned, to be kept, or bad.

    Parameters
    ----------
    inner : Reader
        A `Pair`, or a recorded order of one.
    labels : Url
        Of the labels.
    column : str
        The id, in both.
    target : str
        The column of the label.
    wait : float
        Seconds by the timestamps of the messages for which an event waits for its label, and a label for its event.
    waiting : Waiting
    format : str, optional
        Of the events; by their URL otherwise.
    """

    def __init__(
        self,
        inner: Reader,
        labels: Url,
        column: str,
        target: str,
        wait: float,
        waiting: Waiting,
        format: str | None = None,
    ) -> None:
        self.url, self.inner, self.window = inner.url, inner, inner.window
        self.idle = float(getattr(inner, "idle", 0.0))
        self.expired = 0  #: events that left before their label came
        self._column, self._target, self._wait, self._waiting = column, target, wait, waiting
        self._decoders = {EVENTS: Decoder(inner.url, format, {column}), LABELS: Decoder(labels, keep={column})}
        self._number, self._clock = 0, 0.0
        self._brought: dict[tuple[str, Any], int] = {}  # events since the last saving -> their numbers

    @property
    def waits(self) -> int:
        """Events that wait for a label."""
        return self._waiting.count

    def open(self, position: Position | None) -> None:
        known = dict(position or {})
        count = known.pop(_COUNT, {"count": 0, "clock": 0.0})
        self.inner.open(known or None)
        self._number, self._clock = int(count["count"]), float(count["clock"])
        self._waiting.back(self._number)
        self._brought = {}

    def start(self) -> Position:
        return {_COUNT: {"count": self._number, "clock": self._clock}} | self.inner.start()

    def poll(self, most: int, wait: float) -> list[Message]:
        return [self._joined(message) for message in self.inner.poll(most, wait)]

    def _joined(self, message: Message) -> Message:
        self._number += 1
        self._clock = max(self._clock, message.timestamp or 0.0)
        name = message.partition.partition("/")[0]
        try:
            row = self._decoders[name].row(message)
            id_ = row.get(self._column)
            if id_ is None or id_ == "":
                raise ValueError(f"column {self._column!r}: the id is missing")
            if name == LABELS and row.get(self._target) is None:
                raise ValueError(f"column {self._target!r}: the label is missing")
            json.dumps(row)
        except (ValueError, TypeError, RecursionError) as error:
            return message._replace(role="bad", outcome=str(error))
        now, oldest = message.timestamp or self._clock, self._clock - self._wait
        other = self._waiting.take(self._number, EVENTS[:-1] if name == LABELS else LABELS[:-1], str(id_), oldest)
        if other is None:
            kept = row if name == EVENTS else {self._target: row[self._target]}
            self.expired += self._waiting.put(self._number, name[:-1], str(id_), now, kept)
            if name == EVENTS:
                self._brought[message.partition, message.offset] = self._number
            return message._replace(value=_json(row), role="predict" if name == EVENTS else "keep")
        event, label = (other.row, row) if name == LABELS else (row, other.row)
        return message._replace(value=_json({**event, self._target: label[self._target]}), outcome=other.outcome)

    def scored(self, partition: str, offset: float, score: object) -> None:
        """Keep the score of an event that waits."""
        number = self._brought.get((partition, offset))
        if number is not None:
            self._waiting.note(number, score)

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        count = dict(position.get(_COUNT, {"count": 0, "clock": 0.0}))
        count["count"] += len(messages)
        count["clock"] = max([count["clock"], *(message.timestamp or 0.0 for message in messages)])
        bare = {p: place for p, place in position.items() if p != _COUNT}
        return self.inner.advanced(bare, messages) | {_COUNT: count}

    def ends(self) -> Position | None:
        return self.inner.ends()

    def reached(self, position: Position, ends: Position) -> bool:
        return self.inner.reached(position, ends)

    def behind(self, position: Position) -> dict[str, float]:
        return self.inner.behind(position)

    def prepare(self) -> None:
        self._waiting.sync()

    def acknowledge(self, position: Position) -> None:
        self.inner.acknowledge(position)
        count = position.get(_COUNT)
        if count is not None:
            self.expired += self._waiting.purge(int(count["count"]), float(count["clock"]) - self._wait)
            self._brought = {}

    def close(self) -> None:
        self.inner.close()
        self._waiting.close()


def _json(row: Json) -> bytes:
    return json.dumps(row).encode()
