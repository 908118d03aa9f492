"""MQTT by paho-mqtt: no positions, so a persistent subscription with quality of service 1 and repetitions dropped."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from .contract import BrokerAway, BrokerError, Message, Position, Reader, Record, Writer, unreached
from .url import Url

_FILES = ("ca_certs", "certfile", "keyfile")  # of TLS


def _client(url: Url, name: str, clean: bool) -> Any:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=clean)
    if url.user is not None:
        client.username_pw_set(url.user, url.password)
    files = url.passed("client.")
    for name in files:
        if url.scheme != "mqtts" or name not in _FILES:
            raise ValueError(
                f"{url}: client.{name} is not known; for mqtts:// there are client.{', client.'.join(_FILES)}"
            )
    if url.scheme == "mqtts":
        try:
            context = ssl.create_default_context(cafile=files.get("ca_certs"))
            if "certfile" in files:
                context.load_cert_chain(files["certfile"], files.get("keyfile"))
        except OSError as error:
            raise ValueError(f"{url}: {', '.join(files.values())}: {error}") from error
        client.tls_set_context(context)
    client.reconnect_delay_set(1, 8)
    return client


def _connect(url: Url, client: Any) -> None:
    host, port = url.address(8883 if url.scheme == "mqtts" else 1883)
    try:
        client.connect(host, port, keepalive=30)
    except OSError as error:
        raise unreached(url, error) from error
    client.loop_start()


_SECONDS = 10.0  # for one answer of the broker


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=8).hexdigest()


class MqttReader(Reader):
    """A subscription. The position is how many messages were read, and which of them the broker may send again.

    A message is acknowledged when the model that learned it is saved. What was saved and not yet acknowledged comes again
    after a crash; it is dropped by its packet number and content, or by the column of the option `id`.
    """

    options = ("client_id", "id", "remember", "window", "idle")

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self.window = url.count("window", 20)
        self.idle = float(url.count("idle", 2))
        self._remember = url.count("remember", 1000)
        self._column = url.options.get("id")
        self._client = _client(url, url.options.get("client_id", f"gristmill-{_digest(url.name.encode())}"), False)
        self._client.manual_ack_set(True)
        self._client.on_connect, self._client.on_message = self._connected, self._arrived
        self._client.on_subscribe, self._client.on_disconnect = self._subscribed, self._disconnected
        self._change = threading.Condition()
        self._refused: str | None = None
        self._here = False
        self._begun = False
        self._arrivals: deque[Any] = deque()  # packets that were not looked at yet
        self._unsaved: deque[tuple[Message, Any, str]] = deque()  # read, and not acknowledged; oldest first
        self._again: deque[Message] = deque()  # of them, those to be read once more after `open`
        self._met: OrderedDict[str, None] = OrderedDict()  # digests of what was read last
        self._count = 0

    # ---- in the thread of the client ------------------------------------------------------------------------------

    def _connected(self, client: Any, _: Any, flags: Any, reason: Any, __: Any) -> None:
        with self._change:
            self._refused = f"the connection: {reason}" if reason.is_failure else None
            self._here = not reason.is_failure and flags.session_present  # a session that was kept has its subscription
            self._change.notify_all()
            lost = self._count and not reason.is_failure and not flags.session_present
        if lost:
            self.say(f"{self.url}: the broker has lost the session; messages that it kept for this client are lost")
        if not reason.is_failure:
            client.subscribe(self.url.path, qos=1)

    def _subscribed(self, _: Any, __: Any, ___: Any, reasons: Sequence[Any], ____: Any) -> None:
        with self._change:
            self._refused = f"the subscription: {reasons[0]}" if reasons[0].is_failure else None
            self._here = not reasons[0].is_failure
            self._change.notify_all()

    def _disconnected(self, *_: Any) -> None:
        with self._change:
            self._here = False

    def _arrived(self, _: Any, __: Any, packet: Any) -> None:
        with self._change:
            self._arrivals.append((packet, time.time()))
            self._change.notify_all()

    # ---- in the thread of the reader --------------------------------------------------------------------------------

    def open(self, position: Position | None) -> None:
        known = (position or {}).get("", {"count": 0, "met": []})
        self._count = int(known["count"])
        self._again = deque(entry[0] for entry in self._unsaved if int(entry[0].offset) >= self._count)
        if self._again:
            self._count = int(self._again[-1].offset) + 1
        self._met = OrderedDict.fromkeys(known["met"])
        for entry in self._unsaved:
            self._met[entry[2]] = None
        if not self._begun:
            _connect(self.url, self._client)
            self._begun = True
        with self._change:  # before the subscription holds, the broker keeps nothing for this client
            self._change.wait_for(lambda: self._here or self._refused is not None, _SECONDS)
            self._refuse()
            if not self._here:
                raise BrokerAway(f"{self.url}: the subscription is not confirmed")

    def _refuse(self) -> None:
        if self._refused is not None:
            raise BrokerError(f"{self.url}: the broker refuses {self._refused}")

    def start(self) -> Position:
        first = int(self._again[0].offset) if self._again else self._count
        again = {entry[2] for entry in self._unsaved if int(entry[0].offset) >= first}
        return {"": {"count": first, "met": [mark for mark in self._met if mark not in again]}}

    def poll(self, most: int, wait: float) -> list[Message]:
        found: list[Message] = []
        while self._again and len(found) < most:
            found.append(self._again.popleft())
        with self._change:
            if not found and not self._arrivals:
                self._change.wait(wait)
            self._refuse()
            if not self._arrivals and not found and not self._here:
                raise BrokerAway(f"{self.url}: there is no connection")
            packets = [self._arrivals.popleft() for _ in range(min(most - len(found), len(self._arrivals)))]
        for packet, moment in packets:
            mark = self.snapshot(packet)
            # A packet number is free again once it is acknowledged, so only a packet that says so is a repetition.
            if mark in self._met and (packet.dup or self._column is not None):
                if all(mark != entry[2] for entry in self._unsaved):  # it is in the saved model
                    self._client.ack(packet.mid, packet.qos)
                continue
            self._met.pop(mark, None)
            message = Message("", self._count, packet.payload, None, moment, None, packet.topic)
            self._count += 1
            self._met[mark] = None
            self._unsaved.append((message, packet, mark))
            found.append(message)
        return found

    def snapshot(self, packet: Any) -> str:
        """By what a repetition is known: the value of the column `id`, or packet number and content."""
        if self._column is not None:
            try:
                return _digest(json.dumps(json.loads(packet.payload)[self._column]).encode())
            except (ValueError, KeyError, TypeError):
                pass  # a bad message: it goes to the dead letters, by packet number and content
        return _digest(b"%d " % packet.mid + packet.topic.encode() + b" " + packet.payload)

    def advanced(self, position: Position, messages: Sequence[Message]) -> Position:
        if not messages:
            return position
        count = int(messages[-1].offset) + 1
        marks = {int(entry[0].offset): entry[2] for entry in self._unsaved}
        known = position.get("", {"met": []})["met"]
        met = [*known, *(marks[int(m.offset)] for m in messages if int(m.offset) in marks)][-self._remember :]
        return {"": {"count": count, "met": met}}

    def behind(self, position: Position) -> dict[str, float]:
        return {"messages": float(len(self._arrivals))}

    def acknowledge(self, position: Position) -> None:
        count = position.get("", {"count": 0})["count"]
        while self._unsaved and int(self._unsaved[0][0].offset) < count:
            _, packet, _ = self._unsaved.popleft()
            self._client.ack(packet.mid, packet.qos)
        while len(self._met) > self._remember + len(self._unsaved):
            self._met.popitem(last=False)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class MqttWriter(Writer):
    """A topic, with quality of service 1: at least once."""

    options = ("client_id",)

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        if "+" in url.path or "#" in url.path:
            raise ValueError(f"{url}: one topic can be written to; + and # are for reading")
        self._client = _client(url, url.options.get("client_id", ""), True)
        self._client.max_queued_messages_set(0)
        self._begun = False
        self._sent: list[Any] = []

    def send(self, records: Sequence[Record]) -> None:
        if not self._begun:
            _connect(self.url, self._client)
            self._begun = True
        self._sent += [self._client.publish(self.url.path, record.body(), qos=1) for record in records]

    def flush(self) -> None:
        until = time.monotonic() + _SECONDS
        for sent in self._sent:
            try:
                sent.wait_for_publish(max(0.0, until - time.monotonic()))
            except (RuntimeError, ValueError) as error:
                raise BrokerAway(f"{self.url}: {error}") from error
            if not sent.is_published():
                raise BrokerAway(f"{self.url}: records have not arrived")
        self._sent = []

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._client.disconnect()
            self._client.loop_stop()
