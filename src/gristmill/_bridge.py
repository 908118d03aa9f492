"""The compiled learners as the estimators call them: class codes in, the number of classes out with the scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._input import Rows
from ._labels import wide


class Coded:
    """A compiled learner behind codes 0, 1, 2 .. in order of arrival; a class enters at the event that brings it."""

    def __init__(self, make: Callable[[int], Any], counts: bool, outputs: int = 1) -> None:
        self._make, self._counts = make, counts
        self.bound = make(outputs)
        self.classes = outputs if outputs > 1 else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bound, name)

    def _signed(self, labels: Any) -> Any:
        return 2.0 * labels - 1.0 if self._counts and self.bound.outputs == 1 else labels

    def learn(self, rows: Rows, labels: Any, weights: Any, want_scores: bool, classes: int = 0) -> Any:
        if not self._counts:
            return self.bound.learn(rows, labels, weights, want_scores)
        last = max(self.classes, classes, int(labels.max()) + 1)
        if last == self.classes or last <= 2:
            scores = self.bound.learn(rows, self._signed(labels), weights, want_scores)
            self.classes = last
            return scores
        return self._grow(rows, labels, weights, want_scores, classes)

    def _grow(self, rows: Rows, labels: Any, weights: Any, want_scores: bool, classes: int) -> Any:
        """Learn on a copy, piece after piece: at the head of each a new class enters."""
        twin = Coded(self._make, True, int(self.bound.outputs))
        twin.bound.restore(self.bound.state())
        twin.classes = self.classes
        twin._know(max(self.classes, classes))
        met = np.maximum.accumulate(np.maximum(labels, twin.classes - 1))
        cuts = [0, *(np.flatnonzero(np.diff(met) > 0) + 1).tolist(), len(labels)]
        pieces = []
        for first, last in itertools.pairwise(cuts):
            twin._know(int(met[first]) + 1)
            some = None if weights is None else weights[first:last]
            piece = twin.bound.learn(_between(rows, first, last), twin._signed(labels[first:last]), some, want_scores)
            pieces.append(piece)
        self.bound, self.classes = twin.bound, twin.classes
        return np.concatenate([wide(piece, self.outputs) for piece in pieces]) if want_scores else None

    def _know(self, classes: int) -> None:
        while classes > 2 and self.bound.outputs < classes:
            self.bound.add_class()
        self.classes = max(self.classes, classes)

    def revisit(self, rows: Rows, labels: Any, weights: Any, start: int) -> None:
        self.bound.revisit(rows, self._signed(labels), weights, start)

    def learn_one(self, x: Any, label: float, weight: float) -> None:
        self.bound.learn_one(x, self._signed(label), weight)

    def score(self, rows: Rows) -> tuple[Any, int]:
        bound, classes = self.bound, self.classes
        return bound.score(rows), classes

    def state(self) -> dict[str, Any]:
        state = dict(self.bound.state())
        return {**state, "classes": np.array([self.classes], dtype=np.int64)}

    def restore(self, state: dict[str, Any]) -> None:
        arrays = dict(state)
        classes = arrays.pop("classes")
        if classes.shape != (1,) or classes.dtype != np.int64 or not 0 <= classes[0] <= 2**31:
            raise ValueError("the saved number of classes is damaged")
        if max(int(classes[0]), 2) != max(int(self.bound.outputs), 2):
            raise ValueError("the saved outputs do not fit the number of classes")
        self.bound.restore(arrays)
        self.classes = int(classes[0])


class Paired(Coded):
    """A compiled pairwise learner: it takes no weights, and one that ranks takes signs."""

    def __init__(self, core: Any, ranks: bool) -> None:
        super().__init__(lambda _: core, counts=True)
        self.outputs = 1
        self._ranks, self.is_plain = ranks, hasattr(core, "learn_one")

    def _signed(self, labels: Any) -> Any:
        return 2.0 * labels - 1.0 if self._ranks else labels

    def check(self, rows: Rows) -> None:
        """Learning checks them, before anything changes."""

    def learn(self, rows: Rows, labels: Any, weights: Any, want_scores: bool, classes: int = 0) -> Any:
        scores = self.bound.learn(rows, self._signed(labels), want_scores)
        self.classes = max(self.classes, classes, int(labels.max()) + 1)
        return scores

    def learn_one(self, x: Any, label: float, weight: float) -> None:
        self.bound.learn_one(x, self._signed(label))

    def score_one(self, x: Any) -> float:
        return float(self.bound.score(x[None])[0])

    def state(self) -> dict[str, Any]:
        return {**super().state(), "width": np.array([self.bound.width], dtype=np.int64)}

    def restore(self, state: dict[str, Any]) -> None:
        arrays = {name: value for name, value in state.items() if name not in ("classes", "width")}
        self.bound.restore(arrays)
        self.classes = int(state["classes"][0])


def _between(rows: Rows, first: int, last: int) -> Rows:
    if not isinstance(rows, tuple):
        return rows[first:last]
    indptr, indices, data, width = rows
    inside = slice(int(indptr[first]), int(indptr[last]))
    return np.ascontiguousarray(indptr[first : last + 1] - indptr[first]), indices[inside], data[inside], width
