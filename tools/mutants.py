"""Change the code one place at a time and run the nearest tests: a change that no test notices is a survivor.

`python tools/mutants.py [MODULE ...] --count 20 --minutes 60` draws `count` changes of each Python module, or with --core
of each C++ file, which is then compiled. Comparisons, arithmetic, logic, conditions and whole numbers are changed. Survivors
are printed with their lines; the exit code is 1 where fewer than 85 % of all were killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WANTED = 0.85
SECONDS = 180  # for the tests of one change: what takes longer is taken for an endless loop

#: Python module -> its nearest tests
MODULES = {
    "fleets/spill.py": ["tests/fleets/test_spill.py"],
    "fleets/key_means.py": ["tests/fleets/test_center.py"],
    "fleets/keyed.py": ["tests/fleets/test_keyed_fleet.py", "tests/fleets/test_prior.py"],
    "fleets/fleet.py": ["tests/fleets/test_fleet.py"],
    "cluster/shards/log.py": ["tests/cluster/test_cluster_parts.py", "tests/cluster/test_cluster_shards.py"],
    "cluster/shards/segments.py": ["tests/cluster/test_cluster_parts.py"],
    "cluster/shards/snapshots.py": ["tests/cluster/test_cluster_parts.py", "tests/cluster/test_cluster_shards.py"],
    "persist/atomic.py": ["tests/persist/test_atomic.py"],
    "evaluate/checkpoint.py": ["tests/evaluate/test_checkpoints.py", "tests/evaluate/test_runs.py"],
    "prepared/pipeline.py": ["tests/prepared"],
    "prepared/target_scaler.py": ["tests/prepared/test_target_scaler.py", "tests/prepared/test_prepared.py"],
    "streams/tables/schema.py": ["tests/streams/test_table.py", "tests/prepared/test_odd_cells.py"],
    "streams/tables/table.py": ["tests/streams/test_table.py", "tests/prepared/test_odd_cells.py"],
    "streams/relevance.py": ["tests/prepared/test_relevance.py", "tests/prepared/test_relevance_columns.py"],
    "merging/merge.py": ["tests/merging"],
    "merging/races.py": ["tests/merging"],
}
#: file of the core -> its nearest tests
CORE = {
    "mixture/mixture.cpp": ["tests/race"],
    "adapt/calibration.hpp": ["tests/learners/test_probabilities.py", "tests/race/test_mixture.py"],
    "adapt/intervals.hpp": ["tests/learners/test_intervals.py", "tests/race/test_mixture.py"],
    "race/memory_shares.cpp": ["tests/race"],
    "pipeline/relevance.cpp": ["tests/prepared", "tests/race"],
    "fleet/merging.hpp": ["tests/fleets/test_fleet.py"],
    "keyed/keyed.cpp": ["tests/fleets/test_keyed_fleet.py", "tests/fleets/test_spill.py"],
}

# ---- changes of Python -----------------------------------------------------------------------------------------------

_OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def _places(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Nodes that can be changed, by their place in `ast.walk`, and their line; annotations and texts stay."""
    spared: set[int] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                spared |= {id(inner) for inner in ast.walk(getattr(node, name))}
        if isinstance(node, ast.JoinedStr | ast.Raise):
            spared |= {id(inner) for inner in ast.walk(node)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in spared:
            continue
        plain = isinstance(node, ast.Constant) and type(node.value) in (int, float, bool)
        swaps = isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OPERATORS
        compares = isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS
        if plain or swaps or compares or isinstance(node, ast.If | ast.IfExp):
            yield place, node.lineno


def _changed(source: str, place: int) -> str:
    tree = copy.deepcopy(ast.parse(source))
    node = list(ast.walk(tree))[place]
    if isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = _OPERATORS[type(node.ops[0])]()
    else:
        assert isinstance(node, ast.If | ast.IfExp)
        node.test = ast.UnaryOp(ast.Not(), node.test)
    return ast.unparse(ast.fix_missing_locations(tree))


def python_mutants(path: Path) -> list[tuple[int, str]]:
    """Line and text of the whole file, one for each change."""
    source = path.read_text(encoding="utf-8")
    return [(line, _changed(source, place)) for place, line in _places(ast.parse(source))]


# ---- changes of C++ --------------------------------------------------------------------------------------------------

_SWAPS = ((" < ", " <= "), (" > ", " >= "), (" <= ", " < "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
          (" + ", " - "), (" - ", " + "), (" * ", " / "), (" && ", " || "), (" || ", " && "))  # fmt: skip


def core_mutants(path: Path) -> list[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    found = []
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        if code.lstrip().startswith(("#", "template", "throw")) or "refuse(" in code:
            continue
        for old, new in _SWAPS:
            for match in re.finditer(re.escape(old), code):
                changed = line[: match.start()] + new + line[match.end() :]
                found.append((number + 1, "\n".join([*lines[:number], changed, *lines[number + 1 :]])))
    return found


# ---- running ---------------------------------------------------------------------------------------------------------


def is_killed(package: Path, tests: list[str]) -> bool:
    """Whether tests fail over a copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", *tests]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="of src/gristmill, such as fleets/spill.py; all otherwise")
    parser.add_argument("--core", action="store_true", help="of src/core in place of the package")
    parser.add_argument("--count", type=int, default=15, help="changes of each file")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table = CORE if given.core else MODULES
    end, killed, total = time.monotonic() + 60 * given.minutes, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "gristmill"
        shutil.copytree(ROOT / "src" / "gristmill", package, ignore=shutil.ignore_patterns("__pycache__"))
        for module in given.modules or table:
            path = (ROOT / "src" / "core" if given.core else package) / module
            source = path.read_text(encoding="utf-8")
            if is_killed(package, table[module]):
                print(f"{module}: the tests fail without any change", flush=True)
                continue
            mutants = core_mutants(path) if given.core else python_mutants(path)
            random.Random(given.seed).shuffle(mutants)
            found = 0
            for tried, (line, text) in enumerate(mutants[: given.count]):
                if time.monotonic() > end:
                    mutants = mutants[:tried]
                    break
                path.write_text(text, encoding="utf-8")
                try:
                    if given.core:
                        build = ["cmake", "--build", "build/mutants", "--target", "_core"]
                        built = subprocess.run(build, cwd=ROOT, capture_output=True)
                        if built.returncode:
                            found += 1  # the compiler is a test, too
                            continue
                        for library in (ROOT / "build" / "mutants").glob("_core*.so"):
                            shutil.copy(library, package)
                    if is_killed(package, table[module]):
                        found += 1
                    else:
                        print(f"survives: {module}:{line}", flush=True)
                finally:
                    path.write_text(source, encoding="utf-8")
            count = min(len(mutants), given.count)
            killed, total = killed + found, total + count
            print(f"{module}: {found} of {count} killed", flush=True)
    print(f"{killed} of {total} killed ({killed / max(total, 1):.0%})")
    return int(killed < WANTED * total)


if __name__ == "__main__":
    sys.exit(main())
