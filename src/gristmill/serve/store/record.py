"""What a learner's predictions were worth: errors, drift, calibration and classes, in constant memory.

A record depends on the events and on nothing else, so that a replay gives the same one; its state is JSON and is part
of each snapshot.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._common.types import Json

#: events of the rolling metrics
WINDOW = 1000
#: entries of the curve; a longer one loses every second entry
_MOST = 600
_RECENT, _BEFORE, _STEP, _REST = 200, 1000, 100, 400
_BINS = 10
_MOST_CLASSES = 50
Floats = npt.NDArray[np.float64]


class Record:
    """Metrics of one learner along its stream.

    Parameters
    ----------
    task : {"classification", "regression", "novelty"}
    begun : int
        Position at which the learner began.
    """

    def __init__(self, task: str, begun: int = 0) -> None:
        self.task = task
        self.n = 0  #: events that were scored
        self.position = begun
        self._sum = self._squares = 0.0
        self._losses: Floats = np.zeros(0)  # the last, oldest first
        self.curve: list[list[float]] = []  #: position, rolling, overall
        self.drifts: list[dict[str, float]] = []
        self._every = 50
        self._rest = 0  # events until drift may be marked again
        self.bins = np.zeros((_BINS, 3))  #: count, sum of probabilities, right ones
        self.classes: dict[str, list[int]] = {}  #: label -> events, right ones

    # ---- taking in ------------------------------------------------------------------------------------------

    def add(self, predicted: Any, labels: object, positions: int) -> list[dict[str, float]]:
        """Score predictions of consecutive events, the last of which ends at a position; returns new drift marks."""
        losses = self._loss(predicted, labels)
        if self.task == "classification":
            self._count_classes(labels, losses)
        fresh: list[dict[str, float]] = []
        start, first = 0, positions - len(losses)
        while start < len(losses):
            # Curve and drift are due at positions that do not depend on how events came in chunks.
            due = min(self._every - (first + start) % self._every, _STEP - (self.n % _STEP))
            stop = min(len(losses), start + due)
            self._take(losses[start:stop])
            self.position = first + stop
            if self.n % _STEP == 0:
                fresh += self._look_for_drift()
            if self.position % self._every == 0:
                self._enter()
            start = stop
        return fresh

    def _loss(self, predicted: Any, labels: Any) -> Floats:
        if self.task == "novelty":
            return np.asarray(np.asarray(predicted) == -1, dtype=float)
        if self.task == "classification":
            return np.array([a != b for a, b in zip(predicted, labels, strict=True)], dtype=float)
        off = np.abs(np.asarray(predicted, dtype=float) - np.asarray(labels, dtype=float))
        return off if off.ndim == 1 else off.mean(axis=1)

    def _count_classes(self, labels: Any, losses: Floats) -> None:
        for label, loss in zip(labels, losses.tolist(), strict=True):
            name = str(label)
            entry = self.classes.get(name)
            if entry is None:
                if len(self.classes) >= _MOST_CLASSES:
                    name = "(others)"
                entry = self.classes.setdefault(name, [0, 0])
            entry[0] += 1
            entry[1] += loss == 0.0

    def _take(self, losses: Floats) -> None:
        self.n += len(losses)
        # math.fsum would depend on nothing; a running sum depends on the order alone, as events do.
        for loss in losses.tolist():
            self._sum += loss
            self._squares += loss * loss
        self._losses = np.concatenate([self._losses, losses])[-(_RECENT + _BEFORE) :]
        self._rest = max(self._rest - len(losses), 0)

    def _look_for_drift(self) -> list[dict[str, float]]:
        """Compare the last 200 losses with those before: a change of five standard errors is marked."""
        if self._rest or len(self._losses) < 2 * _RECENT:
            return []
        before, recent = self._losses[:-_RECENT], self._losses[-_RECENT:]
        if self.task == "regression":  # a single wild target is no drift
            most = 5 * before.mean()
            before, recent = np.minimum(before, most), np.minimum(recent, most)
        mean, after = float(before.mean()), float(recent.mean())
        spread = max(float(before.var()), (1 / _RECENT) if self.task != "regression" else 0.0)
        error = math.sqrt(spread * (1 / len(before) + 1 / _RECENT))
        if abs(after - mean) <= 5 * error:
            return []
        mark = {"position": self.position, "before": mean, "after": after}
        self.drifts = [*self.drifts[-199:], mark]
        self._rest, self._losses = _REST, recent
        return [mark]

    def _enter(self) -> None:
        self.curve.append([self.position, self.rolling, self.overall])
        if len(self.curve) > _MOST:
            self._every *= 2
            self.curve = [entry for entry in self.curve if entry[0] % self._every == 0]

    def calibrate(self, probabilities: object, right: object) -> None:
        """Take in the probability of the predicted class, and whether it was right."""
        chances = np.asarray(probabilities, dtype=float)
        places = np.clip((chances * _BINS).astype(int), 0, _BINS - 1)
        np.add.at(self.bins, places, np.stack([np.ones_like(chances), chances, np.asarray(right, dtype=float)], axis=1))

    # ---- giving out -----------------------------------------------------------------------------------------

    @property
    def rolling(self) -> float:
        """Mean loss of the last 1,000 events."""
        return float(self._losses[-WINDOW:].mean()) if len(self._losses) else math.nan

    @property
    def overall(self) -> float:
        """Mean loss of all events."""
        return self._sum / self.n if self.n else math.nan

    @property
    def metric(self) -> str:
        return {"classification": "error", "regression": "mae", "novelty": "alarm_rate"}[self.task]

    def metrics(self) -> Json:
        found = {"scored": self.n, self.metric: _number(self.overall), f"{self.metric}_recent": _number(self.rolling)}
        if self.task == "regression":
            found["rmse"] = _number(math.sqrt(self._squares / self.n) if self.n else math.nan)
        return found

    def calibration(self) -> list[dict[str, float]]:
        """Mean probability and share of right predictions, of each tenth that was met."""
        return [
            {"count": int(count), "probability": total / count, "right": right / count}
            for count, total, right in self.bins.tolist()
            if count
        ]

    def state(self) -> Json:
        return {
            "task": self.task, "n": self.n, "position": self.position, "sum": self._sum, "squares": self._squares,
            "losses": self._losses.tolist(), "curve": self.curve, "drifts": self.drifts, "every": self._every,
            "rest": self._rest, "bins": self.bins.tolist(), "classes": self.classes,
        }  # fmt: skip

    @classmethod
    def of(cls, state: Json) -> Record:
        """Back from `state`."""
        record = cls(state["task"], state["position"])
        record.n, record._sum, record._squares = state["n"], state["sum"], state["squares"]
        record._losses = np.array(state["losses"], dtype=float)
        record.curve = [[math.nan if value is None else value for value in entry] for entry in state["curve"]]
        record.drifts, record._every, record._rest = state["drifts"], state["every"], state["rest"]
        record.bins, record.classes = np.array(state["bins"], dtype=float), state["classes"]
        return record


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
