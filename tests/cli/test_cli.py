"""The command line, run as people run it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill.cli import main
from gristmill.cli.app import _COMMANDS


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False, **kwargs)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['gristmill', '--help']\nfrom gristmill.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'rich', 'matplotlib', 'pandas')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"
    assert all(name in said for name in _COMMANDS)


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_every_command_has_help(name):
    result = call(name, "--help")
    assert result.exit_code == 0
    # The line of the overview is kept apart so that it costs no import; it must not drift from the command's
    # own.
    assert _COMMANDS[name][1] in " ".join(result.output.split())


def test_the_package_runs_as_the_command():
    said = subprocess.run([sys.executable, "-m", "gristmill", "--version"], capture_output=True, text=True, check=True)
    assert gristmill.__version__ in said.stdout


def test_an_unknown_command_is_refused_with_the_nearest():
    result = call("rum")
    assert result.exit_code == 2
    assert "Did you mean 'run'?" in result.output


def test_run_prints_a_table():
    result = call("run", "--events", "1500")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    head = next(line for line in lines if line.startswith("learner"))
    assert all(word in head for word in ("error", "stored points", "memory", "events/s"))
    learners = ("PA-I, every", "PA-I, 1000", "AutoClassifier, 1 MB", "NORMA", "Perceptron")
    assert [sum(line.startswith(name) for line in lines) for name in learners] == [1] * 5
    assert "Merged into" in result.output


def test_run_gives_json_and_the_same_for_a_seed():
    def errors(seed):
        lines = call("run", "--events", "1500", "--json", "--seed", seed).output.splitlines()
        return [json.loads(line)["metrics"]["error"] for line in lines]

    assert errors("1") == errors("1") != errors("2")
    assert all(0 < error < 0.5 for error in errors("1"))


def test_bad_options_have_exit_code_2():
    result = call("run", "--events", "0")
    assert result.exit_code == 2
    assert "--events" in result.output


# ---- files in, models out
# -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "machine.csv"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3)) * [1.0, 50.0, 0.01]
    lines = [f"{a:.5f},{b:.5f},{c:.7f},{'hot' if a * b > 0 else 'cold'}" for a, b, c in X.tolist()]
    path.write_text("speed,load,drift,state\n" + "\n".join(lines) + "\n")
    return path


def test_learn_inspect_predict(table, tmp_path):
    model, report = tmp_path / "model", tmp_path / "report.html"
    learned = call(
        "learn",
        str(table),
        "--model",
        str(model),
        "--report",
        str(report),
        "--json",
        "--metric",
        "error",
        "--metric",
        "roc_auc",
    )
    assert learned.exit_code == 0
    result = json.loads(learned.stdout)
    assert result["n_events"] == 1500
    assert result["metrics"]["error"] < 0.2
    assert result["metrics"]["roc_auc"] > 0.9
    assert "<img" in report.read_text()
    facts = json.loads(call("inspect", str(model), "--json").stdout)
    assert (facts["events seen"], facts["features"], facts["classes"]) == (1500, 3, ["cold", "hot"])
    assert facts["columns"] == ["speed", "load", "drift"]
    assert "stored points" in call("inspect", str(model)).stdout
    with_labels = call("predict", str(model), str(table)).stdout.split()
    assert len(with_labels) == 1500
    # The same rows on standard input, without the label and in another order of columns.
    head, *rows = table.read_text().splitlines()
    names = head.split(",")
    places = [names.index(name) for name in ("drift", "speed", "load")]
    shuffled = "\n".join(",".join(row.split(",")[place] for place in places) for row in [head, *rows])
    piped = call("predict", str(model), "-", input=shuffled).stdout.split()
    assert piped == with_labels
    first = json.loads(call("predict", str(model), str(table), "--json").stdout.splitlines()[0])
    assert set(first) == {"prediction", "score"}


def test_learning_goes_on_where_it_stopped(table, tmp_path):
    lines = table.read_text().splitlines()
    parts = [tmp_path / "one.csv", tmp_path / "two.csv"]
    parts[0].write_text("\n".join(lines[:701]) + "\n")
    parts[1].write_text("\n".join([lines[0], *lines[701:]]) + "\n")
    kernel = ("--kernel", "Gaussian(0.5)")
    assert call("learn", str(table), *kernel, "--model", str(tmp_path / "whole")).exit_code == 0
    assert call("learn", str(parts[0]), *kernel, "--model", str(tmp_path / "half")).exit_code == 0
    again = call("learn", str(parts[1]), "--resume", str(tmp_path / "half"), "--model", str(tmp_path / "both"))
    assert again.exit_code == 0
    outputs = [call("predict", str(tmp_path / name), str(table), "--json").stdout for name in ("whole", "both")]
    assert outputs[0] == outputs[1]


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """Mixed kinds, gaps, a time, a number that is none and a column to leave out."""
    path = tmp_path_factory.mktemp("messy") / "machine.csv"
    rng = np.random.default_rng(0)
    lines = ["id,when,machine,heat,door,zip,state"]
    for number in range(1200):
        machine, heat, hour = rng.choice(["press", "lathe", "mill"]), rng.normal(60, 5), number % 24
        state = "bad" if (heat > 60) == (machine == "press") else "good"
        cells = [machine if rng.random() > 0.05 else "", f"{heat:.2f}" if rng.random() > 0.05 else "NA"]
        when = f"2024-05-{1 + number // 60:02d} {hour:02d}:30"
        lines.append(
            ",".join([str(number), when, *cells, rng.choice(["true", "false"]), rng.choice(["01067", "1067"]), state])
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_messy_table(messy, tmp_path):
    model, options = tmp_path / "m", ("--drop", "id", "--column", "zip=category")
    learned = call("learn", str(messy), *options, "--model", str(model), "--json", "--kernel", "Gaussian(0.2)")
    assert json.loads(learned.stdout)["metrics"]["error"] < 0.3
    facts = json.loads(call("inspect", str(model), "--json").stdout)
    assert facts["kinds"] == {
        "when": "time", "machine": "category of 3 values, with missing values", "heat": "number, with missing values",
        "door": "boolean",
        "zip": "category of 2 values",
    }  # fmt: skip
    assert (facts["features"], facts["target"], facts["scaling"]) == (5, "state", "standard")
    assert "column machine  category of 3 values, with missing values" in call("inspect", str(model)).stdout
    whole = call("predict", str(model), str(messy), "--json").stdout
    # Other columns in another order, no label, a value that was never met, and a second half that goes on.
    lines = [line.split(",") for line in messy.read_text().splitlines()]
    order = [3, 2, 4, 1, 5]
    shuffled = "\n".join(",".join(cells[place] for place in order) for cells in lines)
    assert call("predict", str(model), "-", "--json", input=shuffled).stdout == whole
    with pytest.warns(UserWarning, match="the table lacks when, door, zip, which the model was trained with"):
        assert call("predict", str(model), "-", input="machine,heat\nrobot,61\n").exit_code == 0
    halves = [tmp_path / "one.csv", tmp_path / "two.csv"]
    text = messy.read_text().splitlines()
    halves[0].write_text("\n".join(text[:500]) + "\n")
    halves[1].write_text("\n".join([text[0], *text[500:]]) + "\n")
    call("learn", str(halves[0]), *options, "--model", str(tmp_path / "half"), "--kernel", "Gaussian(0.2)")
    again = call("learn", str(halves[1]), "--resume", str(tmp_path / "half"), "--model", str(tmp_path / "both"))
    assert again.exit_code == 0
    assert call("predict", str(tmp_path / "both"), str(messy), "--json").stdout == whole
    refused = call("learn", str(halves[1]), "--resume", str(tmp_path / "half"), "--column", "zip=number")
    assert "--column is fixed by the model of --resume" in refused.stderr
    assert "write NAME=KIND" in call("learn", str(messy), "--column", "zip=words").stderr


def test_a_messy_table_in_other_formats_and_commands(messy, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    frame = pyarrow.csv.read_csv(messy, convert_options=pyarrow.csv.ConvertOptions(column_types={"zip": "string"}))
    pyarrow.parquet.write_table(frame, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row, default=str) for row in frame.to_pylist()))
    options = ("--drop", "id", "--column", "zip=category", "--json")
    said = [call("learn", str(path), *options).stdout for path in (messy, tmp_path / "t.parquet", tmp_path / "t.jsonl")]
    assert len({json.dumps(json.loads(one)["metrics"]) for one in said}) == 1
    compared = call("compare", str(messy), "--drop", "id", "--learner", "perceptron", "--json")
    assert json.loads(compared.stdout)["n_events"] == 1200
    found = call(
        "search", str(messy), "--drop", "id", "--learner", "passive_aggressive(C={C}, size=50)", "--grid", "C=0.1,1",
        "--jobs", "1", "--model", str(tmp_path / "best"),
    )  # fmt: skip
    assert found.exit_code == 0
    assert call("predict", str(tmp_path / "best"), str(messy), "--limit", "7").stdout.count("\n") == 7
    texts = call("learn", str(messy), "--drop", "id", "--column", "machine=text", "--json", "--limit", "300")
    assert json.loads(texts.stdout)["n_events"] == 300
    late = '{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n{"a": 2, "b": 3, "c": 4, "y": 1}\n'
    assert call("learn", "--format", "jsonl", "--target", "y", input=late).exit_code == 0


def test_compare_and_search(table, tmp_path):
    compared = call(
        "compare",
        str(table),
        "--learner",
        "perceptron",
        "--learner",
        "passive_aggressive(size=50)",
        "--json",
        "--report",
        str(tmp_path / "c.html"),
    )
    assert [json.loads(line)["name"] for line in compared.stdout.splitlines()] == [
        "perceptron",
        "passive_aggressive(size=50)",
    ]
    assert (tmp_path / "c.html").exists()
    found = call(
        "search",
        str(table),
        "--learner",
        "passive_aggressive(C={C}, size=50)",
        "--grid",
        "C=0.001,1",
        "--jobs",
        "1",
        "--first",
        "500",
        "--json",
        "--model",
        str(tmp_path / "best"),
        "--report",
        str(tmp_path / "s.html"),
    )
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["C"], row["events"]) for row in rows] == [("1", 1500), ("0.001", 500)]
    assert call("predict", str(tmp_path / "best"), str(table), "--limit", "5").stdout.count("\n") == 5
    assert call("search", str(table), "--learner", "perceptron", "--grid", "C=1").exit_code == 2
    assert call("search", str(table), "--learner", "perceptron", "--grid", "C").exit_code == 2


def test_named_streams_and_json_lines():
    named = call("learn", "two_gaussians", "--limit", "2000", "--json")
    assert json.loads(named.stdout)["n_events"] == 2000
    rows = "\n".join(json.dumps({"a": n % 7, "b": n % 3, "y": n % 7 > 3}) for n in range(300))
    piped = call("learn", "--format", "jsonl", "--json", input=rows)
    assert json.loads(piped.stdout)["metrics"]["error"] < 0.2
    libsvm = "\n".join(f"{1 if n % 2 else -1} {1 + n % 2}:1 {3 + n % 5}:0.5" for n in range(200))
    sparse = call("learn", "-", "--format", "libsvm", "--features", "10", "--json", input=libsvm)
    assert json.loads(sparse.stdout)["metrics"]["error"] < 0.1


BAD = {
    "no file": (["learn", "nothing.csv"], "nothing.csv: there is no such file"),
    "no stream": (["learn", "see"], "did you mean 'sea'?"),
    "no learner": (["learn", "sea", "--learner", "perceptrom"], "did you mean 'perceptron'?"),
    "no kernel": (["learn", "sea", "--kernel", "Gausian(1)"], "did you mean 'Gaussian'?"),
    "no metric": (["learn", "sea", "--metric", "eror"], "did you mean 'error'?"),
    "not a learner": (["learn", "sea", "--learner", "Gaussian(1.0)"], "is not a learner"),
    "quarantine alone": (["learn", "sea", "--quarantine", "x"], "--quarantine needs --skip-bad"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_wishes_are_one_line_and_exit_code_2(case):
    arguments, message = BAD[case]
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_bad_row_is_named_and_what_came_before_is_kept_when_asked(table, tmp_path):
    lines = table.read_text().splitlines()
    lines[1200] = "1,2,3"
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join(lines) + "\n")
    model = tmp_path / "model"
    refused = call("learn", str(broken), "--model", str(model))
    assert refused.exit_code == 2
    assert "columns, expected 4" in refused.stderr
    assert f"{broken}, line 1201: 3 columns" in refused.stderr
    assert not model.exists()
    kept = call("learn", str(broken), "--model", str(model), "--keep", "--json")
    assert kept.exit_code == 2
    stopped = json.loads(kept.stdout)
    assert "columns, expected 4" in stopped["stopped"]
    assert json.loads(call("inspect", str(model), "--json").stdout)["events seen"] == stopped["n_events"] == 1199
    aside = tmp_path / "aside.txt"
    skipped = call("learn", str(broken), "--skip-bad", "--quarantine", str(aside), "--json")
    assert skipped.exit_code == 0
    assert "1 bad rows were skipped" in skipped.stderr
    assert aside.read_text().splitlines()[1] == "1,2,3"


def test_a_model_of_another_version_or_none_at_all(tmp_path, table):
    (tmp_path / "junk").write_bytes(b"junk")
    result = call("predict", str(tmp_path / "junk"), str(table))
    assert result.exit_code == 2
    assert "is not a model that gristmill can read" in result.stderr


def test_interrupt_saves_the_model_and_says_where(tmp_path):
    """Ctrl-C in the middle of a pipe that never ends."""
    model = tmp_path / "model"
    command = [
        sys.executable,
        "-c",
        # A shell that runs the tests in the background makes its children ignore Ctrl-C.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gristmill.cli import main; main()",
        "learn",
        "-",
        "--model",
        str(model),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    rng = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},{int(a > b)}" for a, b in rng.normal(size=(40_000, 2)).tolist()]
    process.stdin.write("a,b,y\n" + "\n".join(rows[:20_000]) + "\n")
    process.stdin.flush()
    # It reads on only after it has learned what came before, so when it takes the rest it is in the middle.
    process.stdin.write("\n".join(rows[20_000:]) + "\n")
    process.stdin.flush()
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped after" in said
    seen = json.loads(call("inspect", str(model), "--json").stdout)["events seen"]
    assert f"{seen:,} events: interrupted" in said


@pytest.mark.parametrize(
    "command", [["compare"], ["search", "--learner", "perceptron(Gaussian({g}))", "--grid", "g=0.1,1", "--jobs", "1"]]
)
def test_a_bad_row_half_way_leaves_the_table_so_far(command, tmp_path):
    rows = [f"{a:.4f},{b:.4f},{int(a > b)}" for a, b in np.random.default_rng(0).normal(size=(9000, 2)).tolist()]
    rows[8500] = "1,2"
    (tmp_path / "data.csv").write_text("a,b,y\n" + "\n".join(rows))
    report = tmp_path / "report.html"
    result = call(command[0], str(tmp_path / "data.csv"), *command[1:], "--report", str(report))
    assert result.exit_code == 2
    assert "line 8502" in result.stderr
    assert "0.0" in result.stdout
    assert "line 8502" in report.read_text()


def test_learners_and_bench():
    listed = call("learners").stdout
    assert "norma_novelty(kernel, nu, rate" in listed
    assert "_Composite" not in listed
    rows = [json.loads(line) for line in call("bench", "--events", "1000", "--json").stdout.splitlines()]
    assert all(row["float64"] > 0 and row["learn_one"] > 0 for row in rows)
    assert call("bench", "--events", "1000").stdout.count("\n") == 5
