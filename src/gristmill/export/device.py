"""`from_device`: a model from the bytes of the state of a device that went on learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.types import Fields, Json
from ._description import describe, snapshot
from ._learning import Learning, learning_of, restored
from ._plain import ExportError
from .c import state as layout

#: fields of the state that hold one entry a stored point
_BY_POINT = {
    "coefs": "core.coef",
    "points": "core.points",
    "labels": "core.labels",
    "likeness": "core.likeness",
    "shares": "core.shares",
    "selves": "core.selves",
    "stale": "core.stale",
}
#: fields that are the library's own
_WHOLE = {
    "intercept": "core.intercept",
    "calibration": "core.calibration",
    "offsets": "core.calibration_offsets",
    "curvatures": "core.calibration_curvatures",
    "interval": "core.intervals",
}


def from_device(data: Any, model: object) -> Any:
    """A new model that has learned what a device has: its state, byte by byte, becomes a model again.

    Several such models can be united by `merge`.

    Parameters
    ----------
    data : bytes
        The struct `NAME_state` as it lies in the memory of the device: `sizeof(NAME_state)` bytes, of either byte order.
    model : fitted learner
        The model that was exported by `to_c(model, learn=True)`; it stays as it is.

    Returns
    -------
    learner
        Like `model`, with the device's points, coefficients, scaling, calibration and counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import DropOldest, Gaussian, KernelClassifier, Perceptron
    >>> from gristmill.export import ExportError, from_device
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelClassifier(Gaussian(1.0), Perceptron(), DropOldest(20)).fit(X, X[:, 0] > 0)
    >>> try:
    ...     from_device(b"too short", model)
    ... except ExportError as error:
    ...     print(len(str(error)) > 20)
    True
    """
    model = snapshot(model)
    found = describe(model)
    learning = learning_of(model)
    raw = bytes(data)
    magic = {order: np.array(layout.MAGIC, dtype=f"{order}u4").tobytes() for order in "<>"}
    order = next((order for order, start in magic.items() if raw[:4] == start), None)
    if order is None or len(raw) < 16:
        raise ExportError(f"from_device: these {len(raw)} bytes are no state of a device: they begin with {raw[:4]!r}")
    kind = int(np.frombuffer(raw, dtype=f"{order}u4", count=2)[1])
    if kind not in (layout.FORMAT * 16 + 4, layout.FORMAT * 16 + 8):
        raise ExportError(f"from_device: the state is of format {kind // 16}; this version reads {layout.FORMAT}")
    single = kind % 16 == 4
    fields = layout.fields(found, learning, single)
    dtype = layout.dtype_of(fields, single, order)
    if len(raw) != dtype.itemsize:
        raise ExportError(f"from_device: a state of this model has {dtype.itemsize:,} bytes, got {len(raw):,}")
    read = np.frombuffer(raw, dtype=dtype)[0]
    if int(read["model"]) != layout.fingerprint(found, learning):
        raise ExportError(
            f"from_device: the state belongs to another model than this {found.kind}; give the exported one"
        )
    changes = _changes(read, learning)
    try:
        return restored(model, changes, int(read["seen"]))
    except (ValueError, OverflowError) as error:
        raise ExportError(f"from_device: the state is damaged: {error}") from error


def _changes(read: Any, learning: Learning) -> Json:
    """The fields of a model file that the state has others of."""
    size, seen = int(read["size"]), int(read["seen"])
    names = read.dtype.names or ()
    if seen >= 2**62:
        raise ExportError(f"from_device: the state is damaged: it has seen {seen:,} events")
    if size > learning.capacity:
        raise ExportError(f"from_device: the state is damaged: {size:,} points where {learning.capacity:,} fit")
    ages = (np.uint64(seen) - read["stamp"][:size].astype(np.uint64)) & np.uint64(0xFFFFFFFF)
    ids = seen - ages.astype(np.int64)
    if len(set(ids.tolist())) < size or (size and (ids.min() < 0 or ids.max() >= seen)):
        raise ExportError("from_device: the state is damaged: its points have no order in the stream")
    for name in names:
        there = read[name][:size] if name in _BY_POINT else read[name]
        if read[name].dtype.kind == "f" and name != "labels" and not np.isfinite(there).all():
            raise ExportError(f"from_device: the state is damaged: {name!r} holds what is no number")
    changes: Fields = {
        "core.seen": [seen],
        "core.steps": [int(read["steps"])],
        "core.scale": [float(read["scale"])],
        "core.ids": ids,
        "core.came_sparse": np.zeros(size),
        "core.lag": np.zeros((0, size)),
        "core.sum": np.zeros((0, size)),
    }
    for name, field in _BY_POINT.items():
        if name in names:
            value = read[name][:size]
            changes[field] = value.T if name == "coefs" else value
    changes |= {field: read[name] for name, field in _WHOLE.items() if name in names}
    if "width" in names:
        changes["core.rule.width"] = [float(read["width"])]
    if "partner" in names:
        partner = read["partner"][:size].astype(np.int64)
        changes["core.partners"] = np.where(partner == layout.NONE, -1, partner)
    if "total" in names:
        changes |= {"table.total": read["total"], "table.count": read["count"]}
    if "sum" in names:
        assert learning.moments is not None
        changes["scaler_state"] = np.array([learning.moments[0], read["sum"], read["square"]], dtype=np.float64)
        changes["scaled"] = int(read["scaled"])
    if "target" in names:
        changes["targets"] = read["target"][None]
    return changes
