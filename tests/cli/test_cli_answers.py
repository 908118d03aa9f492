"""`gristmill predict` with probabilities and intervals."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill.cli import main


def call(*arguments, code=0):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A classifier and a regressor, each with the table it was learned from."""
    folder = tmp_path_factory.mktemp("models")
    X = np.random.default_rng(0).normal(size=(600, 2))
    truth = {"kind": np.where(X[:, 0] * X[:, 1] > 0, "ham, cold", "spam"), "size": np.sin(X[:, 0]) + X[:, 1]}
    learners = {"kind": "passive_aggressive(size=100)", "size": "passive_aggressive_regressor(epsilon=0.1, size=100)"}
    for name, y in truth.items():
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerows([["a", "b", name], *([f"{a:.6f}", f"{b:.6f}", v] for (a, b), v in zip(X, y, strict=True))])
        (folder / f"{name}.csv").write_text(text.getvalue())
        call("learn", folder / f"{name}.csv", "--learner", learners[name], "--model", folder / name)
    return folder


def test_probabilities_as_csv_and_json(saved):
    text = call("predict", saved / "kind", saved / "kind.csv", "--proba").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 600
    assert list(rows[0]) == ["prediction", "ham, cold", "spam"]
    shares = np.array([[float(row["ham, cold"]), float(row["spam"])] for row in rows])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert all(
        (row["prediction"] == "spam") == (b >= 0.5) or abs(b - 0.5) < 0.2
        for row, (_, b) in zip(rows, shares, strict=True)
    )
    lines = [
        json.loads(line)
        for line in call("predict", saved / "kind", saved / "kind.csv", "--proba", "--json").stdout.splitlines()
    ]
    assert set(lines[0]) == {"prediction", "score", "proba"}
    assert [line["proba"]["spam"] for line in lines] == shares[:, 1].tolist()


def test_intervals_as_csv_and_json(saved):
    text = call("predict", saved / "size", saved / "size.csv", "--interval", "0.9").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["prediction", "low", "high"]
    low, said, high = (np.array([float(row[name]) for row in rows]) for name in ("low", "prediction", "high"))
    assert ((low < said) & (said < high)).all()
    lines = [
        json.loads(line)
        for line in call(
            "predict", saved / "size", saved / "size.csv", "--interval", "0.9", "--json"
        ).stdout.splitlines()
    ]
    assert [line["low"] for line in lines] == low.tolist()
    wider = call(
        "predict", saved / "size", saved / "size.csv", "--interval", "0.99", "--limit", "1"
    ).stdout.splitlines()
    assert float(wider[1].split(",")[1]) < low[0]
    assert isinstance(gristmill.load(saved / "size"), gristmill.Prepared)


def test_predictions_alone_are_as_ever(saved):
    lines = call("predict", saved / "kind", saved / "kind.csv").stdout.splitlines()
    assert len(lines) == 600
    assert set(lines) <= {"ham, cold", "spam"}


@pytest.mark.parametrize(
    ("model", "asked", "says"),
    [
        ("size", ["--proba"], "--proba: "),
        ("kind", ["--interval", "0.9"], "--interval: "),
        ("size", ["--interval", "0.999"], "0.5<=x<=0.99"),
    ],
)
def test_what_a_model_cannot_say_is_refused(saved, model, asked, says):
    assert says in call("predict", saved / model, saved / f"{model}.csv", *asked, code=2).stderr
