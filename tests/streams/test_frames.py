"""Files as tables: CSV, JSON lines, Parquet and Arrow give a `Table` the same bits, and errors their place."""

from __future__ import annotations

import csv
import datetime as dt
import json
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings

from gristmill.streams import BadRows, CellError, StreamError, Table, read
from gristmill.streams.files import source
from gristmill.streams.files.labels import Labels
from gristmill.streams.tables.cells import Misfit, is_missing, missing_in, number_of
from gristmill.streams.tables.frame import frame_of
from tests.streams.test_table import known, padded, tables

FORMATS = ("csv", "jsonl", "parquet", "arrow")


def write(path, rows):
    """Rows of dicts, in the format that the name tells."""
    if path.suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(list(rows[0]))
            for row in rows:
                writer.writerow(
                    ["" if v is None else v.isoformat() if isinstance(v, dt.datetime) else v for v in row.values()]
                )
    elif path.suffix == ".jsonl":
        lines = [json.dumps(row, default=lambda time: time.isoformat(), ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.Table.from_pylist(rows).schema) as file:
            file.write_table(pa.Table.from_pylist(rows), max_chunksize=4)
    return path


def learned(path, **options):
    table, parts, labels = Table(), [], []
    for chunk in read(path, raw=True, **options):
        parts.append(table.learn_transform(chunk.X))
        labels.append(chunk.y)
    return table, padded(parts, table.width_), np.concatenate(labels)


@pytest.fixture
def small_blocks(monkeypatch):
    original = source.text_blocks
    for module in ("files.csv", "files.json_lines"):
        monkeypatch.setattr(
            f"gristmill.streams.{module}.text_blocks", lambda path, quoted=False: original(path, quoted, 1 << 6)
        )


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=tables())
def test_every_format_gives_the_bits_of_the_rows(rows, tmp_path):
    wanted = Table()
    expected = wanted.learn_transform(rows)
    labelled = [{**row, "label": number % 3} for number, row in enumerate(rows)]
    for ending in FORMATS:
        table, found, labels = learned(write(tmp_path / f"t.{ending}", labelled))
        assert np.array_equal(found, expected), ending
        assert known(table) == known(wanted), ending
        assert labels.tolist() == [number % 3 for number in range(len(rows))]
        assert labels.dtype.kind == "i"


MESSY = """id,when,hue,size,on,note,y
1,2024-05-17 06:00,red,1.5,true,"a, b",yes
2,2024-05-17 07:00,,2.5,false,"line
break",no
3,,blue,NA,true,c,yes
04,2024-05-18 07:00,red,oops,true,d,no
5,2024-05-19 07:00,green,3.5,,e,yes
"""


@pytest.mark.parametrize("fast", [True, False])
def test_an_error_has_its_line(tmp_path, monkeypatch, fast):
    if not fast:
        monkeypatch.setattr("gristmill.streams.files.csv.find_spec", lambda name: None)
    (tmp_path / "t.csv").write_text(MESSY)
    (chunk,) = read(tmp_path / "t.csv", raw=True)
    assert chunk.y.tolist() == ["yes", "no", "yes", "no", "yes"]
    table = Table(columns={"id": "category"})
    with pytest.raises(CellError, match="row 3, column 'size': 'oops' is not a number") as caught:
        table.learn_transform(chunk.X)
    assert chunk.X.where(caught.value.row) == f"{tmp_path / 't.csv'}, line 6"
    assert chunk.X[2:].where(1) == f"{tmp_path / 't.csv'}, line 6"
    table.learn_transform(chunk.X[:3])
    table.learn_transform(chunk.X[4:])
    assert table.kinds_ == {
        "id": "category", "when": "time", "hue": "category", "size": "number", "on": "boolean", "note": "category",
    }  # fmt: skip
    (kept,) = read(tmp_path / "t.csv", raw=True, keep=["id"])
    table = Table(columns={"id": "category", "size": "drop"})
    table.learn_transform(kept.X)
    assert "id=04" in table.get_feature_names_out().tolist()


