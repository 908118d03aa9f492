"""Relevance by columns of a table: the values of a category share one weight, and columns are told by their names."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill import KernelClassifier, KernelRegressor, Laplacian, Merge, PassiveAggressive, Prepared
from gristmill.cli import main
from gristmill.evaluate import RelevanceDisplay, compare
from gristmill.evaluate.run_report import run_report
from gristmill.features import FeatureClassifier
from gristmill.streams import from_arrays

HUES = ("red", "blue", "green", "grey")


def table(n: int = 1300, seed: int = 0):
    """The hue and one number decide; another category and the time say nothing, a value comes late, there are gaps."""
    rng = np.random.default_rng(seed)
    size, noise = rng.normal(size=n), rng.normal(size=n)
    hue = rng.choice(HUES, n)
    hue[:700] = np.where(hue[:700] == "grey", "red", hue[:700])
    events = {
        "size": size,
        "hue": hue,
        "shape": rng.choice(["round", "flat", "long"], n),
        "noise": np.where(rng.uniform(size=n) < 0.05, np.nan, noise),
        "when": np.datetime64("2024-01-01T00:00:00", "s") + rng.integers(0, 10**7, n),
    }
    return events, np.where(np.isin(hue, ("red", "grey")), size > 0, size < 0.5)


def part(events, start, stop):
    return {name: values[start:stop] for name, values in events.items()}


def relevant(model=None):
    return Prepared(model or KernelClassifier(Laplacian(0.5), PassiveAggressive(), Merge(150)), "relevance")


def test_the_values_of_a_category_share_one_weight():
    events, y = table()
    model = relevant().fit(events, y)
    owners = {}
    for name, weight in zip(model.get_feature_names_out(), model.scaler_.weights, strict=True):
        owners.setdefault(name.split("=")[0].split(":")[0], set()).add(weight)
    assert set(owners) == set(events)
    assert all(len(weights) == 1 for weights in owners.values())
    assert len({*itertools.chain(*owners.values())}) == len(events)
    assert "hue=grey" in model.get_feature_names_out()


def test_relevance_is_by_column_of_the_table():
    events, y = table()
    model = relevant().fit(events, y)
    assert list(model.table_.kinds_) == list(events)
    assert model.relevance_.shape == (len(events),)
    assert model.relevance_.sum() == pytest.approx(1.0)
    assert {list(events)[place] for place in np.argsort(model.relevance_)[-2:]} == {"size", "hue"}
    assert [found.position for found in model.relevance_history_] == [500, 1000]
    assert all(found.shares.shape == (len(events),) for found in model.relevance_history_)
    assert relevant().fit(part(events, 0, 50), y[:50]).relevance_.tolist() == [0.2] * 5


def test_a_value_that_comes_late_has_the_weight_of_its_category():
    events, y = table()
    model = relevant().fit(part(events, 0, 700), y[:700])
    place = list(model.get_feature_names_out()).index("hue=red")
    before = model.scaler_.weights[place]
    assert before != 1.0
    model.partial_fit(part(events, 700, 900), y[700:900])
    names = list(model.get_feature_names_out())
    assert model.scaler_.weights[names.index("hue=grey")] == before


def test_however_the_table_is_cut_and_kept(tmp_path):
    events, y = table()
    whole = relevant()
    said = whole.prequential(events, y)
    for cuts in ((499, 500, 501, 1000), (1, 710, 999)):
        model, parts = relevant(), []
        for start, stop in itertools.pairwise([0, *cuts, len(y)]):
            parts.append(model.prequential(part(events, start, stop), y[start:stop]))
            model.save(tmp_path / "model.gm")
            model = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model.gm")))
        assert np.array_equal(np.concatenate(parts), said)
        assert np.array_equal(model.scaler_.weights, whole.scaler_.weights)
        assert np.array_equal(model.relevance_, whole.relevance_)


def test_a_number_times_a_power_of_two_changes_no_bit():
    events, y = table()
    a, b = relevant().fit(events, y), relevant().fit({**events, "size": events["size"] * 2.0**9}, y)
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert np.array_equal(a.relevance_, b.relevance_)


def test_an_error_later_in_the_chunk_undoes_renewals_and_columns():
    events, y = table()
    model, twin = (relevant().fit(part(events, 0, 400), y[:400]) for _ in range(2))
    labels = y[400:].astype(object)
    labels[-1] = "no truth value"
    with pytest.raises((TypeError, ValueError)):
        model.partial_fit(part(events, 400, 1300), labels)
    bad = part(events, 400, 1300)
    bad["size"] = bad["size"].copy()
    bad["size"][-1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(bad, y[400:])
    assert list(model.get_feature_names_out()) == list(twin.get_feature_names_out())
    assert np.array_equal(model.scaler_.weights, twin.scaler_.weights)
    rest = part(events, 400, 1300), y[400:]
    assert np.array_equal(model.prequential(*rest), twin.prequential(*rest))


def test_several_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 8))
    Y = np.column_stack([np.sin(2 * X[:, 1]), X[:, 4] * X[:, 5]])
    whole, model = (relevant(KernelRegressor(Laplacian(0.3), budget=Merge(200))) for _ in range(2))
    said = whole.prequential(X, Y)
    parts = [model.prequential(X[a:b], Y[a:b]) for a, b in ((0, 499), (499, 1001), (1001, 1300))]
    assert np.array_equal(np.concatenate(parts), said)
    assert set(np.argsort(whole.relevance_)[-3:]) == {1, 4, 5}


def test_who_stores_no_points_is_refused_by_name():
    events, y = table(30)
    with pytest.raises(ValueError, match="FeatureClassifier stores none"):
        relevant(FeatureClassifier()).fit({"size": events["size"]}, y)


def test_names_where_people_look(tmp_path):
    events, y = table()
    model = relevant().fit(events, y)
    model.save(tmp_path / "model.gm")
    told = CliRunner().invoke(main, ["inspect", str(tmp_path / "model.gm"), "--json"])
    facts = json.loads(told.stdout)["relevance"]
    assert set(facts) == set(events)
    assert set(list(facts)[:2]) == {"size", "hue"}
    why = model.explain({"size": 1.0, "hue": "red"}, top=2)
    assert why.relevance == dict(zip(events, model.relevance_.tolist(), strict=True))
    assert str(why).splitlines()[-1].startswith("columns that matter: ")
    assert Prepared(KernelClassifier()).fit(events, y).explain({"size": 1.0}).relevance is None
    display = RelevanceDisplay.from_estimator(model).plot(over_time=True)
    assert {line.get_label() for line in display.lines_} == set(events)


def test_reports_show_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 6))
    models = {"with": relevant(), "without": Prepared(KernelClassifier(Laplacian(0.5), budget=Merge(50)))}
    comparison = compare(models, from_arrays(X, X[:, 0] * X[:, 1] > 0))
    page = run_report(comparison, "A run", {"stream": "numbers"}).html()
    assert "<h2>Columns: with</h2>" in page
    assert "<h2>Columns: without</h2>" not in page
    assert page.count('<th class="number">relevance</th>') == 1
    shares = models["with"].relevance_
    assert f"{shares.max():.3f}" in page
