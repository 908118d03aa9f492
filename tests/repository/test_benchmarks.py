"""The harness of the benchmarks: streams that need no data home, players of all libraries, stored results, commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import batch, budgets, keyed_defaults
from benchmarks.progress import lines
from benchmarks.store import Store
from benchmarks.streams.__main__ import ENTRIES, cases, chosen
from benchmarks.streams.cases import SOURCES, TASKS, Case
from benchmarks.streams.entry import Entry
from benchmarks.streams.run import measure, run
from benchmarks.streams.tables import against, over_orders, ratios, spreads, table
from benchmarks.streams.trivial import Last

ROOT = Path(__file__).parent.parent.parent
FREE = [source for source in SOURCES.values() if source.needs is None]
COLUMNS = {
    "Phishing": 9, "ImageSegments": 18, "RandomRBFDrift": 10, "Agrawal": 9, "4 of 40": 40, "SEA": 3,
    "26 blobs": 16, "Hyperplane": 10, "LED drift": 24,
    "TrumpApproval": 6, "FriedmanDrift": 10, "prices": 8,
    "digits, 8-9 strange": 64, "segments, path and window strange": 18,
}  # fmt: skip


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data home of the test's own, with nothing in it."""
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.mark.parametrize("source", FREE, ids=lambda source: source.name)
def test_a_stream_without_a_file_is_the_same_each_time(source):
    case = source.case(300)
    assert case.X.shape == (300, COLUMNS[source.name])
    assert case.y.shape == (300,)
    assert np.isfinite(case.X).all()
    assert case.digest == source.case(300).digest
    if source.task == "novelty":
        assert 0.02 < (case.y == -1).mean() < 0.04
    if source.task == "classification":
        assert len(np.unique(case.y)) >= 2


def test_every_stream_of_the_list_has_a_task_and_says_what_it_needs(home, capsys):
    assert {source.task for source in SOURCES.values()} == set(TASKS)
    wanting = [source.name for source in SOURCES.values() if source.needs is not None]
    assert len(wanting) == len(SOURCES) - len(COLUMNS)
    assert cases(wanting, 100) == []
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" is left out: ")[0] for line in said] == wanting


def test_a_shuffled_stream_comes_from_the_data_home(home):
    rows = "".join(f"{i},{i % 3},{i % 2}\n" for i in range(50))
    (home / "spambase.csv").write_text(f"a,b,spam\n{rows}")
    case = SOURCES["spambase"].case(30)
    assert case.X.shape == (30, 2)
    assert (case.X[:, 0] % 2 == case.y).all()
    assert (np.diff(case.X[:, 0]) < 0).any()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.task}: {entry.name}")
def test_every_player_answers_each_event_before_it_learns_it(entry):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(620, 3))
    y = {"classification": np.array(["down", "up"])[(X[:, 0] > 0).astype(int)], "regression": 5.0 + 3.0 * X[:, 0]}.get(
        entry.task, np.where(np.arange(620) % 30 == 7, -1, 1)
    )
    if entry.task == "novelty":
        X[y == -1] *= 9.0
    done = []
    record = run(entry, Case("made", entry.task, X, y), done.append)
    assert done[-1] == 620
    assert record["microseconds"] > 0
    trivial = {"classification": 0.58, "regression": 7.0, "novelty": 0.6}[entry.task]
    assert (record["whole"] > trivial) if entry.task == "novelty" else (record["whole"] < trivial)


def test_measures_by_hand():
    said, y = np.array(["a", "b", "None", "b"]), np.array(["a", "a", "b", "b"])
    assert measure("classification", said, y, 0) == 0.5
    assert measure("classification", said, y, 3) == 0.0
    assert measure("regression", np.array([1.0, 2.0]), np.array([2.0, 4.0]), 0) == 1.5
    assert measure("novelty", np.array([3.0, 1.0, 2.0]), np.array([1, -1, 1]), 0) == 1.0
    assert np.isnan(measure("novelty", np.array([3.0]), np.array([1]), 0))


def test_an_error_of_a_learner_is_a_result():
    class Fails(Last):
        def one(self, x, y):
            raise ValueError("no")

    case = Case("made", "classification", np.zeros((5, 1)), np.arange(5))
    assert run(Entry("fails", "classification", "peer", "", lambda case: Fails()), case) == {"failed": "ValueError: no"}


def test_a_stored_result_is_used_only_for_the_same_thing(tmp_path):
    store = Store(tmp_path)
    store.put("streams", "usps + noise", "River ARF(10)", data="1", whole=0.5)
    assert store.find("streams", "usps + noise", "River ARF(10)", data="1")["whole"] == 0.5
    assert store.find("streams", "usps + noise", "River ARF(10)", data="2") is None
    assert store.find("streams", "usps", "River ARF(10)", data="1") is None


def test_tables_mark_the_best_and_compare_with_the_best_peer():
    def made(name, kind):
        return Entry(name, "classification", kind, "", lambda case: Last())

    entries = [made("ours", "ours"), made("peer", "peer"), made("line", "linear"), made("none", "trivial")]
    results = {
        "one": {"ours": {"whole": 0.1}, "peer": {"whole": 0.2}, "line": {"whole": 0.4}, "none": {"whole": 0.05}},
        "two": {"ours": {"whole": 0.3}, "peer": {"failed": "x"}, "line": {"whole": 0.2}},
    }
    assert table(results, entries, "classification", "whole") == [
        {"learner": "ours", "one": ".1000", "two": ".3000"},
        {"learner": "peer", "one": ".2000", "two": "-"},
        {"learner": "line", "one": ".4000", "two": ".2000*"},
        {"learner": "none", "one": ".0500*", "two": "-"},
    ]
    (row,) = against(results, entries, "classification")
    assert (row["streams"], row["better than the best peer"]) == (2, 1)
    assert row["worst ratio"] == "1.500 (two)"
    assert row["worst to trivial, linear"] == "2.000"
    halves = {"one": {"ours": {"second half": 0.3}, "other": {"second half": 0.2}}}
    assert ratios(halves, [made("ours", "ours"), made("other", "ours")], "other") == [
        {"stream": "one", "ours": "1.500"}
    ]


