"""The list of numbered results names what there is."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gristmill
import papers

ROOT = Path(__file__).parents[2]


def _list():
    spec = importlib.util.spec_from_file_location("numbered", ROOT / "docs" / "_scripts" / "numbered.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["numbered"] = module
    spec.loader.exec_module(module)
    return module


numbered = _list()


@pytest.mark.parametrize("entry", numbered.ENTRIES, ids=lambda entry: f"{entry.document} {entry.number}")
def test_what_an_entry_names_is_there(entry):
    assert entry.document in numbered.DOCUMENTS
    assert entry.place or entry.why, "neither a place nor a reason"
    for place in filter(None, entry.place.split(", ")):
        if place.startswith("papers "):
            assert place.removeprefix("papers ") in papers.TARGETS
            continue
        module, _, name = place.rpartition(".")
        assert hasattr(import_module(f"gristmill.{module}") if module else gristmill, name), place
    if entry.place and not entry.why:
        assert entry.test, "a place without a test"
    if entry.test:
        file, _, function = entry.test.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert not function or f"def {function}(" in text


def test_every_place_is_a_link_to_something_that_is_there():
    """Names link to the reference; targets of `papers` to the section of a page with their picture."""
    pages = sorted((ROOT / "docs" / "results" / "papers").glob("*.md"))
    headings = [
        (page.name, heading) for page in pages for heading in re.findall(r"(?m)^## (.+)$", page.read_text("utf-8"))
    ]
    anchors = {f"{name}#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for name, title in headings}
    assert len(anchors) == len(headings)
    rows = [line for line in numbered.written().splitlines() if re.match(r"\| [^|]", line)]
    assert len(rows) == len(numbered.ENTRIES)
    for entry, row in zip(
        sorted(numbered.ENTRIES, key=lambda e: list(numbered.DOCUMENTS).index(e.document)), rows, strict=True
    ):
        links = re.findall(
            r"\{py:obj\}`gristmill\.([\w.]+)`|\[`python -m papers ([\w.-]+)`\]\(papers/([\w-]+\.md#[\w-]+)\)", row
        )
        assert [name or f"papers {target}" for name, target, _ in links] == [p for p in entry.place.split(", ") if p]
        assert all(anchor in anchors for name, _, anchor in links if not name)


def test_no_number_is_missing():
    """Theorems and algorithms run from the first to the last; those of the thesis by chapter, with lemmas between."""
    listed = {key: " ".join(e.number for e in numbered.ENTRIES if e.document == key) for key in numbered.DOCUMENTS}

    def numbers(key, kind):
        found = set()
        for part in re.findall(rf"{kind}s? ([\d, to]+)", listed[key]):
            ends = [[int(n) for n in piece.split(" to ")] for piece in part.strip(" ,to").split(", ") if piece]
            for piece in ends:
                found |= set(range(piece[0], piece[-1] + 1))
        return found

    assert numbers("additive", "Theorem") == set(range(1, 7))
    assert numbers("additive", "Figure") == set(range(1, 5))
    assert numbers("norma", "Theorem") == {2, 3, 4, 6}  # 1 is a proposition, 5 a corollary
    assert numbers("norma", "Figure") == {1, 2, 3}
    assert numbers("projectron", "Theorem") == {1, 3, 4, 6, 7}  # 2 and 5 are lemmas
    assert numbers("projectron", "Figure") == set(range(1, 11))
    assert numbers("ilk", "Theorem") == {2, 3}  # 1 is a definition
    assert numbers("ilk", "Figure") == {1, 2, 3, 4}
    assert numbers("thesis", "Algorithm") == set(range(1, 10))
    thesis = {
        "theorem": "1.1 1.2 1.3 3.1 3.10 3.14 3.15 4.2 4.3 4.7 5.5 5.6 5.8 5.9 5.10 5.16 5.17 5.20 5.21 "
        "6.3 6.4 6.5 6.6 6.9 6.10 6.11 6.12 6.13 6.18 6.20 B.1 B.2 B.3",
        "corollary": "3.3 5.11 5.25",
        "definition": "4.1 4.6 5.1 5.2 5.3 5.4 5.7 5.13 5.14 5.15 5.18 5.19 A.1 A.2",
        "figure": "1 2 1.1 1.2 1.3 3.1 3.2 4.1 4.2 5.1 5.2 5.3 5.4 6.1 6.2 6.3",
        "table": "3.1 4.1 4.2 5.1 6.1 6.2 6.3",
    }
    found = _decimals(entry.number for entry in numbered.ENTRIES if entry.document == "thesis")
    for kind, wanted in thesis.items():
        assert found[kind] == set(wanted.split()), kind


def _decimals(texts):
    """By kind in the singular: the numbers of texts such as "Theorem 6.11, tables 6.1 to 6.3"."""
    found = {}
    for text in texts:
        kind = None
        for word, first, last in re.findall(r"([A-Za-z]{2,})|([AB]?[\d.]+)(?: to ([AB]?[\d.]+))?", text):
            if word:
                kind = "corollary" if word.startswith("coroll") else word.lower().removesuffix("s")
                continue
            chapter, _, number = first.rpartition(".")
            ends = range(int(number), int((last or first).rpartition(".")[2]) + 1)
            found.setdefault(kind, set()).update(f"{chapter}.{n}" if chapter else str(n) for n in ends)
    return found


def test_the_page_is_written_from_the_list():
    assert numbered.PAGE.read_text("utf-8") == numbered.written(), "run python docs/_scripts/numbered.py"
