"""Chunks of every public learner that an error ends at a random moment: the model is before the chunk or after it.

As a program, with `allocations.cpp` loaded before the C++ library: `sudden.py MOMENTS NAME ...` tries a lack of memory, and
prints a line per learner.
"""

from __future__ import annotations

import copy
import ctypes
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import public_learners
from scipy.sparse import csr_array

from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropSmallest,
    Forget,
    Gaussian,
    Hinge,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Linear,
    Merge,
    Perceptron,
    Prepared,
    Project,
    Unbounded,
    Window,
)

#: compositions of the kernel learner beside the learners as they come
COMPOSED: dict[str, Any] = {
    "project": KernelClassifier(Gaussian(2.0), Perceptron(), Project(0.3, 30)),
    "average": KernelClassifier(Laplacian(1.0), Perceptron(), Unbounded(), average=True),
    "additive": KernelClassifier(Additive(Laplacian(1.0)), Perceptron(), DropOldest(20)),
    "window": KernelClassifier(Gaussian(2.0), SGD(Hinge(), 0.5, 0.01), Window(40)),
    "forget": KernelClassifier(Gaussian(2.0), Perceptron(), Forget(20)),
    "sparse": KernelClassifier(Linear(), Perceptron(), DropSmallest(20)),
    "sparse, unbounded": KernelClassifier(Gaussian(2.0), budget=Unbounded()),
    "table": Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(30))),
    "ranks": Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(30)), scale="rank"),
    "targets": Prepared(KernelRegressor(Gaussian(0.3), budget=DropOldest(30))),
}
NAMES = [*public_learners.public(), *COMPOSED]
Part = tuple[Any, Any]


class Trial:
    """A learner that has begun, a chunk, and its state before and after the chunk."""

    def __init__(self, name: str) -> None:
        X, y = public_learners.stream("TargetsRegressor" if name == "targets" else name, 140)
        if name.startswith("sparse"):
            X = csr_array(np.where(X > 0.4, X, 0.0))
        cut: Callable[[int, int], Part] = lambda start, stop: (X[start:stop], None if y is None else y[start:stop])  # noqa: E731
        self.rows = X[:4]
        made = copy.deepcopy(COMPOSED[name]) if name in COMPOSED else public_learners.made(name)
        self.begun, self.part = made.partial_fit(*cut(0, 40)), cut(40, 140)
        self.before = pickle.dumps(self.fresh())
        start = time.perf_counter()
        after = self.fresh().partial_fit(*self.part)
        self.seconds = time.perf_counter() - start
        self.after = pickle.dumps(after)
        assert self.before != self.after

    def fresh(self) -> Any:
        return copy.copy(self.begun)

    def outcome(self, model: Any) -> str:
        """Whether the model is before the chunk, from where it learns the chunk as ever, or after it."""
        found = pickle.dumps(model)
        if found == self.after:
            return "after"
        if found != self.before:
            return "torn"
        return "before" if pickle.dumps(model.partial_fit(*self.part)) == self.after else "before, and lost"


# ---- signals --------------------------------------------------------------------------------------------------------


class Terminated(BaseException):
    """What a handler of SIGTERM raises."""


def terminate(*_: Any) -> None:
    raise Terminated


def signalled(name: str, kind: signal.Signals, moments: int, seed: int = 0) -> Counter[str]:
    """Outcomes of chunks that a signal with a handler that raises ended, `moments` of them, while another thread reads."""
    trial, rng, outcomes = Trial(name), random.Random(seed), Counter[str]()
    present, end, wrong = [trial.fresh()], threading.Event(), list[BaseException]()

    def read() -> None:
        while not end.is_set():
            try:
                public_learners.answers(present[0], trial.rows)
            except Exception as error:
                wrong.append(error)
            time.sleep(1e-4)

    armed, span = False, 1.5 * trial.seconds  # moments up to `span`, which follows the time that a chunk takes

    def ring(*_: Any) -> None:
        if armed:
            signal.raise_signal(kind)

    handler = signal.default_int_handler if kind == signal.SIGINT else terminate
    before = {number: signal.getsignal(number) for number in (kind, signal.SIGALRM)}
    signal.signal(kind, handler)
    signal.signal(signal.SIGALRM, ring)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(100 * moments):
            if outcomes.total() == moments:
                break
            present[0] = model = trial.fresh()
            learn, raised = model.partial_fit, True
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, span))
            try:
                armed = True
                learn(*trial.part)
                armed = raised = False
            except (KeyboardInterrupt, Terminated):
                armed = False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            span = max(2e-6, span * (1.1 if raised else 0.9))
            if raised:
                outcomes[trial.outcome(model)] += 1
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, old in before.items():
            signal.signal(number, old)
        end.set()
        reader.join()
    if wrong:
        raise wrong[0]
    return outcomes


# ---- lack of memory -------------------------------------------------------------------------------------------------

NEVER = 2**60
LARGE = 1024  #: bytes of the allocations that fail together


def without_memory(name: str, moments: int, seed: int = 0) -> Counter[str]:
    """Outcomes of chunks that lacked memory at a random allocation: this one alone failed, or all large ones from it on."""
    library = ctypes.CDLL(None)
    fail, stop = library.fail_allocations, library.stop_counting
    fail.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_size_t]
    stop.restype = ctypes.c_long
    trial, rng, outcomes = Trial(name), random.Random(seed), Counter[str]()
    counts = []
    for least in (0, LARGE):
        learn = trial.fresh().partial_fit
        fail(NEVER, 0, least)
        learn(*trial.part)
        counts.append(stop())
    for moment in range(moments):
        every = moment % 2 == 1 and counts[1] > 0
        model = trial.fresh()
        learn = model.partial_fit
        fail(rng.randrange(counts[every]), NEVER if every else 1, LARGE if every else 0)
        try:
            learn(*trial.part)
        except MemoryError:
            pass
        finally:
            stop()
        fail(rng.randrange(10 + 2 * counts[0] // 3), 1, 0)
        try:
            model.saved_fields()  # no copy: nanobind ends the process if the arguments of a new core lack memory
        except MemoryError:
            pass
        finally:
            stop()
        outcomes[trial.outcome(model)] += 1
    return outcomes


def main(moments: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    for name in names:
        print(name, dict(without_memory(name, int(moments))), sep="\t", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
