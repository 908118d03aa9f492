"""One shard: a KeyedFleet, the number of its last batch, and its snapshots. Independent of Ray."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ... import persist
from ..._common.labels import LabelTable
from ...fleets.key_store import KeyStore
from ...fleets.keyed import KeyedFleet
from ...fleets.keys import KeyedEvents, Keys, Start, selected
from ...fleets.spill_file import TemporarySpill
from .batch import Batch, shard_of
from .snapshots import Snapshot, Store


class Message(NamedTuple):
    """The part of a batch for one shard, with the progress of the driver."""

    start: Start
    part: Batch
    answered: int  # the driver has the answers of batches up to here
    want: bool  # scores are wanted


@dataclasses.dataclass(frozen=True)
class Answer:
    """Result of a batch: scores by segment if requested, or the reason of its refusal."""

    scores: list[Any] | None = None
    error: str | None = None
    events: int = 0  # since the shard was started
    seconds: float = 0.0  # of learning
    saved: int = 0  # number of the newest snapshot that may be relied upon
    unsaved: str | None = None  # why a snapshot that was due could not be written


@dataclasses.dataclass(frozen=True)
class Plan:
    """Settings of a shard."""

    shard: int
    shards: int
    fleet: KeyedFleet  # that has learned nothing
    place: str | None  # of snapshots
    every: int | None  # events between snapshots; None: often enough, and about a fortieth of the time
    log: str = ""  # id of the log whose batches come


class Tally(NamedTuple):
    """Counters since the shard was started."""

    number: int
    events: int
    seconds: float  # of learning
    keys: int
    stored: int  # points
    memory_bytes: int
    saved: int  # number of the newest snapshot that may be relied upon
    snapshots: int
    snapshot_seconds: float
    process: int


class Shard:
    """Learns each batch once, in the order of the numbers, even if messages are repeated or reordered."""

    _LEAST = 100_000  # default number of samples between snapshots

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.number = 0
        self._store = None if plan.place is None else Store(plan.place, plan.log)
        self._fleet = self._empty()
        self._waiting: dict[int, Message] = {}
        self._snapshots: list[int] = []
        self._events = self._since = self._written = self._answered = 0
        self._busy = self._writing = 0.0
        self._last_cost = 0.0
        self._last_end = time.monotonic()

    def _empty(self) -> KeyedFleet:
        """An empty fleet with this shard's share of the keys in memory and its own spill file."""
        fleet = clone(self.plan.fleet)
        if fleet.spill is not None:
            fleet.max_keys = max(1, -(-fleet.max_keys // self.plan.shards))
            if not isinstance(fleet.spill, TemporarySpill):  # of which each copy is another
                fleet.spill = f"{os.fspath(fleet.spill)}.{self.plan.shards}-{self.plan.shard}"
        return fleet

    # ---- learning ----------------------------------------------------------------------------------------------------

    def receive(self, messages: list[Message]) -> dict[int, Answer]:
        """Learn the batches that are next in order and return their answers; later ones wait for the missing number."""
        for message in messages:
            self._answered = max(self._answered, message.answered)
            if message.part.number > self.number:  # else it is in the fleet
                self._waiting[message.part.number] = message
        answers: dict[int, Answer] = {}
        while (following := self._waiting.pop(self.number + 1, None)) is not None:
            # A state that may be rolled back is never written, because its number would later mean another state. That a
            # batch follows says that those before it stay.
            unsaved = self._snapshot_when_due()
            answer = self._learn(following)
            if answer.error is None:
                self.number += 1
                if following.part.sure:
                    unsaved = self._snapshot_when_due() or unsaved
            answers[following.part.number] = dataclasses.replace(answer, saved=self._saved(), unsaved=unsaved)
            if answer.error is not None:
                break
        return answers

    def _learn(self, message: Message) -> Answer:
        began = time.monotonic()
        try:
            scores = self._apply(message.start, message.part, message.want)
        except ValueError as error:
            return Answer(error=str(error))
        self._events += len(message.part)
        self._since += len(message.part)
        self._busy += time.monotonic() - began
        return Answer(scores, None, self._events, self._busy)

    def _apply(self, start: Start, part: Batch, want: bool) -> list[Any] | None:
        fleet = self._fleet
        store, table = fleet.begun_store(start), LabelTable(part.names)
        core = store.core
        scores = []
        ends = [first for first, _ in part.segments[1:]] + [len(part)]
        for (first, known), end in zip(part.segments, ends, strict=True):
            core.add_classes(known)
            span = slice(first, end)
            if part.X is None:
                if end > first:
                    fleet.forget(self._shown(part.rows[span], start))
                continue
            scored = np.zeros((0, 1))
            if end > first:
                labels, weights, times = (
                    None if c is None else c[span] for c in (part.labels, part.weights, part.times)
                )
                events = KeyedEvents(
                    start.kind, part.rows[span], part.X[span], labels, weights, times, known, table, None, None
                )
                try:
                    scored = store.learn(events, None, want)
                except ValueError as error:
                    raise ValueError(with_row(str(error), first + row_in(str(error)))) from None
            scores.append(scored)
        core.add_classes(len(part.names))
        core.set_now(part.now)
        fleet.label_table = table
        return scores if want else None

    def _shown(self, rows: Any, start: Start) -> Any:
        return [row.decode() for row in rows] if start.kind == "str" else rows

    @property
    def _kept(self) -> KeyStore | None:
        """The learners of the keys; None before the first."""
        return self._fleet.store

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def _due(self) -> bool:
        if self._store is None:
            return False
        if self.plan.every is not None:
            return self._since >= self.plan.every
        if self._since < self._LEAST:
            return False
        return time.monotonic() - self._last_end >= 40 * self._last_cost

    def _snapshot_when_due(self) -> str | None:
        """Why a snapshot that was due could not be written: the batches are in the log, so the shard continues."""
        if not self._due():
            return None
        try:
            self.snapshot()
        except Exception as error:
            self._since, self._last_end = 0, time.monotonic()  # tried again when the next snapshot is due
            return f"{type(error).__name__}: {error}"
        return None

    def snapshot(self) -> int:
        """Write a snapshot; returns its number. Snapshots that can no longer be requested are removed."""
        if self._store is None or self._kept is None:
            return self.number
        if self.number not in self._snapshots:
            began = time.monotonic()
            self._store.write(Snapshot(self.plan.shards, self.plan.shard, self.number), self._fleet.to_bytes())
            self._snapshots.append(self.number)
            self._last_end = time.monotonic()
            self._last_cost = self._last_end - began
            self._writing += self._last_cost
            self._written += 1
        self._since = 0
        for number in self._snapshots[:]:
            if number < self._saved():
                self._store.remove(Snapshot(self.plan.shards, self.plan.shard, number))
                self._snapshots.remove(number)
        return self.number

    def _saved(self) -> int:
        """The newest snapshot from which every missing answer can be recomputed."""
        return max((number for number in self._snapshots if number <= self._answered), default=0)

    def restore(self, limit: int) -> int:
        """Go back to the newest whole snapshot with a number of at most `limit`; returns its number, 0 for nothing."""
        self.number, self._fleet = 0, self._empty()
        self._waiting.clear()
        self._snapshots = []
        if self._store is None:
            return 0
        self._store.sweep(self.plan.shards, self.plan.shard)
        found = self._store.of(self.plan.shards, self.plan.shard)
        self._snapshots = [one.number for one in found if one.number <= limit]
        for one in reversed([one for one in found if one.number <= limit]):
            try:
                self._take(self._store.read(one))
            except (persist.ModelFileError, FileNotFoundError):
                self._snapshots.remove(one.number)
                continue
            self.number = one.number
            break
        return self.number

    def _take(self, saved: Any) -> None:
        """A fleet from a file, with the settings of this shard."""
        if saved.spill is not None:  # a file does not hold the routing of keys
            saved.spill = self._empty().spill
        self._fleet = saved

    def adopt(self, shards: int, number: int) -> int:
        """Take over the keys of this shard from snapshots of another number of shards, and write a snapshot."""
        if self._store is None:
            raise RuntimeError("there are no snapshots to take keys from")
        self._fleet = self._empty()
        for other in range(shards):
            self._join(self._store.read(Snapshot(shards, other, number)))
        self.number = number
        return self.snapshot()

    def _join(self, other: KeyedFleet) -> None:
        """The keys of another fleet that belong to this shard."""
        theirs = other.store
        assert theirs is not None
        store = self._fleet.begun_store(theirs.start)
        store.core.add_classes(theirs.core.classes)
        store.core.set_now(theirs.core.now)
        self._fleet.label_table = other.label_table
        rows = theirs.keys()
        store.take(theirs, selected(rows, np.flatnonzero(shard_of(rows, self.plan.shards) == self.plan.shard)))

    # ---- answers -----------------------------------------------------------------------------------------------------

    def score(self, rows: Any, X: Any, times: Any) -> Any:
        """Scores of events whose keys are here."""
        assert self._kept is not None
        return self._kept.score(rows, X, None, times)[0]

    def members(self) -> bytes | None:
        """The whole fleet as bytes; None before the first batch."""
        return None if self._kept is None else self._fleet.to_bytes()

    def member(self, key: object) -> Any:
        """One key's learner, or None."""
        try:
            return self._fleet[key]
        except KeyError:
            return None

    def keys(self) -> Keys | None:
        return None if self._kept is None else self._kept.keys()

    def tally(self) -> Tally:
        core = None if self._kept is None else self._kept.core
        keys = 0 if core is None else int(core.live)
        memory = 0 if core is None else int(core.memory_bytes)
        return Tally(
            self.number,
            self._events,
            self._busy,
            keys,
            0 if core is None else int(core.stored),
            memory,
            self._saved(),
            self._written,
            self._writing,
            os.getpid(),
        )


def row_in(message: str) -> int:
    """The row number in an error message of the core."""
    head = message.removeprefix("row ").split(":", 1)[0]
    return int(head) if head.isdigit() else 0


def with_row(message: str, row: int) -> str:
    """The same message for another row."""
    return f"row {row}:{message.split(':', 1)[1]}" if message.startswith("row ") else message
