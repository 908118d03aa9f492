"""What the command line reads, and what it says of files and options that do not go together."""

from __future__ import annotations

import gzip
import io
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
        "a": "number, with missing values",
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


@pytest.mark.parametrize("option", [("--drop", "bb"), ("--column", "bb=category")])
@pytest.mark.parametrize("keyed", [(), ("--key", "a", "--target", "y")])
def test_options_of_a_column_that_is_not_there_are_refused(option, keyed, table, tmp_path):
    model = tmp_path / "m"
    result = call("learn", str(table), *keyed, *option, "--model", str(model))
    assert result.exit_code == 2
    assert f"data.csv: there is no column 'bb' for {option[0]}; there are a, b" in result.stderr
    assert not model.exists()
    assert call("learn", str(table), "--drop", "b", "--limit", "100").exit_code == 0
    assert call("learn", str(table), "--column", "y=category", "--limit", "100").exit_code == 0


def test_json_lines_may_bring_a_column_later(tmp_path):
    path = tmp_path / "late.jsonl"
    rows = [{"a": i % 7, "y": i % 2} if i < 50 else {"a": i % 7, "late": i, "y": i % 2} for i in range(100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert call("learn", str(path), "--target", "y", "--drop", "late").exit_code == 0


def test_what_a_saved_model_has_settled_is_not_said_again(table, tmp_path):
    model = str(tmp_path / "m")
    call("learn", str(table), "--model", model)
    refused = call("learn", str(table), "--resume", model, "--learner", "perceptron")
    assert refused.exit_code == 2
    assert "--learner is fixed by the model of --resume" in refused.stderr
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
    assert "predicting classes: the target has 2 different values" in said.stderr
    assert "baselines: majority class 0." in said.stderr
    assert "led by: Prepared(KernelClassifier(" in said.stderr
    assert "warning" not in said.stderr
    assert json.loads(said.stdout)["metrics"]["error"] < 0.25
    path.write_text(rows(400, lambda a, b: f"{50_000 + 10 * a:.3f}"))
    said = call("learn", str(path), "--json")
    assert "predicting numbers: the target is a number with a fraction" in said.stderr
    assert "baselines: running mean" in said.stderr
    assert "led by: Line" in said.stderr
    path.write_text(rows(400, lambda a, b: int(a > 0)))
    assert (
        "AutoRegressor"
        in call("learn", str(path), "--task", "regression", "--report", str(tmp_path / "r")).stdout
        + (tmp_path / "r").read_text()
    )


def counted(peak, count=400):
    """Whole numbers whose frequencies rise to one peak and fall, as counts and ratings do."""
    drawn = iter(np.random.default_rng(7).binomial(8, peak / 8, size=count).tolist())
    return lambda a, b: next(drawn)


def test_counts_are_taken_for_numbers_and_it_is_said_how_to_change_it(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(rows(400, counted(4)))
    said = call("learn", str(path), "--json")
    assert "mae" in json.loads(said.stdout)["metrics"]
    assert (
        "predicting numbers: the target has 9 whole numbers from 0 to 8 (--task classification predicts" in said.stderr
    )
    said = call("learn", str(path), "--json", "--task", "classification")
    assert "error" in json.loads(said.stdout)["metrics"]
    assert "predicting" not in said.stderr
    digits = iter(np.random.default_rng(8).integers(10, size=400).tolist())
    path.write_text(rows(400, lambda a, b: next(digits)))
    assert (
        "predicting classes: the target has 10 whole numbers from 0 to 9 (--task regression"
        in call("compare", str(path), "--limit", "300").stderr
    )
    for command in (["search", "--jobs", "1"], ["compare"]):
        said = call(*command, str(path), "--task", "regression", "--memory", "100 kB", "--limit", "300", "--json")
        assert all("mae" in (line := json.loads(text)) or "mae" in line["metrics"] for text in said.stdout.splitlines())


def test_a_column_of_numbers_that_turns_to_words(tmp_path):
    path = tmp_path / "data.csv"
    cells = iter([str(number % 4) for number in range(146)] + ["more"] * 54)
    path.write_text("a,b,y\n" + "".join(f"{next(cells)},{n},{'pq'[n % 2]}\n" for n in range(200)))
    model = tmp_path / "m"
    said = call("learn", str(path), "--model", str(model))
    assert f"column 'a' is read as a category: 'more' ({path}, line 148) is not a number" in said.stderr
    assert json.loads(call("inspect", str(model), "--json").stdout)["kinds"]["a"].startswith("category")
    late = tmp_path / "late.csv"  # far behind the rows that are looked at
    late.write_text("a,y\n" + "".join(f"{n % 7 + 0.123456:.6f},{'pq'[n % 2]}\n" for n in range(200_000)) + "more,p\n")
    said = call("learn", str(late), "--learner", "KernelClassifier(Linear(), Perceptron(), DropOldest(2))")
    assert said.exit_code == 2
    assert "late.csv, line 200002, column 'a': 'more' is not a number; --column 'a=category' reads words" in said.stderr


def test_without_data_on_a_terminal_there_is_help(monkeypatch):
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    for command in ("learn", "compare", "search"):
        said = CliRunner().invoke(main, [command], input=Terminal())
        assert said.exit_code == 0
        assert f"Usage: main {command} [OPTIONS] [DATA]" in said.stdout
        assert "--target" in said.stdout


def test_a_wrong_learner_is_answered_by_a_few_names():
    said = call("learn", "sea", "--learner", "foo").stderr
    assert "there is no 'foo'; did you mean 'Fifo'" in said
    assert len(said) < 200


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
    assert all(line[-1].isdigit() for line in said.stdout.splitlines()[1:]), "a candidate is one line in a pipe"
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


def test_a_target_with_one_value_is_described(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(rows(120, lambda a, b: 7))
    assert "the target is 7 in the first 120 rows (--task regression" in call("learn", str(path)).stderr
    path.write_text(rows(1, lambda a, b: "ok"))
    assert "predicting classes: the target is 'ok' (--target" in call("learn", str(path)).stderr


def test_decimal_commas_are_refused_unless_the_column_is_said_to_hold_words(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a;y\n" + "".join(f"{k % 3},{k % 2};{k % 2}\n" for k in range(120)))
    refused = call("learn", str(path))
    assert refused.exit_code == 2
    assert "data.csv, line 2, column 'a': '0,0' has a decimal comma" in refused.stderr
    assert "--column 'a=category'" in refused.stderr
    assert call("learn", str(path), "--column", "a=category").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "regression"], "AutoRegressor: y must hold numbers, got 'out' in row 0"),
        (["--learner", "perceptron", "--target", "none"], "'perceptron' needs a target, and the data have none"),
        (["--memory", "3"], "AutoClassifier: memory: write a number and one of B, kB"),
        (
            ["--learner", "passive_aggressive(D=3)"],
            "passive_aggressive: there is no parameter 'D'; there are kernel, C",
        ),
        (["--learner", "norma_classifier"], "norma_classifier needs rate and reg: norma_classifier(rate=..., reg=...)"),
    ],
)
def test_a_wrong_choice_is_named_in_one_line(arguments, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(rows(20, lambda a, b: "in" if a > 0 else "out"))
    refused = call("learn", str(path), *arguments)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"Error: {message}")
    assert refused.stderr.count("\n") == 1
