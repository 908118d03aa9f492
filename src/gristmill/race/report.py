"""Report of a race: weights, errors and stored points of the experts, and their history."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.tables import html_table
from ..learners.written import written
from .baselines import Trivial
from .expert import ExpertView

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ExpertReport:
    """One expert of a race."""

    expert: Any  #: as one writes it
    weight: float
    error: float  #: share of mistakes, mean absolute error or mean pinball loss, of the events that it was there for
    events: int
    points: int | None
    state: str  #: "runs", "paused", or why it was removed

    @property
    def is_trivial(self) -> bool:
        return isinstance(self.expert, Trivial) and self.expert.is_baseline


@dataclasses.dataclass(frozen=True)
class RaceReport:
    """All experts of a race, and the mixture; printed, it is a table, the heaviest first.

    `history` has a row for each of some positions of the stream, 128 at most: position, error of the mixture so far, the
    weights of all experts, and their errors so far.
    """

    task: str
    n_seen: int
    error: float
    experts: tuple[ExpertReport, ...]
    history: Floats
    quantile: float | None = None  #: of the targets, which is predicted; None: their centre

    @classmethod
    def of(cls, views: list[ExpertView], task: str, quantile: float | None = None) -> RaceReport:
        """Of the experts at one moment."""
        mixture = views[0].race.mixture
        weights, errors, counts = mixture.weights, mixture.errors, mixture.events
        experts = []
        for place, view in enumerate(views):
            events = int(counts[place])
            error = float(errors[place] / events) if events else float("nan")
            state = view.note or ("paused" if view.rests else "runs")
            experts.append(ExpertReport(view.composition(), float(weights[place]), error, events, view.size, state))
        own = float(mixture.own_errors / mixture.seen) if mixture.seen else float("nan")
        return cls(task, int(mixture.seen), own, tuple(experts), np.asarray(mixture.history), quantile)

    @property
    def baseline(self) -> ExpertReport | None:
        """The best of the trivial experts, if there are any."""
        trivial = [found for found in self.experts if found.is_trivial]
        return min(trivial, key=lambda found: found.error, default=None)

    @property
    def leader(self) -> ExpertReport:
        """The expert with the largest weight."""
        return max(self.experts, key=lambda found: found.weight)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and a row of texts an expert, the heaviest first."""
        body = []
        for found in sorted(self.experts, key=lambda found: -found.weight):
            points = "" if found.points is None or found.state != "runs" else f"{found.points:,}"
            error = "" if math.isnan(found.error) else f"{found.error:.4g}"
            state = "" if found.state == "runs" else f" ({found.state})"
            body.append([f"{found.weight:.3f}", error, points, f"{written(found.expert)}{state}"])
        return ["weight", "error", "points", "expert"], body

    def __str__(self) -> str:
        heads, body = self.cells()
        lines = [f"{w:>7} {e:>9} {p:>7}  {expert}" for w, e, p, expert in [heads, *body]]
        return "\n".join([self._summary(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self.cells(), self._summary())

    def _summary(self) -> str:
        word = {"classification": "error", "regression": "mean absolute error", "novelty": "alarms"}[self.task]
        if self.quantile is not None:
            word = f"mean pinball loss of quantile {self.quantile:g}"
        return f"{self.n_seen:,} events, {word} {self.error:.4g}"
