"""Files and pipes, good and bad, in every format."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from gristmill.streams import BadRows, Columns, StreamError, from_rows, read
from gristmill.streams.files import source
from gristmill.streams.files.libsvm import largest_index

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(3000, 4)), 6)
Y = RNG.integers(3, size=3000)


def csv_text(rows=3000, names="a,b,c,d,label"):
    lines = [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(X[:rows], Y[:rows], strict=True)]
    return "\n".join([names, *lines] if names else lines) + "\n"


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that every file has many."""
    original = source.text_blocks
    for module in ("csv", "libsvm", "json_lines"):
        monkeypatch.setattr(
            f"gristmill.streams.files.{module}.text_blocks", lambda path, quoted=False: original(path, quoted, 1 << 12)
        )


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(stream):
    got, labels = stream.arrays()
    got = got.toarray() if hasattr(got, "toarray") else got
    assert np.array_equal(got, X)
    assert np.array_equal(labels, Y)
    assert labels.dtype.kind == "i"


@pytest.mark.usefixtures("small_blocks")
class TestGoodFiles:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
    def test_csv_packed(self, tmp_path, pack):
        path = written(tmp_path, "t.csv", pack(csv_text().encode()))
        same(read(path))
        assert next(iter(read(path))).names == ("a", "b", "c", "d")

    def test_csv_zstd(self, tmp_path):
        path = tmp_path / "t.csv.zst"
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(csv_text().encode())
        same(read(path))

    def test_csv_without_pyarrow_is_the_same(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gristmill.streams.files.csv.find_spec", lambda name: None)
        same(read(written(tmp_path, "t.csv", csv_text())))

    @pytest.mark.parametrize("delimiter", [";", "\t", "|"])
    def test_csv_dialects(self, tmp_path, delimiter):
        same(read(written(tmp_path, "t.csv", csv_text().replace(",", delimiter))))
        same(read(written(tmp_path, "t.csv", csv_text(names="").replace("\n", "\r\n"))))

    def test_csv_from_standard_input(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(csv_text().encode()))))
        same(read("-"))

    def test_libsvm(self, tmp_path):
        buffer = io.BytesIO()
        dump_svmlight_file(X, Y, buffer, zero_based=False)
        path = written(tmp_path, "t.libsvm", buffer.getvalue())
        same(read(path))
        wide, _ = read(path, n_features=9).arrays()
        assert wide.shape == (3000, 9)
        assert next(iter(read(path, target=None))).y is None

    def test_json_lines(self, tmp_path):
        rows = [dict(zip("abcd", row.tolist(), strict=True), label=int(y)) for row, y in zip(X, Y, strict=True)]
        same(read(written(tmp_path, "t.jsonl", "\n".join(map(json.dumps, rows)))))

    def test_a_second_reading_is_the_same(self, tmp_path):
        stream = read(written(tmp_path, "t.csv", csv_text()))
        same(stream)
        same(stream)


def test_parquet_and_arrow(tmp_path):
    table = pa.table({**{name: X[:, place] for place, name in enumerate("abcd")}, "label": Y})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    pa.feather.write_feather(table, tmp_path / "t.feather", compression="uncompressed")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
    for name in ("t.parquet", "t.feather", "t.arrow"):
        same(read(tmp_path / name))
    pa.parquet.write_table(pa.table({"a": [1.0, None], "label": [0, 1]}), tmp_path / "hole.parquet")
    with pytest.raises(StreamError, match=r"hole.parquet, row 2, column 'a': the value is missing"):
        read(tmp_path / "hole.parquet").arrays()


def test_rows_of_dicts_and_pairs():
    rows = [dict(zip("abcd", row.tolist(), strict=True), label=int(y)) for row, y in zip(X, Y, strict=True)]
    same(from_rows(rows, size=70))
    same(from_rows([({k: v for k, v in row.items() if k != "label"}, row["label"]) for row in rows]))
    with pytest.raises(StreamError, match="rows, row 2: a row is a dict or a pair"):
        from_rows([rows[0], [1, 2]]).arrays()
    with pytest.raises(StreamError, match="row 2, column 'b': the value is missing"):
        from_rows([rows[0], {"a": 1.0, "label": 1}]).arrays()
    with pytest.raises(StreamError, match="row 2, column 'e': the column was not there before"):
        from_rows([rows[0], {**rows[1], "e": 1.0}]).arrays()


