"""`python -m benchmarks [NAME ...]`: run the benchmarks, print their tables, write them as JSON to bench-results/."""

from __future__ import annotations

import json
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import benchmarks

from .measure import machine, pin


def names() -> list[str]:
    return [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name.startswith("bench_")]


def main(asked: list[str]) -> int:
    wanted = [name if name.startswith("bench_") else f"bench_{name}" for name in asked] or names()
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    pin()
    facts = machine()
    print("  ".join(f"{key} {value}" for key, value in facts.items()))
    results = {name: import_module(f"benchmarks.{name}").main() for name in wanted}
    folder = Path("bench-results")
    folder.mkdir(exist_ok=True)
    for name, result in results.items():
        (folder / f"{name}.json").write_text(json.dumps({"machine": facts, "results": result}, indent=1))
    print(f"\nwritten to {folder}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
