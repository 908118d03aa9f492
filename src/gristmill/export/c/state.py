"""The state of a device that learns: one struct of fixed size without padding, the same bytes on every machine.

Wide numbers come first, so that every field lies at a multiple of its own size and no compiler inserts anything.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._learning import Learning
from .._plain import Description, Expansion
from . import code

MAGIC = 0x6D547267  #: "grTm" in the order of a little-endian machine
FORMAT = 1
NONE = 0xFFFF  #: no partner
_TYPES = {"u8": "uint64_t", "u4": "uint32_t", "u2": "uint16_t", "u1": "uint8_t", "f8": "double", "num": "@P@_num"}


@dataclass(frozen=True)
class Field:
    """One field, what it starts with (None: 0), and what it is."""

    name: str
    kind: str
    shape: tuple[int, ...]
    start: Any
    about: str


def fields(found: Description, learning: Learning, single: bool) -> list[Field]:
    """All fields, the widest types first."""
    core, n, width = learning.core, learning.capacity, found.rows.width
    size = len(core["ids"])
    made = [
        Field("magic", "u4", (), MAGIC, "tells the order of the bytes"),
        Field("format", "u4", (), FORMAT * 16 + (4 if single else 8), "of this struct, and bytes of a number"),
        Field("model", "u4", (), fingerprint(found, learning), "which model it belongs to"),
        Field("size", "u4", (), size, "stored points"),
        Field("seen", "u8", (), int(core["seen"][0]), "events"),
        Field("steps", "u8", (), int(core["steps"][0]), "events that were learned"),
    ]
    if learning.means is not None:
        made += [
            Field("total", "f8", (width,), learning.means[1], "of each column: differences from its first value"),
            Field("count", "f8", (width,), learning.means[2], "of each column: values"),
        ]
    if learning.moments is not None:
        made += [
            Field("scaled", "u8", (), learning.scaled, "events in the moments"),
            Field("sum", "f8", (width,), learning.moments[1], "of each column: moments that it is scaled by"),
            Field("square", "f8", (width,), learning.moments[2], ""),
        ]
    if learning.target is not None:
        made.append(
            Field("target", "f8", (6,), learning.target, "of the targets: first, count, sum, squares, centre, spread")
        )
    made += _numbers(found, learning, single)
    stamps = (np.asarray(core["ids"]).astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    made.append(Field("stamp", "u4", (n,), stamps, "position in the stream of each point, modulo 2^32"))
    if learning.budget == "Merge":
        partners = np.asarray(core["partners"])
        made += [
            Field("partner", "u2", (n,), np.where(partners < 0, NONE, partners), "the point most like each point"),
            Field("stale", "u1", (n,), core["stale"], "1 where that has left"),
        ]
    spare = -dtype_of(made, single).itemsize % 8
    return [*made, Field("spare", "u1", (spare,), None, "to a multiple of 8 bytes")] if spare else made


def _numbers(found: Description, learning: Learning, single: bool) -> list[Field]:
    core, n, width, outputs = learning.core, learning.capacity, found.rows.width, found.outputs
    made = [
        Field("scale", "num", (), float(core["scale"][0]), "factor on all coefficients"),
        Field("intercept", "num", (outputs,), core["intercept"], ""),
    ]
    if "rule.width" in core:
        made.append(Field("width", "num", (), float(core["rule.width"][0]), "margin, tube or sigma of the loss"))
    if learning.moments is not None:
        mean, spread = _measured(learning)
        made += [
            Field("mean", "num", (width,), mean, "of each column, less its first value: what it is centred by"),
            Field("spread", "num", (width,), spread, "what it is divided by"),
        ]
    if found.task == "classification":
        made += [
            Field("calibration", "num", (5,), core["calibration"], "count, square, slope, curvature, cross"),
            Field("offsets", "num", (outputs,), core["calibration_offsets"], ""),
            Field("curvatures", "num", (outputs,), core["calibration_curvatures"], ""),
        ]
    if found.task == "regression":
        made.append(
            Field("interval", "num", (57,), core["intervals"], "count, mean error, thresholds, shares, factors")
        )
    points = np.asarray(core["points"], dtype=np.float64)
    made += [
        Field("coefs", "num", (n, outputs), np.asarray(core["coef"]).T, "over the scale"),
        Field("points", "num", (n, width), points, ""),
        Field("labels", "num", (n,), core["labels"], "label of each point"),
    ]
    if has_norms(found, single):
        made.append(Field("norms", "num", (n,), (points * points).sum(axis=1), "<x, x> of each point"))
    if learning.budget == "Merge":
        made += [
            Field("likeness", "num", (n,), core["likeness"], "k(v,u)^2 / k(u,u) of a point and its partner"),
            Field("shares", "num", (n,), core["shares"], "k(v,u) / k(u,u)"),
            Field("selves", "num", (n,), core["selves"], "k(v,v)"),
        ]
    return made


def _measured(learning: Learning) -> tuple[Any, Any]:
    assert learning.moments is not None
    events = max(learning.scaled if learning.warmup is None else min(learning.scaled, learning.warmup), 1)
    mean = learning.moments[1] / events
    return mean, np.sqrt(np.maximum(learning.moments[2] / events - mean * mean, 0.0))


def has_norms(found: Description, single: bool) -> bool:
    """Whether the kernel of a pair asks for squared norms: distances in double do, in single precision they would round."""
    body = found.experts[0].body
    assert isinstance(body, Expansion)
    ops = {node[0] for node in body.program}
    return "normalized" in ops or bool(not single and ops & {"gaussian", "squared_euclidean"})


def fingerprint(found: Description, learning: Learning) -> int:
    """Of all that stays as it is while a device learns: a state fits no other model."""
    body: Any = found.experts[0].body
    first = [None if part is None else part[0].tolist() for part in (learning.means, learning.moments)]
    fixed = [
        [list(node) for node in body.program],
        repr(learning.rule),
        learning.budget,
        learning.capacity,
        found.task,
        [str(label) for label in found.labels],
        list(found.names),
        first,
        None if learning.target is None else float(learning.target[0]),
        learning.warmup,
    ]
    return zlib.crc32(json.dumps(fixed).encode())


def dtype_of(made: list[Field], single: bool, order: str = "<") -> np.dtype[Any]:
    """The same struct for NumPy."""
    kinds = {"num": "f4" if single else "f8"}
    return np.dtype([(one.name, order + kinds.get(one.kind, one.kind), one.shape) for one in made])


def struct(made: list[Field], single: bool) -> str:
    """The struct in C, what it starts with, and the function that starts it."""
    lines, arrays, starts = [], [], []
    for one in made:
        dims = "".join(f"[{size}]" for size in one.shape)
        about = f" /* {one.about} */" if one.about else ""
        lines.append(f"    {_TYPES[one.kind]} {one.name}{dims};{about}\n")
        if one.start is None:
            continue
        if not one.shape:
            starts.append(f"    state->{one.name} = {_scalar(one, single)};\n")
        elif np.size(one.start) and np.any(np.asarray(one.start) != 0):
            whole = one.kind in ("u1", "u2", "u4")
            values = np.asarray(one.start, dtype=np.int64 if whole else np.float64)
            arrays.append(code.array(f"@P@_start_{one.name}", values, single and one.kind == "num", _TYPES[one.kind]))
            starts.append(f"    memcpy(state->{one.name}, @P@_start_{one.name}, sizeof @P@_start_{one.name});\n")
    size = dtype_of(made, single).itemsize
    return (
        f"typedef struct {{\n{''.join(lines)}}} @P@_state;\n"
        f"typedef char @P@_state_has_no_padding[sizeof(@P@_state) == {size} ? 1 : -1];\n\n"
        + "".join(arrays)
        + "\n/* As it was when the model was exported. */\n"
        "static inline void @P@_start(@P@_state *state) {\n    memset(state, 0, sizeof *state);\n"
        + "".join(starts)
        + "}\n"
    )


def _scalar(one: Field, single: bool) -> str:
    if one.kind in ("num", "f8"):
        return code.literal(one.start, single and one.kind == "num")
    return f"{int(one.start)}u" + ("ll" if one.kind == "u8" else "")
