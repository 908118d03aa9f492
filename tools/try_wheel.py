"""Try the gristmill that is installed, away from the checkout: README, tour and examples, and 200 of the quickest tests.

    python tools/try_wheel.py CHECKOUT

`make wheel` runs it in an empty environment, cibuildwheel on every machine that it builds for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 200
PIECES = ["tests", "examples", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"]
PAGES = ["README.md", "docs/index.md", "docs/tour.md"]
SHOWN = [
    *(f"tests/repository/test_documents.py::test_snippets_print_what_the_page_says[{page}]" for page in PAGES),
    "tests/repository/test_examples.py::test_example_runs",
]


def choose(root: Path) -> list[str]:
    """The first 200 names of tests/quickest.txt that are still tests."""
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests"], cwd=root, capture_output=True, text=True
    ).stdout.splitlines()
    there = set(listed)
    kept = [name for name in (root / "tests/quickest.txt").read_text("utf-8").splitlines() if name in there]
    if len(kept) < COUNT:
        sys.exit(f"only {len(kept)} tests of tests/quickest.txt are left: write it anew by `make quickest`")
    return kept[:COUNT]


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in PIECES:
            piece = checkout / name
            (shutil.copytree if piece.is_dir() else shutil.copy)(piece, root / name)
        where = subprocess.run(
            [sys.executable, "-c", "import gristmill; print(gristmill.__file__)"],
            cwd=root, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        if checkout in Path(where).resolve().parents and "site-packages" not in where:
            sys.exit(f"{where} is the checkout, not what was installed")
        print(f"trying {where}")
        for tests in (choose(root), SHOWN):
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=root)
            if done.returncode != 0:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
