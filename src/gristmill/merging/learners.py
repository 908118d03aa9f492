"""Merge kernel and feature learners: a weighted mean of their functions over the union of their points."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._base.estimator import Run, core_of, run_of, with_run
from .._common.labels import LabelTable
from .._common.types import Fields
from ..budgets import Budget, DropSmallest, Unbounded
from ..learners import additive
from ..learners.composition import check_outputs
from ..learners.rule_learner import Parts
from . import terms as _terms
from .compression import check_compressible, fewer, points_within, refuse_budget, resized, successor
from .terms import Floats, Terms


class Move:
    """Points back by the scaling that they came through, and forward by another.

    Parameters
    ----------
    old, new : StreamScaler
    places : array of int, optional
        The columns of a point that are scaled; all unless given.
    """

    def __init__(self, old: Any, new: Any, places: Any = None) -> None:
        self._places = slice(None) if places is None else places
        self._by_rank = None if old.is_affine and new.is_affine else (old, new)
        if self._by_rank is not None:
            self.stays = False
            return
        (self.centre, self.slope), (self.to, self.by) = old.affine_map(), new.affine_map()
        self.stays = np.array_equal(self.centre, self.to) and np.array_equal(self.slope, self.by)

    def __call__(self, points: Any) -> Any:
        if self.stays:
            return points
        if not isinstance(points, np.ndarray):
            raise TypeError("merge: points that are kept sparse cannot follow another scaling; use scale=None")
        if self._by_rank is not None:
            old, new = self._by_rank
            moved = np.array(points, dtype=np.float64)
            moved[:, self._places] = new.scaled_values(
                old.unscaled_values(np.ascontiguousarray(moved[:, self._places]))
            )
            return np.ascontiguousarray(moved, dtype=points.dtype)
        moved = np.array(points, order="C")
        moved[:, self._places] = (points[:, self._places] / self.slope + (self.centre - self.to)) * self.by
        return moved


class _Shard(NamedTuple):
    """A model to be merged."""

    share: float
    parts: Parts
    state: dict[str, Any]
    outputs: int
    codes: list[int]  #: place of each of its classes among those of all
    move: Any = None  #: its points into another scaling

    def recoded(self, labels: Floats) -> Floats:
        """Classes of stored points as the merged model numbers them."""
        known = ~np.isnan(labels)
        if not self.codes or not known.any():
            return labels
        found = labels.copy()
        found[known] = np.array(self.codes, dtype=np.float64)[labels[known].astype(np.int64)]
        return found

    def outward(self, lines: Floats, outputs: int) -> Floats:
        """Lines of numbers, one an output, as outputs of the merged model."""
        if not self.codes:  # numbers, one a target
            return lines
        if len(lines) == 2 * self.outputs:  # and an auxiliary one each
            return np.vstack([self.outward(half, outputs) for half in np.split(lines, 2)])
        if outputs == 1:
            return -lines if self.codes[:1] == [1] else lines
        wide = np.zeros((outputs, lines.shape[1]))
        if len(lines) > 1:
            wide[self.codes] = lines
        else:  # two classes are -f/2 and f/2
            for code, half in zip(self.codes, (-0.5, 0.5), strict=False):
                wide[code] = half * lines[0]
        return wide


def learners(models: list[Any], size: object, shares: Floats, moves: list[Any] | None = None, known: Any = None) -> Any:
    """known: the labels of all and of each model, where others than the models have them."""
    first = models[0]
    labels, names = _labels(models) if known is None else known
    outputs = len(labels) if len(labels) > 2 else 1 if len(labels) else int(core_of(first).outputs)
    check_outputs(run_of(first).parts.rule, run_of(first).parts.budget, outputs)
    shards = [
        _Shard(
            float(share),
            run_of(model).parts,
            core_of(model).state(),
            core_of(model).outputs,
            [labels.codes[n] for n in own],
            move,
        )
        for share, model, own, move in zip(shares, models, names, moves or [None] * len(models), strict=True)
    ]
    state = _counters(shards, outputs, len(labels))
    parts = run_of(first).parts
    if not getattr(first, "stores_points", True):
        if size is not None:
            raise TypeError(f"merge: {type(first).__name__} stores no points: its size is that of its map, got {size=}")
        if not all(shard.move is None or shard.move.stays for shard in shards):
            raise TypeError(
                f"merge: the weights of {type(first).__name__} belong to scaled columns and "
                "cannot be converted to another scaling; "
                "use scale=None"
            )
        state |= _weights(shards, outputs)
    elif additive.is_additive(parts.kernel):
        parts = parts._replace(budget=_budget(models, parts, size))
        state |= _trees(shards, outputs, _limit(first, parts, size, outputs))
    else:
        check_compressible(first, "merge")
        refuse_budget(parts.budget, "merge")
        parts = parts._replace(budget=_budget(models, parts, size))
        state |= _points(first, parts, shards, outputs, size)
    core = first.restored_core(parts, state)
    if getattr(first, "stores_points", True):
        return successor(first, parts, core, labels)
    fresh = copy.copy(first)
    with_run(fresh, Run(parts, core, labels))
    return fresh


def _labels(models: list[Any]) -> tuple[LabelTable, list[list[Any]]]:
    """All labels, and those of each model."""
    labels = LabelTable()
    names = [list(run_of(model).labels.names[: core_of(model).classes]) for model in models]
    for some in names:
        labels = labels.extended(some)
    return labels, names


def _budget(models: list[Any], parts: Parts, size: Any) -> Budget:
    """The budget of the result: the largest of the models', or one of the given size."""
    if size is not None and additive.is_additive(parts.kernel) and isinstance(parts.budget, Unbounded):
        return DropSmallest(size)  # trees cannot fold their terms
    if size is not None:
        return resized(parts, size, "merge")
    budgets = [run_of(model).parts.budget for model in models]
    limits = [_limit(model, run_of(model).parts, None) for model in models]
    return budgets[int(np.argmax([np.inf if limit is None else limit for limit in limits]))]


