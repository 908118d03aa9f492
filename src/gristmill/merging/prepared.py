"""Learners behind `Prepared` as one: tables, scalings and targets of all, and points that follow from the old to the new."""

from __future__ import annotations

import copy
from typing import Any

from .._base.estimator import core_of
from ..prepared.target_scalers import Targets
from ..race.race import Racing
from . import races
from .compatibility import check, shares_of
from .compression import with_model
from .learners import Move, learners


def merged(models: list[Any], size: object, weights: Any) -> Any:
    pipelines = [model.pipeline for model in models]
    first = models[0]
    for at, model in enumerate(models[1:], 1):
        if (model.scale, model.warmup) != (first.scale, first.warmup):
            raise ValueError(
                f"merge: models 0 and {at} are scaled in different ways: scale={first.scale!r}, warmup={first.warmup!r} and "
                f"scale={model.scale!r}, warmup={model.warmup!r}"
            )
        if not pipelines[0].is_alike(pipelines[at]):
            tables = pipelines[0].table, pipelines[at].table
            differ = "" if None in tables else f": they met {tables[0].difference(tables[1])}"
            raise ValueError(
                f"merge: models 0 and {at} were made of tables with different columns{differ}; columns and categories must "
                "have come in the same order"
            )
        if (pipelines[0].targets is None) != (pipelines[at].targets is None):
            raise ValueError(f"merge: models 0 and {at} treat targets differently: one scales them, one does not")
    inner = [one.model for one in pipelines]
    if isinstance(inner[0], Racing):
        return _prepared_races(first, pipelines, inner, size, weights)
    check(inner)
    shares = shares_of(inner, weights)
    targets = None if pipelines[0].targets is None else Targets.merged([one.targets for one in pipelines])
    if targets is not None:
        inner = [_retargeted(one, targets) for one in pipelines]
    if pipelines[0].scaler is None:
        fresh = with_model(first, learners(inner, size, shares))
        fresh.pipeline.replace(table=_tables(pipelines), targets=targets)
        return fresh
    scaler = pipelines[0].scaler.merged_of([one.scaler for one in pipelines], shares)
    table = pipelines[0].table
    places = None if table is None or table.is_plain or table.is_sparse else table.scaled_places
    fresh = with_model(first, learners(inner, size, shares, [Move(one.scaler, scaler, places) for one in pipelines]))
    fresh.pipeline.replace(scaler=scaler, table=_tables(pipelines), targets=targets)
    return fresh


def _prepared_races(first: object, pipelines: list[Any], inner: list[object], size: object, weights: object) -> Any:
    if pipelines[0].scaler is not None:
        raise TypeError(f"merge: {type(inner[0]).__name__} scales columns by itself; use Prepared(model, scale=None)")
    fresh = with_model(first, races.merged(inner, size, weights))
    fresh.pipeline.replace(table=_tables(pipelines))
    return fresh


def _retargeted(one: Any, targets: Targets) -> Any:
    """An equivalent learner in other target units."""
    model = copy.copy(one.model)
    if one.targets.is_known:
        core_of(model).rescale_targets(*one.targets.to(targets))
    return model


def _tables(pipelines: list[Any]) -> Any:
    """One table of all that these have seen."""
    return None if pipelines[0].table is None else pipelines[0].table.merged([one.table for one in pipelines])
