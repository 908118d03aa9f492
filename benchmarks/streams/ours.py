"""Our learners: one line each, made for the number of columns d. Only public names are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gristmill import (
    AutoClassifier,
    AutoNovelty,
    AutoRegressor,
    DropOldest,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    Laplacian,
    PassiveAggressive,
    Prepared,
    norma_novelty,
    passive_aggressive,
    passive_aggressive_regressor,
    projectron_pp,
)

from .cases import Case
from .entry import Entry

Build = Callable[[int], Any]

CLASSIFIERS: dict[str, Build] = {
    "AutoClassifier()": lambda d: AutoClassifier(),
    "KernelClassifier()": lambda d: Prepared(KernelClassifier()),
    "PA-I": lambda d: Prepared(passive_aggressive(Laplacian(3 / d))),
    "PA-I, size=1000": lambda d: Prepared(passive_aggressive(Laplacian(3 / d), size=1000)),
    "PA-I, newest 1000": lambda d: Prepared(KernelClassifier(Laplacian(3 / d), PassiveAggressive(), DropOldest(1000))),
    "Projectron++": lambda d: Prepared(projectron_pp(Laplacian(3 / d), tolerance=0.6)),
}

REGRESSORS: dict[str, Build] = {
    "AutoRegressor()": lambda d: AutoRegressor(),
    "KernelRegressor()": lambda d: Prepared(KernelRegressor()),
    "PA, size=1000": lambda d: Prepared(passive_aggressive_regressor(Laplacian(3 / d), variant=0, size=1000)),
    "PA, newest 1000": lambda d: Prepared(
        KernelRegressor(Laplacian(3 / d), PassiveAggressive(variant=0), DropOldest(1000))
    ),
}

DETECTORS: dict[str, Build] = {
    "AutoNovelty()": lambda d: AutoNovelty(),
    "KernelNovelty()": lambda d: Prepared(KernelNovelty()),
    "NORMA, size=1000": lambda d: Prepared(norma_novelty(Gaussian(2 / d), nu=0.2, rate=0.02, size=1000)),
}


class Prequential:
    """A learner of gristmill by `prequential`, in chunks as a reader of files gives them."""

    rows = 1000

    def __init__(self, model: Any, task: str) -> None:
        self.model = model
        self.task = task
        self.bytes = 0  # kept at the end of a chunk, at most

    def ready(self, X: Any, y: Any) -> Any:
        return X, None if self.task == "novelty" else y

    def answer(self, ready: Any) -> Any:
        scores = self.model.prequential(*ready)
        self.bytes = max(self.bytes, self.model.memory_bytes_)
        if self.task != "classification":
            return scores
        classes = self.model.classes_
        if len(classes) == 1:
            return np.repeat(classes, len(scores))
        return classes[(scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def entry(name: str, task: str, build: Build) -> Entry:
    def make(case: Case) -> Prequential:
        return Prequential(build(case.X.shape[1]), case.task)

    return Entry(name, task, "ours", name, make)


OURS = [
    entry(name, task, build)
    for task, built in (("classification", CLASSIFIERS), ("regression", REGRESSORS), ("novelty", DETECTORS))
    for name, build in built.items()
]
