"""No command writes over a file that it reads, nor two outputs into one file."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill import datasets
from gristmill.cli import main

#: command -> what it can write, by option
OUTPUTS = {
    "learn": ("--model", "--report", "--quarantine"),
    "compare": ("--report", "--quarantine"),
    "search": ("--model", "--report", "--quarantine"),
    "predict": ("--quarantine",),
}


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2))
    lines = [f"d{i % 3},{a:.3f},{b:.3f},{'p' if a > 0 else 'q'}" for i, (a, b) in enumerate(X.tolist())]
    path = tmp_path / "few.csv"
    path.write_text("k,a,b,y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(name, table, *more):
    if name == "predict":
        model = table.with_name("m.gm")
        if not model.exists():
            assert call("learn", table, "--learner", "perceptron", "--model", model).exit_code == 0
        return ["predict", model, table, "--skip-bad", *more]
    grid = ["--learner", "perceptron(Gaussian({g}))", "--grid", "g=0.1,1", "--jobs", "1"]
    how = {"search": grid}.get(name, ["--learner", "perceptron"])
    return [name, table, *how, "--skip-bad", *more]


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names_of(path, how, folder):
    """One file under several names."""
    if how == "symbolic link":
        link = folder / "link"
        link.symlink_to(path)
        return link
    if how == "hard link":
        link = folder / "link"
        os.link(path, link)
        return link
    return {"same": path, "dots": folder / "." / ".." / folder.name / path.name}[how]


@pytest.mark.parametrize("how", ["same", "dots", "symbolic link", "hard link"])
@pytest.mark.parametrize(("name", "option"), [(name, option) for name, all_ in OUTPUTS.items() for option in all_])
def test_the_data_are_not_written_over(name, option, how, table):
    arguments = command(name, table)
    other = names_of(table, how, table.parent)
    before = snapshot(table.parent)
    result = call(*arguments, option, other)
    assert result.exit_code == 2
    assert f"{option} {other}: this would overwrite the file of DATA" in result.stderr
    assert snapshot(table.parent) == before


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [(name, one, other) for name, all_ in OUTPUTS.items() for one in all_ for other in all_ if one < other],
)
def test_two_outputs_are_two_files(name, one, other, table):
    result = call(*command(name, table, one, table.with_name("x"), other, table.with_name("x")))
    assert result.exit_code == 2
    assert "give each its own file" in result.stderr
    assert not table.with_name("x").exists()


@pytest.mark.parametrize("option", ["--model", "--report", "--quarantine", "--spill"])
def test_with_keys_no_file_is_written_over(option, table):
    second = table.with_name("second.csv")
    second.write_bytes(table.read_bytes())
    before = snapshot(table.parent)
    result = call("learn", table, second, "--key", "k", "--max-keys", "2", "--skip-bad", option, second)
    assert result.exit_code == 2
    assert "this would overwrite the file of MORE" in result.stderr
    assert snapshot(table.parent) == before


def test_a_model_is_gone_on_with_in_its_place_and_not_written_over_by_others(table):
    model = table.with_name("m.gm")
    assert call("learn", table, "--learner", "perceptron", "--model", model).exit_code == 0
    before = snapshot(table.parent)
    for option in ("--report", "--quarantine"):
        result = call("learn", table, "--resume", model, "--skip-bad", option, model)
        assert result.exit_code == 2
        assert "this would overwrite the file of --resume" in result.stderr
    result = call("predict", model, table, "--skip-bad", "--quarantine", model)
    assert result.exit_code == 2
    assert "this would overwrite the file of MODEL" in result.stderr
    assert snapshot(table.parent) == before
    assert call("learn", table, "--resume", model, "--model", model).exit_code == 0


def test_standard_input_and_named_data_are_not_written_over(table, monkeypatch):
    program = "from gristmill.cli import main; main()"
    before = snapshot(table.parent)
    with table.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", program, "learn", "-", "--model", str(table)], stdin=file, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "this would overwrite the file of standard input" in done.stderr
    monkeypatch.setattr(datasets, "path_of", lambda name: table)
    result = call("learn", "a9a", "--report", table)
    assert result.exit_code == 2
    assert "this would overwrite the file of DATA" in result.stderr
    assert snapshot(table.parent) == before


def test_bad_rows_of_all_files_are_kept(table):
    """The second file must not begin the quarantine anew."""
    second, kept = table.with_name("second.csv"), table.with_name("bad.csv")
    text = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([*text[:200], "d1,first", *text[200:]]) + "\n", encoding="utf-8")
    second.write_text("\n".join([*text[:200], "d1,second", *text[200:]]) + "\n", encoding="utf-8")
    result = call("learn", table, second, "--key", "k", "--skip-bad", "--quarantine", kept)
    assert result.exit_code == 0, result.stderr
    found = kept.read_text(encoding="utf-8")
    assert "d1,first" in found
    assert "d1,second" in found
    assert "2 bad rows were skipped" in result.stderr
