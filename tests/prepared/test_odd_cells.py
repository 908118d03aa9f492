"""Masked cells, bytes in the other order, objects that are no values, gaps first, ever new names."""

from __future__ import annotations

import datetime
import decimal
import enum
import pickle
import uuid
import warnings

import numpy as np
import pytest
from registry import DOORS

import gristmill
from gristmill import DropOldest, Gaussian, KernelClassifier, KernelRegressor, Prepared
from gristmill.streams import Table
from gristmill.streams.tables import schema

RNG = np.random.default_rng(0)
X = RNG.uniform(0.05, 0.95, size=(60, 4))
Y = X[:, 0]


def prepared(scale="standard"):
    return Prepared(KernelRegressor(Gaussian(0.5), budget=DropOldest(20), random_state=0), scale)


# ---- masked arrays ---------------------------------------------------------------------------------------------------


def masked(array, row):
    """The same with one value under a mask, which must not be learned."""
    wild = array.copy()
    wild[(row, 1) if array.ndim == 2 else row] = 77
    return np.ma.masked_equal(wild, 77)


@pytest.mark.parametrize("name", DOORS)
def test_a_masked_value_is_a_gap_or_refused_with_its_place(name):
    door = DOORS[name]
    rows, y = door.stream(60)
    model = door.learn(door.made(), rows[:30], None if y is None else y[:30])
    before = pickle.dumps(door.said(model, rows))
    hidden = masked(rows[30:], 7)
    if name == "Prepared":
        gap = rows[30:].copy()
        gap[7, 1] = np.nan
        twin = pickle.loads(pickle.dumps(model))
        assert door.said(door.learn(model, hidden, y[30:]), rows) == door.said(door.learn(twin, gap, y[30:]), rows)
        return
    with pytest.raises(ValueError, match="masked values"):
        door.learn(model, hidden, None if y is None else y[30:])
    assert pickle.dumps(door.said(model, rows)) == before
    fine = np.ma.masked_array(rows[30:])  # a mask that hides nothing
    door.learn(model, fine, None if y is None else y[30:])


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if door.stream(4)[1] is not None])
def test_a_masked_target_is_refused_with_its_row(name):
    door = DOORS[name]
    rows, y = door.stream(60)
    model = door.learn(door.made(), rows[:30], y[:30])
    before = door.said(model, rows)
    hidden = np.ma.masked_array(y[30:], mask=np.arange(30) == 7)
    words = "row 7: None is not a label" if name == "StructuredLearner" else "masked values, the first in row 7"
    with pytest.raises(ValueError, match=words):
        door.learn(model, rows[30:], hidden)
    assert door.said(model, rows) == before


def test_masked_columns_of_every_kind_are_gaps():
    hidden = {
        "a": np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]),
        "b": np.ma.masked_array([True, False, True], mask=[0, 1, 0]),
        "c": np.ma.masked_array(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[D]"), mask=[0, 1, 0]),
        "d": np.ma.masked_array(np.array(["u", "v", "w"], object), mask=[0, 1, 0]),
    }
    plain = {
        "a": [1.0, None, 3.0],
        "b": [True, None, True],
        "c": [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)],
        "d": ["u", None, "w"],
    }
    np.testing.assert_array_equal(Table().learn_transform(hidden), Table().learn_transform(plain))


def test_one_masked_event_is_a_gap_or_refused():
    event = np.ma.masked_array(X[0], mask=[0, 1, 0, 0])
    one, two = prepared().partial_fit(X[:20], Y[:20]), prepared().partial_fit(X[:20], Y[:20])
    gap = X[0].copy()
    gap[1] = np.nan
    assert one.predict_one(event) == two.predict_one(gap)
    one.learn_one(event, 1.0)
    two.learn_one(gap, 1.0)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    plain = KernelRegressor(Gaussian(0.5)).partial_fit(X[:20], Y[:20])
    with pytest.raises(ValueError, match="x is a masked array with masked values"):
        plain.learn_one(event, 1.0)