def test_rows_without_a_label_or_of_another_shape_are_bad(tmp_path):
    text = "a,b,y\n1,x,0\n2,y,\n3,x\n4,z,1\n5,z,what\n6,z,0\n"
    (tmp_path / "t.csv").write_text(text)
    seen: list[int] = []
    with pytest.raises(
        StreamError, match=r"t.csv, line 4: 2 columns, expected 3|line 3, column 'y': the label is missing"
    ):
        seen.extend(chunk.X.count for chunk in read(tmp_path / "t.csv", raw=True))
    assert seen == [1]
    bad = BadRows(tmp_path / "aside")
    _, rows, labels = learned(tmp_path / "t.csv", bad=bad)
    bad.close()
    assert labels.tolist() == [0, 1, 0]
    assert len(rows) == 3
    assert bad.count == 3
    aside = (tmp_path / "aside").read_text()
    for words in (
        "line 3, column 'y': the label is missing",
        "line 4: 2 columns",
        "line 6, column 'y': the label 'what' is not",
    ):
        assert words in aside
    lines = '{"a": 1, "y": 0}\n{"a": 2}\n{\n{"a": "", "b": 1, "y": 1}\n'
    (tmp_path / "t.jsonl").write_text(lines)
    bad = BadRows()
    table, rows, labels = learned(tmp_path / "t.jsonl", bad=bad, target="y")
    assert (labels.tolist(), bad.count) == ([0, 1], 2)
    assert table.kinds_ == {"a": "number", "b": "number"}


def test_the_target(tmp_path):
    (tmp_path / "t.csv").write_text("a,y,b\n1,yes,2\n3,no,4\n")
    for target in ("y", 1, -2):
        (chunk,) = read(tmp_path / "t.csv", raw=True, target=target)
        assert (chunk.X.names, chunk.y.tolist()) == (("a", "b"), ["yes", "no"])
    (chunk,) = read(tmp_path / "t.csv", raw=True, target=None)
    assert (chunk.X.names, chunk.y) == (("a", "y", "b"), None)
    (chunk,) = read(tmp_path / "t.csv", raw=True, target="z", require_target=False)
    assert (chunk.X.names, chunk.y) == (("a", "y", "b"), None)
    for target, message in (("z", "there is no column 'z'; there are a, y, b"), (7, "there is no column 7, only 3")):
        with pytest.raises(StreamError, match=message):
            read(tmp_path / "t.csv", raw=True, target=target).arrays()
    (tmp_path / "one.csv").write_text("y\n1\n")
    with pytest.raises(StreamError, match="there is no column besides the target 'y'"):
        list(read(tmp_path / "one.csv", raw=True))


def test_missing_words_and_odd_cells_mean_the_same_fast_and_slow(tmp_path, monkeypatch):
    cells = ["1", "", "NA", "nan", "NaN", " 2.5 ", "?", "n/a", "null", "-", "3e2", "+4", ".5", "Null"]
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{cell},{place % 2}\n" for place, cell in enumerate(cells)))
    fast = learned(tmp_path / "t.csv")
    monkeypatch.setattr("gristmill.streams.files.csv.find_spec", lambda name: None)
    slow = learned(tmp_path / "t.csv")
    assert np.array_equal(fast[1], slow[1])
    assert known(fast[0]) == known(slow[0])
    assert fast[1][:, 1].tolist() == [float(cell.strip() not in ("1", "2.5", "3e2", "+4", ".5")) for cell in cells]


def test_records_of_the_same_columns_are_those_of_any():
    """Rows of dicts with one set of columns take a short way; a row of another class or with other columns does not."""
    rows = [{"a": 1.0, "b": 2, 3: "x"}, {3: None, "b": True, "a": 4.0}, {"b": 5.5, "a": 6.0, 3: "y"}]
    short, long = frame_of(rows), frame_of([MappingProxyType(row) for row in rows])
    for found in (short, long):
        assert (found.names, found.count, found.since) == (("a", "b", "3"), 3, (0, 0, 0))
        assert [column.tolist() for column in found.columns] == [[1.0, 4.0, 6.0], [2, True, 5.5], ["x", None, "y"]]
    other = frame_of([{"a": 1, "b": 2}, {"a": 3, "c": 4}])
    assert (other.names, other.since) == (("a", "b", "c"), (0, 0, 1))
    assert [column.tolist() for column in other.columns] == [[1, 3], [2, None], [None, 4]]


def test_labels_that_are_plain_numbers_are_read_as_others():
    for values in ([1, 0, 2.5], [1, True, 3], [1, 10**400], [1.0, float("inf")], [1, None, 2], [1, "2"], [7, 8]):
        column = np.empty(len(values), dtype=object)
        column[:] = values
        found, bad = Labels("y", True)._as_numbers(column)
        expected = []
        for value in values:
            try:
                expected.append(number_of(value))
            except Misfit:
                break
        assert bad == (len(expected) if len(expected) < len(values) else None)
        assert found[: len(expected)].tolist() == expected
        assert missing_in(column).tolist() == [is_missing(value) for value in values]
