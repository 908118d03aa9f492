"""AutoNovelty: alarms as often as asked, three views of one sample, recovery from drift, the promises of every learner."""

from __future__ import annotations

import pickle

import anomaly_twin
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import gristmill
from gristmill import AutoNovelty, DropOldest, Gaussian, KernelClassifier, KernelNovelty, Prepared, _core, merge
from gristmill._common.seeds import seed_of


def events(count=2000, share=0.03, seed=0):
    """Two clouds in four columns of odd units, and a few events that lie between them."""
    rng = np.random.default_rng(seed)
    side = np.where(rng.random(count) < 0.5, -3.0, 3.0)
    X = rng.normal(size=(count, 4)) * 0.5 + side[:, None] * [1, -1, 1, 0]
    odd = rng.random(count) < share
    X[odd] = rng.normal(size=(odd.sum(), 4)) * 0.5
    return X * [1.0, 1000.0, 0.001, 20.0], odd


def hard_stream(count, width, seed=2):
    """Anomalies in a burst, wild values, a column that is constant at first, one that hardly moves, a jump of the mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, width)) @ rng.normal(size=(width, width))
    X[300:340] += 7.0
    X[120, 0], X[count // 2, 1] = 1e9, -1e30
    X[:400, 2] = 5.0
    X[:, 3] = rng.random(count) < 0.003
    X[800:] += 4.0
    return X


# ---- the core is its twin ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "width", "count"), [(70_000, 4, 1250), (90_000, 80, 520)])
def test_scores_are_those_of_the_twin(memory, width, count):
    X = hard_stream(count, width)
    model = AutoNovelty(0.03, memory, random_state=5)
    found = model.prequential(X)
    twin = anomaly_twin.Detector(0.03, seed_of(5), **model._engine.plan)
    np.testing.assert_allclose(found, [twin.learn(x) for x in X], rtol=1e-6, atol=1e-6)
    assert model.n_support_ == len(twin.codes)


def test_both_sizes_of_numbers_occur():
    assert [_core.Detector(d, 90_000, 0.01, 0).plan["as_bytes"] for d in (4, 80)] == [False, True]
    assert _core.Detector(784, 1_000_000, 0.01, 0).plan["events"] > 700


# ---- alarms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
def test_alarms_come_as_often_as_asked_along_the_stream_and_after_fit(rate):
    X = np.random.default_rng(0).normal(size=(20_000, 4)) * [1.0, 1000.0, 0.001, 20.0]
    model = AutoNovelty(rate, "200 kB")
    scores = model.prequential(X[:10_000])
    assert (scores[:50] > 0).all()
    assert (scores < 0).sum() == pytest.approx(rate * 10_000, abs=6)
    after = (model.predict(X[10_000:]) == -1).mean()
    assert rate / 6 < after < 3 * rate
    assert "alarms" in str(model.report())


def test_a_trend_brings_no_more_alarms():
    X = np.random.default_rng(0).normal(size=(8000, 3)) + np.linspace(0, 8, 8000)[:, None]
    assert (AutoNovelty(0.02).prequential(X) < 0).mean() == pytest.approx(0.02, rel=0.15)


def test_farther_is_always_stranger():
    for width in (1, 4, 90):
        X = np.random.default_rng(0).normal(size=(2000, width))
        model = AutoNovelty(memory="300 kB").fit(X)
        far = np.zeros((7, width))
        far[:, 0] = [15, 50, 1000, 1e4, 1e6, 1e12, 1e100]
        for direction in (far, -far):
            assert (np.diff(model.score_samples(direction)) < 0).all()
        assert model.predict(far[-1:]) == [-1]


# ---- what is found ---------------------------------------------------------------------------------------------------


def test_what_lies_between_the_clouds_is_strange():
    X, odd = events()
    scores = AutoNovelty(0.03).prequential(X)
    assert roc_auc_score(~odd[200:], scores[200:]) > 0.97


def test_a_burst_of_anomalies_does_not_become_familiar():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3300, 5))
    X[2000:2100] = 5.0 + 0.1 * rng.normal(size=(100, 5))
    model = AutoNovelty(0.01)
    scores = model.prequential(X)
    odd = np.arange(3300) // 100 == 20
    assert roc_auc_score(~odd[500:], scores[500:]) > 0.95
    assert (model.predict(5.0 + 0.1 * rng.normal(size=(50, 5))) == -1).mean() > 0.9


def test_the_sample_follows_a_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4600, 5))
    X[4000:] += 6.0
    model = AutoNovelty(0.02).fit(X[:4250])
    normal, odd = rng.normal(size=(500, 5)) + 6.0, 3 * rng.normal(size=(500, 5)) + 6.0
    truth = np.repeat([1, 0], 500)
    assert roc_auc_score(truth, model.score_samples(np.vstack([normal, odd]))) > 0.9
    model.partial_fit(X[4250:])
    assert roc_auc_score(truth, model.score_samples(np.vstack([normal, odd]))) > 0.95


def test_a_column_that_never_moved_counts_at_its_first_other_value():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(800, 2)), np.full((800, 1), 7.0)])
    model = AutoNovelty().fit(X)
    assert model.predict([[0.0, 0.0, 7.5]]) == [-1]
    assert model.predict([[0.0, 0.0, 7.0]]) == [1]
    assert model.explain([0.0, 0.0, 7.5]).order[0] == 2


def test_explanations_add_up_to_the_distance_and_name_the_column():
    X, _ = events(1500, share=0.0)
    model = AutoNovelty().fit(X)
    for column in range(4):
        x = X[7].copy()
        x[column] += 40 * X[:, column].std()
        why = model.explain(x, top=2)
        assert why.order[0] == column
        assert len(why.order) == 2
        assert why.score == model.score_one(x) < 0
        views = np.array(list(why.views.values()))
        assert views.min() < -1
        assert why.columns.sum() > 5
        assert f"column {column}" in str(why)
        assert abs(why.usual[column] - x[column]) > 10 * X[:, column].std()
    with pytest.raises(ValueError, match="top must be"):
        model.explain(X[0], top=0)
    named = Prepared(AutoNovelty(), scale=None).fit(X).explain(X[0])
    assert len(named.columns) == 4


# ---- promises --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4, 90])
def test_cuts_files_and_one_by_one_change_no_bit(width, tmp_path):
    X = hard_stream(700, width)
    whole, cut, found, start = AutoNovelty(memory="90 kB"), AutoNovelty(memory="90 kB"), [], 0
    expected = whole.prequential(X)
    for stop in (1, 2, 49, 60, 100, 333, 640):
        found.append(cut.prequential(X[start:stop]))
        cut.save(tmp_path / "model")
        cut, start = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model"))), stop
    for x in X[640:]:
        cut.learn_one(x)
    np.testing.assert_array_equal(expected[:640], np.concatenate(found))
    np.testing.assert_array_equal(whole.decision_function(X), cut.decision_function(X))
    assert whole.to_bytes() == cut.to_bytes()
    assert whole.offset_ == cut.offset_


def test_units_of_columns_do_not_matter():
    X, _ = events(1000)
    plain, other = AutoNovelty(memory="60 kB"), AutoNovelty(memory="60 kB")
    np.testing.assert_array_equal(plain.prequential(X), other.prequential(X * 2.0 ** np.array([9, -3, 0, 14])))
    tens = AutoNovelty(memory="60 kB").fit(X * [10.0, 1e-3, 1e6, 1.0])
    np.testing.assert_allclose(tens.score_samples(X * [10.0, 1e-3, 1e6, 1.0]), plain.score_samples(X), atol=0.1)


def test_a_stream_that_widens_goes_on_in_any_cut(tmp_path):
    rng = np.random.default_rng(0)
    colours = np.array(["red", "blue", "green"])
    rows = [{"a": float(rng.normal()), "hue": str(colours[rng.integers(1 + (i > 30) + (i > 200))])} for i in range(400)]
    whole, cut = (Prepared(AutoNovelty(memory="60 kB")) for _ in range(2))
    whole.partial_fit(rows)
    for start in range(0, 400, 37):
        cut.partial_fit(rows[start : start + 37])
        cut.save(tmp_path / "model")
        cut = gristmill.load(tmp_path / "model")
    assert whole.to_bytes() == cut.to_bytes()
    assert whole.memory_bytes_ > 0
    assert whole.model_.memory_bytes_ <= 60_000


def test_a_detector_widens_from_fine_numbers_to_bytes():
    X = np.random.default_rng(0).normal(size=(400, 40))
    model = AutoNovelty(memory="90 kB").fit(X)
    model.widen(90)
    assert model._engine.plan["as_bytes"]
    wide = np.hstack([X, np.zeros((400, 50))])
    assert (model.predict(wide) == -1).mean() < 0.1
    assert model.partial_fit(wide).memory_bytes_ <= 90_000
    with pytest.raises(ValueError, match="cannot be widened"):
        model.widen(10)


def test_answers_fit_together():
    X, _ = events(800)
    model = AutoNovelty(0.05, "60 kB").fit(X)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), np.where(scores < 0, -1, 1))
    np.testing.assert_allclose(model.score_samples(X), scores + model.offset_)
    assert model.predict_one(X[0]) == model.predict(X[:1])[0]
    assert model.score_one(X[3]) == scores[3]
    assert set(AutoNovelty(0.05, "60 kB").fit_predict(X)) == {-1, 1}
    assert model.weights_.sum() == pytest.approx(1.0)
    assert len(model.experts_) == 3
    np.testing.assert_array_equal(model.leader_.decision_function(X), scores)
    np.testing.assert_array_equal(clone(model).set_params(n_jobs=2).fit(X).decision_function(X), scores)


def test_dense_and_sparse_rows_agree():
    from scipy.sparse import csr_array

    X = np.random.default_rng(0).poisson(0.5, size=(500, 6)).astype(float)
    np.testing.assert_array_equal(AutoNovelty().prequential(X), AutoNovelty().prequential(csr_array(X)))


@pytest.mark.parametrize(("memory", "width"), [(60_000, 4), (400_000, 4), (200_000, 300), (1_000_000, 900)])
def test_memory_is_never_more_than_was_asked(memory, width):
    X = np.random.default_rng(0).normal(size=(1200, width))
    model, sizes = AutoNovelty(memory=memory), []
    for start in range(0, 1200, 173):
        model.partial_fit(X[start : start + 173])
        sizes.append(model.memory_bytes_)
    assert max(sizes) <= memory
    assert len(set(sizes)) == 1


def test_bad_input_changes_nothing():
    X, _ = events(400)
    for learned in (20, 400):
        model = AutoNovelty(memory="60 kB").fit(X[:learned])
        before, bad = pickle.dumps(model), X.copy()
        for value in (np.nan, np.inf, 1e200):
            bad[5, 2] = value
            with pytest.raises(ValueError, match="row 5, column 2"):
                model.partial_fit(bad)
        with pytest.raises(ValueError, match="features"):
            model.partial_fit(X[:, :3])
        assert pickle.dumps(model) == before


def test_what_makes_no_sense_is_refused():
    X, _ = events(60)
    with pytest.raises(ValueError, match="alarm_rate"):
        AutoNovelty(1.5).fit(X)
    with pytest.raises(ValueError, match="AutoNovelty: memory: 5000 bytes are too few for rows of 4 columns"):
        AutoNovelty(memory=5000).fit(X)
    with pytest.raises(ValueError, match="experts must be for novelty"):
        AutoNovelty(experts=[KernelClassifier()]).fit(X)


def test_the_memory_that_an_error_names_is_enough():
    for width in (1, 70, 400, 3000):
        with pytest.raises(ValueError, match="would do") as error:
            _core.Detector(width, 4000, 0.01, 0)
        needed = int(str(error.value).split("; ")[1].split()[0])
        assert _core.Detector(width, needed, 0.01, 0).plan["events"] >= 64


def test_detectors_of_parts_become_one():
    X, _ = events(3000)
    parts = [AutoNovelty(0.02, "100 kB").fit(X[i::3]) for i in range(3)]
    whole = merge(parts)
    assert whole.n_seen_ == 3000
    assert whole.memory_bytes_ <= 100_000
    fresh, truth = events(1000, seed=9)
    assert roc_auc_score(~truth, whole.score_samples(fresh)) > 0.97
    assert (whole.predict(fresh[~truth]) == -1).mean() < 0.06
    early = merge([AutoNovelty().fit(X[:20]), AutoNovelty().fit(X[20:40])])
    assert early.n_seen_ == 40
    assert early.partial_fit(X[40:400]).n_seen_ == 400
    with pytest.raises(ValueError, match=r"alarm_rate is 0\.02 and 0\.05"):
        merge([parts[0], AutoNovelty(0.05, "100 kB").fit(X)])


# ---- a race of one's own detectors -------------------------------------------------------------------------------------


def quantile(values, share):
    """Weibull's plotting position, as the core has it."""
    ranked, n = np.sort(values), len(values)
    place = np.clip((n + 1) * share, 1, n)
    below = int(place)
    return ranked[below - 1] + (place - below) * (ranked[min(below, n - 1)] - ranked[below - 1])


