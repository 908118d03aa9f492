"""The programs in the documents: run them, and compare what they print with what the page says.

A block of ``python`` is run, all blocks of a document in order as one program; a block of ``console`` holds commands after
`$ `, each followed by what it prints. What a Python block prints stands in the block of ``text`` right after it. `...` in
a page stands for anything, as in a doctest. Blocks of ``sh`` are only shown.

`python docs/_scripts/snippets.py [FILE ...]` writes what is printed now into the pages (all, or those named).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documents() -> list[Path]:
    """Every document that may hold snippets; pages that are made by the build are not among them."""
    made = {ROOT / "docs" / "gallery", ROOT / "docs" / "reference"}
    pages = [page for page in (ROOT / "docs").rglob("*.md") if not made & set(page.parents)]
    return sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages])


@dataclass
class Snippet:
    """One block, where it stands, and what the page says that it prints."""

    kind: str
    code: str
    said: str
    line: int
    match: re.Match[str]


def snippets(text: str) -> list[Snippet]:
    """All blocks that are run, in the order of the page."""
    found = []
    for match in _BLOCK.finditer(text):
        line = text[: match.start(2)].count("\n") + 1
        found.append(Snippet(match[1], match[2], match[3] or "", line, match))
    return found


def run(document: Path, parts: list[Snippet]) -> Iterator[str]:
    """What each snippet prints. Runs in the current folder; a console block comes back with its commands."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    for part in parts:
        if part.kind == "console":
            yield "".join(f"$ {command}\n{_output_of(command)}" for command in _commands(part.code))
            continue
        printed = io.StringIO()
        source = "\n" * (part.line - 1) + part.code  # so that an error names the line of the document
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(document), "exec"), scope)
        yield printed.getvalue()


def _commands(block: str) -> list[str]:
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def _output_of(command: str) -> str:
    """What a command prints, on either stream. `gristmill` alone is called in this process, which is faster."""
    words = shlex.split(command)
    if words[0] != "gristmill" or any(word in "|<>;&" for word in words):
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.run(["bash", "-c", command], env=environment, **streams, text=True, check=False).stdout
    from click.testing import CliRunner

    from gristmill.cli import main

    return CliRunner().invoke(main, words[1:], env={"COLUMNS": "100"}, prog_name="gristmill").output


def agrees(part: Snippet, printed: str) -> bool:
    """Whether a page tells what its snippet prints."""
    said = part.code if part.kind == "console" else part.said
    return doctest.OutputChecker().check_output(said, printed, _FLAGS)


def written(text: str, document: Path) -> str:
    """The text of a page with what its snippets print now; where `...` still fits, the page is left as it is."""
    parts = snippets(text)
    for part, printed in reversed(list(zip(parts, list(run(document, parts)), strict=True))):
        if agrees(part, printed):
            continue
        block = f"```console\n{printed}```\n"
        if part.kind == "python":
            block = f"```python\n{part.code}```\n" + (f"```text\n{printed}```\n" if printed else "")
        text = text[: part.match.start()] + block + text[part.match.end() :]
    return text


def main(names: list[str]) -> None:
    """Bring the pages up to date."""
    for document in [Path(name).resolve() for name in names] or documents():
        before = document.read_text(encoding="utf-8")
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                after = written(before, document)
            finally:
                os.chdir(here)
        if after != before:
            document.write_text(after, encoding="utf-8")
            print("changed:", document.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
