"""The order in which messages of several partitions were learned: recorded beside the model, and read again by it.

Inside a partition the offsets are the order. Between partitions it is chance, so a file beside the model keeps it, as runs
of messages of one partition. The model file holds the length of that file and its digest: what was appended after the
model was saved is cut off when the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._common.types import Json
from .connect import connect
from .contract import BrokerError, Message, Position, Reader
from .url import Url

_HEAD = b'{"gristmill": "order of messages", "format": 1}\n'


class OrderLog:
    """Runs of messages, appended to a file; a run is partition, first offset and number of messages.

    Parameters
    ----------
    path : path
    mark : dict, optional
        What `sync` returned for the model that is gone on with; without it the file begins anew.
    """

    def __init__(self, path: Any, mark: Json | None = None) -> None:
        self._path = Path(path)
        self._digest = hashlib.blake2b(digest_size=16)
        if self._path.exists():
            with open(self._path, "rb") as file:
                if not _HEAD.startswith(file.read(len(_HEAD))):
                    raise ValueError(f"{self._path}: this file is not an order of messages; move it away")
        length = 0
        if mark is not None:
            length = int(mark["bytes"])
            kept = self._path.read_bytes()[:length] if self._path.exists() else b""
            self._digest.update(kept)
            if len(kept) < length or self._digest.hexdigest() != mark["digest"]:
                raise ValueError(f"{self._path}: this is not the order that belongs to the model")
        self._file = open(self._path, "r+b" if self._path.exists() else "w+b")  # noqa: SIM115  # closed by close
        self._file.truncate(length)
        self._file.seek(length)
        self._length = length
        if not length:
            self._append(_HEAD)
        self._last: list[Any] | None = None  # a run that may still grow

    def _append(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._length += len(data)

    def add(self, messages: Sequence[Message]) -> None:
        """Messages in the order in which they are learned."""
        for message in messages:
            if self._last is not None and self._last[0] == message.partition:
                self._last[2] += 1
                continue
            self._end_run()
            self._last = [message.partition, message.offset, 1]

    def _end_run(self) -> None:
        if self._last is not None:
            self._append(json.dumps(self._last).encode() + b"\n")
            self._last = None

    def sync(self) -> Json:
        """Everything on disk; what the model file has to keep of it."""
        self._end_run()
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._length, "digest": self._digest.hexdigest()}

    def close(self) -> None:
        self._end_run()
        self._file.close()


def runs(path: Any) -> Iterator[tuple[str, Any, int]]:
    """The runs of a file; a last line that was cut off is left out."""
    with open(path, "rb") as file:
        if file.readline() != _HEAD:
            raise ValueError(f"{os.fspath(path)}: this is not an order of messages")
        for line in file:
            if line.endswith(b"\n"):
                partition, offset, count = json.loads(line)
                yield str(partition), offset, int(count)


class Replay(Reader):
    """The messages of a topic in a recorded order: one reader a partition, in turns.

    Parameters
    ----------
    url : Url
        As it was read then.
    path : path
        Of the order.
    labels : Url, optional
        Of the labels, if they came on another topic.
    """

    def __init__(self, url: Url, path: Any, labels: Url | None = None) -> None:
        self.url, self._labels = url, labels
        self._runs = list(runs(path))
        self._total = sum(run[2] for run in self._runs)
        self._readers: dict[str, Reader] = {}
        self._at, self._inside, self._done = 0, 0, 0

    def open(self, position: Position | None) -> None:
        if position:
            raise ValueError("a replay begins at the beginning")
        self.close()
        self._readers = {}
        self._at = self._inside = self._done = 0

    def _reader(self, partition: str, offset: object) -> Reader:
        if partition not in self._readers:
            url, part = self.url, partition
            if self._labels is not None:
                topic, _, part = partition.partition("/")
                url = self._labels if topic == "labels" else self.url
            start: Position | None = None
            if url.scheme == "kafka":
                options = {k: v for k, v in url.options.items() if k != "group"} | {"partitions": part}
                url, start = replace(url, options=options), {part: offset}
            else:
                database, slash, _ = url.path.partition("/")
                url = replace(url, path=f"{database}{slash}{part}")
            made = connect(_text(url))
            made.open(start)
            self._readers[partition] = made
        return self._readers[partition]

    def poll(self, most: int, wait: float) -> list[Message]:
        if self._at >= len(self._runs):
            return []
        partition, offset, count = self._runs[self._at]
        found = self._reader(partition, offset).poll(min(most, count - self._inside), wait)
        found = [message._replace(partition=partition) for message in found]
        if found and not self._inside and found[0].offset != offset:
            raise BrokerError(f"{self.url}: partition {partition} has {found[0].offset} where {offset} was learned")
        self._inside += len(found)
        self._done += len(found)
        if self._inside == count:
            self._at, self._inside = self._at + 1, 0
        return found

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        for message in messages:
            position = self._readers[message.partition].advanced(position, [message])
        return position

    def ends(self) -> Position:
        return {"": self._total}

    def reached(self, position: Position, ends: Position) -> bool:
        return self._done >= ends[""]

    def behind(self, position: Position) -> dict[str, float]:
        return {"messages": float(self._total - self._done)}

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


def _text(url: Url) -> str:
    from urllib.parse import quote, urlencode

    user = "" if url.user is None else f"{quote(url.user)}:{quote(url.password or '')}@"
    return f"{url.scheme}://{user}{url.hosts}/{quote(url.path, safe='/+#,:')}?{urlencode(url.options)}"
