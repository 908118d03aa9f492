"""What costs nothing, along a stream: how wrong most frequent class, class before, mean and value before are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.labels import LabelTable, read_labels
from ..race.baselines import Counts, Last, Mean, Repeats

#: a target of whole numbers with more different ones than this is a number, not a class
MOST_CLASSES = 50


def task_of_target(labels: Any) -> str:
    """What a target is, by its first values: "classification" or "regression"; "novelty" where there is none.

    Words and truth values are classes; numbers with fractions are numbers; whole numbers are classes where few differ.

    Examples
    --------
    >>> from gristmill.evaluate.baselines import task_of_target
    >>> task_of_target([1, 2, 1, 2]), task_of_target([0.5, 1.25]), task_of_target(["a", "b"]), task_of_target(None)
    ('classification', 'regression', 'classification', 'novelty')
    """
    if labels is None:
        return "novelty"
    values = np.asarray(labels)
    if values.dtype.kind not in "iuf":
        return "classification"
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return "regression"
    distinct = len(np.unique(values))
    many = distinct > MOST_CLASSES or (len(values) > 20 and distinct > 0.5 * len(values))
    return "regression" if many else "classification"


class Baselines:
    """Errors of the baselines on a stream, chunk by chunk."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.events = 0
        self._labels = LabelTable()
        names = {"classification": ("majority class", "no change"), "regression": ("running mean", "last value")}
        makers: dict[str, Any] = {
            "majority class": Counts, "no change": Repeats, "running mean": Mean, "last value": Last,
        }  # fmt: skip
        self._counters = {name: makers[name]() for name in names.get(task, ())}
        self._wrong = dict.fromkeys(self._counters, 0.0)

    def update(self, labels: Any) -> None:
        """Take in the labels of a chunk."""
        if labels is None or not self._counters or len(labels) == 0:
            return
        if self.task == "regression":
            numbers = np.asarray(labels, dtype=np.float64)
        else:
            plain = read_labels("Baselines", labels, len(labels))
            self._labels = self._labels.extended(plain)
            numbers = self._labels.numbers(plain)
        for name, counter in self._counters.items():
            self._wrong[name] += self._errors(counter.learn(numbers, len(self._labels)), numbers)
        self.events += len(numbers)

    def _errors(self, batch: Any, numbers: Any) -> float:
        if self.task == "regression":
            return float(np.abs(batch[:, 0] - numbers).sum())
        best = (batch[:, 0] > 0) if batch.shape[1] == 1 else batch.argmax(axis=1)
        return float((best != numbers).sum())

    @property
    def errors(self) -> dict[str, float]:
        """Share of mistakes, or mean absolute error, of each."""
        return {name: wrong / max(self.events, 1) for name, wrong in self._wrong.items()}
