"""ONNX graphs in onnxruntime answer as the library does, for random models of every composition."""

from __future__ import annotations

import datetime as dt
import json
import threading

import numpy as np
import onnx
import onnxruntime
import pytest

import gristmill as g
from gristmill import river
from gristmill.export import ExportError, to_c, to_json, to_onnx
from gristmill.race import expert_sets

from .cases import SPECIAL, random_model, relative, stream

EXACT = 1e-12


def run(model, rows, number="float64"):
    graph = to_onnx(model, number)
    onnx.checker.check_model(graph, full_check=True)
    onnx.shape_inference.infer_shapes(graph, check_type=True, strict_mode=True, data_prop=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = rows if isinstance(rows, dict) else {"X": np.asarray(rows, dtype=number)}
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True))


def agree(model, rows, feed=None, limit=EXACT):
    said = run(model, rows if feed is None else feed)
    if "prediction" in said:
        assert relative(said["prediction"], model.predict(rows)) <= limit
        levels = (0.5, 0.8, 0.9, 0.95, 0.99)
        expected = np.stack([model.predict_interval(rows, level) for level in levels], axis=-2)
        assert relative(said["intervals"], expected) <= limit
        return
    assert relative(said["scores"], model.decision_function(rows)) <= limit
    assert (said["label"] == model.predict(rows)).mean() >= 0.999
    if "probabilities" in said:
        assert relative(said["probabilities"], model.predict_proba(rows)) <= limit
    else:
        assert relative(said["score_samples"], model.score_samples(rows)) <= limit


@pytest.mark.parametrize("seed", range(36))
def test_kernel_learners(seed):
    agree(*random_model(seed))


@pytest.mark.parametrize(("rule", "budget"), SPECIAL)
def test_rules_and_budgets_that_go_together(rule, budget):
    X, two, _, _ = stream(4)
    agree(g.KernelClassifier(g.Gaussian(0.5), rule, budget, random_state=0).fit(X, two), X[:80] * 1.5)


@pytest.mark.parametrize("seed", range(0, 36, 3))
def test_labels_in_single_precision(seed):
    model, rows = random_model(seed)
    said = run(model, rows, "float32")
    if "label" in said:
        assert (said["label"] == model.predict(rows)).mean() >= 0.999
    else:
        assert relative(said["prediction"], model.predict(rows)) < 1e-4


@pytest.mark.parametrize("kernel", [g.Gaussian(0.5), g.Laplacian(0.4)])
def test_an_offset_does_not_cost_the_digits_of_single_precision(kernel):
    X, two, _, _ = stream(0, count=3000)
    model = g.KernelClassifier(kernel).fit(X[:1000] + 1000.0, two[:1000])
    rows = (X[1000:] + 1000.0).astype(np.float32)
    assert (run(model, rows, "float32")["label"] == model.predict(rows.astype(float))).mean() >= 0.999


def test_many_points_and_columns():
    X, _, three, _ = stream(1, width=30, count=700)
    agree(g.KernelClassifier(g.Laplacian(0.05), budget=g.DropOldest(300)).fit(X, three), X[:50])


def test_several_targets_average_and_one_class():
    X, two, _, number = stream(2)
    agree(g.KernelRegressor(g.Gaussian(0.5)).fit(X, np.c_[number, X[:, 0]]), X[:50])
    agree(g.KernelClassifier(g.Gaussian(0.5), average=True).fit(X, two), X[:50])
    lone = g.KernelClassifier(g.Gaussian(0.5)).fit(X[:9], ["only"] * 9)
    assert (run(lone, X[:5])["label"] == "only").all()


@pytest.mark.parametrize("labels", [[False, True], [2.0, 5.0], [9, 4]])
def test_labels_keep_their_type(labels):
    X, two, _, _ = stream(3)
    model = g.KernelClassifier(g.Gaussian(0.5)).fit(X, np.where(two == "a", *labels))
    assert (run(model, X)["label"] == model.predict(X)).all()


def test_density_with_and_without_neighbours():
    X, *_ = stream(4, count=600)
    agree(g.KernelNovelty(g.Gaussian(0.5)).fit(X), X[:100] * 2)
    near = g.KernelNovelty(g.Gaussian(0.5), g.Density(neighbours=0.05), g.DropRandom(200, uniform=True), random_state=0)
    agree(near.fit(X), X[:100] * 2)


