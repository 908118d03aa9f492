"""What the command line reads, and what it says of files and options that do not go together."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill.cli import main
from gristmill.streams import StreamError, read

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, list(arguments), **kwargs)


@pytest.fixture
def table(tmp_path):
    rows = [f"{a:.4f},{b:.4f},{int(a * b > 0)}" for a, b in RNG.normal(size=(3000, 2)).tolist()]
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    return path


def test_a_file_a_pipe_and_a_packed_pipe_give_one_answer(table):
    data = table.read_bytes()
    outputs = [call("learn", str(table), "--json").stdout]
    outputs += [call("learn", "-", "--json", input=piece).stdout for piece in (data, gzip.compress(data))]
    assert len({json.dumps(json.loads(output)["metrics"]) for output in outputs}) == 1


@pytest.mark.parametrize("cell", ["inf", "x"])
def test_one_bad_cell_in_a_short_file_is_named_and_skipped(cell, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text(f"a,b,y\n1,2,p\n{cell},2,q\n1,3,p\n2,3,q\n")
    result = call("learn", str(path))
    assert result.exit_code == 2
    assert f"few.csv, line 3, column 'a': '{cell}' is not a " in result.stderr
    assert "1 bad rows were skipped" in call("learn", str(path), "--skip-bad").stderr


@pytest.mark.parametrize("cell", ["nan", "?", "", "NA"])
def test_a_gap_is_filled_unless_one_wants_to_hear_of_it(cell, tmp_path):
    path, model = tmp_path / "few.csv", tmp_path / "m"
    path.write_text(f"a,b,y\n1,2,p\n{cell},2,q\n1,3,p\n2,3,q\n")
    assert call("learn", str(path), "--model", str(model)).exit_code == 0
    assert json.loads(call("inspect", str(model), "--json").stdout)["kinds"] == {
        "a": "number, with gaps",
        "b": "number",
    }
    refused = call("learn", str(path), "--missing", "raise")
    assert refused.exit_code == 2
    assert "few.csv, line 3, column 'a': the value is missing" in refused.stderr
    assert "1 bad rows were skipped" in call("learn", str(path), "--missing", "raise", "--skip-bad").stderr


def test_a_column_of_text_is_named_at_its_line(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,b,y\n1,2,p\n3,4,q\nred,5,p\nblue,6,q\ngreen,7,p\n")
    with pytest.raises(StreamError, match="line 4, column 'a': 'red' is not a number"):
        read(path).arrays()


def test_what_was_unpacked_before_the_damage_is_kept(table, tmp_path):
    broken, model = tmp_path / "broken.csv.gz", tmp_path / "model"
    whole = gzip.compress(table.read_bytes())
    broken.write_bytes(whole[: len(whole) // 2])
    result = call("learn", str(broken), "--model", str(model), "--keep")
    assert result.exit_code == 2
    assert "broken.csv.gz: damaged or cut off after line" in result.stderr
    assert gristmill.load(model).n_seen_ > 1000


def test_a_folder_is_no_file(tmp_path):
    assert "Is a directory; give a file" in call("learn", str(tmp_path)).stderr


def test_places_to_write_to_are_looked_at_first(table):
    result = call("learn", str(table), "--model", "/no/such/folder/m")
    assert result.exit_code == 2
    assert "there is no folder /no/such/folder" in result.stderr


def test_what_a_saved_model_has_settled_is_not_said_again(table, tmp_path):
    model = str(tmp_path / "m")
    call("learn", str(table), "--model", model)
    refused = call("learn", str(table), "--resume", model, "--learner", "perceptron")
    assert refused.exit_code == 2
    assert "--learner is settled by the model of --resume" in refused.stderr
    assert f"AutoClassifier of {model}" in call("learn", str(table), "--resume", model).stdout


def test_numbers_as_target_of_a_classifier(table, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,y\n" + "\n".join(f"{a:.3f},{2 * a:.3f}" for a in RNG.normal(size=100)))
    said = call("learn", str(path), "--learner", "passive_aggressive(size=300)")
    assert "passive_aggressive_regressor" in said.stderr
    result = call("compare", str(table), "--learner", "perceptron", "--learner", "perceptron")
    assert "is given twice" in result.stderr


def rows(count, label):
    X = np.random.default_rng(5).normal(size=(count, 2)) * [1.0, 1000.0]
    return "a,b,y\n" + "".join(f"{a:.4f},{b:.3f},{label(a, b)}\n" for a, b in X)


def test_learn_finds_out_what_the_target_is_and_tells_who_led(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(rows(400, lambda a, b: "in" if a * b > 0 else "out"))
    said = call("learn", str(path), "--json", "--model", str(tmp_path / "model"))
    assert "the target is a class" in said.stderr
    assert "baselines: majority class 0." in said.stderr
    assert "led by: Prepared(KernelClassifier(" in said.stderr
    assert "warning" not in said.stderr
    assert json.loads(said.stdout)["metrics"]["error"] < 0.25
    path.write_text(rows(400, lambda a, b: f"{50_000 + 10 * a:.3f}"))
    said = call("learn", str(path), "--json")
    assert "the target is a number" in said.stderr
    assert "baselines: running mean" in said.stderr
    assert "led by: Line" in said.stderr
    path.write_text(rows(400, lambda a, b: int(a > 0)))
    assert (
        "AutoRegressor"
        in call("learn", str(path), "--task", "regression", "--report", str(tmp_path / "r")).stdout
        + (tmp_path / "r").read_text()
    )


def test_learn_warns_where_nothing_comes_of_it(tmp_path):
    path = tmp_path / "noise.csv"
    labels = iter(np.random.default_rng(6).integers(2, size=400).tolist())
    path.write_text(rows(400, lambda a, b: next(labels)))
    said = call("learn", str(path), "--learner", "KernelClassifier(Gaussian(1e-9), Perceptron())")
    assert "warning: no better than" in said.stderr


def test_what_costs_nothing_is_counted_along_the_stream():
    from gristmill.evaluate.baselines import Baselines, task_of_target

    classes = Baselines("classification")
    classes.update(["a", "a", "b"])
    classes.update(["b", "b", "b"])
    assert classes.errors["no change"] == pytest.approx(2 / 6)  # the first, and the change
    assert classes.errors["majority class"] == pytest.approx(3 / 6)
    numbers = Baselines("regression")
    numbers.update([2.0, 4.0])
    assert numbers.errors == {"running mean": pytest.approx(2.0), "last value": pytest.approx(2.0)}
    assert task_of_target(np.arange(100)) == "regression"
    assert task_of_target(np.array([True, False])) == "classification"


def test_search_needs_no_grid(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(rows(300, lambda a, b: "in" if a * b > 0 else "out"))
    said = call("search", str(path), "--first", "100", "--jobs", "1", "--model", str(tmp_path / "model"))
    assert said.exit_code == 0, said.stderr
    assert "KernelClassifier" in said.stdout
    assert "AutoClassifier" in call("inspect", str(tmp_path / "model")).stdout
    assert "go together" in call("search", str(path), "--grid", "C=1,2").stderr


def test_a_warning_is_one_line(table, tmp_path):
    model, other = tmp_path / "m", tmp_path / "other.csv"
    call("learn", str(table), "--model", str(model), "--kernel", "Gaussian(1.0)")
    other.write_text("a\n1.0\n")
    command = [sys.executable, "-m", "gristmill", "predict", str(model), str(other)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (
        said.stderr
        == "warning: the table lacks b, which the model was trained with; it has a; all their values count as missing\n"
    )
