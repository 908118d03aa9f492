"""Digests of what races and `Prepared` predict: one SHA-256 per case over the bytes of every score.

Inputs come from `RandomState`, whose streams are frozen, and from sums and products alone, so that a digest is the same on
every machine. `python tests/race/race_digests.py` prints them as JSON; `race_digests.json` holds the recorded ones.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gristmill as gm

CASES: dict[str, Callable[[], Iterator[Any]]] = {}


def case(function: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    CASES[function.__name__] = function
    return function


def digest(name: str) -> str:
    """The hash of all numbers that a case yields, in order."""
    whole = hashlib.sha256()
    for found in CASES[name]():
        whole.update(np.ascontiguousarray(found, dtype=np.float64).tobytes())
    return whole.hexdigest()[:16]


# ---- streams -----------------------------------------------------------------------------------------------------------


def rows(count: int, columns: int, seed: int) -> Any:
    units = np.array([1.0, 1000.0, 0.001, 30.0, 1.0, 5.0, 0.2, 7.0])
    X = np.random.RandomState(seed).normal(size=(count, columns)) * units[np.arange(columns) % 8]
    return X + 3 * units[np.arange(columns) % 8]


def two_classes(count: int, columns: int, seed: int, drift: bool = False) -> tuple[Any, Any]:
    X = rows(count, columns, seed)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = z[:, 0] * z[:, 1] + 0.5 * z[:, columns - 1] > 0
    if drift:
        y[count // 2 :] = z[count // 2 :, 2] > 0.3
    return X, y


def many_classes(count: int, columns: int, classes: int, seed: int) -> tuple[Any, Any]:
    X = rows(count, columns, seed)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    corners = np.random.RandomState(seed + 1).normal(size=(classes, columns))
    far = ((z[:, None, :] - 1.5 * corners[None]) ** 2).sum(axis=2)
    y = far.argmin(axis=1)
    late = np.arange(count) < count // 3  # the last class comes late
    y[late & (y == classes - 1)] = 0
    return X, y


def numbers(count: int, columns: int, seed: int, drift: bool = False) -> tuple[Any, Any]:
    X = rows(count, columns, seed)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = 50_000 + 100 * (z[:, 0] * z[:, 1] + z[:, 2]) + np.random.RandomState(seed + 7).normal(size=count)
    if drift:
        y[count // 2 :] = 400 - 3 * z[count // 2 :, 0]
    return X, y


def dicts(count: int, seed: int) -> tuple[list[dict[str, Any]], Any]:
    """Numbers, booleans, categories and gaps: the rows widen as values and gaps come."""
    rng = np.random.RandomState(seed)
    events, labels = [], []
    for at in range(count):
        hue = ["red", "green", "blue", "amber", "teal"][rng.randint(3 if at < count // 2 else 5)]
        size, wet = float(rng.normal()) * 100, bool(rng.randint(2))
        event: dict[str, Any] = {
            "size": size,
            "hue": hue,
            "wet": wet,
            "count": int(rng.randint(9)),
            "age": rng.normal(),
        }
        if rng.uniform() < 0.1:
            event["size"] = None
        if rng.uniform() < 0.05:
            del event["hue"]
        events.append(event)
        labels.append((size > 0) == (hue in ("red", "amber")))
    return events, np.array(labels)


def in_chunks(model: Any, X: Any, y: Any, sizes: tuple[int, ...] = (1, 7, 300, 512)) -> Iterator[Any]:
    start, turn = 0, 0
    while start < len(X):
        stop = min(len(X), start + sizes[turn % len(sizes)])
        yield model.prequential(X[start:stop], None if y is None else y[start:stop])
        start, turn = stop, turn + 1


def answers(model: Any, X: Any) -> Iterator[Any]:
    for verb in ("decision_function", "predict", "predict_proba", "predict_interval", "score_samples"):
        if hasattr(model, verb):
            yield getattr(model, verb)(X)
    if hasattr(model, "weights_"):
        yield model.weights_
    yield [model.n_seen_]


def one_by_one(model: Any, X: Any, y: Any) -> Iterator[Any]:
    for at, x in enumerate(X):
        yield model.score_one(x)
        model.learn_one(x, None if y is None else y[at])


# ---- learners without settings -----------------------------------------------------------------------------------------


@case
def auto_classifier() -> Iterator[Any]:
    X, y = two_classes(3600, 8, 0)
    model = gm.AutoClassifier()
    yield from in_chunks(model, X, y)
    yield from answers(model, X[:50])


@case
def auto_classifier_drift() -> Iterator[Any]:
    X, y = two_classes(4000, 5, 1, drift=True)
    model = gm.AutoClassifier(memory="200 kB")
    yield model.prequential(X, y)
    yield from answers(model, X[:50])


@case
def auto_classifier_one_by_one() -> Iterator[Any]:
    X, y = two_classes(1100, 8, 2)
    model = gm.AutoClassifier()
    yield from one_by_one(model, X, y)
    yield from answers(model, X[:50])


@case
def auto_classifier_many_classes() -> Iterator[Any]:
    X, y = many_classes(2600, 12, 6, 3)
    model = gm.AutoClassifier()
    names = np.array(["f", "c", "a", "e", "b", "d"])
    yield from in_chunks(model, X, names[y])
    yield model.decision_function(X[:50])
    yield model.predict_proba(X[:50])


@case
def auto_classifier_classes_said() -> Iterator[Any]:
    X, y = many_classes(900, 4, 5, 4)
    model = gm.AutoClassifier(memory="120 kB").partial_fit(X[:10], y[:10], classes=range(5))
    yield model.prequential(X[10:], y[10:])
    yield model.weights_


@case
def auto_classifier_fit() -> Iterator[Any]:
    X, y = two_classes(1200, 6, 5)
    yield gm.AutoClassifier().fit(X, y).decision_function(X[:200])
    yield gm.AutoClassifier(passes=2).fit(X, y).decision_function(X[:200])


@case
def auto_regressor() -> Iterator[Any]:
    X, y = numbers(3300, 8, 6)
    model = gm.AutoRegressor()
    yield from in_chunks(model, X, y)
    yield from answers(model, X[:50])


@case
def auto_regressor_drift() -> Iterator[Any]:
    X, y = numbers(3000, 4, 7, drift=True)
    model = gm.AutoRegressor(memory="150 kB")
    yield model.prequential(X, y)
    yield from answers(model, X[:50])


@case
def auto_regressor_one_by_one() -> Iterator[Any]:
    X, y = numbers(900, 3, 8)
    y[:4] = 5.0  # a spread that is not known at first
    model = gm.AutoRegressor()
    yield from one_by_one(model, X, y)
    yield from answers(model, X[:50])


@case
def auto_regressor_wide_fit() -> Iterator[Any]:
    X, y = numbers(700, 70, 9)
    yield gm.AutoRegressor().fit(X, y).predict(X[:100])


@case
def auto_novelty() -> Iterator[Any]:
    X, _ = two_classes(2500, 6, 10)
    model = gm.AutoNovelty(alarm_rate=0.05)
    yield from in_chunks(model, X, None)
    yield from answers(model, X[:50])


@case
def auto_novelty_one_by_one() -> Iterator[Any]:
    X, _ = two_classes(600, 3, 11)
    model = gm.AutoNovelty(memory="60 kB")
    yield from one_by_one(model, X, None)
    yield from answers(model, X[:50])


def detectors(columns: int, rate: float) -> list[Any]:
    """Two densities over random samples, columns scaled in two ways."""

    def one(gamma: float, scale: str, neighbours: float) -> Any:
        rule, sample = gm.Density(nu=rate, neighbours=neighbours), gm.DropRandom("1 MB", uniform=True)
        return gm.Prepared(gm.KernelNovelty(gm.Gaussian(gamma), rule, sample, random_state=0), scale)

    return [one(500 / columns, "minmax", 0.0), one(2 / columns, "standard", 0.05)]


@case
def novelty_race() -> Iterator[Any]:
    X, _ = two_classes(2500, 6, 10)
    model = gm.AutoNovelty(alarm_rate=0.05, experts=detectors(6, 0.05))
    yield from in_chunks(model, X, None)
    yield from answers(model, X[:50])


@case
def novelty_race_one_by_one() -> Iterator[Any]:
    X, _ = two_classes(600, 3, 11)
    model = gm.AutoNovelty(memory="60 kB", experts=detectors(3, 0.01))
    yield from one_by_one(model, X, None)
    yield from answers(model, X[:50])


# ---- races -------------------------------------------------------------------------------------------------------------


@case
def race_classifier() -> Iterator[Any]:
    X, y = two_classes(2100, 5, 12, drift=True)
    experts = [
        gm.KernelClassifier(gm.Gaussian(0.1), gm.PassiveAggressive(), gm.DropOldest(80)),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.3), gm.PassiveAggressive(0.5), gm.Merge(120)), "relevance"),
        gm.Prepared(gm.KernelClassifier(gm.Laplacian(0.5), gm.Perceptron(), gm.Forget(60)), "minmax", warmup=200),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(1.0), gm.MarginProjection(), gm.Project(0.2, 50))),
        gm.Prepared(
            gm.KernelClassifier(gm.Additive(gm.Spline()), gm.PassiveAggressive(), gm.DropSmallest(40)), "minmax"
        ),
        gm.Prepared(
            gm.FeatureLearner(
                gm.RandomMaclaurin(gm.Polynomial(2, 1.0, 1.0), 60, random_state=0), gm.PassiveAggressive()
            )
        ),
    ]
    model = gm.Race(experts)
    yield from in_chunks(model, X / X.std(axis=0), y)
    yield from answers(model, X[:50] / X.std(axis=0))


@case
def race_regressor() -> Iterator[Any]:
    X, y = numbers(1600, 4, 13)
    experts = [
        gm.Prepared(gm.KernelRegressor(gm.Gaussian(0.5), gm.PassiveAggressive(variant=2), gm.Merge(90)), "relevance"),
        gm.Prepared(gm.KernelRegressor(gm.Laplacian(0.3), gm.SGD(gm.Squared(), rate=0.3), gm.DropOldest(100))),
        gm.Prepared(gm.KernelRegressor(gm.Gaussian(0.2), None, gm.Merge(50)), None, target=None),
    ]
    model = gm.Race(experts, share=0.01)
    yield from in_chunks(model, X, y)
    yield from answers(model, X[:50])


# ---- prepared ----------------------------------------------------------------------------------------------------------


@case
def prepared_scalings() -> Iterator[Any]:
    X, y = two_classes(1500, 6, 14)
    for scale in ("standard", "minmax", "relevance", None):
        model = gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.3), budget=gm.Merge(150)), scale)
        yield from in_chunks(model, X, y)
        yield model.decision_function(X[:50])
        yield from one_by_one(model, X[:60], y[:60])


@case
def prepared_table() -> Iterator[Any]:
    events, y = dicts(1300, 15)
    for scale in ("standard", "relevance"):
        model = gm.Prepared(gm.KernelClassifier(budget=gm.Merge(100)), scale)
        yield from in_chunks(model, events, y)
        yield model.decision_function(events[:50])
        yield from one_by_one(model, events[:60], y[:60])


@case
def prepared_targets() -> Iterator[Any]:
    X, y = numbers(1300, 5, 16)
    for scale in ("standard", "relevance"):
        model = gm.Prepared(gm.KernelRegressor(budget=gm.Merge(100)), scale)
        yield from in_chunks(model, X, y)
        yield from answers(model, X[:50])
        yield from one_by_one(model, X[:60], y[:60])
    both = np.stack([y, 3 - y], axis=1)
    yield gm.Prepared(gm.KernelRegressor(budget=gm.DropOldest(60))).prequential(X[:500], both[:500])
    yield gm.Prepared(gm.KernelRegressor(budget=gm.Merge(100), passes=2)).fit(X, y).predict(X[:50])


@case
def prepared_novelty() -> Iterator[Any]:
    X, _ = two_classes(1200, 4, 17)
    model = gm.Prepared(gm.KernelNovelty(), "minmax")
    yield from in_chunks(model, X, None)
    yield from one_by_one(model, X[:60], None)


@case
def prepared_auto() -> Iterator[Any]:
    """A table of numbers and booleans without gaps: its rows do not widen."""
    X, y = two_classes(1300, 5, 18)
    events = [
        {"a": float(x[0]), "b": float(x[1]), "c": bool(x[2] > 0.003), "d": float(x[3]), "e": int(x[4])} for x in X
    ]
    model = gm.Prepared(gm.AutoClassifier(memory="300 kB"))
    yield from in_chunks(model, events, y)
    yield from one_by_one(model, events[:60], y[:60])


if __name__ == "__main__":
    json.dump({name: digest(name) for name in (sys.argv[1:] or CASES)}, sys.stdout, indent=1)
    print()
