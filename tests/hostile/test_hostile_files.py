"""Damaged and unusual files, in every format: each ends in one line on standard error and exit code 2."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import gristmill
from gristmill.cli import main
from gristmill.streams import BadRows, StreamError, WidthFinder, read
from gristmill.streams.files import source
from gristmill.streams.files.libsvm import LARGEST, indices

LONG = 131_073  # one more than Python's reader of CSV takes for a field


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False, **kwargs)


def arrow_file(path, **columns):
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.feather.write_feather(table, path, compression="uncompressed")


def nested(depth):
    return "[" * depth + "]" * depth


#: name -> (file, its text or its columns, what the line must say)
HOSTILE = {
    "carriage returns, csv": ("t.csv", "a,b,y\r1,2,0\r3,4,1\r", "line 1: a carriage return without"),
    "carriage returns, rows of csv": ("t.csv", "a,b,y\n1,2,0\r3,4,1\r5,6,0\n", "line 2: a carriage return without"),
    "carriage returns, no header": ("t.csv", "1,2,0\r3,4,1\r", "line 1: a carriage return without"),
    "carriage returns, jsonl": ("t.jsonl", '{"a": 1, "y": 0}\r{"a": 2, "y": 1}\r', "line 1: Extra data"),
    "carriage returns, libsvm": ("t.libsvm", "1 1:2\r-1 1:3\r", "line 1: '-1' is not a pair"),
    "long field, csv": ("t.csv", f"a,b,y\n1,2,0\n{'x' * LONG},2,1\n", "line 3: a field is longer than 131,072"),
    "long header, csv": ("t.csv", f"a,{'x' * LONG},y\n1,2,0\n", "line 1: a field is longer than 131,072"),
    "long field, jsonl": (
        "t.jsonl", f'{{"a": 1, "y": 0}}\n{{"a": "{"x" * LONG}", "y": 1}}\n', "line 2, column 'a': 'xxxxx",
    ),
    "long field, libsvm": ("t.libsvm", f"1 1:2\n1 1:{'x' * LONG}\n", "line 2: '1:xxxx"),
    "long field, parquet": ("t.parquet", {"a": ["x" * LONG, "y"], "y": [0, 1]}, "row 1, column 'a': 'xxxx"),
    "long field, arrow": ("t.arrow", {"a": ["x" * LONG, "y"], "y": [0, 1]}, "row 1, column 'a': 'xxxx"),
    "blank lines, csv": ("t.csv", "\n\n  \n\r\n\n", "t.csv: the file is empty"),
    "blank lines, jsonl": ("t.jsonl", "\n\n  \n\r\n\n", "t.jsonl: the file is empty"),
    "blank lines, libsvm": ("t.libsvm", "\n\n  \n\r\n\n", "t.libsvm: the file is empty"),
    "no rows, parquet": ("t.parquet", {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, "is empty"),
    "no rows, arrow": ("t.arrow", {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, "is empty"),
    "no columns, parquet": ("t.parquet", {}, "t.parquet: "),
    "no columns, arrow": ("t.arrow", {}, "t.arrow: "),
    "only a header, csv": ("t.csv", "a,b,y\n", "there is no row"),
    "nested, jsonl": ("t.jsonl", f'{{"a": 1, "y": 0}}\n{{"a": {nested(100_000)}, "y": 1}}\n', "line 2: the JSON is nested"),
    "nested a little, jsonl": (
        "t.jsonl", f'{{"a": 1, "y": 0}}\n{{"a": {nested(900)}, "y": 1}}\n', "line 2, column 'a': [[[[[[[...",
    ),
    "nested, csv": ("t.csv", f"a,y\n1,0\n{nested(1000)},1\n2,0\n3,1\n", "line 3, column 'a': '[[[["),
    "nested, libsvm": ("t.libsvm", f"1 1:2\n1 1:{nested(1000)}\n", "line 2: '1:[[[["),
    "nested, parquet": ("t.parquet", {"a": [[[1.0]], [[2.0]]], "y": [0, 1]}, "row 1, column 'a': "),
    "nested, arrow": ("t.arrow", {"a": [[[1.0]], [[2.0]]], "y": [0, 1]}, "row 1, column 'a': "),
    "huge whole number, jsonl": (
        "t.jsonl", f'{{"a": 1, "y": 0}}\n{{"a": 1{"0" * 400}, "y": 1}}\n', "is not a finite number",
    ),
    "huge number, csv": ("t.csv", f"a,y\n1,0\n1{'0' * 400},1\n", "line 3, column 'a': '1000"),
    **{
        f"index {index}, libsvm": ("t.libsvm", f"1 1:2\n-1 {index}:1\n", "an index is at most 2147483646")
        for index in (2**31 - 1, 2**31, 2**32, 2**32 + 1, 10**10 + 1, 10**18 + 3, 10**30, "9" * 5000)
    },
    "names twice, parquet": (
        "t.parquet", pa.Table.from_arrays([pa.array([n]) for n in range(3)], ["a", "a", "y"]), "'a' comes twice",
    ),
    "only labels, libsvm": ("t.libsvm", "1\n-1\n", "there is no feature"),
}  # fmt: skip


def written(folder, name, content):
    path = folder / name
    if isinstance(content, str):
        path.write_text(content, newline="")
    elif isinstance(content, pa.Table):
        pa.parquet.write_table(content, path)
    else:
        arrow_file(path, **content)
    return path


@pytest.mark.parametrize("case", list(HOSTILE))
@pytest.mark.parametrize("command", ["learn", "compare"])
def test_hostile_files_are_one_line_and_exit_code_2(case, command, tmp_path):
    name, content, message = HOSTILE[case]
    result = call(command, str(written(tmp_path, name, content)))
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert len(result.stderr) < 600


@pytest.mark.parametrize("case", [case for case in HOSTILE if HOSTILE[case][0] in ("t.csv", "t.jsonl", "t.libsvm")])
def test_a_pipe_and_a_packed_file_say_the_same(case, tmp_path):
    name, content, message = HOSTILE[case]
    message = message.replace(name, "standard input")
    piped = call("learn", "-", "--format", name[2:], input=content.encode())
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    for result in (piped, call("learn", str(packed))):
        assert result.exit_code == 2
        assert message.replace("standard input", "") in result.stderr.replace(".gz", "").replace("standard input", name)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.libsvm"])
def test_skipping_bad_rows_skips_these_too(name, tmp_path):
    good = {"t.csv": "1,2,0\n3,4,1\n", "t.jsonl": '{"a": 1, "y": 0}\n{"a": 3, "y": 1}\n', "t.libsvm": "1 1:1\n-1 2:3\n"}
    bad = {
        "t.csv": f"{'x' * LONG},2,1\n1,2\r3,4\n",
        "t.jsonl": f'{{"a": {nested(100_000)}}}\n{{"a": 1{"0" * 400}, "y": 1}}\n',
        "t.libsvm": f"1 {2**31 - 1}:1\n1 {2**32 + 1}:1 # 5:6\n",
    }
    head = "a,b,y\n" if name == "t.csv" else ""
    aside = BadRows()
    X, _ = read(written(tmp_path, name, head + good[name] + bad[name] + good[name]), bad=aside).arrays()
    assert (X.shape[0], aside.count) == (4, 2)
    assert X.shape[1] == (1 if name == "t.jsonl" else 2)


def test_blank_lines_before_the_first_row_and_a_byte_order_mark_are_no_rows(tmp_path):
    for text in ("\n\r\n  \na,b,y\n1,2,0\n\n3,4,1\n \n", "\ufeff\n1,2,0\n3,4,1\n", "\ufeff1,2,0\n3,4,1\n"):
        X, y = read(written(tmp_path, "t.csv", text)).arrays()
        assert (X.tolist(), y.tolist()) == ([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    with pytest.raises(StreamError, match="line 5, column 'b': 'x'"):
        read(written(tmp_path, "t.csv", '\n"a\nb",b,y\n1,2,0\n1,x,0\n')).arrays()


def test_quotes_in_json_lines_do_not_hold_rows_together(tmp_path, monkeypatch):
    rows = [json.dumps({"a": n, "note": '5" pipe', "y": n % 2}) for n in range(2000)]
    path = written(tmp_path, "t.jsonl", "\n".join(rows))
    original = source.text_blocks
    monkeypatch.setattr("gristmill.streams.files.json_lines.text_blocks", lambda path: original(path, block=1 << 12))
    assert len(list(read(path, categorical="hash"))) > 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x" * 5000, "line 1: the line is longer than"),
        (b'a,y\n1,"0\n' + b"2,1\n" * 1000, "line 2: a double quote is opened"),
    ],
)
def test_a_line_without_end_does_not_fill_the_memory(text, message, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LONGEST", 1 << 11)
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with pytest.raises(StreamError, match=message):
        list(source.text_blocks(path, quoted=True, block=1 << 9))


def test_the_largest_index_is_read_and_takes_no_memory(tmp_path):
    path = written(tmp_path, "t.libsvm", f"1 1:1 {LARGEST}:1\n-1 2:1\n1 1:2\n-1 2:2\n")
    tracemalloc.start()
    X, _ = read(path).arrays()
    gamma = WidthFinder(random_state=0).update(X).gamma
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.shape == (4, LARGEST)
    assert gamma == 0.25  # squared distances 3, 2, 6, 5, 1 and 8
    assert most < 1 << 28
    assert "1<=x<=2147483646" in call("learn", str(path), "--features", str(2**31)).stderr
    assert "columns are too many" in call("learn", str(path), "--scale", "standard").stderr


def test_a_width_is_the_same_from_sparse_and_from_dense_rows():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30)) * (rng.random((300, 30)) < 0.2)
    dense, sparse = (WidthFinder(size=50, random_state=3).update(rows).gamma for rows in (X, csr_array(X)))
    assert dense == pytest.approx(sparse, rel=1e-12)


def test_indices_are_those_of_the_text():
    assert indices(b"1 1:2 30:4\n-1 0004:x :5 x7:8\n").tolist() == [1, 30, 4, 0, 7]
    assert indices(f"1 {LARGEST}:1 {LARGEST + 1}:1 {10**25}:1".encode()).tolist() == [LARGEST, LARGEST + 1, LARGEST + 1]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.libsvm", "t.arrow", "t.parquet"])
def test_very_many_columns(name, tmp_path):
    """What looks at each name once for each name would not end in this life."""
    count = 20_000 if name == "t.parquet" else 100_000  # pyarrow itself takes minutes to write more
    names = [f"c{place}" for place in range(count)]
    rows = np.arange(3 * count, dtype=float).reshape(3, count)
    if name in ("t.arrow", "t.parquet"):
        arrow_file(tmp_path / name, **dict(zip(names, rows.T.copy(), strict=True)), y=[0, 1, 0])
    elif name == "t.jsonl":
        lines = [json.dumps({**dict(zip(names, row, strict=True)), "y": n % 2}) for n, row in enumerate(rows.tolist())]
        written(tmp_path, name, "\n".join(lines))
    elif name == "t.libsvm":
        lines = [
            f"{n % 2} " + " ".join(f"{at}:{v}" for at, v in enumerate(row, 1)) for n, row in enumerate(rows.tolist())
        ]
        written(tmp_path, name, "\n".join(lines))
    else:
        lines = [",".join([*names, "y"])] + [",".join(map(str, [*row, n % 2])) for n, row in enumerate(rows.tolist())]
        written(tmp_path, name, "\n".join(lines))
    X, y = read(tmp_path / name).arrays()
    assert np.array_equal(X.toarray() if name == "t.libsvm" else X, rows)
    assert y.tolist() == [0, 1, 0]


def test_very_many_columns_on_the_command_line(tmp_path):
    count = 20_000
    lines = [",".join([*(f"c{place}" for place in range(count)), "y"])]
    lines += [",".join([*(f"{place % 97}.5" for place in range(count)), str(row % 2)]) for row in range(3)]
    path, model = written(tmp_path, "t.csv", "\n".join(lines)), tmp_path / "model"
    assert call("learn", str(path), "--model", str(model)).exit_code == 0
    assert len(call("predict", str(model), str(path)).stdout.split()) == 3


# ---- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["learn"], ["search", "--learner", "perceptron(Gaussian({g}))", "--grid", "g=0.1,1"]]
)
def test_a_model_is_written_through_a_link(command, tmp_path):
    jobs = ["--jobs", "1"] if command[0] == "search" else []
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "model", tmp_path / "link"
    os.symlink(os.path.join("there", "model"), link)
    for _ in range(2):  # it leads nowhere at first, then to a model
        result = call(command[0], "two_gaussians", *command[1:], *jobs, "--limit", "300", "--model", str(link))
        assert result.exit_code == 0
        assert link.is_symlink()
        assert gristmill.load(real).n_seen_ == gristmill.load(link).n_seen_ == 300
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    os.symlink("nowhere/model", tmp_path / "broken")
    os.symlink("round", tmp_path / "round")
    for name, message in (("broken", "there is no folder"), ("round", "it is not a file")):
        refused = call("learn", "two_gaussians", "--limit", "300", "--model", str(tmp_path / name))
        assert refused.exit_code == 2
        assert message in refused.stderr
    assert "it is not a file" in call("learn", "two_gaussians", "--limit", "300", "--model", os.devnull).stderr
