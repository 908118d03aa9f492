"""A KeyedFleet over shards: the driver reads and numbers batches, writes them to the log, and sends them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .. import persist
from .._keys import KeyedEvents, read_keys, shown_keys
from .._labels import LabelTable
from ..keyed import KeyedFleet
from .batch import Batch, Cut, Start, segments_of, shard_of, widened
from .feed import Feed, Record, Refused
from .log import Log, LogError, State
from .shard import Plan, Tally, copy_members
from .snapshots import Store
from .workers import Workers


class ShardedFleet:
    """A learner a key, spread over shards; made by `Cluster.keyed`.

    What is learned is what one `KeyedFleet` would learn from the same batches in one process, bit for bit.
    """

    def __init__(
        self,
        fleet: KeyedFleet,
        workers: Workers,
        shards: int,
        place: str | None = None,
        log: Log | None = None,
        every: int | None = None,
        tick: Callable[[ShardedFleet], None] | None = None,
    ) -> None:
        refuse(fleet)
        self._reader = clone(fleet)  # checks batches and knows the labels; learns nothing
        self._reader.max_keys = self._reader.spill = None
        self._fleet, self._workers, self._place, self._log = fleet, workers, place, log
        self._every, self._tick = every, tick
        self._state = State()
        self._broken: str | None = None
        self._closed = False
        if log is not None:
            _same_fleet(log, fleet)
            if (log.shards or shards) != shards:
                self._reshard(log, int(log.shards or shards), shards)
            log.say("shards", str(shards))
        self._open(shards)

    # ---- coming up ---------------------------------------------------------------------------------------------------

    def _plans(self, shards: int) -> list[Plan]:
        return [Plan(shard, shards, self._fleet, self._place, self._every) for shard in range(shards)]

    def _open(self, shards: int) -> None:
        self._feed = Feed(self._workers, self._plans(shards), self._log)
        while True:
            self._resume()
            try:
                self._feed.open(self._start, self._state.number)
                return
            except Refused as refused:  # the last program died before it heard of that
                self._drop(refused.number)

    def _resume(self) -> None:
        """Where the log says that the stream stands."""
        start = None
        if self._log is not None:
            self._state, start = self._log.state, self._log.start
        self._start = start
        if start is not None:
            self._begin(start)

    def _begin(self, start: Start) -> None:
        reader = self._reader
        if reader._core_ is None:
            core = reader._begin(reader._parts(), start.width, np.dtype(start.dtype), start.seed, start.kind)
            reader._core_, reader._first_seed, reader._kind, reader._timed = core, start.seed, start.kind, start.timed
            reader.n_features_in_ = start.width
        reader._table = LabelTable(self._state.names)
        reader._core_.meet(len(self._state.names))
        self._start = start

    def _drop(self, number: int) -> None:
        """Take a batch out of the log that shards refused."""
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
        """Move every key to the shard it has among `new`: by snapshots of the old ones, all after the same batch."""
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
        log.say("shards", str(new))
        store = Store(self._place)
        for left in store.all():
            if left.shards != new:
                store.remove(left)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def partial_fit(
        self,
        keys: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        time: Any = None,
        classes: Any = None,
        position: int | None = None,
    ) -> Self:
        """Learn events in order of arrival. Returns once the batch is safely in the log; shards may still be at work.

        Parameters
        ----------
        keys, X, y, sample_weight, time, classes : as for `KeyedFleet.partial_fit`
        position : int, optional
            The number of the batch, such as the offset in a queue; one after the last where none is given. A batch whose
            number is not above `position_` was learned before, and changes nothing.
        """
        self._learn(keys, X, y, sample_weight, time, classes, position, False)
        return self

    def prequential(
        self,
        keys: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        time: Any = None,
        classes: Any = None,
        position: int | None = None,
    ) -> Any:
        """Learn as `partial_fit` does, and return what was said of each event before; None for a batch learned before."""
        return self._learn(keys, X, y, sample_weight, time, classes, position, True)

    def _learn(
        self, keys: Any, X: Any, y: Any, weights: Any, time: Any, classes: Any, position: int | None, want: bool
    ) -> Any:
        self._ready()
        number = self._number_of(position)
        if number is None:
            return None
        events = self._reader._events(keys, X, y, weights, time, classes)
        start = self._start or Start(
            events.kind, events.X.shape[1], events.X.dtype.name, self._reader._seed(), time is not None
        )
        if self._start is None:
            core = self._reader._begin(
                self._reader._parts(), start.width, np.dtype(start.dtype), start.seed, start.kind
            )
        else:
            core = self._reader._core_
        core.check(events.rows, events.X)
        sure = not core.may_fail(events.rows, events.X, events.weights)
        batch, state = self._numbered(events, number, sure)
        return self._commit(batch, state, start, want, sure)

    def _number_of(self, position: int | None) -> int | None:
        """The position of a batch, or None where it was learned before."""
        if position is None:
            return self._state.position + 1
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise TypeError(f"position must be a whole number, the number of the batch, got {position!r}")
        return None if position <= self._state.position else int(position)

    def _numbered(self, events: KeyedEvents, position: int, sure: bool) -> tuple[Batch, State]:
        state = self._state
        count = len(events.X)
        times = events.times
        if times is None and self._fleet.ttl is not None:
            times = np.arange(1, count + 1, dtype=np.float64) + state.now
        now = float(events.times[-1]) if events.times is not None else state.now + count
        names = events.table.names
        segments = segments_of(events.labels if names else None, len(state.names), events.known)
        batch = Batch(
            state.number + 1, events.rows, events.X, events.labels, events.weights, times, segments, names, now, sure
        )
        return batch, State(batch.number, position, state.events + count, now, names)

    def _commit(self, batch: Batch, state: State, start: Start, want: bool, sure: bool) -> Any:
        if self._log is not None:
            self._log.append(batch, state, start if self._start is None else None)
        before = self._state
        self._state = state
        self._begin(start)
        self._feed.start = start
        try:
            pending = self._feed.send(batch, want)
            if want or not sure:
                self._feed.drain()
        except Refused as refused:
            self._refuse(refused, before)
        self._after()
        if not want:
            return None
        scores = [pending.answers[shard].scores or [] for shard in range(self._feed.shards)]
        return self._shown(self._gathered(pending.cut, scores))

    def _refuse(self, refused: Refused, before: State) -> None:
        """A bad batch changes nothing: every shard goes back, and the error is the one that a single fleet gives."""
        self._drop(refused.number)
        if self._log is not None:
            self._state = before
            self._reader._table = LabelTable(before.names)
            if before.number == 0:  # nothing is settled by a batch that was refused
                self._reader._core_ = self._reader._kind = self._reader._timed = self._start = None
            self._feed.go_back(before.number)
        raise ValueError(str(refused)) from None

    def _gathered(self, cut: Any, scores: list[list[Any]]) -> Any:
        """Scores of all shards in the order of the batch, as wide as they are after its last event."""
        outputs = max(2, len(cut.batch.names))
        outputs = outputs if outputs > 2 else 1
        out = np.empty((len(cut.batch), outputs))
        for shard, parts in enumerate(scores):
            filled = [widened(part, outputs) for part in parts if len(part)]
            if filled:
                out[cut.places(shard)] = np.concatenate(filled)
        return out

    def _shown(self, scores: Any) -> Any:
        return self._reader._shown(scores, len(self._state.names))

    def _ready(self) -> None:
        """What an interrupt left undone is done first."""
        if self._closed:
            raise RuntimeError("the cluster is closed")
        if self._broken:
            raise RuntimeError(self._broken)
        if self._log is None:
            if self._feed.number != self._state.number:
                self._broken = (
                    "an interrupt came in the middle of a batch, and without snapshots nothing tells what is in it"
                )
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
        if self._tick is not None:
            self._tick(self)

    _pruned = 0

    def forget(self, keys: Any) -> int:
        """Let go of these keys; returns how many of them were known."""
        self._ready()
        self._require()
        rows = read_keys(keys, self._reader._kind)[1]
        known = len(set(self._texts(rows)) & set(self._texts(self._rows())))
        state = self._state
        batch = Batch(state.number + 1, rows, None, None, None, None, ((0, len(state.names)),), state.names, state.now)
        assert self._start is not None
        self._commit(batch, state._replace(number=batch.number), self._start, False, True)
        return known

    # ---- answers -----------------------------------------------------------------------------------------------------

    def decision_function(self, keys: Any, X: Any, time: Any = None) -> Any:
        """Scores; a key that never came is scored as one that has seen nothing. Nothing is learned."""
        return self._scores(keys, X, time)

    def predict(self, keys: Any, X: Any, time: Any = None) -> Any:
        """What each event's own learner says: a class, a number, or -1 for an alarm and 1 for none."""
        return self._reader._answers(self._scores(keys, X, time), len(self._state.names))

    def _scores(self, keys: Any, X: Any, time: Any) -> Any:
        self._ready()
        self._require()
        reader, state = self._reader, self._state
        rows = read_keys(keys, reader._kind)[1]
        X = reader._table_of(X, len(rows))
        reader._core_.check(rows, X)
        times = None if time is None else reader._times(time, len(X))
        if times is None and self._fleet.ttl is not None:
            times = np.full(len(X), state.now)
        segments = ((0, len(state.names)),)
        batch = Batch(0, rows, X, None, None, times, segments, state.names, state.now)
        cut = Cut.of(batch, self._feed.shards)
        parts = {shard: cut.part(shard) for shard in range(self._feed.shards)}
        asked = {shard: (part.rows, part.X, part.times) for shard, part in parts.items() if len(part)}
        found = self._feed.ask(asked, "score")
        return self._shown(self._gathered(cut, [[found[s]] if s in found else [] for s in parts]))

    # ---- keys --------------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        if self._start is None:
            raise NotFittedError("This fleet has not learned anything yet")

    def _rows(self) -> Any:
        """Keys of all shards as cores take them."""
        found = [rows for rows in self._feed.ask_all("keys") if rows is not None and len(rows)]
        if not found:
            return []
        return np.concatenate(found) if isinstance(found[0], np.ndarray) else [row for rows in found for row in rows]

    def _texts(self, rows: Any) -> list[Any]:
        return rows.tolist() if isinstance(rows, np.ndarray) else list(rows)

    @property
    def keys_(self) -> Any:
        """Every key that is known."""
        self._ready()
        self._require()
        return shown_keys(self._rows(), self._reader._kind)

    def __len__(self) -> int:
        return 0 if self._start is None else len(self.keys_)

    def __getitem__(self, key: Any) -> Any:
        """A key's learner as a plain estimator."""
        self._ready()
        self._require()
        rows = read_keys([key], self._reader._kind)[1]
        shard = int(shard_of(rows, self._feed.shards)[0])
        model = self._feed.ask({shard: (key,)}, "member")[shard]
        if model is None:
            raise KeyError(key)
        return model

    def collect(self) -> KeyedFleet:
        """All keys as one KeyedFleet in this process."""
        self._ready()
        self._require()
        start, state = self._start, self._state
        assert start is not None
        whole = clone(self._fleet)
        whole._core_ = whole._begin(whole._parts(), start.width, np.dtype(start.dtype), start.seed, start.kind)
        whole._first_seed, whole._kind, whole._timed = start.seed, start.kind, start.timed
        whole.n_features_in_, whole._table = start.width, LabelTable(state.names)
        whole._core_.meet(len(state.names))
        for data in self._feed.ask_all("members"):
            if data is not None:
                part = persist.from_bytes(data)
                keys = part._all_keys()
                copy_members(part, whole, read_keys(keys, start.kind)[1] if len(keys) else keys)
        whole._core_.set_now(state.now)
        return whole

    # ---- how it stands -----------------------------------------------------------------------------------------------

    @property
    def position_(self) -> int:
        """The last batch that is safely in the log: a program that starts again goes on after it."""
        return self._state.position

    @property
    def n_seen_(self) -> int:
        """How many events came."""
        return self._state.events

    @property
    def classes_(self) -> Any:
        """The classes that any key has met, sorted."""
        self._require()
        return self._reader._table.view(len(self._state.names)).classes

    @property
    def prototype(self) -> Any:
        """What each key has."""
        return self._fleet.prototype

    @property
    def n_stored_(self) -> int:
        """How many points all keys in memory have stored together."""
        return sum(tally.stored for tally in self.tallies())

    @property
    def memory_bytes_(self) -> int:
        """Bytes that the keys of all shards keep."""
        return sum(tally.memory_bytes for tally in self.tallies())

    def save(self, path: Any) -> None:
        """Write all keys to one file, as a KeyedFleet; see `gristmill.load`."""
        whole = self.collect()
        for name in ("columns_", "key_column_"):
            if hasattr(self, name):
                setattr(whole, name, getattr(self, name))
        whole.save(path)

    # What a run along a stream asks of a fleet (evaluate.keyed).

    @property
    def _model(self) -> Any:
        return self._fleet._model

    @property
    def _core_(self) -> Any:
        return self._reader._core_

    def _answers(self, scores: Any, classes: int) -> Any:
        return self._reader._answers(scores, classes)

    @property
    def records(self) -> list[Record]:
        """What is known of each shard without asking it."""
        return self._feed.records

    def tallies(self) -> list[Tally]:
        """What each shard has done."""
        self._ready()
        return self._feed.tallies()

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
        """Learn what is on the way, write snapshots, and let the shards go."""
        if self._closed:
            return
        try:
            if self._broken is None:
                self.snapshot()
        finally:
            self._closed = True
            self._feed.stop()
            if self._log is not None:
                self._log.close()


