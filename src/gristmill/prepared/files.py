"""A prepared learner in a model file: the learner's own fields, the table's, and the scaling's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import persist
from .._base.estimator import run_of
from .._common.types import Fields, FileFields, Fitted, Options
from ..streams.relevance import RelevanceScaler
from ..streams.tables.table import Table
from .pipeline import Pipeline
from .target_scalers import Targets


def to_file(pipeline: Pipeline) -> FileFields:
    """Arrays, and plain values for JSON."""
    arrays, fitted = pipeline.model.saved_fields()
    together = {f"model.{name}": array for name, array in arrays.items()}
    plain: dict[str, Any] = {"model": fitted}
    if pipeline.table is not None:
        found, plain["table"] = pipeline.table.to_file()
        together |= found
    standard = pipeline.standard
    if pipeline.scaler is not None and (pipeline.scaler is not standard or standard.__sklearn_is_fitted__()):
        found, plain["scaler"] = pipeline.scaler.saved_fields()
        together |= found
    if pipeline.fixed_width is not None:
        plain["width"] = pipeline.fixed_width
    if pipeline.targets is not None and pipeline.targets.scales:
        together["targets"] = pipeline.targets.state()
    return together, plain


def from_file(model: Any, settings: Options | None, scaler: Any, arrays: Fields, fitted: Fitted) -> Pipeline:
    """Inverse of `to_file`. Raise ModelFileError if the parts do not fit each other."""
    inner = {name.removeprefix("model."): a for name, a in arrays.items() if name.startswith("model.")}
    model.restore_fields(inner, fitted["model"])
    if scaler is not None and "scaler" in fitted:
        scaler.restore_fields(arrays, fitted["scaler"])
    targets = Targets.from_state(arrays["targets"]) if "targets" in arrays else None
    if targets is not None and len(targets.scales) != run_of(model).targets:
        raise persist.ModelFileError("its scale of the targets does not fit its points")
    if settings is None:
        return Pipeline(model, None, None, targets=targets)
    if "table" in fitted:
        table = Table.from_file(arrays, {**fitted["table"], "settings": settings})
    else:  # a member of a fleet, which learns from plain numbers
        table = of_numbers(model, settings, scaler, fitted["model"].get("feature_names_in"))
    pipeline = Pipeline(model, table, scaler, _fixed_width(model, table, fitted), targets)
    _check(pipeline)
    return pipeline


def _fixed_width(model: Any, table: Table, fitted: Mapping[str, object]) -> int | None:
    if model.widens and "width" not in fitted:
        return None
    width = fitted.get("width", table.width_)
    if type(width) is not int or not table.width_ <= width <= 2**31:
        raise persist.ModelFileError("its table is damaged")
    return width


def _check(pipeline: Pipeline) -> None:
    """Scaling, table and learner are of one width."""
    standard, table = pipeline.standard, pipeline.table
    assert table is not None
    scaled = 0 if standard is None or not standard.__sklearn_is_fitted__() else standard.n_features_in_
    if standard is not None and scaled not in ((0, table.width_) if table.is_sparse else (table.n_scaled,)):
        raise persist.ModelFileError("its scaling does not fit its points")
    if pipeline.relevance is not None and len(pipeline.relevance.weights) != table.width_:
        raise persist.ModelFileError("its relevance does not fit its points")
    if (pipeline.fixed_width or table.width_) != pipeline.model.n_features_in_:
        raise persist.ModelFileError("its table does not fit its points")


def of_numbers(model: Any, settings: dict[str, object], scaler: Any, known: list[str] | None = None) -> Table:
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
        first, sums = scaler.standard.means_fields() if isinstance(scaler, RelevanceScaler) else scaler.means_fields()
        if len(first) != width:
            raise persist.ModelFileError("its scaling does not fit its points")
        means[0], means[1] = first, sums
    return Table.of_numbers(names, known is not None, means, seen, **settings)
