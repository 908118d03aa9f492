"""Servers on the loopback address, one of each kind for all tests here, and a process that starts commands quickly.

Every wait has a bound: a test that exceeds its time fails with the stacks of all threads, and the next one runs.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from benchmarks.broker_servers import KafkaCluster, MqttServer, RedisServer

ROOT = Path(__file__).parents[2]
CHAOS = int(os.environ.get("GRISTMILL_CHAOS", 0))
SECONDS = 90 + 10 * CHAOS  # of a test; it takes one to five on two idle cores
_numbers = itertools.count()


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(SECONDS, method="signal"))


@pytest.fixture(autouse=True)
def bounded():
    """A signal cannot interrupt a client that waits inside C; then the process ends, and pytest-xdist starts another."""
    faulthandler.dump_traceback_later(SECONDS + 60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def within(feed, seconds=40.0):
    """The batches of a feed, for so long; after that an error."""
    timer = threading.Timer(seconds, feed.stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield from feed.batches()
        if not timer.is_alive():
            raise TimeoutError(f"the feed has not ended within {seconds:.0f} s: {feed.counts}, {feed.position}")
    finally:
        timer.cancel()


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
        if kind == "lines":
            server.produce(self.topic, [])

    @property
    def url(self):
        return self.server.url(self.topic)

    def begin(self):
        """MQTT keeps messages for a subscription only once there is one."""
        if self.kind == "mqtt":
            from gristmill.streams import connect

            with connect(self.url) as reader:
                reader.open(None)

    def produce(self, values):
        self.server.produce(self.topic, values)


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    lines = LinesServer(tmp_path_factory.mktemp("lines"))
    with RedisServer() as redis, KafkaCluster() as kafka, MqttServer() as mqtt:
        yield {"redis": redis, "kafka": kafka, "mqtt": mqtt, "lines": lines}


@pytest.fixture(params=["kafka", "redis", "mqtt", "lines"])
def place(request, servers):
    made = Place(request.param, servers[request.param])
    made.begin()
    return made


class LinesServer:
    """Files of lines that `lines_broker.py` reads: a broker that the package does not know."""

    def __init__(self, folder):
        from gristmill.streams.brokers import register

        self._folder = folder
        register("lines", "tests.brokers.lines_broker", "LinesReader", "LinesWriter")

    def url(self, topic):
        return f"lines://here{self._folder / topic}"

    def produce(self, topic, values):
        with open(self._folder / topic, "ab") as file:
            file.write(b"".join(value + b"\n" for value in values))


class Starter:
    """Runs `gristmill` commands in forks of a process that has imported everything."""

    def __init__(self):
        where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.brokers.starter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # so that select tells whether there is a line
            cwd=ROOT,
            env=where,
        )
        self._running = None

    def _line(self, seconds):
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._process.stdout.readline() if ready else None

    def start(self, *arguments, log):
        """The process id of a command that has begun; it ends by itself after the time of a test."""
        self._log = log
        self._process.stdin.write(json.dumps([list(map(str, arguments)), str(log), SECONDS]).encode() + b"\n")
        line = self._line(60)  # the first comes when everything is imported
        assert line, "the process that starts commands does not answer"
        self._running = int(line)
        return self._running

    def wait(self, seconds=60):
        """The exit status of the command that was started last; negative: the signal that ended it."""
        line = self._line(seconds)
        if line is None:
            self.end()
            raise TimeoutError(f"still running after {seconds} s: {Path(self._log).read_text()[-2000:]}")
        self._running = None
        return int(line)

    def end(self):
        """Kill the command that is still running, if there is one."""
        if self._running is not None:
            os.kill(self._running, signal.SIGKILL)
            self._running = None
            self._line(10)

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
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def started():
    made = Starter()
    yield made
    made.close()


@pytest.fixture
def starter(started):
    """Leaves no command running behind a test that failed."""
    yield started
    started.end()