@pytest.mark.parametrize("base", [g.Spline(0), g.Spline(1), g.Spline(3), g.Laplacian(2.0)])
def test_additive_kernels(base):
    X, _, _, number = stream(5)
    agree(g.KernelRegressor(g.Additive(base, products=[(0, 1)])).fit(np.abs(X), number), np.abs(X[:80]))


def test_additive_kernels_that_skip_gaps():
    X, _, _, number = stream(6)
    X = np.abs(X)
    X[::5, 1] = np.nan
    agree(g.KernelRegressor(g.Additive(g.Laplacian(1.0), missing="skip")).fit(X, number), X[:80])


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("signs", ["real", "complex"])
def test_feature_learners(structured, signs):
    X, _, three, number = stream(7)
    map_ = g.RandomMaclaurin(
        g.Polynomial(3), 60, structured=structured, signs=signs, exact_low_order=structured, random_state=0
    )
    agree(g.FeatureLearner(map_, g.PassiveAggressive()).fit(X, three), X[:80])
    agree(g.FeatureLearner(map_, g.PassiveAggressive(), task="regression").fit(X, number), X[:80])


def test_fourier_features():
    from sklearn.kernel_approximation import RBFSampler

    X, two, _, _ = stream(8)
    agree(g.FeatureLearner(RBFSampler(gamma=0.5, n_components=50, random_state=0), g.Perceptron()).fit(X, two), X[:80])


def table(count, seed=0):
    rng, rows, labels = np.random.default_rng(seed), [], []
    for at in range(count):
        size, hue = rng.normal() * 10 + 100, str(rng.choice(["red", "green", "blue"]))
        rows.append(
            {
                "size": None if rng.random() < 0.1 else size,
                "label": None if rng.random() < 0.05 else hue,
                "on": bool(rng.random() < 0.3),
                "when": dt.datetime(2024, 3, 1) + dt.timedelta(minutes=37 * at),
            }
        )
        labels.append("x" if (size > 100) != (hue == "red") else "y")
    return rows, labels


def fed(rows):
    zero = dt.datetime(1970, 1, 1)
    return {
        "size": np.array([[np.nan if row["size"] is None else row["size"]] for row in rows]),
        "column label": np.array([["" if row["label"] is None else row["label"]] for row in rows], dtype=object),
        "on": np.array([[float(row["on"])] for row in rows]),
        "when": np.array([[(row["when"] - zero).total_seconds()] for row in rows]),
    }


@pytest.mark.parametrize("scale", ["standard", "minmax", "rank", "relevance", None])
def test_tables(scale):
    rows, labels = table(700)
    model = g.Prepared(g.KernelClassifier(), scale).fit(rows[:600], labels[:600])
    agree(model, rows[600:], fed(rows[600:]))
    novelty_score = [{**row, "label": "violet"} for row in rows[600:]]
    agree(model, novelty_score, fed(novelty_score))


@pytest.mark.parametrize("scale", ["standard", "minmax", "rank", "relevance", None])
def test_prepared_numbers(scale):
    X, _, three, number = stream(9, count=700)
    far = X * [1.0, 1000.0, 0.01, 5.0] + 3.0
    agree(g.Prepared(g.KernelClassifier(), scale).fit(far, three), far[:80] * 3)
    agree(g.Prepared(g.KernelRegressor(), scale).fit(far, 100 * number), far[:80])
    gaps = far[:80].copy()
    gaps[::3, 1] = np.nan
    agree(g.Prepared(g.KernelClassifier(), scale).fit(far, three), gaps)


def test_races_in_double():
    X, two, three, number = stream(10)
    for labels in (two, three):
        experts = [g.Prepared(g.KernelClassifier(g.Gaussian(gamma))) for gamma in (0.1, 1.0)]
        agree(g.Race([*experts, g.KernelClassifier()]).fit(X, labels), X[:80])
    agree(g.Race([g.Prepared(g.KernelRegressor(g.Gaussian(w)), "minmax") for w in (0.1, 1.0)]).fit(X, number), X[:80])


def test_the_mixtures_of_learners_without_settings_in_double():
    X, two, three, number = stream(10, count=1300)
    for labels in (two, three):
        agree(g.Race(expert_sets.for_classes(4)).fit(X[:1200], labels[:1200]), X[1200:])
    agree(g.Race(expert_sets.for_numbers(4)).fit(X[:1200], 50 * number[:1200] + 7), X[1200:])


