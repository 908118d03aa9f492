"""Model files of format 1: their arrays, whose numbers had places, as the named fields that the core reads now."""

from __future__ import annotations

from typing import Any

import numpy as np

State = dict[str, Any]


def _number(value: Any) -> Any:
    return np.array([value], dtype=np.float64)


def _count(value: Any) -> Any:
    return np.array([value], dtype=np.uint64)


def _placed(state: State, name: str, length: int) -> Any:
    """The list that held several numbers; a file with fewer or more of them is damaged."""
    values = state.pop(name)
    if values.shape != (length,):
        raise ValueError(f"its {name!r} has the shape {values.shape}, not ({length},)")
    return values


def _parts(state: State, fresh: State) -> State:
    """The numbers of rule and budget, which a fresh core names in the order in which they were saved."""
    named: State = {}
    for part in ("rule", "budget"):
        names = [name for name in fresh if name.startswith(f"{part}.")]
        values = state.pop(part, np.empty(0))
        if values.shape != (len(names),):
            raise ValueError(f"its {part} has the shape {values.shape}, not ({len(names)},)")
        named |= {name: _number(value) for name, value in zip(names, values, strict=True)}
    return named


def _events(seen: Any, steps: Any, seed: Any, counter: Any, classes: int) -> State:
    return {
        "seen": _count(seen),
        "steps": _count(steps),
        "random_seed": _count(seed),
        "random_counter": _count(counter),
        "classes": _count(classes),
    }


def points(state: State, fresh: State, classes: int) -> State:
    """A learner over stored points, or in their span."""
    state = dict(state)
    scale, doubt, floor, weight, margins = _placed(state, "scalars", 5)
    _, seen, steps, ticks, seed, counter = _placed(state, "counters", 6)
    numbers = {"scale": scale, "doubt": doubt, "floor": floor, "weight": weight, "margins": margins}
    named = {name: _number(value) for name, value in numbers.items()}
    spans = {"ticks": _count(0 if "span_ticks" in fresh else ticks), "span_ticks": _count(ticks)}
    return {**state, **named, **spans, **_parts(state, fresh), **_events(seen, steps, seed, counter, classes)}


def trees(state: State, fresh: State, classes: int) -> State:
    """A learner over additive trees."""
    state = dict(state)
    numbers = dict(zip(("scale", "norm2", "doubt", "floor"), _placed(state, "scalars", 4), strict=True))
    named = {name: _number(value) for name, value in {**numbers, "margins": 0.0}.items()}
    state["intercept_sum"] = np.zeros_like(state["intercept"])
    seen, steps, seed, counter = _placed(state, "counters", 4)
    return {**state, **named, **_parts(state, fresh), **_events(seen, steps, seed, counter, classes)}


def weights(state: State, fresh: State, classes: int) -> State:
    """A learner over explicit weights."""
    state = dict(state)
    scale, margins = _placed(state, "scale", 2)
    ticks, seen, steps = _placed(state, "counters", 3)
    named = {"scale": _number(scale), "margins": _number(margins), "ticks": _count(ticks)}
    return {**state, **named, **_parts(state, fresh), **_events(seen, steps, 0, 0, classes)}


def pairs(state: State, fresh: State) -> State:
    """A pairwise learner; a fresh core names its numbers in the order in which they were saved."""
    state = dict(state)
    scalars, counts = list(state.pop("scalars")), list(state.pop("counts"))
    if "gram" in fresh:
        return _kernel_pairs(state, fresh, scalars, counts)
    single = {name: value.dtype.kind for name, value in fresh.items() if value.shape == (1,) and name not in state}
    named = {name: _number(scalars.pop(0)) if kind == "f" else _count(counts.pop(0)) for name, kind in single.items()}
    if scalars or counts:
        raise ValueError("it holds more numbers than the learner has")
    return {**state, **named}


def _kernel_pairs(state: State, fresh: State, scalars: list[Any], counts: list[Any]) -> State:
    stream = [name for name, value in fresh.items() if value.shape == (1,) and name in _STREAM]
    named: State = {}
    for name in stream:
        named[name] = _number(scalars.pop(0)) if fresh[name].dtype.kind == "f" else _count(counts.pop(0))
    scale, weight, norm2 = scalars
    (ticks,) = counts
    numbers = {"scale": scale, "weight": weight, "norm2": norm2, "doubt": 0.0, "floor": 0.0}
    named |= {name: _number(value) for name, value in numbers.items()}
    empty = {name: np.empty(0) for name in ("lag", "sum", "inner") if name not in state}
    return {**state, **empty, **named, "ticks": _count(ticks)}


_STREAM = (
    "right_negative", "asked_negative", "right_positive", "asked_positive",
    "random_seed", "random_counter", "seen", "pairs", "offered", "filled", "next",
)  # fmt: skip
