"""Tasks: how labels become the numbers of a core, and how its scores become answers.

An estimator holds one task. It encodes labels, weighs samples by their class, shows scores in the order of the labels,
and names the answers. Whatever a task needs of the model is an argument, so that one object serves all models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common import labels as _labels
from .._common.labels import LabelTable, LabelView

Scores = npt.NDArray[np.float64]
#: None, "balanced" (weighed by the core), or numbers by label
ClassWeight = Literal["balanced"] | Mapping[object, float] | None
TaskName = Literal["classification", "regression", "novelty", "structured"]


class Encoded(NamedTuple):
    """Labels of a chunk as the core takes them."""

    table: LabelTable  # the labels known after the chunk
    numbers: Scores  # the core's number of each sample; a row of them for several targets
    known: int  # number of classes known before the first sample


class Task:
    """Base of the tasks: numbers as they are, one score a sample."""

    name: ClassVar[TaskName]

    def encoded(self, owner: str, table: LabelTable, y: object, count: int, classes: object) -> Encoded:
        """The numbers of y, checked; `owner` is the name of the estimator for error messages."""
        raise NotImplementedError

    def number(self, table: LabelTable, y: object) -> float | None:
        """The number of one known label, or None where only `encoded` can tell."""
        return None

    def weighed(self, given: ClassWeight, table: LabelTable, numbers: Scores, weights: Scores | None) -> Scores | None:
        """The weights of samples, those of their classes included."""
        return weights

    def weight(self, given: ClassWeight, y: object) -> float:
        """Weight of one sample whose label is known."""
        return 1.0

    def with_new_classes_last(self, scores: Scores, numbers: Scores, known: int) -> Scores:
        """Scores of a chunk, with those of classes that come later in it below all others; known: classes before it."""
        return scores

    def shown(self, scores: Scores, view: LabelView) -> Scores:
        """Scores of the core, (rows, outputs), as they are shown outside."""
        return scores if scores.ndim == 1 else scores[:, 0]

    def outputs(self, values: Scores, view: LabelView) -> Scores:
        """Coefficients, an output of the core in each column, as they are shown outside."""
        return values

    def slopes(self, slopes: Scores, view: LabelView) -> Scores:
        """Slopes of the outputs of the core, (rows, outputs, columns), as they are shown outside."""
        return self.shown(slopes, view)


class Classification(Task):
    """Labels are classes, coded in the order in which they came, shown in sorted order."""

    name = "classification"

    def encoded(self, owner: str, table: LabelTable, y: object, count: int, classes: object) -> Encoded:
        return Encoded(*_labels.coded(owner, table, y, count, classes))

    def number(self, table: LabelTable, y: object) -> float | None:
        try:
            return table.codes.get(y)
        except TypeError:  # not a label: full validation raises
            return None

    def weighed(self, given: ClassWeight, table: LabelTable, numbers: Scores, weights: Scores | None) -> Scores | None:
        if not isinstance(given, Mapping):
            return weights
        each = np.array([given.get(name, 1.0) for name in table.names])[numbers.astype(np.int64)]
        return each if weights is None else weights * each

    def weight(self, given: ClassWeight, y: object) -> float:
        return float(given.get(y, 1.0)) if isinstance(given, Mapping) else 1.0

    def with_new_classes_last(self, scores: Scores, numbers: Scores, known: int) -> Scores:
        if scores.ndim < 2 or scores.shape[1] < 3:
            return scores
        before = np.concatenate([[0.0], np.maximum.accumulate(numbers)[:-1] + 1])
        return _labels.below_others(scores, np.maximum(before, known))

    def shown(self, scores: Scores, view: LabelView) -> Scores:
        if scores.ndim == 1 or scores.shape[1] == 1:
            return view.sign * (scores if scores.ndim == 1 else scores[:, 0])
        return scores[:, view.columns]

    def outputs(self, values: Scores, view: LabelView) -> Scores:
        return view.sign * values if values.shape[1] == 1 else values[:, view.columns]

    def slopes(self, slopes: Scores, view: LabelView) -> Scores:
        if slopes.shape[1] == 1:
            return np.negative(slopes, out=slopes)[:, 0] if view.sign < 0 else slopes[:, 0]
        if view.columns != sorted(view.columns):
            # In place, in blocks that stay in the cache: the array may be large, and this function owns it.
            few = 1 + (1 << 18) // max(slopes[0].nbytes, 1)
            for start in range(0, len(slopes), few):
                slopes[start : start + few] = slopes[start : start + few, view.columns]
        return slopes

    def best(self, scores: Scores, cut: float) -> npt.NDArray[np.int64]:
        """The place of the predicted class in `classes_`, by scores as they are shown; two classes are cut at `cut`."""
        return scores.argmax(axis=1) if scores.ndim == 2 else (scores >= cut).astype(np.int64)

    def answers(self, scores: Scores, view: LabelView, cut: float) -> npt.NDArray[np.generic]:
        """The predicted class of each sample."""
        if scores.ndim == 1 and len(view.classes) == 1:
            return np.repeat(view.classes, len(scores))
        return view.classes[self.best(scores, cut)]


class Regression(Task):
    """Labels are numbers, or rows of them.

    Parameters
    ----------
    several : whether there may be more than one target
    largest : the largest absolute value of a target
    """

    name = "regression"

    def __init__(self, several: bool = False, largest: float = np.inf) -> None:
        self.several, self.largest = several, largest

    def encoded(self, owner: str, table: LabelTable, y: object, count: int, classes: object) -> Encoded:
        return Encoded(table, _labels.targets(owner, y, count, several=self.several, largest=self.largest), 0)

    def number(self, table: LabelTable, y: object) -> float | None:
        try:
            number = float(y)  # type: ignore[arg-type]  # what is no number is caught
        except TypeError:  # several targets, or not a number: full validation handles both
            return None
        return number if number - number == 0 and abs(number) <= self.largest else None

    def shown(self, scores: Scores, view: LabelView) -> Scores:
        return scores if scores.ndim == 1 or scores.shape[1] > 1 else scores[:, 0]


class Novelty(Task):
    """Nothing is labelled; a score below 0 is an alarm."""

    name = "novelty"

    def encoded(self, owner: str, table: LabelTable, y: object, count: int, classes: object) -> Encoded:
        return Encoded(table, np.ones(count), 0)

    def number(self, table: LabelTable, y: object) -> float | None:
        return 1.0

    def answers(self, scores: Scores) -> npt.NDArray[np.int64]:
        """-1 for an alarm, +1 for a familiar sample."""
        return np.where(scores < 0, -1, 1)


CLASSIFICATION, REGRESSION, NOVELTY = Classification(), Regression(), Novelty()
SEVERAL_TARGETS = Regression(several=True)
