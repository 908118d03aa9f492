"""Servers in processes of their own; every wait has an end, and no process outlives its test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from starlette.testclient import TestClient

from gristmill.serve import app
from tests.serve import events

#: seconds after which a wait is an error; a machine under load takes ten for a start
PATIENCE = 60
TEXT = "passive_aggressive(Gaussian(0.5), size=40)"


def pytest_collection_modifyitems(items):
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(180))


class Server:
    """`gristmill serve` on a free port of this machine."""

    def __init__(self, store, *options, model="m"):
        command = [sys.executable, "-m", "gristmill", "serve", "--store", str(store), "--port", "0", *options]
        if model is not None:
            command += ["--name", model, "--learner", TEXT]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        try:
            self.url = self._address()
        except BaseException:
            self.end(signal.SIGKILL)
            raise

    def _address(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, f"the server did not say within {PATIENCE} s where it listens"
        line = self.process.stdout.readline()
        assert " at http://" in line, f"the server ended with {self.process.wait(PATIENCE)} and said {line!r}"
        return line.split(" at ")[1].strip().rstrip("/")

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def end(self, sign=signal.SIGTERM):
        """Send a signal and wait; a process that stays is killed, and that is an error."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise AssertionError(f"the server did not end within {PATIENCE} s of signal {sign}") from None
        finally:
            self.process.stdout.close()
        return code


@pytest.fixture
def start(tmp_path):
    """Starts servers on a store; those that still run at the end are killed."""
    started = []

    def begin(*options, store=tmp_path / "store", model="m"):
        started.append(Server(store, *options, model=model))
        return started[-1]

    yield begin
    for server in started:
        if server.process.poll() is None:
            with contextlib.suppress(AssertionError):
                server.end(signal.SIGKILL)


@pytest.fixture
def until():
    """Waits until a condition holds; an error if it does not come."""

    def wait(condition, what, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
            time.sleep(0.01)
        return found

    return wait


@pytest.fixture
def client(tmp_path):
    """A client of a service within this process, with a model."""
    with TestClient(app(tmp_path / "store")) as found:
        assert found.post("/v1/models/m", json={"learner": events.TEXT}).status_code == 201
        yield found
