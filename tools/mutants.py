"""Change the code one place at a time and run the nearest tests: a change that no test notices is a survivor.

`python tools/mutants.py [FILE ...] --count 20 --minutes 55` draws `count` places of each file. Files of the package are
copied and changed; files of the core are compiled once, with all their places, which are switched on one at a time
(mutant_switch.hpp). The tests run once without a change, which shows the places that each of them reaches. Then each change
is tried with the tests that reach it, the quickest first, in a process that has imported everything but gristmill.
Survivors are printed, and the exit code is 1 where fewer than 85 % of all were killed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from code_changes import Change, python_changes, switched

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
WANTED = 0.85
SECONDS = 60.0  # of the tests of one change, when nothing is changed
MODULES = "numpy scipy.sparse scipy.stats sklearn.utils.estimator_checks pandas pyarrow safetensors.numpy sqlite3"

FLEETS = "tests/fleets"
RACE = "tests/race/test_race_twin.py tests/race/test_race.py tests/race/test_mixture.py tests/prepared/test_memory.py"
ADAPT = "tests/learners/test_probabilities.py tests/learners/test_intervals.py tests/race/test_mixture.py"
TABLE = "tests/streams/test_table.py tests/prepared tests/streams/test_streams.py"
LOG = "tests/cluster/test_cluster_parts.py tests/cluster/test_cluster_shards.py"
#: file below src/gristmill or src/core -> its nearest tests
FILES = {
    "prepared/pipeline.py": "tests/prepared tests/race/test_widening_races.py",
    "prepared/target_scaler.py": "tests/prepared",
    "streams/relevance.py": "tests/prepared",
    "streams/tables/schema.py": TABLE,
    "streams/tables/table.py": TABLE,
    "streams/tables/layout.py": TABLE,
    "merging/learners.py": "tests/merging",
    "merging/races.py": "tests/merging",
    "merging/terms.py": "tests/merging",
    "fleets/fleet.py": FLEETS,
    "fleets/keyed.py": FLEETS,
    "fleets/key_means.py": FLEETS,
    "fleets/spill.py": FLEETS,
    "cluster/shards/log.py": LOG,
    "cluster/shards/segments.py": LOG,
    "cluster/shards/snapshots.py": LOG,
    "mixture/mixture.cpp": f"{RACE} {ADAPT} tests/merging",
    "adapt/calibration.hpp": f"{ADAPT} {FLEETS} tests/race tests/merging",
    "adapt/intervals.hpp": f"{ADAPT} {FLEETS} tests/race tests/merging tests/prepared/test_target_scaler.py",
    "race/memory_shares.cpp": RACE,
    "race/merging.cpp": "tests/merging",
    "pipeline/relevance.cpp": "tests/prepared tests/race",
    "pipeline/table.cpp": TABLE,
    "fleet/fleet.cpp": FLEETS,
    "fleet/merging.hpp": FLEETS,
    "keyed/keyed.cpp": FLEETS,
    "keyed/records.cpp": FLEETS,
    "keyed/eviction.hpp": FLEETS,
    "keyed/expiry.hpp": FLEETS,
}
#: an editable install would answer in place of the copy
SITE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""


class Reached:
    """A plugin of pytest: the places that each test reaches, and its seconds."""

    def __init__(self, path: Path, core: dict[str, range]) -> None:
        self.path, self.core = str(path), core
        self.lines: set[int] = set()
        self.always: set[int] = set()  # places that are reached before any test
        self.tests: dict[str, tuple[float, set[int]]] = {}
        self.failed: set[str] = set()
        self._bytes: Any = None

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        self.lines.add(frame.f_lineno)
        return self._trace

    def _begin(self) -> None:
        if not self.core:
            threading.settrace(self._trace)
            sys.settrace(self._trace)

    def _taken(self) -> set[int]:
        """What was reached since the last time."""
        if not self.core:
            sys.settrace(None)
            threading.settrace(None)
            found, self.lines = self.lines, set()
            return found
        if self._bytes is None:
            library = ctypes.CDLL(importlib.import_module("gristmill._core").__file__ or "")
            library.mutants_reached.restype = ctypes.c_void_p
            self._bytes = (ctypes.c_ubyte * (1 << 16)).from_address(library.mutants_reached())
        found = {place for places in self.core.values() for place in places if self._bytes[place]}
        ctypes.memset(self._bytes, 0, 1 << 16)
        return found

    def pytest_sessionstart(self) -> None:
        self._begin()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        if not self.tests:
            self.always |= self._taken()
        self._taken()
        self._begin()
        start = time.monotonic()
        yield
        self.tests[item.nodeid] = time.monotonic() - start, self._taken()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def _run_tests(folder: Path, tests: list[str], plugin: Reached | None, place: int) -> None:
    os.setsid()
    with open(folder / "output", "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(ROOT)
    exec(SITE, {})
    sys.path[:] = [str(folder), *(entry for entry in sys.path if entry != str(ROOT / "src"))]
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    if place >= 0:
        library = ctypes.CDLL(importlib.import_module("gristmill._core").__file__ or "")
        library.mutants_switch(place)
    plain = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        *(["-x"] if plugin is None else []),
        *tests,
    ]
    code = int(pytest.main(plain, plugins=[plugin] if plugin is not None else []))
    with open(folder / "answer", "wb") as file:
        pickle.dump((code, (plugin.tests, plugin.failed, plugin.always) if plugin is not None else None), file)


def in_child(folder: Path, tests: list[str], seconds: float, plugin: Reached | None = None, place: int = -1) -> Any:
    """The exit code of pytest in a process of its own, or what the plugin saw; None if it takes too long or crashes."""
    answer = folder / "answer"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        try:
            _run_tests(folder, tests, plugin, place)
        except BaseException:  # the child must never go on as its parent does
            traceback.print_exc()
        finally:
            os._exit(70)
    end = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what tests have left running
    if not answer.exists():
        return None
    with open(answer, "rb") as file:
        return pickle.load(file)


class Report:
    """Counts, and the survivors."""

    def __init__(self) -> None:
        self.killed = self.total = 0

    def module(self, name: str, killed: int, total: int, unreached: int) -> None:
        self.killed, self.total = self.killed + killed, self.total + total
        print(f"{name}: {killed} of {total} killed, {unreached} of the others are reached by no test", flush=True)


def tried(
    name: str,
    folder: Path,
    changes: list[Change],
    plugin: Reached,
    end: float,
    apply: Callable[[Change], int],
    report: Report,
) -> None:
    """Each change against the tests that reach it."""
    start = time.monotonic()
    seen = in_child(folder, FILES[name].split(), 1200.0, plugin)
    if seen is None or not seen[1][0]:
        print(f"{name}: its tests cannot be run: {(folder / 'output').read_text()[-300:]}", flush=True)
        return
    tests, failed, always = seen[1]
    usable = {test: found for test, found in tests.items() if test not in failed}
    print(f"{name}: {len(usable)} tests in {time.monotonic() - start:.0f} s", flush=True)
    for test in sorted(failed):
        print(f"{name}: left out, for it fails without a change: {test}", flush=True)
    killed = total = unreached = 0
    for change in changes:
        if time.monotonic() > end:
            break
        key = change.place if plugin.core else change.line
        near = sorted((took, test) for test, (took, places) in usable.items() if key in places or key in always)
        if not near and not plugin.core:  # perhaps in a process that a test starts
            near = sorted((took, test) for test, (took, _) in usable.items() if "process" in test or "ray" in test)
        chosen, whole = [], 0.0
        for took, test in near:
            if chosen and whole + took > SECONDS:
                break
            chosen.append(test)
            whole += took
        total += 1
        outcome = (0, None)
        if chosen:
            place = apply(change)
            outcome = in_child(folder, chosen, 5 * whole + 60, place=place)
        if outcome is None or outcome[0] != 0:
            killed += 1
        else:
            unreached += not chosen
            print(
                f"survives: {name}:{change.line}: {change.what}{'' if chosen else ' (reached by no test)'}", flush=True
            )
    report.module(name, killed, total, unreached)


def package_in(folder: Path, core: Path) -> Path:
    """A copy of the package with this library, to be found before any other."""
    package = folder / "gristmill"
    shutil.copytree(ROOT / "src" / "gristmill", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(core, package)
    (folder / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    return package


def switched_core(names: list[str]) -> tuple[Path, dict[str, list[Change]]]:
    """The core with places that can be switched on, compiled, and these places."""
    tree = BUILD / "tree"
    wanted = {ROOT / "CMakeLists.txt": "", **{path: "" for path in (ROOT / "src").rglob("*") if path.is_file()}}
    found: dict[str, list[Change]] = {}
    for name in names:
        path = ROOT / "src" / "core" / name
        text, found[name] = switched(path, sum(map(len, found.values())))
        include = f'#include "{ROOT / "tools" / "mutant_switch.hpp"}"\n'
        once = "#pragma once\n"
        wanted[path] = text.replace(once, once + include, 1) if once in text else include + text
    for path, text in wanted.items():  # what is the same stays, so that it is not compiled again
        copy, data = tree / path.relative_to(ROOT), text.encode() or path.read_bytes()
        if not copy.exists() or copy.read_bytes() != data:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
    configure = ["cmake", "-S", tree, "-B", BUILD / "build", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True)
    built = subprocess.run(["cmake", "--build", BUILD / "build", "--target", "_core", "--parallel", str(os.cpu_count())],
                           capture_output=True, text=True)  # fmt: skip
    if built.returncode:
        raise SystemExit(built.stdout[-6000:] + built.stderr[-2000:])
    return next((BUILD / "build").glob("_core*.so")), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="such as fleets/spill.py; all otherwise")
    parser.add_argument("--count", type=int, default=15, help="changes of each file")
    parser.add_argument("--minutes", type=float, default=55)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    names = given.files or list(FILES)
    plain = subprocess.run([sys.executable, "-c", "import gristmill._core; print(gristmill._core.__file__)"],
                           check=True, capture_output=True, text=True)  # fmt: skip
    end, report, rng = time.monotonic() + 60 * given.minutes, Report(), random.Random(given.seed)
    for module in MODULES.split():
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        package = package_in(folder, Path(plain.stdout.strip()))
        for name in (name for name in names if name.endswith(".py")):
            path = package / name
            source = path.read_text(encoding="utf-8")
            changes = python_changes(path)
            rng.shuffle(changes)

            def apply(change: Change, path: Path = path) -> int:
                path.write_text(change.text, encoding="utf-8")
                return -1

            try:
                tried(name, folder, changes[: given.count], Reached(path, {}), end, apply, report)
            finally:
                path.write_text(source, encoding="utf-8")
    core = [name for name in names if not name.endswith(".py")]
    if core and time.monotonic() < end:
        library, places = switched_core(core)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            package_in(folder, library)
            for name in core:
                changes = places[name]
                mine = {name: range(changes[0].place, changes[-1].place + 1)}
                rng.shuffle(changes)
                tried(
                    name,
                    folder,
                    changes[: given.count],
                    Reached(folder, mine),
                    end,
                    lambda change: change.place,
                    report,
                )
    print(f"{report.killed} of {report.total} killed ({report.killed / max(report.total, 1):.0%})")
    return int(report.killed < WANTED * report.total)


if __name__ == "__main__":
    sys.exit(main())
