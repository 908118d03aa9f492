"""Model files of format 1 as those of today: every array and value that has another name or place by now."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def upgraded(
    name: str, parameters: dict[str, Any], arrays: dict[str, Any], fitted: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and fitted values of a file of format 1, as format 2 has them."""
    fitted = {key: value for key, value in fitted.items() if key != "labels_dtype"}
    if name == "Prepared":
        inner = parameters["model"]
        own = {key.removeprefix("model."): value for key, value in arrays.items() if key.startswith("model.")}
        rest = {key: value for key, value in arrays.items() if not key.startswith("model.")}
        own, fitted["model"] = upgraded(inner["type"], inner, own, fitted["model"])
        return {**rest, **{f"model.{key}": value for key, value in own.items()}}, fitted
    if name.startswith("StreamLandmark"):
        return _landmarks(arrays, fitted)
    if name.startswith(("Kernel", "Feature")):
        return _named(arrays, fitted), fitted
    if name.startswith(("Pairwise", "OAM", "TwoStage")):
        fitted.setdefault("n_features_in", fitted["width"])
        sizes = {"classes": _count(len(fitted.get("labels", ()))), "width": np.array([fitted["width"]], dtype=np.int64)}
        return {**_pairs(arrays, name == "OAM"), **sizes}, fitted
    return arrays, fitted


# ---- numbers that had a place in a list, and have a name now ---------------------------------------------------

#: the changing numbers of rules and budgets, in the order in which they were listed
_CHANGING = {
    "SGD": ("width",),
    "Alma": ("corrections",),
    "StepSizeAdaptation": ("rate",),
    "Forget": ("mistakes", "damage"),
}
_STREAM_NUMBERS: tuple[str, ...] = ("right_negative", "asked_negative", "right_positive", "asked_positive")
_STREAM_COUNTS: tuple[str, ...] = ("random_seed", "random_counter", "seen", "pairs", "offered", "filled", "next")


def _number(value: Any) -> Any:
    return np.array([value], dtype=np.float64)


def _count(value: Any) -> Any:
    return np.array([value], dtype=np.uint64)


def _unlisted(arrays: dict[str, Any], name: str, names: tuple[str, ...], as_array: Any) -> dict[str, Any]:
    """The numbers of a list under their names; a list with fewer or more of them is damaged."""
    values = arrays.pop(name)
    if values.shape != (len(names),):
        raise ValueError(f"its {name!r} has the shape {values.shape}, not ({len(names)},)")
    return {key: as_array(value) for key, value in zip(names, values, strict=True)}


def _named(arrays: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
    """A learner over stored points, their span, additive trees or explicit weights."""
    arrays = dict(arrays)
    named = {"classes": _count(len(fitted.get("labels", ()))), "margins": _number(0.0)}
    events = ("seen", "steps", "random_seed", "random_counter")
    if "shapes" in arrays:
        named |= _unlisted(arrays, "scalars", ("scale", "norm2", "doubt", "floor"), _number)
        named |= _unlisted(arrays, "counters", events, _count)
        arrays["intercept_sum"] = np.zeros_like(arrays["intercept"])
    elif "members" in arrays:
        named |= _unlisted(arrays, "scalars", ("scale", "doubt", "floor", "weight", "margins"), _number)
        named |= _unlisted(arrays, "counters", ("ticks", *events[:2], "span_ticks", *events[2:]), _count)
    else:
        named |= _unlisted(arrays, "scale", ("scale", "margins"), _number)
        named |= _unlisted(arrays, "counters", ("ticks", "seen", "steps"), _count)
        named |= {"random_seed": _count(0), "random_counter": _count(0)}
    for part in ("rule", "budget"):
        if part in arrays:
            names = _CHANGING.get(fitted[part]["type"], ())
            named |= _unlisted(arrays, part, tuple(f"{part}.{name}" for name in names), _number)
    return {**arrays, **named}


def _pairs(arrays: dict[str, Any], two_reservoirs: bool) -> dict[str, Any]:
    """A pairwise learner of the core; those written in Python had no such lists."""
    if "scalars" not in arrays:
        return arrays
    arrays = dict(arrays)
    numbers, counts = _STREAM_NUMBERS, _STREAM_COUNTS
    if two_reservoirs:
        sides = ("negative_", "positive_")
        numbers = tuple(side + name for side in sides for name in _STREAM_NUMBERS)
        counts = (*(side + name for side in sides for name in _STREAM_COUNTS), "seen", "random_seed", "random_counter")
    elif "gram" in arrays:
        numbers, counts = (*numbers, "scale", "weight", "norm2"), (*counts, "ticks")
        for name in ("lag", "sum", "inner"):
            arrays.setdefault(name, np.empty(0))
        arrays |= {"doubt": _number(0.0), "floor": _number(0.0)}
    elif "matrix" in arrays:
        counts = (*counts, "steps", "projections", "interior")
    else:
        counts = (*counts, "steps")
    named = _unlisted(arrays, "scalars", numbers, _number)
    return {**arrays, **named, **_unlisted(arrays, "counts", counts, _count)}


def _landmarks(arrays: dict[str, Any], fitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counters and the generator were plain values; the labels are listed as the rows stand."""
    counters = [fitted.pop("used"), fitted.pop("seen")]
    generator = json.dumps(fitted.pop("generator")).encode()
    changed = {
        "counters": np.array(counters, dtype=np.int64),
        "generator": np.frombuffer(generator, dtype=np.uint8),
        "class_count": arrays.get("class_count", np.zeros(1)),
        "classes": np.array([len(fitted.get("labels", ()))], dtype=np.int64),
    }
    fitted["n_features_in"] = int(arrays["points"].shape[1])
    return {**arrays, **changed}, fitted
