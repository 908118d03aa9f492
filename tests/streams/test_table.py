"""Any table to rows: the same bits from every source, in every cut, with any order of new values, saved or not."""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse

from gristmill.streams import CellError, StreamScaler, Table
from gristmill.streams.tables.cells import LONGEST, category_of, circle, kind_of, time_of

WORDS = ["red", "blue", "green", "a b", "Ärger", "x"]
VALUES = {
    "number": st.one_of(
        st.floats(-1e6, 1e6).map(lambda x: x + 0.0),
        st.integers(-(10**9), 10**9),
        st.sampled_from([0.5, -2.0, 1e300, 1e-300]),
    ),
    "boolean": st.booleans(),
    "category": st.sampled_from(WORDS),
    "time": st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2080, 1, 1)).map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
    ),
}


@st.composite
def tables(draw):
    """Rows of dicts with all names; a missing value is None. Numbers of one column are all whole or none is."""
    count = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    columns = {}
    for place, kind in enumerate(kinds):
        cell = VALUES[kind] if kind != "number" else draw(st.sampled_from([st.floats(-1e6, 1e6), st.integers(-99, 99)]))
        column = draw(st.lists(st.one_of(st.none(), cell, cell, cell), min_size=count, max_size=count))
        columns[f"{kind[0]}{place}"] = [value + 0.0 if isinstance(value, float) else value for value in column]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@st.composite
def cuts(draw, count):
    places = sorted(draw(st.sets(st.integers(1, max(count - 1, 1)), max_size=4)) | {0, count})
    return [(start, stop) for start, stop in itertools.pairwise(places) if start < stop <= count]


def padded(parts, width):
    """Rows of several widths as those of the last."""
    dense = [part.toarray() if issparse(part) else part for part in parts]
    return np.vstack([np.hstack([part, np.zeros((len(part), width - part.shape[1]))]) for part in dense])


def known(table):
    arrays, plain = table.to_file()
    return json.dumps(plain), {name: array.tobytes() for name, array in arrays.items()}