def test_learners_without_settings():
    """Their experts keep rows and kernels in single precision, and so their answers."""
    X, two, three, number = stream(11, count=900)
    for labels in (two, three):
        agree(g.AutoClassifier().fit(X[:700], labels[:700]), X[700:], limit=1e-5)
    agree(g.AutoRegressor().fit(X[:700], 50 * number[:700] + 7), X[700:], limit=1e-5)
    agree(g.AutoRegressor(quantile=0.9).fit(X[:700], 50 * number[:700] + 7), X[700:], limit=1e-5)
    for scale in ("rank", "rank-relevance"):
        alone = g.Prepared(g.KernelClassifier(g.Gaussian(0.3)), scale).fit(np.exp(X[:700]), labels[:700])
        agree(alone, np.vstack([np.exp(X[700:]), 1e6 * X[700:]]))
    rule, sample = g.Density(neighbours=0.05), g.DropRandom(200, uniform=True)
    own = [g.Prepared(g.KernelNovelty(g.Gaussian(w), rule, sample, random_state=0)) for w in (0.5, 100.0)]
    agree(g.AutoNovelty(0.05, experts=own).fit(X[:700]), X[700:] * 2, limit=1e-4)
    rows, labels = table(700)
    agree(g.Prepared(g.AutoClassifier(), None).fit(rows[:600], labels[:600]), rows[600:], fed(rows[600:]), limit=1e-5)


