"""A feed: batches of messages closed by count or time, from a reader that may lose its broker for a while."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from .contract import BrokerAway, Message, Position, Reader

_IDLE = 0.25  # seconds after which an empty batch is handed out, so that the reader can do other work
_FIRST, _MOST = 0.1, 30.0  # seconds to wait for a broker that is away: at first, and at most

T = TypeVar("T")


class Stopped(Exception):
    """The feed was stopped while it waited for its broker."""


class Batch(NamedTuple):
    """Consecutive messages, and the position behind them. An empty one says that nothing came for a while."""

    messages: list[Message]
    position: Position


@dataclass
class Counts:
    """What happened to a feed so far."""

    messages: int = 0
    bad: int = 0
    outages: int = 0
    away_seconds: float = 0.0
    saved: int = 0
    written: int = 0
    lag: dict[str, float] = field(default_factory=dict)
    waiting: int | None = None  #: events that wait for a label from another topic
    expired: int = 0  #: events whose label never came

    def line(self) -> str:
        """For the progress line."""
        lag = ", ".join(f"{value:,.0f} {unit}" for unit, value in self.lag.items()) or "not known"
        late = "" if self.waiting is None else f"; {self.waiting:,} wait for a label, {self.expired:,} waited in vain"
        return f"lag {lag}; {self.bad:,} bad messages; {self.outages:,} outages{late}"


class Feed:
    """Reads on from a position, waits for a broker that is away, and stops at the end if that is wanted.

    Parameters
    ----------
    reader : Reader
    most : int
        Messages of a batch.
    wait : float
        Seconds after its first message at which a batch is handed out, however short it is.
    until_end : bool
        Stop behind the newest message that was there at the beginning. A broker that knows no end (MQTT) has ended when
        nothing came for the seconds of its option `idle`.
    limit : int, optional
        Messages to read at most.
    say : callable
        Takes a line for the user, such as that the broker is away.
    """

    def __init__(
        self,
        reader: Reader,
        most: int = 1000,
        wait: float = 0.05,
        until_end: bool = False,
        limit: int | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.reader, self.most, self.wait, self.until_end, self.limit = reader, most, wait, until_end, limit
        self.say = say or (lambda line: print(line, file=sys.stderr))
        reader.say = self.say
        self.counts = Counts()
        self.position: Position = {}
        self.stop = threading.Event()  #: set by a signal: the feed ends behind the batch that is being learned
        self._chance = random.Random()
        self._asked = 0.0  # when the lag was asked for

    def open(self, position: Position | None) -> None:
        """Go to a position; waits for a broker that is away."""
        self.patiently(lambda: self.reader.open(position))
        self.position = self.reader.start() if position is None else {**self.reader.start(), **position}

    def patiently(self, action: Callable[[], T]) -> T:
        """Do something that needs the broker; while it is away, wait longer and longer, and try again."""
        pause, since = _FIRST, None
        while True:
            try:
                found = action()
            except BrokerAway as error:
                if since is None:
                    since = time.monotonic()
                    self.counts.outages += 1
                    self.say(f"away: {error}; trying again")
                if self.stop.wait(pause * self._chance.uniform(0.5, 1.0)):
                    raise Stopped from error
                pause = min(2 * pause, _MOST)
                continue
            if since is not None:
                self.counts.away_seconds += time.monotonic() - since
                self.say(f"back: {self.reader.url} after {time.monotonic() - since:.1f} s")
            return found

    def batches(self) -> Iterator[Batch]:
        """Batches in order. A batch is learned before the next is asked for; the position is that behind it."""
        try:
            yield from self._batches()
        except Stopped:
            return

    def _batches(self) -> Iterator[Batch]:
        ends: Any = self.patiently(self.reader.ends) if self.until_end else None
        idle, quiet = getattr(self.reader, "idle", 0.0), time.monotonic()
        while not self.stop.is_set() and (self.limit is None or self.counts.messages < self.limit):
            if ends is not None and self.patiently(lambda: self.reader.reached(self.position, ends)):
                return
            messages = self._gather()
            if messages:
                quiet = time.monotonic()
                self.counts.messages += len(messages)
                self.position = self.reader.advanced(self.position, messages)
            elif self.until_end and ends is None and time.monotonic() - quiet >= idle:
                return
            yield Batch(messages, self.position)

    def _gather(self) -> list[Message]:
        """Messages until there are enough, or the first has waited long enough."""
        most = self.most if self.limit is None else min(self.most, self.limit - self.counts.messages)
        if self.reader.window is not None:
            most = min(most, max(1, self.reader.window // 2))
        found: list[Message] = []
        until = 0.0
        while len(found) < most:
            left = until - time.monotonic() if found else _IDLE
            if left <= 0:
                break
            new = self.patiently(partial(self.reader.poll, most - len(found), left))
            taken = self.reader.taken()
            if taken:  # another process reads them from what was saved on
                found = [message for message in found if message.partition not in taken]
                self.position = {p: place for p, place in self.position.items() if p not in taken}
            self.position = self.position | self.reader.given()
            if not new and not found:
                break
            if not found:
                until = time.monotonic() + self.wait
            found += new
        return found

    def lag(self, now: bool = False) -> dict[str, float]:
        """How far behind the newest message the position is; asked for at most once a second unless `now`."""
        if now or time.monotonic() - self._asked >= 1.0:
            self._asked = time.monotonic()
            with suppress(BrokerAway):  # the next read raises it
                self.counts.lag = self.reader.behind(self.position)
            self.counts.waiting = getattr(self.reader, "waits", None)
            self.counts.expired = getattr(self.reader, "expired", 0)
        return self.counts.lag
