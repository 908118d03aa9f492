"""Merge races expert by expert, each as it would be merged alone; losses add up.

The parts may have shared out their memory in different ways; `core/race/merging.hpp` says which experts go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from .. import _core
from .._base.estimator import Run, core_of, run_of, with_run
from .._common.labels import LabelTable
from .._common.params import same
from .._common.ranges import bytes_in
from ..prepared.target_scaler import TargetScale
from ..race.core import RaceCore
from ..race.expert import ExpertView, scaler_of, target_of
from ..streams.rank import united
from ..streams.relevance import RelevanceScaler
from .compatibility import check_columns, shares_of, sizeless
from .learners import Move, learners
from .terms import Floats


def merged(models: list[Any], size: object, weights: object) -> Any:
    """One race of several, of memory `size` where it shares out memory; else each of its experts has that size."""
    runs = [run_of(model) for model in models]
    shares = shares_of(models, weights)
    if any(isinstance(run.core, _core.Detector) for run in runs):
        return _merged_detectors(models, size, shares)
    for at, (model, run) in enumerate(zip(models, runs, strict=True)):
        if run.core.is_wide:
            raise ValueError(
                f"merge: model {at}, {type(model).__name__}, has learned sparse rows: its weights are not merged"
            )
    for at, model in enumerate(models[1:], 1):
        _check_alike(models[0], model, at)
    fresh = _like(models[0], size)
    races = _Races(runs, shares, fresh)
    core = races.core(None if fresh.memory_limit() is not None else size)
    with_run(fresh, Run(fresh.checked_parts(), core, races.labels))
    return fresh


def _merged_detectors(models: list[Any], size: object, shares: Floats) -> Any:
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
    cores = [core_of(model) for model in models]
    outside = max(one.outside for one in cores)
    core = _core.Detector.merged(cores, shares.tolist(), fresh.memory_limit(), outside)
    with_run(fresh, Run(fresh.checked_parts(), core))
    return fresh


def _like(first: Any, size: object) -> Any:
    fresh = clone(first)
    if size is not None and first.memory_limit() is not None:
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
    mine, its = core_of(first).experts(late=False), core_of(other).experts(late=False)
    check_columns(first, other, at)
    for name in ("share", "alarm_rate", "class_weight"):
        a, b = getattr(first, name, None), getattr(other, name, None)
        if a != b:
            raise ValueError(f"merge: models 0 and {at} have different parts: {name} is {a!r} and {b!r}")
    if len(mine) != len(its):
        raise ValueError(f"merge: models 0 and {at} race {len(mine)} and {len(its)} experts")
    for a, b in zip(mine, its, strict=True):
        if not _are_alike(a, b):
            raise ValueError(
                f"merge: models 0 and {at} race different experts: number {a.place} is {a.composition()!r} and "
                f"{b.composition()!r}"
            )


def _are_alike(a: ExpertView, b: ExpertView) -> bool:
    """Budgets may differ in their size, which moves in a race."""
    if a.is_trivial or b.is_trivial:
        return same(a.composition(), b.composition())
    ways = [(view.key, view.spec.weighs, view.scales_target, type(view.spec.model)) for view in (a, b)]
    if ways[0] != ways[1]:
        return False
    first, other = a.parts, b.parts
    if not hasattr(first, "budget"):
        return same(first, other)
    kinds = [sizeless(parts.budget) for parts in (first, other)]
    return same(first._replace(budget=None), other._replace(budget=None)) and same(*kinds)


class _Races:
    """Fitted races, each at one moment, and the race that they become.

    Scalings, targets and column weights are united first, then by the core all else but the learners, which follow from the
    scalings of their races to the united ones.
    """

    def __init__(self, runs: list[Run], shares: Floats, fresh: Any) -> None:
        self.experts = [run.core.experts(late=False) for run in runs]
        self.races = [views[0].race for views in self.experts]
        self.shares = shares
        self.labels = LabelTable()
        known = [run.labels.names[: race.classes] for run, race in zip(runs, self.races, strict=True)]
        for names in known:
            self.labels = self.labels.extended(names)
        self.names = known
        #: position of each race's classes among those of all
        self.codes = [[self.labels.codes[name] for name in names] for names in known]
        first = runs[0].core
        outside = max(run.core.outside for run in runs)
        self.into: RaceCore = fresh.new_race(first.began, outside=outside if first.width == first.began else 0)
        if first.width > first.began:
            self.into.widen(first.width, outside)

    def core(self, size: Any) -> RaceCore:
        """The united race; `size` of each expert where the race shares out no memory."""
        into, shares = self.into, self.shares.tolist()
        self._unite_scalings()
        for place, ran in enumerate(into.parts_that_ran(self.races, shares)):
            if ran and into.specs[place].weighs:
                self._unite_weights(place, ran)
        united = into.unite(self.races, shares, self.codes, len(self.labels))
        for place, ran in united:
            self._unite_learners(place, ran, f"{into.shares[place]} B" if place in into.shares else size)
        into.resize_to_shares()
        return into

    def _unite_scalings(self) -> None:
        for key in self.into.scaling_keys:
            known = [scaler for race in self.races if (scaler := scaler_of(race, key)).n_seen_]
            if known:
                by_rank = isinstance(self.into.scaling(*key), _core.RankScaling)
                self.into.set_scaling(*key, united(known, by_rank).snapshot())
        targets = [target for race in self.races if (target := target_of(race)) is not None]
        self.into.unite_targets(self.races)
        if targets:
            self.into.set_target(TargetScale.merged(targets))

    def _unite_weights(self, place: int, ran: list[int]) -> None:
        shares = self.shares[ran] / self.shares[ran].sum()
        whole = RelevanceScaler.merged_of([self.experts[at][place].scaler for at in ran], shares)
        history = [(found.position, np.ascontiguousarray(found.shares), found.taken) for found in whole.history]
        self.into.set_relevance(place, np.ascontiguousarray(whole.weights), history)

    def _unite_learners(self, place: int, ran: list[int], size: object) -> None:
        views = [self.experts[at][place] for at in ran]
        now = ExpertView(self.into, self.into.specs[place], place)
        moves = None if now.key is None else [Move(view.scaler, now.scaler) for view in views]
        shares = self.shares[ran] / self.shares[ran].sum()
        models = [self._retargeted(view) for view in views]
        whole = learners(models, size, shares, moves, (self.labels, [self.names[at] for at in ran]))
        self.into.set_expert(place, run_of(whole).parts, core_of(whole))

    def _retargeted(self, view: ExpertView) -> Any:
        """A copy of the learner in the united units of the targets."""
        model, old, new = view.model, target_of(view.race), target_of(self.into)
        if view.scales_target and old is not None and new is not None and old.is_known:
            core_of(model).rescale_targets(*(np.array([number]) for number in old.to(new)))
        return model
