"""The experts of a race: what each is before it learns, and a copy of one as it is at one moment."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .. import _core, persist
from .._base.estimator import Run, core_of, run_of, task_of, with_run
from .._common.labels import LabelTable
from .._common.types import Fields
from ..budgets import Budget
from ..prepared.prepared import Prepared
from ..prepared.target_scaler import TargetScale
from ..prepared.target_scalers import Targets
from ..rules import Rule
from ..streams.rank import RankScaler
from ..streams.relevance import RelevanceScaler, Renewal
from ..streams.scaling import StreamScaler
from .baselines import Trivial

Floats = npt.NDArray[np.float64]
Key = tuple[str, int | None]  #: of a scaling: the method, and after how many samples it is frozen


class ExpertSpec:
    """An expert of a race before it has learned: parameters, and the parts that run once the race has begun.

    Parameters
    ----------
    asked : learner, alone or `Prepared`, or a trivial expert
    single : bool
        Whether points are stored in single precision, and targets scaled for every learner: so it is in a race that shares
        out memory.
    """

    def __init__(self, asked: Any, single: bool) -> None:
        self.asked, self.single = asked, single
        self.parts: Any = None
        self.key: Key | None = None
        self.weighs = self.scales_target = False
        if self.is_trivial:
            return
        model = asked.model if isinstance(asked, Prepared) else asked
        # Values that are not changed in place, if it has not begun; `clone` takes longer than a hundred samples.
        self.model: Any = clone(model) if model.__sklearn_is_fitted__() else copy.copy(model)
        self.scales_target = self.model.retargets and (
            single or (isinstance(asked, Prepared) and asked.target is not None)
        )
        scale = asked.scale if isinstance(asked, Prepared) else None
        self.weighs = scale in ("relevance", "rank-relevance")
        if scale is not None:
            method = {"relevance": "standard", "rank-relevance": "rank"}.get(scale, scale)
            self.key = (method, asked.warmup)

    @property
    def is_trivial(self) -> bool:
        return isinstance(self.asked, Trivial)

    def begin(self, width: int) -> Any:
        """A core that has learned nothing, for rows of this width."""
        model = self.model
        run = Run(model.checked_parts())
        run.core = model.begin_core(run, np.zeros((1, width), dtype=np.float32 if self.single else np.float64))
        self.parts = run.parts
        if task_of(model) == "novelty":
            run.core.report_raw_scores()  # densities: the mixture decides what is an alarm
        return run.core

    def begin_with(self, parts: Fields, width: int) -> Any:
        """A core with the parts of a saved race. requires: a kernel learner."""
        self.parts = self.model.restored_parts({}, parts)
        core = self.model.new_core(self.parts, width, False, self.single, 0)
        if task_of(self.model) == "novelty":
            core.report_raw_scores()
        if not self.runs_in_core(core):
            raise persist.ModelFileError(f"its expert {self.asked!r} does not fit its parts")
        return core

    def runs_in_core(self, core: object) -> bool:
        """Whether the race holds this core itself: a kernel learner over dense rows, without Python inside."""
        if type(core) is not _core.PointLearner or core.is_sparse or core.targets != 1:
            return False
        return isinstance(self.parts.rule, Rule) and isinstance(self.parts.budget, Budget)


class ExpertView:
    """An expert as it is at one moment.

    Parameters
    ----------
    race : _core.Race
        A copy of the race that is not changed any more.
    spec : ExpertSpec
    place : int
        Its position in the race.
    """

    def __init__(self, race: Any, spec: ExpertSpec, place: int) -> None:
        self.race, self.spec, self.place = race, spec, place
        self.note: str = race.notes[place]  #: why it has left the race
        self.rests: bool = race.resting[place]  #: its memory is used by other experts
        self.scales_target, self.key = spec.scales_target, spec.key

    @property
    def runs(self) -> bool:
        return not self.note and not self.rests

    @property
    def is_trivial(self) -> bool:
        return self.spec.is_trivial

    # ---- a learner -----------------------------------------------------------------------------------------

    @property
    def core(self) -> Any:
        """A copy of the learner's core."""
        found = self.race.learner(self.place)
        return found.core if hasattr(found, "model") else found

    @property
    def parts(self) -> Any:
        """Kernel, rule and budget as they run now: in a race that shares out memory a budget has its share as its size."""
        found = self.race.learner(self.place)
        if hasattr(found, "model"):
            return found.parts
        parts, share = self.spec.parts, self.race.shares.get(self.place)
        if share is None:
            return parts
        return parts._replace(budget=dataclasses.replace(parts.budget, size=f"{share} B"))

    @property
    def model(self) -> Any:
        """A copy of the learner, without scaling."""
        model, parts = copy.copy(self.spec.model), self.parts
        if hasattr(model, "budget") and self.place in self.race.shares:
            model.budget = parts.budget
        model.n_features_in_ = self.race.width
        return with_run(model, Run(parts, self.core))

    @property
    def size(self) -> int | None:
        """Stored points; None where there are none to count."""
        if self.is_trivial:
            return None
        found = self.race.learner(self.place)
        return getattr(found.core if hasattr(found, "model") else found, "size", None)

    @property
    def scaler(self) -> StreamScaler | RelevanceScaler | None:
        """A copy of what scales its columns."""
        if self.key is None:
            return None
        standard = scaler_of(self.race, self.key)
        if not self.spec.weighs:
            return standard
        found = RelevanceScaler(self.key[1], by_rank=isinstance(standard, RankScaler))
        found.standard = standard
        found.weights, history = self.race.relevance(self.place)
        found.history = tuple(Renewal(*line) for line in history)
        return found

    def composition(self) -> Any:
        """The expert as one writes it, without what it has learned."""
        if self.is_trivial:
            return self.spec.asked
        parts, asked, model = self.parts, self.spec.asked, clone(self.spec.model)
        if hasattr(model, "budget") and self.place in self.race.shares:
            model.budget = parts.budget
        if hasattr(model, "kernel"):
            model.kernel = parts.kernel
        target = "scale" if self.scales_target or not model.retargets else None
        if isinstance(asked, Prepared):
            scale = asked.scale
            if self.key is not None and self.key[0] == "rank":
                is_rank = isinstance(self.race.scaling(*self.key), _core.RankScaling)
                scale = scale if is_rank else "relevance" if self.spec.weighs else "standard"
            return Prepared(model, scale, asked.warmup, target=target)
        return Prepared(model, None) if self.scales_target else model

    def fitted(self, labels: LabelTable) -> Any:
        """The expert as a model of its own, with what it has learned."""
        alone, inner = self.composition(), self.model
        if hasattr(inner, "kernel"):
            inner.kernel = run_of(inner).parts.kernel
        run_of(inner).labels = LabelTable(labels.names[: core_of(inner).classes])
        if not isinstance(alone, Prepared):
            return inner
        target = target_of(self.race)
        targets = Targets((target,)) if self.scales_target and target is not None else None
        alone.resume(inner, self.scaler, targets)
        return alone


def scaler_of(race: Any, key: Key) -> StreamScaler:
    """A copy of a scaling of a race."""
    scaling = race.scaling(*key)
    found: StreamScaler
    if isinstance(scaling, _core.RankScaling):
        found = RankScaler(key[1])
    else:  # rows are too wide for ranks in the memory of the race
        found = StreamScaler("standard" if key[0] == "rank" else key[0], key[1])
    if scaling.width:
        found.rollback(scaling)
    return found


def target_of(race: Any) -> TargetScale | None:
    """A copy of the scale of the targets, where there is one."""
    target = race.target
    if target is None:
        return None
    found = TargetScale()
    found.assign(target)
    return found
