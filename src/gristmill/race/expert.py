"""The lanes of a race: one expert each, with the rows as it wants them, and scalings that several lanes share."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .. import _core, persist
from .._base.estimator import Run, task_of
from .._common.labels import LabelTable, wide
from ..prepared.prepared import Prepared
from ..prepared.target_scaler import TargetScale
from ..prepared.target_scalers import Targets
from ..streams.relevance import FIRST, RelevanceScaler
from ..streams.scaling import StreamScaler
from .baselines import Trivial
from .linear_experts import Line, LineOfChanges

Floats = npt.NDArray[np.float64]
Key = tuple[str, int | None]  #: of a scaling: how, and after how many events it is frozen


class Scaled:
    """The same rows as each lane may want them, each made once."""

    def __init__(self, by_key: dict[Key | None, Floats]) -> None:
        self.by_key = by_key
        self._singles: dict[Key | None, Any] = {}

    def __getitem__(self, key: Key | None) -> Floats:
        return self.by_key[key]

    def single(self, key: Key | None) -> Any:
        """In single precision, as lanes with little room keep them."""
        found = self._singles.get(key)
        if found is None:
            with np.errstate(over="ignore"):  # the core names the row that became infinite
                found = self._singles[key] = np.ascontiguousarray(self.by_key[key], dtype=np.float32)
        return found


class Scalings:
    """Each scaling that some lane wants, once."""

    def __init__(self) -> None:
        self.by_key: dict[Key, StreamScaler] = {}

    def find(self, key: Key) -> StreamScaler:
        if key not in self.by_key:
            self.by_key[key] = StreamScaler(*key)
        return self.by_key[key]

    def learn(self, X: Floats) -> Scaled:
        """X as it is, and each event scaled by what was known when it came."""
        found: dict[Key | None, Floats] = {None: X}
        for key, scaler in self.by_key.items():
            found[key] = scaler._learn_rows(X) if scaler.n_seen_ else scaler.learn_transform(X)
        return Scaled(found)

    def look(self, X: Floats) -> Scaled:
        """X as it is scaled now."""
        return Scaled({None: X} | {key: scaler._scale(X) for key, scaler in self.by_key.items()})

    @property
    def memory_bytes(self) -> int:
        return sum(scaler.memory_bytes for scaler in self.by_key.values() if scaler.n_seen_)

    def mark(self) -> Any:
        return {key: scaler._mark() for key, scaler in self.by_key.items()}

    def back(self, mark: Any) -> None:
        for key, scaler in self.by_key.items():
            scaler._back(mark[key])


class Lane:
    """A learner of gristmill, alone or `Prepared`; it learns as it would by itself."""

    def __init__(self, asked: Any, scalings: Scalings, single: bool) -> None:
        self.asked = asked
        self.single = single
        model = asked.model if isinstance(asked, Prepared) else asked
        # One that has not begun is a few values that nobody changes in place; `clone` takes longer than a hundred events.
        self.model: Any = clone(model) if model.__sklearn_is_fitted__() else copy.copy(model)
        self.key: Key | None = None
        self.relevance: RelevanceScaler | None = None
        self.note = ""  #: why it is no longer there
        self.rests = False  #: it has lost, and its room is another's
        #: whether it is told targets centred and scaled; who shares out memory does so for all
        self.scales_target = self.model._retargets and (
            single or (isinstance(asked, Prepared) and asked.target is not None)
        )
        scale = asked.scale if isinstance(asked, Prepared) else None
        if scale is not None:
            self.key = ("standard" if scale == "relevance" else scale, asked.warmup)
            shared = scalings.find(self.key)
            if scale == "relevance":
                self.relevance = RelevanceScaler(asked.warmup)
                self.relevance.standard = shared

    @property
    def runs(self) -> bool:
        return not self.note and not self.rests

    @property
    def core(self) -> Any:
        return self.model._run.core

    # ---- learning ------------------------------------------------------------------------------------------

    def begin(self, width: int) -> None:
        """As before the first event."""
        model = self.model
        run = Run(model._parts())
        run.core = model._begin(run, np.zeros((1, width), dtype=np.float32 if self.single else np.float64))
        model._run, model.n_features_in_ = run, width
        self._lay_bare()
        if self.relevance is not None:
            self.relevance.weights, self.relevance.history = np.ones(width), ()

    def _lay_bare(self) -> None:
        """A detector in a race says how dense it is, not whether that is an alarm."""
        if task_of(self.model) == "novelty":
            self.core.report_raw_scores()

    def _rows(self, scaled: Scaled) -> Any:
        core = self.core
        if self.relevance is not None:
            return self.model._rows(core, self.relevance._weighed(scaled[self.key]))
        return (
            scaled.single(self.key)
            if core.is_single and not core.is_sparse
            else self.model._rows(core, scaled[self.key])
        )

    def learn(self, scaled: Scaled, numbers: Floats, classes: int) -> Floats:
        """What it said of each event; NaN from the one on that it could not learn."""
        core, rows = self.core, self._rows(scaled)
        try:
            return np.asarray(core.learn(rows, numbers, None, True, classes))
        except _core.RowError as failure:
            row, _, why = str(failure).partition(": ")
        # It learns up to the event that it cannot take, whatever chunk that came in, and leaves.
        good = int(row.removeprefix("row "))
        said = np.full((len(numbers), classes if classes > 2 else 1), np.nan)
        if good:
            said[:good] = core.learn(rows[:good], numbers[:good], None, True, classes)
        self.note = f"left at event {core.seen}: {why}"
        return said

    def pass_over(self, scaled: Scaled, count: int) -> None:
        """Events that come by, and teach nothing."""
        self.core.learn(self._rows(scaled), np.zeros(count), np.zeros(count), False, 0)

    def score(self, scaled: Scaled, classes: int) -> Floats:
        said = np.asarray(self.core.score(self._rows(scaled))[0])
        # One that has just come back has met no class yet.
        return np.asarray(wide(said, classes)) if classes > 2 and said.shape[1] < classes else said

    def revisit(self, scaled: Scaled, numbers: Floats) -> None:
        """One more pass over the last events, as far as it was there for them; what it cannot take again it leaves alone."""
        core, rows = self.core, self._rows(scaled)
        missed = max(0, len(numbers) - core.seen)
        if missed == len(numbers) or not hasattr(core, "revisit"):
            return
        with contextlib.suppress(_core.RowError):  # undone: it stays as it was
            core.revisit(np.ascontiguousarray(rows[missed:]), numbers[missed:], None, core.seen - len(numbers) + missed)

    def widen(self, width: int) -> None:
        """More columns from now on: every stored point has 0 in them."""
        before = self.model.n_features_in_
        self.model.widen(width)
        self._lay_bare()
        if self.relevance is not None and self.relevance.weights is not None:
            more = (0, width - before)
            self.relevance.weights = np.pad(self.relevance.weights, more, constant_values=1.0)
            history = self.relevance.history
            self.relevance.history = tuple(dataclasses.replace(r, shares=np.pad(r.shares, more)) for r in history)

    def due(self) -> int | None:
        """Events until its columns are weighed anew."""
        return None if self.relevance is None else self.relevance.room()

    def is_due(self) -> bool:
        """Whether that is now."""
        if self.relevance is None or self.relevance.n_seen_ % FIRST != 0:
            return False
        times = self.relevance.n_seen_ // FIRST
        return times > 0 and times & (times - 1) == 0

    def renew(self, always: bool) -> None:
        if self.relevance is not None:
            self.relevance.renew(self.model, always=always)

    # ---- room ----------------------------------------------------------------------------------------------

    def resize(self, memory: int) -> None:
        """From now on its budget is one of so many bytes."""
        run = self.model._run
        run.core.resize(memory)
        budget = dataclasses.replace(run.parts.budget, size=f"{memory} B")
        run.parts = run.parts._replace(budget=budget)
        self.model.budget = budget

    @property
    def weighing_bytes(self) -> int:
        """What the weights of the columns and their history take, or will until room moves the next time."""
        if self.relevance is None or self.relevance.weights is None or not self.runs:
            return 0
        return 8 * len(self.relevance.weights) * (3 + len(self.relevance.history))

    @property
    def memory_bytes(self) -> int:
        if not self.runs:
            return 0
        own = 0 if self.relevance is None or self.relevance.weights is None else len(self.relevance.weights)
        return int(self.core.memory_bytes) + (8 * own * (1 + len(self.relevance.history)) if self.relevance else 0)

    # ---- what was learned ----------------------------------------------------------------------------------

    def composition(self) -> Any:
        """What to write down to get it, as it runs now."""
        model = clone(self.model)
        if hasattr(model, "kernel"):
            model.kernel = self.model._run.parts.kernel
        target = "scale" if self.scales_target or not self.model._retargets else None
        if isinstance(self.asked, Prepared):
            return Prepared(model, self.asked.scale, self.asked.warmup, target=target)
        return Prepared(model, None) if self.scales_target else model

    def fitted(self, scalings: Scalings, labels: LabelTable, target: TargetScale | None) -> Any:
        """The expert by itself, as it is now."""
        alone, inner = self.composition(), copy.copy(self.model)
        if hasattr(inner, "kernel"):
            inner.kernel = inner._run.parts.kernel
        inner._run.labels = LabelTable(labels.names[: inner._run.core.classes])
        if not isinstance(alone, Prepared):
            return inner
        scaler: Any = self.relevance
        if scaler is None and self.key is not None:
            scaler = scalings.by_key[self.key]
        targets = Targets((target.copy(),)) if self.scales_target and target is not None else None
        alone._go_on(inner, copy.deepcopy(scaler), targets)
        return alone

    def mark(self) -> Any:
        run = self.model._run
        renewed = None if self.relevance is None else (self.relevance.weights, self.relevance.history)
        return run.parts, run.core.state(), getattr(self.model, "budget", None), renewed, self.note, self.rests

    def back(self, mark: Any) -> None:
        parts, state, budget, renewed, self.note, self.rests = mark
        if hasattr(self.model, "budget"):
            self.model.budget = budget
        self.model._run = Run(parts, self.model._restored(parts, state))
        self._lay_bare()
        if self.relevance is not None:
            self.relevance.weights, self.relevance.history = renewed

    def to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and plain values."""
        run = self.model._run
        arrays, objects = persist.flatten(run.core.state())
        if objects is not None:
            raise TypeError("a model over Python objects cannot be saved without code")
        arrays = {f"core.{name}": array for name, array in arrays.items()}
        extra, parts = self.model._parts_to_file(run.parts)
        found: dict[str, Any] = {"parts": parts, "note": self.note, "rests": self.rests}
        if self.relevance is not None:
            weighed, found["relevance"] = self.relevance._to_file()
            arrays |= {name: weighed[name] for name in ("relevance_weights", "relevance_shares")}
        return {**arrays, **extra}, found

    def from_file(self, arrays: dict[str, Any], fitted: dict[str, Any], width: int, classes: int) -> None:
        model = self.model
        inner = {name.removeprefix("core."): array for name, array in arrays.items() if name.startswith("core.")}
        extra = {name: array for name, array in arrays.items() if not name.startswith("core.")}
        parts = model._parts_from_file(extra, fitted["parts"])
        core = model._restored(parts, persist.unflatten(inner, None))
        self.note, self.rests = str(fitted["note"]), bool(fitted["rests"])
        if core.width != width or core.classes > classes:  # fewer: it rested, or has just come back
            raise persist.ModelFileError("an expert does not fit the others")
        model._run, model.n_features_in_ = Run(parts, core), width
        self._lay_bare()
        if hasattr(model, "budget"):
            model.budget = parts.budget
        if self.relevance is not None:
            shared = self.relevance.standard
            self.relevance.standard = copy.deepcopy(shared)  # the file's own is shared, and read already
            self.relevance._from_file({**extra, **shared._to_file()[0]}, fitted["relevance"])
            self.relevance.standard = shared


