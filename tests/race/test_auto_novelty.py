"""AutoNovelty: alarms as often as asked, the strangest view counts, and the promises of every learner."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import gristmill
from gristmill import AutoNovelty, DropOldest, Gaussian, KernelClassifier, KernelNovelty, _core


def events(count=2000, share=0.03, seed=0):
    """Two clouds in four columns of odd units, and a few events that lie between them."""
    rng = np.random.default_rng(seed)
    side = np.where(rng.random(count) < 0.5, -3.0, 3.0)
    X = rng.normal(size=(count, 4)) * 0.5 + side[:, None] * [1, -1, 1, 0]
    odd = rng.random(count) < share
    X[odd] = rng.normal(size=(odd.sum(), 4)) * 0.5
    return X * [1.0, 1000.0, 0.001, 20.0], odd


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


def twin(densities, rate):
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
def test_what_is_said_of_several_views_is_that_of_the_twin(rate):
    rng = np.random.default_rng(1)
    densities = np.exp(rng.normal(size=(1300, 3)) * [1.0, 5.0, 0.1])
    densities[700:] *= [0.3, 1.0, 1.0]  # what comes is stranger for a while, and there are too many alarms
    mixture = _core.NoveltyMixture(3, rate)
    said = np.ascontiguousarray(densities.T[:, :, None])
    out = np.concatenate([mixture.learn(said[:, a:b].copy(), [0, 1, 2]) for a, b in ((0, 7), (7, 1300))]).ravel()
    np.testing.assert_allclose(out, twin(densities, rate), rtol=1e-9, atol=1e-9)
    assert mixture.alarms == (out < 0).sum()


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_alarms_come_as_often_as_asked(rate):
    X, _ = events(4000, share=0.0)
    model = AutoNovelty(rate, "100 kB")
    said = model.prequential(X)
    assert (said[:50] > 0).all()
    assert (said < 0).mean() == pytest.approx(rate, rel=0.2)
    assert "alarms" in str(model.report())


def test_what_lies_between_the_clouds_is_strange():
    X, odd = events()
    said = AutoNovelty(0.03).prequential(X)
    assert roc_auc_score(~odd[200:], said[200:]) > 0.97


def test_cuts_files_and_one_by_one_change_no_bit(tmp_path):
    X, _ = events(700)
    whole, cut, said, start = AutoNovelty(memory="60 kB"), AutoNovelty(memory="60 kB"), [], 0
    expected = whole.prequential(X)
    for stop in (1, 2, 60, 100, 333, 640):
        said.append(cut.prequential(X[start:stop]))
        cut.save(tmp_path / "model")
        cut, start = pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model"))), stop
    for x in X[640:]:
        cut.learn_one(x)
    np.testing.assert_array_equal(expected[:640], np.concatenate(said))
    np.testing.assert_array_equal(whole.decision_function(X), cut.decision_function(X))
    assert whole.offset_ == cut.offset_


def test_units_of_columns_do_not_matter():
    X, _ = events(1000)
    plain, other = AutoNovelty(memory="60 kB"), AutoNovelty(memory="60 kB")
    np.testing.assert_array_equal(plain.prequential(X), other.prequential(X * 2.0 ** np.array([9, -3, 0, 14])))


def test_answers_fit_together():
    X, _ = events(800)
    model = AutoNovelty(0.05, "60 kB").fit(X)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), np.where(scores < 0, -1, 1))
    np.testing.assert_allclose(model.score_samples(X), scores + model.offset_)
    assert model.predict_one(X[0]) == model.predict(X[:1])[0]
    assert set(AutoNovelty(0.05, "60 kB").fit_predict(X)) == {-1, 1}
    assert model.weights_.sum() == pytest.approx(1.0)
    assert len(set(model.weights_[model.weights_ > 0])) == 1
    leader, inside = model.leader_, model._engine.lanes[0].score(model._engine.scalings.look(X), 0)[:, 0]
    np.testing.assert_array_equal(leader.decision_function(X), inside - leader.offset_)


def test_memory_is_never_more_than_was_asked():
    X, _ = events(2000)
    for memory in (60_000, 400_000):
        model = AutoNovelty(memory=memory)
        for start in range(0, 2000, 173):
            model.partial_fit(X[start : start + 173])
            assert model.memory_bytes_ <= memory


def test_bad_input_changes_nothing():
    X, _ = events(400)
    model = AutoNovelty(memory="60 kB").fit(X)
    before, bad = pickle.dumps(model), X.copy()
    bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="row 5, column 2"):
        model.partial_fit(bad)
    assert pickle.dumps(model) == before


def test_what_makes_no_sense_is_refused():
    X, _ = events(60)
    with pytest.raises(ValueError, match="alarm_rate"):
        AutoNovelty(1.5).fit(X)
    with pytest.raises(ValueError, match="experts must be for novelty"):
        AutoNovelty(experts=[KernelClassifier()]).fit(X)
    own = AutoNovelty(memory="50 kB", experts=[KernelNovelty(Gaussian(1.0), gristmill.Density(), DropOldest(50))])
    assert own.fit(X).memory_bytes_ <= 50_000
