"""Redis Streams by redis-py: entries with ids; several streams of one server are partitions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..._common.types import Json, Options
from .contract import BrokerAway, BrokerError, Message, Position, Reader, Record, Writer, Written, unreached
from .url import Url

_FIRST = "0-0"  # before every entry


def _client(url: Url) -> tuple[Any, list[str]]:
    """A client of the server, and the names of the streams: `/0/stream` has the number of the database in front."""
    database, slash, names = url.path.partition("/")
    if not slash or not database.isdecimal():
        database, names = "0", url.path
    host, port = url.address(6379)
    settings: Options = {
        "username": url.user, "password": url.password, "ssl": url.scheme == "rediss", "socket_timeout": 30,
        "socket_connect_timeout": 5, "retry": Retry(NoBackoff(), 0),
        **{name: _typed(value) for name, value in url.passed("client.").items()},
    }  # fmt: skip
    try:
        client = redis.Redis(host, port, int(database), **settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{url}: an option of the client does not fit: {error}") from error
    return client, [name for name in names.split(",") if name]


def _typed(text: str) -> Any:
    """The value of an option of the client: a truth value, a number or a text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _asked(url: Url, question: Any) -> Any:
    try:
        return question()
    except (redis.AuthenticationError, redis.ResponseError) as error:
        raise BrokerError(f"{url}: {error}") from error
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise unreached(url, error) from error


def _milliseconds(entry: str) -> int:
    return int(entry.partition("-")[0])


class RedisReader(Reader):
    """One stream, or several with their names separated by commas. A position is the last entry id of each."""

    options = ("lost",)

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._skip = url.choice("lost", ("error", "skip")) == "skip"
        self._latest = url.choice("start", ("earliest", "latest")) == "latest"
        self._client, self._streams = _client(url)
        self._next: dict[str, str] = {}

    def open(self, position: Position | None) -> None:
        known = position or {}
        self._next = {}
        for stream in self._streams:
            if stream in known:
                self._refuse_gap(stream, known[stream])
                self._next[stream] = known[stream]
            else:
                self._next[stream] = self._end(stream) if self._latest else _FIRST

    def _info(self, stream: str) -> Json | None:
        if not _asked(self.url, lambda: self._client.exists(stream)):
            return None
        found = _asked(self.url, lambda: self._client.xinfo_stream(stream))
        return {key.decode() if isinstance(key, bytes) else key: value for key, value in found.items()}

    def _end(self, stream: str) -> str:
        info = self._info(stream)
        return _FIRST if info is None else info["last-generated-id"].decode()

    def _refuse_gap(self, stream: str, last: str) -> None:
        """Entries that were trimmed before they were read are an error: Redis 7 says which was the last to go."""
        info = None if self._skip else self._info(stream)
        gone = (info or {}).get("max-deleted-entry-id", b"0-0").decode()
        if [int(part) for part in gone.split("-")] > [int(part) for part in last.split("-")]:
            raise BrokerError(
                f"{self.url}: entries after {last} of {stream!r} were trimmed before they were read; "
                "lost=skip continues with the oldest that is there"
            )

    def start(self) -> Position:
        return dict(self._next)

    def poll(self, most: int, wait: float) -> list[Message]:
        block = max(1, int(1000 * wait))
        answer = _asked(self.url, lambda: self._client.xread(dict(self._next), count=most, block=block))
        found: list[Message] = []
        for name, entries in answer or ():
            stream = name.decode()
            for entry, fields in entries:
                place = entry.decode()
                found.append(Message(stream, place, _value(fields), None, _milliseconds(place) / 1000))
        found = found[:most]  # the server counts by stream
        for message in found:
            self._next[message.partition] = str(message.offset)
        return found

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        return position | {message.partition: message.offset for message in messages}

    def ends(self) -> Position:
        return {stream: self._end(stream) for stream in self._streams}

    def reached(self, position: Position, ends: Position) -> bool:
        # An entry at the end may have been deleted: then what was asked for from the position on is empty.
        return all(
            position.get(stream, _FIRST) == end
            or not _asked(self.url, lambda s=stream, e=end: self._client.xrange(s, f"({position.get(s, _FIRST)}", e, 1))
            for stream, end in ends.items()
        )

    def behind(self, position: Position) -> dict[str, float]:
        gaps = [_milliseconds(self._end(s)) - _milliseconds(position.get(s, _FIRST)) for s in self._streams]
        return {"seconds": max(0.0, *(gap / 1000 for gap in gaps))}

    def close(self) -> None:
        self._client.close()


def _value(fields: dict[bytes, bytes]) -> Any:
    """The fields as text, or the one field `value` as it is."""
    if len(fields) == 1 and b"value" in fields:
        return fields[b"value"]
    return {name.decode(): value.decode("utf-8", errors="replace") for name, value in fields.items()}


class RedisWriter(Writer):
    """A stream. Entries and the positions of their events (a hash beside the stream) are written in one transaction.

    So an entry is there exactly once, whatever dies and whenever. `maxlen=N` keeps about the newest N entries.
    """

    options = ("maxlen",)

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._client, names = _client(url)
        if len(names) != 1:
            raise ValueError(f"{url}: one stream can be written to, got {len(names)}")
        self._stream = names[0]
        self._most = url.count("maxlen", 1) if "maxlen" in url.options else None
        self._waiting: list[Record] = []
        self._written = Written()
        self._known = False

    def send(self, records: Sequence[Record]) -> None:
        self._waiting += records
        with suppress(BrokerAway):  # then they go with the next
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        if not self._known:
            for where, offset in _asked(self.url, lambda: self._client.hgetall(f"{self._stream}:positions")).items():
                source, _, partition = where.decode().rpartition(" ")
                text = offset.decode()
                self._written.note(source, partition, int(text) if text.isdigit() else text)
            self._known = True
        fresh = self._written.fresh(self._waiting)
        if fresh:
            marks = {f"{record.source} {record.partition}": str(record.offset) for record in fresh}
            with self._client.pipeline(transaction=True) as pipe:
                for record in fresh:
                    pipe.xadd(self._stream, {"value": record.body()}, maxlen=self._most)
                pipe.hset(f"{self._stream}:positions", mapping=marks)
                self._known = False  # until it is known whether they have arrived, what is there is asked again
                _asked(self.url, pipe.execute)
            self._known = True
            for record in fresh:
                self._written.note(record.source, record.partition, record.offset)
        self._waiting = []

    def close(self) -> None:
        self.flush()
        self._client.close()