def _limit(model: Any, parts: Parts, size: Any, outputs: int | None = None) -> int | None:
    """How many points there may be, with so many outputs; None: any number."""
    size = getattr(parts.budget, "size", None) if size is None else size
    return None if size is None else points_within(model, parts, core_of(model), size, outputs)


def _points(model: object, parts: Parts, shards: list[_Shard], outputs: int, size: object) -> Fields:
    """The united points, compressed."""
    terms = _united([_terms_of(shard, outputs) for shard in shards], shards)
    limit = _limit(model, parts, size, outputs)
    spans = "span_sizes" in shards[0].state
    name = "span_ticks" if spans else "ticks"
    ticks = np.array([sum(int(shard.state[name][0]) for shard in shards)], dtype=np.uint64)
    found = fewer(parts, terms, outputs, len(terms.ids) if limit is None else limit, always=spans)
    return {name: ticks, **found.fields({**shards[0].state, name: ticks})}


def _terms_of(shard: _Shard, outputs: int) -> Terms:
    terms = Terms.of(shard.state, shard.outputs, shard.parts.kernel, shard.parts.average)
    if shard.move is not None:
        terms = dataclasses.replace(terms, points=shard.move(terms.points))
    terms = dataclasses.replace(terms, labels=shard.recoded(terms.labels))
    mean = None if terms.mean is None else shard.share * shard.outward(terms.mean, outputs)
    return terms.with_coefs(shard.share * shard.outward(terms.present, outputs), mean)


def _united(parts: list[Terms], shards: list[_Shard]) -> Terms:
    """All terms as those of one function; equal points become one, with the position of the newest."""
    ids = _interleaved(parts, [int(shard.state["seen"][0]) for shard in shards])
    points = _terms.stacked([part.points for part in parts])
    present = np.hstack([part.present for part in parts])
    mean = None if parts[0].mean is None else np.hstack([part.mean for part in parts if part.mean is not None])
    group = _terms.same_points(points)
    kept = np.zeros(group.max(initial=-1) + 1, np.int64)
    order = np.argsort(ids)
    kept[group[order]] = order  # the last one written is the newest
    kept.sort()
    place = np.empty(len(kept), np.int64)
    place[group[kept]] = np.arange(len(kept))
    return Terms(
        _terms.take(points, kept),
        ids[kept],
        np.ascontiguousarray(np.hstack([part.labels for part in parts])[:, kept]),
        np.concatenate([part.came_sparse for part in parts])[kept],
        _added(present, place[group], len(kept)),
        None if mean is None else _added(mean, place[group], len(kept)),
    )


def _added(lines: Floats, place: Any, count: int) -> Floats:
    total = np.zeros((len(lines), count))
    for line, numbers in zip(total, lines, strict=True):
        np.add.at(line, place, numbers)
    return total


def _interleaved(parts: list[Any], seen: list[int]) -> Any:
    """Positions in one stream in which the events of all came at an even pace; distinct, and in the order of each."""
    total = sum(seen)
    even = np.concatenate(
        [(part.ids + 0.5) / max(count, 1) for part, count in zip(parts, seen, strict=True)] or [np.empty(0)]
    )
    order = np.argsort(even, kind="stable")
    places = np.minimum((even[order] * total).astype(np.int64), total - 1)
    steps = np.arange(len(places))
    places = np.maximum.accumulate(places - steps) + steps  # none twice, going up
    highest = total - len(places) + steps
    places = np.minimum(places, highest)
    ids = np.empty(len(places), np.int64)
    ids[order] = places
    return ids


def _trees(shards: list[_Shard], outputs: int, limit: int | None) -> Fields:
    """The united terms of additive kernels; what is too many leaves as with DropSmallest."""
    parts = []
    for shard in shards:
        n = len(shard.state["ids"])
        coef = shard.outward(shard.state["coef"].reshape(-1, n) * shard.state["scale"][0], outputs) * shard.share
        nothing = np.zeros(n, np.uint8)
        points = shard.state["points"] if shard.move is None else shard.move(shard.state["points"])
        parts.append(Terms(points, shard.state["ids"], np.full((1, n), np.nan), nothing, coef, None))
    terms = _united(parts, shards)
    if limit is not None and len(terms.ids) > limit:
        largest = np.abs(terms.present).max(axis=0)
        terms = terms.taken(np.sort(np.argsort(-largest, kind="stable")[:limit]))
    fields = {name: terms.fields(0)[name] for name in ("points", "ids", "coef", "scale", "doubt", "floor", "derive")}
    return {**fields, "norm2": np.zeros(1)}


