"""The page on the looseness of bounds: each line is measured again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _script():
    spec = importlib.util.spec_from_file_location("bounds_page", ROOT / "docs" / "_scripts" / "bounds.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["bounds_page"] = module
    spec.loader.exec_module(module)
    return module


bounds = _script()
TABLE = [
    line.strip("| ").split(" | ") for line in bounds.PAGE.read_text("utf-8").splitlines() if line.startswith("| ")
][1:]


def test_the_page_has_the_text_and_the_rows_of_the_script():
    assert bounds.PAGE.read_text("utf-8").startswith(bounds.TEXT)
    assert [cells[-4] for cells in TABLE] == [row.what for row in bounds.ROWS]


@pytest.mark.parametrize("at", range(len(bounds.ROWS)), ids=lambda at: bounds.ROWS[at].what)
def test_a_bound_holds_and_is_as_loose_as_the_page_says(at):
    found = bounds.ROWS[at].run()
    assert all(measured <= bound for bound, measured in found)
    assert bounds.factor(found) == pytest.approx(float(TABLE[at][-1].replace(",", "")), rel=0.25)
