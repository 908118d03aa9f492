"""Kafka by confluent-kafka: partitions with offsets; a group shares partitions among processes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ..._common.types import Json, Options
from .contract import BrokerAway, BrokerError, Message, Position, Reader, Record, Writer, Written
from .url import Url

_SECONDS = 10.0  # for one question to the broker
_TAIL = 100_000  # records of a partition that are looked through: more than lie between two savings
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)


#: a group that shares its partitions anew takes no offsets until it is done
_SHARING = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)


def _settings(url: Url) -> Options:
    for hosts in url.hosts.split(","):
        replace(url, hosts=hosts).address(9092)
    found: Json = {"bootstrap.servers": url.hosts, "log_level": 0}
    if url.user is not None:
        found |= {"sasl.username": url.user, "sasl.password": url.password or "", "sasl.mechanisms": "PLAIN"}
        found["security.protocol"] = "SASL_SSL"
    return found | url.passed("client.")


def _made(url: Url, kind: Any, settings: dict[str, Any]) -> Any:
    """A consumer or a producer; an option that it does not have is an error that names it."""
    try:
        return kind(settings)
    except KafkaException as error:
        raise ValueError(f"{url}: {error.args[0].str()}") from error


def _raised(url: Url, error: Any) -> Exception:
    """What is thrown for an error of the client: one that passes by itself, or one that does not."""
    code = error.code()
    if code in _LOST:
        return BrokerError(
            f"{url}: the messages after the saved position are no longer kept by the broker; "
            "lost=skip continues with the oldest that is"
        )
    if error.retriable() or code in (
        KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE,
        KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT, KafkaError._MSG_TIMED_OUT,
        KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, *_SHARING,
    ):  # fmt: skip
        return BrokerAway(f"{url}: {error.str()}")
    return BrokerError(f"{url}: {error.str()}")


class KafkaReader(Reader):
    """A topic: all its partitions, those of the option `partitions`, or those that the group of `group` gives.

    A position is the next offset of each partition.
    """

    options = ("group", "partitions", "lost")

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._shared = "group" in url.options and "partitions" not in url.options
        skip = url.choice("lost", ("error", "skip")) == "skip"
        self._latest = url.choice("start", ("earliest", "latest")) == "latest"
        settings = {
            "group.id": url.options.get("group", "gristmill"), "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "earliest" if skip else "error",
            "fetch.wait.max.ms": 50, "error_cb": self._failed,
        }  # fmt: skip
        self._consumer = _made(url, Consumer, settings | _settings(url))
        self._down: Any = None  # the error by which all brokers were lost
        self._ended: dict[str, int] = {}  # offset at which a partition had no further message
        self._headed = "headers" in url.options
        self._start: Position = {}
        self._mine: list[int] = []  # partitions that are read
        self._taken: set[str] = set()
        self._given: Position = {}
        self._subscribed = False

    def _failed(self, error: Any) -> None:
        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
            self._down = error

    def open(self, position: Position | None) -> None:
        known = position or {}
        if self._shared:
            self._start = dict(known)
            if not self._subscribed:
                self._subscribed = True
                self._consumer.subscribe([self.url.path], on_assign=self._assigned, on_revoke=self._revoked)
            elif self._mine:
                self._assign(self._mine, known)
            return
        self._assign(self._partitions(), known)

    def _partitions(self) -> list[int]:
        there = self._asked(lambda: self._consumer.list_topics(self.url.path, timeout=_SECONDS))
        topic = there.topics[self.url.path]
        if topic.error is not None:
            raise _raised(self.url, topic.error)
        wanted = [int(part) for part in self.url.listed("partitions")]
        for partition in wanted:
            if partition not in topic.partitions:
                raise BrokerError(f"{self.url}: there is no partition {partition}, only {len(topic.partitions)}")
        return wanted or sorted(topic.partitions)

    def _assign(self, partitions: list[int], known: Position) -> None:
        """Read partitions from known places, others from where the option `start` says."""
        found: Position = {}
        for partition in partitions:
            place = known.get(str(partition))
            if place is None:
                low, high = self._watermarks(partition)
                place = high if self._latest else low
            found[str(partition)] = int(place)
        self._consumer.assign([TopicPartition(self.url.path, int(p), offset) for p, offset in found.items()])
        self._ended, self._start, self._mine = {}, found, list(partitions)

    def _asked(self, question: Any) -> Any:
        try:
            return question()
        except KafkaException as error:
            raise _raised(self.url, error.args[0]) from error

    def _watermarks(self, partition: int, cached: bool = False) -> tuple[int, int]:
        place = TopicPartition(self.url.path, partition)
        found = self._asked(lambda: self._consumer.get_watermark_offsets(place, timeout=_SECONDS, cached=cached))
        if found is None:
            raise BrokerAway(f"{self.url}: partition {partition} does not answer")
        low, high = found
        return low, high

    def start(self) -> Position:
        return dict(self._start)

    def poll(self, most: int, wait: float) -> list[Message]:
        found: list[Message] = []
        taken = self._asked(lambda: self._taken_in(most, wait))
        if any(message.error() is not None for message in taken):
            taken = [message for message in taken if not self._refused(message)]
        partition, name = -1, ""
        for message in taken:
            if message.partition() != partition:
                partition = message.partition()
                name = str(partition)
            kind, moment = message.timestamp()
            headers = dict(message.headers() or ()) if self._headed else None
            values = (
                name, message.offset(), message.value() or b"", message.key(), moment / 1000 if kind else None, headers,
                None, "learn", None,
            )  # fmt: skip
            found.append(Message._make(values))
        if found:
            self._down = None
        elif self._down is not None:
            self._asked(lambda: self._consumer.list_topics(self.url.path, timeout=1.0))  # raises while it is away
            self._down = None
        return found

    def _refused(self, message: Any) -> bool:
        """Whether something else came in place of a message; an error that does not pass is raised."""
        error = message.error()
        if error is None:
            return False
        if error.code() == KafkaError._PARTITION_EOF:
            self._ended[str(message.partition())] = message.offset()
        elif error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
            self._down = error
        else:
            raise _raised(self.url, error)
        return True

    def _taken_in(self, most: int, wait: float) -> list[Any]:
        """What is there; the client's own `consume` would wait until there are so many."""
        first = self._consumer.poll(wait)
        if first is None:
            return []
        return [first, *(self._consumer.consume(most - 1, 0.0) if most > 1 else ())]

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        return position | {message.partition: int(message.offset) + 1 for message in messages}

    def ends(self) -> Position:
        partitions = self._partitions()
        return {str(partition): self._watermarks(partition)[1] for partition in partitions}

    def reached(self, position: Position, ends: Position) -> bool:
        mine = [str(partition) for partition in self._mine]
        # the last record may be the mark of a transaction, which is no message: then the client reports the end
        return bool(mine) and all(max(position.get(p, 0), self._ended.get(p, 0)) >= ends.get(p, 0) for p in mine)

    def behind(self, position: Position) -> dict[str, float]:
        ends = {str(p): self._watermarks(p, cached=True)[1] for p in self._mine}
        return {"messages": float(sum(max(0, end - position.get(p, 0)) for p, end in ends.items() if end >= 0))}

    def acknowledge(self, position: Position) -> None:
        """The offsets of the group, for those who watch it and for the process that gets a partition next."""
        if "group" not in self.url.options:
            return
        self._commit({p: offset for p, offset in position.items() if int(p) in self._mine})

    def _commit(self, offsets: Position) -> None:
        if offsets:
            places = [TopicPartition(self.url.path, int(p), offset) for p, offset in offsets.items()]
            self._asked(lambda: self._consumer.commit(offsets=places, asynchronous=False))

    # ---- partitions that a group shares ---------------------------------------------------------------------------

    def _assigned(self, _: Any, parts: list[TopicPartition]) -> None:
        """A partition goes on behind what this model has learned of it, or behind what another has, if that is more."""
        known = self._learned()
        committed = self._asked(lambda: self._consumer.committed(parts, timeout=_SECONDS))
        for part in committed:
            if part.offset >= 0:
                known[str(part.partition)] = max(part.offset, known.get(str(part.partition), 0))
        kept = self._start
        self._assign([part.partition for part in parts], known)
        self._given |= self._start
        self._start = kept | self._start

    def _revoked(self, _: Any, parts: list[TopicPartition]) -> None:
        """What was learned is saved, then committed, then the partition may go to another process."""
        saved = self._learned()
        gone = {str(part.partition) for part in parts}
        try:
            self._commit({p: offset for p, offset in saved.items() if p in gone})
        except BrokerAway as error:
            self.say(
                f"{error}; another process may learn the last messages of partitions {', '.join(sorted(gone))}, too"
            )
        self._taken |= gone
        self._mine = [partition for partition in self._mine if str(partition) not in gone]

    def _learned(self) -> Position:
        return dict(self.release() if self.release is not None else self._start)

    def taken(self) -> set[str]:
        found, self._taken = self._taken, set()
        return found

    def given(self) -> Position:
        found, self._given = self._given, {}
        return found

    def close(self) -> None:
        self._consumer.close()


