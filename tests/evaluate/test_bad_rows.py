"""Rows with a cell that does not fit: what is before them is learned, and the run goes on behind them."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import Gaussian, Prepared, passive_aggressive, perceptron
from gristmill.evaluate import compare, prequential, search
from gristmill.streams import BadRows, StreamError, read

GOOD = [
    f"{a:.4f},{'red' if a > b else 'blue'},{int(a * b > 0)}" for a, b in np.random.default_rng(0).normal(size=(1200, 2))
]
BAD = {300: "x,red,1", 301: "y,blue,0", 799: "one,red,0", 1199: "inf,red,0"}


@pytest.fixture
def files(tmp_path):
    """The same stream with bad rows and without them."""
    lines = [BAD.get(row, line) for row, line in enumerate(GOOD)]
    (tmp_path / "bad.csv").write_text("\n".join(["a,hue,y", *lines]) + "\n")
    (tmp_path / "good.csv").write_text(
        "\n".join(["a,hue,y", *(g for row, g in enumerate(GOOD) if row not in BAD)]) + "\n"
    )
    return tmp_path


def model(C=1.0):
    return Prepared(passive_aggressive(Gaussian(0.5), C=C, size=50, random_state=0))


def stream(folder, name, bad=None):
    return read(folder / name, raw=True, bad=bad)


def known(result):
    return result.model.to_bytes(), result.metrics, result.n_events


def test_a_run_goes_on_behind_bad_rows_as_if_they_were_not_there(files):
    bad = BadRows(files / "aside")
    result = prequential(model(), stream(files, "bad.csv", bad))
    bad.close()
    assert known(result) == known(prequential(model(), stream(files, "good.csv")))
    assert bad.count == 4
    assert f"{files / 'bad.csv'}, line 302, column 'a': 'x' is not a number" == bad.first
    assert (files / "aside").read_text().splitlines()[1::2] == [row.rpartition(",")[0] for row in BAD.values()]


def test_without_a_place_for_bad_rows_the_run_ends_at_the_first(files):
    learner = model()
    with pytest.raises(StreamError, match=r"bad.csv, line 302, column 'a': 'x' is not a number"):
        prequential(learner, stream(files, "bad.csv"))
    assert learner.n_seen_ == 300
    assert learner.to_bytes() == known(prequential(model(), stream(files, "good.csv").take(300)))[0]


def test_all_models_of_a_comparison_skip_the_same_rows_and_each_counts_once(files):
    bad = BadRows()
    made = {"a": model(), "b": Prepared(perceptron(Gaussian(0.5)))}
    found = compare(made, stream(files, "bad.csv", bad))
    assert bad.count == 4
    assert known(found["a"]) == known(prequential(model(), stream(files, "good.csv")))
    assert found["b"].n_events == 1196
    made = {"a": model(), "b": model(0.1)}
    with pytest.raises(StreamError, match="line 302"):
        compare(made, stream(files, "bad.csv"))
    assert [one.n_seen_ for one in made.values()] == [300, 300]


def test_a_model_that_refuses_more_rows_than_the_first_skips_them_alone(files):
    bad = BadRows()
    made = {"text": Prepared(model().model, columns={"a": "category"}), "number": model()}
    found = compare(made, stream(files, "bad.csv", bad))
    assert [one.n_events for one in found] == [1200, 1196]
    assert bad.count == 4


def test_delayed_labels_skip_bad_rows(files):
    bad = BadRows()
    late = prequential(model(), stream(files, "bad.csv", bad), delay=20)
    assert known(late) == known(prequential(model(), stream(files, "good.csv"), delay=20))
    assert bad.count == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_skips_bad_rows_once_for_all_candidates(files, n_jobs):
    grid = {"C": [0.01, 0.1, 1.0, 3.0]}
    bad = BadRows()
    found = search(model, grid, stream(files, "bad.csv", bad), n_jobs=n_jobs, first=320)
    plain = search(model, grid, stream(files, "good.csv"), n_jobs=n_jobs, first=318)
    assert bad.count == 4
    assert found.params == plain.params
    assert found.best_model.to_bytes() == plain.best_model.to_bytes()
    assert len(found.comparison()) == len(plain.comparison())
    with pytest.raises(StreamError, match=r"bad\.csv, line 302"):
        search(model, grid, stream(files, "bad.csv"), n_jobs=n_jobs, first=200)


def test_rows_of_a_frame_without_a_source_are_named_by_their_position():
    rows = [{"a": 1.0}, {"a": 2.0}, {"a": "x"}]
    chunks = [(rows[:2] * 50, np.arange(100) % 2), (rows, np.array([0, 1, 0]))]
    with pytest.raises(StreamError, match="stream, row 102, column 'a': 'x' is not a number"):
        prequential(model(), chunks)
