"""A prepared learner in a model file: the learner's own fields, the table's, and the scaling's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import persist
from ..streams.tables.table import Table
from .pipeline import Begun
from .target_scalers import Targets


def to_file(began: Begun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays, and plain values for JSON."""
    arrays, fitted = began.model._to_file()
    together = {f"model.{name}": array for name, array in arrays.items()}
    plain: dict[str, Any] = {"model": fitted}
    if began.table is not None:
        found, plain["table"] = began.table.to_file()
        together |= found
    standard = began.standard
    if began.scaler is not None and (began.scaler is not standard or standard.__sklearn_is_fitted__()):
        found, plain["scaler"] = began.scaler._to_file()
        together |= found
    if began.room is not None:
        plain["room"] = began.room
    if began.targets is not None and began.targets.scales:
        together["targets"] = began.targets.state()
    return together, plain


def from_file(
    model: Any, settings: dict[str, Any] | None, scaler: Any, arrays: dict[str, Any], fitted: dict[str, Any]
) -> Begun:
    """Inverse of `to_file`. Raise ModelFileError if the parts do not fit each other."""
    inner = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
    model._from_file(inner, fitted["model"])
    if scaler is not None and "scaler" in fitted:
        scaler._from_file(arrays, fitted["scaler"])
    targets = Targets.from_state(arrays["targets"]) if "targets" in arrays else None
    if targets is not None and len(targets.scales) != model._run.targets:
        raise persist.ModelFileError("its scale of the targets does not fit its points")
    if settings is None:
        return Begun(model, None, None, targets=targets)
    if "table" in fitted:
        table = Table.from_file(arrays, {**fitted["table"], "settings": settings})
    else:  # a member of a fleet, which learns from plain numbers
        table = of_numbers(model, settings, scaler, fitted["model"].get("feature_names_in"))
    began = Begun(model, table, scaler, _room(model, table, fitted), targets)
    _check(began)
    return began


def _room(model: Any, table: Table, fitted: dict[str, Any]) -> int | None:
    if model.widens and "room" not in fitted:
        return None
    room = fitted.get("room", table.width_)
    if type(room) is not int or not table.width_ <= room <= 2**31:
        raise persist.ModelFileError("its table is damaged")
    return room


def _check(began: Begun) -> None:
    """Scaling, table and learner are of one width."""
    standard, table = began.standard, began.table
    assert table is not None
    scaled = 0 if standard is None or not standard.__sklearn_is_fitted__() else standard.n_features_in_
    if standard is not None and scaled not in ((0, table.width_) if table.is_sparse else (table.n_scaled,)):
        raise persist.ModelFileError("its scaling does not fit its points")
    if began.relevance is not None and len(began.relevance.weights) != table.width_:
        raise persist.ModelFileError("its relevance does not fit its points")
    if (began.room or table.width_) != began.model.n_features_in_:
        raise persist.ModelFileError("its table does not fit its points")


def of_numbers(model: Any, settings: dict[str, Any], scaler: Any, known: list[str] | None = None) -> Table:
    """The table of a learner that was fitted on plain numbers, none of them missing."""
    learned = model.__sklearn_is_fitted__()
    width = model.n_features_in_ if learned else scaler.n_features_in_
    seen = int(model.n_seen_ if learned else scaler.n_seen_)
    names = known or [f"x{place}" for place in range(width)]
    if len(names) != width:
        raise persist.ModelFileError("its columns do not fit its points")
    means = np.zeros((3, width))
    means[2] = seen
    if scaler is not None:
        state = np.asarray(scaler._to_file()[0]["scaler_state"])
        if state.shape[1] != width:
            raise persist.ModelFileError("its scaling does not fit its points")
        means[0] = state[0]
        if scaler.method == "standard":
            means[1] = state[1]
    return Table.of_numbers(names, known is not None, means, seen, **settings)