def test_orders_of_a_stream_are_averaged_and_their_spread_is_shown():
    one, two = (SOURCES["4 of 40"].case(200, order) for order in (0, 1))
    assert (one.name, two.name) == ("4 of 40", "4 of 40, order 1")
    assert one.digest != two.digest
    assert sorted(map(tuple, one.X)) == sorted(map(tuple, two.X))
    assert [case.name for case in cases(["4 of 40", "Agrawal"], 60, 2)] == ["4 of 40", "4 of 40, order 1", "Agrawal"]
    got = {
        "4 of 40": {"ours": {"whole": 0.25, "last": 0.5}, "peer": {"whole": 0.5}},
        "4 of 40, order 1": {"ours": {"whole": 0.75}, "peer": {"failed": "x"}},
        "Agrawal": {"ours": {"whole": 1.0}},
    }
    assert over_orders(got) == {"4 of 40": {"ours": {"whole": 0.5}, "peer": {}}, "Agrawal": {"ours": {"whole": 1.0}}}
    assert spreads(got) == [{"stream": "4 of 40", "ours": "0.5", "peer": "-"}]


def test_names_are_found_by_a_word():
    assert chosen(("arf",), ["River ARF(10)", "LOF"], "learner") == ["River ARF(10)"]
    assert chosen(("usps",), ["usps", "usps + noise"], "stream") == ["usps"]
    assert chosen((), ["usps", "LOF"], "stream") == ["usps", "LOF"]
    with pytest.raises(Exception, match="no learner has 'nobody'"):
        chosen(("nobody",), ["LOF"], "learner")


def test_lines_instead_of_a_bar(capsys):
    begin = lines(2)
    begin("one", 10)(5)
    begin("two", 10)(10)
    assert capsys.readouterr().err == "[1/2] one\n[2/2] two\n"


def test_a_batch_is_split_without_rows_in_both_parts(home):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{int(a > b)}\n" for a, b in rng.normal(size=(90, 2))]
    (home / "spambase.csv").write_text("a,b,spam\n" + "".join(rows + rows[:30]))
    X, y, X_test, y_test = batch.split("spambase", 1000)
    assert (len(y), len(y_test)) == (60, 30)
    assert len(np.unique(np.concatenate([X, X_test]), axis=0)) == 90
    found = batch.run(next(iter(batch.OURS.values())), (X, y, X_test, y_test))
    assert found["error"] < 0.4


def test_projectron_of_a_size():
    X, y = budgets.data("switching", 1500)
    found = budgets.projected(X, y, 20)
    assert 15 <= found["stored"] <= 20
    assert found["first"] == found["whole"]


def command(home, tmp_path, *words):
    """A command as people run it; in a process of its own, for it pins itself to one core."""
    done = subprocess.run(
        [sys.executable, "-m", *words, "--results", str(tmp_path / "results")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_streams_command_measures_stores_and_draws(home, tmp_path):
    words = (
        "benchmarks.streams",
        "-n",
        "200",
        "-s",
        "SEA",
        "-s",
        "prices",
        "-l",
        "PA",
        "-l",
        "River linear",
        "-l",
        "no ch",
    )
    said = command(home, tmp_path, *words)
    assert "classification: error, whole stream" in said
    assert "regression: mean absolute error, last 1,000 events" in said
    assert (tmp_path / "results" / "streams.png").read_bytes().startswith(b"\x89PNG")
    path = tmp_path / "results" / "streams" / "sea" / "river-linear.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "whole": 0.12345}))
    again = command(home, tmp_path, *words)
    assert ".1235" in next(line for line in again.splitlines() if line.startswith("River linear"))
    assert json.loads(path.read_text())["whole"] == 0.12345


def test_the_budgets_command_measures_stores_and_draws(home, tmp_path):
    said = command(home, tmp_path, "benchmarks.budgets", "-n", "300", "-d", "turning", "-p", "10", "-p", "40")
    rows = [line.split() for line in said.splitlines() if line.startswith("turning")]
    assert [row[1] for row in rows[:2]] == ["10", "40"]
    assert (tmp_path / "results" / "budgets.png").exists()
    fewer = command(home, tmp_path, "benchmarks.budgets", "-n", "300", "-d", "turning", "-p", "10", "-b", "DropOldest")
    assert next(line.split() for line in fewer.splitlines() if line.startswith("turning"))[:7] == rows[0][:7]


def test_the_defaults_of_keys_beside_other_ways(home, capsys):
    numbers = keyed_defaults.levels("apart", 10.0, keys=6, events=600)
    found = {name: keyed_defaults.wrong(way(numbers), numbers) for name, way in keyed_defaults.WAYS.items()}
    assert found["--key"] < 1.1 * found["a model a key"]
    assert found["prior that follows"] > 5 * found["a model a key"]
    classes = keyed_defaults.directions("alike", 0.0, events=600)
    assert all(keyed_defaults.wrong(way(classes), classes) < 0.5 for way in keyed_defaults.WAYS.values())
    assert len(list(keyed_defaults.streams())) == len(list(keyed_defaults.made()))
    assert capsys.readouterr().err.count("left out") == len(keyed_defaults.FILES)
