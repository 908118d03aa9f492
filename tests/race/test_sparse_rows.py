"""Sparse rows of very many columns: linear experts with explicit weights, in bounded memory, in any cut, unit and order."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from model_state import same, state
from scipy.sparse import csr_array, diags_array
from sklearn.linear_model import SGDClassifier

from benchmarks.sparse_text import topics
from gristmill import AutoClassifier, AutoRegressor, KernelClassifier, Race, load, merge
from gristmill.export import ExportError, to_json, to_onnx

EVENTS = 1500
X, Y = topics(0.35, documents=EVENTS, words=6000)
X = X.astype(np.float64)
NUMBERS = 5e4 + 100.0 * Y + np.random.default_rng(0).normal(size=EVENTS)
THREE = np.where((np.arange(EVENTS) > 400) & (np.arange(EVENTS) % 3 == 0), "c", np.where(Y, "b", "a"))
CASES = [(AutoClassifier, Y), (AutoClassifier, THREE), (AutoRegressor, NUMBERS)]
IDS = ["two classes", "a late class", "numbers"]


@pytest.mark.parametrize(("kind", "y"), CASES, ids=IDS)
def test_the_cut_changes_no_bit_with_save_and_load_in_between(kind, y, tmp_path):
    whole, cut, single = kind(), kind(), kind()
    expected = whole.prequential(X, y)
    found = []
    for start, stop in zip([0, 1, 2, 9, 130, 401, 402, 900], [1, 2, 9, 130, 401, 402, 900, EVENTS], strict=True):
        found.append(cut.prequential(X[start:stop], y[start:stop]))
        if start in (2, 401):
            cut.save(tmp_path / "model")
            cut = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    for place in range(450):
        single.learn_one(X[[place]], y[place])
    single.partial_fit(X[450:], y[450:])
    assert same(whole, cut)
    assert same(whole, single)
    if expected.ndim == 1:
        np.testing.assert_array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize(("kind", "y"), CASES, ids=IDS)
def test_units_change_no_score(kind, y):
    factors = 2.0 ** np.random.default_rng(1).integers(-20, 20, X.shape[1])
    scaled = csr_array(X @ diags_array(factors))
    np.testing.assert_array_equal(kind().prequential(scaled, y), kind().prequential(X, y))


def test_dense_rows_and_unsorted_indices_are_the_same_rows():
    model = AutoClassifier().partial_fit(X[:300], Y[:300])
    other = copy.deepcopy(model)
    model.partial_fit(X[300:400], Y[300:400])
    other.partial_fit(X[300:400].toarray(), Y[300:400])
    assert same(model, other)
    np.testing.assert_array_equal(model.predict(X[:5]), model.predict(X[:5].toarray()))


def test_better_than_stochastic_gradients():
    head = EVENTS * 2 // 3
    peer = SGDClassifier(random_state=0).fit(X[:head], Y[:head]).score(X[head:], Y[head:])
    assert AutoClassifier().fit(X[:head], Y[:head]).score(X[head:], Y[head:]) > peer - 0.01


def test_numbers():
    predicted = AutoRegressor().prequential(X, NUMBERS)
    assert np.abs(predicted - NUMBERS)[500:].mean() < 0.7 * np.abs(NUMBERS - NUMBERS.mean()).mean()


def test_a_late_class_scores_below_the_others():
    scores = AutoClassifier().prequential(X, THREE)
    assert scores.shape == (EVENTS, 3)
    first = int(np.flatnonzero(THREE == "c")[0])
    assert (scores[:first, 2] < scores[:first, :2].min(axis=1)).all()


@pytest.mark.parametrize("memory", [60_000, 200_000, 1_000_000])
def test_memory_is_bounded_with_a_million_columns_and_many_classes(memory):
    columns = np.random.default_rng(0).integers(0, 1_000_000, 400 * 50).astype(np.int32)
    rows = csr_array((np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, 50)), (400, 1_000_000))
    model = AutoClassifier(memory=memory)
    for start in range(0, 400, 50):
        model.partial_fit(rows[start : start + 50], np.arange(start, start + 50) % 9)
        assert model.memory_bytes_ <= memory
    assert model.predict_proba(rows[:4]).shape == (4, 9)


def test_a_wrong_value_names_its_place_and_changes_nothing():
    model = AutoClassifier().partial_fit(X[:50], Y[:50])
    before, bad = state(model), X[50:60].copy()
    bad.data[bad.indptr[3]] = np.inf
    column = bad.indices[bad.indptr[3]]
    with pytest.raises(ValueError, match=f"infinity: row 3, column {column}"):
        model.partial_fit(bad, Y[50:60])
    after = state(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(ValueError, match="6001 features"):
        model.predict(csr_array((1, 6001)))


def test_what_cannot_be_done_is_refused_by_name():
    model = AutoClassifier().partial_fit(X[:300], Y[:300])
    for write in (to_onnx, to_json):
        with pytest.raises(ExportError, match="sparse rows"):
            write(model)
    with pytest.raises(ValueError, match="sparse rows"):
        merge([model, copy.deepcopy(model)])
    with pytest.raises(AttributeError, match="sparse rows"):
        model.leader_  # noqa: B018
    assert "WideLogistic" in str(model.report())


def test_a_file_of_another_kind_of_race_is_refused(tmp_path):
    model = AutoClassifier().partial_fit(X[:100], Y[:100])
    race = Race([KernelClassifier()])
    with pytest.raises(ValueError, match="sparse rows"):
        race.restored_core(race.checked_parts(), model._engine.state())


def test_wider_rows_are_taken_where_a_table_grows():
    model = AutoClassifier().partial_fit(X[:100], Y[:100])
    model.widen(7000)
    wider = csr_array((X.data, X.indices, X.indptr), (EVENTS, 7000))
    model.partial_fit(wider[100:], Y[100:])
    assert model.n_features_in_ == 7000
    other = AutoClassifier().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    np.testing.assert_array_equal(model.decision_function(wider), other.decision_function(X))