class TrivialLane:
    """An expert that needs no rows."""

    note, rests, runs = "", False, True
    scales_target = False

    def __init__(self, asked: Trivial) -> None:
        self.asked = asked
        self.counter = asked.begin()

    def learn(self, scaled: Scaled, numbers: Floats, classes: int) -> Floats:
        return np.asarray(self.counter.learn(numbers, classes))

    def score(self, scaled: Scaled, classes: int) -> Floats:
        return np.asarray(self.counter.score(len(scaled[None]), classes))

    @property
    def memory_bytes(self) -> int:
        return int(self.counter.memory_bytes)

    def composition(self) -> Trivial:
        return self.asked

    def mark(self) -> Any:
        return copy.copy(self.counter)

    def back(self, mark: Any) -> None:
        self.counter = mark

    def to_file(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"counter": self.counter.state()}, {}

    def from_file(self, arrays: dict[str, Any], fitted: dict[str, Any], width: int, classes: int) -> None:
        self.counter.restore(np.asarray(arrays["counter"], dtype=np.float64), classes)


def lane_of(expert: Any, scalings: Scalings, single: bool) -> Any:
    """The lane that an expert runs in."""
    if not isinstance(expert, Trivial):
        return Lane(expert, scalings, single)
    if isinstance(expert, Line | LineOfChanges):
        scalings.find(("standard", None))
        return expert.begin()
    return TrivialLane(expert)
