"""What a process needs around every command: open standard streams, a standard error that cannot fail, signals.

SIGTERM and SIGHUP end a command as Ctrl-C does: what was learned is saved.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

#: where the context of a command keeps its command line
COMMAND = "gristmill.command"
#: why a command has stopped -> its exit code, 128 and the number of the signal
CODES = {"interrupted": 130, "terminated": 143, "hung up": 129}
_SIGNALS = {"SIGTERM": "terminated", "SIGHUP": "hung up"}


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Standard streams and signals as commands expect them."""
    _open_standard_files()
    before = sys.stderr
    if sys.stderr is None or sys.stderr is sys.__stderr__:  # else it is a stream of the program that calls the command
        sys.stderr = _unfailing()
    try:
        with _signals():
            yield
    finally:
        sys.stderr = before


def _open_standard_files() -> None:
    """A closed standard file is the null device, else the next file that is opened takes its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # open as long as the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process


class _Unfailing(io.RawIOBase):
    """Standard error; a line that cannot be written (a closed pipe, a lost terminal, a full disk) is left out."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return os.isatty(2)

    def write(self, data: Any) -> int:
        try:
            return os.write(2, data)
        except OSError:
            return memoryview(data).nbytes


def _unfailing() -> Any:
    encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(_Unfailing()), encoding, "backslashreplace", line_buffering=True)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """The first SIGTERM or SIGHUP is an interrupt; further ones do not disturb the saving."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = False

    def stop(number: int, _: Any) -> None:
        nonlocal heard
        if not heard:
            heard = True
            raise KeyboardInterrupt(_SIGNALS[signal.Signals(number).name])

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    ours = [
        number for number, handler in before.items() if handler is signal.SIG_DFL
    ]  # nohup ignores SIGHUP: so it stays
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
