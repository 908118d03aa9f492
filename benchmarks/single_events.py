"""Single events against chunks, in one run, in processor time: `python -m benchmarks.single_events`.

Every line is a ratio or a time with its floor. One core, unless a line says two threads.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gristmill as gm

from .data import arrays

FIRST, LAST = 3000, 5000


def took(work: Callable[[], Any]) -> float:
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def least(make: Callable[[], Callable[[], Any]], often: int = 3) -> float:
    """The least of several runs, each of a fresh piece of work."""
    return min(took(make()) for _ in range(often))


def stream() -> tuple[Any, Any, Any]:
    X = np.random.RandomState(0).normal(size=(20_000, 8))
    return X, X[:, 0] * X[:, 1] + 0.5 * X[:, 7] > 0, X[:, 0] * X[:, 1] + X[:, 2]


def line(what: str, found: float, unit: str, floor: str) -> None:
    print(f"{what:<58} {found:9.2f} {unit:<4} ({floor})", flush=True)


def learners() -> None:
    """learn_one against a chunk, predict_one against a row of predict."""
    X, y, t = stream()
    for kind, labels in ((gm.AutoClassifier, y), (gm.AutoRegressor, t), (gm.AutoNovelty, None)):
        some = slice(FIRST, LAST)
        told = None if labels is None else labels[some]

        def begun(kind: Any = kind, labels: Any = labels) -> Any:
            return kind().partial_fit(X[:FIRST], None if labels is None else labels[:FIRST])

        def chunk(begun: Any = begun, told: Any = told, some: slice = some) -> Callable[[], Any]:
            model = begun()
            return lambda: model.partial_fit(X[some], told)

        def singly(begun: Any = begun, told: Any = told, some: slice = some) -> Callable[[], Any]:
            model, events = begun(), list(X[some])
            answers = [None] * len(events) if told is None else list(told)
            return lambda: [model.learn_one(x, y) for x, y in zip(events, answers, strict=True)]

        whole, one = least(chunk), least(singly)
        count, name, model = LAST - FIRST, kind.__name__, begun()
        line(f"{name}: learn_one, events {FIRST} to {LAST}", one / count * 1e6, "us", "")
        line(f"{name}: learn_one / the same events in one chunk", one / whole, "x", "at most 1.5")
        rows = least(lambda model=model: lambda: model.predict(X[:2000]))
        each = least(lambda model=model: lambda: [model.predict_one(x) for x in X[:2000]])
        line(f"{name}: predict_one", each / 2000 * 1e6, "us", "at most 8, or 2.5 rows of predict")
        line(f"{name}: predict_one / a row of predict", each / rows, "x", "at most 2.5, or 8 us")


def alone() -> None:
    """One learner, with 100 points."""
    X, y, _ = stream()
    model = gm.KernelClassifier(budget=gm.Merge(100)).partial_fit(X[:FIRST], y[:FIRST])
    rows = list(zip(X[FIRST:LAST], y[FIRST:LAST], strict=True))
    found = took(lambda: [model.learn_one(x, label) for x, label in rows])
    line("KernelClassifier, 100 points: learn_one", found / len(rows) * 1e6, "us", "")


def table() -> None:
    """A dict of ten mixed columns."""
    rng = np.random.RandomState(1)
    words = ["red", "green", "blue"]
    events = [
        {**{f"n{i}": float(v) for i, v in enumerate(rng.normal(size=6))},
         "hue": words[rng.randint(3)], "kind": words[rng.randint(3)],
         "wet": bool(rng.randint(2)), "dry": bool(rng.randint(2))}
        for _ in range(3000)
    ]  # fmt: skip
    y = [event["n0"] * event["n1"] > 0 for event in events]
    model = gm.Prepared(gm.KernelClassifier()).partial_fit(events[:1000], y[:1000])
    found = took(lambda: [model.learn_one(x, label) for x, label in zip(events[1000:], y[1000:], strict=True)])
    line("Prepared(KernelClassifier()): learn_one of a dict", found / 2000 * 1e6, "us", "at most 12")


def river() -> None:
    """River's progressive_val_score against a Hoeffding adaptive tree."""
    from gristmill.river import Classifier
    from river import datasets, evaluate, metrics, tree

    X, y = arrays("elec2")
    streams = {
        "elec2": [
            ({f"x{c}": float(v) for c, v in enumerate(x)}, label) for x, label in zip(X, y.tolist(), strict=True)
        ],
        "Phishing": list(datasets.Phishing()),
    }
    for name, events in streams.items():

        def validated(model: Any, events: Any = events) -> Callable[[], Any]:
            return lambda: evaluate.progressive_val_score(events, model, metrics.Accuracy())

        ours = least(lambda: validated(Classifier(gm.AutoClassifier())))
        theirs = least(lambda: validated(tree.HoeffdingAdaptiveTreeClassifier(seed=0)))
        line(f"River, {name}: AutoClassifier / HoeffdingAdaptiveTree", ours / theirs, "x", "at most 1")


def threads() -> None:
    """Time on the clock: the one line where two cores count."""
    X, y, _ = stream()
    found = []
    for jobs in (1, 2):
        times = []
        for _ in range(3):
            model = gm.AutoClassifier(n_jobs=jobs)
            start = time.perf_counter()
            model.partial_fit(X, y)
            times.append(time.perf_counter() - start)
        found.append(min(times))
    line("AutoClassifier, 8 columns, 20,000 events: 1 thread / 2", found[0] / found[1], "x", "at least 1.5")


def beginning() -> None:
    X, y, _ = stream()
    gm.AutoClassifier().learn_one(X[0], y[0])
    line(
        "AutoClassifier(): first event",
        least(lambda: lambda: gm.AutoClassifier().learn_one(X[0], y[0]), 9) * 1e3,
        "ms",
        "at most 1",
    )
    program = "import time; s = time.process_time(); import gristmill; print(time.process_time() - s)"
    times = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    line("import gristmill", min(times) * 1e3, "ms", "no more than before")


if __name__ == "__main__":
    learners()
    alone()
    table()
    river()
    threads()
    beginning()
