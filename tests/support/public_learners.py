"""Every public learner on a stream, found by introspection: what holds for one must hold for all."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import gristmill
from gristmill import features, pairwise, race, similarity, unsupervised
from gristmill._base.estimator import StreamEstimator
from gristmill.budgets import Merge
from gristmill.kernels import Gaussian, Laplacian, Linear
from gristmill.learners.kernel import KernelClassifier, KernelRegressor
from gristmill.prepared import Prepared

#: what a learner cannot do without; a new one that needs more is added here, or the tests fail
NEEDED: dict[str, dict[str, Any]] = {
    "AutoClassifier": {"passes": 1},  # cuts, and several passes over a batch, are two things
    "AutoRegressor": {"passes": 1},
    "RaceClassifier": {"experts": [KernelClassifier(), Prepared(KernelClassifier(Laplacian(3.0), budget=Merge(30)))]},
    "RaceRegressor": {"experts": [KernelRegressor(), Prepared(KernelRegressor(Laplacian(3.0), budget=Merge(30)))]},
    "StructuredLearner": {"kernel": Gaussian(1.0), "labels": [0, 1]},
    "TwoStageMKL": {"kernels": [Linear(), Gaussian(1.0)]},
}


def public() -> dict[str, Any]:
    """Name -> class of every public learner on a stream."""
    found = {}
    for home in (gristmill, features, pairwise, race, similarity, unsupervised):
        for name in home.__all__:
            value = getattr(home, name)
            makes = name in ("FeatureLearner", "Race")  # others, which are on the list themselves
            if isinstance(value, type) and issubclass(value, StreamEstimator) and not makes:
                found[name] = value
    return found


def made(name: str, **given: Any) -> Any:
    kind = public()[name]
    seed = {"random_state": 0} if "random_state" in inspect.signature(kind).parameters else {}
    return kind(**{**NEEDED.get(name, {}), **seed, **given})


def stream(name: str, count: int = 80, seed: int = 1) -> tuple[Any, Any]:
    """A small stream of two classes, or of numbers."""
    X = np.random.default_rng(seed).uniform(0.05, 0.95, size=(count, 4))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0.65).astype(int)
    y[:2] = 0, 1
    return X, X[:, 0] if name.endswith("Regressor") else y


def answers(model: Any, X: Any) -> Any:
    """What a learner says of rows, or what it holds where it says nothing of rows."""
    for verb in ("decision_function", "predict", "transform"):
        if hasattr(model, verb):
            return np.asarray(getattr(model, verb)(X))
    return np.asarray(getattr(model, "matrix_" if hasattr(model, "matrix_") else "weights_"))
