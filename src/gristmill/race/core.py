"""The core of a race: `_core.Race`, which learns and scores, and the experts as Python knows them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, persist
from .._common.types import Fields
from .baselines import ClassMeans, Line, LineOfChanges, Trivial, WideLinear, baseline_number
from .expert import ExpertSpec, ExpertView, Key
from .foreign import ForeignLearner

Floats = npt.NDArray[np.float64]


class RaceCore(_core.Race):
    """A race that has begun with rows of `width` columns.

    Parameters
    ----------
    experts : list of learners that have not begun
    task : {"classification", "regression", "novelty"}
    share : float
        Of the weights that is redistributed after each sample, or of the samples that are alarms.
    memory : int or None
        Bytes of the whole race, or None for experts that keep their own budgets.
    width : int
        Columns; widths of kernels and the list of experts follow from it, and stay when rows widen.
    parts : list of dict, optional
        The parts of the experts of a saved race.
    outside : int
        Bytes of the memory that are taken by what prepares rows for the race.
    columns : int or None
        Columns of sparse rows, which are hashed to `width` numbers for experts that store points; None for dense rows.
    quantile : float or None
        Of the targets, which a regression predicts; None: their centre.
    """

    is_single = is_sparse = False

    def __init__(
        self,
        experts: list[Any],
        task: str,
        share: float,
        memory: int | None,
        width: int,
        parts: Any = None,
        outside: int = 0,
        columns: int | None = None,
        quantile: float | None = None,
    ) -> None:
        super().__init__(task, len(experts), share, memory or 0, 0.0 if quantile is None else float(quantile))
        self.task, self.share, self.memory, self.began = task, share, memory, width
        self.columns = columns
        if columns is not None:
            self.set_columns(columns)
        self.specs = [ExpertSpec(expert, single=memory is not None) for expert in experts]
        self._foreign: list[int] = []  #: positions of the experts that are Python objects
        if parts is not None and len(parts) != len(self.specs):
            raise persist.ModelFileError("it does not have as many experts as it states")
        for place, spec in enumerate(self.specs):
            self._add(place, spec, None if parts is None else parts[place])
        self._late = ExpertSpec(ClassMeans(), single=True)
        self.begin(width, outside)

    def _add(self, place: int, spec: ExpertSpec, parts: Any) -> None:
        """An expert, and by which scaling it sees its columns (`spec.key`)."""
        asked = spec.asked
        if isinstance(asked, WideLinear):
            self.add_wide(asked.number)
        elif isinstance(asked, Line | LineOfChanges):
            self.add_line(isinstance(asked, LineOfChanges))
        elif isinstance(asked, Trivial):
            self.add_baseline(baseline_number(asked))
        else:
            core = spec.begin(self.began)
            scale, warmup = spec.key or (None, None)
            if spec.runs_in_core(core):
                if parts is not None:
                    core = spec.begin_with(parts, self.began)
                self.add_learner(core, scale, warmup, spec.weighs, spec.scales_target)
            else:
                self.add_python(ForeignLearner(spec, core), scale, warmup, spec.scales_target)
                self._foreign.append(place)

    @property
    def is_plain(self) -> bool:
        """Whether one sample may come as a vector: rows are dense, and no expert is a Python object."""
        return not self._foreign and not self.is_wide

    def learn_batch(self, rows: Floats, labels: Floats, weights: Floats | None, known: int, passes: int | str) -> None:
        """A batch in several passes; "auto": until the error on a held-out tail no longer decreases."""
        super().learn_batch(rows, labels, weights, known, 0 if passes == "auto" else int(passes))

    def foreign(self, place: int) -> ForeignLearner:
        """An expert that is a Python object."""
        found = self.learner(place)
        assert isinstance(found, ForeignLearner)
        return found

    def set_expert(self, place: int, parts: Any, core: Any) -> None:
        """Replace the core of an expert."""
        if place in self._foreign:
            self.foreign(place).become(parts, core)
        else:
            self.specs[place].parts = parts
            self.set_learner(place, core)

    # ---- one moment ----------------------------------------------------------------------------------------

    def experts(self, late: bool = True) -> list[ExpertView]:
        """The experts, all as they are at one moment; late: with the one that has come for many classes, if it has."""
        now: Any = self.snapshot()
        if not late:
            now.drop_class_means()
        specs = self.specs if now.n_experts == len(self.specs) else [*self.specs, self._late]
        return [ExpertView(now, spec, place) for place, spec in enumerate(specs)]

    @property
    def scaling_keys(self) -> list[Key]:
        """Every scaling that some expert uses, once."""
        lines: list[Key] = [("standard", None) for spec in self.specs if isinstance(spec.asked, Line | LineOfChanges)]
        return list(dict.fromkeys([spec.key for spec in self.specs if spec.key is not None] + lines))

    # ---- files ---------------------------------------------------------------------------------------------

    def state(self) -> Fields:
        """Arrays by name; what is not a number is a JSON text among them."""
        now: Any = self.snapshot()
        arrays = now.state()
        plan: dict[str, Any] = {"began": self.began, "parts": []} | ({"columns": self.columns} if self.is_wide else {})
        for place, spec in enumerate(self.specs):
            parts: Fields = {}
            if place in self._foreign:
                found, parts = now.learner(place).to_file()
                arrays |= {f"{place}.{name}": array for name, array in found.items()}
            elif not spec.is_trivial:
                _, parts = spec.model.parts_fields(spec.parts)
            plan["parts"].append(parts)
        text = np.frombuffer(json.dumps(plan).encode(), dtype=np.uint8)
        return {**arrays, "plan": text}

    def restore(self, state: Fields) -> None:
        """requires: a race of the same experts that has learned nothing."""
        plan = plan_of(state)
        inner: dict[int, Fields] = {place: {} for place in self._foreign}
        own: Fields = {}
        for name, array in state.items():
            head, _, rest = name.partition(".")
            place = int(head) if head.isdecimal() else -1
            if place in inner and rest not in ("note", "rests"):
                inner[place][rest] = array
            elif name != "plan":
                own[name] = array
        super().restore(own)
        for place, found in inner.items():
            self.foreign(place).from_file(found, plan["parts"][place], self.width, self.classes)


def plan_of(state: Fields) -> dict[str, Any]:
    """What a state holds beside its numbers: with how many columns the race began, and the parts of its experts."""
    plan = json.loads(bytes(np.asarray(state["plan"], dtype=np.uint8)).decode())
    width = int(np.asarray(state["width"]).reshape(1)[0])
    if type(plan["began"]) is not int or not 1 <= plan["began"] <= width or not isinstance(plan["parts"], list):
        raise persist.ModelFileError(f"it states that it began with {plan['began']!r} features, and has {width}")
    columns = plan.get("columns")
    if columns is not None and not (type(columns) is int and 0 < columns < 2**31):
        raise persist.ModelFileError(f"it states that its sparse rows have {columns!r} columns")
    return dict(plan)
