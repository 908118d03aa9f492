"""Robust moments of columns and robust targets, one number at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rank_twin import draw

from gristmill.streams.scaling import StreamScaler


def quantile(ranked: list[float], share: float) -> float:
    place = share * (len(ranked) - 1)
    low, high = ranked[int(place)], ranked[min(int(place) + 1, len(ranked) - 1)]
    return low + (place - int(place)) * (high - low)


def moments(values: Any, clip: float, outermost: float = 0.25) -> tuple[float, float, float, float]:
    """Median, quartile deviation, and mean and deviation of the values clipped at `clip` of these from the median."""
    ranked = sorted(float(value) for value in values)
    median, quartile, tail = quantile(ranked, 0.5), 0.0, 0.25
    while tail >= outermost and not quartile > 0:
        quartile = 0.5 * (quantile(ranked, 1 - tail) - quantile(ranked, tail))
        tail /= 2
    far = clip * quartile if quartile > 0 else ranked[-1] - ranked[0]
    total = squares = 0.0
    for value in ranked:
        off = min(max(value - median, -far), far)
        total += off
        squares += off * off
    mean = total / len(ranked)
    return median, quartile, median + mean, math.sqrt(max(squares / len(ranked) - mean * mean, 0.0))


class RobustScaler(StreamScaler):
    """Standard scaling, whose moments are compared with the first values after 8, 16, 32 and 64 samples."""

    def learn_transform(self, X: Any) -> Any:
        return np.vstack([self._one(row[None]) for row in X])

    def _one(self, row: Any) -> Any:
        scaled = super().learn_transform(row)
        self.early = [*self.__dict__.get("early", []), row[0].copy()]
        seen = self.n_seen_
        if seen in (8, 16, 32, 64):
            first, low, high = np.array(self._scaling.state())
            for c, values in enumerate(np.array(self.early).T):
                median, quartile, mean, deviation = moments(values, 3)
                middle = low[c] / seen
                spread = math.sqrt(max(high[c] / seen - middle * middle, 0.0))
                if quartile > 0 and deviation > 0 and spread > 100 * deviation:
                    off = mean - median
                    first[c], low[c], high[c] = median, seen * off, seen * (deviation * deviation + off * off)
            self._scaling.restore(np.array([first, low, high]), seen)
        return scaled


class RobustTarget:
    """Centre, spread and reach of targets, from a sample of 128 of the last 4,096."""

    first = 8
    bytes = 1352

    def __init__(self) -> None:
        self.count, self.next, self.far = 0, self.first, 0.0
        self.centre, self.spread, self.reach = 0.0, 0.0, math.inf
        self.sample: list[float] = []
        self.newest = [0.0] * 32

    @property
    def holds(self) -> bool:
        return self.count < self.first

    @property
    def is_known(self) -> bool:
        return self.spread > 0

    @property
    def median(self) -> float:
        return quantile(sorted(self.sample), 0.5) if self.sample else 0.0

    def clipped(self, target: float) -> float:
        return min(max(target, self.centre - self.reach), self.centre + self.reach)

    def tamed(self, target: float) -> float:
        return target if abs(target - self.centre) <= self.reach else self.centre

    def inside(self, target: float) -> float:
        return (self.tamed(target) - self.centre) / self.spread

    def outside(self, scores: Any) -> Any:
        return self.centre + self.spread * scores

    def learn(self, target: float) -> tuple[float, float] | None:
        far = 1.0 if self.spread > 0 and abs(target - self.centre) > 5 * self.spread else 0.0
        self.far += (far - self.far) * (1 / 32)
        self.newest[self.count % 32] = target
        if len(self.sample) < 128:
            self.sample.append(target)
        else:
            slot = draw(self.count) % min(self.count + 1, 4096)
            if slot < 128:
                self.sample[slot] = target
        self.count += 1
        due = self.count == self.next
        if due:
            self.next *= 2
        if self.far > 0.5:
            self.sample, self.far = self.newest[: min(self.count, 32)], 0.0
        elif not due:
            return None
        median, _, _, deviation = moments(self.sample, 5, 1 / 32)
        if not 0 < deviation < math.inf:
            return None
        away = sorted(abs(value - median) for value in self.sample)
        usual = min(3 + len(away) // 50, len(away))
        self.reach = max(5 * deviation, 8 * away[len(away) - usual])
        if away[-1] > self.reach:
            kept = [value for value in self.sample if abs(value - median) <= self.reach]
            again = moments(kept, 5, 1 / 32)
            if again[3] > 0:
                median, _, _, deviation = again
        centre, spread = self.centre, self.spread
        self.centre, self.spread = median, deviation
        return (spread / deviation, (centre - median) / deviation) if spread > 0 else None
