"""Metrics of a stream: tallies in constant memory that know their value at any time; thresholds by costs or F1."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.ranges import is_real
from .._common.types import Json, Labels, Table


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


class AveragePrecision(RocAuc):
    """Mean precision over the events of the upper class (two classes), or over the anomalies: for rare events.

    Sum of the precision at each threshold times the recall it adds, as in scikit-learn. Constant memory, by bins as in
    `roc_auc`.
    """

    name = "average_precision"

    def value(self) -> float:
        low, high = (self._histogram(key) for key in ("low", "high"))
        wanted, others = (high, low) if self._upper else (low[::-1], high[::-1])
        if not wanted.sum():
            return float("nan")
        found = np.cumsum(wanted[::-1])
        precision = found / np.maximum(found + np.cumsum(others[::-1]), 1)
        return float(np.dot(wanted[::-1], precision) / found[-1])

    def add(self, batch: PredictionBatch) -> None:
        if batch.scores.ndim != 1:
            raise ValueError("average_precision is defined for two classes; this model has more: use balanced_accuracy")
        super().add(batch)
        self.state.update(upper={} if batch.classes is None else {"yes": 1})

    @property
    def _upper(self) -> bool:
        return bool(self.state.get("upper", True))


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
        AveragePrecision,
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


@dataclasses.dataclass(frozen=True)
class Threshold:
    """What `threshold` found.

    Attributes
    ----------
    cut : float
        The upper class is predicted for scores of at least so much.
    value : float
        The mean cost per event, or F1, with this cut on the events that it was learned from.
    at_zero : float
        The same with the cut at 0, which is that of `predict`.
    """

    cut: float
    value: float
    at_zero: float

    def predict(self, model: Any, X: Table) -> Labels:
        """The class of each event by this cut."""
        return model.classes_[(np.asarray(model.decision_function(X)) >= self.cut).astype(int)]


def threshold(scores: Labels, y: Labels, *, cost: tuple[float, float] | None = None) -> Threshold:
    """Learn from prequential scores at which score the upper of two classes is best predicted.

    The scores were made before each event was learned, so that the cut is not fitted to what the model has seen.

    Parameters
    ----------
    scores : array
        One number an event, as `prequential` returns it.
    y : labels
        The upper class is the larger of the two.
    cost : (float, float), optional
        What a false alarm and what a miss costs: the cut has the lowest mean cost. By default it has the largest F1 of the
        upper class.

    Returns
    -------
    Threshold

    References
    ----------
    C. Elkan, The Foundations of Cost-Sensitive Learning, IJCAI 2001.
    Z. Lipton, C. Elkan, B. Naryanaswamy, Optimal Thresholding of Classifiers to Maximize F1 Measure, ECML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import AutoClassifier
    >>> from gristmill.evaluate import threshold
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = X[:, 0] + rng.normal(size=3000) > 2.5
    >>> model = AutoClassifier()
    >>> found = threshold(model.prequential(X, y), y, cost=(1, 10))
    >>> found.cut < 0, found.value < found.at_zero
    (True, True)
    """
    score, labels = np.asarray(scores, dtype=np.float64), np.asarray(y)
    if score.ndim != 1 or labels.shape != score.shape:
        raise ValueError(
            f"threshold: scores and y must be one number and one label an event, got shapes {score.shape} and {labels.shape}"
        )
    if not np.isfinite(score).all():
        raise ValueError(f"threshold: score {int(np.flatnonzero(~np.isfinite(score))[0])} is not finite")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(f"threshold: y must have two classes, got {len(classes)}")
    upper = labels == classes[-1]
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    # With the k highest scores predicted as the upper class, for each k that does not split equal scores.
    hits = np.concatenate([[0], np.cumsum(upper[order])])
    alarms = np.arange(len(score) + 1)
    whole = np.concatenate([[True], ranked[1:] != ranked[:-1], [True]])
    if cost is None:
        values = 2.0 * hits / np.maximum(alarms + upper.sum(), 1)
        best = int(np.argmax(np.where(whole, values, -np.inf)))
    else:
        alarm, miss = _costs(cost)
        values = (alarm * (alarms - hits) + miss * (upper.sum() - hits)) / len(score)
        best = int(np.argmin(np.where(whole, values, np.inf)))
    if best == 0:
        cut = float(np.nextafter(ranked[0], np.inf))
    elif best == len(ranked):
        cut = float(ranked[-1])
    else:
        cut = float((ranked[best - 1] + ranked[best]) / 2)
        cut = cut if cut > ranked[best] else float(ranked[best - 1])
    return Threshold(cut, float(values[best]), float(values[int((score >= 0).sum())]))


def _costs(cost: Sequence[float]) -> tuple[float, float]:
    pair = isinstance(cost, tuple | list) and len(cost) == 2
    if not pair or not all(is_real(each) and each >= 0 for each in cost) or not sum(cost) > 0:
        raise ValueError(f"threshold: cost must be two numbers >= 0, of a false alarm and of a miss, got {cost!r}")
    return float(cost[0]), float(cost[1])
