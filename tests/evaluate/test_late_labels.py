"""Labels that come later, by an id: the model is that of the labelled order, waiting events are bounded and copied."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from gristmill import AutoClassifier, AutoRegressor, Gaussian, KernelClassifier, KernelRegressor, Prepared
from gristmill._base import late_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
MODELS = [
    KernelClassifier(Gaussian(1.0)), KernelRegressor(Gaussian(1.0)), AutoClassifier(), AutoRegressor(),
    Prepared(KernelClassifier(Gaussian(1.0))), Prepared(AutoRegressor()),
]  # fmt: skip


def events(model, count=60):
    return [dict(enumerate(x)) if isinstance(model, Prepared) else x for x in X[:count]]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:30])
def test_the_model_is_that_of_the_order_of_the_labels(model):
    late, plain = copy.deepcopy(model), copy.deepcopy(model)
    order = [*range(0, 60, 2), *range(1, 60, 2)]
    rows = events(model)
    for place, x in enumerate(rows):
        late.learn_one(x, id=f"event {place}")
    for place in order:
        late.label(f"event {place}", Y[place])
        plain.learn_one(rows[place], Y[place])
    assert late.n_waiting_ == 0
    assert late.n_seen_ == plain.n_seen_ == 60
    assert [late.score_one(x) for x in rows] == [plain.score_one(x) for x in rows]


def test_an_event_is_kept_as_it_came():
    model, x = KernelClassifier(Gaussian(1.0)).fit(X, Y), X[0].copy()
    model.learn_one(x, id=1)
    x[:] = 99.0
    other = KernelClassifier(Gaussian(1.0)).fit(X, Y)
    model.label(1, Y[0])
    other.learn_one(X[0], Y[0])
    assert model.score_one(X[1]) == other.score_one(X[1])


def test_copies_wait_by_themselves_and_a_wrong_label_changes_nothing():
    model = KernelRegressor(Gaussian(1.0)).fit(X, Y)
    model.learn_one(X[0], id="a")
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        other.label("a", 1.0)
        assert (other.n_waiting_, model.n_waiting_) == (0, 1)
    with pytest.raises((TypeError, ValueError)):
        model.label("a", "no number")
    assert model.n_waiting_ == 1
    model.label("a", 1.0)


def test_few_wait(monkeypatch):
    monkeypatch.setattr(late_labels, "MOST", 3)
    model = KernelClassifier(Gaussian(1.0)).fit(X, Y)
    for place in range(5):
        model.learn_one(X[place], id=place)
    assert model.n_waiting_ == 3
    with pytest.raises(KeyError, match="id=1 waits"):
        model.label(1, 0)
    model.label(2, 0)
    with pytest.raises(ValueError, match="id=3 waits for its label already"):
        model.learn_one(X[0], id=3)
    with pytest.raises(ValueError, match="has a label"):
        model.learn_one(X[0], 1, id=9)
