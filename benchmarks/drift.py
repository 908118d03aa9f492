"""Drift marks: false alarms on 20 stationary streams, delay on 20 streams whose concept changes once.

    python -m benchmarks.drift

A mark is right if it tells of a rise and its change lies within 200 events of the true one. Every other mark is a false
alarm. The delay is the number of events from the change to the mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from gristmill import KernelClassifier, KernelRegressor, Prepared
from gristmill.budgets import Merge
from gristmill.evaluate import prequential
from gristmill.kernels import Gaussian

#: streams of each kind
STREAMS = 10
EVENTS = 4000
CHANGE = 2000


@dataclass
class Found:
    """The marks of one stream."""

    false_alarms: int
    early: int  #: false alarms within the first 1,000 events
    delay: int | None  #: None if the change was not found


def classes(seed: int, drifts: bool) -> tuple[Any, Any]:
    """Two classes apart by a curved border, some labels wrong; a change turns the labels of one half round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(EVENTS, 2 + seed % 3))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.4
    if drifts:
        y = np.where((np.arange(EVENTS) >= CHANGE) & (X[:, 1] > 0), ~y, y)
    return X, y ^ (rng.random(EVENTS) < 0.03 * (seed % 5))


def numbers(seed: int, drifts: bool) -> tuple[Any, Any]:
    """A smooth function with noise; a change moves it."""
    rng = np.random.default_rng(100 + seed)
    X = rng.normal(size=(EVENTS, 1 + seed % 3))
    change = (np.arange(EVENTS) >= CHANGE) if drifts else np.zeros(EVENTS, dtype=bool)
    return X, np.sin(2 * X[:, 0]) * np.where(change, -1.0, 1.0) + 0.1 * (1 + seed % 4) * rng.normal(size=EVENTS)


TASKS: dict[str, tuple[Any, Any]] = {
    "classification": (classes, lambda: Prepared(KernelClassifier(Gaussian(0.5), budget=Merge(200)))),
    "regression": (numbers, lambda: Prepared(KernelRegressor(Gaussian(0.5), budget=Merge(200)))),
}


def found(task: str, seed: int, drifts: bool) -> Found:
    """The marks of a learner on one stream."""
    make, learner = TASKS[task]
    marks = prequential(learner(), make(seed, drifts), drift=True).drifts
    right = [m for m in marks if drifts and m["after"] > m["before"] and abs(m["since"] - CHANGE) <= 200]
    after = right[0]["event"] if right else EVENTS  # what follows a change, such as the fall, belongs to it
    wrong = [m for m in marks if m["event"] < after and m not in right]
    return Found(len(wrong), sum(m["event"] < 1000 for m in wrong), int(after) - CHANGE if right else None)


def table(streams: int = STREAMS) -> list[dict[str, Any]]:
    """One row a task and kind of stream."""
    rows = []
    for task in TASKS:
        for drifts in (False, True):
            all_found = [found(task, seed, drifts) for seed in range(streams)]
            delays = [one.delay for one in all_found if one.delay is not None]
            rows.append(
                {
                    "task": task,
                    "streams": f"{streams} {'with one change' if drifts else 'stationary'}",
                    "false alarms": sum(one.false_alarms for one in all_found),
                    "in the first 1,000": sum(one.early for one in all_found),
                    "found": f"{len(delays)} of {streams}" if drifts else "",
                    "median delay": median(delays) if delays else "",
                    "longest delay": max(delays, default=""),
                }
            )
    return rows


def main() -> None:
    """Print the table in Markdown."""
    rows = table()
    print(f"| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for row in rows:
        print(f"| {' | '.join(map(str, row.values()))} |")


if __name__ == "__main__":
    main()
