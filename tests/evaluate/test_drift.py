"""Where the error changed: River's ADWIN along a run, in the result, the picture, the report and the log."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.drift import table
from gristmill import DropOldest, Gaussian, KernelClassifier, KernelNovelty, KernelRegressor, Perceptron
from gristmill.cli import main
from gristmill.evaluate import PrequentialDisplay, compare, prequential
from gristmill.evaluate import drift as drifts
from gristmill.evaluate.metrics import PredictionBatch
from gristmill.evaluate.run_report import run_report


def flipped(n=4000, at=2000, seed=0):
    """A task whose labels are turned round in the middle."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    y = X[:, 0] > 0
    return X, np.where(np.arange(n) < at, y, ~y)


def learner():
    return KernelClassifier(Gaussian(1.0), Perceptron(), DropOldest(100))


def clearest_cut(errors, first, last):
    """The cut of a window with the least squared deviation from the means of both sides."""
    cuts = range(first + drifts.LEAST, last - drifts.LEAST + 1)
    return max(
        cuts,
        key=lambda cut: (errors[first:cut].mean() - errors[cut:last].mean()) ** 2 * (cut - first) * (last - cut),
        default=(first + last) // 2,
    )


def test_marks_are_those_of_adwin_over_the_errors():
    """The naive twin: ADWIN over all errors, the clearest cut of its window, means by slicing, falls only after a rise."""
    from river.drift import ADWIN

    X, y = flipped()
    result = prequential(learner(), (X, y))
    wrong = ((learner().prequential(X, y) >= 0) != y).astype(float)
    adwin, found, rose = ADWIN(), [], False
    for event, cost in enumerate(wrong, 1):
        width = int(adwin.width)
        adwin.update(cost)
        if adwin.drift_detected:
            cut = clearest_cut(wrong, event - 1 - width, event)
            before, after = wrong[event - 1 - width : cut].mean(), wrong[cut:event].mean()
            if after > before or rose:
                rose = after > before
                found.append((event, cut, before, after))
    assert [(mark["event"], mark["since"]) for mark in result.drifts] == [mark[:2] for mark in found]
    np.testing.assert_allclose([[m["before"], m["after"]] for m in result.drifts], [mark[2:] for mark in found])
    rise = result.drifts[0]
    assert 2000 < rise["event"] < 2200
    assert abs(rise["since"] - 2000) < 40
    assert rise["after"] > 5 * rise["before"]


