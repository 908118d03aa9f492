"""Signals, closed streams and streams that fail: the model is saved as after Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gristmill

#: A shell that runs the tests in the background makes its children ignore Ctrl-C, and nohup makes them ignore SIGHUP.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    "from gristmill.cli import main\nmain()"
)


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 2))
    lines = [f"{i % 5},{a:.3f},{b:.3f},{'p' if a > 0 else 'q'}" for i, (a, b) in enumerate(X.tolist())]
    path = tmp_path / "few.csv"
    path.write_text("k,a,b,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(*arguments):
    return [sys.executable, "-c", PROGRAM, *map(str, arguments)]


def drained(process, terminal=None):
    """Wait until a process has read all of its standard input and asks for more; read what it writes to a terminal."""
    import fcntl
    import struct
    import termios

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        while terminal is not None and select.select([terminal], [], [], 0.0)[0]:
            os.read(terminal, 4096)
        left = struct.unpack("i", fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, b"\0" * 4))[0]
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            asleep = file.read().rpartition(")")[2].split()[0] == "S"
        if not left and asleep:
            time.sleep(0.3)  # what was read last is being learned, or it waits for more
            return
        time.sleep(0.05)
    raise AssertionError("the command does not read its standard input")


ONE, KEYS = ("--learner", "perceptron"), ("--key", "k")


@pytest.mark.parametrize(
    ("number", "code", "why", "more"),
    [
        (signal.SIGTERM, 143, "terminated", ONE),
        (signal.SIGTERM, 143, "terminated", KEYS),
        (signal.SIGHUP, 129, "hung up", KEYS),
        (signal.SIGINT, 130, "interrupted", ONE),
    ],
)
def test_a_signal_saves_what_was_learned(number, code, why, more, table, tmp_path):
    model = tmp_path / "m.gm"
    process = subprocess.Popen(
        command("learn", "-", *more, "--model", model), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    with process:
        rows = table.read_bytes().split(b"\n", 1)
        process.stdin.write(rows[0] + b"\n" + rows[1] * 8)
        process.stdin.flush()
        drained(process)
        process.send_signal(number)
        if number != signal.SIGINT:
            process.send_signal(number)  # the second does not disturb the saving
        said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code, said
    (seen,) = re.findall(rf"stopped after ([\d,]+) events: {why}", said)
    assert f"model: {model} after {seen} events" in said
    seen = int(seen.replace(",", ""))
    assert seen >= 1000
    found = gristmill.load(model)
    assert seen == (found._core_.now if "--key" in more else found.n_seen_)


def test_a_signal_before_anything_was_learned_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        command("learn", "-", "--model", tmp_path / "m.gm"), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        process.stdin.write(b"a,y\n1,2\n")
        process.stdin.flush()
        drained(process)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1].decode()
    assert (process.returncode, said.strip()) == (143, "terminated")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", [2, (0, 1, 2)], ids=str)
def test_closed_standard_streams_do_not_cost_the_model(closed, table, tmp_path):
    model = tmp_path / "m.gm"
    numbers = closed if isinstance(closed, tuple) else (closed,)
    redirect = " ".join(f"{number}>&-" for number in numbers)
    line = f'exec "$@" {redirect}'
    before = table.read_bytes()
    done = subprocess.run(
        ["sh", "-c", line, "sh", *command("learn", table, "--learner", "perceptron", "--model", model)],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert gristmill.load(model).n_seen_ == 600
    assert table.read_bytes() == before


def test_a_closed_standard_input_is_an_empty_file():
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command("learn", "-")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "Error: standard input: the file is empty\n")


@pytest.mark.parametrize("broken", ["pipe", "full"])
def test_a_standard_error_that_fails_does_not_cost_the_model(broken, table, tmp_path):
    model = tmp_path / "m.gm"
    if broken == "pipe":
        ours, theirs = os.pipe()
        os.close(ours)
    else:
        theirs = os.open("/dev/full", os.O_WRONLY)
    try:
        done = subprocess.run(
            command("learn", table, "--key", "k", "--model", model), stdout=subprocess.PIPE, stderr=theirs, check=False
        )
    finally:
        os.close(theirs)
    assert done.returncode == 0
    assert gristmill.load(model)._core_.now == 600


def test_a_terminal_that_goes_away_does_not_cost_the_model(table, tmp_path):
    """The window is closed: SIGHUP comes, and neither standard output nor standard error can be written to."""
    model = tmp_path / "m.gm"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("learn", "-", "--learner", "perceptron", "--model", model), stdin=subprocess.PIPE, stdout=theirs,
        stderr=theirs, start_new_session=True,
    )  # fmt: skip
    with process:
        os.close(theirs)
        rows = table.read_bytes().split(b"\n", 1)
        process.stdin.write(rows[0] + b"\n" + rows[1] * 8)
        process.stdin.flush()
        drained(process, ours)
        os.close(ours)
        process.send_signal(signal.SIGHUP)
        process.wait(timeout=60)
    assert gristmill.load(model).n_seen_ >= 1000


def test_commands_that_a_program_calls_leave_its_signals_and_streams_alone(table):
    from click.testing import CliRunner

    from gristmill.cli import main

    before = signal.getsignal(signal.SIGTERM), sys.stderr
    assert CliRunner().invoke(main, ["learn", str(table), "--learner", "perceptron"]).exit_code == 0
    assert (signal.getsignal(signal.SIGTERM), sys.stderr) == before
