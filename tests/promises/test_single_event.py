"""Rows that are ready go straight to the core: scores and errors are those of the path with full validation."""

from __future__ import annotations

import copy
import functools
import warnings

import numpy as np
import pandas as pd
import public_learners
import pytest

import gristmill
from gristmill import Gaussian, KernelClassifier
from gristmill._common import inputs as _input
from gristmill.checks import snapshot

VERBS = ("partial_fit", "prequential", "predict", "decision_function", "score_samples", "predict_proba", "transform")


def spoilt(X, value):
    X = X.copy()
    X[-1, 2] = value
    return X


#: name -> how rows come in
ROWS = {
    "doubles": lambda X: X,
    "one row": lambda X: X[:1],
    "singles": lambda X: X.astype(np.float32),
    "a view": lambda X: np.repeat(X, 2, axis=0)[::2],
    "by columns": np.asfortranarray,
    "bytes turned round": lambda X: X.astype(">f8"),
    "whole numbers": lambda X: X.astype(np.int64),
    "objects": lambda X: X.astype(object),
    "texts": lambda X: X.astype(str).astype(object) + "!",
    "complex numbers": lambda X: X + 1j,
    "a list": lambda X: X.tolist(),
    "a frame": pd.DataFrame,
    "a frame with names": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "a masked array": lambda X: np.ma.masked_array(X),
    "too wide": lambda X: np.hstack([X, X]),
    "too narrow": lambda X: np.ascontiguousarray(X[:, :3]),
    "one dimension": lambda X: X[0],
    "three dimensions": lambda X: X[None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "NaN": lambda X: spoilt(X, np.nan),
    "infinity": lambda X: spoilt(X, -np.inf),
    "NaN in singles": lambda X: spoilt(X.astype(np.float32), np.nan),
    "too large for singles": lambda X: spoilt(X, 1e300),
}


def outcome(call):
    """What came of a call: numbers, or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = call()
        except Exception as error:
            found = (type(error), str(error))
        else:
            found = np.asarray(found).tolist() if not hasattr(found, "partial_fit") else "learned"
    return found, [str(warning.message) for warning in said]


def both_ways(make, call, monkeypatch):
    short = make()
    quick = outcome(lambda: call(short))
    with monkeypatch.context() as patch:
        patch.setattr(_input, "is_ready", lambda X, known: False)
        long = make()
        assert quick == outcome(lambda: call(long))
    assert snapshot(short) == snapshot(long)
    return quick[0]


@functools.cache
def fitted(name):
    X, y = public_learners.stream(name, 20)
    return public_learners.made(name).fit(X, y)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", public_learners.public())
def test_both_ways_say_the_same_of_every_learner(name, kind, monkeypatch):
    X, y = public_learners.stream(name, 24)
    rows = ROWS[kind](X[20:])
    labels = y[20 : 20 + (len(rows) if hasattr(rows, "__len__") else 0)]
    for verb in VERBS:
        if not hasattr(public_learners.public()[name], verb):
            continue
        given = (rows, labels) if verb in ("partial_fit", "prequential") else (rows,)
        both_ways(
            lambda: copy.deepcopy(fitted(name)),
            lambda model, verb=verb, given=given: getattr(model, verb)(*given),
            monkeypatch,
        )


def test_columns_with_names_take_the_long_way(monkeypatch):
    X, y = public_learners.stream("KernelClassifier", 24)
    frame = pd.DataFrame(X, columns=list("abcd"))
    said = both_ways(
        lambda: KernelClassifier(Gaussian(1.0), random_state=0).fit(frame, y),
        lambda model: model.predict(frame[list("dcba")]),
        monkeypatch,
    )
    assert said[0] is ValueError
    assert "feature names" in said[1]
    model = KernelClassifier(Gaussian(1.0)).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("kind", ["float64", "a list", "a column", "NaN", "infinity", "too many", "int"])
def test_targets_are_read_alike(kind):
    X, _ = public_learners.stream("KernelRegressor", 24)
    y = {
        "float64": X[:3, 0],
        "a list": X[:3, 0].tolist(),
        "a column": X[:3, :1],
        "NaN": np.array([0.0, np.nan, 1.0]),
        "infinity": np.array([0.0, 1.0, np.inf]),
        "too many": X[:4, 0],
        "int": np.array([1, 2, 3]),
    }[kind]
    from gristmill._common.labels import targets

    found = outcome(lambda: targets("KernelRegressor", y, 3))
    again = outcome(lambda: targets("KernelRegressor", np.asarray(y).astype(np.longdouble), 3))
    assert found == again
    assert isinstance(found[0], list) == (kind not in ("NaN", "infinity", "too many"))


def test_scikit_learn_is_not_asked_about_rows_that_are_ready(monkeypatch):
    X, y = public_learners.stream("KernelClassifier", 24)
    model = gristmill.KernelClassifier(Gaussian(1.0)).fit(X, y)

    def asked(*given, **named):
        raise AssertionError("the long way")

    monkeypatch.setattr("gristmill._base.estimator.validate_data", asked)
    model.partial_fit(X[:1], y[:1])
    assert model.predict(X[:2]).shape == (2,)
    with pytest.raises(AssertionError, match="the long way"):
        model.predict(X[:1].tolist())


@pytest.mark.parametrize("form", [list, tuple, np.float32, np.int64])
def test_a_lone_event_may_come_in_any_form_of_numbers(form):
    X = np.round(4 * np.random.default_rng(0).normal(size=(40, 3)))
    y = (X[:, 0] > X[:, 1]).astype(int).tolist()
    shown = (lambda x: form(x.tolist())) if form in (list, tuple) else (lambda x: x.astype(form))
    one, other = (KernelClassifier(Gaussian(0.1)).fit(X[:10], y[:10]) for _ in range(2))
    for x, label in zip(X[10:], y[10:], strict=True):
        assert one.score_one(x) == other.score_one(shown(x))
        one.learn_one(x, label)
        other.learn_one(shown(x), label)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    "x", [[1.0, "two", 3.0], [1.0, [2.0], 3.0], [1.0, 2.0], [], [1.0, None, 3.0], [1.0, 2.0, 3j], [1.0, np.nan, 2.0]]
)
def test_a_lone_event_that_is_none_is_refused_and_changes_nothing(x):
    model = KernelClassifier(Gaussian(0.1)).fit(np.eye(3), [0, 1, 0])
    before = snapshot(model)
    for ask in (lambda: model.learn_one(x, 1), lambda: model.predict_one(x)):
        with pytest.raises((ValueError, TypeError)):
            ask()
    assert snapshot(model) == before
