"""Prepared over any table: the same bits from every source and in every cut, and nothing changed after an error."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import gristmill
from gristmill import (
    Additive,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Merge,
    Prepared,
    adatron,
    passive_aggressive,
)
from gristmill.features import FeatureClassifier
from gristmill.streams import CellError, StreamScaler, Table, read
from tests.streams.test_frames import write
from tests.streams.test_table import SOURCES, cuts, tables

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)
MAKE = {
    "default": lambda: KernelClassifier(random_state=0),
    "bytes": lambda: KernelClassifier(Laplacian(0.5), budget=Merge("64 kB")),
    "additive": lambda: KernelClassifier(Additive(Laplacian(0.5))),
    "map": lambda: FeatureClassifier(random_state=0),
}


def mixed(count=120, seed=0):
    """A frame with a gap, a category, a time and a truth in it, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 9, count),
            "hue": rng.choice(["red", "blue", "green", "grey"], count),
            "when": pd.date_range("2024-05-01", periods=count, freq="7h"),
            "on": rng.random(count) < 0.4,
        }
    )
    y = ((frame["size"] > 50) ^ (frame["hue"] == "red")).to_numpy().astype(int)
    frame.loc[rng.random(count) < 0.15, "size"] = np.nan
    frame.loc[rng.random(count) < 0.1, "hue"] = None
    return frame, y


def records(frame):
    return [{str(n): None if pd.isna(v) else v for n, v in row.items()} for row in frame.to_dict("records")]


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_one_by_one_is_the_same_and_bad_events_change_nothing(scale):
    def new():
        return Prepared(passive_aggressive(Gaussian(0.5), size=50), scale)

    whole, single = new().fit(X, Y), new()
    for place, (row, label) in enumerate(zip(X, Y, strict=True)):
        single.learn_one(row, label)
        if place == 100:
            for bad in (np.array([1.0, np.inf, 0, 0]), np.ones(3)):
                with pytest.raises(ValueError, match=r"row 0, column 'x1': inf is not|3 features"):
                    single.learn_one(bad, 1)
            with pytest.raises(ValueError, match=r"y contains NaN|continuous"):
                single.learn_one(row, float("nan"))
    assert np.array_equal(whole.decision_function(X), single.decision_function(X))
    assert whole.score_one(X[5]) == whole.decision_function(X[5:6])[0]
    assert whole.predict_one(X[5]) == whole.predict(X[5:6])[0]
    assert whole.n_seen_ == single.n_seen_ == single.table_.n_seen_ == 300


@settings(max_examples=25, deadline=None)
@given(rows=tables(), data=st.data())
def test_any_table_in_any_cut_from_any_source(rows, data, tmp_path_factory):
    make = MAKE[data.draw(st.sampled_from(list(MAKE)))]
    scale = data.draw(st.sampled_from(["standard", "minmax", None]))
    y = [number % 2 for number in range(len(rows))]
    whole = Prepared(make(), scale).fit(rows, y)
    said = whole.decision_function(rows)
    assert np.isfinite(said).all()
    single, cut = Prepared(make(), scale), Prepared(make(), scale)
    for row, label in zip(rows, y, strict=True):
        single.learn_one(row, label)
    path = tmp_path_factory.mktemp("model") / "model"
    for start, stop in data.draw(cuts(len(rows))):
        source = SOURCES[data.draw(st.sampled_from([name for name in SOURCES if name != "objects"]))]
        cut.partial_fit(source(rows[start:stop]), y[start:stop])
        cut.save(path)
        cut = gristmill.load(path)
    for other in (single, cut, pickle.loads(pickle.dumps(whole))):
        assert np.array_equal(other.decision_function(rows), said)
        assert other.n_features_in_ == whole.n_features_in_


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("scale", ["standard", None])
def test_what_is_said_of_a_stream_does_not_depend_on_its_cut(make, scale):
    frame, y = mixed()
    said = Prepared(MAKE[make](), scale).prequential(frame, y)
    model, parts = Prepared(MAKE[make](), scale), []
    for start, stop in ((0, 1), (1, 2), (2, 9), (9, 70), (70, 120)):
        parts.append(model.prequential(records(frame[start:stop]), y[start:stop]))
    assert np.array_equal(np.concatenate(parts), said)


def test_a_file_and_a_frame_are_the_same(tmp_path):
    frame, y = mixed()
    rows = [{**row, "y": int(label)} for row, label in zip(records(frame), y, strict=True)]
    whole = Prepared(KernelClassifier()).fit(frame, y)
    for ending in ("csv", "jsonl", "parquet", "arrow"):
        model = Prepared(KernelClassifier())
        for chunk in read(write(tmp_path / f"t.{ending}", rows), raw=True):
            model.partial_fit(chunk.X, chunk.y)
        assert np.array_equal(model.decision_function(frame), whole.decision_function(frame)), ending


