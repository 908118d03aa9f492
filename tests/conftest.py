"""Names of tests that do not change from process to process: the workers of pytest-xdist must agree on them."""

from __future__ import annotations

import re

import pytest

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # a parameter without a repr of its own shows where it lies in memory
        item._nodeid = ADDRESS.sub("", item._nodeid)