def refuse(fleet: Any) -> None:
    """What would not be the same on several machines as on one is refused by name."""
    if not isinstance(fleet, KeyedFleet):
        raise TypeError(f"keyed takes a KeyedFleet, got {fleet!r}")
    if fleet.prior is not None:
        raise ValueError(
            "a cluster cannot run prior=: one learner of all events would have to see them all, in order; use prior=None"
        )
    if fleet.max_keys is not None and fleet.spill is None:
        raise ValueError(
            "a cluster cannot run max_keys without spill: which keys go away would depend on the number of shards; "
            "give spill= too, or leave max_keys out"
        )
    if fleet._core_ is not None:
        raise ValueError("a cluster takes a KeyedFleet that has not learned yet; give it one that is new")
    fleet._parts()


def _same_fleet(log: Log, fleet: KeyedFleet) -> None:
    """A log is of one fleet; another one is refused, naming what differs."""
    said = {name: value for name, value in fleet.get_params(deep=False).items() if name != "spill"}
    text = {name: json.dumps(persist.encode(value, name)) for name, value in said.items()}
    kept = log.said("fleet")
    if kept is None:
        log.say("fleet", json.dumps(text))
        return
    for name, value in json.loads(kept).items():
        if text.get(name) != value:
            raise LogError(
                f"{log.path} belongs to a fleet with {name}={value}, got {text.get(name)}; use another folder for snapshots"
            )