def _weights(shards: list[_Shard], outputs: int) -> Fields:
    """The weighted mean of explicit weights."""
    ticks = [int(shard.state["ticks"][0]) for shard in shards]
    coef: Any = 0.0
    sums: Any = 0.0
    for shard, count in zip(shards, ticks, strict=True):
        lines = shard.state["coef"] * shard.state["scale"][0]
        coef = coef + shard.share * shard.outward(lines, outputs)
        if len(shard.state["sum"]):
            sums = sums + shard.share / max(count, 1) * shard.outward(shard.state["sum"], outputs)
    empty = np.empty((0, shards[0].state["coef"].shape[1]))
    return {
        "coef": np.ascontiguousarray(coef),
        "sum": np.ascontiguousarray(sums * sum(ticks)) if len(shards[0].state["sum"]) else empty,
        "scale": np.ones(1),
        "ticks": np.array([sum(ticks)], dtype=np.uint64),
    }


#: numbers of rules and budgets that count: Alma's steps, a density's weight, those who asked to come into a sample
_COUNTS = ("rule.corrections", "rule.total", "budget.candidates")

# ---- state for further learning ---------------------------------------------------------------------------------------


def _counters(shards: list[_Shard], outputs: int, classes: int) -> Fields:
    """Everything but the hypothesis: counts add up, adaptive numbers are weighted means, the rest is the first model's."""
    state = dict(shards[0].state)
    for name in ("seen", "steps"):
        state[name] = np.array([sum(int(shard.state[name][0]) for shard in shards)], dtype=np.uint64)
    state["classes"] = np.array([classes], dtype=np.uint64)
    ticks = [max(int(shard.state.get("span_ticks", shard.state.get("ticks", [0]))[0]), 1) for shard in shards]
    state["intercept"] = _mean(shards, "intercept", outputs)
    state["intercept_sum"] = _mean(shards, "intercept_sum", outputs, ticks) * sum(ticks)
    state["margins"] = sum(
        shard.share * shard.state["margins"] / count for shard, count in zip(shards, ticks, strict=True)
    ) * sum(ticks)
    for name in state:
        if name in _COUNTS:
            state[name] = sum(shard.state[name] for shard in shards)
        elif name == "rule.recent":
            state[name] = _core.interleaved([shard.state[name].tolist() for shard in shards])
        elif name.startswith("rule"):  # of the second target and those after it rule1., rule2. and so on
            state[name] = sum(shard.share * shard.state[name] for shard in shards)
    if "intervals" in state:
        state |= _intervals(shards)
    if "class_counts" in state:
        state["class_counts"] = _class_counts(shards, classes)
    return _calibrated(state, shards, outputs)


def _intervals(shards: list[_Shard]) -> Fields:
    parts = [_core.Intervals(shard.outputs) for shard in shards]
    for one, shard in zip(parts, shards, strict=True):
        one.restore({"intervals": shard.state["intervals"]})
    return dict(_core.Intervals.united(parts, [shard.share for shard in shards]).state())


def _mean(shards: list[_Shard], name: str, outputs: int, ticks: list[int] | None = None) -> Floats:
    counts = [1] * len(shards) if ticks is None else ticks
    lines = [
        shard.share / count * shard.outward(shard.state[name][:, None], outputs)[:, 0]
        for shard, count in zip(shards, counts, strict=True)
    ]
    return np.sum(lines, axis=0)


def _class_counts(shards: list[_Shard], classes: int) -> Floats:
    counts = np.zeros(classes)
    for shard in shards:
        own = shard.state["class_counts"]
        counts[shard.codes[: len(own)]] += own
    return counts


def _calibrated(state: Fields, shards: list[_Shard], outputs: int) -> Fields:
    """The map to probabilities: the mean over models that know all classes; if none does, it is reset."""
    names = ("calibration", "calibration_offsets", "calibration_curvatures")
    if names[0] not in state:
        return state
    whole = [
        shard for shard in shards if shard.outputs == outputs and len(shard.codes) == (outputs if outputs > 1 else 2)
    ]
    total = sum(shard.share for shard in whole)
    if total == 0:
        return {name: value for name, value in state.items() if name not in names}
    numbers, offsets, curvatures = np.zeros(5), np.zeros(outputs), np.zeros(outputs)
    for shard in whole:
        sign = -1.0 if outputs == 1 and shard.codes == [1, 0] else 1.0
        places = shard.codes if outputs > 1 else [0]
        numbers += shard.share / total * shard.state[names[0]] * [1, 1, 1, 1, sign]
        offsets[places] += shard.share / total * sign * shard.state[names[1]]
        curvatures[places] += shard.share / total * shard.state[names[2]]
    numbers[0] = sum(shard.state[names[0]][0] for shard in whole)
    return state | dict(zip(names, (numbers, offsets, curvatures), strict=True))