def share(values, value):
    """The share of which a value is the quantile, tails falling by e with each unit."""
    ranked, n = np.sort(values), len(values)
    if value < ranked[0]:
        return np.exp(value - ranked[0]) / (n + 1)
    if value >= ranked[-1]:
        return 1 - np.exp(ranked[-1] - value) / (n + 1)
    below = int(np.searchsorted(ranked, value, side="right"))
    return (below + (value - ranked[below - 1]) / (ranked[below] - ranked[below - 1])) / (n + 1)


def tamed(x):
    """Beyond one unit by the logarithm."""
    return np.where(np.abs(x) <= 1, x, np.copysign(1 + np.log(np.maximum(np.abs(x), 1)), x))


def drawn(score, rate, surplus):
    """The share at which an alarm begins, moved by alarms too many, becomes the rate; what is far from it stays."""
    level, reach = np.log(rate), min(-np.log(rate), 3.0)
    return (
        level + np.interp(score - level, [-reach, -0.35 * surplus, reach], [-reach, 0.0, reach])
        if abs(score - level) < reach
        else score
    )


def race_twin(densities, rate):
    """(rows, experts) of densities -> what is said of each row."""
    logs, scores, said, surplus = [], [], [], 0.0
    most = min(-np.log(rate), 3.0) / 2 / 0.35
    for row in np.log(np.maximum(densities, 1e-290)):
        past = np.array(logs[-250:])
        score = 0.0
        if len(past) >= 2:
            middle = np.array([quantile(column, 0.5) for column in past.T])
            spread = np.maximum(middle - [quantile(column, 0.1) for column in past.T], 1e-9)
            score = tamed((row - middle) / spread).mean()
        margin = -1e6 if len(scores) < 50 else np.log(rate)
        said.append(
            drawn(np.log(share(np.array(scores[-1000:]), score)) if len(scores) >= 2 else 0.0, rate, surplus) - margin
        )
        if len(scores) >= 50:
            surplus = np.clip(surplus + (said[-1] < 0) - rate, -most, most)
        logs.append(row)
        scores.append(score)
    return np.array(said)


