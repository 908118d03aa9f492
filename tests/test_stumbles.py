"""What people stumbled over once: each with the message, or the answer, that they should get."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill import (
    AUCPairs,
    Gaussian,
    PairwiseAUC,
    PairwiseLearner,
    PairwiseMetric,
    Polynomial,
    Prepared,
    RandomMaclaurin,
    TwoStageMKL,
    norma_novelty,
    passive_aggressive,
    perceptron,
)
from gristmill.cli import main
from gristmill.evaluate import prequential
from gristmill.streams import StreamError, read, two_gaussians

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


# ---- novelty ------------------------------------------------------------------------------------------------------


def test_alarms_come_by_the_data_and_not_by_the_clock():
    caught = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(6000, 4))
        strange = rng.choice(np.arange(3000, 6000), 5, replace=False)
        rows[strange, 0] += 8
        detector = Prepared(norma_novelty(Gaussian(0.05), nu=0.01, rate=0.001, size=200))
        caught += (detector.prequential(rows) < 0)[strange].sum()
    assert caught >= 18


# ---- curves -------------------------------------------------------------------------------------------------------


def test_the_curve_of_stored_points_is_that_of_its_events():
    curve = prequential(perceptron(Gaussian(1.0)), two_gaussians(5000), window=500).curve
    model = perceptron(Gaussian(1.0))
    rows, labels = two_gaussians(5000).arrays()
    for entry, start in zip(curve, range(0, 5000, 500), strict=True):
        model.partial_fit(rows[start : start + 500], labels[start : start + 500])
        assert (entry["event"], entry["stored"]) == (start + 500, model.n_support_)


# ---- reading ------------------------------------------------------------------------------------------------------


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


# ---- options that do not go together ------------------------------------------------------------------------------


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
    assert f"KernelClassifier of {model}" in call("learn", str(table), "--resume", model).stdout


def test_numbers_as_target_of_a_classifier(table, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,y\n" + "\n".join(f"{a:.3f},{2 * a:.3f}" for a in RNG.normal(size=100)))
    assert "passive_aggressive_regressor" in call("learn", str(path)).stderr
    result = call("compare", str(table), "--learner", "perceptron", "--learner", "perceptron")
    assert "is given twice" in result.stderr


# ---- pairs --------------------------------------------------------------------------------------------------------


def test_a_ranker_over_a_map_is_saved_with_the_width_of_its_inputs(tmp_path):
    model = PairwiseAUC(features=RandomMaclaurin(Polynomial(2), 50, random_state=1), random_state=0).fit(X, Y)
    model.save(tmp_path / "m")
    again = gristmill.load(tmp_path / "m")
    assert again.n_features_in_ == 4
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.partial_fit(X, Y).coef_, model.partial_fit(X, Y).coef_)


class Rude(AUCPairs):
    """A loss that writes to what it is shown."""

    def gradient(self, w, x, y, others, labels):
        x[:] = 0
        return w


class Wordy(AUCPairs):
    def value(self, w, x, y, others, labels):
        return "much"


def test_a_loss_cannot_write_to_what_it_is_shown_and_must_speak_in_numbers():
    rows = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        PairwiseLearner(Rude()).fit(rows, Y)
    assert np.array_equal(rows, X)
    with pytest.raises(ValueError, match=r"row 1: value\(\) of .*Wordy.* must return a number, got 'much'"):
        PairwiseLearner(Wordy()).fit(X, Y)


class Offering:
    size = 5

    def __init__(self, answer):
        self.answer = answer

    def offer(self, step, x, label, filled):
        return self.answer


@pytest.mark.parametrize("answer", ["a", 1.5, [0, "b"]])
def test_a_buffer_must_answer_in_positions(answer):
    with pytest.raises(ValueError, match=r"offer\(\) must return None, a position >= 0 or several, got "):
        PairwiseAUC(buffer=Offering(answer)).fit(X, Y)


def test_labels_and_parameters_are_named():
    with pytest.raises(ValueError, match="PairwiseAUC: row 2: the label is nan"):
        PairwiseAUC().fit(X[:4], [1.0, 0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="PairwiseMetric: the labels in y must be of one kind"):
        PairwiseMetric().fit(X[:3], np.array(["a", None, "b"], dtype=object))
    with pytest.raises(ValueError, match="random_state must be None, an int >= 0"):
        PairwiseAUC(random_state=-1).fit(X, Y)
    with pytest.raises(ValueError, match="kernels must be a list of kernels"):
        TwoStageMKL(Gaussian(1.0)).fit(X, Y)


# ---- one by one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_prepared_one_by_one_is_the_same_and_bad_events_change_nothing(scale):
    def new():
        return Prepared(passive_aggressive(Gaussian(0.5), size=50), scale)

    whole, single = new().fit(X, Y), new()
    for place, (row, label) in enumerate(zip(X, Y, strict=True)):
        single.learn_one(row, label)
        if place == 100:
            for bad in (np.array([1.0, np.nan, 0, 0]), np.ones(3)):
                with pytest.raises(ValueError, match=r"column 1|3 features"):
                    single.learn_one(bad, 1)
    assert np.array_equal(whole.decision_function(X), single.decision_function(X))
    assert whole.score_one(X[5]) == whole.decision_function(X[5:6])[0]
    assert whole.predict_one(X[5]) == whole.predict(X[5:6])[0]
