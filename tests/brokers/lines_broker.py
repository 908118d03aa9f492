"""A fourth broker: a file of lines that others append to, as `lines://host/path/of/file`. Offsets are bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from gristmill.streams.brokers import BrokerAway, Message, Position, Reader, Record, Writer
from gristmill.streams.brokers.contract import Written
from gristmill.streams.brokers.url import Url


class LinesReader(Reader):
    """One partition; a position is the number of bytes before the next line."""

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._path = Path("/", url.path)
        self._latest = url.choice("start", ("earliest", "latest")) == "latest"
        self._start = self._next = 0

    def _size(self) -> int:
        try:
            return self._path.read_bytes().rfind(b"\n") + 1  # a line without its end is not there yet
        except OSError as error:
            raise BrokerAway(f"{self.url}: {error}") from error

    def open(self, position: Position | None) -> None:
        known = (position or {}).get("0")
        self._start = self._next = (self._size() if self._latest else 0) if known is None else int(known)

    def start(self) -> Position:
        return {"0": self._start}

    def poll(self, most: int, wait: float) -> list[Message]:
        until = time.monotonic() + wait
        while self._size() <= self._next:
            if time.monotonic() >= until:
                return []
            time.sleep(0.01)
        found: list[Message] = []
        for line in self._path.read_bytes()[self._next : self._size()].splitlines(keepends=True)[:most]:
            found.append(Message("0", self._next, line.rstrip(b"\n"), None, os.path.getmtime(self._path)))
            self._next += len(line)
        return found

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        if not messages:
            return position
        return {"0": int(messages[-1].offset) + len(messages[-1].value) + 1}

    def ends(self) -> Position:
        return {"0": self._size()}

    def close(self) -> None:
        pass


class LinesWriter(Writer):
    """Appends, and drops what the last lines show to be there."""

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._path, self._written = Path("/", url.path), Written()

    def send(self, records: Sequence[Record]) -> None:
        fresh = self._written.fresh(records)
        with open(self._path, "ab") as file:
            file.write(b"".join(record.body() + b"\n" for record in fresh))
        for record in fresh:
            self._written.note(record.source, record.partition, record.offset)

    def flush(self) -> None:
        os.sync()

    def close(self) -> None:
        pass