def test_thinned_sums_are_close_to_all_of_them():
    errors = np.random.default_rng(5).random(50_000)
    sums = drifts._RunningSums()
    sums.extend(errors.tolist())
    one_by_one = drifts._RunningSums()
    for error in errors.tolist():
        one_by_one.extend([error])
    assert (sums._places, sums._values) == (one_by_one._places, one_by_one._values)
    assert len(sums._places) <= sums.MOST + 1
    for first, last in ((0, 50_000), (12_345, 23_456), (49_000, 49_500)):
        assert abs(sums.mean(first, last) - errors[first:last].mean()) < 0.01


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_model_that_only_improves_has_no_mark(task):
    """Errors fall from 0.5 to 0.1 and stay: learning is no drift, in any of 20 streams."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        level = 0.1 + 0.4 * np.exp(-np.arange(6000) / 800)
        wrong = rng.random(6000) < level if task == "classification" else np.abs(rng.normal(size=6000)) * level
        marks = marked(task, np.zeros(6000), wrong.astype(float))
        assert [mark for mark in marks if mark["event"] < 1000] == []
        assert len(marks) <= 1, "ADWIN may be wrong at its rate of false alarms"


@pytest.mark.parametrize("rows", [1, 700, 4000])
def test_chunks_do_not_matter(rows):
    X, y = flipped()
    chunks = [(X[i : i + rows], y[i : i + rows]) for i in range(0, len(X), rows)]
    if rows == 1:
        chunks = chunks[:2600]
        X, y = X[:2600], y[:2600]
    assert prequential(learner(), chunks).drifts == prequential(learner(), (X, y)).drifts


def marked(task, y, predicted):
    marks: list[dict[str, float]] = []
    drifts.DriftMarks(task, marks).add(PredictionBatch(y, predicted, predicted, None), 0)
    return marks


def test_a_regressor_is_marked_in_any_unit():
    rng = np.random.default_rng(1)
    y, noise = rng.normal(size=3000), rng.normal(size=3000) * np.where(np.arange(3000) < 1500, 0.1, 0.5)
    small, large = marked("regression", y, y + noise), marked("regression", 1024 * y, 1024 * (y + noise))
    assert [mark["event"] for mark in small] == [mark["event"] for mark in large]
    assert 1500 < small[0]["event"] < 1700
    assert "the mean absolute error rose from 0.0" in drifts.describe(small[0], "regression")
    model = KernelRegressor(Gaussian(2.0), budget=DropOldest(100))
    assert prequential(model, (rng.normal(size=(300, 1)), y[:300])).drifts == []


def test_a_detector_is_marked_where_alarms_become_more():
    alarms = np.random.default_rng(2).random(4000) < np.where(np.arange(4000) < 2000, 0.02, 0.2)
    marks = marked("novelty", None, np.where(alarms, -1, 1))
    assert 2000 < marks[0]["event"] < 2300
    assert "the share of alarms rose from 0.0" in drifts.describe(marks[0], "novelty")
    X = np.random.default_rng(3).normal(size=(500, 2))
    assert isinstance(prequential(KernelNovelty(Gaussian(0.5)), (X, None)).drifts, list)


def test_nothing_is_marked_on_request_or_without_change():
    X, y = flipped()
    assert prequential(learner(), (X, y), drift=False).drifts == []
    steady = np.random.default_rng(3).random(20_000) < 0.2
    assert marked("classification", np.zeros(20_000), steady.astype(float)) == []


def test_without_river_there_is_nothing_and_a_wish_says_how(monkeypatch):
    monkeypatch.setattr(drifts, "find_spec", lambda name: None)
    X, y = flipped(500, 250)
    assert prequential(learner(), (X, y)).drifts == []
    with pytest.raises(ImportError, match="river"):
        prequential(learner(), (X, y), drift=True)


def test_the_benchmark_finds_changes_and_no_others():
    """The table of the page, with four streams of each kind."""
    rows = table(4)
    assert [row["false alarms"] for row in rows] == [0, 0, 0, 0]
    found = [int(row["found"].split()[0]) for row in rows if row["found"]]
    assert sum(found) >= 5
    assert all(row["median delay"] < 200 for row in rows if row["found"])


def test_picture_report_and_json_show_them(tmp_path):
    X, y = flipped()
    results = compare({"a": learner(), "b": KernelClassifier(Gaussian(1.0))}, (X, y))
    display = PrequentialDisplay.from_results(results).plot()
    assert len(display.marks_) == sum(len(result.drifts) for result in results) > 0
    assert display.marks_[0].get_xdata()[0] == results[0].drifts[0]["event"]
    page = run_report(results, "run", {}).html()
    assert "Where the error changed" in page
    assert drifts.describe(results["a"].drifts[0], "classification") in page
    assert json.loads(results["a"].to_json())["drifts"] == results["a"].drifts


def test_a_checkpoint_keeps_them(tmp_path):
    X, y = flipped()
    first = prequential(learner(), (X[:3000], y[:3000]), checkpoint=tmp_path / "m")
    again = prequential(learner(), (X, y), checkpoint=tmp_path / "m")
    assert first.drifts
    assert again.drifts[: len(first.drifts)] == first.drifts


def test_the_log_of_learn_has_a_line_a_mark(tmp_path):
    X, y = flipped()
    path = tmp_path / "data.csv"
    rows = "\n".join(f"{a:.6f},{b:.6f},{'yes' if label else 'no'}" for (a, b), label in zip(X, y, strict=True))
    path.write_text("a,b,y\n" + rows + "\n")
    done = CliRunner().invoke(main, ["learn", str(path), "--json"])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("drift: event ")]
    marks = json.loads(done.stdout.splitlines()[0])["drifts"]
    assert len(lines) == len(marks) > 0
    assert any("the error rose from" in line for line in lines)
