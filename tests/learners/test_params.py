"""Parameters of parts by name: in get_params, set_params and grid searches; never ignored in mid-stream."""

from __future__ import annotations

import pickle

import numpy as np
import public_learners
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    FeatureLearner,
    Gaussian,
    Hinge,
    KernelClassifier,
    Laplacian,
    Linear,
    Merge,
    PairwiseAUC,
    PassiveAggressive,
    Polynomial,
    Prepared,
    RandomMaclaurin,
    ReservoirX,
)
from gristmill._common.params import described

NAMES = list(public_learners.public())


def with_parts(name):
    """A learner with a part in every place that takes one."""
    given = {"kernel": Gaussian(0.7), "similarity": Gaussian(0.7), "budget": DropOldest(40), "buffer": ReservoirX(30)}
    if name in ("KernelPCA", "KernelKMeans"):
        given |= {"budget": Merge(40), "decay": 0.5}
    known = public_learners.made(name).get_params(deep=False)
    return public_learners.made(name, **{key: part for key, part in given.items() if key in known})


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_part_can_be_named_and_changed(name):
    model = with_parts(name)
    deep = model.get_params()
    parts = {
        key: value for top, part in model.get_params(deep=False).items() for key, value in described(top, part).items()
    }
    assert parts.items() <= deep.items()
    for key, value in parts.items():
        if isinstance(value, float | int) and not isinstance(value, bool):
            assert model.set_params(**{key: value + 1}).get_params()[key] == value + 1
            assert clone(model).get_params()[key] == value + 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prepared", [False, True])
def test_a_change_in_mid_stream_is_not_ignored(name, prepared, tmp_path):
    X, y = public_learners.stream(name, 40)
    bare = with_parts(name)
    numbers = {k: v for k, v in bare.get_params().items() if isinstance(v, float | int) and not isinstance(v, bool)}
    prefix = "model__" if prepared else ""
    for key in bare._at_any_time:  # nothing that is learned depends on these
        numbers.pop(key, None)
    for key, value in numbers.items():
        model = Prepared(with_parts(name)) if prepared else with_parts(name)
        model.partial_fit(X, y)
        other = value / 2 if isinstance(value, float) and 0 < value < 1 else value + 1  # shares stay shares
        model.set_params(**{prefix + key: other})
        for verb in ("partial_fit", "prequential"):
            if hasattr(model, verb):
                with pytest.raises(ValueError, match="changed in mid-stream"):
                    getattr(model, verb)(X, y)
        with pytest.raises(ValueError, match="changed in mid-stream"):
            model.learn_one(X[0], y[0])
        with pytest.raises(ValueError, match="changed in mid-stream"):
            pickle.loads(pickle.dumps(model)).partial_fit(X, y)
        with pytest.raises(ValueError, match="changed in mid-stream"):
            model.save(tmp_path / "model")
        model.set_params(**{prefix + key: value})
        assert "_changed" not in model.__dict__
        model.partial_fit(X, y)


def test_fit_takes_the_change():
    X, y = public_learners.stream("KernelClassifier")
    for make in (lambda m: m, Prepared):
        prefix = "" if make(None) is None else "model__"
        changed = make(KernelClassifier(Gaussian(1.0), SGD(Hinge()))).fit(X, y)
        changed.set_params(**{prefix + "kernel__gamma": 3.0, prefix + "rule__loss__margin": 0.2}).fit(X, y)
        fresh = make(KernelClassifier(Gaussian(3.0), SGD(Hinge(0.2)))).fit(X, y)
        np.testing.assert_array_equal(changed.decision_function(X), fresh.decision_function(X))
        changed.partial_fit(X, y)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel__gama": 1.0}, "Invalid parameter 'gama' for kernel=Gaussian.*gamma"),
        ({"kernel__gamma__x": 1.0}, "kernel__gamma is 1.0, which has no parameter 'x'"),
        ({"rule__C": 1.0}, "rule is None, which has no parameter 'C'; set rule to a part first"),
        ({"kern__gamma": 1.0}, "Invalid parameter 'kern' for estimator"),
        ({"budget__size": 0}, "DropOldest: size must be"),
        ({"kernel__gamma": -1.0}, "Gaussian: gamma must be a number > 0"),
    ],
)
def test_a_name_or_a_value_that_is_wrong_changes_nothing(changes, words):
    model = KernelClassifier(Gaussian(1.0), budget=DropOldest(10))
    before = model.get_params()
    with pytest.raises((ValueError, TypeError), match=words):
        model.set_params(average=True, **changes)
    assert model.get_params() == before


def test_a_part_and_its_parameters_at_once():
    model = KernelClassifier(Gaussian(1.0)).set_params(kernel=Laplacian(1.0), kernel__gamma=2.0)
    assert model.kernel == Laplacian(2.0)
    nested = KernelClassifier(0.5 * Gaussian(1.0) + Linear())
    key = next(key for key in nested.get_params() if key.endswith("gamma"))
    assert nested.set_params(**{key: 4.0}).kernel == 0.5 * Gaussian(4.0) + Linear()


def test_grid_searches_over_widths():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] * X[:, 1] > 0
    grid = {"kernel__gamma": [1e-6, 1.0], "rule__C": [0.1, 1.0]}
    found = GridSearchCV(KernelClassifier(Gaussian(), PassiveAggressive()), grid, cv=3).fit(X, y)
    assert found.best_params_["kernel__gamma"] == 1.0
    grid = {"model__" + key: values for key, values in grid.items()}
    found = GridSearchCV(Prepared(KernelClassifier(Gaussian(), PassiveAggressive())), grid, cv=3).fit(X, y)
    assert found.best_params_["model__kernel__gamma"] == 1.0
    maps = FeatureLearner(RandomMaclaurin(Polynomial(1), 50, random_state=0), task="classification")
    found = GridSearchCV(maps, {"map__kernel__degree": [1, 2]}, cv=3).fit(X / 4, y)
    assert found.best_params_["map__kernel__degree"] == 2
    pairs = PairwiseAUC(Gaussian(1e-9), buffer=ReservoirX(30), random_state=0)
    found = GridSearchCV(pairs, {"kernel__gamma": [1e-9, 1.0], "buffer__size": [30]}, cv=3).fit(X, y)
    assert found.best_params_["kernel__gamma"] == 1.0


def test_random_forms_of_the_same_value_are_the_same():
    model = KernelClassifier(Gaussian(1.0)).fit([[0.0], [1.0]], [0, 1])
    model.set_params(kernel=Gaussian(1.0), average=False).partial_fit([[0.5]], [1])
    assert model.n_seen_ == 3
    assert gristmill.Gaussian(1.0) == model.kernel
