"""The one thread that changes a model: takes what waits in its queue, learns, commits, and only then answers.

All requests that wait when the thread comes round share one transaction (group commit), and short ones among them share one
call of the learner; the model is the same however a stream is cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..._common.types import Json
from . import batch as batches
from .answers import Reply, as_json, in_kind
from .batch import Batch
from .errors import Damaged, ServiceError
from .journal import Answer, Waiting
from .served import Served

log = logging.getLogger("gristmill.serve")
#: rows of requests that are learned in one call; the call holds the interpreter while it reads them, and predictions wait
_TOGETHER = 128
_SMALL = 256
#: requests of one transaction
_GROUP = 512
#: seconds between two copies for readers, at least; and times as long as a copy takes
_COPY_PAUSE, _COPY_SHARE = 0.02, 10.0


@dataclasses.dataclass(eq=False)
class Request:
    """Something to do for the writer.

    Parameters
    ----------
    what : {"learn", "labels", "keep", "control"}
    batch : Batch, optional
        Rows to learn.
    kind, options, body : the body as the journal keeps it, and the kind of the answer
    events : waiting events to keep, or late labels by id
    answer : the predictions of events to keep, which are answered once the events are on disk
    act : what else to do, for "control"
    key, digest : idempotency key, and a digest of the request
    """

    what: str
    batch: Batch | None = None
    kind: str = "json"
    options: str | None = None
    body: bytes = b""
    events: Any = None
    answer: Reply | None = None
    act: Callable[[], Json] | None = None
    key: str | None = None
    digest: bytes = b""
    future: asyncio.Future[Reply] | None = None
    reply: Reply | ServiceError | None = None


class Writer:
    """The thread that writes to one model, and its queue.

    Parameters
    ----------
    served : Served
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        #: groups of requests; None ends the thread
        self._queue: queue.SimpleQueue[list[Request] | None] = queue.SimpleQueue()
        self._fresh: list[Request] = []  # of this turn of the event loop
        # Counted by the event loop on the one side and by the thread on the other, so that no lock is needed.
        self._put, self._put_bytes, self._taken, self._taken_bytes = 0, 0, 0, 0
        self._gate = threading.Lock()  # nothing is put behind the end
        self._ending = False
        self._copied = 0.0
        self._copy_cost = 0.0
        self._swept = 0.0
        self._is_full = False  # the last group could not be written
        self.failed: str | None = None  #: why the model is not there any more
        self._thread = threading.Thread(target=self._run, name=f"writer of {served.name}", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Requests that wait."""
        return self._put - self._taken

    @property
    def ending(self) -> bool:
        return self._ending

    def put(self, request: Request, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Reply]:
        """Queue a request, by the event loop; 429 if too many wait."""
        settings = self.served.settings
        if self.failed is not None:
            raise ServiceError(f"the model is not available: {self.failed}", 503)
        if self._ending:
            raise ServiceError("the service is stopping", 503, retry_after=5)
        size = len(request.body)
        if (
            self._put - self._taken >= settings.queue_requests
            or self._put_bytes - self._taken_bytes + size > settings.queue_bytes
        ):
            raise ServiceError(f"{self.depth} requests are waiting; try again", 429, retry_after=1)
        request.future = loop.create_future()
        self._put += 1
        self._put_bytes += size
        self._fresh.append(request)
        if len(self._fresh) == 1:  # what comes in the same turn of the loop goes along
            loop.call_soon(self._hand_over)
        return request.future

    def _hand_over(self) -> None:
        group, self._fresh = self._fresh, []
        with self._gate:
            if not self._ending:
                self._queue.put(group)
                return
        stopping = ServiceError("the service is stopping", 503, retry_after=5)
        _resolve([(request.future, stopping) for request in group])

    def stop(self, snapshot: bool = True) -> None:
        """Answer what waits, write a snapshot, and end."""
        with self._gate:
            self._ending = True
            self._queue.put(None)
        self._thread.join()
        if snapshot and self.failed is None and not self.served.is_saved:
            try:
                self._snapshot()
            except (OSError, sqlite3.Error) as error:
                log.error("%s: no snapshot at the end: %s", self.served.name, error)
        self.served.close()

    # ---- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        if (
            sys.platform == "linux"
        ):  # predictions come first where processors are short; elsewhere a thread has no priority
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
        going = True
        while going:
            group: list[Request] = []
            with contextlib.suppress(queue.Empty):
                found = self._queue.get(timeout=1.0)
                while found is not None:
                    group += found
                    if len(group) >= _GROUP:
                        break
                    found = self._queue.get_nowait()
                going = found is not None
            if group:
                self._handle(group)
                self._taken += len(group)
                self._taken_bytes += sum(len(request.body) for request in group)
                self._answer(group)
            self._copy()
            self._maintain()

    def _handle(self, group: list[Request]) -> None:
        """Do what a group asks; each request has its reply afterwards."""
        start = 0
        while start < len(group):
            stop = start
            while stop < len(group) and group[stop].what != "control":
                stop += 1
            part = group[start : stop + 1]
            if self._is_full and not self._can_write(part):
                start = stop + 1
                continue
            try:
                if stop > start:
                    self._commit(group[start:stop])
                if stop < len(group):
                    self._control(group[stop])
            except BaseException as error:
                self._recover(error)
                for request in part:
                    request.reply = _unavailable(error)
            start = stop + 1

    def _can_write(self, part: list[Request]) -> bool:
        """After a failed write: write as much on trial, so that nothing is learned in vain and read from disk again."""
        size = sum(len(request.body) for request in part)
        try:
            self.served.journal.try_to_write(size)
        except (OSError, sqlite3.Error) as error:
            for request in part:
                request.reply = _unavailable(error)
            return False
        self._is_full = False
        log.warning("%s: events can be written again", self.served.name)
        return True

    def _recover(self, error: BaseException) -> None:
        """What was learned and not written is forgotten: the model comes back from disk."""
        log.error("%s: nothing of a group of requests was kept: %s: %s", self.served.name, type(error).__name__, error)
        self._is_full = isinstance(error, OSError | sqlite3.Error)
        try:
            self.served.load()
        except BaseException as worse:
            self.failed = f"{type(worse).__name__}: {worse}"
            log.critical("%s: the model cannot be read again: %s", self.served.name, self.failed)

    def _answer(self, group: list[Request]) -> None:
        futures = [(request.future, request.reply) for request in group if request.future is not None]
        if futures:
            loop = futures[0][0].get_loop()
            try:
                loop.call_soon_threadsafe(_resolve, futures)
            except RuntimeError:  # the loop has ended: there is no one to answer
                log.warning("%s: %s answers could not be delivered", self.served.name, len(futures))

    # ---- one transaction ------------------------------------------------------------------------------------

    def _commit(self, group: list[Request]) -> None:
        journal, moment = self.served.journal, time.time()
        keys: dict[str, Request] = {}
        with journal.transaction() as connection:
            place = 0
            while place < len(group):
                request = group[place]
                place += 1
                if self._known(request, keys):
                    continue
                if request.what != "learn":
                    self._one(request, moment)
                    continue
                together = [request]
                rows = request.batch.count if request.batch is not None else 0
                while (
                    place < len(group)
                    and self._joins(together[-1], group[place], rows)
                    and not self._known(group[place], keys)
                ):
                    together.append(group[place])
                    rows += group[place].batch.count  # type: ignore[union-attr]
                    place += 1
                self._learn(together, moment)
            for request in keys.values():
                if isinstance(request.reply, Reply) and request.key is not None:
                    journal.remember(Answer.of(request.key, request.digest, request.reply), moment)
            self.served.keep_failure(connection)
        for request in group:  # those that came twice in one group
            if request.reply is None and request.key is not None:
                request.reply = keys[request.key].reply

    def _known(self, request: Request, keys: dict[str, Request]) -> bool:
        """Whether a request was answered before, or comes twice in this group."""
        if request.key is None:
            return False
        first = keys.get(request.key)
        known = None if first is not None else self.served.journal.answer(request.key)
        digest = first.digest if first is not None else None if known is None else known.digest
        if digest is not None and digest != request.digest:
            request.reply = ServiceError("this idempotency key came with another request before", 409)
            return True
        if known is not None:
            headers = {**json.loads(known.headers), "idempotent-replay": "true"}
            request.reply = Reply(known.status, known.kind, known.body, headers)
            return True
        if first is not None:
            return True
        keys[request.key] = request
        return False

    @staticmethod
    def _joins(before: Request, request: Request, rows: int) -> bool:
        one, other = before.batch, request.batch
        return (
            request.what == "learn" and one is not None and other is not None
            and one.is_records and other.is_records and one.count <= _SMALL and other.count <= _SMALL
            and rows + other.count <= _TOGETHER
        )  # fmt: skip

    def _learn(self, requests: list[Request], moment: float) -> None:
        """Learn requests in one call; where one of them is refused, each in a call of its own."""
        if len(requests) > 1:
            whole = batches.joined([request.batch for request in requests if request.batch is not None])
            try:
                self.served.check(whole)
                found = self.served.learn(whole)
            except ServiceError:
                pass
            else:
                self._note(requests, found.tolist(), moment)
                return
        for request in requests:
            assert request.batch is not None
            try:
                self.served.check(request.batch)
                found = self.served.learn(request.batch)
            except ServiceError as error:
                request.reply = error
            else:
                self._note([request], found.tolist(), moment)

    def _note(self, requests: list[Request], answers: list[Any], moment: float) -> None:
        """Write what was learned into the journal, and its replies."""
        journal, start = self.served.journal, 0
        position = journal.position
        for request in requests:
            count = request.batch.count if request.batch is not None else 0
            position += count
            about = {"learned": count, "position": position}
            request.reply = in_kind(request.kind, {"predictions": answers[start : start + count]}, about)
            start += count
        parts = [(request.batch.count, request.kind, request.options, request.body)
                 for request in requests if request.batch is not None]  # fmt: skip
        journal.append(parts, moment)

    def _one(self, request: Request, moment: float) -> None:
        """Late labels, or features that wait for theirs."""
        journal = self.served.journal
        if request.what == "keep":
            journal.keep([Waiting(id_, moment, row, answered) for id_, row, answered in request.events])
            if journal.waiting_bytes > self.served.settings.label_space:
                journal.expire(0.0, self.served.settings.label_space)
            request.reply = request.answer
            return
        events, unknown = [], []
        for id_, label in request.events.items():
            found = journal.waits(id_)
            if found is None:
                unknown.append(id_)
            else:
                events.append((*found, label))
        if not events:
            request.reply = as_json({"learned": 0, "position": journal.position, "predictions": [], "unknown": unknown})
            return
        batch, answered = self.served.late(events)
        try:
            if len({type(row) for row in batch.X}) > 1:
                raise ServiceError("some of these events are lists and some are objects; send their labels apart")
            self.served.check(batch)
            self.served.learn(batch, answered)
        except ServiceError as error:
            if "row" in error.details:
                error.details["id"] = events[error.details["row"]][0]
            request.reply = error
            return
        journal.append([(len(events), "labels", None, batches.late_body(events))], moment)
        for event in events:
            journal.take(event[0])
        champion = str(self.served.champion.id)
        request.reply = as_json(
            {
                "learned": len(events), "position": journal.position,
                "predictions": [one.get(champion) for one in answered], "unknown": unknown,
            }
        )  # fmt: skip

    # ---- everything else ------------------------------------------------------------------------------------

    def _control(self, request: Request) -> None:
        journal = self.served.journal
        if self._known(request, {}):
            return
        assert request.act is not None
        try:
            with journal.transaction():
                reply = as_json(request.act())
                if request.key is not None:
                    journal.remember(Answer.of(request.key, request.digest, reply), time.time())
        except ServiceError as error:
            request.reply = error
            return
        self.served.settle()
        request.reply = reply

    def _wants_copy(self) -> bool:
        return any(contender.wanted for contender in self.served.contenders())

    def _copy(self) -> None:
        """Renew the copies that readers asked for, in a small share of the time."""
        now = time.perf_counter()
        if not self._wants_copy() or now - self._copied < max(_COPY_PAUSE, _COPY_SHARE * self._copy_cost):
            return
        for contender in self.served.contenders():
            if contender.wanted:
                contender.publish()
        self._copied = time.perf_counter()
        self._copy_cost = self._copied - now

    def _snapshot(self) -> None:
        with self.served.journal.transaction():
            self.served.snapshot()
        self.served.settle()

    def _maintain(self) -> None:
        """Snapshots when they are due; what has waited too long is dropped."""
        served, settings = self.served, self.served.settings
        try:
            if served.is_due():
                self._snapshot()
            now = time.time()
            if now - self._swept > 10.0:
                self._swept = now
                with served.journal.transaction():
                    served.journal.expire(now - settings.label_wait, settings.label_space)
                    served.journal.forget_answers(now - settings.key_wait, settings.key_space)
        except (OSError, sqlite3.Error, MemoryError) as error:
            log.error("%s: maintenance failed and is tried again: %s", served.name, error)
            self._swept = time.time()


def _unavailable(error: BaseException) -> ServiceError:
    if isinstance(error, sqlite3.Error | OSError):
        return ServiceError(f"the events could not be written, and nothing was learned: {error}", 503, retry_after=5)
    if isinstance(error, MemoryError):
        return ServiceError("there is not enough memory for this request; nothing was learned", 503, retry_after=5)
    if isinstance(error, Damaged):
        return ServiceError(str(error), 503)
    return ServiceError(f"nothing was learned: {type(error).__name__}: {error}", 500)


def _resolve(futures: list[Any]) -> None:
    for future, reply in futures:
        if future.done():  # its client has gone
            continue
        if isinstance(reply, Reply):
            future.set_result(reply)
        else:
            future.set_exception(reply)
