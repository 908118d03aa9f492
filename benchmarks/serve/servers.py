"""Servers in processes of their own, and the processor time that they take."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from types import TracebackType
from typing import Any

#: seconds for a start or an end
_PATIENCE = 120


class Server:
    """A process that prints `... at http://127.0.0.1:PORT/` when it listens."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        try:
            self.port = self._port()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def _port(self) -> int:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], _PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if " at http://" not in line:
            raise RuntimeError(f"the server did not start: {line!r}")
        return int(line.rstrip().rstrip("/").rpartition(":")[2])

    def processor_seconds(self) -> float:
        """Of all its threads, in user code and in the kernel."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """Resident memory."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, sign: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(sign)
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop(signal.SIGTERM if kind is None else signal.SIGKILL)


def service(store: str, learner: str | None = None, **options: Any) -> Server:
    """`gristmill serve` with one model `m`."""
    words = ["-m", "gristmill", "serve", "--store", store, "--port", "0"]
    if learner is not None:
        words += ["--name", "m", "--learner", learner]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return Server(*words)


def empty() -> Server:
    """The same server with a handler that does nothing."""
    return Server("-m", "benchmarks.serve.empty_handler")


def plain_river(folder: str) -> Server:
    """FastAPI around River's adaptive random forest, with pickle."""
    return Server("-m", "benchmarks.serve.fastapi_river", folder)
