"""An interrupt at any moment leaves `Prepared` before the chunk or after it: every call and return is tried in turn."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from interrupts import interrupted

import gristmill as gm

# A generator that is interrupted while it is closed reports what it cannot raise.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def budget() -> Any:
    return gm.DropOldest(8)


RNG = np.random.RandomState(0)
NUMBERS = RNG.normal(size=(400, 3))
MIXED = [{"a": float(a), "hue": ["red", "blue"][int(b > 0)], "on": bool(c > 0)} for a, b, c in NUMBERS]
WIDER = [{**row, "new": 1.0} if place >= 60 else row for place, row in enumerate(MIXED)]
LABELS, TARGETS = NUMBERS[:, 0] > 0, NUMBERS[:, 1] * 10 + 3
GAUSSIAN = gm.Gaussian(0.5)
CASES = {
    "classifier": (lambda: gm.Prepared(gm.KernelClassifier(GAUSSIAN, budget=budget())), NUMBERS, LABELS),
    "mixed columns": (lambda: gm.Prepared(gm.KernelClassifier(GAUSSIAN, budget=budget())), MIXED, LABELS),
    "a new column": (lambda: gm.Prepared(gm.KernelClassifier(GAUSSIAN, budget=budget())), WIDER, LABELS),
    "targets": (lambda: gm.Prepared(gm.KernelRegressor(GAUSSIAN, budget=budget())), NUMBERS, TARGETS),
    "rank": (lambda: gm.Prepared(gm.KernelClassifier(GAUSSIAN, budget=budget()), scale="rank"), NUMBERS, LABELS),
    "relevance": (
        lambda: gm.Prepared(gm.KernelClassifier(GAUSSIAN, budget=budget()), scale="relevance"), NUMBERS, LABELS
    ),
    "novelty": (lambda: gm.Prepared(gm.KernelNovelty(GAUSSIAN, budget=budget())), NUMBERS, None),
    "race": (lambda: gm.Prepared(gm.AutoRegressor(memory="200 kB")), NUMBERS, TARGETS),
}  # fmt: skip


def cut(values: Any, start: int, stop: int) -> Any:
    return None if values is None else values[start:stop]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("start", "stop"), [(62, 66), (58, 61), (60, 61)], ids=["chunk", "edge", "single"])
def test_a_chunk_is_learned_whole_or_not_at_all(case: str, start: int, stop: int) -> None:
    make, X, y = CASES[case]
    begun = make().partial_fit(X[:start], cut(y, 0, start))
    before = begun.to_bytes()
    after = copy.copy(begun).partial_fit(X[start:stop], cut(y, start, stop)).to_bytes()
    assert before != after
    outcomes, moment = set(), 1
    while True:
        model = copy.copy(begun)
        if not interrupted(lambda model=model: model.partial_fit(X[start:stop], cut(y, start, stop)), moment):
            break
        found = model.to_bytes()
        assert found in (before, after), f"torn by an interrupt at moment {moment}"
        if found == before:  # the retry gives the model that was never interrupted
            assert model.partial_fit(X[start:stop], cut(y, start, stop)).to_bytes() == after
        outcomes.add(found)
        moment += 1 if moment < 300 else 7
    assert before in outcomes


@pytest.mark.parametrize("case", ["classifier", "targets", "novelty", "race"])
def test_a_single_sample_is_learned_whole_or_not_at_all(case: str) -> None:
    make, X, y = CASES[case]
    begun = make().partial_fit(X[:70], cut(y, 0, 70))
    begun.learn_one(X[70], None if y is None else y[70])
    before = begun.to_bytes()
    one = X[71], None if y is None else y[71]
    done = copy.copy(begun)
    done.learn_one(*one)
    after, moment, outcomes = done.to_bytes(), 1, set()
    while True:
        model = copy.copy(begun)
        if not interrupted(lambda model=model: model.learn_one(*one), moment):
            break
        found = model.to_bytes()
        assert found in (before, after), f"torn by an interrupt at moment {moment}"
        outcomes.add(found)
        moment += 1
    assert outcomes == {before, after}


@pytest.mark.parametrize("case", ["mixed columns", "a new column", "targets", "rank", "race"])
def test_a_signal_at_any_moment_beside_a_thread_that_reads_leaves_a_whole_model(case: str) -> None:
    """A handler of a timer raises at random moments of chunks and single samples; nothing is masked."""
    import random
    import signal
    import threading

    make, X, y = CASES[case]
    model = make().partial_fit(X[:50], cut(y, 0, 50))
    steps = [(50, 66), (66, 67), (67, 68), (68, 90), (90, 91), (91, 140)]
    wanted, twin = [model.to_bytes()], copy.copy(model)
    for start, stop in steps:
        twin.partial_fit(X[start:stop], cut(y, start, stop))
        wanted.append(twin.to_bytes())
    end, rng, armed = threading.Event(), random.Random(0), False

    def ask() -> None:
        while not end.is_set():
            model.predict(X[:4])
            model.predict_one(X[0])

    def interrupt(*_: Any) -> None:
        if armed:
            raise KeyboardInterrupt

    reader = threading.Thread(target=ask)
    reader.start()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for place, (start, stop) in enumerate(steps):
            for _ in range(12):
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-3))
                    if stop == start + 1:
                        model.learn_one(X[start], None if y is None else y[start])
                    else:
                        model.partial_fit(X[start:stop], cut(y, start, stop))
                    armed = False
                except KeyboardInterrupt:
                    armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
                found = model.to_bytes()
                assert found in (wanted[place], wanted[place + 1]), "torn"
                if found == wanted[place + 1]:
                    break
            else:
                model.partial_fit(X[start:stop], cut(y, start, stop))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        end.set()
        reader.join()
    assert model.to_bytes() == wanted[-1]
