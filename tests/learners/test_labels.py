"""Whole numbers as labels: comparing arrays gives what looking up each label gives."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill._common.labels import LabelTable, _compared, coded


def looked_up(table, y):
    longer = table.extended(y.tolist())
    return longer, longer.numbers(y.tolist())


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8, np.uint64, bool])
@pytest.mark.parametrize("known", [(), (3,), (0, 1), (5.0, -2), (300, 2**63, 1), (True, False)])
def test_arrays_are_numbered_as_their_labels_one_by_one(kind, known):
    rng = np.random.default_rng(len(known))
    for size in (1, 2, 50):
        y = rng.integers(0, 6, size).astype(kind)
        table, numbers, before = coded("a test", LabelTable(known), y, size, None)
        longer, expected = looked_up(LabelTable(known), y)
        assert table.names == longer.names
        assert list(map(type, table.names)) == list(map(type, longer.names))
        assert before == len(known)
        np.testing.assert_array_equal(numbers, expected)


def test_many_classes_and_names_take_the_other_way():
    y = np.arange(100)
    assert _compared(LabelTable(), y) is None
    assert _compared(LabelTable(("grist",)), y) is None
    assert coded("a test", LabelTable(), y, 100, None)[0].names == tuple(range(100))
    with pytest.raises(ValueError, match="all strings or all numbers"):
        coded("a test", LabelTable(("grist",)), y, 100, None)


def test_no_rows_have_no_labels():
    table, numbers, before = coded("a test", LabelTable((1,)), np.zeros(0, np.int64), 0, None)
    assert (table.names, len(numbers), before) == ((1,), 0, 1)
