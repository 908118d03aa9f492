"""The report of a run says what the terminal says, and where the model was wrong."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill import AutoNovelty, Gaussian, KernelClassifier, KernelRegressor, Perceptron, Prepared
from gristmill.cli import main
from gristmill.evaluate.details import BINS, Details
from gristmill.evaluate.metrics import PredictionBatch
from gristmill.evaluate.run import Run, followers_of
from gristmill.evaluate.run_report import run_report
from gristmill.streams.stream import Chunk, from_arrays

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 3))
CLASSES = np.array(["low", "middle", "high"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=1200)


def ran(model, y, **options):
    stream = from_arrays(X, y, rows=300, name="made")
    run = Run(followers_of({"model": model}, stream, window=1200, details=True, **options), stream, baselines=True)
    return run.go()


def pieces():
    """What a run with a window of 1,200 hands to the model: up to the next entry of the curve, later a sixteenth more."""
    start = 0
    while start < 1200:
        due = max(30 - start % 30, 25, start // 16)
        stop = min(start + due, (start // 300 + 1) * 300)
        yield start, stop
        start = stop


def test_confusions_worst_errors_and_calibration_are_those_of_a_naive_pass():
    found = ran(KernelClassifier(Gaussian(0.5), random_state=0), CLASSES)[0].details
    model = KernelClassifier(Gaussian(0.5), random_state=0)
    wanted: Counter[tuple[str, str]] = Counter()
    wrong, sure, right = [], [], []
    event = 0
    for start, stop in pieces():
        rows, y = X[start:stop], CLASSES[start:stop]
        if start:
            shares = model.predict_proba(rows[:100])
            sure += shares.max(axis=1).tolist()
            right += (model.classes_[shares.argmax(axis=1)] == y[:100]).tolist()
        scores = model.prequential(rows, y)
        predicted = model.classes_[scores.argmax(axis=1)]
        wanted.update(zip(y.tolist(), predicted.tolist(), strict=True))
        for at in np.flatnonzero(predicted != y).tolist():
            line = scores[at][np.isfinite(scores[at])]
            if start + at:
                wrong.append((line.max() - line.mean(), start + at + 1, str(y[at]), str(predicted[at])))
        event = stop
    assert event == 1200
    assert found.confusions == wanted
    worst = sorted(wrong, reverse=True)[:10]
    assert [one.event for one in found.worst] == [event for _, event, *_ in worst]
    assert [(one.truth, one.predicted) for one in found.worst] == [pair[2:] for pair in worst]
    bins = np.minimum((np.array(sure) * BINS).astype(int), BINS - 1)
    assert found.count.tolist() == np.bincount(bins, minlength=BINS).tolist()
    assert found.right.tolist() == np.bincount(bins, right, BINS).tolist()


def test_coverage_and_pairs_of_numbers():
    found = ran(KernelRegressor(Gaussian(0.5), random_state=0), NUMBERS)[0].details
    model = KernelRegressor(Gaussian(0.5), random_state=0)
    covered = count = 0
    pairs = []
    for start, stop in pieces():
        rows, y = X[start:stop], NUMBERS[start:stop]
        if start:
            low, high = model.predict_interval(rows[:100], 0.9).T
            finite = np.isfinite(low) & np.isfinite(high)
            covered += int((finite & (low <= y[:100]) & (y[:100] <= high)).sum())
            count += int(finite.sum())
        pairs += zip(y.tolist(), model.prequential(rows, y).tolist(), strict=True)
    assert (found.covered, found.intervals) == (covered, count)
    assert found.pairs == pairs
    assert [one.loss for one in found.worst] == sorted((abs(a - b) for a, b in pairs[1:]), reverse=True)[:10]


def test_a_stream_shorter_than_a_window_has_a_curve():
    result = ran(KernelRegressor(Gaussian(0.5), random_state=0), NUMBERS)[0]
    assert [entry["event"] for entry in result.curve] == list(range(30, 1201, 30))
    model = KernelRegressor(Gaussian(0.5), random_state=0)
    losses: list[float] = []
    for entry in result.curve:
        part = slice(len(losses), len(losses) + 30)
        losses += np.abs(model.prequential(X[part], NUMBERS[part]) - NUMBERS[part]).tolist()
        assert entry["mae"] == pytest.approx(np.mean(losses))
        if len(losses) <= 480:  # so far a piece ends at each entry
            assert entry["stored"] == model.n_support_


def test_details_take_bounded_memory():
    details = Details("regression")
    for first in range(0, 20_000, 1000):
        y = RNG.normal(size=1000)
        details.add(PredictionBatch(y, np.zeros(1000), np.zeros(1000), None), first)
    assert len(details.pairs) == 2000
    assert len(details.worst) == 10
    assert abs(np.mean([first for first, _ in details.pairs])) < 0.1


def test_relevance_finds_the_columns_that_matter():
    model = Prepared(KernelRegressor(Gaussian(0.5), random_state=0))
    found = ran(model, NUMBERS)[0]
    shares = found.details.relevance(found.model, ["x0", "x1", "x2"])
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["x0"] > 0.5
    few = Details("regression")
    few.before(model, Chunk(X[:5], NUMBERS[:5]))
    assert few.relevance(model, ["x0", "x1", "x2"]) is None


def headings(page):
    return re.findall(r"<h2>([^<]+)</h2>", page)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"{a:.4f},{'red' if b > 0 else 'blue'},{label}" for (a, b, _), label in zip(X, CLASSES, strict=True)]
    path.write_text("\n".join(["a,hue,y", *rows]) + "\n")
    return path


def test_a_report_of_the_command_line_has_all_parts(table, tmp_path):
    report = tmp_path / "r.html"
    done = CliRunner().invoke(main, ["learn", str(table), "--report", str(report), "--seed", "1"])
    assert done.exit_code == 0, done.output
    page = report.read_text()
    assert headings(page) == [
        "Outcome", "Error", "Leading experts", "Columns", "Confusion matrix", "Calibration", "Worst errors", "Stored points",
        "Settings",
    ]  # fmt: skip
    assert f"<pre>gristmill learn {table} --report {report} --seed 1</pre>" in page
    for said in (
        "majority class",
        "no change",
        "category, 2 values",
        "relevance",
        "1,200 events of data.csv",
        "gristmill 0.1",
    ):
        assert said in page, said
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d", page)
    assert "kernel unless named" not in page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "scaling" not in page.split("Settings")[1]


def test_a_report_of_numbers_and_of_no_use():
    page = run_report(ran(KernelRegressor(Gaussian(0.5)), NUMBERS), "numbers", {}).html()
    assert {"Predicted against true", "Intervals", "Worst errors"} <= set(headings(page))
    assert "no better than the best baseline" not in page
    noise = RNG.random(1200) < 0.1
    page = run_report(ran(KernelClassifier(Gaussian(0.5), Perceptron()), noise), "noise", {}).html()
    assert "model is no better than the best baseline" in page


def test_many_classes_are_put_together():
    details = Details("classification")
    y = np.arange(60) % 30
    details.add(PredictionBatch(y, np.roll(y, 1), np.ones((60, 30)), np.arange(30)), 10)
    comparison = ran(KernelClassifier(Gaussian(0.5)), CLASSES)
    comparison[0].details = details
    page = run_report(comparison, "many", {}).html()
    assert page.count("<td>others</td>") == 1


def test_a_report_without_labels_lists_the_alarms_with_the_lowest_scores():
    rows = X.copy()
    rows[700] = 30.0
    stream = from_arrays(rows, None, rows=300, name="made")
    followers = followers_of({"model": AutoNovelty(random_state=0)}, stream, window=1200, details=True)
    comparison = Run(followers, stream, baselines=True).go()
    page = run_report(comparison, "alarms", {}).html()
    assert "Strongest alarms" in headings(page)
    assert "nan" not in page.split("Leading experts")[1].split("</table>")[0]
    scores = AutoNovelty(random_state=0).prequential(rows)
    worst = [one.event - 1 for one in comparison[0].details.worst]
    assert worst == np.argsort(scores, kind="stable")[: (scores < 0).sum()][:10].tolist()
    assert worst[0] == 700