def test_categories():
    columns = Columns(categorical="onehot")
    first = columns.chunk({"size": [1.0, 2.0], "hue": ["red", "blue"], "y": [0, 1]})
    assert first.names == ("size", "hue=blue", "hue=red")
    later = columns.chunk({"size": [3.0], "hue": ["green"], "y": [1]})
    assert later.X.tolist() == [[3.0, 0.0, 0.0]]
    hashed = Columns(categorical="hash", slots=8).chunk({"hue": ["red", "blue", "red"], "y": [0, 1, 0]})
    assert hashed.X.sum(axis=1).tolist() == [1.0, 1.0, 1.0]
    assert np.array_equal(hashed.X[0], hashed.X[2])


def test_the_target_may_be_anywhere(tmp_path):
    path = written(tmp_path, "t.csv", "a,y,b\n1,yes,2\n3,no,4\n")
    for target in ("y", 1, -2):
        got, labels = read(path, target=target).arrays()
        assert got.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert labels.tolist() == ["yes", "no"]
    with pytest.raises(StreamError, match="there is no column 'z'; there are a, y, b"):
        read(path, target="z").arrays()
    with pytest.raises(StreamError, match="there is no column 7, only 3"):
        read(path, target=7).arrays()


BAD_CSV = {
    "columns change": ("a,b,y\n1,2,0\n1,2,3,0\n", "line 3: 4 columns, expected 3"),
    "cut off": ("a,b,y\n1,2,0\n1,2", "line 3: 2 columns, expected 3"),
    "not a number": (
        "a,b,y\n" + "1,2,0\n" * 50 + "1,two,0\n",
        "line 52, column 'b': 'two' is not a number",
    ),
    "missing": ("a,b,y\n1,2,0\n1,,0\n", "line 3, column 'b': the value is missing"),
    "nan": (
        "a,b,y\n1,2,0\n1,nan,0\n1,2,1\n" + "1,2,0\n" * 40,
        "line 3, column 'b': the value is missing",
    ),
    "text": ("a,b,y\nx,2,0\nz,3,0\n", "column 'a': 'x' is not a number; give categorical="),
    "empty": ("", "the file is empty"),
    "binary": (b"a,b\n\x00\x01\x02", "this is a binary file, not text"),
    "names twice": ("a,a,y\n1,2,0\n", "line 1: the column name 'a' comes twice"),
    "only a target": ("y\n1\n", "there is no column besides the target 'y'"),
}


@pytest.mark.parametrize("case", list(BAD_CSV))
def test_bad_csv_is_named(tmp_path, case):
    text, message = BAD_CSV[case]
    path = written(tmp_path, "bad.csv", text)
    with pytest.raises(StreamError, match=message) as caught:
        read(path).arrays()
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_LIBSVM = {
    "pair": ("1 1:2\n1 1:2 3\n", "line 2: '3' is not a pair index:value"),
    "value": ("1 1:2\n\n1 1:x\n", "line 3: '1:x' is not a pair index:value"),
    "order": ("1 3:1 2:1\n", "line 1: '2:1': indices must ascend, and 3 came before"),
    "zero": ("1 0:1 2:1\n", "line 1: '0:1': indices start at 1"),
    "label": ("yes 1:1\n", "line 1: the label 'yes' is not a finite number"),
    "infinite": ("1 1:inf\n", "line 1: '1:inf' is not a pair"),
    "empty": ("", "the file is empty"),
}


@pytest.mark.parametrize("case", list(BAD_LIBSVM))
def test_bad_libsvm_is_named(tmp_path, case):
    text, message = BAD_LIBSVM[case]
    with pytest.raises(StreamError, match=message):
        read(written(tmp_path, "bad.libsvm", text)).arrays()


def test_libsvm_wider_than_said(tmp_path):
    path = written(tmp_path, "wide.libsvm", "1 1:1\n1 7:1\n")
    with pytest.raises(StreamError, match=r"line 2: '7:1': there are only 3 features"):
        read(path, n_features=3).arrays()


