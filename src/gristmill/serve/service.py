"""What the handlers share: the store, the tokens, deadlines, and what is counted."""

from __future__ import annotations

import asyncio
import collections
import time

from .._common.types import Json
from .access import Tokens
from .call import Deadlines
from .meter import Collector, Latencies, Meter
from .store.store import Store


class Service:
    """What the handlers share.

    Parameters
    ----------
    store : Store
    tokens : Tokens or None
    """

    def __init__(self, store: Store, tokens: Tokens | None) -> None:
        from prometheus_client import CollectorRegistry

        self.store, self.tokens = store, tokens
        self.deadlines = Deadlines(store.settings.timeout)
        self.meters: collections.defaultdict[str, Meter] = collections.defaultdict(Meter)
        self.statuses: collections.Counter[int] = collections.Counter()  #: answers by status
        self.latencies = {"learn": Latencies(), "predict": Latencies()}
        self.watchers = 0
        self.stopping = False  #: streams of server-sent events end
        self.registry = CollectorRegistry()
        self.registry.register(Collector(self))
        self._tasks: list[asyncio.Task[None]] = []

    def count(self, status: int) -> None:
        self.statuses[status] += 1

    def measured(self, name: str, what: str, rows: int, start: float) -> None:
        seconds = time.perf_counter() - start
        self.meters[name].add(what, rows, seconds)
        self.latencies[what].add(seconds)

    def begin(self) -> None:
        """Start what runs beside the handlers, in the loop that calls."""
        self.deadlines.loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._tick()), asyncio.create_task(self.deadlines.run())]

    async def end(self) -> None:
        """Answer what waits, and close the store."""
        self.stopping = True
        await asyncio.to_thread(self.store.close)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for name, writer in list(self.store.writers.items()):
                self.meters[name].tick(writer.served.champion.size())

    def summary(self, name: str) -> Json | None:
        """The last second of a model."""
        points = self.meters[name].points
        return points[-1] if points else None