def test_anomaly_detectors_in_double():
    X, _, _, _ = stream(13, count=900)
    constant = np.hstack([X, np.full((900, 1), 3.0), np.arange(900)[:, None] // 850])
    for rows in (X, constant):
        far = np.vstack([rows[700:], 20 * rows[700:], rows[700:] * 1e12, rows[700:] + 1e-3])
        agree(g.AutoNovelty(0.05).fit(rows[:700]), far, limit=1e-11)
    wide = np.random.default_rng(0).normal(size=(400, 90))
    model = g.AutoNovelty(0.05, "90 kB").fit(wide[:300])
    assert model._engine.plan["as_bytes"]
    agree(model, np.vstack([wide[300:], 30 * wide[300:]]), limit=1e-11)
    agree(g.Prepared(g.AutoNovelty(0.05)).fit(X[:700]), X[700:], limit=1e-11)
    with pytest.raises(ExportError, match="scores no event before the first 50"):
        to_onnx(g.AutoNovelty().fit(X[:20]))


def test_the_file_says_what_it_is():
    X, two, _, _ = stream(12)
    model = g.KernelClassifier(g.Gaussian(0.5)).fit(X, two)
    graph = to_onnx(model)
    said = {prop.key: prop.value for prop in graph.metadata_props}
    assert json.loads(said["gristmill.classes"]) == ["a", "b"]
    assert json.loads(said["gristmill.columns"]) == ["x0", "x1", "x2", "x3"]
    assert said["gristmill.version"] == g.__version__
    row = np.array([list(json.loads(said["gristmill.check_row"]).values())])
    expected = json.loads(said["gristmill.check_answers"])
    assert relative(run(model, row)["scores"], [expected["decision_function"]]) <= EXACT


def test_what_cannot_be_exported_is_refused_by_name():
    X, two, _, _ = stream(13)

    def own(a, b):
        return float(np.dot(a, b))

    refused = [
        (g.KernelClassifier(), "nothing yet"),
        (g.KernelClassifier(own).fit(X, two), "own"),
        (g.PairwiseAUC().fit(X, two == "a"), "PairwiseAUC"),
        (g.Fleet(g.KernelClassifier(g.Gaussian(1.0), budget=g.DropOldest(5)), 3), "Fleet.*fleet\\[i\\]"),
        (g.StructuredLearner(g.structured.Sequences(g.Gaussian(1.0))), "StructuredLearner.*search"),
        (g.Landmarks().fit(X), "Landmarks.*similarity"),
        (g.unsupervised.KernelKMeans().fit(X), "KernelKMeans.*clusters"),
        (g.RandomMaclaurin().fit(X), "RandomMaclaurin.*FeatureLearner"),
        (g.streams.StreamScaler().fit(X), "StreamScaler.*Prepared"),
        (river.Classifier(g.KernelClassifier(g.Gaussian(1.0))), "Classifier.*River"),
        (g.video.BackgroundSubtractor(), "BackgroundSubtractor.*pixel"),
        (
            g.Prepared(g.KernelClassifier(), columns={"words": "text"}).fit(
                [{"words": "a b"}, {"words": "c"}], ["u", "v"]
            ),
            "words",
        ),
    ]
    for model, name in refused:
        with pytest.raises(ExportError, match=name):
            to_onnx(model)
    fleet = g.Fleet(g.KernelClassifier(g.Gaussian(1.0), budget=g.DropOldest(5)), 3)
    frames = np.random.default_rng(0).normal(size=(50, 3, 2))
    fleet.partial_fit(frames, frames[..., 0] > 0)
    agree(fleet[1], frames[:, 1])
    with pytest.raises(ExportError, match="float16"):
        to_onnx(g.KernelClassifier(g.Gaussian(0.5)).fit(X, two), "float16")


def test_columns_of_any_name():
    X, two, _, _ = stream(14)
    names = ["", "X", "label", "column label", "gm.v0"]
    rows = [dict(zip(names, [*row, "u" if row[0] > 0 else "v"], strict=True)) for row in X[:, :4].tolist()]
    model = g.Prepared(g.KernelClassifier()).fit(rows, two)
    inputs = json.loads({prop.key: prop.value for prop in to_onnx(model).metadata_props}["gristmill.inputs"])
    assert len(set(inputs)) == 5
    feed = {name: np.array([[row[column]] for row in rows], dtype=object if column == "gm.v0" else float)
            for name, column in zip(inputs, names, strict=True)}  # fmt: skip
    agree(model, rows, feed)


def test_numbers_that_single_precision_cannot_hold_are_refused():
    X, two, _, _ = stream(15)
    wide = g.KernelClassifier(g.Linear(), g.Perceptron(), g.DropOldest(5)).fit(X * 1e100, two)
    agree(wide, X[:9] * 1e100)
    narrow = g.Prepared(g.KernelClassifier(g.Gaussian(0.5))).fit(X * 1e-60, two)
    agree(narrow, X[:9] * 1e-60)
    for model, why in ((wide, "large"), (narrow, "small")):
        with pytest.raises(ExportError, match=why):
            to_onnx(model, "float32")
        with pytest.raises(ExportError, match=why):
            to_c(model, number="float32")


@pytest.mark.parametrize("scale", ["standard", "minmax", "rank", "relevance"])
def test_tables_and_mixtures_in_single_precision(scale):
    rows, labels = table(1700)
    model = g.Prepared(g.KernelClassifier(), scale).fit(rows[:600], labels[:600])
    feed = {name: one if name == "when" or one.dtype == object else one.astype(np.float32)
            for name, one in fed(rows[600:]).items()}  # fmt: skip
    assert (run(model, feed, "float32")["label"] == model.predict(rows[600:])).mean() >= 0.999
    X, two, three, _ = stream(16, count=2500)
    for y in (two, three):
        model = g.AutoClassifier().fit(X[:1000], y[:1000])
        assert (run(model, X[1000:], "float32")["label"] == model.predict(X[1000:])).mean() >= 0.999


def test_an_export_is_of_one_moment():
    """While another thread learns, points, coefficients and the check of a file belong together."""
    X, _, _, number = stream(17, count=3000)
    model = g.KernelRegressor(g.Gaussian(0.5), g.PassiveAggressive(0.5), g.DropOldest(40)).fit(X[:100], number[:100])
    stop = threading.Event()

    def learn():
        at = 0
        while not stop.is_set():
            model.partial_fit(X[at : at + 7], number[at : at + 7])
            at = (at + 7) % 2900

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(60):
            found = json.loads(to_json(model))
            (expert,) = found["experts"]
            points, coefs = np.array(expert["body"]["points"]), np.array(expert["body"]["coefs"])
            row = np.array(list(found["check_inputs"].values()))
            value = np.exp(-0.5 * ((points - row) ** 2).sum(axis=1)) @ coefs[:, 0] + expert["intercept"][0]
            assert abs(value - found["check"]["predict"]) < 1e-12
    finally:
        stop.set()
        thread.join()
