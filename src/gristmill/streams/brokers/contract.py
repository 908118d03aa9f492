"""What a broker must offer to be a stream: a `Reader` of messages with positions, and a `Writer` of records."""

from __future__ import annotations

import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from .url import Url

#: The place up to which each partition was read, as plain JSON: partition -> place. What a place is, is the
#: reader's business: the next offset of Kafka, the last entry id of Redis, a counter of MQTT.
Position = dict[str, Any]


class BrokerAway(OSError):
    """The broker cannot be reached now; the feed waits and tries again."""


class BrokerError(ValueError):
    """The broker answered, and waiting does not help: no such topic, no right to read, messages gone for ever."""


def unreached(url: Any, error: BaseException) -> Exception:
    """`BrokerAway`, or `BrokerError` for a certificate that is not trusted, which waiting does not change."""
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return BrokerError(f"{url}: TLS fails: {cause}")
    return BrokerAway(f"{url}: {error}")


class Message(NamedTuple):
    """One message: where it stands, and what it holds."""

    partition: str  #: order holds inside a partition
    offset: int | str  #: its place there
    value: bytes | Mapping[str, Any]  #: bytes in some format, or the fields themselves
    key: bytes | None = None
    timestamp: float | None = None  #: seconds since 1970, as the broker or the producer has them
    headers: Mapping[str, Any] | None = None
    topic: str | None = None  #: where it came from, if one subscription covers several
    role: str = "learn"  #: "predict": its label comes later; "keep": it waits for another; "bad": `outcome` tells why
    outcome: Any = None  #: the score of the event when it came, as a list; or why the message is bad


class Reader(ABC):
    """Messages of a topic, in order, from any position on.

    A subclass implements `open`, `poll`, `advanced`, `close`, and `ends` where the broker knows its end. It raises
    `BrokerAway` from any of them while the broker cannot be reached, and `BrokerError` if waiting is of no use.

    Parameters
    ----------
    url : Url
    """

    #: options of the URL beside those that every reader has
    options: tuple[str, ...] = ()
    #: how many messages may be read before `acknowledge` is called; None: any number
    window: int | None = None

    def __init__(self, url: Url) -> None:
        url.refuse_unknown(self.options)
        self.url = url

    @abstractmethod
    def open(self, position: Position | None) -> None:
        """Go to a position; None: to the beginning, or to the end with the option `start=latest`. May be called again."""

    @abstractmethod
    def poll(self, most: int, wait: float) -> list[Message]:
        """At most so many messages, in the order of each partition.

        Returns as soon as there are some. Returns none if none came within `wait` seconds.
        """

    @abstractmethod
    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        """The position after messages that were read from another one; neither is changed."""

    def start(self) -> Position:
        """The position that `open` went to."""
        return {}

    def ends(self) -> Position | None:
        """The position behind the newest message of each partition now; None if the broker does not say."""
        return None

    def reached(self, position: Position, ends: Position) -> bool:
        """Whether everything before an end has been read."""
        return all(position.get(partition) == end for partition, end in ends.items())

    def behind(self, position: Position) -> dict[str, float]:
        """The lag: `{"messages": n}` that are waiting, or `{"seconds": s}` behind the newest; empty if not known."""
        return {}

    def prepare(self) -> None:  # noqa: B027  # only a reader that keeps something itself has to write it
        """Write to disk what the reader keeps; called before a position is saved."""

    def acknowledge(self, position: Position) -> None:  # noqa: B027  # a broker that keeps no account of it needs nothing
        """Tell the broker that everything before a position is learned and saved; never called before it is."""

    #: set by the feed: takes a line for the user
    say: Callable[[str], None] = staticmethod(lambda line: None)

    #: set by the feed: saves what was learned, and returns the position that was saved. A reader whose partitions are
    #: shared calls it inside `poll`, before it lets a partition go.
    release: Callable[[], Position] | None = None

    def taken(self) -> set[str]:
        """Partitions that were taken away since the last call: what was read of them and not learned is dropped."""
        return set()

    def given(self) -> Position:
        """Partitions that were given since the last call, and where they are read from."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """End the connection; nothing is acknowledged by it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def later(offset: object, other: Any) -> bool:
    """Whether an offset comes after another of the same partition; entry ids of Redis go by their two numbers."""
    if isinstance(offset, str) and isinstance(other, str):
        return [int(part) for part in offset.split("-")] > [int(part) for part in other.split("-")]
    return bool(offset > other)


class Record(NamedTuple):
    """What a writer sends: JSON, and which event it belongs to."""

    source: str  #: name of the stream that the event came from
    partition: str
    offset: int | str
    value: bytes  #: a JSON object

    def body(self) -> bytes:
        """The object with the position of its event in front."""
        place = {"source": self.source, "partition": self.partition, "offset": self.offset}
        rest = self.value.strip()[1:]
        return b'{"position": ' + json.dumps(place).encode() + (b", " if rest != b"}" else b"") + rest


class Written:
    """The newest record of each partition that has arrived, for writers that can find out: repetitions are dropped."""

    def __init__(self) -> None:
        self.last: dict[tuple[str, str], Any] = {}

    def fresh(self, records: Sequence[Record]) -> list[Record]:
        """The records that are not there yet."""
        found = []
        for record in records:
            known = self.last.get((record.source, record.partition))
            if known is None or later(record.offset, known):
                found.append(record)
        return found

    def note(self, source: str, partition: str, offset: Any) -> None:
        known = self.last.get((source, partition))
        if known is None or later(offset, known):
            self.last[source, partition] = offset


class Writer(ABC):
    """Records to a topic, at least once; each carries the position of its event, so that a reader can drop repetitions.

    Parameters
    ----------
    url : Url
    """

    options: tuple[str, ...] = ()

    def __init__(self, url: Url) -> None:
        url.refuse_unknown(self.options)
        self.url = url

    @abstractmethod
    def send(self, records: Sequence[Record]) -> None:
        """Hand over records; they may still be on their way afterwards."""

    @abstractmethod
    def flush(self) -> None:
        """Return when every record has arrived for good; raise `BrokerAway` if that cannot be known."""

    @abstractmethod
    def close(self) -> None:
        """End the connection, after a last `flush`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
