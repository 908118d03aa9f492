"""One learner over one stream: what it said, how often it was right, and the processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case
from .entry import Entry, Player
from .ours import Prequential

#: Events before a detector is judged: some are fitted for the first time at the 500th.
WARM = 500
LAST = 1000
#: Seconds: what takes less is measured three times.
SHORT = 0.5


def run(entry: Entry, case: Case, tick: Callable[[int], None] = lambda done: None) -> dict[str, Any]:
    """The record of one run; an error of the learner is a result too. The time of a short run is the least of three."""
    try:
        player = entry.make(case)
        said, seconds = _answers(player, case, tick)
        if seconds < SHORT:
            seconds = min(seconds, *(_answers(entry.make(case), case, lambda done: None)[1] for _ in range(2)))
    except (ArithmeticError, ValueError) as failure:
        tick(len(case.y))
        return {"failed": f"{type(failure).__name__}: {failure}"}
    record = {
        "whole": measure(case.task, said, case.y, WARM if case.task == "novelty" else 0),
        "last": measure(case.task, said, case.y, max(0, len(case.y) - LAST)),
        "second half": measure(case.task, said, case.y, len(case.y) // 2),
        "microseconds": 1e6 * seconds / len(case.y),
    }
    if isinstance(player, Prequential):
        record["bytes"] = player.bytes
        if case.task == "novelty":
            record["alarms"] = float(np.mean(said[WARM:] < 0))
    return record


def _answers(player: Player, case: Case, tick: Callable[[int], None]) -> tuple[Any, float]:
    said: list[Any] = []
    seconds = 0.0
    for start in range(0, len(case.y), player.rows):
        part = slice(start, start + player.rows)
        ready = player.ready(case.X[part], case.y[part])
        began = time.process_time()
        answers = player.answer(ready)
        seconds += time.process_time() - began
        said.extend(answers)
        tick(len(said))
    if case.task == "classification":
        return np.array([str(label) for label in said]), seconds  # None, before any label, is wrong
    return np.array(said, dtype=float), seconds


def measure(task: str, said: Any, y: Any, start: int) -> float:
    """Error, mean absolute error or area under the curve, of the events from `start` on."""
    said, y = said[start:], y[start:]
    if task == "classification":
        return float(np.mean(said != np.array([str(label) for label in y.tolist()])))
    if task == "regression":
        return float(np.mean(np.abs(said - y)))
    if len(np.unique(y)) < 2 or not np.isfinite(said).all():
        return float("nan")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y == 1, said))
