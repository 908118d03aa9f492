"""The search for the best label: the scores that it is given, and what it may return."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..budgets import Budget, Project
from ..rules import Implicit, Rule

Floats = npt.NDArray[np.float64]
Label = Hashable
Cost = Callable[[Any], float]


class Score:
    """f(x, label) of one sample as a function of the label, plus the cost of the label where a rival is searched."""

    _cost: Cost | None = None

    def __init__(self, names: Mapping[Label, int], place: str) -> None:
        self._names, self._place = names, place

    @property
    def labels(self) -> list[Label]:
        """The labels, or tags of a sequence, in the order of the columns."""
        return list(self._names)

    def plus(self, cost: Cost) -> Self:
        """The same with a cost added to `score(label)`, and to nothing else."""
        other = copy.copy(self)
        other._cost = cost
        return other

    def __call__(self, label: object) -> float:
        found = self._plain(label)
        if not math.isfinite(found):
            raise ValueError(f"{self._place}: the score of the label {label!r} is {found}")
        return found if self._cost is None else found + self._cost(label)

    def _plain(self, label: object) -> float:
        raise NotImplementedError


class RowScore(Score):
    """Scores of labels at one row."""

    def __init__(self, names: Mapping[Label, int], place: str, row: Floats) -> None:
        super().__init__(names, place)
        self._row = row

    def _plain(self, label: object) -> float:
        number = self._names.get(label)
        return 0.0 if number is None else float(self._row[number])


class SequenceScore(Score):
    """Scores of sequences of tags.

    rows : array of shape (rows of x, tags), the score of each tag at each row
    transitions : array of shape (tags, tags), the score of a tag (row) that is followed by another one (column)

    Neither holds the cost.
    """

    def __init__(self, names: Mapping[Label, int], place: str, rows: Floats, transitions: Floats) -> None:
        super().__init__(names, place)
        self.rows, self.transitions = rows, transitions

    def numbers(self, label: Any) -> list[int]:
        """Columns of the tags of a label."""
        numbers = [self._names.get(tag, -1) for tag in label]
        if len(numbers) != len(self.rows) or min(numbers) < 0:
            raise ValueError(f"{self._place}: a label must be {len(self.rows)} tags of labels, got {label!r}")
        return numbers

    def _plain(self, label: object) -> float:
        numbers = self.numbers(label)
        found = self.rows[np.arange(len(numbers)), numbers].sum()
        return float(found + self.transitions[numbers[:-1], numbers[1:]].sum())


@dataclass(frozen=True)
class Search:
    """The parts of a learner at work: which label is best, and what a wrong one costs."""

    rule: Rule
    budget: Budget
    argmax: Callable[..., Any] | None
    cost: Callable[[Any, Any], float] | None
    average: bool
    closed: bool  #: whether the labels are a list that was given

    @property
    def projects(self) -> bool:
        """Whether the budget projects."""
        return isinstance(self.budget, Project)

    def best(self, score: Score, x: object, place: str, exclude: Any = None) -> Any:
        """The label with the highest score: the first on ties, or what the search finds."""
        if self.argmax is None:
            return max((label for label in score.labels if exclude is None or label != exclude), key=score)
        found = self.argmax(score, x, exclude)
        found = found.item() if isinstance(found, np.generic) else found
        if found is None or (exclude is not None and found == exclude):
            raise ValueError(f"{place}: argmax must return a label other than {exclude!r}, got {found!r}")
        check_label(found, f"{place}: what argmax returned")
        if isinstance(score, SequenceScore):
            return tuple(found)  # __call__ refuses other tags
        if self.closed and found not in score.labels:
            raise ValueError(f"{place}: argmax returned {found!r}, which is not in labels")
        return found

    def rival(self, score: Score, x: object, place: str, label: object) -> tuple[Any, float]:
        """The best label other than the true one, with its cost."""
        if not isinstance(self.rule, Implicit):
            return self.best(score, x, place, label), 0.0
        found = self.best(score.plus(lambda other: self.delta(label, other, place)), x, place, label)
        return found, self.delta(label, found, place)

    def delta(self, true: object, other: object, place: str) -> float:
        if true == other:
            return 0.0
        value = 1.0 if self.cost is None else float(self.cost(true, other))
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{place}: cost({true!r}, {other!r}) must be a number >= 0, got {value}")
        return value

    def costs(self, names: Mapping[Label, int], labels: list[Label]) -> Floats | None:
        """Costs of all labels (columns) for the true labels of a chunk (rows); None if they are all 0."""
        if not isinstance(self.rule, Implicit):
            return None
        table = np.ones((len(names), len(names)))
        np.fill_diagonal(table, 0.0)
        if self.cost is not None:
            first: dict[Label, int] = {}
            for row, label in enumerate(labels):
                first.setdefault(label, row)
            for label, row in first.items():
                table[names[label]] = [self.delta(label, other, f"row {row}") for other in names]
        return table


def plain(values: Any) -> list[Any]:
    """A sequence of labels as Python objects."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def check_label(label: object, where: str) -> None:
    """Labels are kept in a table, so they must have a hash; None stands for no label."""
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{where}: a label must be hashable (a tuple instead of a list), got {label!r}") from None
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise ValueError(f"{where}: {'None' if label is None else 'NaN'} is not a label")
