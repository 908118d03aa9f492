"""A run of a fleet along keyed rows: metrics of the total and a small record per key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._base.estimator import task_of
from .._common.types import Labels

#: points of a key's curve; when they are full, neighbours become one
CURVE = 16
#: loss by which keys are ranked
MEASURES = {"classification": "error", "regression": "mae", "novelty": "alarm_rate"}


@dataclass
class KeyRecord:
    """Record of one key: number of events, mean loss, and that mean over time."""

    key: Any
    events: int
    loss: float
    curve: list[float]

    @property
    def alarms(self) -> int:
        """How many events were alarms, where that is what an event costs."""
        return round(self.loss * self.events)

    def to_dict(self, measure: str) -> dict[str, object]:
        """Plain values."""
        found = {"key": self.key, "events": self.events, measure: self.loss, "curve": self.curve}
        return {**found, "alarms": self.alarms} if measure == "alarm_rate" else found

    def sparkline(self, most: float) -> str:
        """The curve as a row of small columns, on a scale from 0 to `most`."""
        steps = "▁▂▃▄▅▆▇█"
        return "".join(steps[min(int(len(steps) * value / most) if most > 0 else 0, 7)] for value in self.curve)


def _if_the_learners_have(method: Any) -> Any:
    """A method that is there if the fleet's learners have it."""
    return available_if(lambda run: hasattr(run.fleet.member_model, method.__name__))(method)


class KeyedRun:
    """A `KeyedFleet` with the interface of one learner over `KeyedRows`; it records the losses of each key.

    Parameters
    ----------
    fleet : KeyedFleet
    """

    def __init__(self, fleet: Any) -> None:
        self.fleet = fleet
        self.task = str(task_of(fleet.member_model))
        self.measure = MEASURES[self.task]
        self._number: dict[str, int] = {}
        self._events = np.zeros(0, dtype=np.int64)
        self._width = np.zeros(0, dtype=np.int64)  # events in a point of the curve
        self._sums = np.zeros((0, CURVE), dtype=np.float32)
        self._total = np.zeros(0)

    def __sklearn_tags__(self) -> Any:
        return self.fleet.member_model.__sklearn_tags__()

    # ---- as one learner ---------------------------------------------------------------------------------------

    def prequential(self, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Predictions of each key's learner before it learns the sample."""
        when = {} if X.times is None else {"time": X.times}
        scores = self.fleet.prequential(X.keys, X.rows, y, classes=classes, **when)
        self._take_down(X.keys, self._losses(scores, y))
        return scores

    @_if_the_learners_have
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, by the learner of each key."""
        return self.fleet.predict_proba(X.keys, X.rows)

    @property
    def classes_(self) -> Any:
        return self.fleet.classes_

    @property
    def n_support_(self) -> int:
        return int(self.fleet.n_stored_)

    @property
    def memory_bytes_(self) -> int:
        return int(self.fleet.memory_bytes_)

    # ---- keys -------------------------------------------------------------------------------------------------

    def _losses(self, scores: Any, y: Labels) -> Any:
        if self.task == "regression":
            return np.abs(np.asarray(y, dtype=float) - scores)
        batch = self.fleet.predictions_of(scores, self.fleet._core_.classes)
        if self.task == "classification":
            return (batch != np.asarray(y)).astype(float)
        return (batch < 0).astype(float)

    def _take_down(self, keys: list[str], losses: Any) -> None:
        number = self._number
        places = np.array([number.setdefault(key, len(number)) for key in keys])
        self._grow(len(number))
        order = np.argsort(places, kind="stable")
        starts = np.flatnonzero(np.diff(places[order], prepend=-1))
        for part in np.split(order, starts[1:]):
            self._add(int(places[part[0]]), losses[part])

    def _add(self, place: int, losses: Any) -> None:
        sums = self._sums[place]
        self._total[place] += losses.sum()
        while len(losses):
            at = int(self._events[place])
            if at == CURVE * self._width[place]:
                sums[: CURVE // 2] = sums[0::2] + sums[1::2]
                sums[CURVE // 2 :] = 0
                self._width[place] *= 2
            bucket = at // int(self._width[place])
            left = (bucket + 1) * int(self._width[place]) - at
            sums[bucket] += losses[:left].sum()
            self._events[place] += min(left, len(losses))
            losses = losses[left:]

    def _grow(self, count: int) -> None:
        if count <= len(self._events):
            return
        more = max(count, 2 * len(self._events)) - len(self._events)
        self._events = np.append(self._events, np.zeros(more, dtype=np.int64))
        self._width = np.append(self._width, np.ones(more, dtype=np.int64))
        self._total = np.append(self._total, np.zeros(more))
        self._sums = np.vstack([self._sums, np.zeros((more, CURVE), dtype=np.float32)])

    def worst(self, count: int, least: int) -> list[KeyRecord]:
        """The keys with the largest mean loss, or the most alarms, among those with at least `least` events.

        Ties go to the most events, of alarms to the fewest.
        """
        n = len(self._number)
        events, total = self._events[:n], self._total[:n]
        chosen = np.flatnonzero(events >= least)
        means = total[chosen] / events[chosen]
        order = (-means, -total[chosen]) if self.task == "novelty" else (-events[chosen], -means)
        chosen = chosen[np.lexsort(order)][:count]
        names = list(self._number)
        return [self._record(names[place], int(place)) for place in chosen]

    def _record(self, key: str, place: int) -> KeyRecord:
        events, width = int(self._events[place]), int(self._width[place])
        used = math.ceil(events / width)
        counts = np.full(used, width)
        counts[-1] = events - width * (used - 1)
        curve = (self._sums[place, :used] / counts).astype(float).round(6).tolist()
        return KeyRecord(key, events, float(self._total[place] / events), curve)