def test_the_width_comes_from_the_columns_of_the_table():
    frame, y = mixed()
    model = Prepared(KernelClassifier(Laplacian(1.0))).fit(frame, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert len(model.get_feature_names_out()) == model.model_.n_features_in_ > 10
    late = Prepared(KernelClassifier())
    late.partial_fit([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y", "c": 1.0}], [0, 1])
    one = Prepared(KernelClassifier())
    one.learn_one({"a": 1.0, "b": "x"}, 0)
    assert late.model_.kernel_ == one.model_.kernel_
    assert late.n_features_in_ == 3
    assert not hasattr(Prepared(KernelClassifier()).fit(X, Y), "feature_names_in_")


def test_kinds_can_be_said():
    rows = [{"zip": place % 3, "id": place, "n": float(place)} for place in range(30)]
    model = Prepared(KernelClassifier(), columns={"zip": "category", "id": "drop"}).fit(rows, [0, 1, 1] * 10)
    assert model.table_.kinds_ == {"zip": "category", "n": "number"}
    assert model.predict_one({"zip": 0, "n": 4.0}) == 0
    assert clone(model).columns == {"zip": "category", "id": "drop"}
    again = gristmill.from_bytes(model.to_bytes())
    assert again.columns == model.columns
    assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
    with pytest.raises(ValueError, match=r"columns: 'zip' must be one of number, .*got 'word'"):
        Prepared(KernelClassifier(), columns={"zip": "word"}).fit(rows, [0, 1, 1] * 10)


def test_errors_name_row_column_and_value_and_change_nothing():
    frame, y = mixed()
    model = Prepared(KernelClassifier()).fit(frame, y)
    before = model.to_bytes()
    bad = records(frame[:5])
    bad[3]["size"] = "large"
    for act in (
        lambda: model.partial_fit(bad, y[:5]),
        lambda: model.predict(bad),
        lambda: model.prequential(bad, y[:5]),
    ):
        with pytest.raises(CellError, match="row 3, column 'size': 'large' is not a number"):
            act()
    fresh = {"size": 1.0, "hue": "mauve", "new": "word"}
    for label in (None, float("nan"), "text"):
        with pytest.raises(ValueError, match=r"y|label"):
            model.learn_one(fresh, label)
    with pytest.raises(ValueError, match=r"inconsistent|strings"):
        model.partial_fit([fresh, fresh], [1])
    with pytest.raises(ValueError, match=r"labels must be all"):
        model.partial_fit([records(frame)[0], fresh], [1, "text"])
    assert model.to_bytes() == before
    with pytest.raises(CellError, match="row 0, column 'size': the value is missing"):
        Prepared(KernelClassifier(), missing="raise").fit([{"size": None}], [1])


def test_an_interrupt_in_the_middle_of_a_chunk_undoes_all_of_it(monkeypatch):
    frame, y = mixed()
    model = Prepared(KernelClassifier()).fit(frame[:3], y[:3])
    before, widen, count = model.to_bytes(), KernelClassifier.widen, [0]

    def interrupted(self, width):
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt
        widen(self, width)

    monkeypatch.setattr(KernelClassifier, "widen", interrupted)
    fresh = [{"hue": "cyan"}, {"hue": "pink"}, {"hue": "black"}]
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(fresh, [0, 1, 0])
    assert model.to_bytes() == before


def test_weights_classes_and_scores():
    frame, y = mixed()
    weights = np.where(y == 1, 2.0, 0.5)
    model = Prepared(KernelClassifier()).partial_fit(frame, y, classes=[0, 1, 2], sample_weight=weights)
    assert model.classes_.tolist() == [0, 1, 2]
    single = Prepared(KernelClassifier()).partial_fit(frame[:1], y[:1], classes=[0, 1, 2], sample_weight=weights[:1])
    for row, label, weight in zip(records(frame[1:]), y[1:], weights[1:], strict=True):
        single.learn_one(row, label, sample_weight=weight)
    assert np.array_equal(model.decision_function(frame), single.decision_function(frame))
    assert model.score(frame, y) == (model.predict(frame) == y).mean()
    assert model.score(frame, y, y == 1) == (model.predict(frame)[y == 1] == 1).mean()
    with pytest.raises(ValueError, match="sample_weight is zero for every event"):
        Prepared(KernelClassifier()).fit(frame, y, np.zeros(len(y)))
    unknown = Prepared(KernelClassifier())
    assert unknown.predict_one({"a": 1}) is None
    assert Prepared(KernelRegressor()).predict_one({"a": 1}) == 0.0
    assert Prepared(KernelNovelty()).score_one([1.0]) == 0.0


def test_sparse_and_single_precision_go_through_as_they_are():
    model = Prepared(KernelClassifier(Gaussian(0.5)), scale=None).fit(csr_array(X), Y)
    bare = KernelClassifier(Gaussian(0.5)).fit(csr_array(X), Y)
    assert np.array_equal(model.decision_function(csr_array(X)), bare.decision_function(csr_array(X)))
    assert np.array_equal(model.decision_function(X), bare.decision_function(X))
    single = Prepared(KernelClassifier(Gaussian(0.5)), scale=None).fit(X.astype(np.float32), Y)
    assert single.support_vectors_.dtype == np.float32
    texts = Prepared(KernelClassifier(Gaussian(1.0)), columns={"note": "text"})
    rows = [{"note": "pump failed" if place % 2 else "all quiet", "n": float(place)} for place in range(40)]
    texts.fit(rows, [place % 2 for place in range(40)])
    assert texts.predict_one({"note": "pump failed", "n": 20.0}) == 1
    assert texts.n_features_in_ == 2


def test_several_passes_see_the_scaling_of_the_whole_batch():
    frame, y = mixed()
    model = Prepared(adatron(Gaussian(0.3), rate=0.5, C=1.0, passes=3)).fit(frame, y)
    table, scaler = Table(), StreamScaler()
    table.learn_transform(frame, scaler)
    bare = adatron(Gaussian(0.3), rate=0.5, C=1.0, passes=3).fit(table.transform(frame, scaler), y)
    assert np.array_equal(model.decision_function(frame), bare.decision_function(table.transform(frame, scaler)))


def test_who_predicts_while_another_learns_sees_one_moment():
    """Columns, scaling and learner move together: every answer is one that some moment of the stream gives."""
    frame, y = mixed(400)
    probe, stops = frame[:3], range(40, 401, 40)
    model, moments = Prepared(KernelClassifier(Gaussian(0.2))), []
    for stop in stops:
        model.partial_fit(frame[stop - 40 : stop], y[stop - 40 : stop])
        moments.append(model.decision_function(probe).tobytes())
    model, seen, over = Prepared(KernelClassifier(Gaussian(0.2))), [], threading.Event()
    model.partial_fit(frame[:40], y[:40])

    def watch():
        while not over.is_set():
            seen.append(model.decision_function(probe).tobytes())

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for stop in stops[1:]:
        model.partial_fit(frame[stop - 40 : stop], y[stop - 40 : stop])
    over.set()
    for watcher in watchers:
        watcher.join()
    assert set(seen) <= set(moments)
    assert model.decision_function(probe).tobytes() == moments[-1]


def test_heavy_tails_and_columns_that_wake_up_do_not_take_the_distance():
    rng = np.random.default_rng(1)
    count = 2000
    wild = np.column_stack(
        [
            rng.standard_cauchy(count),
            np.where(np.arange(count) < 1500, 7.0, 7.0 + rng.normal(size=count)),
            rng.normal(size=count),
        ]
    )
    scaled = StreamScaler().learn_transform(wild)
    assert np.abs(scaled).max() < 10
    assert np.median(np.abs(scaled[500:, 0])) > 0.05  # without a limit it is 0.01, and less with every event
    assert not scaled[:1500, 1].any()
    tiny = np.column_stack([1e6 + 1e-6 * rng.normal(size=count), np.full(count, 3.0)])
    assert np.std(StreamScaler().learn_transform(tiny)[100:, 0]) == pytest.approx(1.0, abs=0.1)
    for power in (-300, -7, 20, 300):
        assert np.array_equal(StreamScaler().learn_transform(wild[:, 2:] * 2.0**power), scaled[:, 2:])


def test_rows_of_a_table_kept_by_columns_are_events():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int).tolist()
    one, other = Prepared(KernelClassifier()), Prepared(KernelClassifier())
    for x, strided, label in zip(X, np.asfortranarray(X), y, strict=True):
        one.learn_one(x, label)
        other.learn_one(strided, label)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    "model",
    [
        Prepared(KernelClassifier()),
        gristmill.Fleet(KernelClassifier(), 2),
        gristmill.KeyedFleet(KernelClassifier()),
        gristmill.LandmarkClassifier(Gaussian(1.0)),
        None,
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_no_learner_of_rows_is_refused_by_name(model):
    with pytest.raises(TypeError, match="Prepared: model must be a learner of gristmill, got"):
        Prepared(model).partial_fit(np.zeros((2, 2)), [0, 1])
