"""The loop of the structured learner, with the verbs of the compiled learners; the search is the user's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..budgets import Project
from ..kernels import Kernel
from .hypothesis import Ahead, Hypothesis, Lookahead, PairLookahead, SharedLookahead, row_count, values_at
from .steps import Event, Search

_BLOCK = 64  # rows of the look-ahead


class JointCore:
    """A hypothesis over (input, label) pairs and what moves it from event to event."""

    is_plain = False
    classes = 0  # labels of any kind are the hypothesis's own
    outputs = 1

    def __init__(self, kernel: Any, search: Search, f: Hypothesis) -> None:
        self.kernel, self.search, self.f = kernel, search, f

    @property
    def seen(self) -> int:
        return self.f.seen

    @property
    def memory_bytes(self) -> int:
        return self.f.bytes()

    def learn(self, rows: Any, labels: list[Any], weights: Any, want_scores: bool, classes: int = 0) -> Any:
        """One pass in order; kept only when all of it went well."""
        f, answers = self.f, []
        sights = self._sights(lambda: f, rows)
        for i, label in enumerate(labels):
            event = Event(next(sights), rows[i : i + 1], f"row {i}")
            if want_scores:
                answers.append(self.search.answer(f, event, scores=True))
            weight = 1.0 if weights is None else float(weights[i])
            if weight > 0:
                f = self.search.learned(f, event, label, weight)
            f = f.having(seen=f.seen + 1)
        if self.f.seen == 0:
            self._warn_if_nothing_is_stored(f)
        self.f = f
        if not want_scores:
            return None
        return np.array(answers) if f.closed else answers

    def _sights(self, f: Callable[[], Hypothesis], rows: Any) -> Iterator[Lookahead]:
        """Each event as the hypothesis of its moment sees it."""
        shared, objects = isinstance(self.kernel, Kernel), isinstance(rows, list)
        count, block = row_count(rows), 1 if objects else _BLOCK
        for first in range(0, count, block):
            if not shared:
                yield PairLookahead(f(), self.kernel, rows[first], f"row {first}")
                continue
            piece = rows[first : first + block]
            ahead = Ahead(self.kernel, f(), piece, first)
            for i in range(row_count(piece)):
                yield ahead.sight(f(), i)

    def _warn_if_nothing_is_stored(self, f: Hypothesis) -> None:
        budget = self.search.budget
        if isinstance(budget, Project) and len(f.ids) == 0:
            # The first event is a mistake always, because every score is 0: it was folded into nothing.
            warnings.warn(
                f"Project: tolerance={budget.tolerance!r} is not below the norm of any difference "
                "k((x, y), .) - k((x, r), .) of the first chunk, so nothing is stored; use a smaller one",
                UserWarning,
                stacklevel=5,
            )

    def answers(self, rows: Any, scores: bool) -> list[Any]:
        """Prediction of each sample: all scores if requested and there is a list of labels, else the best label."""
        f, found = self.f, []
        for first in range(0, row_count(rows), _BLOCK):
            piece = rows[first : first + _BLOCK]
            values = values_at(self.kernel, f, piece, first) if isinstance(self.kernel, Kernel) else None
            for i in range(row_count(piece)):
                place = f"row {first + i}"
                sight = (
                    PairLookahead(f, self.kernel, piece[i], place)
                    if values is None
                    else SharedLookahead(f, values[i], math.nan)  # k(x, x) is not asked for here
                )
                found.append(self.search.answer(f, Event(sight, piece[i : i + 1], place), scores))
        return found
