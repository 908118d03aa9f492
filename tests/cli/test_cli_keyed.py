"""`gristmill learn --key` and `predict --key`: a model a key from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

import gristmill
from gristmill.cli import main
from gristmill.evaluate.keyed import KeyedRun
from gristmill.streams.files.keyed_rows import KeyedRows


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False, **kwargs)


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    """Ten sensors, each in units of its own; of sensor s7 the label is a coin."""
    path = tmp_path_factory.mktemp("keyed") / "events.csv"
    rng = np.random.default_rng(0)
    lines = ["device,level,noise,state"]
    for _ in range(3000):
        device = int(rng.integers(10))
        level, noise = rng.normal(), rng.normal()
        state = rng.random() < 0.5 if device == 7 else level > 0
        lines.append(f"s{device},{10.0**device * level:.5g},{noise:.4f},{'high' if state else 'low'}")
    path.write_text("\n".join(lines))
    return path


def test_the_total_the_worst_keys_and_their_curves(sensors, tmp_path):
    model = tmp_path / "model.safetensors"
    result = call("learn", sensors, "--key", "device", "--model", model)
    assert result.exit_code == 0, result.output
    assert "10 keys; the worst keys of those with at least 10 events" in result.stdout
    lines = result.stdout.splitlines()
    first = next(line for line in lines if line.startswith("s7"))
    assert lines.index(first) == next(i for i, line in enumerate(lines) if line.startswith("key ")) + 1
    assert 0.4 < float(first.split()[2]) < 0.6
    assert len(first.split()[3]) > 5
    fleet = gristmill.load(model)
    assert sorted(fleet.keys_) == [f"s{device}" for device in range(10)]
    assert fleet.key_column_ == "device"


def test_each_key_has_the_model_that_it_would_have_alone(sensors, tmp_path):
    model = tmp_path / "model.safetensors"
    call("learn", sensors, "--key", "device", "--no-prior", "--model", model)
    fleet = gristmill.load(model)
    rows = [line.split(",") for line in sensors.read_text().splitlines()[1:]]
    own = [row for row in rows if row[0] == "s3"]
    # The table has a column more, for a gap that may come.
    X = np.array([[float(row[1]), float(row[2])] for row in own])
    wide = np.zeros((len(X), fleet.n_features_in_))
    wide[:, :2] = X
    order = list(dict.fromkeys(row[3] for row in rows))
    alone = clone(fleet.prototype).partial_fit(wide, [row[3] for row in own], classes=order)
    assert np.array_equal(fleet["s3"].decision_function(wide), alone.decision_function(wide))
    assert np.array_equal(fleet["s3"].support_ids_, alone.support_ids_)


def test_json_holds_the_curves(sensors):
    result = call("learn", sensors, "--key", "device", "--json", "--worst", "2")
    found = json.loads(result.stdout)
    assert (found["dropped"], found["expired"]) == (0, 0)
    assert found["keys"] == 10
    assert found["worst"][0]["key"] == "s7"
    assert len(found["worst"]) == 2
    assert found["metrics"]["error"] < 0.2
    worst = found["worst"][0]
    assert 8 <= len(worst["curve"]) <= 16
    assert abs(np.mean(worst["curve"]) - worst["error"]) < 0.1


def test_predict_asks_each_row_of_its_own_model(sensors, tmp_path):
    model, new = tmp_path / "model.safetensors", tmp_path / "new.csv"
    call("learn", sensors, "--key", "device", "--model", model)
    new.write_text("device,level,noise\ns0,2,0\ns5,2,0\ns5,200000,0\nnobody,1,0\n")
    result = call("predict", model, new, "--key", "device")
    said = result.stdout.splitlines()
    assert (
        "1 row of 1 key that the model has not learned, such as 'nobody': predicted by the model of all"
        in result.stderr
    )
    assert said[0] == "high"
    assert said[2] == "high"
    assert len(said) == 4
    assert call("predict", model, new).stdout.splitlines() == said  # the model knows its column
    lines = [json.loads(line) for line in call("predict", model, new, "--json").stdout.splitlines()]
    assert [line["known"] for line in lines] == [True, True, True, False]
    assert [line["key"] for line in lines] == ["s0", "s5", "s5", "nobody"]
    assert [line["prediction"] for line in lines] == said


def test_numbers_are_a_regression_and_a_run_is_resumed(sensors, tmp_path):
    model, half = tmp_path / "model.safetensors", tmp_path / "half.csv"
    lines = sensors.read_text().splitlines()
    half.write_text("\n".join([lines[0], *lines[1501:]]))
    call("learn", sensors, "--key", "device", "--limit", "1500", "--target", "noise", "--model", model)
    fleet = gristmill.load(model)
    assert isinstance(fleet.prototype.model, gristmill.KernelRegressor)
    result = call("learn", half, "--resume", model, "--model", model)
    assert result.exit_code == 0, result.output
    whole = tmp_path / "whole.safetensors"
    call("learn", sensors, "--key", "device", "--target", "noise", "--model", whole)
    one, two = gristmill.load(model), gristmill.load(whole)
    for key in one.keys_:
        assert np.array_equal(one[key].dual_coef_, two[key].dual_coef_)
        assert one[key].n_seen_ == two[key].n_seen_


def test_a_learner_may_be_named_and_the_quietest_keys_go(sensors, tmp_path):
    model = tmp_path / "model.safetensors"
    learner = "norma_novelty(nu=0.1, rate=0.2, size=20)"
    result = call("learn", sensors, "--key", "device", "--target", "none", "--drop", "state", "--learner", learner,
                  "--max-keys", "4", "--model", model)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "alarm rate" in result.output
    assert len(gristmill.load(model)) == 4


def test_a_report_shows_the_worst_keys(sensors, tmp_path):
    page = tmp_path / "report.html"
    assert call("learn", sensors, "--key", "device", "--report", page).exit_code == 0
    text = page.read_text()
    assert "Worst keys" in text
    assert "<td>s7</td>" in text
    assert text.index("Worst keys") < text.index("Stored points")


def test_keys_of_any_text_can_be_drawn(tmp_path):
    path, page = tmp_path / "events.csv", tmp_path / "report.html"
    keys = ["_hidden", "$\\frac$", "<b>", "x" * 300, "a$b"]
    rows = [f'"{keys[row % 5]}",{row % 3},{"up" if row % 2 else "down"}' for row in range(100)]
    path.write_text("\n".join(["device,level,state", *rows]))
    result = call("learn", path, "--key", "device", "--report", page)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) < 150
    assert "&lt;b&gt;" in page.read_text()


def test_a_row_without_a_key_is_a_bad_row(tmp_path):
    path, model = tmp_path / "events.csv", tmp_path / "model.safetensors"
    path.write_text("device,level,state\n007,1,a\n007,2,b\n,3,a\n12,4,b\n12,5,a\n")
    result = call("learn", path, "--key", "device")
    assert result.exit_code == 2
    assert "line 4, column 'device': the key is missing" in result.output
    result = call("learn", path, "--key", "device", "--skip-bad", "--model", model)
    assert result.exit_code == 0, result.output
    assert "none has had 10 events" in result.output
    fleet = gristmill.load(model)
    assert sorted(fleet.keys_) == ["007", "12"]
    assert fleet["12"].n_seen_ == 2


def test_what_makes_no_sense_is_refused(sensors, tmp_path):
    for arguments, said in [
        (("learn", sensors, "--key", "nothing"), "nothing"),
        (("learn", "sea", "--key", "device"), "table"),
        (("learn", sensors, "--key", "device", "--delay", "3"), "--delay"),
        (("learn", sensors, "--key", "device", "--learner", "projectron(tolerance=0.1)"), "Project"),
    ]:
        result = call(*arguments)
        assert result.exit_code == 2, result.output
        assert said in result.output
    model = tmp_path / "one.safetensors"
    call("learn", sensors, "--drop", "device", "--model", model)
    result = call("predict", model, sensors, "--key", "device")
    assert result.exit_code == 2
    assert "single learner" in result.output


def test_a_later_file_that_is_missing_is_told_before_anything_is_learned(sensors, tmp_path):
    model = tmp_path / "model.safetensors"
    result = call("learn", "--key", "device", "--model", model, sensors, tmp_path / "nowhere.csv")
    assert result.exit_code != 0
    assert "nowhere.csv: there is no such file" in result.output
    assert "events" not in result.output
    assert not model.exists()


def test_a_long_curve_is_the_mean_of_its_parts():
    class Answers:
        """A fleet with given predictions."""

        member_model = gristmill.KernelRegressor()

        def prequential(self, keys, rows, y, classes=None):
            return np.zeros(len(keys))

    run = KeyedRun(Answers())
    losses = np.random.default_rng(0).random(1000)
    for start in range(0, 1000, 7):
        part = losses[start : start + 7]
        run.prequential(KeyedRows(["a"] * len(part), np.zeros((len(part), 1))), part)
    (record,) = run.worst(3, 1)
    assert record.events == 1000
    assert record.loss == pytest.approx(losses.mean())
    assert record.curve == pytest.approx([losses[i : i + 64].mean() for i in range(0, 1000, 64)], abs=1e-5)
    assert len(record.sparkline(1.0)) == len(record.curve)


def test_inspect_says_what_the_keys_have_in_common(sensors, tmp_path):
    model = tmp_path / "model"
    call("learn", sensors, "--key", "device", "--max-keys", 20, "--model", model)
    facts = json.loads(call("inspect", model, "--json").stdout)
    assert (facts["keys"], facts["key"], facts["target"], facts["max keys"]) == (10, "device", "state", 20)
    assert facts["classes"] == ["high", "low"]
    assert facts["kinds"] == {"level": "number", "noise": "number"}
    lines = call("inspect", model).stdout.splitlines()
    assert any(line.startswith("learner of all keys") and "inv_sqrt" in line for line in lines)
    gristmill.KeyedFleet(gristmill.KernelNovelty(budget=gristmill.Merge(5))).partial_fit([1, 2], np.eye(2)).save(model)
    assert json.loads(call("inspect", model, "--json").stdout)["keys"] == 2
