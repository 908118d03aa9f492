"""Every Python block of every document runs, in order, as one script a document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gristmill
from gristmill import evaluate, features, pairwise, streams, theory

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> list[str]:
    """Python blocks, each padded with empty lines so that an error names the line of the document."""
    text = document.read_text(encoding="utf-8")
    return ["\n" * text[: match.start(1)].count("\n") + match.group(1) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_blocks_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(document):
        exec(compile(block, str(document), "exec"), scope)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


def test_the_reference_has_every_public_name():
    written = set(re.findall(r"^::: .*\.(\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE))
    public = {name for name, home in gristmill._NAMES.items() if home not in ("", "_version")}
    public |= {*pairwise.__all__} - {"ConvexSet", "PairBuffer"}  # bases, for those who write their own
    public |= {*features.__all__, *streams.__all__, *evaluate.__all__, *theory.__all__}
    assert public - written == set()
