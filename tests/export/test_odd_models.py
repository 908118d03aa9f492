"""Models at the edge of what there is: one feature, one column, one class, one point, ties, gaps, 200 classes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess

import numpy as np
import pytest

import gristmill as g
from gristmill.export import ExportError, from_device, to_c, to_json, to_onnx

from . import test_c, test_device, test_onnx
from .cases import relative, stream


@pytest.mark.parametrize("seed", range(6))
def test_a_map_of_one_feature(seed):
    """Some have degree 0: a constant, whatever the row."""
    X, _, _, number = stream(seed)
    map_ = g.RandomMaclaurin(g.Polynomial(3), 1, random_state=seed)
    test_onnx.agree(g.FeatureLearner(map_, g.PassiveAggressive(), task="regression").fit(X, number), X[:40])


@pytest.mark.parametrize("scale", ["minmax", "standard", "rank"])
def test_one_column_keeps_its_digits(scale):
    """A lone factor beside a matrix product: onnxruntime would compute it in single precision."""
    X = stream(1)[0][:, :1]
    three = np.digitize(X[:, 0], [-0.5, 0.7])
    map_ = g.RandomMaclaurin(g.Polynomial(2, 0.5, 1.0), 1, exact_low_order=True, random_state=60)
    test_onnx.agree(g.Prepared(g.FeatureLearner(map_, g.Perceptron()), scale).fit(X, three), X[:80])
    test_onnx.agree(g.Prepared(g.KernelClassifier(g.Linear()), scale).fit(X, three), X[:80])


@pytest.mark.parametrize("factor", [1 + 1e-9, 1 - 2e-8, 1.3, -1 / 3])
def test_a_kernel_times_a_number(factor):
    """Also where the number is 1 in single precision: onnxruntime would drop it."""
    X, *_, number = stream(2)
    model = g.KernelRegressor(abs(factor) * g.Linear(), g.PassiveAggressive(0.5), g.DropOldest(30)).fit(X, number)
    test_onnx.agree(model, X[:80])
    wide = g.KernelRegressor(g.Gaussian(0.5), g.PassiveAggressive(0.5), g.DropOldest(30))
    test_onnx.agree(g.Prepared(wide).fit(X, factor * number), X[:80])


@pytest.mark.parametrize("count", [1, 40])
def test_a_race_of_one_class(count):
    """Its scores are logarithms of probabilities near 0."""
    X, *_ = stream(3)
    model = g.Race([g.KernelClassifier(g.Gaussian(0.5)), g.KernelClassifier(g.Gaussian(2.0))])
    test_onnx.agree(model.fit(X[:count], ["only"] * count), X[:50])


@pytest.mark.parametrize("count", [1, 3, 15, 16, 40])
def test_the_first_events_of_learners_without_settings(count):
    X, two, _, number = stream(12)
    test_onnx.agree(g.AutoRegressor().fit(X[:count], 50 * number[:count] + 7), X[100:140], limit=1e-5)
    test_onnx.agree(g.AutoClassifier().fit(X[:count], two[:count]), X[100:140], limit=1e-5)
    with pytest.raises(ExportError, match="AutoRegressor"):
        to_c(g.AutoRegressor().fit(X[:count], number[:count]))


def test_two_hundred_classes(tmp_path):
    rng = np.random.default_rng(4)
    centres, labels = rng.normal(size=(200, 3)) * 4, np.array([f"{at}" for at in range(200)])
    at = rng.integers(200, size=1500)
    X = centres[at] + 0.1 * rng.normal(size=(1500, 3))
    model = g.KernelClassifier(g.Gaussian(1.0), g.Perceptron(), g.Merge(250)).partial_fit(X, labels[at], classes=labels)
    test_onnx.agree(model, X[:200])
    test_c.agree(model, X[:200], tmp_path)


@pytest.mark.parametrize("labels", [[-(2**62), 2**62], [-7, 0], ["", "\x00\n\"'\\??/*/ü\u2028"], ["nan", "None"]])
def test_labels_at_the_edge(labels, tmp_path):
    X, two, *_ = stream(5)
    y = np.array(labels, dtype=None if isinstance(labels[0], int) else object)[(two == "b").astype(int)]
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.DropOldest(20)).fit(X, y)
    said = test_onnx.run(model, X)["label"]
    assert said.tolist() == model.predict(X).tolist()
    test_c.agree(model, X[:40], tmp_path)
    assert json.loads(to_json(model))["labels"] == model.classes_.tolist()[:: 1 if model.classes_[0] == y[0] else -1]


@pytest.mark.parametrize("size", [1, 30])
def test_classes_without_any_event(size, tmp_path):
    X, two, *_ = stream(6)
    model = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.DropOldest(size))
    model.partial_fit(X[:2], two[:2], classes=["a", "b", "c"])
    test_onnx.agree(model, X[:40])
    test_c.agree(model, X[:40], tmp_path)


def test_no_stored_point(tmp_path):
    """Its targets are inside the margin of the answer 0."""
    X, *_ = stream(6)
    model = g.KernelRegressor(g.Gaussian(0.5), g.PassiveAggressive(epsilon=0.1)).fit(X, np.zeros(len(X)))
    assert model.n_support_ == 0
    test_onnx.agree(model, X[:40])
    test_c.agree(model, X[:40], tmp_path)


def test_neighbours_that_are_equally_far(tmp_path):
    X = np.round(stream(7, width=2, count=400)[0])
    near = g.KernelNovelty(g.Gaussian(0.5), g.Density(neighbours=0.05), g.DropRandom(100, uniform=True), random_state=0)
    near.fit(X[:300])
    test_onnx.agree(near, X[300:])
    test_c.agree(near, X[300:], tmp_path)
    for single in (
        test_onnx.run(near, X[300:], "float32")["score_samples"],
        test_c.answers(near, X[300:], tmp_path, "float32")[:, 0] + near._run.core.margin,
    ):
        assert relative(single, near.score_samples(X[300:])) < 1e-4


@pytest.mark.parametrize("kernel", [g.Gaussian(20.0), g.Laplacian(9.0), g.Gaussian(5.0) * g.Laplacian(3.0)])
def test_neighbours_that_are_far_in_single_precision(kernel, tmp_path):
    """Their kernel values are below the smallest number of single precision; distances are not."""
    X, *_ = stream(8, count=400)
    near = g.KernelNovelty(kernel, g.Density(neighbours=0.05), g.DropRandom(100, uniform=True), random_state=0)
    near.fit(X[:300])
    rows = np.vstack([X[300:], 3 * X[300:], 30 * X[300:]])
    test_onnx.agree(near, rows)
    test_c.agree(near, rows, tmp_path)
    expected = near.score_samples(rows)
    assert relative(test_onnx.run(near, rows, "float32")["score_samples"], expected) < 1e-4
    single = test_c.answers(near, rows, tmp_path, "float32")
    assert relative(single[:, 0], near.decision_function(rows)) < 1e-4
    assert (single[:, -1] == near.predict(rows)).mean() >= 0.99


def test_columns_without_any_value_so_far():
    X, two, *_ = stream(9)
    gaps = X.copy()
    gaps[:, 1] = np.nan
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5))).fit(gaps, two)
    graph = to_onnx(model)
    assert [each.name for each in graph.graph.input] == ["x0", "x2", "x3"]
    assert json.loads(to_json(model))["rows"]["unknown"] == ["x1"]
    test_onnx.agree(model, X[:50], {f"x{at}": X[:50, [at]] for at in (0, 2, 3)})
    rows = [{"empty": None, "size": row[0]} for row in X.tolist()]
    test_onnx.agree(g.Prepared(g.KernelClassifier()).fit(rows, two), rows[:50], {"size": X[:50, :1]})
    with pytest.raises(ExportError, match="no value of its columns 'empty'"):
        to_onnx(g.Prepared(g.KernelClassifier()).fit([{"empty": None}] * 9, two[:9]))


@pytest.mark.parametrize("scale", ["rank", "standard"])
def test_times_in_single_precision(scale):
    """The rows of weekdays are equal up to the last bit, and ranks tell them apart."""
    rng = np.random.default_rng(10)
    zero = dt.datetime(1970, 1, 1)
    rows = [{"at": dt.datetime(1990, 1, 1) + dt.timedelta(days=int(day))} for day in rng.integers(9000, size=1800)]
    labels = ["x" if row["at"].weekday() > 4 else "y" for row in rows]
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5)), scale).fit(rows[:600], labels[:600])
    feed = {"at": np.array([[(row["at"] - zero).total_seconds()] for row in rows[600:]])}
    said = test_onnx.run(model, feed, "float32")
    assert (said["label"] == model.predict(rows[600:])).mean() >= 0.999
    assert relative(said["probabilities"], model.predict_proba(rows[600:])) < 1e-4


def test_spellings_of_categories():
    words = ["True", "TRUE", "true", "False", "red", "nan", "NA", "None", "", "?"]
    rows = [{"hue": word} for word in words] * 20
    model = g.Prepared(g.KernelClassifier(), columns={"hue": "category"})
    model.fit(rows, [word.lower() in ("true", "red") for word in words] * 20)
    test_onnx.agree(model, rows[:10], {"hue": np.array([[word] for word in words], dtype=object)})


@pytest.mark.parametrize("budget", [g.Merge(1), g.DropOldest(1), g.DropSmallest(1), g.Merge(2)])
@pytest.mark.parametrize("compiler", test_c.COMPILERS)
def test_a_device_of_one_point(budget, compiler, tmp_path):
    X, labels = test_device.stream(600)
    model = g.Prepared(g.KernelClassifier(g.Gaussian(0.5), g.PassiveAggressive(), budget))
    model.partial_fit(X[:2], labels["two"][:2], classes=["a", "b"])
    device = test_device.Device(model, tmp_path, compiler=compiler)
    said, learned, state = device(X[2:500], labels["two"][2:500], X[500:])
    back = from_device(state, model)
    assert learned == 498
    model.partial_fit(X[2:500], labels["two"][2:500])
    test_device.agree(model, X[500:], said)
    test_device.same_fields(back, model)


def test_headers_beside_each_other(tmp_path):
    """Two models in one program, each under its own name."""
    X, two, _, number = stream(11)
    one = g.KernelClassifier(g.Gaussian(0.5), g.Perceptron(), g.Merge(20)).fit(X, two)
    other = g.KernelRegressor(g.Laplacian(0.5), g.PassiveAggressive(0.5), g.DropOldest(20)).fit(X, number)
    (tmp_path / "one.h").write_text(to_c(one, learn=True, name="one"))
    (tmp_path / "other.h").write_text(to_c(other, name="other", number="float32"))
    lines = ['#include "one.h"', '#include "other.h"', '#include "one.h"', "int main(void) { return 0; }", ""]
    (tmp_path / "main.c").write_text("\n".join(lines))
    for compiler in test_c.COMPILERS:
        places = [str(tmp_path / "main.c"), "-o", str(tmp_path / "main"), "-lm"]
        subprocess.run([compiler, *test_c.STRICT, *places], check=True)
