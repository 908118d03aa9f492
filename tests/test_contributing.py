"""CONTRIBUTING.md tells the truth: every source file is on its map, and what a new part touches is where it says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
TOUCHED = re.findall(r"^\| (\w[\w ]*) \| `([^`]+)` \| (.+) \|$", TEXT, re.MULTILINE)
MAP = TEXT[TEXT.index("## Map of the files") : TEXT.index("## Style")]


@pytest.mark.parametrize(("part", "file", "beside"), TOUCHED)
def test_a_new_part_goes_where_it_is_said_to_go(part, file, beside):
    source = (ROOT / file).read_text()
    for anchor in re.findall(r"`([^`]+)`", beside):
        assert anchor == "visit" or anchor in source, f"{file} has no {anchor}"


def test_a_new_part_touches_few_files():
    assert Counter(part for part, _, _ in TOUCHED) == {"rule": 3, "budget": 4, "kernel": 5, "saved field": 1}


def section(folder):
    """The lines of the map below a folder: they are indented further."""
    start = MAP.index(f"    {folder}/ ")
    lines = MAP[start:].splitlines()
    inside = [
        line
        for n, line in enumerate(lines)
        if n == 0 or all(not lines[k].startswith("    ") or lines[k].startswith("     ") for k in range(1, n + 1))
    ]
    return "\n".join(inside)


@pytest.mark.parametrize("folder", ["src/core", "src/bind", "src/gristmill"])
def test_every_source_file_is_on_the_map(folder):
    words = set(re.findall(r"[\w./]+", section(folder)))
    words |= {word.rstrip(".") for word in words}
    missing = []
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".py", ".pyi") or path.name == "__init__.py":
            continue
        inner = path.relative_to(ROOT / folder)
        home = f"{inner.parts[0]}/" if len(inner.parts) > 1 else ""
        if not words & {home, path.name, path.stem, path.stem + ".py", path.stem + ".hpp"} - {""}:
            missing.append(str(inner))
    assert not missing


def test_nothing_on_the_map_is_gone():
    named = set(re.findall(r"\b([\w/]+\.(?:hpp|cpp|pyi|py))\b", MAP))
    have = {path.name for path in ROOT.glob("**/*.[chp]*") if ".venv" not in path.parts and "build" not in path.parts}
    assert {name for name in named if name.split("/")[-1] not in have} <= {"test_*.py"}
