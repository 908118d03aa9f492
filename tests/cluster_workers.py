"""Shards in this process, which can be killed at any moment; messages can come twice, late, or in another order."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from gristmill.cluster.shard import Plan, Shard
from gristmill.cluster.workers import Lost


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