def as_csv(rows):
    """Through a file of CSV, as text."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    for row in rows:
        cells = {name: "" if value is None else value for name, value in row.items()}
        writer.writerow({n: v.isoformat() if isinstance(v, dt.datetime) else v for n, v in cells.items()})
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def as_json(rows):
    text = "\n".join(json.dumps(row, default=lambda time: time.isoformat(sep=" ")) for row in rows)
    return [json.loads(line) for line in text.splitlines()]


SOURCES = {
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "pandas": pd.DataFrame,
    "pandas nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "pandas category": lambda rows: pd.DataFrame(rows).astype({n: "category" for n in rows[0] if n[0] == "c"}),
    "polars": lambda rows: pl.DataFrame(rows, infer_schema_length=None),
    "polars category": lambda rows: pl.DataFrame(rows, infer_schema_length=None).cast(
        {n: pl.Categorical for n in rows[0] if n[0] == "c"}
    ),
    "arrow": pa.Table.from_pylist,
    "arrow batch": pa.RecordBatch.from_pylist,
    "objects": lambda rows: np.array([list(row.values()) for row in rows], dtype=object),
    "csv": as_csv,
    "json": as_json,
}


@settings(max_examples=150, deadline=None)
@given(tables(), st.data())
def test_every_source_gives_the_same_bits(rows, data):
    scale = data.draw(st.sampled_from([None, "standard", "minmax"]))

    def run(X):
        table, scaler = Table(), None if scale is None else StreamScaler(scale)
        return table, table.learn_transform(X, scaler)

    table, wanted = run(rows)
    for name, convert in SOURCES.items():
        other, found = run(convert(rows))
        assert np.array_equal(found, wanted), name
        if name != "objects":  # an array has no names
            assert known(other) == known(table), name
        assert np.array_equal(other.transform(convert(rows)), table.transform(rows)), name


@settings(max_examples=300, deadline=None)
@given(tables(), st.data())
def test_every_cut_gives_the_same_bits_and_so_does_a_file_in_the_middle(rows, data):
    scale = data.draw(st.sampled_from([None, "standard", "minmax"]))
    max_values = data.draw(st.sampled_from([1, 2, 100]))
    sources = data.draw(st.lists(st.sampled_from(["dicts", *SOURCES][:-3]), min_size=1, max_size=4))
    whole, scaler = Table(max_values=max_values), None if scale is None else StreamScaler(scale)
    wanted = whole.learn_transform(rows, scaler)
    table, scaler, parts = Table(max_values=max_values), None if scale is None else StreamScaler(scale), []
    for number, (start, stop) in enumerate(data.draw(cuts(len(rows)))):
        source = sources[number % len(sources)]
        part = rows[start:stop] if source == "dicts" else SOURCES[source](rows[start:stop])
        parts.append(table.learn_transform(part, scaler))
        assert parts[-1].shape[1] == table.width_ <= table.bound_
        arrays, plain = table.to_file()
        table = Table.from_file(arrays, json.loads(json.dumps(plain)))
    assert np.array_equal(padded(parts, whole.width_), wanted)
    assert known(table) == known(whole)
    assert np.isfinite(wanted).all()
    assert len(whole.get_feature_names_out()) == whole.width_ or not whole._layout.width


@settings(max_examples=150, deadline=None)
@given(tables(), st.data())
def test_keys_may_come_late_and_a_bad_event_changes_nothing(rows, data):
    """A key that is not there is a value that is missing, and new names come in the order of events."""
    short = [{name: value for name, value in row.items() if value is not None} for row in rows]
    short = [row for row in short if row]
    if not short:
        return
    names = list(dict.fromkeys(name for row in short for name in row))
    full = [{name: row.get(name) for name in names} for row in short]
    whole, scaler = Table(), StreamScaler()
    wanted = whole.learn_transform(full, scaler)
    table, scaler, parts = Table(), StreamScaler(), []
    for start, stop in data.draw(cuts(len(short))):
        mark, before = (table.snapshot(), scaler.snapshot()), known(table)
        table.learn_transform([*short[start:stop], {"new": "q", names[0]: None}], scaler)
        table.rollback(mark[0])
        scaler.rollback(mark[1])
        assert known(table) == before
        if table.kinds_.get(names[0]) in ("number", "time", "boolean"):
            with pytest.raises(CellError, match=f"row {stop - start}, column '{names[0]}'"):
                table.learn_transform([*short[start:stop], {names[0]: "not so"}], scaler)
            assert known(table) == before
        parts.append(table.learn_transform(short[start:stop], scaler))
    assert np.array_equal(padded(parts, whole.width_), wanted)
    assert {name: kind for name, kind in table.kinds_.items() if kind} == {n: k for n, k in whole.kinds_.items() if k}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), st.permutations(WORDS), st.integers(1, 8))
def test_the_order_of_new_values_only_orders_the_columns(values, order, most):
    first = Table(max_values=most).learn_transform([{"c": value} for value in values])
    rename = dict(zip(WORDS, order, strict=True))
    again = Table(max_values=most).learn_transform([{"c": rename[value]} for value in values])
    assert np.array_equal(first, again)
    met = list(dict.fromkeys(values))
    assert first.shape[1] == min(len(met), most) + (len(met) > most)
    for one, x in zip(values, first, strict=True):
        for other, y in zip(values, first, strict=True):
            apart = one != other and not {one, other} <= set(met[most:])
            assert np.linalg.norm(x - y) == pytest.approx(float(apart))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_arrays_of_numbers_are_handed_on_as_they_are(data):
    count, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(count, width)) * 10.0 ** rng.integers(-3, 4, width)
    whole = Table()
    assert np.array_equal(whole.learn_transform(X), X)
    assert whole.learn_transform(X) is X
    assert whole.transform(X) is X
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    gaps[0] = X[0]
    whole, wanted = Table(), None
    wanted = whole.learn_transform(gaps)
    table, parts = Table(), []
    for start, stop in data.draw(cuts(count)):
        parts.append(table.learn_transform(gaps[start:stop]))
    assert np.array_equal(padded(parts, whole.width_), wanted)
    single = Table()
    rows = [single.learn_transform({f"x{place}": value for place, value in enumerate(row)}) for row in gaps.tolist()]
    assert np.array_equal(padded(rows, whole.width_), wanted)
    assert known(table) == known(whole)
    single.named = False
    assert known(single) == known(whole)
    frame = Table()
    assert np.array_equal(frame.learn_transform(pd.DataFrame(gaps, columns=[f"x{n}" for n in range(width)])), wanted)
    # The mean of what came before, and a flag.
    for row, place in np.argwhere(np.isnan(gaps)):
        seen = gaps[:row, place][~np.isnan(gaps[:row, place])]
        assert wanted[row, place] == pytest.approx(seen.mean(), rel=1e-9, abs=1e-9)
        flag = whole.get_feature_names_out().tolist().index(f"x{place}:missing")
        assert np.array_equal(wanted[:, flag], np.isnan(gaps[:, place]))


def test_numbers_are_standardised_and_nothing_else_is():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(100, 9, 500), "c": rng.choice(["p", "q"], 500), "b": rng.random(500) < 0.3})
    scaler, alone = StreamScaler(), StreamScaler()
    rows = Table().learn_transform(frame, scaler)
    assert np.array_equal(rows[:, 0], alone.learn_transform(frame[["n"]].to_numpy())[:, 0])
    assert set(rows[:, 1].tolist()) == {0.0, 0.7071067811865476}
    names = Table()
    names.learn_transform(frame)
    assert set(rows[:, names.get_feature_names_out().tolist().index("b")].tolist()) == {0.0, 1.0}


def test_texts_are_hashed_on_request():
    rows = [{"note": "pump one failed", "n": 1.0}, {"note": None, "n": 2.0}, {"note": "quiet night", "n": 3.0}]
    table = Table(columns={"note": "text"}, text_features=64)
    whole = table.learn_transform(rows)
    assert isinstance(whole, csr_array)
    assert whole.shape == (3, 66)
    single = Table(columns={"note": "text"}, text_features=64)
    parts = [single.learn_transform([row]) for row in rows]
    assert np.array_equal(padded(parts, 66), whole.toarray())
    text = whole.toarray()[:, :64]
    assert np.linalg.norm(text[0] - text[2]) == pytest.approx(1.0)
    assert not text[1].any()
    assert table.get_feature_names_out()[64:].tolist() == ["n", "note:missing"]
    assert np.array_equal(table.transform(rows).toarray(), whole.toarray())


def test_times_lie_on_circles():
    rows = [{"t": "2024-05-17T06:00:00"}, {"t": "2024-05-17T18:00:00Z"}, {"t": "2024-05-24T08:00:00+02:00"}]
    found = Table().learn_transform(rows)
    assert found[:, 0].tolist() == [0.0, 0.5, 7.0]
    assert found[0, 1:3].tolist() == [1.0, 0.0]
    assert found[1, 1:3].tolist() == [-1.0, 0.0]
    assert np.array_equal(found[0, 1:], found[2, 1:])
    turns = np.random.default_rng(0).random(10_000)
    sine, cosine = circle(turns)
    assert np.abs(sine - np.sin(2 * np.pi * turns)).max() < 2e-15
    assert np.abs(cosine - np.cos(2 * np.pi * turns)).max() < 2e-15
    assert time_of(dt.date(2024, 5, 17)) == time_of("2024-05-17") == time_of(np.datetime64("2024-05-17"))
    utc = pd.to_datetime([row["t"] for row in rows], utc=True, format="ISO8601")
    zone = pd.DataFrame({"t": utc.tz_convert("Asia/Tokyo")})
    for other in (zone, pl.from_pandas(zone), pa.Table.from_pandas(zone)):
        assert np.array_equal(Table().learn_transform(other), found)


def test_kinds_can_be_overruled_and_columns_dropped():
    rows = [{"id": 7, "zip": 1234, "n": 1.0}, {"id": 8, "zip": 77, "n": 2.0}]
    table = Table(columns={"zip": "category"}, drop=["id"])
    assert table.learn_transform(rows).tolist() == [[0.7071067811865476, 1.0, 0.0], [0.0, 2.0, 0.7071067811865476]]
    assert repr(table) == "Table(zip=category[2], n=number)"
    assert table.kinds_ == {"zip": "category", "n": "number"}
    assert table.n_features_in_ == 2
    frame = Table(columns={"zip": "category", "id": "drop"})
    assert np.array_equal(frame.learn_transform(pd.DataFrame(rows)), table.transform(rows))
    assert [category_of(x) for x in (7, 7.0, "7", "7.0", "07", True, "True")] == ["7"] * 4 + ["07", "true", "true"]
    assert [kind_of(x) for x in (1, "1e3", True, "False", "2024-01-01", "01/02/24", "x")] == [
        "number", "number", "boolean", "boolean", "time", "category", "category",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"columns: 'a' must be one of number, .* got 'numeric'"):
        Table(columns={"a": "numeric"})
    stamps = Table(columns={"t": "time"}).learn_transform([{"t": 0}, {"t": 86_400}])
    assert stamps[:, 0].tolist() == [0.0, 1.0]


BAD = [
    ([{"a": 1.0}, {"a": "two"}], "row 1, column 'a': 'two' is not a number"),
    ([{"a": 1.0}, {"a": float("inf")}], "row 1, column 'a': inf is not a finite number"),
    ([{"a": True}, {"a": "maybe"}], "row 1, column 'a': 'maybe' is not true or false"),
    ([{"a": "2024-01-01"}, {"a": "noon"}], "row 1, column 'a': 'noon' is not a time"),
    ([{"a": 1.0}, {"a": [1]}], r"row 1, column 'a': \[1\] is not a number"),
    ([{"a": "x" * (LONGEST + 1)}], "row 0, column 'a': 'xxxx.* is too long for a category"),
    ([{"a": 10**400}], "row 0, column 'a': 1000.* is not a finite number"),
    ([{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": "z", "b": "x"}], "row 2, column 'a': 'z' is not a number"),
    (pd.DataFrame({"a": [1.0, np.inf]}), "row 1, column 'a': inf is not a finite number"),
    (np.array([[1.0, 2.0], [np.inf, 1.0]]), "row 1, column 'x0': inf is not a finite number"),
]


@pytest.mark.parametrize(("X", "message"), BAD)
def test_an_error_names_row_column_and_value_and_changes_nothing(X, message):
    table = Table()
    with pytest.raises(CellError, match=message):
        table.learn_transform(X)
    assert known(table) == known(Table())


def test_those_who_want_every_value_get_an_error_for_a_gap():
    for X in ([{"a": 1.0}, {"a": None}], pd.DataFrame({"a": [1.0, np.nan]}), np.array([[1.0], [np.nan]])):
        with pytest.raises(CellError, match=r"row 1, column '(a|x0)': the value is missing"):
            Table(missing="raise").learn_transform(X)
    table = Table(missing="raise")
    table.learn_transform([{"a": 1.0}])
    for row, message in (({"b": 1.0, "a": 1.0}, "column 'b': the column was not there"), ({"a": ""}, "is missing")):
        with pytest.raises(CellError, match=message):
            table.learn_transform(row)


def test_tables_that_are_none():
    table = Table()
    table.learn_transform(np.ones((3, 2)))
    for X, message in [
        (np.ones((2, 3)), "X has 3 features, but Table is expecting 2 features"),
        (np.ones(3), "Expected 2D array"),
        (np.ones((0, 2)), r"0 sample\(s\)"),
        (csr_array(np.ones((1, 3))), "X has 3 features"),
        ([{"a": 1}], "none of the columns a was there before; there were x0, x1"),
        (pd.DataFrame([[1, 2]], columns=["x0", "x0"]), "the column name 'x0' comes twice"),
        ({"x0": [1, 2], "x1": [1]}, "different lengths: 1, 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            table.learn_transform(X)
    for X, message in [
        ("text", "got str"),
        ([{"a": 1}, 3], "row 1: a row is a dict"),
        (pd.Series([1]), "use to_frame"),
    ]:
        with pytest.raises(TypeError, match=message):
            Table().learn_transform(X)
    with pytest.raises(ValueError, match="there is no column left: a are dropped"):
        Table(drop=["a"]).learn_transform({"a": 1})
    with pytest.raises(ValueError, match="missing must be"):
        Table(missing="mean")
    sparse = Table()
    X = csr_array(np.eye(3))
    assert sparse.learn_transform(X) is X
    assert (sparse.width_, sparse.n_features_in_, sparse.n_seen_) == (3, 3, 3)
    np.testing.assert_allclose(sparse.learn_transform(X, StreamScaler("minmax")).toarray(), np.eye(3))


def test_a_forged_file_is_refused():
    table = Table(max_values=2)
    table.learn_transform([{"a": 1.0, "c": "x", "t": "2024-01-01"}, {"a": None, "c": "y", "t": ""}])
    arrays, plain = table.to_file()
    entries = json.loads(json.dumps(plain["entries"]))
    for forged in (
        [*entries, ["value", 1, "z"]], [*entries, ["value", 0, "z"]], [*entries, ["kind", 0, "number"]],
        [*entries, ["column", "a"]], [*entries, ["missing", 9]], [*entries, ["missing", -1]], [*entries, ["missing", 0]],
        [*entries, "x"], [["kind", 0, "number"]], [*entries, ["exec", 0]], [*entries, ["column"]],
        [*entries[:-3], ["gap", 0]],
    ):  # fmt: skip
        with pytest.raises(ValueError, match="damaged"):
            Table.from_file(arrays, {**plain, "entries": forged})
    for key in arrays:
        with pytest.raises(ValueError, match="damaged"):
            Table.from_file({**arrays, key: np.ones(7)}, plain)
    with pytest.raises(ValueError, match="damaged"):
        Table.from_file(arrays, {**plain, "n_seen": -1})


def test_what_a_category_keeps_is_bounded():
    table = Table(max_values=50)
    for start in range(0, 5000, 500):
        table.learn_transform([{"c": f"v{number}"} for number in range(start, start + 500)])
    assert table.width_ == 51
    assert table.bound_ == 52
    assert table.describe() == [{"column": "c", "kind": "category", "values": 50, "others": True, "missing": False}]
    assert table.transform([{"c": "v4999"}, {"c": "never"}])[:, 50].tolist() == [0.7071067811865476] * 2


def test_a_table_that_lost_columns_is_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["heat", "load", "speed"])
    table = Table()
    table.learn_transform(frame)
    with pytest.raises(ValueError, match="lacks heat, load, speed, which the model was trained with; it has HEAT"):
        table.transform(frame.rename(columns=str.upper))
    empty = frame.assign(heat=None)
    with pytest.warns(UserWarning, match="lacks heat, which the model was trained with; .* count as missing"):
        assert np.array_equal(table.transform(frame[["load", "speed"]]), table.transform(empty))
    lone = {"load": float(frame["load"][0]), "speed": float(frame["speed"][0])}
    assert np.array_equal(table.transform(empty)[:1], table.transform(lone))
    assert np.array_equal(table.transform([lone])[0], table.transform(lone)[0])
    table.learn_transform(frame[["load"]])  # a stream may lose a column
    assert table.n_seen_ == 100