# ---- the other order of bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", "<f8", "=f4"])
@pytest.mark.parametrize("scale", ["standard", "minmax", "relevance", None])
def test_bytes_in_another_order_are_the_same_numbers(dtype, scale):
    rows = (X * 100).round().astype(dtype)
    same = rows.astype(rows.dtype.newbyteorder("="))
    one, two = prepared(scale).partial_fit(rows, Y), prepared(scale).partial_fit(same, Y)
    for verb in ("predict", "gradient", "predict_interval"):
        np.testing.assert_array_equal(getattr(one, verb)(rows), getattr(two, verb)(same))
    np.testing.assert_array_equal(one.prequential(rows, Y), two.prequential(same, Y))
    assert one.predict_one(rows[0]) == two.predict_one(same[0])
    assert str(one.explain(rows[0])) == str(two.explain(same[0]))
    one.learn_one(rows[0], 1.0)
    two.learn_one(same[0], 1.0)
    assert one.to_bytes() == two.to_bytes()


# ---- categories ------------------------------------------------------------------------------------------------------


class Bare:
    pass


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [Bare(), object(), [1, 2], (1,), {"a": 1}, {1}, np.zeros(2), len, Bare],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_value_is_no_category(value):
    model = prepared().partial_fit([{"a": "x"}, {"a": "y"}], [1.0, 2.0])
    before = model.to_bytes()
    with pytest.raises(ValueError, match=r"row 1, column 'a': .* is not a category: a category is a text, a number"):
        model.partial_fit([{"a": "x"}, {"a": value}], [1.0, 2.0])
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    "value",
    [
        "z",
        7,
        7.5,
        True,
        decimal.Decimal("1.5"),
        datetime.date(2024, 5, 17),
        uuid.UUID(int=5),
        Colour.RED,
        b"raw",
        np.int8(3),
    ],
    ids=repr,
)
def test_what_is_a_value_is_a_category(value):
    table = Table()
    table.learn_transform([{"a": "x"}, {"a": value}])
    assert len(table._layout.by_name["a"].values) == 2


# ---- gaps first ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["standard", "minmax", "relevance", None])
@pytest.mark.parametrize("first", [1, 3])
def test_events_of_gaps_only_come_first(scale, first):
    """One by one as in a chunk."""
    rows = [{"a": None, "b": None}] * first + [{"a": u, "b": v} for u, v in X[:, :2].tolist()]
    y = np.concatenate([np.arange(first, dtype=float), Y])
    one, whole = prepared(scale), prepared(scale).partial_fit(rows, y)
    for row, target in zip(rows, y, strict=True):
        one.learn_one(row, target)
    np.testing.assert_array_equal(one.predict(rows), whole.predict(rows))
    assert gristmill.from_bytes(one.to_bytes()).predict(rows).tolist() == one.predict(rows).tolist()


# ---- ever new names --------------------------------------------------------------------------------------------------


def test_ever_new_names_do_not_widen_a_table_without_bound(monkeypatch):
    monkeypatch.setattr(schema, "LATE_COLUMNS", 10)
    rows = [{"x": float(at), f"k{at}": 1.0, "gone": None} for at in range(40)]
    y = np.arange(40.0) % 7
    one, whole = prepared(), prepared()
    with pytest.warns(UserWarning, match=r"10 columns have come after the first event; further ones, such as 'k11'"):
        whole.partial_fit(rows, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for row, target in zip(rows, y, strict=True):
            one.learn_one(row, target)
    assert len([warning for warning in told if "after the first event" in str(warning.message)]) == 1
    for model in (one, whole, gristmill.from_bytes(whole.to_bytes())):
        assert model.n_features_in_ == 3 + 10
        assert model.table_.n_ignored_ == 29
        np.testing.assert_array_equal(model.predict(rows), one.predict(rows))
    again = gristmill.from_bytes(whole.to_bytes())
    again.partial_fit([{"x": 1.0, "more": 2.0}], [1.0])
    assert (again.n_features_in_, again.table_.n_ignored_) == (13, 30)


def test_columns_of_the_first_event_are_not_bounded(monkeypatch):
    monkeypatch.setattr(schema, "LATE_COLUMNS", 10)
    rows = [{f"k{at}": float(at + row) for at in range(50)} for row in range(4)]
    model = prepared().partial_fit(rows, [1.0, 2.0, 3.0, 4.0])
    assert model.n_features_in_ == 50
    assert model.table_.n_ignored_ == 0


def test_an_error_takes_the_count_back(monkeypatch):
    monkeypatch.setattr(schema, "LATE_COLUMNS", 1)
    model = Prepared(KernelClassifier(Gaussian(0.5), budget=DropOldest(20)))
    model.partial_fit([{"a": 1.0}, {"a": 2.0, "b": 1.0}], ["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit([{"a": 1.0, "c": 1.0}], [float("nan")])
        assert model.table_.n_ignored_ == 0
