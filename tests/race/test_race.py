"""Race and the learners without settings: cuts and files change no bit, memory is kept, bad input does nothing."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    AutoClassifier,
    DropOldest,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    Linear,
    Merge,
    Prepared,
    Race,
    Unbounded,
)
from gristmill.race import RaceClassifier, RaceRegressor

FIRST = 100  #: the first position at which memory may move (core/race/memory_shares.cpp)


def events(count=700, classes=3, columns=5, seed=0):
    """Classes by where two columns lie, a few labels wrong; the last class comes late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, columns)) * [1.0, 30.0, 0.01, 5.0, 1.0][:columns] + 3.0
    angle = np.arctan2(X[:, 0] - 3.0, (X[:, 1] - 3.0) / 30.0)
    y = np.floor((angle + np.pi) / (2 * np.pi) * classes).astype(int).clip(0, classes - 1)
    y[rng.random(count) < 0.05] = 0
    y[:50] = np.minimum(y[:50], 1)
    return X, y


def experts():
    return [
        Prepared(KernelClassifier(Laplacian(0.6), budget=Merge(40))),
        Prepared(KernelClassifier(Gaussian(0.2), budget=DropOldest(30)), "relevance"),
        KernelClassifier(Gaussian(0.001), budget=Merge(50)),
    ]


# ---- cuts, files, copies ------------------------------------------------------------------------------------------


def models():
    return {
        "race": lambda: Race(experts()),
        "auto": lambda: AutoClassifier("300 kB"),
        "small": lambda: AutoClassifier("60 kB"),
    }


@pytest.mark.parametrize("kind", models())
def test_cuts_files_and_copies_change_no_bit(kind, tmp_path):
    X, y = events(1100)
    whole = models()[kind]()
    expected = whole.prequential(X, y)
    cut, said, start = models()[kind](), [], 0
    for turn, stop in enumerate((1, 2, 40, 99, 100, 101, 350, 500, 777, 1100)):
        part = cut.prequential(X[start:stop], y[start:stop])
        said.append(part)
        start = stop
        if turn % 3 == 0:
            cut.save(tmp_path / "model")
            cut = gristmill.load(tmp_path / "model")
        elif turn % 3 == 1:
            cut = pickle.loads(pickle.dumps(cut))
        else:
            cut = copy.deepcopy(cut)
    np.testing.assert_array_equal(expected[350:], np.concatenate(said[7:]))
    np.testing.assert_array_equal(whole.decision_function(X), cut.decision_function(X))
    np.testing.assert_array_equal(whole.weights_, cut.weights_)
    assert repr(whole.experts_) == repr(cut.experts_)
    assert str(whole.report()) == str(cut.report())


def test_one_by_one_is_the_same():
    X, y = events(240)
    whole, single = AutoClassifier("200 kB", passes=1).fit(X, y), AutoClassifier("200 kB")
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    np.testing.assert_array_equal(whole.predict_proba(X), single.predict_proba(X))
    assert single.predict_one(X[0]) == whole.predict(X[:1])[0]
    assert sum(single.predict_proba_one(X[0]).values()) == pytest.approx(1.0)


