"""Errors of baselines along a stream: the most frequent class, the previous class or value, the running mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.labels import LabelTable, read_labels

#: in the order of the core
_KINDS = ("majority class", "no change", "running mean", "last value")
#: a target of whole numbers with more different ones than this is a number, not a class
MOST_CLASSES = 50


class TaskGuess(NamedTuple):
    """A task, and what the first targets are, from which it was guessed."""

    task: str
    reason: str


def task_of_target(labels: object) -> str:
    """The task of `guess_task`.

    Examples
    --------
    >>> from gristmill.evaluate.baselines import task_of_target
    >>> task_of_target([1, 2, 1, 2]), task_of_target([0.5, 1.25]), task_of_target(["a", "b"]), task_of_target(None)
    ('classification', 'regression', 'classification', 'novelty')
    """
    return guess_task(labels).task


def guess_task(labels: object) -> TaskGuess:
    """The task by the first targets: "classification" or "regression"; "novelty" where there are none.

    Words and truth values are classes; numbers with fractions are numbers. Whole numbers are numbers where more than
    `MOST_CLASSES` differ, where most rows differ, or where their frequencies rise to one peak and fall again, as those of
    counts and ratings do; they are classes otherwise.
    """
    if labels is None:
        return TaskGuess("novelty", "there is no target")
    values = np.asarray(labels)
    distinct, counts = np.unique(values, return_counts=True)
    if values.dtype.kind not in "iuf":
        what = _constant(labels) if len(distinct) == 1 else f"the target has {len(distinct):,} different values"
        return TaskGuess("classification", what)
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return TaskGuess("regression", "the target is a number with a fraction")
    many = len(distinct) > MOST_CLASSES or (len(values) > 20 and len(distinct) > 0.5 * len(values))
    if len(distinct) == 1:
        return TaskGuess("classification", _constant(values.astype(float)))
    what = f"the target has {len(distinct):,} whole numbers from {distinct[0]:g} to {distinct[-1]:g}"
    return TaskGuess("regression" if many or _are_counts(counts) else "classification", what)


def _constant(labels: Any) -> str:
    """Of a target with one value."""
    value = labels[0]
    shown = f"{value:g}" if isinstance(value, float) else repr(str(value))
    return f"the target is {shown} in the first {len(labels):,} rows" if len(labels) > 1 else f"the target is {shown}"


def _are_counts(frequencies: npt.NDArray[np.int64]) -> bool:
    """Whether frequencies of ascending whole numbers rise to a peak inside and fall to both ends, up to chance."""
    if len(frequencies) < 5 or frequencies.sum() < 100:
        return False
    peak = int(frequencies.argmax())
    if frequencies[0] > 0.2 * frequencies[peak] or frequencies[-1] > 0.2 * frequencies[peak]:
        return False
    chance = 2.0 * np.sqrt(frequencies + 1.0)
    rising = (frequencies[1:] >= (frequencies - chance)[:-1])[:peak]
    falling = ((frequencies - chance)[1:] <= frequencies[:-1])[peak:]
    return bool(rising.all() and falling.all())


class Baselines:
    """Errors of the baselines on a stream, chunk by chunk."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.events = 0
        self._labels = LabelTable()
        names = {"classification": ("majority class", "no change"), "regression": ("running mean", "last value")}
        self._counters = {name: _core.Baseline(_KINDS.index(name)) for name in names.get(task, ())}
        self._wrong = dict.fromkeys(self._counters, 0.0)

    def update(self, labels: Any) -> None:
        """Count the labels of a chunk."""
        if labels is None or not self._counters or len(labels) == 0:
            return
        if self.task == "regression":
            numbers = np.asarray(labels, dtype=np.float64)
        else:
            plain = read_labels("Baselines", labels, len(labels))
            self._labels = self._labels.extended(plain)
            numbers = self._labels.numbers(plain)
        for name, counter in self._counters.items():
            self._wrong[name] += self._errors(
                counter.learn(np.ascontiguousarray(numbers, dtype=np.float64), len(self._labels)), numbers
            )
        self.events += len(numbers)

    def _errors(self, batch: Any, numbers: object) -> float:
        if self.task == "regression":
            return float(np.abs(batch[:, 0] - numbers).sum())
        best = (batch[:, 0] > 0) if batch.shape[1] == 1 else batch.argmax(axis=1)
        return float((best != numbers).sum())

    @property
    def errors(self) -> dict[str, float]:
        """Share of mistakes, or mean absolute error, of each."""
        return {name: wrong / max(self.events, 1) for name, wrong in self._wrong.items()}
