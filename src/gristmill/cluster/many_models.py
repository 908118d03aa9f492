"""Many learners along one stream, distributed over workers."""

from __future__ import annotations

import copy
from typing import Any

from .._common.types import Labels
from ..evaluate.follower import Follower
from ..evaluate.result import Comparison


class Bench:
    """The learners of one worker, with their records."""

    def __init__(self, models: dict[str, object], metrics: object, window: int, classes: Labels, stream: str) -> None:
        self._followers = [
            Follower(copy.deepcopy(model), name, metrics, window, 0, classes, stream) for name, model in models.items()
        ]

    def feed(self, chunk: Any) -> int:
        for follower in self._followers:
            follower.feed(chunk)
        return len(self._followers)

    def finish(self) -> list[Any]:
        return [follower.finish() for follower in self._followers]


class Mapped(list[Any]):
    """The learners after the stream, in the order of the grid; `comparison` has the record of each."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(result.model for result in comparison)
        self.comparison = comparison

    def __str__(self) -> str:
        return self.comparison.table()