def test_classes_that_are_known_beforehand():
    X, y = events(200)
    model = AutoClassifier("200 kB").partial_fit(X[:10], y[:10], classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (200, 3)
    assert model.decision_function(X).shape == (200, 3)


# ---- experts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", models())
def test_the_leader_is_the_expert_bit_for_bit(kind):
    X, y = events(1100)
    model = models()[kind]().fit(X, y)
    core = model._engine
    places = [view.place for view in core.experts() if view.runs and not view.is_trivial]
    best = max(places, key=lambda place: model.weights_[place])
    leader = model.leader_
    said = leader.decision_function(X)
    inside = core.score_expert(best, X)
    np.testing.assert_array_equal(said, inside[:, np.argsort(model._run.labels.names)])
    before = model.decision_function(X)
    leader.partial_fit(X[:50], y[:50])  # it is a copy
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert leader.n_seen_ == 1150


@pytest.mark.filterwarnings("ignore:.*Prepared:UserWarning")  # of those that are not prepared
def test_an_expert_of_a_race_is_what_it_would_be_alone():
    X, y = events(600, classes=2)
    race = Race(experts())
    race.partial_fit(X[:250], y[:250]).partial_fit(X[250:], y[250:])
    for expert, view in zip(experts(), race._engine.experts(), strict=True):
        alone = clone(expert).fit(X, y)
        together = view.fitted(race._run.labels)
        np.testing.assert_array_equal(alone.decision_function(X), together.decision_function(X))


def test_an_expert_that_diverges_leaves_alike_for_any_cut():
    X, y = events(400, classes=2)
    wild = Prepared(KernelClassifier(Linear(), SGD(Hinge(1e300), rate=1e300), DropOldest(200)))
    calm = Prepared(KernelClassifier(Gaussian(0.2), budget=Merge(50)))
    whole, cut = Race([wild, calm]), Race([wild, calm])
    said = whole.prequential(X, y)
    pieces = [cut.prequential(X[a : a + 37], y[a : a + 37]) for a in range(0, 400, 37)]
    np.testing.assert_array_equal(said, np.concatenate(pieces))
    assert whole.weights_.tolist() == [0.0, 1.0]
    assert "left at event" in whole.report().experts[0].state
    assert isinstance(whole.leader_, Prepared)
    assert np.isfinite(said).all()


def test_a_third_and_a_fourth_class_may_come_at_any_event():
    X, y = events(300, classes=4)
    names = np.array(["north", "east", "south", "west"])[y]
    model = AutoClassifier("300 kB")
    scores = np.vstack([model.prequential(X[:299], names[:299]), model.prequential(X[299:], names[299:])])
    assert model.classes_.tolist() == ["east", "north", "south", "west"]
    first = {name: int(np.flatnonzero(names == name)[0]) for name in set(names)}
    for name, row in first.items():  # no expert has seen a target yet
        if row > 1:
            assert model.classes_[scores[row].argmax()] != name


# ---- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("memory", "columns", "classes"), [("60 kB", 5, 2), ("200 kB", 5, 6), ("1 MB", 5, 3)])
def test_memory_is_never_more_than_was_asked(memory, columns, classes):
    X, y = events(2500, classes, columns)
    model, asked = AutoClassifier(memory), {"60 kB": 60_000, "200 kB": 200_000, "1 MB": 1_000_000}[memory]
    for start in range(0, 2500, 61):
        model.partial_fit(X[start : start + 61], y[start : start + 61])
        assert model.memory_bytes_ <= asked
    assert model.memory_bytes_ > 0.4 * asked


def test_a_memory_that_is_too_small_says_how_much_it_takes():
    X, y = events(50)
    with pytest.raises(ValueError, match="takes at least"):
        AutoClassifier("12 kB").fit(X, y)


def test_room_goes_to_those_that_lead():
    X, y = events(6 * FIRST * 4)
    model = AutoClassifier("120 kB").fit(X, y)
    running = [found for found in model.report().experts if found.state == "runs" and not found.is_trivial]
    assert 1 <= len(running) <= 5
    assert max(found.points for found in running) >= 2 * min(found.points for found in running)


def test_an_expert_with_too_little_memory_does_not_stop_the_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 30)), np.arange(90) % 30
    mine = [Prepared(KernelClassifier(Gaussian(1 / 30), budget=DropOldest(9)))]
    mine += [Prepared(KernelClassifier(Laplacian(g / 30), budget=Merge(9))) for g in range(1, 12)]
    model = AutoClassifier("250 kB", experts=mine).partial_fit(X, y)
    running = model._run.core.shares
    assert 0 not in running  # thirty classes leave it too few points, and it does not grow
    assert len(running) >= 5


def test_a_core_gets_more_room_and_less_in_mid_stream():
    X, y = events(900, classes=2)
    model = Prepared(KernelClassifier(Laplacian(0.3), budget=Merge("40 kB"))).fit(X[:500], y[:500])
    core = model.model_._engine
    before = core.size
    core.resize(20_000)
    assert core.memory_bytes <= 20_000
    small = core.size
    core.resize(80_000)
    model.partial_fit(X[500:], y[500:])
    assert small < before
    assert core.size > small
    with pytest.raises(ValueError, match="too small"):
        core.resize(3000)
    assert core.size > small


# ---- units and bad input ------------------------------------------------------------------------------------------


