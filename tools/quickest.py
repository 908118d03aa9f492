"""A plugin of pytest that writes tests/quickest.txt, the quickest tests of every file in turn: `make quickest`."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

KEPT = 300  # more than are run, so that a renamed test does not matter
LIMIT = 0.5  # seconds
CHECKOUT = {"tests/repository/test_packaging.py", "tests/repository/test_sources.py"}  # these read the sources

seconds: dict[str, float] = defaultdict(float)
failed: set[str] = set()


def pytest_runtest_logreport(report: Any) -> None:
    seconds[report.nodeid] += report.duration
    if not report.passed:
        failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for name in sorted(seconds, key=lambda name: (seconds[name], name)):
        file = name.split("::")[0]
        if seconds[name] < LIMIT and name not in failed and file not in CHECKOUT:
            files[file].append(name)
    names = [name for name in chain(*zip_longest(*(files[key] for key in sorted(files)))) if name is not None]
    target = Path(__file__).resolve().parent.parent / "tests/quickest.txt"
    target.write_text("".join(f"{name}\n" for name in names[:KEPT]), encoding="utf-8")
    print(f"\n{len(names[:KEPT])} of {len(seconds)} tests in {target}")
