"""A pytest plugin for tests/quickest.txt, the quickest tests of every file in turn.

`make quickest` (`--quickest=write`) times every test and writes the list; `make quick` (`--quickest=run`) runs its tests.
A listed test that was renamed or removed is left out, so that a stale name never stops the run.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

KEPT = 300  # more than `make wheel` needs, so that a renamed test does not matter
LIMIT = 0.5  # seconds
CHECKOUT = {"tests/repository/test_packaging.py", "tests/repository/test_sources.py"}  # these read the sources
LIST = Path(__file__).resolve().parent.parent / "tests/quickest.txt"

seconds: dict[str, float] = defaultdict(float)
failed: set[str] = set()


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--quickest", choices=["write", "run"], help="write tests/quickest.txt, or run the tests on it")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if config.getoption("--quickest") != "run":
        return
    listed = set(LIST.read_text("utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in listed])
    items[:] = [item for item in items if item.nodeid in listed]


def pytest_runtest_logreport(report: Any) -> None:
    seconds[report.nodeid] += report.duration
    if not report.passed:
        failed.add(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    if session.config.getoption("--quickest") != "write":
        return
    files: dict[str, list[str]] = defaultdict(list)
    for name in sorted(seconds, key=lambda name: (seconds[name], name)):
        file = name.split("::")[0]
        if seconds[name] < LIMIT and name not in failed and file not in CHECKOUT:
            files[file].append(name)
    names = [name for name in chain(*zip_longest(*(files[key] for key in sorted(files)))) if name is not None]
    LIST.write_text("".join(f"{name}\n" for name in names[:KEPT]), encoding="utf-8")
    print(f"\n{len(names[:KEPT])} of {len(seconds)} tests in {LIST}")
