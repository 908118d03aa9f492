"""One model of data that live apart, without Ray: sources, the sample, parts, and the loss held out."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import gristmill
from gristmill import (
    AutoClassifier,
    AutoNovelty,
    AutoRegressor,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Prepared,
    passive_aggressive,
)
from gristmill.cluster import federated as apart
from gristmill.cluster.merge_tree import merged
from gristmill.cluster.sources import agreed, chunks_of, sources_of
from gristmill.race.expert import scaler_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 4)) * [1.0, 100.0, 1.0, 0.01]
Y = np.where(X[:, 0] * X[:, 1] > 0, "up", "down")


def parts(count=4):
    return [(X[i::count], Y[i::count]) for i in range(count)]


def write(path, rows, labels):
    lines = [",".join([*(repr(float(x)) for x in row), label]) for row, label in zip(rows, labels, strict=True)]
    path.write_text("a,b,c,d,label\n" + "\n".join(lines) + "\n")
    return path


def together(source, target="last"):
    found = list(chunks_of(source, target))
    return np.concatenate([X for X, _ in found]), np.concatenate([y for _, y in found])


@pytest.mark.parametrize("kind", ["pair", "csv", "two files", "parquet", "url"])
def test_a_part_is_read_where_it_is(kind, tmp_path):
    rows, labels = X[:300], Y[:300]
    if kind == "pair":
        source = (rows, labels)
    elif kind == "csv":
        source = write(tmp_path / "a.csv", rows, labels)
    elif kind == "two files":
        source = [
            write(tmp_path / "a.csv", rows[:100], labels[:100]),
            write(tmp_path / "b.csv", rows[100:], labels[100:]),
        ]
    elif kind == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({**{name: rows[:, at] for at, name in enumerate("abcd")}, "label": labels})
        source = str(tmp_path / "a.parquet")
        parquet.write_table(table, source)
    else:
        import fsspec

        local = write(tmp_path / "a.csv", rows, labels)
        with fsspec.open("memory://parts/a.csv", "wb") as file:
            file.write(local.read_bytes())
        source = "memory://parts/a.csv"
    found = together(source)
    np.testing.assert_array_equal(found[0], rows)
    np.testing.assert_array_equal(found[1], labels)
    assert sources_of([source], "last", 2) == [source]


@pytest.mark.parametrize("bad", ["a.csv", 7, [], [3], [(X, Y), 3.5]])
def test_what_is_no_list_of_parts_is_refused(bad):
    with pytest.raises((TypeError, ValueError), match=r"fit takes a list of shards|no shard|shard [01] is no path"):
        sources_of(bad, "last", 2)


def settled(learner, count=4):
    return apart.settle(learner, [apart.sample_of(part, "last", 300, seed) for seed, part in enumerate(parts(count))])


def test_the_sample_is_of_all_parts_and_the_same_each_time():
    sample = apart.sample_of(parts()[1], "last", 300, 5)
    again = apart.sample_of(parts()[1], "last", 300, 5)
    assert sample.X.shape == (300, 4)
    np.testing.assert_array_equal(sample.X, again.X)
    rows = {row.tobytes() for row in parts()[1][0]}
    assert all(row.tobytes() in rows for row in sample.X)


@pytest.mark.parametrize("scale", ["standard", "minmax", "relevance"])
def test_scaling_is_settled_and_stays(scale):
    model = settled(Prepared(passive_aggressive(Gaussian(1.0), size=50), scale))
    before = model.scaler_.transform(X[:5])
    for part in parts():
        learner, learned = apart.learn_part(model, part, "last")
        np.testing.assert_array_equal(learner.scaler_.transform(X[:5]), before)
        assert learned == 1350
        assert learner.model_.n_seen_ == 1350
    np.testing.assert_array_equal(model.scaler_.transform(X[:5]), before)


def test_relevance_becomes_a_scaling():
    model = Prepared(passive_aggressive(Gaussian(1.0), size=50), "relevance", warmup=2000).fit(X, Y)
    assert model.scaler_.weights.std() > 0.1
    found = apart._weighed(model.scaler_)
    wanted = model.scaler_.weighed_rows(model.scaler_.standard.transform(X[:50]))
    usual = np.abs(wanted) < 2  # what lies far off is drawn in by its own spread
    np.testing.assert_allclose(found.transform(X[:50])[usual], wanted[usual], rtol=1e-9)
    assert usual.mean() > 0.5


def test_a_width_is_found_where_no_kernel_was_said():
    model = settled(Prepared(KernelClassifier()))
    assert isinstance(model.model.kernel, Gaussian)
    assert 0.05 < model.model.kernel.gamma < 1
    assert settled(KernelRegressor(Gaussian(0.25))).kernel == Gaussian(0.25)


def test_a_race_keeps_the_scalings_of_the_sample():
    learner = AutoClassifier(memory="200 kB", random_state=0)
    model = settled(learner)
    assert model.n_seen_ == 0
    found = [apart.learn_part(model, part, "last") for part in parts()]
    for key in model._engine.scaling_keys:
        for other, _ in found:
            before, after = (scaler_of(race._engine, key).transform(X[:9]) for race in (model, other))
            np.testing.assert_array_equal(before, after)
    assert not any(spec.weighs for spec in model._engine.specs)
    assert len(model._engine.scaling_keys) > 3  # weighed columns are scaled by what was found
    whole = merged("150 kB", merged(None, *[one for one, _ in found[:2]]), merged(None, *[one for one, _ in found[2:]]))
    assert whole.n_seen_ == 5400
    assert whole.memory_bytes_ <= 150_000
    assert (whole.predict(X[9::10]) == Y[9::10]).mean() > 0.9
    assert gristmill.from_bytes(whole.to_bytes()).predict(X[:50]).tolist() == whole.predict(X[:50]).tolist()


def test_races_of_every_task_can_be_sent_and_merged():
    for learner, y in ((AutoRegressor(memory="200 kB"), X[:, 0]), (AutoNovelty(memory="200 kB"), None)):
        samples = [apart.Sample(X[i::4][:300], None if y is None else y[i::4][:300]) for i in range(2)]
        model = pickle.loads(pickle.dumps(apart.settle(learner, samples)))
        found = [apart.learn_part(model, (X[i::2], None if y is None else y[i::2]), None)[0] for i in range(2)]
        whole = merged(None, *found)
        assert whole.n_seen_ == 5400
        said = whole.predict(X[9::10])
        assert (said == -1).mean() < 0.05 if y is None else np.abs(said - y[9::10]).mean() < 0.2 * np.abs(y).mean()


def test_parts_with_other_columns_are_refused():
    with pytest.raises(ValueError, match="part 0 has 2 and part 1 has 1"):
        apart.settle(KernelClassifier(), [apart.Sample(X[:50, :2], Y[:50]), apart.Sample(X[:50, :1], Y[:50])])


def test_every_tenth_event_is_held_out_and_measured():
    seen = []

    class Watch(KernelNovelty):
        def partial_fit(self, X, y=None):
            seen.append(X)
            return self

    apart.learn_part(Watch(), (X, None), None)
    learned = np.concatenate(seen)
    np.testing.assert_array_equal(learned, np.delete(X, np.arange(9, 6000, 10), axis=0))
    model = Prepared(passive_aggressive(Gaussian(1.0), size=50)).fit(X, Y)
    (loss,) = apart.losses_of([model], (X, Y), "last")
    held = np.arange(9, 6000, 10)
    assert loss == (float((model.predict(X[held]) != Y[held]).sum()), 600)


def test_parts_become_one_model_nearly_as_good_as_one_pass():
    learner = Prepared(passive_aggressive(Gaussian(0.5), size=200))
    model = settled(learner)
    found = [apart.learn_part(model, part, "last") for part in parts()]
    models = [one for one, _ in found]
    left, right = merged(None, *models[:2]), merged(None, *models[2:])
    whole = merged(150, left, right)
    assert whole.model_.n_support_ <= 150
    assert whole.model_.n_seen_ == 5400
    losses = [apart.losses_of([*models, whole], part, "last") for part in parts()]
    report = apart.report_of([*models, whole], losses, [learned for _, learned in found])
    assert report.held_out == 600
    assert report.measure == "error"
    assert report.learned == (1350,) * 4
    alone = learner.fit(np.delete(X, np.arange(9, 6000, 10), axis=0), np.delete(Y, np.arange(9, 6000, 10)))
    assert report.loss <= (alone.predict(X[9::10]) != Y[9::10]).mean() + 0.05
    assert f"error {report.loss:.4g} on 600 events held out" in str(report)


# ---- columns by name -----------------------------------------------------------------------------------------------


def table_file(path, names, order, rows, labels):
    """A file of rows whose columns stand in another order, under names that say which is which."""
    columns = {name: rows[:, at] for name, at in zip(names, order, strict=True)}
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({**columns, "label": labels}), path)
    elif path.suffix == ".jsonl":
        named = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        lines = [json.dumps({**row, "label": str(label)}) for row, label in zip(named, labels, strict=True)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        body = [
            ",".join([*map(repr, map(float, row)), y])
            for row, y in zip(zip(*columns.values(), strict=True), labels, strict=True)
        ]
        path.write_text(",".join([*columns, "label"]) + "\n" + "\n".join(body) + "\n", encoding="utf-8")
    return path


def one_model(shards, target="last"):
    """What `Cluster.fit` does, in this process."""
    learner = Prepared(passive_aggressive(Gaussian(0.5), size=150))
    found = sources_of(shards, target, 2)
    settled = agreed(found[0], target)
    samples = [apart.sample_of(source, settled, 500, seed) for seed, source in enumerate(found)]
    model = apart.settle(learner, samples)
    learned = [apart.learn_part(model, source, settled) for source in found]
    whole = merged(100, *[part for part, _ in learned])
    models = [*[part for part, _ in learned], whole]
    losses = [apart.losses_of(models, source, settled) for source in found]
    return whole, apart.report_of(models, losses, [count for _, count in learned])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", "frame"])
def test_shards_are_merged_by_the_names_of_their_columns(ending, tmp_path):
    rows, labels = X[:, :2] / [1.0, 100.0], np.where(X[:, 0] > 0, "up", "down")
    halves = [(rows[:3000], labels[:3000]), (rows[3000:], labels[3000:])]
    if ending == "frame":
        first = (pd.DataFrame(halves[0][0], columns=["a", "b"]), halves[0][1])
        swapped = (pd.DataFrame(halves[1][0][:, ::-1], columns=["b", "a"]), halves[1][1])
        same = (pd.DataFrame(halves[1][0], columns=["a", "b"]), halves[1][1])
    else:
        first = table_file(tmp_path / f"first{ending}", "ab", (0, 1), *halves[0])
        swapped = table_file(tmp_path / f"swapped{ending}", "ba", (1, 0), *halves[1])
        same = table_file(tmp_path / f"same{ending}", "ab", (0, 1), *halves[1])
    found, wanted = (one_model([first, other]) for other in (swapped, same))
    np.testing.assert_array_equal(found[0].decision_function(rows[:50]), wanted[0].decision_function(rows[:50]))
    assert found[1] == wanted[1]
    assert found[1].loss < 0.05
    if ending != "frame":  # several files are one shard, too
        listed, _ = one_model([[first, swapped], same])
        assert (listed.predict(rows) == labels).mean() > 0.95


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("uv", "the column 'a' is missing; there are u, v"),
        ("abc", "the column 'c' is not in the first shard, which has a, b"),
        ("a", "the column 'b' is missing"),
    ],
)
def test_other_columns_are_refused_by_name(names, words, tmp_path):
    rows, labels = X[:200], Y[:200]
    first = table_file(tmp_path / "first.csv", "ab", (0, 1), rows, labels)
    other = table_file(tmp_path / "other.csv", names, range(len(names)), rows, labels)
    with pytest.raises(ValueError, match=words):
        one_model([first, other])
    frames = [(pd.DataFrame(rows[:, : len(n)], columns=list(n)), labels) for n in ("ab", names)]
    with pytest.raises(ValueError, match="shards must have the same columns; the first has a, b"):
        one_model(frames)
    with pytest.raises(ValueError, match="has no names of columns, and the first shard has"):
        one_model([first, (rows[:, :2], labels)])
    with pytest.raises(ValueError, match="has names of columns, and the first shard has not"):
        one_model([(rows[:, :2], labels), first])


def test_the_target_goes_by_the_name_that_it_has_in_the_first_shard(tmp_path):
    rows, labels = X[:400, :2], Y[:400]
    first = table_file(tmp_path / "first.csv", "ab", (0, 1), rows, labels)
    lines = [f"{y},{a!r},{b!r}" for y, a, b in zip(labels.tolist(), *rows.T.tolist(), strict=True)]
    other = tmp_path / "other.csv"
    other.write_text("label,a,b\n" + "\n".join(lines) + "\n", encoding="utf-8")
    settled = agreed(first, "last")
    assert settled == ("label", ("a", "b"))
    found = list(chunks_of(other, settled))
    np.testing.assert_array_equal(np.concatenate([part for part, _ in found]), rows)
    assert np.concatenate([part for _, part in found]).tolist() == labels.tolist()


@pytest.mark.parametrize("count", [100, 301])
def test_labels_of_another_length_are_refused(count):
    with pytest.raises(ValueError, match=f"shard 1: X has 300 rows and y has {count}"):
        sources_of([(X[:300], Y[:300]), (X[:300], Y[:count])], "last", 2)


def test_a_report_without_events_held_out_says_so():
    _, report = one_model([(X[:2], np.array(["up", "down"])), (X[2:4], np.array(["down", "up"]))])
    assert report.held_out == 0
    assert np.isnan(report.loss)
    assert "not measured, because no shard has the 10 events" in str(report)
