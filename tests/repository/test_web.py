"""The browser module beside the package, as far as text can tell: `make test-playground` runs it in a browser."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from gristmill import budgets, kernels, losses, rules
from gristmill.persist import model_file

ROOT = Path(__file__).parents[2]
WEB = ROOT / "src" / "web"
PARTS = (WEB / "parts.js").read_text("utf-8").split("export const PARTS = {")[1].split("\n};")[0]
BASES = {kernels: kernels.Kernel, losses: losses.Loss, rules: rules.Rule, budgets: budgets.Budget}
NAMES = sorted(
    name
    for name, part in model_file.parts().items()
    for module, base in BASES.items()
    if issubclass(part, base) and part.__module__ == module.__name__
)


def test_model_files_have_the_format_of_python():
    found = re.search(r"export const FORMATS = \[([\d, ]+)\]", (WEB / "modelfile.js").read_text("utf-8"))
    assert [int(number) for number in found[1].split(",")] == [model_file.FORMAT]


def test_there_are_parts():
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_a_part_has_the_fields_of_python(name):
    block = re.search(rf"\n  {name}: {{(.*?)(?=\n  \w+: {{|\Z)", PARTS, re.DOTALL)
    assert block is not None, "it is not in parts.js"
    fields = block[1].split("fields: {", 1)[1]
    assert re.findall(r"(\w+): \[", fields) == [field.name for field in dataclasses.fields(model_file.parts()[name])]


def test_the_pages_that_the_browser_tests_read_are_there():
    text = (ROOT / "tests" / "browser" / "test_playground.py").read_text("utf-8")
    pages = [re.findall(r'"([^"]+)"', path) for path in re.findall(r'"docs"(?: / "[^"]+")+', text)]
    assert pages
    for page in pages:
        assert ROOT.joinpath(*page).is_file(), "/".join(page)
