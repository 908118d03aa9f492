"""A loop over pairs whose loss is written in Python, with the interface of the core's learners."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._common.types import Fields
from ._buffered_rows import Array, BufferedRows


class PairLoop:
    """Weights, their running sum for averaging, and the buffer; a chunk is one transaction."""

    def __init__(self, w: Array, rows: BufferedRows, rate: float, reg: float, average: bool) -> None:
        self.w, self.sum, self.rows = w, np.zeros(w.shape), rows
        self.rate, self.reg, self.average = float(rate), float(reg), bool(average)
        self.steps = self.pairs = self.classes = 0
        self.lock = threading.RLock()  # readers in other threads wait for the end of a chunk

    is_plain = False
    outputs = 1

    @property
    def seen(self) -> int:
        return self.rows.seen

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Whatever goes wrong inside, the hypothesis is then as it was."""
        before = (self.w, self.sum, self.steps, self.pairs, self.rows.copy())
        try:
            yield
        except BaseException:
            self.w, self.sum, self.steps, self.pairs, self.rows = before
            raise

    def check(self, rows: Array) -> None:
        """Validate all rows before anything is learned."""
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0]
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {rows[row, column]}")

    def learn(self, rows: Array, labels: Array, weights: object, want_scores: bool, classes: int = 0) -> Array | None:
        """One pass in order; the loss of each event before it was learned."""
        self.check(rows)
        with self.lock:
            with self.transaction():
                losses = self._pass(rows, labels)
            self.classes = max(self.classes, classes, self._classes_of(labels))
        return losses if want_scores else None

    def _classes_of(self, labels: Array) -> int:
        return int(labels.max()) + 1

    def _pass(self, rows: Array, labels: Array) -> Array:
        raise NotImplementedError

    def stepped(self, gradient: Array) -> Array:
        """One step of the next event: rate / sqrt(t), or rate / (reg t) with a regulariser."""
        t = self.rows.seen + 1
        step = self.rate / (self.reg * t) if self.reg > 0 else self.rate / np.sqrt(t)
        return np.asarray(self.w - step * (gradient + self.reg * self.w))

    def take(self, w: Array, met: int) -> None:
        """The weights after a sample that was paired with so many points."""
        if met > 0:
            self.sum, self.steps = self.sum + self.w, self.steps + 1
            self.pairs += met
        self.w = w

    def weights(self) -> Array:
        with self.lock:
            return self.sum / self.steps if self.average and self.steps else self.w.copy()

    def report(self) -> dict[str, Any]:
        with self.lock:
            filled = self.rows.filled
            return {"seen": self.rows.seen, "pairs": self.pairs, "ids": self.rows.ids[:filled].copy()}

    @property
    def memory_bytes(self) -> int:
        return self.rows.memory_bytes + int(self.w.nbytes + self.sum.nbytes)

    def state(self) -> Fields:
        with self.lock:
            counts = np.array([self.steps, self.pairs], dtype=np.int64)
            own = {"weights": self.w.copy(), "weights_sum": self.sum.copy(), "counts": counts}
            sizes = {"classes": self.classes, "width": self.rows.points.shape[1]}
            return {**self.rows.state(), **own, **{name: np.array([n], dtype=np.int64) for name, n in sizes.items()}}

    def restore(self, state: Fields) -> None:
        self.rows.restore(state)
        for name in ("weights", "weights_sum"):
            saved = np.asarray(state[name], dtype=float)
            if saved.shape != self.w.shape or not self._may_be(saved):
                raise ValueError(f"the saved {name} do not fit")
        self.w, self.sum = np.array(state["weights"]), np.array(state["weights_sum"])
        self.steps, self.pairs = (int(n) for n in state["counts"])
        self.classes = int(state["classes"][0])

    def _may_be(self, weights: Array) -> bool:
        """Whether saved weights can be weights of this learner."""
        return bool(np.isfinite(weights).all())
