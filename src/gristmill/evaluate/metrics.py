"""Metrics of a stream: tallies in constant memory that know their value at any time."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.types import Json


class PredictionBatch(NamedTuple):
    """Predictions of samples before they were learned, and their true labels."""

    y: Any  #: true labels or targets; None in a stream without labels
    predicted: npt.NDArray[Any]  #: labels, targets, or -1 (alarm) and +1
    scores: npt.NDArray[np.float64]  #: as `decision_function` gives them
    classes: npt.NDArray[Any] | None  #: the labels of a classifier, sorted

    def part(self, start: int, stop: int) -> PredictionBatch:
        y = None if self.y is None else self.y[start:stop]
        return PredictionBatch(y, self.predicted[start:stop], self.scores[start:stop], self.classes)


class Tally:
    """Base of the metrics. `state` is plain JSON, so that a run can be interrupted and continued."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    #: True if a larger value is better
    greater: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True

    def __init__(self) -> None:
        self.state: Json = {}

    def add(self, batch: PredictionBatch) -> None:
        raise NotImplementedError

    def value(self) -> float:
        raise NotImplementedError

    def _count(self, key: str, amount: float) -> None:
        self.state[key] = self.state.get(key, 0) + amount

    def _ratio(self, part: str = "sum", whole: str = "n") -> float:
        total = self.state.get(whole, 0)
        return float(self.state.get(part, 0) / total) if total else float("nan")


class Accuracy(Tally):
    name = "accuracy"
    tasks = ("classification",)
    greater = True

    def add(self, batch: PredictionBatch) -> None:
        self._count("sum", int(np.sum(batch.predicted == batch.y)))
        self._count("n", len(batch.y))

    def value(self) -> float:
        return self._ratio()


class Error(Accuracy):
    """1 - accuracy: the share of wrong labels."""

    name = "error"
    greater = False

    def value(self) -> float:
        return 1.0 - self._ratio()


class BalancedAccuracy(Tally):
    """Mean recall over the classes seen so far."""

    name = "balanced_accuracy"
    tasks = ("classification",)
    greater = True

    def add(self, batch: PredictionBatch) -> None:
        right = batch.predicted == batch.y
        for label in np.unique(batch.y):
            of_class = batch.y == label
            entry = self.state.setdefault(str(label), [0, 0])
            entry[0] += int(np.sum(right & of_class))
            entry[1] += int(np.sum(of_class))

    def value(self) -> float:
        shares = [right / count for right, count in self.state.values()]
        return float(np.mean(shares)) if shares else float("nan")


class LogLoss(Tally):
    """Mean of -log p(y), p the logistic function (two classes) or the softmax (more) of the scores."""

    name = "log_loss"
    tasks = ("classification",)

    def add(self, batch: PredictionBatch) -> None:
        assert batch.classes is not None
        self._count("n", len(batch.y))
        if batch.scores.ndim == 1:
            sign = np.where(batch.y == batch.classes[-1], 1.0, -1.0)
            losses = np.logaddexp(0.0, -sign * batch.scores)
        else:
            column = np.searchsorted(batch.classes, batch.y)
            chosen = batch.scores[np.arange(len(column)), column]
            losses = np.logaddexp.reduce(batch.scores, axis=1) - chosen
        self._count("sum", float(losses.sum()))

    def value(self) -> float:
        return self._ratio()


class RocAuc(Tally):
    """Area under the ROC curve: how often a random event of the upper class outscores one of the lower.

    Constant memory: scores are counted in bins of s / (1 + |s|) of width 2^-14, and two of one bin count as a
    tie.
    """

    name = "roc_auc"
    tasks = ("classification", "novelty")
    greater = True
    bins: ClassVar[int] = 1 << 15

    def __init__(self) -> None:
        super().__init__()
        self.state = {"low": {}, "high": {}}

    def add(self, batch: PredictionBatch) -> None:
        if batch.scores.ndim != 1:
            raise ValueError("roc_auc is defined for two classes; this model has more: use balanced_accuracy")
        # Novelty scores are low at an alarm, and so are the labels of scikit-learn's outlier API: -1 and +1.
        positive = batch.y == (1 if batch.classes is None else batch.classes[-1])
        squashed = batch.scores / (1.0 + np.abs(batch.scores))
        bin_of = np.minimum(((squashed + 1.0) * (self.bins / 2)).astype(int), self.bins - 1)
        for key, rows in (("low", ~positive), ("high", positive)):
            found, counts = np.unique(bin_of[rows], return_counts=True)
            tally = self.state[key]
            for place, count in zip(found.tolist(), counts.tolist(), strict=True):
                tally[str(place)] = tally.get(str(place), 0) + count

    def value(self) -> float:
        low, high = (self._histogram(key) for key in ("low", "high"))
        if not low.sum() or not high.sum():
            return float("nan")
        below = np.cumsum(low) - low
        return float(np.dot(high, below + low / 2) / (low.sum() * high.sum()))

    def _histogram(self, key: str) -> npt.NDArray[np.float64]:
        counts = np.zeros(self.bins)
        for place, count in self.state[key].items():
            counts[int(place)] = count
        return counts


class MeanAbsoluteError(Tally):
    name = "mae"
    tasks = ("regression",)

    def add(self, batch: PredictionBatch) -> None:
        self._count("sum", float(np.abs(batch.y - batch.predicted).sum()))
        self._count("n", len(batch.y))

    def value(self) -> float:
        return self._ratio()


class RootMeanSquaredError(Tally):
    name = "rmse"
    tasks = ("regression",)

    def add(self, batch: PredictionBatch) -> None:
        self._count("sum", float(np.square(batch.y - batch.predicted).sum()))
        self._count("n", len(batch.y))

    def value(self) -> float:
        return float(np.sqrt(self._ratio()))


class AlarmRate(Tally):
    """The share of events that were alarms."""

    name = "alarm_rate"
    tasks = ("novelty",)
    needs_labels = False

    def add(self, batch: PredictionBatch) -> None:
        self._count("sum", int(np.sum(batch.predicted == -1)))
        self._count("n", len(batch.predicted))

    def value(self) -> float:
        return self._ratio()


_ALL: dict[str, type[Tally]] = {
    tally.name: tally
    for tally in (
        Accuracy,
        Error,
        BalancedAccuracy,
        LogLoss,
        RocAuc,
        MeanAbsoluteError,
        RootMeanSquaredError,
        AlarmRate,
    )
}
#: scikit-learn's names for the same things
_ALIASES = {
    "neg_log_loss": "log_loss",
    "mean_absolute_error": "mae",
    "neg_mean_absolute_error": "mae",
    "root_mean_squared_error": "rmse",
    "neg_root_mean_squared_error": "rmse",
}
_DEFAULT = {"classification": ("error",), "regression": ("mae",), "novelty": ("alarm_rate",)}


def find(name: str) -> type[Tally]:
    """The metric of a name; an unknown one is refused with the nearest known."""
    known = [*_ALL, *_ALIASES]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_ALL)}"
        raise ValueError(f"unknown metric {name!r}{hint}")
    return _ALL[_ALIASES.get(name, name)]


def choose(names: Any, task: str) -> list[type[Tally]]:
    """The metrics of a run; those of the task if none are named."""
    chosen = [find(name) for name in ([names] if isinstance(names, str) else names or _DEFAULT[task])]
    for tally in chosen:
        if task not in tally.tasks:
            fitting = [name for name, other in _ALL.items() if task in other.tasks]
            raise ValueError(f"{tally.name} is a metric for {' and '.join(tally.tasks)}, not for {task}: use {fitting}")
    return chosen
