"""States of a race's smaller parts as one: the mixture of experts, counts, lines, and how far a regression may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..race.baselines import Counts, Last, Mean, Repeats
from .terms import Floats

#: what an interval of one target keeps (core/intervals.hpp)
_INTERVAL = 57
_CALIBRATION = ("calibration", "calibration_offsets", "calibration_curvatures")


def mixture(
    states: list[dict[str, Any]], shares: Floats, there: Any, codes: list[list[int]], classes: int
) -> dict[str, Any]:
    """Losses, errors and events add up, and so weights are multiplied: w is proportional to exp(-eta loss).

    there: by race and expert, whether it runs. Where an expert does not run it has an even share, so that who lost early in
    one race is no worse for it than who ran and lost. A classifier has two voices, with a weight and a calibration each.
    """
    whole = dict(states[0])
    there = np.tile(there, (1, len(whole["hedge_weights"]) // there.shape[1]))
    for name in ("recent", "counted", "errors", "events", "own_errors", "seen"):
        whole[name] = sum(state[name] for state in states)
    seen = [int(np.ravel(state["seen"])[0]) for state in states]
    whole["classes"] = np.array([classes], dtype=np.uint64)
    whole["hedge_gap"] = sum(share * state["hedge_gap"] for share, state in zip(shares, states, strict=True))
    whole["first_error"] = next(
        (state["first_error"] for state, n in zip(states, seen, strict=True) if n), whole["first_error"]
    )
    whole["hedge_weights"] = _weights([state["hedge_weights"] for state in states], there, np.array(seen))
    whole["history"], whole["history_step"] = np.empty(0), _step(sum(seen))
    for name in [name for name in whole if name.partition(".")[2] in _CALIBRATION]:
        del whole[name]
    outputs = classes if classes > 2 else 1
    for voice in range(there.shape[1]):
        found = _calibration(states, shares, there[:, voice], codes, outputs, voice)
        whole |= {f"{voice}.{name}": numbers for name, numbers in found.items()}
    return whole


def _step(seen: int) -> Any:
    """Events between two lines of the history, of which there is room for 128: it begins anew, at the same pace."""
    step = 8.0
    while step * 64 < seen:
        step *= 2
    return np.array([step])


def _weights(weights: list[Floats], there: Any, seen: Any) -> Floats:
    product = np.zeros(there.shape[1])
    for own, runs, count in zip(weights, there, seen, strict=True):
        if count == 0 or not (own > 0).any():
            continue
        even = 1.0 / (own > 0).sum()
        product += np.log(np.where(runs & (own > 0), np.maximum(own, 1e-12), even))
    found = np.exp(product - product.max())
    found[~there.any(axis=0)] = 0.0
    return np.asarray(found / found.sum())


def _calibration(
    states: list[dict[str, Any]], shares: Floats, runs: Any, codes: list[list[int]], outputs: int, voice: int
) -> dict[str, Any]:
    """The map to probabilities: the mean over races that know all classes and run the expert; else it begins anew."""
    names = [f"{voice}.{name}" for name in _CALIBRATION]
    if names[0] not in states[0]:
        return {}
    known = [len(own) == (outputs if outputs > 1 else 2) for own in codes]
    whole = [at for at in range(len(states)) if known[at] and runs[at] and shares[at] > 0]
    numbers, offsets, curvatures = np.zeros(5), np.zeros(outputs), np.zeros(outputs)
    total = shares[whole].sum()
    for at in whole:
        sign = -1.0 if outputs == 1 and codes[at] == [1, 0] else 1.0
        places = codes[at] if outputs > 1 else [0]
        numbers += shares[at] / total * states[at][names[0]] * [1, 1, 1, 1, sign]
        offsets[places] += shares[at] / total * sign * states[at][names[1]]
        curvatures[places] += shares[at] / total * states[at][names[2]]
    if not whole:
        return {}
    numbers[0] = sum(states[at][names[0]][0] for at in whole)
    return dict(zip(_CALIBRATION, (numbers, offsets, curvatures), strict=True))


def strangeness(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Last scores of all races, interleaved evenly; a detector dropped by one race stays dropped."""
    whole = dict(states[0])
    for name in ("seen", "alarms", "surplus"):
        whole[name] = sum(state[name] for state in states)
    whole["there"] = np.min([state["there"] for state in states], axis=0).astype(states[0]["there"].dtype)
    for name in whole:
        if name.startswith("logs") or name == "scores":
            whole[name] = recent([state[name] for state in states])
    return whole