def test_bad_json_is_named(tmp_path):
    for text, message in [
        ('{"a": 1, "y": 0}\n{"a": 1, "y"', "line 2: "),
        ('{"a": 1, "y": 0}\n[1]\n', "line 2: this is not a JSON object"),
        ('{"a": 1, "y": 0}\n{"a": "one", "y": 0}\n', "line 2, column 'a': 'one' is not a number"),
        ('{"a": 1, "y": 0}\n{"a": 1}\n', "line 2, column 'y': the label is missing"),
    ]:
        with pytest.raises(StreamError, match=message):
            read(written(tmp_path, "bad.jsonl", text)).arrays()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_archives_keep_what_came_before(tmp_path, pack, monkeypatch):
    data = pack(csv_text().encode())
    path = written(tmp_path, "t.csv.gz", data[: len(data) * 3 // 4])
    original = source.text_blocks
    monkeypatch.setattr(
        "gristmill.streams.files.csv.text_blocks", lambda path, quoted=False: original(path, quoted, 1 << 10)
    )
    seen: list[int] = []
    with pytest.raises(StreamError, match=r"damaged or cut off after line \d+"):
        seen.extend(len(chunk.y) for chunk in read(path))
    assert pack is bz2.compress or sum(seen) > 100


def test_no_file_no_permission_no_format(tmp_path, monkeypatch):
    with pytest.raises(StreamError, match="there is no such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(StreamError, match="the name does not show the format"):
        read(written(tmp_path, "strange.xyz", "1,2\n"))
    with pytest.raises(StreamError, match="unknown format 'xml'"):
        read(tmp_path, "xml")
    with pytest.raises(StreamError, match="cannot be read from standard input"):
        read("-", "parquet")
    with pytest.raises(StreamError, match="Is a directory"):
        read(tmp_path, "csv").arrays()

    def refuse(*arguments, **settings):
        raise PermissionError(13, "Permission denied")

    secret = written(tmp_path, "secret.csv", "a,y\n1,2\n")
    monkeypatch.setattr("builtins.open", refuse)  # the tests may run as root, who may read everything
    with pytest.raises(StreamError, match=r"secret\.csv: Permission denied"):
        read(secret).arrays()


def test_bad_rows_can_be_put_aside(tmp_path):
    text = csv_text(100).splitlines()
    text[10] = "1,2,3"
    text[20] = "1,2,x,4,1"
    bad = BadRows(tmp_path / "bad.txt")
    got, labels = read(written(tmp_path, "t.csv", "\n".join(text)), bad=bad).arrays()
    bad.close()
    keep = [place for place in range(100) if place not in (9, 19)]
    assert np.array_equal(got, X[keep])
    assert np.array_equal(labels, Y[keep])
    assert bad.count == 2
    kept = (tmp_path / "bad.txt").read_text().splitlines()
    assert kept[1] == "1,2,3"
    assert "line 21, column 'c': 'x'" in kept[2]
    lines = BadRows()
    rows, _ = read(written(tmp_path, "t.libsvm", "1 1:1\n1 x\n0 1:3\n"), bad=lines).arrays()
    assert (rows.shape, lines.count) == ((2, 1), 1)
    objects = BadRows()
    rows, _ = read(written(tmp_path, "t.jsonl", '{"a": 1, "y": 0}\n{\n{"a": 2, "y": 1}\n'), bad=objects).arrays()
    assert (len(rows), objects.count) == (2, 1)


def test_quoted_line_breaks_do_not_end_a_row(tmp_path):
    text = 'word,n,y\n"one\ntwo",1,0\n' + '"three",2,1\n' * 30
    got, labels = read(written(tmp_path, "t.csv", text), categorical="hash").arrays()
    assert (len(got), labels[0]) == (31, 0)


def test_largest_index_is_that_of_the_parser():
    rows = csr_array((RNG.random((50, 1200)) < 0.01) * RNG.normal(size=(50, 1200)))
    buffer = io.BytesIO()
    dump_svmlight_file(rows, np.ones(50), buffer, zero_based=False)
    assert largest_index(buffer.getvalue()) == rows.indices.max() + 1
    assert largest_index(b"1\n-1\n") == 0
