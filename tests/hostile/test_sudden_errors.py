"""An error at a random moment leaves every public learner before the chunk or after it: signals, and a lack of memory.

`make fuzz` tries 500 moments of each (GRISTMILL_MOMENTS), the ordinary tests a few.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sudden

MOMENTS = int(os.environ.get("GRISTMILL_MOMENTS", "6"))
SUPPORT = Path(sudden.__file__).parent


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is interrupted
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("name", sudden.NAMES)
def test_a_signal_beside_a_thread_that_reads_leaves_a_whole_model(name: str, kind: signal.Signals) -> None:
    outcomes = sudden.signalled(name, kind, MOMENTS)
    print(f"{name}\t{kind.name}\t{dict(outcomes)}")
    assert outcomes.total() > 0
    assert set(outcomes) <= {"before", "after"}, outcomes


@pytest.fixture(scope="session")
def allocations(tmp_path_factory: Any) -> Path:
    """The library that makes allocations fail."""
    found = tmp_path_factory.mktemp("allocations") / "allocations.so"
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    subprocess.run(
        [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-o", found, SUPPORT / "allocations.cpp"], check=True
    )
    return found


@pytest.mark.skipif(platform.system() != "Linux", reason="a library is loaded before the others by LD_PRELOAD")
@pytest.mark.parametrize("group", range(4))
def test_an_allocation_that_fails_leaves_a_whole_model(group: int, allocations: Path) -> None:
    names = sudden.NAMES[group::4]
    done = subprocess.run(
        [sys.executable, SUPPORT / "sudden.py", str(2 * MOMENTS), *names],
        env={**os.environ, "LD_PRELOAD": str(allocations), "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr[-2000:])
    outcomes = dict(line.split("\t") for line in done.stdout.splitlines())
    assert list(outcomes) == names
    for name, counts in outcomes.items():
        assert "torn" not in counts, (name, counts)
        assert "lost" not in counts, (name, counts)
        assert "before" in counts, (name, counts)