def recent(lists: list[Floats]) -> Floats:
    """The last scores of all, in an even pace; no more than the longest list has."""
    place = np.concatenate([(np.arange(len(some)) + 0.5) / max(len(some), 1) for some in lists])
    return np.concatenate(lists)[np.argsort(place, kind="stable")][-max(map(len, lists), default=0) or None :]


def intervals(lists: list[Floats], shares: Floats) -> Floats:
    """How far a regression may be off: weighted means over those that know; events add up."""
    tables = np.array(lists).reshape(len(lists), -1, _INTERVAL)
    known = tables[:, :, 0].max(axis=1) > 0
    if not known.any():
        return np.array(lists[0])
    part = np.where(known, shares, 0.0) / shares[known].sum()
    whole = np.tensordot(part, tables, axes=1)
    whole[:, 0] = tables[:, :, 0].sum(axis=0)
    return np.asarray(whole.ravel())


def counter(counters: list[Any], codes: list[list[int]], classes: int) -> Floats:
    """What trivial experts have counted; the last event is that of the last race that had one."""
    first = counters[0]
    if isinstance(first, Counts):
        values = np.zeros(classes)
        for own, places in zip(counters, codes, strict=True):
            values[places] += own.values[: len(places)]
        return values
    if isinstance(first, Repeats):
        lasts = [places[own.last] for own, places in zip(counters, codes, strict=True) if own.last >= 0]
        same = 1 + sum(own.same - 1 for own in counters)
        return np.array([lasts[-1] if lasts else -1, same, 1 + sum(own.other - 1 for own in counters)])
    if isinstance(first, Mean):
        known = [own for own in counters if own.count] or counters[:1]
        total = sum(own.sum + own.count * (own.first - known[0].first) for own in known)
        return np.array([known[0].first, total, sum(own.count for own in known)])
    assert isinstance(first, Last)
    return np.array([counters[-1].value])


def line(lanes: list[Any], moves: list[Any]) -> dict[str, Any]:
    """Least squares over all: sums of squares and products add up, each brought into the scaling of all."""
    known = [(lane, move) for lane, move in zip(lanes, moves, strict=True) if lane.core is not None and lane.seen]
    ends = np.array([0.0, 0.0, 0.0])
    if not known:
        return {"row": np.empty(0), "ends": ends}
    first = known[0][0].first
    squares: Any = 0.0
    products: Any = 0.0
    for lane, (old, new) in known:
        state = lane.core.state()
        weights = np.array(state["weights"], dtype=np.float64)
        inverse = np.array(state["inverse"], dtype=np.float64).reshape(len(weights), -1)
        back = _back(old, new, lane.changes)  # features as they were, from those of now
        if not lane.changes:
            weights[0] += lane.first - first
        sums = np.linalg.pinv(inverse, hermitian=True)
        squares = squares + back.T @ sums @ back
        products = products + back.T @ (sums @ weights)
    inverse = np.linalg.pinv(squares, hermitian=True)
    last, (old, new) = known[-1]
    (centre, slope), (to, by) = old._affine(), new._affine()
    return {
        "weights": inverse @ products,
        "inverse": np.ascontiguousarray((inverse + inverse.T) / 2).ravel(),
        "row": (last.row / slope + (centre - to)) * by,
        "ends": np.array([first, last.last, float(sum(lane.seen for lane, _ in known))]),
    }


def _back(old: Any, new: Any, changes: bool) -> Floats:
    (centre, slope), (to, by) = old._affine(), new._affine()
    factors = np.where(by != 0, slope / np.where(by != 0, by, 1.0), 1.0)
    if changes:
        return np.diag(factors)
    width = len(factors)
    back = np.zeros((width + 1, width + 1))
    back[0, 0] = 1.0
    back[1:, 1:] = np.diag(factors)
    back[1:, 0] = (to - centre) * slope
    return back
