"""Prepared regressors: targets in any units, scaled on the way, and everything that is said in the units they came in."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from sklearn.metrics import r2_score

import gristmill
from gristmill import (
    SGD,
    Additive,
    AutoRegressor,
    DropOldest,
    EpsilonInsensitive,
    Gaussian,
    Huber,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Prepared,
    Project,
    Race,
    RandomMaclaurin,
    Spline,
    Squared,
    Unbounded,
    Vovk,
    compress,
    merge,
)
from gristmill.features import FeatureRegressor

SCALES = ("standard", "minmax", "relevance", None)
MODELS = {
    "default": KernelRegressor(),
    "newest": KernelRegressor(Gaussian(0.5), PassiveAggressive(), DropOldest(60)),
    "averaged": KernelRegressor(Laplacian(0.3), PassiveAggressive(), Unbounded(), average=True),
    "projected": KernelRegressor(Gaussian(0.5), SGD(Squared(), rate=0.3, reg=0.01), Project(0.1)),
    "projected, averaged": KernelRegressor(Gaussian(0.5), SGD(Squared(), rate=0.3), Project(0.1), average=True),
    "additive": KernelRegressor(Additive(Spline()), SGD(Squared(), rate=0.05), budget=None),
    "features": FeatureRegressor(RandomMaclaurin(Vovk(3), 200, random_state=0), SGD(Squared(), rate=0.1)),
    "features, averaged": FeatureRegressor(
        RandomMaclaurin(Vovk(3), 200, random_state=0), SGD(Squared(), rate=0.1), average=True
    ),
    "tube": KernelRegressor(Gaussian(0.5), SGD(EpsilonInsensitive(0.1, nu=0.3), rate=0.2), Merge(80)),
    "huber": KernelRegressor(Gaussian(0.5), SGD(Huber(0.5), rate=0.3, intercept=True), Merge(80)),
}
CUTS = (1, 2, 3, 4, 7, 8, 9, 33, 100, 101, 350, 500, 640, 700)


def events(count=700, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)) * [1.0, 20.0, 0.01]
    return X, np.sin(2 * X[:, 0]) + 0.03 * X[:, 1] + 0.05 * rng.normal(size=count)


def scale_for(name):
    return "minmax" if name.startswith(("additive", "features")) else "standard"


@pytest.mark.parametrize("name", MODELS)
def test_units_of_the_target_do_not_matter(name):
    X, y = events()
    said = Prepared(MODELS[name], scale_for(name)).prequential(X, y)
    # Powers of two change no bit for any targets.
    np.testing.assert_array_equal(said, 2.0**-9 * Prepared(MODELS[name], scale_for(name)).prequential(X, 2.0**9 * y))
    far = Prepared(MODELS[name], scale_for(name)).prequential(X, 50_000 + 1000 * y)
    np.testing.assert_allclose(said[1:], ((far - 50_000) / 1000)[1:], rtol=0, atol=1e-6)
    assert np.abs(said - y)[350:].mean() < 0.9 * np.abs(y - y.mean()).mean()


def test_a_target_far_from_zero_is_learned():
    X, y = events(2000)
    far = 50_000 + 100 * y
    off = np.abs(Prepared(KernelRegressor()).prequential(X, far) - far)
    assert off[1000:].mean() < 0.3 * np.abs(far - far.mean()).mean()
    as_they_come = np.abs(Prepared(KernelRegressor(), target=None).prequential(X, far) - far)
    assert as_they_come[1000:].mean() > 10 * off[1000:].mean()


@pytest.mark.parametrize("name", MODELS)
def test_cuts_files_pickles_and_copies_change_no_bit(name, tmp_path):
    X, y = events()
    y = 300 + 50 * y + np.where(np.arange(len(y)) > 200, 900, 0)  # the scale moves
    whole, cut = Prepared(MODELS[name], scale_for(name)), Prepared(MODELS[name], scale_for(name))
    expected, said, start = whole.prequential(X, y), [], 0
    for turn, stop in enumerate(CUTS):
        said.append(cut.prequential(X[start:stop], y[start:stop]))
        start = stop
        if turn % 3 == 0:
            cut.save(tmp_path / "model")
            cut = gristmill.load(tmp_path / "model")
        else:
            cut = pickle.loads(pickle.dumps(cut)) if turn % 3 == 1 else copy.deepcopy(cut)
    np.testing.assert_array_equal(expected, np.concatenate(said))
    alone = Prepared(MODELS[name], scale_for(name))
    for x, target in zip(X, y, strict=True):
        alone.learn_one(x, target)
    for other in (cut, alone, Prepared(MODELS[name], scale_for(name)).fit(X, y)):
        np.testing.assert_array_equal(whole.predict(X), other.predict(X))
        assert other.n_seen_ == len(y)


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_it_is_a_learner_of_targets_that_were_scaled_by_hand(scale):
    """The same as a learner over the same rows whose targets are converted at every position that doubles."""
    X, y = events(600)
    X = X / [1.0, 20.0, 0.01]
    y = 10 + 5 * y
    model = Prepared(KernelRegressor(Laplacian(0.3), PassiveAggressive(), Merge(100)), scale)
    said = model.prequential(X, y)
    rows = Prepared(KernelClassifier(), scale)
    plain = KernelRegressor(Laplacian(0.3), PassiveAggressive(), Merge(100))
    centre = spread = 0.0
    expected = []
    for place, (x, target) in enumerate(zip(X, y, strict=True)):
        rows.learn_one(x, place % 2)
        row = x if scale is None else rows.scaler_.transform(x[None])[0]
        if spread == 0:
            expected.append(y[:place].mean() if place else 0.0)
            plain.partial_fit(row[None], [0.0], sample_weight=[0.0])
        else:
            expected.append(centre + spread * plain.predict_one(row))
            plain.learn_one(row, (target - centre) / spread)
        seen = place + 1
        if seen >= 2 and seen & (seen - 1) == 0:
            mean, std = y[:seen].mean(), y[:seen].std()
            if spread == 0 or abs(mean - centre) > 0.1 * spread or not spread / 1.25 <= std <= spread * 1.25:
                if spread:
                    plain._engine.rescale_targets(np.array([spread / std]), np.array([(centre - mean) / std]))
                centre, spread = mean, std
    np.testing.assert_allclose(said, expected, rtol=1e-9, atol=1e-9)


def test_predictions_do_not_jump_where_the_scale_moves():
    X, y = events(256)
    y = 1000.0 * np.arange(256) + y
    model = Prepared(KernelRegressor(Laplacian(0.3))).fit(X[:127], y[:127])
    spread = model._pipeline.targets.spread
    before = copy.deepcopy(model)
    model.learn_one(X[127], y[127])  # position 128
    assert model._pipeline.targets.spread > 1.25 * spread
    row = before._pipeline.table.learn_transform(X[127:128], before.scaler_)[0]
    before.model_.learn_one(row, float(before._pipeline.targets.inside(y[127:128])[0]))
    said = before.predict(X)  # in the units of before
    np.testing.assert_allclose(model.predict(X), said, rtol=1e-9)


def test_answers_are_in_the_units_of_the_target():
    X, y = events(1500)
    y = 500 + 80 * y
    model = Prepared(KernelRegressor(Gaussian(0.3), budget=Merge(100))).fit(X, y)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))
    assert model.score(X, y) > 0.8
    low, high = model.predict_interval(X, 0.9).T
    assert 0.8 < ((low <= y) & (y <= high)).mean() < 0.99
    assert model.predict_interval_one(X[3], 0.9) == pytest.approx((low[3], high[3]))
    assert model.predict_one(X[3]) == pytest.approx(model.predict(X[3:4])[0], rel=1e-12)
    np.testing.assert_array_equal(model.decision_function(X), model.predict(X))
    step = np.array([1e-5, 0.0, 0.0])
    slope = (model.predict(X[:5] + step) - model.predict(X[:5] - step)) / 2e-5
    np.testing.assert_allclose(model.gradient(X[:5])[:, 0], slope, rtol=1e-4)
    why = model.explain(X[7])
    assert why.score == model.predict_one(X[7])
    assert math.fsum([*why.contributions, why.intercept, why.rest, why.rounding]) == why.score
    places = [int(np.abs(y - label).argmin()) for label in why.labels]
    np.testing.assert_allclose(y[places], why.labels, rtol=1e-9)
    said = Prepared(KernelRegressor(Gaussian(0.3), budget=Merge(100))).prequential_interval(X, y, 0.8)
    assert np.isinf(said[:2]).all()
    assert 0.7 < ((said[:, 0] <= y) & (y <= said[:, 1]))[100:].mean() < 0.9


def test_several_targets_have_a_scale_each():
    X, y = events()
    Y = np.stack([50_000 + 1000 * y, -0.001 * y, np.full(len(y), 7.0)], axis=1)
    model = Prepared(KernelRegressor(Laplacian(0.3), budget=Merge(100)))
    said = model.prequential(X, Y)
    assert (np.abs(said - Y)[350:].mean(axis=0)[:2] < 0.5 * np.abs(Y - Y.mean(axis=0)).mean(axis=0)[:2]).all()
    assert (said[1:, 2] == 7.0).all()
    cut, parts, start = Prepared(KernelRegressor(Laplacian(0.3), budget=Merge(100))), [], 0
    for stop in CUTS:
        parts.append(cut.prequential(X[start:stop], Y[start:stop]))
        cut, start = gristmill.from_bytes(cut.to_bytes()), stop
    np.testing.assert_array_equal(said, np.concatenate(parts))
    intervals = model.predict_interval(X[:4])
    assert intervals.shape == (4, 3, 2)
    assert np.isinf(intervals[:, 2]).all()
    low, high = model.predict_interval_one(X[0])
    np.testing.assert_array_equal(np.stack([low, high], axis=-1)[:2], intervals[0, :2])
    assert model.gradient(X[:2]).shape == (2, 3, 3)
    why = model.explain(X[5])
    for o in range(3):
        parts = [*why.contributions[:, o], why.intercept[o], why.rest[o], why.rounding[o]]
        assert math.fsum(parts) == why.score[o]


def test_an_error_changes_nothing():
    X, y = events(300)
    model = Prepared(KernelRegressor()).fit(X[:100], y[:100])
    before = model.to_bytes()
    bad = y.copy()
    bad[290] = np.nan
    with pytest.raises(ValueError, match="row 190 is nan"):
        model.partial_fit(X[100:], bad[100:])
    bad[290] = 1e200
    with pytest.raises(ValueError, match="too large: row 190"):
        model.partial_fit(X[100:], bad[100:])
    wrong = X.copy()
    wrong[250, 1] = np.inf
    with pytest.raises(ValueError, match="row 150"):
        model.partial_fit(wrong[100:], y[100:])
    for target in (None, "much", np.inf):
        with pytest.raises((TypeError, ValueError)):
            model.learn_one(X[100], target)
    assert model.to_bytes() == before
    with pytest.raises(TypeError, match="target must be"):
        Prepared(KernelRegressor(), target="square").fit(X, y)


def test_few_events_and_constant_targets():
    X, _ = events(50)
    model = Prepared(KernelRegressor())
    assert model.predict_one(X[0]) == 0.0
    model.learn_one(X[0], 5.0)
    assert model.predict_one(X[1]) == 5.0
    assert model.n_seen_ == 1
    assert model.predict_interval_one(X[1]) == (-np.inf, np.inf)
    said = Prepared(KernelRegressor()).prequential(X, np.full(50, 12.5))
    assert said[0] == 0.0
    assert (said[1:] == 12.5).all()
    assert Prepared(KernelRegressor()).fit(X[:2], [1.0, 3.0]).predict(X[:1])[0] == 2.0
    assert Prepared(KernelRegressor()).fit(X[:2], [1.0, 3.0]).n_seen_ == 2


def test_several_passes_measure_the_whole_batch_first():
    X, y = events(400)
    y = 1000 + 30 * y
    model = Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(200), passes=4)).fit(X, y)
    assert model._pipeline.targets.centre == pytest.approx(y.mean())
    assert model._pipeline.targets.spread == pytest.approx(y.std())
    assert np.abs(model.predict(X) - y).mean() < 0.3 * np.abs(y - y.mean()).mean()
    model.partial_fit(X, y)


def test_single_precision_and_objects():
    X, y = events(300)
    single = Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(50)), None).fit(X.astype(np.float32), 50 + 1e3 * y)
    assert single.support_vectors_.dtype == np.float32
    words = ["a" * int(n) for n in np.random.default_rng(0).integers(1, 20, size=300)]
    lengths = np.array([50_000.0 + 100 * len(word) for word in words])
    model = Prepared(KernelRegressor(lambda a, b: math.exp(-0.1 * (len(a) - len(b)) ** 2), budget=DropOldest(40)))
    said = model.prequential(words, lengths)
    assert np.abs(said - lengths)[200:].mean() < 200  # of 475
    cut = Prepared(KernelRegressor(model.model.kernel, budget=DropOldest(40)))
    parts = [cut.prequential(words[a:b], lengths[a:b]) for a, b in ((0, 1), (1, 30), (30, 300))]
    np.testing.assert_array_equal(said, np.concatenate(parts))


def test_compressed_and_merged_models_speak_the_same_units():
    X, y = events(1200)
    y = 700 + 40 * y
    model = Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(200))).fit(X, y)
    small, _ = compress(model, 80)
    assert np.abs(small.predict(X) - model.predict(X)).mean() < 10
    # Parts that saw other targets are measured in other units.
    high = y > np.median(y)
    apart = [Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(200))).fit(X[at], y[at]) for at in (high, ~high)]
    one = merge(apart)
    assert one._pipeline.targets.centre == pytest.approx(y.mean())
    assert one._pipeline.targets.spread == pytest.approx(y.std())
    assert one._pipeline.targets.scales[0].count == len(y)
    mean = 0.5 * (apart[0].predict(X) + apart[1].predict(X))
    assert np.abs(one.predict(X) - mean).mean() < 0.2 * np.abs(mean - mean.mean()).mean() + 3
    one.partial_fit(X, y)
    with pytest.raises(ValueError, match="treat targets differently"):
        merge([apart[0], Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(200)), target=None).fit(X, y)])


def test_experts_of_a_race_learn_as_they_would_alone():
    X, y = events(500)
    y = 50_000 + 100 * y
    experts = [Prepared(KernelRegressor(Laplacian(g), budget=Merge(60)), s) for g in (0.1, 1.0) for s in SCALES[::2]]
    experts.append(Prepared(KernelRegressor(Laplacian(0.3), budget=Merge(60)), target=None))
    race = Race(experts)
    race.prequential(X, y)
    best = race.leader_
    alone = next(e for e in experts if repr(e) == repr(best))
    np.testing.assert_array_equal(alone.fit(X, y).predict(X), best.predict(X))
    for view, expert in zip(race._engine.experts(), experts, strict=True):
        fitted = view.fitted(race._run.labels)
        np.testing.assert_array_equal(fitted.predict(X), expert.fit(X, y).predict(X))
        fitted.partial_fit(X, y)
        np.testing.assert_array_equal(fitted.predict(X), expert.partial_fit(X, y).predict(X))


def test_the_leader_speaks_the_units_of_the_target():
    X, y = events(900)
    y = 50_000 + 100 * y
    model = AutoRegressor("200 kB").fit(X[:500], y[:500])
    leader = model.leader_
    off = np.abs(leader.predict(X[500:]) - y[500:]).mean()
    assert off < 0.7 * np.abs(y - y.mean()).mean()
    inside = model._engine
    running = [view.place for view in inside.experts() if view.runs and not view.is_trivial]
    place = max(running, key=lambda p: (model.weights_[p], -p))
    expected = inside.score_expert(place, np.ascontiguousarray(X))[:, 0]
    np.testing.assert_array_equal(leader.predict(X), expected)
    leader.partial_fit(X[500:], y[500:])
    bare = AutoRegressor("200 kB", experts=[KernelRegressor(Laplacian(1.0), budget=Merge("1 MB"))], passes=1)
    np.testing.assert_allclose(bare.fit(X, y).leader_.predict(X).mean(), 50_000, rtol=0.01)


def test_objects_are_learned_alike_in_chunks_and_one_by_one():
    """A kernel written in Python: positions at which the scale is renewed lie inside of a chunk."""

    def same(a, b):
        return float(a == b) + 0.5

    words, y = ["a", "b", "c", "d"] * 20, np.arange(80.0)
    whole, chunks, single = (Prepared(KernelRegressor(same)) for _ in range(3))
    whole.partial_fit(words, y)
    for start, stop in ((0, 3), (3, 20), (20, 80)):
        chunks.partial_fit(words[start:stop], y[start:stop])
    for word, target in zip(words, y, strict=True):
        single.learn_one(word, target)
    np.testing.assert_array_equal(chunks.predict(words), whole.predict(words))
    np.testing.assert_array_equal(single.predict(words), whole.predict(words))
