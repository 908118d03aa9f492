"""The race of the core against its twin in plain Python, sample by sample: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.features import FeatureClassifier, RandomMaclaurin
from gristmill.race import expert_sets
from tests.twins.race_twin import RaceTwin

UNITS = np.array([1.0, 300.0, 0.01, 5.0])


class PatientPerceptron:
    """A rule in Python with a state of its own."""

    def __init__(self) -> None:
        self.mistakes = 0

    def __call__(self, trial: Any) -> Any:
        if trial.label * trial.score > 0:
            return None
        self.mistakes += 1
        return gm.rules.Step(coefficient=trial.label / self.mistakes**0.25)


def rows(count: int = 900, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(count, 4)) * UNITS + 3 * UNITS


def classes(X: Any, count: int = 2) -> Any:
    z = X / UNITS - 3
    y = (z[:, 0] * z[:, 1] + 0.3 * z[:, 2] > 0).astype(int)
    y[(z[:, 3] > 0.5) & (np.arange(len(X)) > 150)] = count - 1
    return y


def learners() -> list[Any]:
    return [
        gm.Prepared(gm.KernelClassifier(gm.Laplacian(0.6), budget=gm.Merge(40))),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.2), budget=gm.DropOldest(30)), "relevance"),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(1.0), budget=gm.Merge(30)), "minmax", warmup=100),
    ]


def foreign() -> list[Any]:
    """Learners that the core runs as Python objects, beside one that it holds."""
    return [
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.5), PatientPerceptron(), gm.DropOldest(40))),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.5), gm.Perceptron(), gm.Project(0.3, size=40))),
        gm.Prepared(FeatureClassifier(RandomMaclaurin(gm.Polynomial(2), 64, random_state=0))),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.5), budget=gm.Merge(40))),
    ]


def numbers(X: Any) -> Any:
    z = X / UNITS - 3
    return 5_000 + 100 * np.sin(2 * z[:, 0]) + 40 * z[:, 1]


CASES: dict[str, tuple[Any, Any, Any]] = {
    "race": (lambda: gm.Race(learners()), lambda: RaceTwin(learners(), "classification", 4), lambda X: classes(X)),
    "classes": (lambda: gm.Race(learners()), lambda: RaceTwin(learners(), "classification", 4), lambda X: classes(X, 3)),
    "foreign": (lambda: gm.Race(foreign()), lambda: RaceTwin(foreign(), "classification", 4), lambda X: classes(X)),
    "numbers": (
        lambda: gm.Race(expert_sets.for_numbers(4)),
        lambda: RaceTwin(expert_sets.for_numbers(4), "regression", 4),
        numbers,
    ),
    "auto": (
        lambda: gm.AutoClassifier("150 kB"),
        lambda: RaceTwin(expert_sets.for_classes(4), "classification", 4, 150_000),
        lambda X: classes(X, 3),
    ),
    "auto numbers": (
        lambda: gm.AutoRegressor("150 kB"),
        lambda: RaceTwin(expert_sets.for_numbers(4), "regression", 4, 150_000),
        numbers,
    ),
    "novelty": (
        lambda: gm.AutoNovelty(0.05, memory="50 kB", experts=detectors()),
        lambda: RaceTwin(detectors(), "novelty", 4, 50_000, 0.05),
        None,
    ),
}  # fmt: skip


def detectors() -> list[Any]:
    return [gm.Prepared(gm.KernelNovelty(gm.Gaussian(g), gm.Density(), gm.DropOldest(50))) for g in (0.5, 2.0)]


@pytest.mark.parametrize("name", CASES)
def test_the_core_computes_what_its_twin_does(name: str) -> None:
    make, twin_of, label_of = CASES[name]
    count = 1700 if name.startswith("auto") else 700
    X = rows(count)
    y = None if label_of is None else label_of(X)
    model, twin = make(), twin_of()
    codes = y
    if y is not None and name not in ("numbers", "auto numbers"):  # classes are numbered as they come
        order = {label: code for code, label in enumerate(dict.fromkeys(y.tolist()))}
        codes = np.array([order[label] for label in y.tolist()])
    expected = [twin.learn(x, 0.0 if codes is None else codes[at]) for at, x in enumerate(X)]
    for start, stop in ((0, 1), (1, 2), (2, 130), (130, 131), (131, 640), (640, count)):
        model.partial_fit(X[start:stop], None if y is None else y[start:stop])
    test = rows(50, seed=1)
    np.testing.assert_array_equal(model._engine.score(test)[0], twin.score(test))
    np.testing.assert_array_equal(model.weights_, twin.mixture.weights)
    assert model.n_seen_ == twin.seen == count
    assert model._engine.is_plain == (name != "foreign")
    running = [view.place for view in model._engine.experts() if view.runs]
    assert running == [place for place, expert in enumerate(twin.experts) if expert.runs]
    assert model._engine.shares == twin.memory_shares.bytes
    if name != "classes" and name != "auto":
        scores = make().prequential(X, y)
        sign = -1 if codes is not None and name in ("race", "foreign") and y[0] == 1 else 1
        np.testing.assert_array_equal(sign * scores, np.concatenate(expected))
    one_by_one = make()
    for at in range(250):
        one_by_one.learn_one(X[at], None if y is None else y[at])
    whole = make().partial_fit(X[:250], None if y is None else y[:250])
    np.testing.assert_array_equal(one_by_one._engine.score(test)[0], whole._engine.score(test)[0])
