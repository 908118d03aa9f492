"""merge: one model of several that learned apart: the weighted mean, exactly, and learning that goes on from all."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gristmill
from gristmill import (
    SGD,
    Additive,
    Alma,
    Density,
    DropOldest,
    FeatureLearner,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Logistic,
    Merge,
    PassiveAggressive,
    Perceptron,
    Polynomial,
    Prepared,
    RandomMaclaurin,
    Squared,
    Unbounded,
    compress,
    merge,
    projectron_pp,
    svmd,
)
from gristmill.checks import snapshot
from gristmill.streams import StreamScaler

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 4))
TWO = X[:, 0] * X[:, 1] > 0
THREE = TWO.astype(int) + (X[:, 2] > 0.5)
PROBE = RNG.normal(size=(50, 4))


def shards(model, y, cuts=(0, 100, 250, 600)):
    return [clone(model).fit(X[a:b], None if y is None else y[a:b]) for a, b in itertools.pairwise(cuts)]


ALL = {
    "classes": (KernelClassifier(Gaussian(0.5), PassiveAggressive(), Unbounded(), random_state=0), TWO),
    "many classes": (KernelClassifier(Gaussian(0.5), PassiveAggressive(), Unbounded(), random_state=0), THREE),
    "a mean": (KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded(), average=True, random_state=0), THREE),
    "numbers": (KernelRegressor(Gaussian(0.5), PassiveAggressive(), Unbounded(), random_state=0), X[:, 0]),
    "targets": (KernelRegressor(Gaussian(0.5), PassiveAggressive(), Unbounded(), random_state=0), X[:, :3]),
    "steps of targets": (KernelRegressor(Gaussian(0.5), SGD(Squared(), 0.3), Unbounded(), random_state=0), X[:, 1:3]),
    "an intercept": (
        KernelClassifier(Gaussian(0.5), SGD(Logistic(), 0.5, 0.01, intercept=True), Unbounded(), random_state=0), TWO,
    ),
    "balanced": (KernelClassifier(Gaussian(0.5), budget=Unbounded(), class_weight="balanced", random_state=0), THREE),
    "a span": (projectron_pp(Gaussian(0.5), 0.2, random_state=0), THREE),
    "a mean in a span": (projectron_pp(Gaussian(0.5), 0.2, average=True, random_state=0), THREE),
    "novelty": (KernelNovelty(Gaussian(0.5), SGD(Hinge(0.0, nu=0.3), 0.1, 0.01), Unbounded(), random_state=0), None),
    "density": (KernelNovelty(Gaussian(0.5), Density(nu=0.1), Unbounded(), random_state=0), None),
    "trees": (KernelClassifier(Additive(Laplacian(1.0)), budget=Unbounded(), random_state=0), THREE),
    "trees of two": (KernelClassifier(Additive(Laplacian(1.0)), SGD(Hinge(), 0.1, 0.01), Unbounded(), random_state=0), TWO),
    "features": (FeatureLearner(RandomMaclaurin(Polynomial(2), 40, random_state=0), random_state=0), THREE),
    "a mean of features": (
        FeatureLearner(RandomMaclaurin(Polynomial(2), 40, random_state=0), average=True, random_state=0), TWO,
    ),
}  # fmt: skip


@pytest.mark.parametrize("weights", ["n_seen", [1, 1, 2]])
@pytest.mark.parametrize("name", ALL)
def test_the_result_says_the_weighted_mean(name, weights):
    models = shards(*ALL[name])
    before = [snapshot(model) for model in models]
    merged = merge(models, weights=weights)
    assert [snapshot(model) for model in models] == before
    shares = np.array([100, 150, 350] if weights == "n_seen" else weights, dtype=float)
    verb = "score_samples" if name == "density" else "decision_function"  # its offset is a quantile, not a mean
    said = np.array([getattr(model, verb)(PROBE) for model in models])
    mean = np.tensordot(shares / shares.sum(), said, axes=1)
    np.testing.assert_allclose(getattr(merged, verb)(PROBE), mean, atol=1e-6 if "span" in name else 1e-9)
    assert merged.n_seen_ == 600


@pytest.mark.parametrize("name", ALL)
def test_learning_goes_on_and_files_keep_it(name, tmp_path):
    model, y = ALL[name]
    merged = merge(shards(model, y))
    merged.save(tmp_path / "model")
    loaded, pickled = gristmill.load(tmp_path / "model"), pickle.loads(pickle.dumps(merged))
    one = pickle.loads(pickle.dumps(merged))
    for step in range(0, 90, 30):
        part = slice(step, step + 30)
        for each in (merged, loaded, pickled):
            each.partial_fit(X[part], None if y is None else y[part])
        for i in range(step, step + 30):
            one.partial_fit(X[i : i + 1], None if y is None else y[i : i + 1])
    assert merged.to_bytes() == loaded.to_bytes() == pickled.to_bytes() == one.to_bytes()
    assert merged.n_seen_ == 690


def test_equal_points_are_one_and_ages_run_on():
    model = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded())
    a, b = clone(model).fit(X[:200], TWO[:200]), clone(model).fit(X[100:300], TWO[100:300])
    merged = merge([a, b])
    rows = {row.tobytes() for part in (a, b) for row in part.support_vectors_}
    assert merged.n_support_ == len(rows) < a.n_support_ + b.n_support_
    ids = merged.support_ids_
    assert (np.diff(ids) > 0).all()
    assert 0 <= ids[0] <= ids[-1] < 400
    twice = merge([a, a])
    np.testing.assert_allclose(twice.dual_coef_, a.dual_coef_)
    assert twice.n_support_ == a.n_support_


def test_class_lists_are_united():
    kinds = np.array(["calm", "rain", "storm", "snow"])
    first = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded()).fit(X[:200], kinds[TWO[:200].astype(int)])
    second = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded()).fit(X[200:], kinds[THREE[200:] + 1])
    merged = merge([first, second], weights=[1, 1])
    assert merged.classes_.tolist() == ["calm", "rain", "snow", "storm"]
    said = merged.decision_function(PROBE)
    binary, many = first.decision_function(PROBE), second.decision_function(PROBE)  # sorted: rain, snow, storm
    np.testing.assert_allclose(said[:, 0], -binary / 4, atol=1e-12)
    np.testing.assert_allclose(said[:, 1], binary / 4 + many[:, 0] / 2, atol=1e-12)
    np.testing.assert_allclose(said[:, 2:], many[:, 1:] / 2, atol=1e-12)
    assert merged.predict_proba(PROBE).shape == (50, 4)
    merged.partial_fit(X[:5], ["hail"] * 5)
    assert len(merged.classes_) == 5


def test_the_order_in_which_two_classes_came_does_not_matter():
    model = KernelClassifier(Gaussian(0.5), SGD(Logistic(), 0.5, 0.01, intercept=True), Unbounded())
    y = np.where(TWO, "yes", "no")
    other = np.argsort(~TWO[:300] if TWO[0] else TWO[:300], kind="stable")
    a, b = clone(model).fit(X[:300], y[:300]), clone(model).fit(X[:300][other][::-1], y[:300][other][::-1])
    assert a._run.labels.names == b._run.labels.names[::-1]
    lone = clone(model).fit(X[:1], y[1:2] if y[1] != a._run.labels.names[0] else y[:1])
    merged = merge([a, b, lone], weights=[1, 1, 2])
    mean = (a.decision_function(PROBE) + b.decision_function(PROBE)) / 4
    sign = 1.0 if lone.classes_[0] == "no" else -1.0
    np.testing.assert_allclose(
        merged.decision_function(PROBE), mean + sign * lone.decision_function(PROBE) / 2, atol=1e-12
    )
    np.testing.assert_allclose(merged.predict_proba(PROBE).sum(axis=1), 1)
    assert ((merged.predict_proba(PROBE)[:, 1] > 0.5) == (merged.decision_function(PROBE) > 0)).mean() > 0.8


def test_compressed_to_the_size_of_the_budget_or_to_the_given_one():
    models = shards(KernelClassifier(Gaussian(0.5), budget=Merge(60), random_state=0), TWO)
    assert merge(models).n_support_ == 60
    small = merge(models, size=25)
    assert (small.n_support_, small.budget) == (25, Merge(25))
    wide = merge(
        [clone(model).set_params(budget=Unbounded()).fit(X[i::2], TWO[i::2]) for i, model in enumerate(models[:2])]
    )
    by_hand, _ = compress(wide, 25)
    again = merge(
        [clone(m).set_params(budget=Unbounded()).fit(X[i::2], TWO[i::2]) for i, m in enumerate(models[:2])], 25
    )
    np.testing.assert_allclose(again.decision_function(PROBE), by_hand.decision_function(PROBE), atol=1e-9)
    assert again.partial_fit(X, TWO).n_support_ == 25


def test_trees_drop_their_smallest_terms():
    model = KernelClassifier(Additive(Laplacian(1.0)), random_state=0)
    models = shards(model, TWO)
    whole = merge(
        [clone(model).set_params(budget=Unbounded()).fit(X[a:b], TWO[a:b]) for a, b in ((0, 300), (300, 600))]
    )
    few = merge(
        [clone(model).set_params(budget=Unbounded()).fit(X[a:b], TWO[a:b]) for a, b in ((0, 300), (300, 600))], 50
    )
    order = np.sort(np.argsort(-np.abs(whole.dual_coef_[:, 0]), kind="stable")[:50])
    np.testing.assert_allclose(few.dual_coef_, whole.dual_coef_[order])
    assert merge(models).n_seen_ == 600


@pytest.mark.parametrize("method", ["standard", "minmax"])
@pytest.mark.parametrize("warmup", [None, 50, 10_000])
def test_scalers_add_up(method, warmup):
    rows = X * [1, 10, 1000, 1e-3] + [0, 5, 1e6, -7]
    probe = rows[::12]  # none of them so far out that it is drawn in
    parts = [StreamScaler(method, warmup).fit(rows[a:b]) for a, b in ((0, 100), (100, 130), (130, 600))]
    merged = merge(parts)
    known = [rows[a : min(b, b if warmup is None else a + warmup)] for a, b in ((0, 100), (100, 130), (130, 600))]
    known = np.vstack(known)
    if method == "minmax":
        low, high = known.min(axis=0), known.max(axis=0)
        expected = (probe - low) / (high - low)
    else:
        expected = (probe - known.mean(axis=0)) / known.std(axis=0)
    np.testing.assert_allclose(merged.transform(probe), expected, rtol=1e-7, atol=1e-7)
    assert merged.n_seen_ == 600
    if warmup is None:
        whole = StreamScaler(method).fit(rows)
        np.testing.assert_allclose(merged.learn_transform(probe), whole.learn_transform(probe), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", ["standard", "minmax", "relevance", None])
@pytest.mark.parametrize(
    "model", [KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded()), projectron_pp(Gaussian(0.5), 0.2)]
)
def test_points_go_back_by_their_own_scaling_and_forward_by_the_merged_one(scale, model):
    if scale == "relevance" and "Project" in repr(model):
        model = KernelClassifier(Gaussian(0.5))
    rows = X * [1, 10, 100, 1] + [0, 0, 50, 3]
    models = [
        Prepared(clone(model), scale=scale).fit(np.vstack([rows[a:b]] * 4), np.hstack([TWO[a:b]] * 4))
        for a, b in ((0, 200), (200, 600))
    ]
    merged = merge(models)
    assert (merged.n_seen_, type(merged)) == (2400, Prepared)

    def raw(one):
        centre, slope = (0, 1) if one.scaler_ is None else one.scaler_.affine_map()
        return one.model_.support_vectors_ / slope + centre

    found = {tuple(row) for row in raw(merged).round(6)}
    stored = {tuple(row) for one in models for row in raw(one).round(6)}
    assert found <= stored if merged.n_support_ < len(stored) else found == stored
    if scale is not None:
        assert merged.scaler_.n_seen_ == 2400
    if scale == "relevance":
        shares = np.array([1, 2]) / 3
        np.testing.assert_allclose(merged.scaler_.weights, shares @ [one.scaler_.weights for one in models])
    right = [(one.predict(rows) == TWO).mean() for one in (merged, *models)]
    assert right[0] > min(right[1:]) - 0.05
    assert merged.partial_fit(rows, TWO).n_seen_ == 3000


def test_weights_follow_no_other_scaling():
    map_ = RandomMaclaurin(Polynomial(2), 40, random_state=0)
    models = [Prepared(FeatureLearner(map_)).fit(X[i::2], TWO[i::2]) for i in range(2)]
    with pytest.raises(TypeError, match="belong to scaled columns"):
        merge(models)
    plain = [Prepared(FeatureLearner(map_), scale=None).fit(X[i::2], TWO[i::2]) for i in range(2)]
    assert merge(plain).n_seen_ == 600


def test_adaptive_numbers_and_counters():
    models = shards(svmd(Gaussian(0.5), 0.1, 0.01, 0.1, 0.9, size=90), TWO)
    merged = merge(models)
    rates = [model.rate_ for model in models]
    np.testing.assert_allclose(merged.rate_, np.dot(rates, [100, 150, 350]) / 600)
    points, coef = merged.support_vectors_, merged.dual_coef_
    np.testing.assert_allclose(merged.norm_**2, coef[:, 0] @ Gaussian(0.5)(points, points) @ coef[:, 0], rtol=1e-9)
    almas = shards(KernelClassifier(Gaussian(0.5), Alma(0.9), Unbounded()), TWO)
    count = [float(model._engine.state()["rule.corrections"][0]) for model in almas]
    assert merge(almas)._engine.state()["rule.corrections"][0] == sum(count)
    assert merge(almas)._engine.state()["steps"][0] == 600


def test_sparse_points_singles_and_objects():
    rng = np.random.default_rng(0)
    rows = csr_array(rng.random((120, 3000)) * (rng.random((120, 3000)) < 0.01))
    y = np.arange(120) % 2
    model = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded())
    models = [clone(model).fit(rows[a:b], y[a:b]) for a, b in ((0, 70), (50, 120))]
    mean = (models[0].decision_function(rows) + models[1].decision_function(rows)) / 2
    np.testing.assert_allclose(merge(models).decision_function(rows), mean, atol=1e-12)
    singles = [KernelClassifier(Gaussian(0.5)).fit(X[i::2].astype(np.float32), TWO[i::2]) for i in range(2)]
    assert merge(singles).support_vectors_.dtype == np.float32
    words = ["ab", "abc", "bc", "bcd", "cd", "cde", "de", "def"]

    def overlap(a, b):
        return len(set(a) & set(b)) + float(a == b)

    ours = [KernelClassifier(overlap, Perceptron(), Unbounded()).fit(words[i:], ([0, 1] * 4)[i:]) for i in (0, 2)]
    assert len(set(merge(ours).support_vectors_)) == merge(ours).n_support_


SIGMOID = gristmill.Sigmoid(0.1, 0.0)
OTHER = KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded())


@pytest.mark.parametrize(
    ("a", "b", "kind", "words"),
    [
        (OTHER, KernelClassifier(Gaussian(0.4), Perceptron(), Unbounded()), ValueError, "kernel is .*0.5.*0.4"),
        (OTHER, KernelClassifier(Gaussian(0.5), PassiveAggressive(), Unbounded()), ValueError, "rule is Perceptron"),
        (OTHER, KernelClassifier(Gaussian(0.5), Perceptron(), DropOldest(50)), ValueError, "budget"),
        (OTHER, KernelClassifier(Gaussian(0.5), Perceptron(), Unbounded(), average=True), ValueError, "average is"),
        (OTHER, KernelRegressor(Gaussian(0.5)), TypeError, "one kind, got KernelClassifier and KernelRegressor"),
        (gristmill.PairwiseAUC(), gristmill.PairwiseAUC(), TypeError, "PairwiseAUC cannot be merged"),
        (gristmill.forgetron(Gaussian(1.0), 20), gristmill.forgetron(Gaussian(1.0), 20), ValueError, "Forget"),
        (KernelClassifier(SIGMOID), KernelClassifier(SIGMOID), ValueError, "definite"),
        (
            FeatureLearner(RandomMaclaurin(Polynomial(2), 40, random_state=0)),
            FeatureLearner(RandomMaclaurin(Polynomial(2), 40, random_state=1)), ValueError, "different maps",
        ),
        (Prepared(OTHER), Prepared(OTHER, "minmax"), ValueError, "scaled in different ways"),
        (KernelClassifier(Gaussian(0.5), lambda trial: None), KernelClassifier(Gaussian(0.5)), TypeError, "of their own"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_refused_by_name(a, b, kind, words):
    models = [clone(one).fit(X[:100], X[:100, 0] if "Regress" in repr(one) else TWO[:100]) for one in (a, b)]
    with pytest.raises(kind, match=words):
        merge(models)


def test_bad_lists_and_weights():
    models = shards(OTHER, TWO)
    with pytest.raises(ValueError, match="no model"):
        merge([])
    with pytest.raises(TypeError, match="list or tuple"):
        merge(models[0])
    with pytest.raises(NotFittedError, match="not fitted"):
        merge([models[0], clone(OTHER)])
    with pytest.raises(ValueError, match="different columns: 4 and 3"):
        merge([models[0], clone(OTHER).fit(X[:, :3], TWO)])
    for weights in ([1, 2], [1, -1, 1], [0, 0, 0], [1, np.nan, 1], "all"):
        with pytest.raises(ValueError, match="weights must be"):
            merge(models, weights=weights)
    features = [FeatureLearner(RandomMaclaurin(Polynomial(2), 9, random_state=0)).fit(X, TWO)] * 2
    with pytest.raises(TypeError, match="stores no points"):
        merge(features, size=5)
    assert merge(models[:1]).n_support_ == models[0].n_support_


def test_targets_must_be_as_many_and_are_compressed_together():
    two, three = (KernelRegressor(Gaussian(0.5), random_state=0).fit(X, X[:, :n]) for n in (2, 3))
    with pytest.raises(ValueError, match="models 0 and 1 predict 2 and 3 targets"):
        merge([two, three])
    with pytest.raises(ValueError, match="models 0 and 1 predict 2 and 1 targets"):
        merge([two, KernelRegressor(Gaussian(0.5)).fit(X, X[:, 0])])
    small, error = compress(three, 60)
    assert small.n_support_ == 60
    assert small.predict(PROBE).shape == (50, 3)
    assert error < 0.7


def test_stored_labels_are_those_of_the_classes_of_all():
    names = np.where(TWO, "yes", "no")
    order = np.argsort(names[:200], kind="stable")  # "no" comes first
    a = KernelClassifier(Gaussian(0.5), budget=Unbounded()).fit(X[:200][order], names[:200][order])
    b = KernelClassifier(Gaussian(0.5), budget=Unbounded()).fit(X[200:400][::-1], names[200:400][::-1])
    both = merge([b, a])
    state = both._engine.state()
    by_row = {row.tobytes(): name for row, name in zip(X, names, strict=True)}
    told = [both._run.labels.names[int(code)] for code in state["labels"]]
    assert told == [by_row[row.tobytes()] for row in state["points"]]


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "lots"])
def test_a_size_that_is_none_is_refused(size):
    model = KernelClassifier(Gaussian(0.5)).fit(X, TWO)
    with pytest.raises((ValueError, TypeError), match="merge: size must be a whole number"):
        merge([model, model], size)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            [{"a": 1.0, "hue": "blue"}, {"a": 2.0, "hue": "red"}],
            "the value 'red' of 'hue' and the value 'blue' of 'hue'",
        ),
        ([{"hue": "red", "a": 1.0}, {"hue": "blue", "a": 2.0}], "the column 'a' and the column 'hue'"),
        ([{"a": 1.0, "hue": "red"}, {"a": 2.0, "hue": "red"}], "the value 'blue' of 'hue' and nothing more"),
    ],
)
def test_tables_that_differ_are_named(rows, text):
    def learned(events):
        return gristmill.Prepared(gristmill.passive_aggressive(Gaussian(0.5), size=5)).partial_fit(events, ["u", "v"])

    first = learned([{"a": 1.0, "hue": "red"}, {"a": 2.0, "hue": "blue"}])
    with pytest.raises(ValueError, match=f"they met {text}; columns and categories must"):
        gristmill.merge([first, learned(rows)])
