"""Class means: one more expert that comes with the sixteenth class, in any cut, and leaves where it takes too much."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from model_state import same

from gristmill import AutoClassifier, load, merge
from gristmill.export import ExportError, to_json

RNG = np.random.default_rng(0)
CENTRES = 1.2 * RNG.normal(size=(60, 10))
Y = RNG.integers(0, 60, 1600)
X = CENTRES[Y] + RNG.normal(size=(1600, 10))
FEW = Y < 12


def test_it_is_not_there_for_few_classes_and_leads_for_many():
    model = AutoClassifier().partial_fit(X[FEW], Y[FEW])
    assert len(model.weights_) == 12
    model.prequential(X, Y)
    assert len(model.weights_) == 13
    report = model.report()
    assert type(report.leader.expert).__name__ == "ClassMeans"
    assert report.history.shape[1] == 2 + 2 * 13
    assert not report.leader.is_trivial


def test_many_classes_are_learned_well():
    model = AutoClassifier()
    scores = model.prequential(X, Y)
    means = np.array([X[:1000][Y[:1000] == c].mean(axis=0) for c in range(60)])
    nearest = ((X[1000:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    wrong = (model.classes_[scores[1000:].argmax(axis=1)] != Y[1000:]).mean()
    assert wrong < (nearest != Y[1000:]).mean() + 0.05


def test_the_cut_changes_no_bit(tmp_path):
    whole, cut, single = AutoClassifier(), AutoClassifier(), AutoClassifier()
    whole.partial_fit(X, Y)
    edges = [0, 1, 7, 15, 16, 17, 18, 40, 401, 1600]
    for start, stop in itertools.pairwise(edges):
        cut.partial_fit(X[start:stop], Y[start:stop])
        if start in (16, 40):
            cut.save(tmp_path / "model")
            cut = pickle.loads(pickle.dumps(load(tmp_path / "model")))
    for place in range(400):
        single.learn_one(X[place], Y[place])
    single.partial_fit(X[400:], Y[400:])
    assert same(whole, cut)
    assert same(whole, single)


@pytest.mark.parametrize("memory", [200_000, 400_000])
def test_memory_is_bounded(memory):
    wide = np.hstack([X, RNG.normal(size=(1600, 90))])
    model = AutoClassifier(memory=memory)
    for start in range(0, 1600, 100):
        model.partial_fit(wide[start : start + 100], Y[start : start + 100])
        assert model.memory_bytes_ <= memory
    states = {type(found.expert).__name__: found.state for found in model.report().experts}
    assert "ClassMeans" in states


def test_merged_without_it_and_exported_not():
    one, other = AutoClassifier().partial_fit(X[:800], Y[:800]), AutoClassifier().partial_fit(X[800:], Y[800:])
    merged = merge([one, other])
    assert len(merged.weights_) == 12
    assert merged.partial_fit(X[:60], Y[:60]).n_seen_ == 1660
    with pytest.raises(ExportError, match="class means"):
        to_json(one)
