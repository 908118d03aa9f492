"""Files that are replaced as a whole: modes, full disks, parts that killed programs left, two programs at once."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gristmill
from gristmill import persist
from gristmill.evaluate.report import Report
from gristmill.persist import atomic

PART = re.compile(r"\..+\.[0-9a-f]{16}\.part", re.DOTALL)
#: the module alone, which imports nothing of the package: a program that begins quickly
ALONE = f"""
import importlib.util, os, sys, time
from pathlib import Path
spec = importlib.util.spec_from_file_location("atomic", {str(atomic.__file__)!r})
atomic = importlib.util.module_from_spec(spec)
spec.loader.exec_module(atomic)
"""


def model():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return gristmill.perceptron(gristmill.Gaussian(1.0)).fit(X, X[:, 0] > 0)


#: everything public that replaces a file
WRITERS = {
    "model": lambda path: model().save(path),
    "report": lambda path: Report("A run").text("words " * 2000).write(path),
    "checkpoint": lambda path: gristmill.evaluate.prequential(
        gristmill.perceptron(gristmill.Gaussian(1.0)), _events(), checkpoint=path, drift=False
    ),
}


def _events():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return X, X[:, 0] > 0


def parts(folder):
    return [path.name for path in folder.iterdir() if PART.fullmatch(path.name)]


@pytest.mark.parametrize("name", ["model", "report"])
def test_a_folder_that_does_not_exist_is_named(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder to write to") as caught:
        WRITERS[name](tmp_path / "none" / "x")
    assert caught.value.filename == str(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664])
@pytest.mark.parametrize("name", ["model", "report"])
def test_a_file_that_is_replaced_keeps_its_mode(name, mode, tmp_path):
    path = tmp_path / "x"
    WRITERS[name](path)
    path.chmod(mode)
    WRITERS[name](path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = []
    real = os.open

    def spied(name, flags, mode=0o777, **how):
        handle = real(name, flags, mode, **how)
        if flags & os.O_CREAT:
            seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return handle

    monkeypatch.setattr(os, "open", spied)
    persist.write(path, b"new")
    assert seen == [0o600]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_full_disk_leaves_what_was_there(name, step, tmp_path, monkeypatch):
    path = tmp_path / "x"
    WRITERS[name](path)
    if name == "checkpoint":  # a run that finds one goes on from it and has nothing to write
        for file in list(tmp_path.iterdir()):
            file.unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(atomic.os, "fdopen", lambda handle, *_: _Full(handle))
        else:
            patch.setattr(atomic.os, step, full)
        with pytest.raises(OSError, match="No space left"):
            WRITERS[name](path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


class _Full:
    """A file on a disk that has room for ten bytes."""

    def __init__(self, handle):
        self._file = open(handle, "wb")  # noqa: SIM115  # closed by __exit__

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def fileno(self):
        return self._file.fileno()

    def write(self, data):
        self._file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


_LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from gristmill.evaluate.report import Report
page = Report("A run").text("words " * 20000)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    page.write(sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_a_report_that_does_not_fit_leaves_the_old_one(tmp_path):
    path = tmp_path / "r.html"
    Report("old").write(path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", _LIMITED, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "File too large"
    assert path.read_bytes() == before
    assert parts(tmp_path) == []


_SLOW = f"""{ALONE}
real = os.fsync
def slow(handle):
    real(handle)
    print("written", flush=True)
    sys.stdin.readline()
atomic.os.fsync = slow
atomic.write(Path(sys.argv[1]), b"slow" * 1000)
"""


def _slow(path):
    run = subprocess.Popen([sys.executable, "-c", _SLOW, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"written\n"
    return run


@pytest.mark.parametrize("name", ["m.gm", "m[1].gm", "m*", "m\nn"])
def test_the_next_save_removes_what_a_killed_one_has_left(name, tmp_path):
    path = tmp_path / name
    kept = [
        f".{name}.notes.part",
        f".{name}.0123456789abcdef.part.bak",
        f".x{name}.0123456789abcdef.part",
        f"{name}.part",
    ]
    for other in kept:
        (tmp_path / other).write_bytes(b"mine")
    run = _slow(path)
    assert len(parts(tmp_path)) == 2
    run.kill()
    run.wait()
    run.stdin.close()
    run.stdout.close()
    assert len(parts(tmp_path)) == 2
    model().save(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*kept, name])
    assert gristmill.load(path).n_seen_ == 60


def test_a_save_beside_another_one_leaves_its_part_alone(tmp_path):
    path = tmp_path / "m.gm"
    run = _slow(path)
    for _ in range(3):
        model().save(path)
    assert len(parts(tmp_path)) == 1
    run.communicate(b"go on\n" * 9, timeout=60)
    assert run.returncode == 0
    assert path.read_bytes() == b"slow" * 1000
    assert parts(tmp_path) == []


_MANY = f"""{ALONE}
for number in range(150):
    atomic.write(Path(sys.argv[1]), sys.argv[2].encode() * 5000)
"""


def test_two_programs_that_save_one_file_never_tear_it(tmp_path):
    path = tmp_path / "m.gm"
    runs = [subprocess.Popen([sys.executable, "-c", _MANY, str(path), letter]) for letter in "ab"]
    seen = set()
    while any(run.poll() is None for run in runs):
        if path.exists():
            data = path.read_bytes()
            assert data in (b"a" * 5000, b"b" * 5000)
            seen.add(data[:1])
        time.sleep(0.001)
    assert [run.returncode for run in runs] == [0, 0]
    assert seen == {b"a", b"b"}
    assert parts(tmp_path) == []


def test_kills_during_a_save_leave_the_old_or_the_new_model(tmp_path):
    path = tmp_path / "m.gm"
    rng = np.random.default_rng(int(os.environ.get("GRISTMILL_SEED", "0")))
    for _ in range(int(os.environ.get("GRISTMILL_KILLS", "6"))):
        run = subprocess.Popen([sys.executable, "-c", _MANY.replace("150", "10**9"), str(path), "c"])
        while not path.exists():
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0, 0.02)))
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert path.read_bytes() == b"c" * 5000
        assert len(parts(tmp_path)) <= 1
        model().save(path)
        assert gristmill.load(path).n_seen_ == 60
        assert parts(tmp_path) == []
        path.unlink()


def test_a_path_in_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        persist.write(Path(tmp_path / "no" / "x"), b"")
