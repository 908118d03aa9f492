"""Brokers inside the service: `gristmill serve --from URL --to URL2`.

A thread reads batches and hands each to the writer of its model. Events, position and answers that are on their way are in
one transaction of the journal, so a message is learned exactly once whatever dies and whenever. Answers and dead letters
are sent behind it; those of the last batch are sent again after a crash, and the writers drop what is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import msgspec

from .._common.types import Json
from ..evaluate.live import plain
from ..streams.brokers import BrokerAway, Feed, Message, Position, Record, connect
from ..streams.brokers.decode import Decoder, Place
from ..streams.brokers.feed import Stopped
from ..streams.brokers.letters import letter
from ..streams.brokers.url import parse
from .store import batch as batches
from .store.errors import ServiceError
from .store.errors import refused as refused_row
from .store.store import Store
from .store.writer import Request

log = logging.getLogger("gristmill.serve")
_BUSY = (429, 503)  # what passes by itself


class Source:
    """A broker's stream into one model of a store.

    Parameters
    ----------
    store : Store
    model : str
        Name of the model.
    url : str
        Of the broker; its option `target` names the column of the labels, `label` otherwise.
    to, dead_letters : str, optional
        Where predictions go, and messages that cannot be learned: a URL or a file.
    wait : float
        Seconds after which a batch is learned, however short it is.
    say : callable
        Takes a line for the user.
    more : callable, optional
        `more(model, X)` of one event: further answers before it is learned, such as probabilities; then events are
        learned one by one.

    Attributes
    ----------
    failed : str or None
        Why the stream has ended.
    """

    def __init__(
        self,
        store: Store,
        model: str,
        url: Any,
        to: Any = None,
        dead_letters: Any = None,
        wait: float = 0.05,
        say: Callable[[str], None] | None = None,
        more: Callable[[Any, Any], Json] | None = None,
    ) -> None:
        self.store, self.model, self.url = store, model, parse(url)
        if "key" in self.url.options:
            raise ValueError(f"{self.url}: key is for `gristmill learn`; a served model has no keys")
        self.failed: str | None = None
        self._more = more
        self._target = self.url.options.get("target", "label")
        self._say = say or (lambda line: print(line, file=sys.stderr))
        self._decoder = Decoder(self.url)
        self._feed = Feed(connect(url), wait=wait, say=self._say)
        self._out = {
            "to": connect(to, "out") if to else None,
            "dead": connect(dead_letters, "out") if dead_letters else None,
        }
        self._key = f"source {self.url.name}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"source of {model}", daemon=True)

    @property
    def counts(self) -> Any:
        """What happened so far."""
        return self._feed.counts

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read; the loop is that of the service."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """End behind the batch that is being learned."""
        self._feed.stop.set()
        if self._thread.ident is not None:
            self._thread.join(30)

    # ---- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with contextlib.suppress(Stopped):
                self._read()
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"
            log.error("%s: the stream has ended: %s", self.model, self.failed)
            self._say(f"{self.url}: the stream has ended: {error}")
        finally:
            self._feed.reader.close()
            for out in self._out.values():
                if out is not None:
                    with contextlib.suppress(BrokerAway):
                        out.close()

    def _read(self) -> None:
        known = self._do(self._noted)
        self._feed.open(known["position"])
        self._send(
            [(where, Record(self.url.name, p, offset, text.encode())) for where, p, offset, text in known["outbox"]]
        )
        for batch in self._feed.batches():
            if batch.messages:
                self._take(batch.messages, batch.position)
            self._feed.lag()

    def _noted(self) -> Json:
        """What the journal keeps of this stream: the position, and what may not have been sent."""
        with self.store.get(self.model).served.journal.transaction() as connection:
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (self._key,)).fetchone()
        return {"position": None, "outbox": []} if found is None else dict(json.loads(found[0]))

    def _note(self, value: Json) -> None:
        with self.store.get(self.model).served.journal.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._key, json.dumps(value)))

    def _do(self, act: Callable[[], Json]) -> Any:
        """Let the writer of the model do something, in one transaction; waits while it is busy."""

        async def ask() -> Any:
            return await self.store.get(self.model).put(Request("control", act=act), asyncio.get_running_loop())

        assert self._loop is not None
        pause = 0.05
        while True:
            try:
                reply = asyncio.run_coroutine_threadsafe(ask(), self._loop).result()
                return json.loads(reply.body)
            except ServiceError as error:
                if error.status not in _BUSY:
                    raise
                if self._feed.stop.wait(pause):
                    raise Stopped from error
                pause = min(2 * pause, 5.0)

    def _take(self, messages: Sequence[Message], position: Position) -> None:
        """Learn a batch, then send what is to be sent, then tell the broker."""
        rows, undecoded = self._decoder.records(messages)
        order = {(message.partition, message.offset): place for place, message in enumerate(messages)}
        refused = {(m.partition, m.offset): (m, why) for m, why in undecoded}
        outbox: list[tuple[str, Record]] = []

        def act() -> Json:
            found = dict(refused)
            answers = self._learned(rows, found)
            letters = [
                ("dead", letter(self.url.name, message, f"{Place(self.url.name, message)}: {why}"))
                for _, (message, why) in sorted(found.items(), key=lambda entry: order[entry[0]])
            ]
            outbox[:] = answers + letters
            kept = [(where, one.partition, one.offset, one.value.decode()) for where, one in outbox]
            self._note({"position": position, "outbox": kept})
            return {}

        self._do(act)
        self._feed.counts.bad += sum(where == "dead" for where, _ in outbox)
        self._send(outbox)
        with contextlib.suppress(BrokerAway):  # the next batch tells it
            self._feed.reader.acknowledge(position)

    def _learned(self, rows: list[tuple[Json, Message]], refused: dict[Any, Any]) -> list[tuple[str, Record]]:
        """In the thread of the writer, in a transaction: learn rows; returns the answers, and enters what is refused."""
        served = self.store.get(self.model).served
        novel = served.task == "novelty"
        good: list[tuple[bytes, Message]] = []
        for cells, message in rows:
            row = {name: cell for name, cell in cells.items() if name != self._target}
            label = cells.get(self._target)
            if label is None and not novel:
                refused[message.partition, message.offset] = (message, f"the column {self._target!r} is missing")
            elif not row:
                refused[message.partition, message.offset] = (message, "there is no column beside the label")
            else:
                good.append((msgspec.json.encode((row, None if novel else label)), message))
        parts: list[tuple[int, str, str | None, bytes]] = []
        answers: list[tuple[str, Record]] = []
        for group in self._groups(good, served, parts, refused):
            for value, message in group:
                record = Record(self.url.name, message.partition, message.offset, json.dumps(plain(value)).encode())
                answers.append(("to", record))
        if parts:
            served.journal.append(parts, time.time())
        with served.journal.transaction() as connection:
            served.keep_failure(connection)
        return answers

    def _groups(
        self, good: list[tuple[bytes, Message]], served: Any, parts: list[Any], refused: dict[Any, Any]
    ) -> Iterator[list[tuple[Json, Message]]]:
        """Learn all rows in one call; where one of them is refused, or has further answers, each in a call of its own."""
        novel = served.task == "novelty"

        def learn(some: list[tuple[bytes, Message]]) -> list[tuple[Json, Message]]:
            pairs = [msgspec.json.decode(text, type=tuple[msgspec.Raw, msgspec.Raw]) for text, _ in some]
            body: Json = {"rows": [pair[0] for pair in pairs]}
            if not novel:
                body["labels"] = [pair[1] for pair in pairs]
            text = msgspec.json.encode(body)
            batch = batches.read("json", {}, text)  # as a replay of the journal reads it
            served.check(batch)
            rest = self._further(served.champion, batch)
            found = served.learn(batch).tolist()
            values = [{"prediction": one, **({"alarm": one == -1} if novel else {}), **rest} for one in found]
            parts.append((batch.count, "json", None, text))
            return list(zip(values, (message for _, message in some), strict=True))

        if self._more is None and good:
            try:
                whole = learn(good)
            except ServiceError:
                pass
            else:
                yield whole
                return
        for one in good:
            try:
                yield learn([one])
            except ServiceError as error:
                refused[one[1].partition, one[1].offset] = (one[1], str(error))

    def _further(self, champion: Any, batch: batches.Batch) -> Json:
        """Further answers of one event; none before the first one, nor of a promoted challenger that has no such answer."""
        if self._more is None or not champion.is_fitted:
            return {}
        try:
            with champion.lock:
                return {name: cells[0] for name, cells in self._more(champion.model, batch.X).items()}
        except AttributeError:
            return {}
        except (ValueError, TypeError) as error:
            raise refused_row(error, batch) from error

    def _send(self, outbox: list[tuple[str, Record]]) -> None:
        for name, out in self._out.items():
            records = [record for where, record in outbox if where == name]
            if out is not None and records:
                self._feed.patiently(lambda out=out, records=records: out.send(records))  # type: ignore[misc]
                self._feed.patiently(out.flush)
                self._feed.counts.written += len(records)


class Collector:
    """The numbers of all sources, read when Prometheus asks."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        table: list[tuple[Any, str, str, Callable[[Source], float]]] = [
            (CounterMetricFamily, "messages", "Messages read from the broker", lambda s: s.counts.messages),
            (CounterMetricFamily, "bad_messages", "Messages that could not be learned", lambda s: s.counts.bad),
            (CounterMetricFamily, "written", "Predictions and dead letters sent", lambda s: s.counts.written),
            (CounterMetricFamily, "outages", "Times the broker went away", lambda s: s.counts.outages),
            (CounterMetricFamily, "away_seconds", "Seconds without the broker", lambda s: s.counts.away_seconds),
            (GaugeMetricFamily, "up", "1 while the stream is read", lambda s: float(s.failed is None)),
        ]
        for family, name, text, find in table:
            found = family(f"gristmill_source_{name}", text, labels=["model", "source"])
            for source in self._sources:
                found.add_metric([source.model, source.url.name], float(find(source)))
            yield found
        lag = GaugeMetricFamily("gristmill_source_lag", "Behind the newest message", labels=["model", "source", "unit"])
        for source in self._sources:
            for unit, value in source.counts.lag.items():
                lag.add_metric([source.model, source.url.name, unit], value)
        yield lag


def attach(application: Any, sources: Sequence[Source]) -> None:
    """Let sources run as long as an application of `app` does.

    Parameters
    ----------
    application : Starlette
        Of `gristmill.serve.app`.
    sources : sequence of Source
    """
    inner = application.router.lifespan_context
    application.state.service.registry.register(Collector(sources))

    @contextlib.asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[Any]:
        async with inner(app) as state:
            for source in sources:
                source.start(asyncio.get_running_loop())
            try:
                yield state
            finally:
                for source in sources:
                    await asyncio.to_thread(source.stop)

    application.router.lifespan_context = lifespan