def test_powers_of_two_change_no_bit():
    X, y = events(1200)
    plain, other = AutoClassifier("300 kB"), AutoClassifier("300 kB")
    units = 2.0 ** np.array([10, -7, 0, 30, -20])
    np.testing.assert_array_equal(plain.prequential(X, y), other.prequential(X * units, y))


def test_powers_of_ten_change_nothing_that_counts():
    X, y = events(2000)
    plain, other = AutoClassifier("300 kB"), AutoClassifier("300 kB")
    units = 10.0 ** np.array([3, -2, 0, 6, -5])
    np.testing.assert_allclose(plain.prequential(X, y), other.prequential(X * units, y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("count", [3, 300])
def test_bad_input_changes_nothing(count):
    X, y = events(500)
    model = AutoClassifier("200 kB").fit(X[:150], y[:150])
    before = pickle.dumps(model)
    for value, words in ((np.nan, "NaN: row 2, column 1"), (np.inf, "infinity"), (1e200, "too large: row 2")):
        bad = X[:count].copy()
        bad[2, 1] = value
        for learn in (model.partial_fit, model.prequential):
            with pytest.raises(ValueError, match=words):
                learn(bad, y[:count])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(X[:count, :3], y[:count])
    with pytest.raises(ValueError, match="Unknown label type"):
        model.partial_fit(X[:count], np.linspace(0, 1, count))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_chunk_that_is_broken_off_is_undone(sent):
    X, y = events(900)
    model = AutoClassifier("200 kB").fit(X[:350], y[:350])
    before = pickle.dumps(model)

    def stop(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(sent, stop)
    timer = threading.Timer(0.15, os.kill, (os.getpid(), sent))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(np.tile(X, (300, 1)), np.tile(y, 300))  # takes seconds, if it is let
    finally:
        timer.join()
        signal.signal(sent, old)
    assert pickle.dumps(model) == before
    model.partial_fit(X[350:], y[350:])
    whole = AutoClassifier("200 kB").fit(X[:350], y[:350]).partial_fit(X[350:], y[350:])
    assert np.array_equal(model.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "one or more learners"),
        ([KernelClassifier(), KernelRegressor()], "one task"),
        ([KernelNovelty()], "classification or regression"),
    ],
)
def test_a_race_of_nothing_or_of_two_tasks_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Race(given)


def test_what_is_no_learner_is_refused():
    with pytest.raises(TypeError, match="learner of gristmill"):
        Race([3])
    with pytest.raises(ValueError, match="share"):
        Race(experts(), share=1.0).fit(*events(20))
    with pytest.raises(ValueError, match="memory must be"):
        AutoClassifier(memory=3.5).fit(*events(20))
    with pytest.raises(ValueError, match="for classification"):
        AutoClassifier(experts=[KernelRegressor()]).fit(*events(20))


# ---- the report ---------------------------------------------------------------------------------------------------


def test_race_takes_the_kind_of_its_experts():
    assert type(Race(experts())) is RaceClassifier
    assert type(Race([KernelRegressor()])) is RaceRegressor
    assert isinstance(clone(Race(experts())), Race)


def test_numbers_are_mixed_by_how_far_off_they_were():
    X = np.random.default_rng(0).uniform(0, 20, size=(1500, 1))
    y = np.sin(X[:, 0])
    race = Race([KernelRegressor(Gaussian(0.0001)), KernelRegressor(Gaussian(3.0))])
    said = race.prequential(X, y)
    assert race.weights_[1] > 0.9
    alone = KernelRegressor(Gaussian(3.0)).prequential(X, y)
    assert np.abs(said - y).mean() < 1.2 * np.abs(alone - y).mean() + 0.02


def test_the_report_tells_of_baselines_and_who_leads():
    X, y = events(800)
    model = AutoClassifier("300 kB")
    scores = model.prequential(X, y)
    report = model.report()
    error = (model.classes_[scores.argmax(axis=1)] != y).mean()
    assert report.n_seen == 800
    assert report.error == pytest.approx(error, abs=0.01)
    assert report.baseline.error == pytest.approx(min((y[1:] != y[:-1]).mean(), 0.66), abs=0.1)
    assert report.leader.weight == max(model.weights_)
    assert "Majority()" in str(report)
    assert "(paused)" in str(report)
    assert len(report.history) <= 128


def test_own_experts_in_place_of_those_it_comes_with():
    X, y = events(400, classes=2)
    mine = [Prepared(KernelClassifier(Laplacian(q), budget=Merge(50))) for q in (0.1, 1.0)]
    model = AutoClassifier("100 kB", experts=mine).fit(X, y)
    assert len(model.weights_) == 2
    assert model.memory_bytes_ <= 100_000
    assert mine[0].model.budget == Merge(50)
    assert model.leader_.model_.budget.size.endswith(" B")
    assert not np.isnan(model.score(X, y))


def test_own_experts_need_a_budget_whose_size_can_be_set():
    X, y = events(40, classes=2)
    mine = [Prepared(KernelClassifier(Laplacian(1.0), budget=Unbounded()))]
    with pytest.raises(ValueError, match=r"must have a size.*Unbounded\(\)"):
        AutoClassifier(experts=mine).fit(X, y)


@pytest.mark.parametrize("build", [lambda: AutoClassifier(), lambda: Race(experts())])
def test_columns_may_come_later(build):
    X, y = events(700, classes=2)
    model = build().partial_fit(X[:300, :3], y[:300])
    before = model.predict_proba(X[:300, :3])
    model.widen(5)
    later = np.pad(X[:300, :3], ((0, 0), (0, 2)))
    np.testing.assert_allclose(model.predict_proba(later), before, atol=1e-6)
    model.partial_fit(X[300:], y[300:])
    assert model.n_features_in_ == 5
    assert np.isfinite(pickle.loads(pickle.dumps(model)).decision_function(X)).all()
    with pytest.raises(ValueError, match="cannot be widened to 2"):
        model.widen(2)
    if isinstance(model, AutoClassifier):
        assert model.memory_bytes_ <= 1_000_000


# ---- batches ------------------------------------------------------------------------------------------------------


def test_a_batch_is_looked_at_as_often_as_it_helps():
    X, y = events(1500)
    once = AutoClassifier(passes=1).fit(X[:1000], y[:1000])
    auto = AutoClassifier().fit(X[:1000], y[:1000])
    assert auto.n_seen_ == once.n_seen_ == 1000
    assert auto.score(X[1000:], y[1000:]) >= once.score(X[1000:], y[1000:]) - 0.01
    ids = auto.leader_.support_ids_
    assert len(set(ids.tolist())) == len(ids)  # nothing is stored twice
    again = AutoClassifier().fit(X[:1000], y[:1000])
    np.testing.assert_array_equal(auto.decision_function(X), again.decision_function(X))
    assert auto.memory_bytes_ <= 1_000_000


def test_passes_that_are_said():
    X, y = events(400)
    cut = AutoClassifier("300 kB", passes=3).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(AutoClassifier("300 kB", passes=1).fit(X, y).predict_proba(X), cut.predict_proba(X))
    thrice = AutoClassifier("300 kB", passes=3).fit(X, y)
    assert thrice.score(X, y) > cut.score(X, y)
    assert thrice.n_seen_ == 400
    for wrong in (0, "often", 1.5):
        with pytest.raises((TypeError, ValueError), match="passes"):
            AutoClassifier(passes=wrong).fit(X, y)


def test_answers_between_chunks_of_many_classes(tmp_path):
    """An expert that has just come back has met no class: it is asked all the same, and files hold it."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, wrong = X[order], y[order], 0
    model = AutoClassifier(random_state=0)
    for first in range(0, len(y), 50):
        if first:
            wrong += int((model.predict(X[first : first + 50]) != y[first : first + 50]).sum())
        model.partial_fit(X[first : first + 50], y[first : first + 50])
        if first + 50 in (800, 1600):
            model.save(tmp_path / "model.safetensors")
            again = gristmill.load(tmp_path / "model.safetensors")
            np.testing.assert_array_equal(again.predict_proba(X[:20]), model.predict_proba(X[:20]))
            model = again
    assert wrong < 0.09 * len(y)


def test_experts_that_take_objects_are_refused_by_name():
    with pytest.raises(TypeError, match="experts share rows of numbers"):
        Race([KernelClassifier(lambda x, y: float(x @ y)), KernelClassifier()])
