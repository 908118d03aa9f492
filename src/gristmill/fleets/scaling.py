"""Fleets of prepared learners: each member has a scaling of its own, kept in the core, and comes out as a `Prepared`."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from .._common.types import Fields
from ..prepared.prepared import Prepared

#: numbers of a scaling, a column each: its first value and two running ones
_ROWS = 3


def inner(prototype: object) -> Any:
    """The learner of a prototype, without the scaling in front."""
    return prototype.model if isinstance(prototype, Prepared) else prototype


def scaling(owner: str, prototype: Any) -> dict[str, Any]:
    """The scaling in the core's terms; raises for scalings that the core does not have."""
    if not isinstance(prototype, Prepared):
        return {}
    prototype.check_parameters()
    if prototype.scale not in (None, "standard", "minmax"):
        raise ValueError(
            f"{owner} cannot run Prepared(..., scale={prototype.scale!r}): members cannot scale so; "
            "scale='standard', 'minmax' or None work"
        )
    if prototype.target is not None and prototype.model.retargets:
        raise ValueError(
            f"{owner} does not scale targets, so it cannot run Prepared(..., target={prototype.target!r}); "
            "use target=None, and targets around 0 of about unit spread"
        )
    usual = {name: given.default for name, given in signature(Prepared.__init__).parameters.items()}
    for name, value in prototype.get_params(deep=False).items():
        if name not in ("model", "scale", "warmup", "target") and not _same(value, usual[name]):
            raise ValueError(f"{owner} cannot run Prepared(..., {name}={value!r}); leave {name} as it is by default")
    if prototype.scale is None:
        return {}
    return {"scale": prototype.scale, "warmup": prototype.warmup}


def _same(value: object, other: object) -> bool:
    return value is other or (type(value) is type(other) and bool(value == other))


def prepared(prototype: object, model: Any, pack: Fields) -> Any:
    """A member as the prototype would be: the learner behind the scaling that its events went through."""
    if not isinstance(prototype, Prepared):
        return model
    arrays, fitted = model.saved_fields()
    arrays = {f"model.{name}": array for name, array in arrays.items()}
    plain: dict[str, Any] = {"model": fitted}
    if prototype.scale is not None:
        arrays["scaler_state"] = pack["scaling"].reshape(_ROWS, -1).copy()
        plain["scaler"] = {"n_seen": int(pack["seen"][0])}
    member = clone(prototype)
    member.restore_fields(arrays, plain)
    return member


def unprepared(prototype: object, member: object) -> tuple[object, object]:
    """The learner of a member and the numbers of its scaling; the other way round."""
    if not isinstance(prototype, Prepared):
        return member, None
    if not isinstance(member, Prepared) or (member.scale, member.warmup) != (prototype.scale, prototype.warmup):
        raise ValueError(f"a member must be prepared as the prototype is, {prototype!r}; got {member!r}")
    if prototype.scale is None:
        return member.model_, None
    arrays, plain = member.saved_fields()
    if int(plain["scaler"]["n_seen"]) != member.model_.n_seen_:
        raise ValueError("the scaling of the member has not seen the same events as its learner")
    return member.model_, np.ascontiguousarray(arrays["scaler_state"], dtype=np.float64).reshape(-1)
