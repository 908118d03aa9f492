"""A KeyedFleet over shards, with the interface and results of one fleet in one process."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ... import persist
from ..._common.labels import LabelTable
from ..._common.types import Labels
from ...fleets.keyed import KeyedFleet
from ...fleets.keys import read_keys, shown_keys
from .batch import Batch, Cut, shard_of
from .driver import Driver
from .feed import Record
from .log import Position
from .shard import Tally


class ShardedFleet(Driver):
    """One learner per key, spread over shards; made by `Cluster.keyed`.

    What is learned is what one `KeyedFleet` would learn from the same batches in one process, bit for bit.
    """

    # ---- learning ----------------------------------------------------------------------------------------------------

    def partial_fit(
        self,
        keys: Any,
        X: Any,
        y: Any = None,
        sample_weight: Labels = None,
        time: Labels = None,
        classes: object = None,
        position: Position | None = None,
    ) -> Self:
        """Learn events in order of arrival. Returns once the batch is safely in the log; shards may still be at work.

        Parameters
        ----------
        keys, X, y, sample_weight, time, classes : as for `KeyedFleet.partial_fit`
        position : int or dict, optional
            The number of the batch, such as the offset in a queue: any whole numbers that increase. One after the last
            where none is given, at first 1. A batch whose number is not above the last one was learned before, and
            changes nothing. Or the place behind the batch in each partition of a broker, which a program that starts again
            reads on from: `feed.open(keyed.position_)`.
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
        position: Position | None = None,
    ) -> Any:
        """Learn as `partial_fit` does, and return the predictions made before; None for a batch that was learned already."""
        return self._learn(keys, X, y, sample_weight, time, classes, position, True)

    def forget(self, keys: Any) -> int:
        """Forget these keys; returns how many of them were known."""
        self._ready()
        self._require()
        rows = read_keys(keys, self._reader.key_kind)[1]
        known = len(set(self._texts(rows)) & set(self._texts(self._rows())))
        state = self._state
        batch = Batch(state.number + 1, rows, None, None, None, None, ((0, len(state.names)),), state.names, state.now)
        assert self._start is not None
        self._commit(batch, state._replace(number=batch.number), self._start, False, True)
        return known

    # ---- answers -----------------------------------------------------------------------------------------------------

    def decision_function(self, keys: Any, X: Any, time: Labels = None) -> Any:
        """Scores; a key that never came is scored as one that has seen nothing. Nothing is learned."""
        return self._scores(keys, X, time)

    def predict(self, keys: Any, X: Any, time: Labels = None) -> Any:
        """Predict each sample by the learner of its key: a class, a number, or -1 for an outlier and 1 for an inlier."""
        return self._reader.predictions_of(self._scores(keys, X, time), len(self._state.names))

    def _scores(self, keys: Any, X: Any, time: Any) -> Any:
        self._ready()
        self._require()
        reader, state = self._reader, self._state
        rows = read_keys(keys, reader.key_kind)[1]
        X = reader.checked_rows(X, len(rows))
        self._checks.check(rows, X)
        times = None if time is None else reader.checked_times(time, len(X))
        if times is None and self._fleet.ttl is not None:
            times = np.full(len(X), state.now)
        segments = ((0, len(state.names)),)
        batch = Batch(0, rows, X, None, None, times, segments, state.names, state.now)
        cut = Cut.of(batch, self._feed.shards)
        parts = {shard: cut.part(shard) for shard in range(self._feed.shards)}
        asked = {shard: (part.rows, part.X, part.times) for shard, part in parts.items() if len(part)}
        found = self._feed.ask(asked, "score")
        return self.shown_scores(self._gathered(cut, [[found[s]] if s in found else [] for s in parts]))

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
        return shown_keys(self._rows(), self._reader.key_kind)

    def __len__(self) -> int:
        return 0 if self._start is None else len(self.keys_)

    def __getitem__(self, key: Any) -> Any:
        """A key's learner as a plain estimator."""
        self._ready()
        self._require()
        rows = read_keys([key], self._reader.key_kind)[1]
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
        store = whole.begun_store(start)
        whole.label_table = LabelTable(state.names)
        store.core.add_classes(len(state.names))
        store.core.set_now(state.now)
        for data in self._feed.ask_all("members"):
            if data is not None:
                part = persist.from_bytes(data).store
                store.take(part, part.keys())
        return whole

    # ---- how it stands -----------------------------------------------------------------------------------------------

    @property
    def position_(self) -> Position:
        """The last batch that is safely in the log: a program that starts again continues after it.

        It is 0 before the first batch; `n_seen_` tells that from a batch with the position 0. Of batches from partitions it
        is the place in each.
        """
        return self._state.position or 0

    @property
    def n_seen_(self) -> int:
        """How many events came."""
        return self._state.events

    @property
    def classes_(self) -> Any:
        """The classes seen by any key, sorted."""
        self._require()
        return self._reader.label_table.view(len(self._state.names)).classes

    @property
    def prototype(self) -> Any:
        """The learner that each key starts with."""
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
    def member_model(self) -> Any:
        return self._fleet.member_model

    @property
    def _core_(self) -> Any:
        return self._checks

    def predictions_of(self, scores: Any, classes: int) -> Any:
        return self._reader.predictions_of(scores, classes)

    @property
    def records(self) -> list[Record]:
        """The state of each shard as the driver knows it, without a message."""
        return self._feed.records

    def tallies(self) -> list[Tally]:
        """Counters of each shard."""
        self._ready()
        return self._feed.tallies()
