"""What a check works with: an estimator, a stream it can eat, and ways to compare."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector

from .._common.types import Labels, Table
from ..kernels import as_kernel


class CheckError(AssertionError):
    """A promise that the estimator does not keep."""


def require(kept: object, promise: str) -> None:
    """Raise `CheckError` with the promise's words unless it was kept."""
    if not kept:
        raise CheckError(promise)


@dataclasses.dataclass
class Case:
    """One estimator and a stream that fits it; `classes`, if given, is passed at the first call."""

    estimator: Any
    X: Any
    y: Any
    classes: Any = None

    def new(self) -> Any:
        """An unfitted copy with a fixed seed."""
        model = clone(self.estimator)
        return model.set_params(random_state=7) if model.random_state is None else model

    def learn(self, model: object, rows: slice, verb: str = "partial_fit", **extra: object) -> Any:
        if self.classes is not None and verb != "fit":
            extra["classes"] = self.classes
        return getattr(model, verb)(self.X[rows], None if self.y is None else self.y[rows], **extra)

    def learn_each(self, model: Any, rows: range) -> None:
        for i in rows:
            if self.classes is not None and i == 0:
                self.learn(model, slice(0, 1))
            else:
                model.learn_one(self.X[i], None if self.y is None else self.y[i])

    def fitted(self) -> Any:
        model = self.new()
        self.learn(model, slice(None))
        return model

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)


def is_native(model: object) -> bool:
    """Whether the kernel runs in the core, on rows of numbers."""
    kernel = getattr(model, "kernel", None)
    return kernel is None or as_kernel(kernel).is_native


def budget_of(model: object) -> Any:
    """The budget parameter; None for learners that store no points."""
    return getattr(model, "budget", None)


def stores_points(model: object) -> bool:
    """Whether the model is a sum of kernels at stored points; the others have explicit weights, `coef_`."""
    return getattr(model, "stores_points", True)


def coefficients(model: Any) -> Any:
    return model.dual_coef_ if stores_points(model) else model.coef_


def _stream(model: object, n_classes: int) -> tuple[Any, Any]:
    """Points of norm below 1 (some kernels ask for that), a third of the entries 0, and their labels."""
    rng = np.random.default_rng(20)
    count = 240 if is_native(model) else 60
    X = rng.normal(size=(count, 5)) * (rng.random((count, 5)) < 0.7)
    X *= 0.9 / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    values = X[:, 0] - X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=count)
    if is_classifier(model):
        return X, np.digitize(values, np.quantile(values, np.arange(1, n_classes) / n_classes))
    return X, None if is_outlier_detector(model) else values


def cases_of(model: object, X: Table, y: Labels) -> list[Case]:
    if X is not None:
        return [Case(model, X, y)]
    cases = [Case(model, *_stream(model, 2))]
    if is_classifier(model):
        three = Case(model, *_stream(model, 3))
        try:
            three.learn(three.new(), slice(0, 60))
        except ValueError:  # a composition for two classes only raises
            return cases
        cases.append(three)
    return cases


def snapshot(model: object) -> Any:
    """Everything a model is made of, as values that compare bit for bit."""
    return _frozen(model.__getstate__())


def _frozen(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(field) for key, field in value.items()}
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [_frozen(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, type) or inspect.isroutine(value) or not hasattr(value, "__dict__"):
        return value
    # An estimator lists its own parameters; the rest is rebuilt from them.
    return type(value).__name__, _frozen(value.__getstate__() if isinstance(value, BaseEstimator) else vars(value))


def same_bits(left: Any, right: Any) -> bool:
    """Whether two models have equal state and predictions; the core's class codes may differ."""
    if not stores_points(left):
        names = ("coef_", "intercept_", "norm_", "n_seen_")
        return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)
    pairs = [(left.dual_coef_, right.dual_coef_), (left.intercept_, right.intercept_)]
    pairs += [(left.support_ids_, right.support_ids_), (left.norm_, right.norm_)]
    for a, b in zip(dense(left.support_vectors_), dense(right.support_vectors_), strict=False):
        pairs.append((a, b))
    alike = all(np.array_equal(a, b) for a, b in pairs)
    return alike and (left.n_seen_, left.n_support_) == (right.n_seen_, right.n_support_)


def dense(points: object) -> Any:
    return points.toarray() if hasattr(points, "toarray") else points


def close(found: object, wanted: object, tolerance: float) -> bool:
    """Agreement relative to the largest number wanted."""
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    size = max(1e-3, float(np.abs(wanted).max(initial=0.0)))
    return found.shape == wanted.shape and bool(np.all(np.abs(found - wanted) <= tolerance * size))
