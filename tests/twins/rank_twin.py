"""Rank scaling, naively: maps by `np.interp` from the sorted sample."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def measured(values):
    """Knots and scores of a column."""
    ranked, n = np.sort(values), len(values)
    knots, first, count = np.unique(ranked, return_index=True, return_counts=True)
    scores = ndtri((first + count / 2) / n)
    if len(knots) > 32:
        shares = (np.arange(32) + 0.5) / 32
        found = np.quantile(ranked, shares, method="hazen")
        knots = np.unique(found)
        scores = np.array([ndtri(shares)[found == knot].mean() for knot in knots])
    if len(knots) > 1:
        at = np.array([scaled((knots, scores), x) for x in ranked])
        scores = (scores - at.mean()) / at.std()
    return knots, scores


def end(knots, scores, high):
    few = max(1, len(knots) // 16)
    ends = (len(knots) - 1 - few, len(knots) - 1) if high else (0, few)
    return (knots[ends[1]] - knots[ends[0]]) / (scores[ends[1]] - scores[ends[0]])


def scaled(column, x):
    knots, scores = column
    if len(knots) < 2:
        return 0.0
    away = max(knots[0] - x, x - knots[-1], 0.0)
    high = x > knots[-1]
    far = np.log1p(away / end(knots, scores, high))
    return np.interp(x, knots, scores) + (1 if high else -1) * far / (1 + far / 2)


def value(column, z):
    """The inverse of `scaled`."""
    knots, scores = column
    if len(knots) < 2:
        return knots[0]
    t = min(max(scores[0] - z, z - scores[-1], 0.0), 1.99)
    high = z > scores[-1]
    return np.interp(z, scores, knots) + (1 if high else -1) * end(knots, scores, high) * np.expm1(t / (1 - t / 2))


class Scaling:
    """One event at a time; `renewed` are the positions at which the maps changed."""

    def __init__(self, first):
        self.sample, self.seen, self.next, self.last, self.renewed = [], 0, 1, 0, []
        self.maps = self.before = [measured([x]) for x in first]

    def learn(self, row):
        if self.seen < 256:
            self.sample.append(row)
        else:
            slot = draw(self.seen) % min(self.seen + 1, 4096)
            if slot < 256:
                self.sample[slot] = row
        self.seen += 1
        if self.seen == self.next:
            self.next = max(self.seen + 1, self.seen + self.seen // 4) if self.seen < 8192 else self.seen + 2048
            self.consider()
        return self.scale(row)

    def scale(self, row):
        return np.array([scaled(column, x) for column, x in zip(self.maps, row, strict=True)])

    def follow(self, row):
        raw = [value(column, z) for column, z in zip(self.before, row, strict=True)]
        return self.scale(raw)

    def consider(self):
        sample = np.array(self.sample)
        fresh = [measured(column) for column in sample.T]
        moved = [
            np.mean([abs(scaled(new, x) - scaled(old, x)) for x in column])
            for new, old, column in zip(fresh, self.maps, sample.T, strict=True)
        ]
        wakes = any(len(old[0]) < 2 <= len(new[0]) for new, old in zip(fresh, self.maps, strict=True))
        if self.seen <= 64 or self.seen >= 2 * self.last or max(moved) > 0.3 or wakes:
            self.before, self.maps, self.last = self.maps, fresh, self.seen
            self.renewed.append(self.seen)


def draw(seed):
    """The first number of splitmix64 with this seed."""
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)
