"""Write tests/quickest.txt: the quickest tests of every file in turn, from the times that a run of pytest reports.

python -m pytest tests -q --durations=0 --durations-min=0 | python chores/quickest.py
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

KEPT = 300  # more than are run, so that a renamed test does not matter
LIMIT = 0.5  # seconds
CHECKOUT = {"tests/test_packaging.py", "tests/test_sources.py"}  # these read the sources
LINE = re.compile(r"^([\d.]+)s (call|setup|teardown)\s+(\S.*)$")


def main() -> None:
    seconds: dict[str, float] = defaultdict(float)
    for line in sys.stdin:
        if match := LINE.match(line.rstrip()):
            seconds[match[3]] += float(match[1])
    files: dict[str, list[str]] = defaultdict(list)
    for name in sorted(seconds, key=lambda name: (seconds[name], name)):
        file = name.split("::")[0]
        if seconds[name] < LIMIT and file not in CHECKOUT:
            files[file].append(name)
    names = [name for name in chain(*zip_longest(*(files[key] for key in sorted(files)))) if name is not None]
    target = Path(__file__).resolve().parent.parent / "tests/quickest.txt"
    target.write_text("".join(f"{name}\n" for name in names[:KEPT]), encoding="utf-8")
    print(f"{min(KEPT, len(names))} of {len(seconds)} tests in {target}")


if __name__ == "__main__":
    main()
