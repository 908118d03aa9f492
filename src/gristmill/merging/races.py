"""Races as one: expert by expert, each merged as it would be by itself, with the losses of all.

The shards may have shared out their memory in different ways. An expert goes on where it ran over at least half of the
events, as many of them as ran before, the best by the losses of all first; the others rest, and come back as in any race.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import _core
from .._base.estimator import Run
from .._common.labels import LabelTable
from .._common.params import same
from .._common.ranges import bytes_in
from ..prepared.target_scaler import TargetScale
from ..race.expert import Lane, TrivialLane
from ..race.linear_experts import LineLane
from ..race.memory_shares import LAST
from ..race.native import native, viewed
from ..streams.relevance import RelevanceScaler
from ..streams.scaling import StreamScaler
from .compatibility import check_columns, shares_of, sizeless
from .learners import Move, learners
from .race_states import counter, intervals, line, mixture, strangeness
from .terms import Floats


def merged(models: list[Any], size: Any, weights: Any) -> Any:
    """One race of several, of memory `size` where it shares out memory; else each of its experts has that size."""
    runs = [model._started() for model in models]
    shares = shares_of(models, weights)
    if any(isinstance(run.core, _core.Detector) for run in runs):
        return _merged_detectors(models, size, shares)
    for at, model in enumerate(models[1:], 1):
        _check_alike(models[0], model, at)
    fresh = _like(models[0], size)
    races = _Races(runs, shares, fresh)
    core = races.core(None if fresh._memory() is not None else size)
    fresh._run = Run(fresh._parts(), native(core), races.labels)
    return fresh


def _merged_detectors(models: list[Any], size: Any, shares: Floats) -> Any:
    """One detector with a sample of all samples, and the last scores of all."""
    first = models[0]
    for at, model in enumerate(models[1:], 1):
        check_columns(first, model, at)
        if model.alarm_rate != first.alarm_rate:
            rates = f"{first.alarm_rate!r} and {model.alarm_rate!r}"
            raise ValueError(f"merge: models 0 and {at} have different parts: alarm_rate is {rates}")
        if model.experts is not None or first.experts is not None:
            raise ValueError(f"merge: models 0 and {at} race different experts: {first!r} and {model!r}")
    fresh = _like(first, size)
    core = _core.Detector.merged([model._engine for model in models], shares.tolist(), fresh._memory())
    fresh._run = Run(fresh._parts(), core)
    return fresh


def _like(first: Any, size: Any) -> Any:
    fresh = clone(first)
    if size is not None and first._memory() is not None:
        if not isinstance(size, str):
            raise ValueError(
                f"merge: {type(first).__name__} shares out memory, not points: "
                f"size must be words such as '1 MB', got {size!r}"
            )
        bytes_in(size)
        fresh.set_params(memory=size)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in first.__dict__:
            setattr(fresh, name, first.__dict__[name])
    return fresh


def _check_alike(first: Any, other: Any, at: int) -> None:
    """Refuse, by name, races that are not of the same experts."""
    mine, its = viewed(first._engine), viewed(other._engine)
    check_columns(first, other, at)
    for name in ("share", "alarm_rate"):
        a, b = getattr(first, name, None), getattr(other, name, None)
        if a != b:
            raise ValueError(f"merge: models 0 and {at} have different parts: {name} is {a!r} and {b!r}")
    if len(mine.lanes) != len(its.lanes):
        raise ValueError(f"merge: models 0 and {at} race {len(mine.lanes)} and {len(its.lanes)} experts")
    for place, (a, b) in enumerate(zip(mine.lanes, its.lanes, strict=True)):
        _check_lanes(place, a, b, at)


def _check_lanes(place: int, a: Any, b: Any, at: int) -> None:
    """Budgets may differ in their size, which moves in a race."""
    mine, its = a.composition(), b.composition()
    if isinstance(a, Lane) and isinstance(b, Lane):
        ways = [(lane.key, lane.relevance is None, lane.scales_target, type(lane.model)) for lane in (a, b)]
        alike = ways[0] == ways[1]
        if alike:
            parts = [(lane.model._run.parts, sizeless(lane.model._run.parts.budget)) for lane in (a, b)]
            (first, kind), (other, its_kind) = parts
            alike = same(first._replace(budget=None), other._replace(budget=None)) and same(kind, its_kind)
    else:
        alike = same(mine, its)
    if not alike:
        raise ValueError(f"merge: models 0 and {at} race different experts: number {place} is {mine!r} and {its!r}")


class _Races:
    """Fitted races, on their way into a core of another."""

    def __init__(self, runs: list[Run], shares: Floats, fresh: Any) -> None:
        self.cores = [viewed(run.core) for run in runs]
        self.shares = shares
        self.labels = LabelTable()
        known = [run.labels.names[: run.core.classes] for run in runs]
        for names in known:
            self.labels = self.labels.extended(names)
        #: place of each race's classes among those of all
        self.codes = [[self.labels.codes[name] for name in names] for names in known]
        self.into = fresh._fresh(self.cores[0].width)
        self.into.begin(self.cores[0].width)

    def core(self, size: Any) -> Any:
        into = self.into
        self._scale()
        into.mixture.restore(self._mixture())
        if into.task == "regression":
            found = intervals([core.errors.state()["intervals"] for core in self.cores], self.shares)
            into.errors.restore({"intervals": found})
        running = self._running()
        for place, lane in enumerate(into.lanes):
            if not isinstance(lane, Lane):
                self._tell(place)
            elif place in running:
                lane.rests, lane.note = False, ""
                self._weigh(place)
            else:
                self._rest(place)
        rooms = self._rooms(running)
        for place in rooms:
            self._learner(place, rooms[place] or size)
        if into.rooms.memory is not None:
            for place, room in rooms.items():
                into.lanes[place].resize(int(room.removesuffix(" B")))
        into.is_fresh = False
        return into

    # ---- what all share ------------------------------------------------------------------------------------

    def _scale(self) -> None:
        for key, scaler in self.into.scalings.by_key.items():
            known = [core.scalings.by_key[key] for core in self.cores if core.scalings.by_key[key].n_seen_]
            if known:
                scaler._from_file(*StreamScaler._merged(known)._to_file())
        if self.into.target is not None:
            known_targets = [core.target for core in self.cores if core.target is not None]
            self.into.target = TargetScale.merged(known_targets)

    def _mixture(self) -> dict[str, Any]:
        states = [core.mixture.state() for core in self.cores]
        if self.into.task == "novelty":
            return strangeness(states)
        there = np.array([[lane.runs for lane in core.lanes] for core in self.cores])
        return mixture(states, self.shares, there, self.codes, len(self.labels))

    # ---- active experts and their memory -------------------------------------------------------------------

    def _ran(self, place: int) -> list[int]:
        """The races in which an expert runs and has learned."""
        return [
            at
            for at, core in enumerate(self.cores)
            if core.lanes[place].runs and core.lanes[place].core.seen and self.shares[at] > 0
        ]

    def _running(self) -> list[int]:
        """Experts that continue, best first."""
        places = [place for place, lane in enumerate(self.into.lanes) if isinstance(lane, Lane) and self._ran(place)]
        if self.into.rooms.memory is None or self.into.task == "novelty":
            return places
        spread = {place: float(self.shares[self._ran(place)].sum()) for place in places}
        most = max(sum(lane.runs for _, lane in core.learning_lanes) for core in self.cores)
        recent, counted = self.into.mixture.recent, self.into.mixture.counted
        if not counted.any():  # room has moved with the last event
            recent, counted = self.into.mixture.errors, self.into.mixture.events
        mean = np.where(counted > 0, recent / np.maximum(counted, 1), np.inf)
        ranked = sorted(places, key=lambda place: (spread[place] < 0.5, mean[place], place))
        enough = sum(spread[place] >= 0.5 for place in places)
        return ranked[: max(min(most, enough), min(LAST, len(ranked)))]

    def _rooms(self, running: list[int]) -> dict[int, Any]:
        """The size of each, in words; None where they keep their own."""
        into = self.into
        if into.rooms.memory is None:
            return dict.fromkeys(running)
        classes = len(self.labels)
        into.rooms.check(into, classes)
        shares = into.rooms.shared_out(into, running, classes)
        for place in running:
            if place not in shares:
                self._rest(place)
        into.rooms.shares = shares
        into.rooms.tried = [place for place in self.cores[0].rooms.tried if place < len(into.lanes)]
        return {place: f"{room} B" for place, room in shares.items()}

    def _rest(self, place: int) -> None:
        lane = self.into.lanes[place]
        notes = [core.lanes[place].note for core in self.cores]
        lane.note = notes[0] if all(notes) else ""
        lane.rests = not lane.note
        self.into.mixture.leave(place)

    # ---- experts ---------------------------------------------------------------------------------------------

    def _tell(self, place: int) -> None:
        """An expert that counts, or draws a line."""
        lane = self.into.lanes[place]
        old = [core.lanes[place] for core in self.cores]
        if isinstance(lane, TrivialLane):
            found: Any = counter([one.counter for one in old], self.codes, max(len(self.labels), 2))
            arrays = {"counter": found}
        else:
            assert isinstance(lane, LineLane)
            key = ("standard", None)
            moves = [(core.scalings.by_key[key], self.into.scalings.by_key[key]) for core in self.cores]
            arrays = line(old, moves)
        lane.from_file(arrays, {}, self.into.width, len(self.labels))

    def _weigh(self, place: int) -> None:
        """Weights of columns, where an expert has them."""
        lane, ran = self.into.lanes[place], self._ran(place)
        if lane.relevance is None:
            return
        old = [self.cores[at].lanes[place].relevance for at in ran]
        whole = RelevanceScaler._merged(old, self.shares[ran] / self.shares[ran].sum())
        lane.relevance.weights, lane.relevance.history = whole.weights, whole.history

    def _learner(self, place: int, size: Any) -> None:
        lane, ran = self.into.lanes[place], self._ran(place)
        old = [self.cores[at].lanes[place] for at in ran]
        models = [self._retargeted(at, place) for at in ran]
        moves = None
        if lane.key is not None:
            to = lane.relevance or self.into.scalings.by_key[lane.key]
            scalers = [
                one.relevance or self.cores[at].scalings.by_key[lane.key] for at, one in zip(ran, old, strict=True)
            ]
            moves = [Move(scaler, to) for scaler in scalers]
        names = [[self.labels.names[code] for code in self.codes[at]] for at in ran]
        shares = self.shares[ran] / self.shares[ran].sum()
        whole = learners(models, size, shares, moves, (self.labels, names))
        lane.model._run = Run(whole._run.parts, whole._run.core)
        if hasattr(lane.model, "budget"):
            lane.model.budget = whole._run.parts.budget
        lane.model.n_features_in_ = self.into.width
        lane._lay_bare()

    def _retargeted(self, at: int, place: int) -> Any:
        """An equivalent learner in the present target units."""
        model, old, new = copy.copy(self.cores[at].lanes[place].model), self.cores[at].target, self.into.target
        if self.into.lanes[place].scales_target and old is not None and old.is_known:
            model._run.core.rescale_targets(*(np.array([number]) for number in old.to(new)))
        return model
