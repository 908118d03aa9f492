"""A buffer for learners whose loss is written in Python: the core's policy, and the rows it points at."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from .._common.types import Fields

Array = npt.NDArray[np.float64]


class BufferedRows:
    """The rows, labels and places of a buffer whose policy runs in the core."""

    def __init__(self, spec: Any, width: int, seed: int) -> None:
        size = int(spec["size"] if isinstance(spec, dict) else spec.size)
        self.policy = _core.BufferPolicy(spec, seed)
        self.points = np.zeros((size, width))
        self.labels = np.zeros(size)
        self.ids = np.full(size, -1, dtype=np.int64)

    @property
    def filled(self) -> int:
        return int(self.policy.filled)

    @property
    def seen(self) -> int:
        return int(self.policy.offered)

    def offer(self, x: Array, label: float) -> tuple[list[int], list[int]]:
        """Offer the next sample; returns the slots written, and the source of each refilled slot."""
        place = self.seen
        slots, sources = self.policy.offer(x, label)
        if sources:
            points, labels, ids = self.points.copy(), self.labels.copy(), self.ids.copy()
            for slot, source in enumerate(sources):
                if source < len(sources):
                    self.points[slot], self.labels[slot], self.ids[slot] = (
                        points[source],
                        labels[source],
                        ids[source],
                    )
            slots = [slot for slot, source in enumerate(sources) if source == len(sources)]
        for slot in slots:
            self.points[slot], self.labels[slot], self.ids[slot] = x, label, place
        return slots, sources

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.policy = self.policy.copy()
        twin.points, twin.labels, twin.ids = self.points.copy(), self.labels.copy(), self.ids.copy()
        return twin

    @property
    def memory_bytes(self) -> int:
        return int(self.points.nbytes + self.labels.nbytes + self.ids.nbytes)

    def state(self) -> Fields:
        return {
            "buffer": self.points.copy(),
            "buffer_labels": self.labels.copy(),
            "buffer_ids": self.ids.copy(),
            "policy": np.array(self.policy.state(), dtype=np.uint64),
        }

    def restore(self, state: Fields) -> None:
        for name, array in (
            ("buffer", self.points),
            ("buffer_labels", self.labels),
            ("buffer_ids", self.ids),
        ):
            saved = np.asarray(state[name])
            if saved.shape != array.shape or saved.dtype != array.dtype or not np.isfinite(saved).all():
                raise ValueError(f"the saved {name} does not fit")
            array[...] = saved
        self.policy.restore([int(n) for n in state["policy"]])
