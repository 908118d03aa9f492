"""An expert that is a Python object: a learner with Python inside, or of a kind that the race in the core does not hold."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._base.estimator import Run, core_of, task_of, with_run
from .._common.labels import wide
from .._common.types import Fields, FileFields
from ..budgets import DropOldest
from .expert import ExpertSpec

Floats = npt.NDArray[np.float64]


class ForeignLearner:
    """The methods by which the core runs an expert (`bind/race/python_expert.hpp`).

    The race copies it before a chunk and goes on with the copy after an error. A copy holds the saved state, and becomes a
    learner when it is used.
    """

    def __init__(self, spec: ExpertSpec, core: object) -> None:
        self.spec = spec
        self.model = copy.copy(spec.model)
        self.parts = spec.parts
        self._core: Any = core
        self._saved: Any = None

    @property
    def core(self) -> Any:
        if self._core is None:
            self._set(self.model.restored_core(self.parts, self._saved))
        return self._core

    def _set(self, core: Any) -> None:
        if task_of(self.model) == "novelty":
            core.report_raw_scores()
        self._core, self._saved = core, None

    def become(self, parts: Any, core: object) -> None:
        """Use these parts and this core from now on."""
        self.parts = parts
        self._set(core)

    def copy(self) -> ForeignLearner:
        other = copy.copy(self)
        other.model = copy.copy(self.model)
        if self._core is not None:
            spare = self.model.spare_parts(Run(self.parts))
            other.parts = self.parts if spare is None else spare
            other._core, other._saved = None, self._core.state()
        return other

    # ---- learning ------------------------------------------------------------------------------------------

    def begin(self, width: int) -> None:
        """Reset to the state before the first sample."""
        core = self.spec.begin(width)
        self.parts, self.model = self.spec.parts, copy.copy(self.spec.model)
        self._set(core)

    def _rows(self, rows: Floats) -> Any:
        return self.model._rows(self.core, rows)

    def learn(self, rows: Floats, labels: Floats, weights: Floats | None, classes: int) -> tuple[Floats, str]:
        """Scores before each sample, NaN from the one on that cannot be learned, and then why."""
        core, own = self.core, self._rows(rows)
        try:
            return np.asarray(core.learn(own, labels, weights, True, classes)), ""
        except _core.RowError as failure:
            row, _, why = str(failure).partition(": ")
        # It learns up to the sample that it cannot learn, for any cut of the stream, and leaves.
        good = int(row.removeprefix("row "))
        scores = np.full((len(labels), classes if classes > 2 else 1), np.nan)
        if good:
            some = None if weights is None else weights[:good]
            scores[:good] = core.learn(own[:good], labels[:good], some, True, classes)
        return scores, f"left at event {core.seen}: {why}"

    def pass_over(self, rows: Floats) -> None:
        """Samples that are counted and not learned."""
        self.core.learn(self._rows(rows), np.zeros(len(rows)), np.zeros(len(rows)), False, 0)

    def score(self, rows: Floats, classes: int) -> Floats:
        scores = np.asarray(self.core.score(self._rows(rows))[0])
        # After a rest it knows fewer classes than the race.
        return np.ascontiguousarray(wide(scores, classes) if classes > 2 and scores.shape[1] < classes else scores)

    def revisit(self, rows: Floats, labels: Floats, weights: Floats | None) -> None:
        """One more pass over the last samples, as far as it has seen them; unchanged where it cannot learn them again."""
        core, own = self.core, self._rows(rows)
        missed = max(0, len(labels) - core.seen)
        if missed == len(labels) or not hasattr(core, "revisit"):
            return
        with contextlib.suppress(_core.RowError):
            some = None if weights is None else weights[missed:]
            core.revisit(np.ascontiguousarray(own[missed:]), labels[missed:], some, core.seen - len(labels) + missed)

    def widen(self, width: int) -> None:
        """More columns, which were 0 so far."""
        model = copy.copy(self.model)
        model.n_features_in_ = self.core.width
        with_run(model, Run(self.parts, self.core)).widen(width)
        self._set(core_of(model))

    def rescale_targets(self, factor: float, shift: float) -> None:
        self.core.rescale_targets(np.array([factor]), np.array([shift]))

    # ---- memory --------------------------------------------------------------------------------------------

    def resize(self, memory: int) -> None:
        """From now on its budget has this many bytes."""
        self.core.resize(memory)
        self.parts = self.parts._replace(budget=dataclasses.replace(self.parts.budget, size=f"{memory} B"))

    def points_within(self, memory: int, outputs: int) -> int:
        try:
            return int(self.core.points_within(memory, outputs))
        except ValueError:
            return 0

    @property
    def is_window(self) -> bool:
        return isinstance(getattr(self.parts, "budget", None), DropOldest)

    @property
    def size(self) -> int:
        return int(getattr(self.core, "size", 0))

    @property
    def seen(self) -> int:
        return int(self.core.seen)

    @property
    def memory_bytes(self) -> int:
        return int(self.core.memory_bytes)

    # ---- files ---------------------------------------------------------------------------------------------

    def to_file(self) -> FileFields:
        """Arrays by name, and the parts as plain values."""
        state = self._saved if self._core is None else self._core.state()
        arrays, objects = persist.flatten(state)
        if objects is not None:
            raise TypeError("a model over Python objects cannot be saved without code")
        extra, parts = self.model.parts_fields(self.parts)
        return {f"core.{name}": array for name, array in arrays.items()} | extra, parts

    def from_file(self, arrays: Fields, parts: Fields, width: int, classes: int) -> None:
        inner = {name.removeprefix("core."): array for name, array in arrays.items() if name.startswith("core.")}
        extra = {name: array for name, array in arrays.items() if not name.startswith("core.")}
        found = self.model.restored_parts(extra, parts)
        core = self.model.restored_core(found, persist.unflatten(inner, None))
        if core.width != width or core.classes > classes:
            raise persist.ModelFileError("an expert does not fit the others")
        self.become(found, core)
