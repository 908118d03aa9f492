"""Thousands of changed model files: each is a model that answers and learns, or is refused; none takes more than its share.

`make fuzz` runs 10,000 of them against a build with sanitizers (GRISTMILL_FUZZ says how many); here it is a tenth of that.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutations import Mutation

import gristmill
from gristmill import (
    AutoClassifier,
    AutoNovelty,
    AutoRegressor,
    DropOldest,
    Fleet,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    KeyedFleet,
    Merge,
    ModelFileError,
    Perceptron,
    Prepared,
    Project,
    Race,
    persist,
)
from tests.saved import models, write

COUNT = int(os.environ.get("GRISTMILL_FUZZ", "1000"))
#: learners beside those of tests/saved: name -> (learner, kind of stream)
FRESH = {
    "merge": (KernelClassifier(Gaussian(2.0), Perceptron(), Merge(12)), "three"),
    "merge-csr": (KernelClassifier(Gaussian(2.0), Perceptron(), Merge(12)), "three-csr"),
    "project-csr": (KernelClassifier(Gaussian(2.0), Perceptron(), Project(0.5)), "three-csr"),
    "defaults": (KernelClassifier(Gaussian(2.0), budget=DropOldest(9)), "four-words"),
    "regressor": (KernelRegressor(Gaussian(2.0), budget=Merge(12)), "number"),
    "density": (KernelNovelty(), "novelty"),
    "relevance": (Prepared(KernelClassifier(), scale="relevance"), "three-words"),
    "auto-classifier": (AutoClassifier(memory="200 kB", random_state=0), "three-words"),
    "auto-regressor": (AutoRegressor(memory="200 kB", random_state=0), "number"),
    "auto-novelty": (AutoNovelty(memory="200 kB", random_state=0), "novelty"),
    "race": (Race([KernelClassifier(budget=Merge(12)), Prepared(KernelClassifier(Gaussian(2.0)))]), "three-words"),
    "race-regressor": (Race([KernelRegressor(budget=Merge(12)), Prepared(KernelRegressor(Gaussian(2.0)))]), "number"),
}
#: fleets: what they are given differs, so each says how it learns and answers
FLEETS = {
    "fleet": Fleet(KernelClassifier(Gaussian(2.0), Perceptron(), DropOldest(5)), 3),
    "fleet-prepared": Fleet(Prepared(KernelClassifier(Gaussian(2.0), Perceptron(), Merge(5))), 3),
    "keyed": KeyedFleet(KernelClassifier(Gaussian(2.0), Perceptron(), DropOldest(5))),
    "keyed-centred": KeyedFleet(Prepared(KernelRegressor(Gaussian(2.0), budget=Merge(5)), target=None), center=True),
    "keyed-prepared": KeyedFleet(Prepared(KernelClassifier(Gaussian(2.0), Perceptron(), Merge(5)))),
}
NAMES = [*write.ALL, *FRESH, *FLEETS]
#: what a model with nonsense in it may answer; a crash is none of them
ANSWERS = (ValueError, TypeError, IndexError, OverflowError, AttributeError, ArithmeticError, RuntimeError)


def written(name: str, folder: Path) -> tuple[Path, str]:
    """The file of a fitted model, and the kind of stream that it learned from."""
    path = folder / f"{name}.safetensors"
    if name in write.ALL:
        learner, kind = write.fitted(name)
    elif name in FLEETS:
        kind, learner = ("keyed" if "keyed" in name else "fleet"), FLEETS[name]
        learn(learner, kind, 40)
    else:
        learner, kind = FRESH[name]
        models.learn(learner, *models.stream(kind, 40), kind)
    learner.save(path)
    return path, kind


def test_a_file_of_every_estimator_is_among_them():
    learners = [model for model, _ in (*write.ALL.values(), *FRESH.values())]
    assert {type(model).__name__ for model in (*learners, *FLEETS.values())} == set(persist.ESTIMATORS)


def learn(model: Any, kind: str, rows: int) -> None:
    if kind == "fleet":
        X, y = models.stream("binary", 3 * rows)
        model.partial_fit(X.reshape(rows, 3, -1), y.reshape(rows, 3))
    elif kind == "keyed":
        X, y = models.stream("binary", rows)
        model.partial_fit(np.arange(rows) % 7, X, y)
    else:
        X, y = models.stream(kind, rows)
        model.partial_fit(X) if y is None else model.partial_fit(X, y)


def ask(model: Any, kind: str, rows: int) -> None:
    if kind == "fleet":
        model.predict(models.stream("binary", 3)[0])
    elif kind == "keyed":
        model.predict(np.arange(rows) % 7, models.stream("binary", rows)[0])
    else:
        models.answers(model, models.stream(kind, rows)[0])


def peak() -> int:
    """The most memory that this process has had since `forget_peak`, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def causes(error: BaseException) -> list[BaseException]:
    return [] if error.__cause__ is None else [error.__cause__, *causes(error.__cause__)]


def use(model: object, kind: str, case: str) -> None:
    """What was loaded is asked, and goes on: it may refuse, but must not touch memory that is not its own."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for step in (ask, learn, ask):
            try:
                step(model, kind, 6)
            except ANSWERS:
                continue
            except MemoryError as error:
                raise AssertionError(f"{case}: using it asked for too much memory") from error


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_file_is_read_or_refused(name, tmp_path):
    path, kind = written(name, tmp_path)
    share = -(-COUNT // len(NAMES))
    forged, loaded = tmp_path / "forged.safetensors", 0
    for number in range(share):
        case = f"Mutation({path.name!r}, {number})"
        data = Mutation(path, number).bytes()
        forged.write_bytes(data)  # it stays behind where the interpreter does not survive it
        forget_peak()
        before = peak()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = gristmill.load(forged)
        except ModelFileError as error:
            model, reasons = None, causes(error)
        else:
            reasons = []
        assert not any(isinstance(reason, MemoryError) for reason in reasons), case
        assert peak() - before <= (1 << 25) + 64 * len(data), f"{case} took {peak() - before} bytes for {len(data)}"
        if model is not None:
            loaded += 1
            use(model, kind, case)
    assert share < 20 or 0 < loaded < share
