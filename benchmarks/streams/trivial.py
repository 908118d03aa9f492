"""What costs nothing and must be beaten: majority class, no change, running mean, last value."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .entry import Entry, EventByEvent


class Majority(EventByEvent):
    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()

    def one(self, x: Any, y: Any) -> Any:
        said = self.counts.most_common(1)[0][0] if self.counts else None
        self.counts[y] += 1
        return said


class Last(EventByEvent):
    """The label or the value of the event before."""

    def __init__(self, first: Any = None) -> None:
        self.last = first

    def one(self, x: Any, y: Any) -> Any:
        said, self.last = self.last, y
        return said


class RunningMean(EventByEvent):
    def __init__(self) -> None:
        self.mean = 0.0
        self.count = 0

    def one(self, x: Any, y: Any) -> Any:
        said = self.mean
        self.count += 1
        self.mean += (y - said) / self.count
        return said


TRIVIAL = [
    Entry("majority class", "classification", "trivial", "the most frequent label so far", lambda case: Majority()),
    Entry("no change", "classification", "trivial", "the label before", lambda case: Last()),
    Entry("running mean", "regression", "trivial", "the mean so far", lambda case: RunningMean()),
    Entry("last value", "regression", "trivial", "the target before", lambda case: Last(0.0)),
]