class KafkaWriter(Writer):
    """A topic. Records of one partition of the source have one key, so that they stay in order.

    With the option `transaction=ID` each flush is one transaction, and records that the newest in the topic show to be there
    are not written again: a record is there exactly once for those who read committed messages. A transaction that fails
    because the broker is away is aborted, and its records are written in the next.
    """

    options = ("transaction",)

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._written = Written()
        self._failures: list[tuple[Any, Record]] = []
        self._name = url.options.get("transaction")
        settings = {"enable.idempotence": True, "linger.ms": 5} | _settings(url)
        self._open: list[Record] | None = None  # records of the transaction that is open
        self._failed: KafkaError | None = None  # why it has to be aborted
        if self._name is None:
            self._producer = _made(url, Producer, settings)
            return
        self._producer = _made(url, Producer, settings | {"transactional.id": self._name})
        self._known = False  # what is in the topic
        self._before: dict[tuple[str, str], Any] = {}  # what was there when the transaction began

    def _asked(self, action: Any) -> Any:
        try:
            return action()
        except KafkaException as error:
            if self._open is not None and error.args[0].txn_requires_abort():
                self._failed = error.args[0]
            raise _raised(self.url, error.args[0]) from error

    def _look_back(self) -> None:
        """The newest positions in the topic: a run before this one may have written answers and then died."""
        with KafkaReader(
            Url(self.url.scheme, self.url.hosts, self.url.path, {}, self.url.user, self.url.password)
        ) as reader:
            reader.open(None)
            ends, first = reader.ends(), reader.start()
            position = {p: max(first[p], end - _TAIL) for p, end in ends.items()}
            reader.open(position)
            until = time.monotonic() + 60.0
            while not reader.reached(position, ends):
                if time.monotonic() > until:
                    raise BrokerAway(f"{self.url}: the newest records cannot be read")
                messages = reader.poll(1000, 1.0)
                position = reader.advanced(position, messages)
                for message in messages:
                    with suppress(ValueError, KeyError, TypeError):  # written by something else
                        place = json.loads(bytes(message.value))["position"]  # type: ignore[arg-type]
                        self._written.note(place["source"], place["partition"], place["offset"])

    def send(self, records: Sequence[Record]) -> None:
        if self._name is not None:
            if not self._known:
                self._asked(lambda: self._producer.init_transactions(_SECONDS))
                self._look_back()
                self._known = True
            records = self._written.fresh(records)
            if records and self._open is None:
                self._asked(self._producer.begin_transaction)
                self._open, self._before = [], dict(self._written.last)
        for record in records:
            while True:
                try:
                    self._producer.produce(
                        self.url.path, record.body(), key=f"{record.source}/{record.partition}".encode(),
                        on_delivery=partial(self._arrived, record),
                    )  # fmt: skip
                    break
                except BufferError:  # the queue of the client is full
                    self._producer.poll(0.1)
                except KafkaException as error:
                    raise _raised(self.url, error.args[0]) from error
            if self._open is not None:
                self._open.append(record)
                self._written.note(record.source, record.partition, record.offset)
        self._producer.poll(0)

    def _arrived(self, record: Record, error: Any, _: Any) -> None:
        if error is not None:
            self._failures.append((error, record))

    def flush(self) -> None:
        if self._failed is not None:
            self._repeat()
        left = self._producer.flush(_SECONDS)
        failures, self._failures = self._failures, []
        if failures:
            raised = _raised(self.url, failures[0][0])
            if self._open is not None:
                self._failed = failures[0][0]
            elif isinstance(raised, BrokerAway):
                self.send([record for _, record in failures])  # once more, with the next flush
            raise raised
        if left:
            raise BrokerAway(f"{self.url}: {left} records have not arrived")
        if self._open is not None:
            self._asked(lambda: self._producer.commit_transaction(_SECONDS))
            self._open = None

    def _repeat(self) -> None:
        """Abort the transaction, and write its records in another."""
        self._asked(lambda: self._producer.abort_transaction(_SECONDS))
        self._producer.flush(_SECONDS)  # brings the reports of what was given up
        records, self._open, self._failed, self._failures = self._open or [], None, None, []
        self._written.last = self._before
        self.send(records)

    def close(self) -> None:
        self.flush()
