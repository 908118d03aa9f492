"""Servers on the loopback address, one of each kind for all tests here, and a process that starts commands quickly."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.broker_servers import KafkaCluster, MqttServer, RedisServer

ROOT = Path(__file__).parents[2]
_numbers = itertools.count()


def events(count, seed=0):
    """JSON objects with two numbers, a category and a label that depends on them."""
    rng = np.random.default_rng(seed)
    found = []
    for number, (a, b, c) in enumerate(rng.normal(size=(count, 3)).tolist()):
        row = {"id": f"{seed}-{number}", "a": a, "b": b, "hue": "red" if c > 0 else "blue"}
        found.append(json.dumps({**row, "label": "yes" if a * b > 0 else "no"}).encode())
    return found


class Place:
    """A topic on a server, with a fresh name."""

    def __init__(self, kind, server):
        self.kind, self.server = kind, server
        self.topic = f"t{next(_numbers)}"
        if kind == "kafka":
            server.topic(self.topic)

    @property
    def url(self):
        return self.server.url(self.topic)

    def begin(self):
        """MQTT keeps messages for a subscription only once there is one."""
        if self.kind == "mqtt":
            from gristmill.streams import connect

            with connect(self.url) as reader:
                reader.open(None)
                for _ in range(200):
                    if reader._here:
                        break
                    time.sleep(0.02)
                time.sleep(0.3)  # the subscription is on its way

    def produce(self, values):
        self.server.produce(self.topic, values)


@pytest.fixture(scope="session")
def servers():
    with RedisServer() as redis, KafkaCluster() as kafka, MqttServer() as mqtt:
        yield {"redis": redis, "kafka": kafka, "mqtt": mqtt}


@pytest.fixture(params=["kafka", "redis", "mqtt"])
def place(request, servers):
    made = Place(request.param, servers[request.param])
    made.begin()
    return made


class Starter:
    """Runs `gristmill` commands in forks of a process that has imported everything."""

    def __init__(self):
        where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.brokers.starter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=where,
        )

    def start(self, *arguments, log):
        """The process id of a command that has begun."""
        self._process.stdin.write(json.dumps([list(map(str, arguments)), str(log)]).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def wait(self):
        """The exit status of the command that was started last; negative: the signal that ended it."""
        return int(self._process.stdout.readline())

    def run(self, *arguments, log):
        self.start(*arguments, log=log)
        code = self.wait()
        assert code == 0, Path(log).read_text()[-2000:]
        return Path(log).read_text()

    def kill(self, process):
        os.kill(process, signal.SIGKILL)
        return self.wait()

    def close(self):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def starter():
    made = Starter()
    yield made
    made.close()
