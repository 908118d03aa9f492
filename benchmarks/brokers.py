"""`python -m benchmarks.brokers`: what learning from a broker costs beside the bare client, and beside a file.

Three processes read the same events, JSON objects with eight numbers and a label: the bare client of the broker, which only
reads and parses; `gristmill learn` on the broker; `gristmill learn` on a file of the events. Runs of the three alternate,
and the best of each counts. Time and processor time are those between the first message and the end, without imports. The
delay is from handing an event to the client of the producer until its prediction arrives at a client of the topic of
answers. All servers are on 127.0.0.1. Kafka is the mock cluster of librdkafka.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from .broker_servers import KafkaCluster, MqttServer, RedisServer
from .measure import machine, show

SERVERS: dict[str, Any] = {"kafka": KafkaCluster, "redis": RedisServer, "mqtt": MqttServer}
LEARNER = ("--learner", "passive_aggressive(size=100)", "--kernel", "Gaussian(0.1)", "--target", "label")
#: MQTT: unacknowledged messages that both servers allow. Kafka: the mock cluster answers a fetch without messages after this
#: time, and not when one comes.
OPTIONS = {"mqtt": "?window=1000", "kafka": "?client.fetch.wait.max.ms=5"}
PARTITIONS = 4  # of a topic of Kafka; the mock cluster keeps 5 MB of each
_SECONDS = 300  # of one measurement


def events(count: int) -> list[bytes]:
    rng = np.random.default_rng(0)
    found = []
    for number, row in enumerate(rng.normal(size=(count, 8)).round(6).tolist()):
        label = int(row[0] * row[1] > 0)
        found.append(
            json.dumps({"id": number, **{f"x{place}": x for place, x in enumerate(row)}, "label": label}).encode()
        )
    return found


# ---- in a process of its own -----------------------------------------------------------------------------------------


def read_kafka(url: Any, count: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": url.hosts, "group.id": "bare", "fetch.wait.max.ms": 50, "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(url.path, partition, 0) for partition in range(PARTITIONS)])
    seen, until = 0, time.monotonic() + _SECONDS
    while seen < count and time.monotonic() < until:
        for message in consumer.consume(1000, 1.0):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            json.loads(message.value())
            seen += 1
    consumer.close()


def read_redis(url: Any, count: int) -> None:
    import redis

    host, _, port = url.hosts.partition(":")
    stream, last, seen = url.path.partition("/")[2], b"0-0", 0
    with redis.Redis(host, int(port)) as client:
        until = time.monotonic() + _SECONDS
        while seen < count and time.monotonic() < until:
            for _, entries in client.xread({stream: last}, count=1000, block=1000) or ():
                for last, fields in entries:  # noqa: B007  # the last one is where the next call begins
                    json.loads(fields[b"value"])
                    seen += 1


def read_mqtt(url: Any, count: int) -> None:
    import paho.mqtt.client as paho

    done = threading.Event()
    seen = 0

    def arrived(_: Any, __: Any, packet: Any) -> None:
        nonlocal seen
        json.loads(packet.payload)
        seen += 1
        if seen == count:
            done.set()

    host, _, port = url.hosts.partition(":")
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="bare", clean_session=False)
    client.username_pw_set(url.user, url.password)
    client.on_message = arrived
    client.connect(host, int(port))
    client.subscribe(url.path, qos=1)
    client.loop_start()
    done.wait(_SECONDS)
    client.disconnect()
    client.loop_stop()


def measured(what: str, address: str, count: int) -> dict[str, float]:
    """Wall and processor time of reading, or of learning, to the end."""
    from gristmill.streams.brokers.url import parse

    if what == "bare":
        url = parse(address)
        read = {"kafka": read_kafka, "redis": read_redis, "mqtt": read_mqtt}[url.scheme]
        began, work = time.perf_counter(), time.process_time()
        read(url, count)
    else:
        import gristmill.cli.learn
        import gristmill.evaluate.live
        import gristmill.prepared  # noqa: F401
        from gristmill.cli.app import main

        with tempfile.TemporaryDirectory() as folder:
            more = () if what == "file" else ("--until-end", "--limit", str(count))
            first = Path(folder, "first.jsonl")
            first.write_bytes(b"\n".join(events(100)))
            learn = ["learn", *LEARNER, "--drop", "id", "--model"]
            main([*learn, f"{folder}/first.safetensors", str(first)], prog_name="gristmill", standalone_mode=False)
            command = [*learn, f"{folder}/m.safetensors", address, *more]
            began, work = time.perf_counter(), time.process_time()
            main(command, prog_name="gristmill", standalone_mode=False)
    return {"seconds": time.perf_counter() - began, "processor": time.process_time() - work}


def in_process(what: str, address: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.brokers", "--child", what, address, "--events", str(count)]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS + 60, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# ---- throughput ------------------------------------------------------------------------------------------------------


def subscribe(server: MqttServer, topic: str, count: int) -> None:
    """MQTT keeps messages for those who have subscribed before."""
    import paho.mqtt.client as paho

    from gristmill.streams import connect

    with connect(server.url(topic)) as reader:
        reader.open(None)
    ready = threading.Event()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="bare", clean_session=False)
    client.username_pw_set("reader", "x")
    client.on_subscribe = lambda *_: ready.set()
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    client.subscribe(topic, qos=1)
    if not ready.wait(10):
        raise RuntimeError(f"no subscription to {topic} for {count} events")
    client.disconnect()
    client.loop_stop()


def throughput(kind: str, server: Any, count: int, repeats: int) -> dict[str, Any]:
    values = events(count)
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.jsonl")
        path.write_bytes(b"\n".join(values) + b"\n")
        for turn in range(repeats):
            topic = f"bench{turn}"
            if kind == "kafka":
                server.topic(topic, PARTITIONS)
                server.produce(topic, values, PARTITIONS)
            else:
                if kind == "mqtt":
                    subscribe(server, topic, count)
                server.produce(topic, values)
            for what, address in (("bare", server.url(topic)), ("learn", server.url(topic)), ("file", str(path))):
                found = in_process(what, address + OPTIONS.get(kind, "") if what == "learn" else address, count)
                for name, value in found.items():
                    known = best.setdefault(what, {})
                    known[name] = min(value, known.get(name, value))
    rate = {what: count / found["seconds"] for what, found in best.items()}
    cost = {what: 1e6 * found["processor"] / count for what, found in best.items()}
    return {
        "broker": kind, "events": count,
        "bare, events/s": round(rate["bare"]), "learn, events/s": round(rate["learn"]),
        "file, events/s": round(rate["file"]),
        "learn / bare": rate["learn"] / rate["bare"], "learn / file": rate["learn"] / rate["file"],
        "bare, us": cost["bare"], "learn, us": cost["learn"], "file, us": cost["file"],
    }  # fmt: skip


# ---- delay -----------------------------------------------------------------------------------------------------------


class Producer:
    """Sends one event at a time with the client of a broker."""

    def __init__(self, kind: str, server: Any, topic: str) -> None:
        self._kind, self._topic = kind, topic
        if kind == "kafka":
            from confluent_kafka import Producer as Kafka

            self._client: Any = Kafka({"bootstrap.servers": server.hosts, "linger.ms": 0})
        elif kind == "redis":
            import redis

            self._client = redis.Redis(port=server.port)
        else:
            import paho.mqtt.client as paho

            self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
            self._client.username_pw_set("writer", "x")
            self._client.connect("127.0.0.1", server.port)
            self._client.loop_start()

    def send(self, value: bytes) -> None:
        if self._kind == "kafka":
            self._client.produce(self._topic, value)
            self._client.poll(0)
        elif self._kind == "redis":
            self._client.xadd(self._topic, {"value": value})
        else:
            self._client.publish(self._topic, value, qos=1)

    def close(self) -> None:
        if self._kind == "kafka":
            self._client.flush(10)
        elif self._kind == "redis":
            self._client.close()
        else:
            self._client.disconnect()
            self._client.loop_stop()


class Watcher:
    """Notes when each answer arrives, in a thread."""

    def __init__(self, url: str) -> None:
        self.moments: dict[Any, float] = {}  #: offset of the event -> when its answer came
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[url], daemon=True)
        self._ready = threading.Event()

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the answers cannot be read")

    def _run(self, url: str) -> None:
        from gristmill.streams import connect

        with connect(url) as reader:
            reader.open(None)
            self._ready.set()
            position = reader.start()
            while not self._stop.is_set():
                messages = reader.poll(1000, 0.1)
                now = time.perf_counter()
                for message in messages:
                    self.moments.setdefault(json.loads(bytes(message.value))["position"]["offset"], now)  # type: ignore[arg-type]
                position = reader.advanced(position, messages)
                reader.acknowledge(position)

    def wait(self, count: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        while len(self.moments) < count and time.monotonic() < until:
            time.sleep(0.02)
        if len(self.moments) < count:
            raise RuntimeError(f"{len(self.moments)} of {count} answers came within {seconds:.0f} s")

    def close(self) -> None:
        self._stop.set()
        self._thread.join(30)


def delay(kind: str, server: Any, rate: int, seconds: int) -> dict[str, Any]:
    """At a constant rate, after a hundred events that warm everything up."""
    from gristmill.streams import connect

    warm = 100
    values = events(warm + rate * seconds)
    topic, answers = "delay", "delay-answers"
    if kind == "kafka":
        server.topic(topic)
        server.topic(answers)
    if kind == "mqtt":
        with connect(server.url(topic)) as reader:
            reader.open(None)
    watcher = Watcher(server.url(answers) + OPTIONS.get(kind, ""))
    watcher.start()
    producer, sent = Producer(kind, server, topic), list[float]()
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, "log"), "wb") as log:
        command = [
            sys.executable, "-m", "gristmill", "learn", server.url(topic) + OPTIONS.get(kind, ""), *LEARNER, "--drop", "id",
            "--model", f"{folder}/m.safetensors", "--to", server.url(answers), "--max-wait", "5ms",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for value in values[:warm]:
                producer.send(value)
            watcher.wait(warm, 60)
            began = time.perf_counter()
            for number, value in enumerate(values[warm:]):
                rest = began + number / rate - time.perf_counter()
                if rest > 0:
                    time.sleep(rest)
                sent.append(time.perf_counter())
                producer.send(value)
            watcher.wait(len(values), 60)
        finally:
            process.terminate()
            process.wait(60)
            producer.close()
            watcher.close()
    came = list(watcher.moments.values())[warm:]  # one partition: answers come in the order of their events
    waits = 1000 * np.subtract(came, sent)
    p50, p99 = np.percentile(waits, [50, 99]).tolist()
    real = (len(sent) - 1) / (sent[-1] - sent[0])
    return {"broker": kind, "events/s": round(real), "p50, ms": p50, "p99, ms": p99, "longest, ms": float(waits.max())}


@click.command()
@click.option(
    "--broker", "kinds", multiple=True, type=click.Choice(list(SERVERS)), help="May be repeated; all otherwise."
)
@click.option("--events", "count", default=100_000, show_default=True, help="Of MQTT a twentieth.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--rate", default=1000, show_default=True, help="Events a second for the delay.")
@click.option("--seconds", default=10, show_default=True, help="For which the delay is measured.")
@click.option("--child", nargs=2, hidden=True)
def main(kinds: tuple[str, ...], count: int, repeats: int, rate: int, seconds: int, child: Any) -> None:
    """Throughput, processor time and delay of learning from brokers."""
    if child:
        print(json.dumps(measured(*child, count)))
        return
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    fast, late = [], []
    for kind in kinds or tuple(SERVERS):
        with SERVERS[kind]() as server:
            fast.append(throughput(kind, server, count // 20 if kind == "mqtt" else count, repeats))
            late.append(delay(kind, server, rate, seconds))
    show("events a second by the clock, and microseconds of processor time an event", fast)
    show("from producer to prediction", late)


if __name__ == "__main__":
    main()