@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_scores_of_several_detectors_are_mixed_as_by_the_twin(rate):
    rng = np.random.default_rng(1)
    densities = np.exp(rng.normal(size=(1300, 3)) * [1.0, 5.0, 0.1])
    densities[700:] *= [0.3, 1.0, 1.0]  # what comes is stranger for a while, and there are too many alarms
    mixture = _core.NoveltyMixture(3, rate)
    scores = np.ascontiguousarray(densities.T[:, :, None])
    out = np.concatenate([mixture.learn(scores[:, a:b].copy(), [0, 1, 2]) for a, b in ((0, 7), (7, 1300))]).ravel()
    np.testing.assert_allclose(out, race_twin(densities, rate), rtol=1e-9, atol=1e-9)
    assert mixture.own_errors == (out < 0).sum()


def test_own_detectors_race():
    X, odd = events(700)
    own = [KernelNovelty(Gaussian(gamma), gristmill.Density(), DropOldest(50)) for gamma in (0.5, 2.0)]
    model = AutoNovelty(0.05, memory="50 kB", experts=[Prepared(one) for one in own])
    scores = model.prequential(X)
    assert model.memory_bytes_ <= 50_000
    assert roc_auc_score(~odd[200:], scores[200:]) > 0.8
    assert len(model.experts_) == 2
    assert len(set(model.weights_[model.weights_ > 0])) == 1
    assert "alarms" in str(model.report())
    assert gristmill.from_bytes(model.to_bytes()).predict(X).tolist() == model.predict(X).tolist()
    with pytest.raises(TypeError, match="leader_"):
        model.explain(X[0])
