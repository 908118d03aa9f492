"""Streams that relevance is tried on beside those of the benchmark: drifting ones, others, and some held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gristmill import streams

from .data import SEED, arrays, shuffled
from .streams.cases import SOURCES, Source


def _classes(name: str, make: Callable[[int], tuple[Any, Any]]) -> tuple[str, Source]:
    return name, Source(name, "classification", make)


def _numbers(name: str, make: Callable[[int], tuple[Any, Any]]) -> tuple[str, Source]:
    return name, Source(name, "regression", make)


def moving_columns(events: int) -> tuple[Any, Any]:
    """Two columns of twenty decide, others from the middle on, and others again in the last quarter."""
    X = np.random.default_rng(SEED).normal(size=(events, 20))
    y = np.empty(events, dtype=int)
    for part, (first, last) in enumerate(((0, events // 2), (events // 2, 3 * events // 4), (3 * events // 4, events))):
        a, b = X[first:last, 2 * part], X[first:last, 2 * part + 1]
        y[first:last] = a * b + 0.5 * b > 0
    return X, y


def turning_with_noise(events: int) -> tuple[Any, Any]:
    """A plane over two columns turns once around; eight columns say nothing."""
    X = np.random.default_rng(SEED).normal(size=(events, 10))
    angle = 2 * np.pi * np.arange(events) / events
    return X, (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.3).astype(int)


DRIFTING: dict[str, Source] = {
    **{name: SOURCES[name] for name in ("elec2", "Agrawal", "SEA", "RandomRBFDrift", "FriedmanDrift")},
    **dict([
        _classes("rotating hyperplane", lambda n: streams.rotating_hyperplane(n, random_state=SEED).arrays()),
        _classes("turning Gaussians", lambda n: streams.silk_sequence(n, turns=1.0, random_state=SEED).arrays()),
        _classes("turning plane + noise", turning_with_noise),
        _classes("drifting mixture", lambda n: streams.drifting_mixture(n, random_state=SEED).arrays()),
        _classes("switching mixture", lambda n: streams.switching_mixture(n, random_state=SEED).arrays()),
        _classes("drifting digits", lambda n: streams.drifting_digits(n).arrays()),
        _classes("moving columns", moving_columns),
    ]),
}  # fmt: skip


# ---- others ----------------------------------------------------------------------------------------------------------


def _file(name: str) -> Callable[[int], tuple[Any, Any]]:
    return lambda events: shuffled(*arrays(name), events)


def _made(name: str, **known: Any) -> Callable[[int], tuple[Any, Any]]:
    """A generator of scikit-learn."""

    def make(events: int) -> tuple[Any, Any]:
        from sklearn import datasets

        made: tuple[Any, Any] = shuffled(*getattr(datasets, name)(n_samples=events, random_state=SEED, **known))
        return made

    return make


def _shipped(name: str) -> Callable[[int], tuple[Any, Any]]:
    """A set that comes with scikit-learn."""

    def make(events: int) -> tuple[Any, Any]:
        from sklearn import datasets

        kept: tuple[Any, Any] = shuffled(*getattr(datasets, name)(return_X_y=True), events)
        return kept

    return make


def moons_in_noise(events: int) -> tuple[Any, Any]:
    """Two moons, and ten columns that say nothing."""
    X, y = _made("make_moons", noise=0.3)(events)
    return np.hstack([X, np.random.default_rng(SEED).normal(size=(events, 10))]), y


#: looked at while it was chosen how much is learned anew
OTHERS: dict[str, Source] = dict([
    _classes("a9a", _file("a9a")),
    _classes("mnist", _file("mnist")),
    _classes("svmguide1", _file("svmguide1")),
    _classes("german", _file("german")),
    _classes("diabetes", _file("diabetes")),
    _classes("ionosphere", _file("ionosphere")),
    _classes("breast-cancer", _file("breast-cancer")),
    _classes("fourclass", _file("fourclass")),
    _classes("digits", _shipped("load_digits")),
    _classes("make_classification", _made(
        "make_classification", n_features=30, n_informative=6, n_redundant=4, n_classes=4, class_sep=1.0,
    )),
    _classes("make_gaussian_quantiles", _made("make_gaussian_quantiles", n_features=6, n_classes=3)),
    _classes("make_hastie_10_2", _made("make_hastie_10_2")),
    _classes("make_moons + 10", moons_in_noise),
    _numbers("puma8nh", _file("puma8nh")),
    _numbers("winequality-white", _file("winequality-white")),
    _numbers("winequality-red", _file("winequality-red")),
    _numbers("load_diabetes", _shipped("load_diabetes")),
    _numbers("make_friedman1", _made("make_friedman1", n_features=10, noise=1.0)),
    _numbers("make_friedman2", _made("make_friedman2", noise=100.0)),
    _numbers("make_friedman3", _made("make_friedman3", noise=0.1)),
    _numbers("make_regression", _made("make_regression", n_features=20, n_informative=5, noise=10.0)),
])  # fmt: skip


def circles_in_noise(events: int) -> tuple[Any, Any]:
    """Two circles, and six columns that say nothing."""
    X, y = _made("make_circles", noise=0.15, factor=0.6)(events)
    return np.hstack([X, np.random.default_rng(SEED).normal(size=(events, 6))]), y


#: nothing was chosen by these
HELD_OUT: dict[str, Source] = dict([
    _classes("usps.t", _file("usps.t")),
    _classes("ijcnn1.t", _file("ijcnn1.t")),
    _classes("svmguide1.t", _file("svmguide1.t")),
    _classes("make_circles + 6", circles_in_noise),
    _classes("make_blobs", _made("make_blobs", n_features=12, centers=8, cluster_std=6.0)),
    _classes("make_classification, two", _made("make_classification", n_features=15, n_informative=3, flip_y=0.05)),
    _numbers("make_sparse_uncorrelated", _made("make_sparse_uncorrelated", n_features=20)),
    _numbers("make_swiss_roll", _made("make_swiss_roll", noise=0.5)),
    _numbers("make_s_curve", _made("make_s_curve", noise=0.1)),
])  # fmt: skip
