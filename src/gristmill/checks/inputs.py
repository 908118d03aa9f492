"""Promises 5 and 7: bad input changes nothing, nor does predicting; inputs are left alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from .cases import Case, CheckError, is_native, require, snapshot


def _bad_rows(case: Case) -> Iterator[tuple[str, object]]:
    """Rows that must be refused, by name."""
    X = np.array(case.X[:4])
    for name, value in (("NaN", np.nan), ("infinity", np.inf), ("-infinity", -np.inf)):
        spoilt = X.copy()
        spoilt[3, 1] = value
        yield f"{name} in the last row", spoilt
    yield "too many features", np.hstack([X, X])
    yield "too few features", X[:, :-1]
    yield "no rows", X[:0]
    yield "no features", X[:, :0]
    yield "one dimension", X[0]
    yield "three dimensions", X[None]
    yield "ragged rows", [list(X[0]), list(X[1]), list(X[2]), [1.0]]
    yield "strings", [["a"] * X.shape[1]] * 4
    yield "complex numbers", X * 1j
    yield "None", None


def _bad_targets(case: Case) -> Iterator[tuple[str, object, dict[str, object]]]:
    good: Any = None if case.y is None else case.y[:4]
    for name, weights in (
        ("a negative weight", [1.0, 1.0, 1.0, -1.0]),
        ("a NaN weight", [1.0, np.nan, 1.0, 1.0]),
        ("too few weights", [1.0, 1.0]),
        ("weights that are strings", ["a"] * 4),
    ):
        yield name, good, {"sample_weight": weights}
    if case.y is None:
        return
    yield "no y", None, {}
    yield "y too short", case.y[:3], {}
    yield "y with two columns", np.stack([good, good], axis=1), {}
    yield "y with a NaN", [0.0, 1.0, 0.0, np.nan], {}
    yield "y with infinity", [0.0, 1.0, 0.0, np.inf], {}
    if is_classifier(case.estimator):
        yield "y that is not a classification", [0.5, 1.25, 0.75, 2.5], {}
        yield "a label outside classes", np.array([0, 1, 0, 9]), {"classes": [0, 1]}
    else:
        yield "y of strings", ["a", "b", "c", "d"], {}


def check_bad_input_changes_nothing(case: Case) -> None:
    """Whatever is wrong is refused with ValueError or TypeError, and the model is as it was before."""
    models = [case.new(), case.fitted()]
    good_y = None if case.y is None else case.y[:4]
    for model in models:
        for name, X in _bad_rows(case) if is_native(model) else [("no rows", [])]:
            fitted, other_width = model is models[1], name in ("too many features", "too few features")
            if other_width and not fitted:
                continue
            _refused(model, name, partial(model.partial_fit, X, good_y))
            _refused(model, name, partial(model.prequential, X, good_y))
            if not other_width:
                _refused(model, name, partial(model.fit, X, good_y))
            if fitted:
                _refused(model, name, partial(model.predict, X))
        several = get_tags(model).target_tags.multi_output and model is models[0]  # the first row may set the number
        for name, y, extra in _bad_targets(case):
            if several and name == "y with two columns":
                continue
            _refused(model, name, partial(model.partial_fit, case.X[:4], y, **extra))
        target = None if case.y is None else case.y[0]
        if is_native(model):
            for spoilt in (np.array([0.0, np.nan, 0.0, 0.0, 0.0]), np.array(["a"] * 5), np.zeros((2, 2, 2))):
                _refused(model, f"learn_one of {spoilt!r}", partial(model.learn_one, spoilt, target))
        _refused(model, "a weight below 0", partial(model.learn_one, case.X[0], target, -1.0))


def _refused(model: object, what: str, call: Callable[[], Any]) -> None:
    before = snapshot(model)
    try:
        call()
    except (ValueError, TypeError) as error:
        require(str(error), f"the refusal of {what} says why")
    except Exception as error:
        raise CheckError(f"{what} is refused with ValueError or TypeError, found {error!r}") from error
    else:
        raise CheckError(f"{what} is refused")
    require(snapshot(model) == before, f"{what} changes nothing")


def check_predicting_changes_nothing(case: Case) -> None:
    """predict, decision_function and score_one leave the model alone and may run from many threads."""
    model = case.fitted()
    before, scores, answers = snapshot(model), model.decision_function(case.X), model.predict(case.X)
    with ThreadPoolExecutor(8) as threads:
        several = list(threads.map(lambda _: (model.decision_function(case.X), model.predict(case.X)), range(16)))
    for some_scores, some_answers in several:
        require(np.array_equal(scores, some_scores), "scores from many threads are the same")
        require(np.array_equal(answers, some_answers), "answers from many threads are the same")
    for i in range(min(20, len(case))):
        require(np.array_equal(model.score_one(case.X[i]), scores[i]), f"score_one agrees at event {i}")
        require(model.predict_one(case.X[i]) == answers[i], f"predict_one agrees at event {i}")
    require(snapshot(model) == before, "predicting changes nothing")


def check_inputs_are_left_alone(case: Case) -> None:
    """Learning neither changes nor keeps a view of what it is given; read-only rows are welcome."""
    if not isinstance(case.X, np.ndarray):
        return  # objects of any kind are the caller's own business
    X, y = case.X.copy(), None if case.y is None else np.array(case.y)
    X.setflags(write=False)
    model = case.new()
    dataclasses.replace(case, X=X, y=y).learn(model, slice(None))
    require(np.array_equal(X, case.X), "learning does not change X")
    require(y is None or np.array_equal(y, case.y), "learning does not change y")
    before = snapshot(model)
    X.setflags(write=True)
    X[:] = 0.5
    row = np.array(case.X[0])
    require(snapshot(model) == before, "the model keeps no view of X")
    model.learn_one(row, None if y is None else y[0])
    before = snapshot(model)
    row[:] = 0.25
    require(snapshot(model) == before, "the model keeps no view of a row")
