"""What a model is, how it does, and the curves of the page, as JSON."""

from __future__ import annotations

import math
from typing import Any

from .._common.types import Json
from .meter import Meter
from .store.contender import Reader
from .store.served import Served
from .store.writer import Writer


def summary(served: Served, queue: int = 0, error: str | None = None) -> Json:
    """A line about a model; `queue` requests wait for its writer, and `error` tells why it is not available."""
    return {
        "name": served.name, "task": served.task, "learner": served.champion.spec.get("learner", "auto"),
        "position": served.position, "metrics": served.champion.record.metrics(), "queue": queue,
        "waiting": served.journal.waiting, "expired": served.journal.expired,
        "status": "ready" if error is None else "failed",
    }  # fmt: skip


def description(served: Served, queue: int = 0, error: str | None = None) -> Json:
    """Everything about a model but its curves."""
    return {
        **summary(served, queue, error), "spec": served.champion.spec, **served.champion.state,
        "journal": {"bytes": served.journal.size, "start": served.journal.start, "file_bytes": served.journal.file_bytes},
        "snapshots": served.snapshots, "created": served.journal.created, "error": error,
    }  # fmt: skip


def state(reader: Reader) -> Json:
    """What a learner holds."""
    found: Json = {}
    with reader as model:
        for name, attribute in (
            ("n_seen", "n_seen_"), ("memory_bytes", "memory_bytes_"), ("n_support", "n_support_"),
            ("classes", "classes_"), ("weights", "weights_"),
        ):  # fmt: skip
            value = _attribute(model, attribute)
            if value is not None:
                found[name] = value.tolist() if hasattr(value, "tolist") else value
        table = _attribute(model, "table_")
        if table is not None:
            found["columns"] = {str(name): kind for name, kind in table.kinds_.items()}
        found.update(_relevance(model))
        experts = _attribute(model, "experts_")
        if experts is not None:
            from ..notation import written

            found["experts"] = [written(one)[:120] if hasattr(one, "get_params") else str(one)[:120] for one in experts]
    return found


def _relevance(model: Any) -> Json:
    """The share of each column in the prediction, where a learner, or the leader of a race, weighs columns."""
    table = _attribute(model, "table_")
    shares = _attribute(model, "relevance_")
    if table is None:
        return {}
    if shares is None:  # the leader sees the rows that the table makes: several columns for a category
        inner = _attribute(_attribute(model, "leader_"), "relevance_")
        shares = None if inner is None else table.by_column(inner)
    if shares is None or len(shares) != len(table.names):
        return {}
    return {"relevance": dict(zip(table.names, shares.tolist(), strict=True))}


def _attribute(model: object, name: str) -> Any:
    """A fitted attribute; None where a learner does not have it."""
    try:
        return getattr(model, name)
    except (AttributeError, ValueError, TypeError):
        return None


def comparison(writer: Writer) -> Json:
    """Champion and challenger on the same events."""
    served = writer.served
    challenger = served.challenger
    if challenger is None:
        from .store.errors import ServiceError

        raise ServiceError("there is no challenger", 404)
    return {
        "position": served.position,
        **{
            role: {
                "spec": one.spec, "begun": one.begun, "status": one.role, "reason": one.reason,
                "metrics": one.record.metrics(),
            }
            for role, one in (("champion", served.champion), ("challenger", challenger))
        },
    }  # fmt: skip


def curves(writer: Writer, meter: Meter, after: float = 0.0) -> Json:
    """What the page draws; curves over time begin after a moment."""
    served = writer.served
    record = served.champion.record
    return {
        **description(served, writer.depth, writer.failed),
        "metric": record.metric,
        "curve": _finite(record.curve),
        "drifts": record.drifts,
        "calibration": record.calibration(),
        "counts": record.classes,
        "alarms": list(served.alarms),
        "time": [point for point in list(meter.points) if (point["time"] or 0.0) > after],
        "challenger": None if served.challenger is None else {
            "learner": served.challenger.spec.get("learner", "auto"), "status": served.challenger.role,
            "reason": served.challenger.reason, "curve": _finite(served.challenger.record.curve),
            "metrics": served.challenger.record.metrics(),
        },
    }  # fmt: skip


def _finite(curve: list[list[float]]) -> list[list[float | None]]:
    return [[value if math.isfinite(value) else None for value in entry] for entry in curve]
