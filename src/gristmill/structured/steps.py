"""What one event changes in a hypothesis over (input, label) pairs: Perceptron, Projectron++ and ILK."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common import inputs
from ..budgets import Project
from ..rules import Implicit, MarginProjection
from . import hypothesis as _joint
from .hypothesis import Hypothesis, Lookahead, Projection, SharedLookahead

Score = Callable[[Any], float]


@dataclass(frozen=True)
class Event:
    """One event: its kernel values, itself, and what an error calls it."""

    sight: Lookahead
    x: Any  #: a table of one row, or a list of one object
    place: str

    @property
    def shown(self) -> Any:
        """x as the user's search sees it: a vector, a sparse row or the object."""
        return self.x if inputs.is_sparse(self.x) else self.x[0]

    def score(self, f: Hypothesis, average: bool) -> Score:
        """f(x, .) as a function of the label."""
        weights = f.weights(average)
        table = self.sight.scores(weights) if isinstance(self.sight, SharedLookahead) else None

        def value(label: Any) -> float:
            if table is not None:
                number = f.numbers.get(label)
                found = 0.0 if number is None else float(table[number])
            else:
                found = float(weights @ self.sight.row(label)) if len(weights) else 0.0
            if not math.isfinite(found):
                raise ValueError(f"{self.place}: the score of the label {label!r} is {found}")
            return found

        return value


@dataclass(frozen=True)
class Search:
    """The parts of a learner at work: which label is best, and what follows from a label that was not."""

    rule: Any
    budget: Any
    argmax: Any
    cost: Any
    average: bool

    def best(self, score: Score, f: Hypothesis, event: Event, exclude: Any = None) -> Any:
        """The label with the highest score: the first on ties, or what the user's search finds."""
        if self.argmax is None:
            return max((label for label in f.numbers if exclude is None or label != exclude), key=score)
        found = self.argmax(score, event.shown, exclude)
        found = found.item() if isinstance(found, np.generic) else found
        if found is None or (exclude is not None and found == exclude):
            raise ValueError(f"{event.place}: argmax must return a label other than {exclude!r}, got {found!r}")
        check_label(found, f"{event.place}: what argmax returned")
        if f.closed and found not in f.numbers:
            raise ValueError(f"{event.place}: argmax returned {found!r}, which is not in labels")
        return found

    def answer(self, f: Hypothesis, event: Event, scores: bool) -> Any:
        """Prediction of a sample: all scores if there is a list of labels, else the best label."""
        score = event.score(f, self.average)
        return [score(label) for label in f.numbers] if scores and f.closed else self.best(score, f, event)

    def learned(self, f: Hypothesis, event: Event, y: Any, weight: float) -> Hypothesis:
        """The hypothesis after this event."""
        score = event.score(f, average=False)
        if self.average:
            f = f.having(total=f.total + f.coef, ticks=f.ticks + 1)
        if isinstance(self.rule, Implicit):
            return self._implicit(f, event, y, weight, score)
        rival = self.best(score, f, event, y)
        margin = score(y) - score(rival)
        if isinstance(self.budget, Project):
            return self._projected(f, event, (y, rival), margin, weight)
        if margin > 0:
            return f
        return _joint.add_pair(f, event.x, [(y, weight), (rival, -weight)], self.budget)

    def _delta(self, true: Any, other: Any, place: str) -> float:
        if true == other:
            return 0.0
        value = 1.0 if self.cost is None else float(self.cost(true, other))
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{place}: cost({true!r}, {other!r}) must be a number >= 0, got {value}")
        return value

    def _implicit(self, f: Hypothesis, event: Event, y: Any, weight: float, score: Score) -> Hypothesis:
        """ILK: the rival under f_t and the cost; then the step that makes the margin that cost, if it can."""
        rule, sight = self.rule, event.sight
        rival = self.best(lambda label: score(label) + self._delta(y, label, event.place), f, event, y)
        keep = 1 / (1 + rule.rate * rule.reg)  # 1 - tau
        limit = keep * rule.rate * rule.C * weight
        wanted = self._delta(y, rival, event.place) - keep * (score(y) - score(rival))
        extent = sight.cross(y, y) + sight.cross(rival, rival) - 2 * sight.cross(y, rival)
        step = min(max(wanted / extent, 0.0), limit) if extent > 0 else 0.0
        f = f.having(coef=keep * f.coef)
        return f if step == 0 else _joint.add_pair(f, event.x, [(y, step), (rival, -step)], self.budget)

    def _projected(
        self, f: Hypothesis, event: Event, pair: tuple[Any, Any], margin: float, weight: float
    ) -> Hypothesis:
        """Projectron and Projectron++ on k((x, y), .) - k((x, r), .)."""
        tolerance = self.budget.tolerance
        if margin > (1 if isinstance(self.rule, MarginProjection) else 0):
            return f
        new = Projection(f, event.sight, *pair)
        if margin <= 0:
            return new.fold(weight) if new.residual <= tolerance else new.add(event.x, weight)
        loss, ratio = 1 - margin, 0.0
        if new.residual > 0:
            ratio = new.residual / tolerance if tolerance > 0 else math.inf  # delta / eta
        if self.rule.squared:
            ratio *= ratio
        if loss < ratio or new.length2 <= 0:
            return f
        return new.fold(min(loss / new.length2, 2 * (loss - ratio) / new.length2, weight))


def plain(values: Any) -> list[Any]:
    """A sequence of labels as Python objects."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def check_label(label: Any, where: str) -> None:
    """Labels are kept in a table, so they must have a hash; None stands for no label."""
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{where}: a label must be hashable (a tuple instead of a list), got {label!r}") from None
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise ValueError(f"{where}: {'None' if label is None else 'NaN'} is not a label")
