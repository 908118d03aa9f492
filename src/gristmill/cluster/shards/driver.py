"""The driver of a fleet over shards: reads and numbers batches, writes them to the log, sends them, takes bad ones back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from ... import persist
from ..._common.labels import LabelTable
from ...fleets.keyed import KeyedFleet
from ...fleets.keys import KeyedEvents, Start
from .batch import Batch, segments_of, widened
from .feed import Feed, Refused
from .log import Log, LogError, Position, State
from .shard import Plan
from .snapshots import Store
from .workers import Lost, Workers


class Driver:
    """Numbers, checks, logs and sends the batches of a `ShardedFleet`."""

    def __init__(
        self,
        fleet: KeyedFleet,
        workers: Workers,
        shards: int,
        place: str | None = None,
        log: Log | None = None,
        every: int | None = None,
        tick: Callable[[Any], None] | None = None,
    ) -> None:
        refuse(fleet)
        self._fleet, self._workers, self._place, self._log = fleet, workers, place, log
        self._new_reader()
        self._every, self._tick = every, tick
        self._state = State()
        self._broken: str | None = None
        self._closed = False
        self._writer = ThreadPoolExecutor(1, "gristmill-log")
        try:
            if log is not None:
                _same_fleet(log, fleet)
                _same_history(log, place)
                if (log.shards or shards) != shards:
                    self._reshard(log, int(log.shards or shards), shards)
                log.set_meta("shards", str(shards))
            self._open(shards)
        except BaseException:
            self._writer.shutdown()
            if log is not None:
                log.abandon()  # else it would be in use as long as this process lives
            raise

    # ---- coming up ---------------------------------------------------------------------------------------------------

    def _new_reader(self) -> None:
        """A fleet that checks batches and knows the labels; it learns nothing."""
        self._reader = clone(self._fleet)
        self._reader.max_keys = self._reader.spill = None
        self._checks: Any = None  # its core
        self._start: Start | None = None

    def _plans(self, shards: int) -> list[Plan]:
        log = "" if self._log is None else self._log.id
        return [Plan(shard, shards, self._fleet, self._place, self._every, log) for shard in range(shards)]

    def _open(self, shards: int) -> None:
        self._feed = Feed(self._workers, self._plans(shards), self._log)
        while True:
            self._resume()
            try:
                self._feed.open(self._start, self._state.number)
                return
            except Refused as refused:  # the last program died before the refusal arrived
                self._drop(refused.number)

    def _resume(self) -> None:
        """Stream position recorded in the log."""
        start = None
        if self._log is not None:
            self._state, start = self._log.state, self._log.start
        self._start = start
        if start is not None:
            self.begin_core(start)

    def begin_core(self, start: Start) -> None:
        reader = self._reader
        self._checks = reader.begun_store(start).core
        reader.label_table = LabelTable(self._state.names)
        self._checks.add_classes(len(self._state.names))
        self._start = start

    def _drop(self, number: int) -> None:
        """Remove a batch that shards refused from the log."""
        if self._log is None:
            self._broken = (
                f"batch {number} was refused in the middle, and without snapshots it cannot be taken back; "
                "give Cluster(snapshots=...)"
            )
            return
        if number != self._log.state.number:
            raise LogError(f"{self._log.path}: batch {number} cannot be learned, and there are later ones")
        self._log.drop_last(number)

    def _reshard(self, log: Log, old: int, new: int) -> None:
        """Move every key to its shard among `new` ones, by snapshots of the old shards after the same batch."""
        self._open(old)
        self._feed.ask_all("snapshot")
        self._feed.stop()
        if self._start is not None:
            number = self._state.number
            feed = Feed(self._workers, self._plans(new), log)
            feed.start, feed.number = self._start, 0
            for plan in feed.plans:
                self._workers.start(plan)
            feed.ask_all("adopt", old, number)
            feed.stop()
        log.set_meta("shards", str(new))
        store = Store(self._place, log.id)
        for left in store.all():
            if left.shards != new:
                store.remove(left)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def _learn(
        self, keys: Any, X: Any, y: Any, weights: Any, time: object, classes: Any, position: Position | None, want: bool
    ) -> Any:
        self._ready()
        number = self._number_of(position)
        if number is None:
            return None
        events = self._reader.checked_events(keys, X, y, weights, time, classes)
        start = self._start or Start(
            events.kind, events.X.shape[1], events.X.dtype.name, self._reader.drawn_seed(), time is not None
        )
        core = self._checks
        if self._start is None:
            core = self._reader.new_store(self._reader.checked_parts(), start).core
        core.check(events.rows, events.X)
        sure = not core.may_fail(events.rows, events.X, events.weights)
        batch, state = self._numbered(events, number, sure)
        return self._commit(batch, state, start, want, sure)

    def _number_of(self, position: Position | None) -> Position | None:
        """The position of a batch, or None where it was learned before."""
        last = self._state.position
        if isinstance(position, dict):
            return self._places_of(position, last)
        if isinstance(last, dict):
            raise ValueError(f"position must give the offset in each partition, as earlier ones did, got {position!r}")
        if position is None:
            return (last or 0) + 1
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise TypeError(f"position must be a whole number, the number of the batch, got {position!r}")
        return int(position) if last is None or position > last else None

    def _places_of(self, position: dict[str, int | str], last: Position | None) -> Position | None:
        """Places in partitions, which only the reader of their broker can compare; None for those of the last batch."""
        for partition, place in position.items():
            if type(partition) is not str or type(place) not in (int, str):
                raise TypeError(f"position must map names of partitions to whole numbers or texts, got {position!r}")
        if last is not None and not isinstance(last, dict):
            raise ValueError(f"position must be a whole number above {last}, as those before were, got {position!r}")
        return None if position == last else dict(position)

    def _numbered(self, events: KeyedEvents, position: Position, sure: bool) -> tuple[Batch, State]:
        state = self._state
        count = len(events.X)
        times = events.times
        if times is None and self._fleet.ttl is not None:
            times = np.arange(1, count + 1, dtype=np.float64) + state.now
        elif times is not None:  # time does not run backwards, whichever shard an event goes to
            times = np.maximum(np.maximum.accumulate(times), state.now if state.events else -np.inf)
        now = float(times[-1]) if times is not None else state.now + count
        names = events.table.names
        segments = segments_of(events.labels if names else None, len(state.names), events.known)
        batch = Batch(
            state.number + 1, events.rows, events.X, events.labels, events.weights, times, segments, names, now, sure
        )
        return batch, State(batch.number, position, state.events + count, now, names)

    def _commit(self, batch: Batch, state: State, start: Start, want: bool, sure: bool) -> Any:
        cut = None if self._log is None else self._logged(self._log, batch, state, start)
        before = self._state
        self._state = state
        self.begin_core(start)
        self._feed.start = start
        try:
            pending = self._feed.send(batch, want, cut)
            if want or not sure:
                self._feed.drain()
        except Refused as refused:
            self._refuse(refused, before)
        self._after()
        if not want:
            return None
        scores = [pending.answers[shard].scores or [] for shard in range(self._feed.shards)]
        return self.shown_scores(self._gathered(pending.cut, scores))

    def _logged(self, log: Log, batch: Batch, state: State, start: Start) -> Any:
        """Append a batch to the log; while the disk writes, the batch is cut and earlier ones are sent."""
        writing = self._writer.submit(log.append, batch, state, start if self._start is None else None)
        try:
            cut = self._feed.cut(batch)
            self._feed.advance()
            writing.result()
        except BaseException:
            wait([writing])  # an interrupt must not leave it half written; what is in the log is sent later
            raise
        return cut

    def _refuse(self, refused: Refused, before: State) -> None:
        """Roll every shard back after a bad batch and raise the error of a single fleet."""
        self._drop(refused.number)
        if self._log is not None:
            self._state = before
            self._reader.label_table = LabelTable(before.names)
            if before.number == 0:  # nothing is settled by a batch that was refused
                self._new_reader()
            self._feed.go_back(before.number)
        raise ValueError(str(refused)) from None

    def _gathered(self, cut: Any, scores: list[list[Any]]) -> Any:
        """Scores of all shards in the order of the batch, with the classes known after its last event."""
        outputs = max(2, len(cut.batch.names))
        outputs = outputs if outputs > 2 else 1
        out = np.empty((len(cut.batch), outputs))
        for shard, parts in enumerate(scores):
            filled = [widened(part, outputs) for part in parts if len(part)]
            if filled:
                out[cut.places(shard)] = np.concatenate(filled)
        return out

    def shown_scores(self, scores: Any) -> Any:
        return self._reader.shown_scores(scores, len(self._state.names))

    def _ready(self) -> None:
        """Complete what an interrupt left undone."""
        if self._closed:
            raise RuntimeError("the cluster is closed")
        if self._broken:
            raise RuntimeError(self._broken)
        if self._log is None:
            if self._feed.number != self._state.number:
                self._broken = "an interrupt came in the middle of a batch, and without snapshots its state is unknown"
                raise RuntimeError(self._broken)
        elif self._feed.number != self._log.state.number:
            self._resume()
            self._feed.start = self._start
            for batch in self._log.read(self._feed.number, self._state.number):
                self._feed.send(batch, False)

    def _after(self) -> None:
        if self._log is not None and self._feed.saved > self._pruned:
            self._pruned = self._feed.saved
            self._log.prune(self._pruned)
        while self._feed.unsaved:
            shard, why = self._feed.unsaved.popitem()
            warnings.warn(
                f"shard {shard} could not write a snapshot ({why}); its batches are safe in the log, and it will try again",
                RuntimeWarning,
                stacklevel=4,
            )
        if self._tick is not None:
            self._tick(self)

    _pruned = 0

    # ---- the end -----------------------------------------------------------------------------------------------------

    def flush(self) -> Self:
        """Wait until every shard has learned every batch."""
        self._ready()
        self._feed.drain()
        self._after()
        return self

    def snapshot(self) -> Self:
        """Have every shard write its state now."""
        self.flush()
        self._feed.ask_all("snapshot")
        return self

    def close(self) -> None:
        """Learn pending batches, write snapshots and stop the shards."""
        if self._closed:
            return
        try:
            if self._broken is None:
                self.flush()
                self._last_snapshots()
        finally:
            self._closed = True
            self._feed.stop()
            self._writer.shutdown()
            if self._log is not None:
                self._log.close()

    def _last_snapshots(self) -> None:
        """Write snapshots before the shards stop; a snapshot that fails loses nothing, because the log has the batches."""
        try:
            self._feed.ask_all("snapshot")
        except Lost:
            raise
        except Exception as error:
            if self._log is None:
                raise
            cause = getattr(error, "cause", error)  # without the words of Ray around it
            warnings.warn(
                f"the last snapshots could not be written ({type(cause).__name__}: {cause}); all batches are safe in "
                f"{self._log.path}, and the next program learns from there",
                RuntimeWarning,
                stacklevel=3,
            )


def refuse(fleet: object) -> None:
    """Refuse parameters whose results would differ between several machines and one."""
    if not isinstance(fleet, KeyedFleet):
        raise TypeError(f"keyed takes a KeyedFleet, got {fleet!r}")
    if fleet.center:
        raise ValueError(
            "a cluster cannot run center=True: the level of a new key is the mean of all targets, in order; use center=False"
        )
    if fleet.prior is not None:
        raise ValueError(
            "a cluster cannot run prior=: one learner of all events would have to see them all, in order; use prior=None"
        )
    if fleet.max_keys is not None and fleet.spill is None:
        raise ValueError(
            "a cluster cannot run max_keys without spill: which keys are dropped would depend on the number of shards; "
            "give spill= too, or omit max_keys"
        )
    if fleet.__sklearn_is_fitted__():
        raise ValueError("a cluster takes a KeyedFleet that has not learned yet; give it one that is new")
    fleet.checked_parts()


def _same_history(log: Log, place: str | None) -> None:
    """Refuse snapshots of another log, and those with later batches than the log."""
    if place is None:
        return
    store = Store(place, log.id)
    if foreign := store.foreign():
        raise LogError(
            f"{place} holds snapshots of another log than {log.path}, such as {foreign[0]}: bring that log back, use "
            "another folder, or remove these snapshots to start again"
        )
    newest = max((found.number for found in store.all()), default=0)
    if newest > log.state.number:
        raise LogError(
            f"{log.path} ends at batch {log.state.number}, and a snapshot holds batch {newest}: the log has lost batches"
        )


def _same_fleet(log: Log, fleet: KeyedFleet) -> None:
    """Refuse a log that was written by a fleet with other parameters."""
    parameters = {name: value for name, value in fleet.get_params(deep=False).items() if name != "spill"}
    text = {name: json.dumps(persist.encode(value, name)) for name, value in parameters.items()}
    kept = log.meta("fleet")
    if kept is None:
        log.set_meta("fleet", json.dumps(text))
        return
    for name, value in json.loads(kept).items():
        if text.get(name) != value:
            raise LogError(
                f"{log.path} belongs to a fleet with {name}={value}, got {text.get(name)}; use another folder for snapshots"
            )
