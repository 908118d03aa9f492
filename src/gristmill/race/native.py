"""A race whose experts, scalings, mixture and memory are all in the core: no Python between a method and the core.

`NativeRace` is what a race of kernel learners, baselines and lines runs on. `RaceCore` (core.py) has the same
numbers in Python: it runs races with other experts, and is the form in which a race is read, merged and saved.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .. import _core
from .._base.estimator import Run
from ..budgets import Budget
from ..rules import Rule
from ..streams.relevance import Renewal
from .baselines import LastValue, Majority, NoChange, RunningMean
from .core import RaceCore
from .expert import Lane, TrivialLane
from .linear_experts import LineLane
from .novelty_mixture import NoveltyMixture

_BASELINES = {Majority: 0, NoChange: 1, RunningMean: 2, LastValue: 3}


def native(core: RaceCore) -> Any:
    """The same race in the core, where all of its experts can run there; else the race itself."""
    return NativeRace(core) if all(map(_is_native, core.lanes)) else core


def viewed(core: Any) -> RaceCore:
    """A race as Python objects, of one moment."""
    return core.view() if isinstance(core, NativeRace) else core


def _is_native(lane: Any) -> bool:
    if not isinstance(lane, Lane):
        return isinstance(lane, TrivialLane | LineLane)
    parts = lane.model._run.parts
    if type(lane.core) is not _core.PointLearner or lane.core.is_sparse or lane.core.targets != 1:
        return False
    return isinstance(parts.rule, Rule) and isinstance(parts.budget, Budget)


class NativeRace(_core.Race):
    """A race in the core. core: the same race in Python, whose experts have begun."""

    is_plain, is_single, is_sparse = True, False, False

    def __init__(self, core: RaceCore) -> None:
        super().__init__(core.task, len(core.lanes), core.share, core.rooms.memory or 0)
        self._asked = [lane.asked for lane in core.lanes]
        self.task, self._share, self._memory, self.began = core.task, core.share, core.rooms.memory, core.began
        fresh = core if core.is_fresh else self._python(core.began)
        for lane in fresh.lanes:
            if isinstance(lane, Lane):
                by_range = None if lane.key is None else lane.key[0] == "minmax"
                warmup = None if lane.key is None else lane.key[1]
                self.add_learner(lane.core, by_range, warmup, lane.relevance is not None, lane.scales_target)
            elif isinstance(lane, LineLane):
                self.add_line(lane.changes)
            else:
                self.add_baseline(_BASELINES[type(lane.asked)])
        self.begin(core.began)
        if core.width > core.began:
            self.widen_rows(core.width)
        if not core.is_fresh:
            self._take(core)

    def _python(self, width: int) -> RaceCore:
        core = RaceCore(self._asked, self.task, self._share, self._memory)
        core.began = core.width = width
        for _, lane in core.learning_lanes:
            lane.begin(width)
        return core

    def widen(self, width: int) -> None:
        """More columns from now on, in which everything so far was 0."""
        self.widen_rows(width)

    def learn_batch(self, rows: Any, numbers: Any, known: int, passes: int | str) -> None:
        """A batch in several passes; "auto": until a tail that is kept back is predicted no better."""
        super().learn_batch(rows, numbers, known, 0 if passes == "auto" else int(passes))

    # ---- as Python objects ---------------------------------------------------------------------------------------

    def view(self) -> RaceCore:
        """The race of this moment as Python objects, which are copies."""
        now: Any = self.snapshot()
        core = self._python(self.began)
        core.width, core.is_fresh = now.width, False
        shares, core.rooms.tried, core.rooms.begun = now.get_shares()
        core.rooms.shares = dict(shares)
        for key, scaler in core.scalings.by_key.items():
            scaling = now.get_scaling(key[0] == "minmax", key[1])
            if scaling.width:
                scaler._scaling, scaler.n_features_in_ = scaling, scaling.width
        mixture = now.get_mixture()
        novelty = self.task == "novelty"
        core.mixture = NoveltyMixture(len(core.lanes), self._share, mixture) if novelty else mixture
        core.errors = now.intervals()
        if core.target is not None:
            target = core.target
            target.first, target.count, target.sum, target.squares, target.centre, target.spread, target.next = (
                now.get_target()
            )
        for place, lane in enumerate(core.lanes):
            if isinstance(lane, Lane):
                self._view_learner(now, place, lane, core)
            elif isinstance(lane, LineLane):
                lane.core, lane.first, lane.last, lane.seen, lane.row = now.get_line(place)
            else:
                lane.counter.restore(now.get_numbers(place), core.classes)
        return core

    @staticmethod
    def _view_learner(now: Any, place: int, lane: Lane, core: RaceCore) -> None:
        run, model = lane.model._run, lane.model
        parts = run.parts
        if place in core.rooms.shares:
            parts = parts._replace(budget=dataclasses.replace(parts.budget, size=f"{core.rooms.shares[place]} B"))
            model.budget = parts.budget
        model._run, model.n_features_in_ = Run(parts, now.get_learner(place)), core.width
        lane.note, lane.rests = now.get_flags(place)
        if lane.relevance is not None:
            lane.relevance.weights, history = now.get_relevance(place)
            lane.relevance.history = tuple(Renewal(*line) for line in history)

    def _take(self, core: RaceCore) -> None:
        """Go on where a race in Python stands."""
        for scaler in core.scalings.by_key.values():
            if scaler._scaling is not None:
                self.set_scaling(scaler._scaling)
        self.set_mixture(core.mixture.inner if isinstance(core.mixture, NoveltyMixture) else core.mixture)
        self.set_intervals(core.errors)
        if core.target is not None:
            target = core.target
            known = target.first, target.count, target.sum, target.squares, target.centre, target.spread, target.next
            self.set_target(known)
        for place, lane in enumerate(core.lanes):
            if isinstance(lane, Lane):
                self.set_learner(place, lane.core)
                self.set_flags(place, lane.note, lane.rests)
                if lane.relevance is not None:
                    history = [(r.position, np.ascontiguousarray(r.shares), r.taken) for r in lane.relevance.history]
                    self.set_relevance(place, np.ascontiguousarray(lane.relevance.weights), history)
            elif isinstance(lane, LineLane):
                row = np.ascontiguousarray(lane.row, dtype=np.float64)
                self.set_line(place, lane.core, lane.first, lane.last, lane.seen, row)
            else:
                self.set_numbers(place, np.ascontiguousarray(lane.counter.state(), dtype=np.float64))
        self.set_shares(list(core.rooms.shares.items()), core.rooms.tried, core.rooms.begun)

    def state(self) -> dict[str, Any]:
        """Arrays by name, as `RaceCore` writes them."""
        return self.view().state()

    mixture: Any = property(lambda self: self.view().mixture)
    lanes: Any = property(lambda self: self.view().lanes)
    learning_lanes: Any = property(lambda self: self.view().learning_lanes)
    scalings: Any = property(lambda self: self.view().scalings)
    target: Any = property(lambda self: self.view().target)
    rooms: Any = property(lambda self: self.view().rooms)
    errors: Any = property(lambda self: self.view().errors)
