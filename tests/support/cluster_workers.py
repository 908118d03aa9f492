"""Shards in this process, which can be killed at any moment; messages can come twice, late, or in another order.

And the fleets, streams and digests that tests of the cluster share.
"""

from __future__ import annotations

import contextlib
import copy
import zlib
from typing import Any

import numpy as np
from sklearn.base import clone

from gristmill import (
    SGD,
    DropOldest,
    DropRandom,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Prepared,
    Squared,
    norma_novelty,
)
from gristmill.cluster.shards.log import Log
from gristmill.cluster.shards.shard import Plan, Shard
from gristmill.cluster.shards.sharded_fleet import ShardedFleet
from gristmill.cluster.shards.workers import Lost


class Killed(BaseException):
    """Comes out of a shard, or of the driver, where it is killed: nothing after that line runs."""


class LocalWorkers:
    """Answers are computed when they are waited for, so that a kill may come between sending and learning."""

    def __init__(self, rng: Any = None, kill: float = 0.0, muddle: float = 0.0) -> None:
        self.rng = rng or np.random.default_rng(0)
        self.kill, self.muddle = kill, muddle
        self.shards: dict[int, Shard] = {}
        self.queues: dict[int, list[tuple[int, str, tuple[Any, ...]]]] = {}
        self.answers: dict[int, Any] = {}
        self.tickets = self.kills = self.deaths = 0

    def start(self, plan: Plan) -> None:
        self.shards[plan.shard] = Shard(copy.deepcopy(plan))
        self.queues[plan.shard] = []

    def end(self, shard: int) -> None:
        """Kill -9."""
        self.shards.pop(shard, None)
        self.queues[shard] = []
        self.kills += 1

    stop = end

    def ready(self, shard: int, ticket: int) -> bool:
        return bool(self.rng.random() < 0.5)

    def submit(self, shard: int, method: str, *arguments: Any) -> int:
        self.tickets += 1
        self.queues[shard].append((self.tickets, method, arguments))
        return self.tickets

    def result(self, shard: int, ticket: int) -> Any:
        if shard in self.shards and self.rng.random() < self.kill:
            self._work(shard, upto=int(self.rng.integers(0, len(self.queues[shard]) + 1)))
            self.end(shard)
        if shard not in self.shards:
            raise Lost(shard)
        self._work(shard, None)
        if ticket not in self.answers:
            raise Lost(shard)
        return self.answers.pop(ticket)

    def _work(self, shard: int, upto: int | None) -> None:
        """What is in the queue, some of it twice or before its turn."""
        queue, self.queues[shard] = self.queues[shard], []
        if self.muddle and all(method == "receive" for _, method, _ in queue) and len(queue) > 1:
            twice = [item for item in queue if self.rng.random() < self.muddle]
            queue = [(queue + twice)[i] for i in self.rng.permutation(len(queue) + len(twice))]
        for ticket, method, arguments in queue[:upto]:
            try:
                answer = getattr(self.shards[shard], method)(*arguments)
            except Killed:
                self.deaths += 1
                self.end(shard)
                return
            if method == "receive" and self.muddle:
                answer = {**self.answers.get(ticket, {}), **answer}
            self.answers[ticket] = answer


NOVELTY = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=6))
CLASSES = KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropRandom(5)))  # random_state=None: a seed a key
NUMBERS = KeyedFleet(KernelRegressor(Gaussian(0.5), budget=DropOldest(5)))
CASES = {
    "novelty": NOVELTY,
    "classes": CLASSES,
    "numbers": NUMBERS,
    "one seed": KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropRandom(5), random_state=3)),
    "scaled": KeyedFleet(Prepared(KernelRegressor(Gaussian(0.5), budget=DropOldest(5)), target=None)),
    "ttl": KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=6), ttl=60),
    "may diverge": KeyedFleet(KernelRegressor(Linear(), SGD(Squared(), 0.001), DropOldest(4))),
}


def batches(fleet, count=12, size=40, keys=15, seed=0, texts=False):
    """Batches of events; of classes, those above 2 come late and one at a time."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        devices = rng.integers(0, keys, size=size)
        X = rng.normal(size=(size, 3))
        if isinstance(fleet.member_model, KernelClassifier):
            y = rng.integers(0, 2 + min(number, 11) // 4, size=size)
            y = np.array(["a", "z", "k", "b", "y"])[y]
        elif isinstance(fleet.member_model, KernelRegressor):
            y = X[:, 0] + devices
        else:
            y = None
        yield [f"device {key}" for key in devices] if texts else devices, X, y


def digest(fleet):
    """Every key's learner, its last event, the labels and the clock."""
    keys = fleet._store.keys()
    order = np.argsort(keys)
    keys = keys[order] if isinstance(keys, np.ndarray) else [keys[i] for i in order]
    rows = keys if isinstance(keys, np.ndarray) else [key.encode() if isinstance(key, str) else key for key in keys]
    pack = fleet._store.members(rows)
    sums = {name: zlib.crc32(np.ascontiguousarray(array).tobytes()) for name, array in pack.items()}
    return list(keys), sums, fleet._table.names, fleet._core_.now, fleet._core_.classes


class Program:
    """A driver that can be killed and started again, in a folder of its own."""

    def __init__(self, fleet, folder, shards=2, every=100, workers=None):
        self.fleet, self.folder, self.shards, self.every = fleet, folder, shards, every
        self.workers = workers or LocalWorkers()

    def __enter__(self):
        self.log = Log(self.folder / "log.db")
        self.keyed = ShardedFleet(
            clone(self.fleet), self.workers, self.shards, str(self.folder / "snapshots"), self.log, self.every
        )
        return self.keyed

    def __exit__(self, kind, *_):
        if kind is Killed:  # nothing is written, nothing said goodbye to
            for shard in range(self.shards):
                self.workers.end(shard)
            self.log.close()
            return True
        with contextlib.suppress(Killed):
            self.keyed.close()
        return False


def alone(fleet, seed_of=None, **how):
    """The same batches in one fleet in one process, with the seed that the cluster drew."""
    one = clone(fleet)
    if seed_of is not None:
        one.drawn_seed = lambda: seed_of
    scores = [one.prequential(*batch) for batch in batches(fleet, **how)]
    return one, scores


def same_scores(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
