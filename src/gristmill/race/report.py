"""What there is to tell of a race: weights, errors and room of the experts, and how all that went over time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ..learners.written import written
from .baselines import Trivial

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ExpertReport:
    """One expert of a race."""

    expert: Any  #: as it is written down
    weight: float
    error: float  #: share of mistakes, or mean absolute error, of the events that it was there for
    events: int
    points: int | None
    state: str  #: "runs", "rests", or why it left

    @property
    def is_trivial(self) -> bool:
        return isinstance(self.expert, Trivial)


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

    @classmethod
    def of(cls, core: Any, task: str) -> RaceReport:
        mixture = core.mixture
        experts = []
        for place, lane in enumerate(core.lanes):
            events = int(mixture.events[place])
            error = float(mixture.errors[place] / events) if events else float("nan")
            points = getattr(lane.core, "size", None) if hasattr(lane, "core") else None
            state = lane.note or ("rests" if lane.rests else "runs")
            weight = float(mixture.weights[place])
            experts.append(ExpertReport(lane.composition(), weight, error, events, points, state))
        own = float(mixture.own_errors / mixture.seen) if mixture.seen else float("nan")
        return cls(task, int(mixture.seen), own, tuple(experts), np.asarray(mixture.history))

    @property
    def baseline(self) -> ExpertReport | None:
        """The best of the trivial experts, if there are any."""
        trivial = [found for found in self.experts if found.is_trivial]
        return min(trivial, key=lambda found: found.error, default=None)

    @property
    def leader(self) -> ExpertReport:
        """The expert with the largest weight."""
        return max(self.experts, key=lambda found: found.weight)

    def __str__(self) -> str:
        word = {"classification": "error", "regression": "mean absolute error", "novelty": "alarms"}[self.task]
        lines = [
            f"{self.n_seen:,} events, {word} {self.error:.4g}",
            f"{'weight':>7} {'error':>9} {'points':>7}  expert",
        ]
        for found in sorted(self.experts, key=lambda found: -found.weight):
            points = "" if found.points is None or found.state != "runs" else f"{found.points:,}"
            state = "" if found.state == "runs" else f" ({found.state})"
            lines.append(f"{found.weight:7.3f} {found.error:9.4g} {points:>7}  {written(found.expert)}{state}")
        return "\n".join(lines)
