"""The mixture of a race that nobody judges: no labels, no losses; all experts count alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core

Floats = npt.NDArray[np.float64]


class NoveltyMixture:
    """What a race asks of a mixture, over the core's `NoveltyMixture`."""

    classes, outputs = 0, 1

    def __init__(self, experts: int, rate: float, inner: Any = None) -> None:
        self.experts, self.rate = experts, rate
        self.inner = _core.NoveltyMixture(experts, rate) if inner is None else inner

    def add_classes(self, classes: int) -> None:
        """There are no classes."""

    def learn(self, scores: Floats, experts: list[int], numbers: Floats, met: int) -> Floats:
        return np.asarray(self.inner.learn(scores, experts))

    def mix(self, scores: Floats, experts: list[int]) -> Floats:
        return np.asarray(self.inner.mix(scores, experts))

    def leave(self, expert: int) -> None:
        self.inner.leave(expert)

    def copy(self) -> NoveltyMixture:
        return NoveltyMixture(self.experts, self.rate, self.inner.copy())

    def bytes_for(self, classes: int) -> int:
        return self.bytes

    @property
    def bytes(self) -> int:
        return int(self.inner.bytes)

    @property
    def seen(self) -> int:
        return int(self.inner.seen)

    @property
    def margin(self) -> float:
        return float(self.inner.margin)

    @property
    def weights(self) -> Floats:
        there = np.array([self.inner.is_active(expert) for expert in range(self.experts)], dtype=float)
        return there / max(there.sum(), 1.0)

    # Nothing is known of errors; the report says alarms instead.

    @property
    def own_errors(self) -> float:
        return float(self.inner.alarms)

    @property
    def errors(self) -> Floats:
        return np.full(self.experts, np.nan)

    @property
    def events(self) -> Floats:
        return np.full(self.experts, float(self.seen))

    @property
    def history(self) -> Floats:
        return np.empty((0, 2 + 2 * self.experts))

    def state(self) -> dict[str, Any]:
        return dict(self.inner.state())

    def restore(self, state: dict[str, Any]) -> None:
        self.inner.restore(state)
