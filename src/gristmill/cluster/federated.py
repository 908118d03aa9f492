"""One model of distributed data: fix scaling on a sample of all, learn each part alone, merge in a tree, and measure.

It is for data that cannot come together, not for speed: each part has seen less than one pass over all would have.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector

from .._base.estimator import Run, core_of, with_run
from ..kernels import Gaussian
from ..prepared.prepared import Prepared
from ..race.auto_novelty import AutoNovelty
from ..race.race import Racing
from ..streams.rank import RankScaler
from ..streams.relevance import RelevanceScaler
from ..streams.scaling import StreamScaler, WidthFinder
from .sources import chunks_of

#: every so many events one is held out
HELD_OUT = 10


class Sample(NamedTuple):
    X: Any
    y: Any


class Loss(NamedTuple):
    """Sum of losses over held-out samples."""

    total: float
    events: int

    @property
    def mean(self) -> float:
        return self.total / self.events if self.events else float("nan")


@dataclasses.dataclass(frozen=True)
class FitReport:
    """Result of `Cluster.fit`: held-out losses of the merged model and of the models of the parts."""

    measure: str  # error, mean absolute error or rate of alarms
    loss: float  # of the merged model; NaN where no event was held out
    apart: tuple[float, ...]  # of each part's own model, on the same events
    learned: tuple[int, ...]  # events of each part
    held_out: int  # events

    def __str__(self) -> str:
        if not self.held_out:
            return f"{self.measure}: not measured, because no shard has the {HELD_OUT} events of which one is held out"
        apart = ", ".join(f"{loss:.4g}" for loss in self.apart)
        return (
            f"{self.measure} {self.loss:.4g} on {self.held_out:,} events held out; "
            f"the models of the {len(self.learned)} parts before they were merged: {apart}"
        )


# ---- one part --------------------------------------------------------------------------------------------------------


def sample_of(source: object, target: object, count: int, seed: int) -> Sample:
    """So many events of a part, drawn from its first ten times as many."""
    rng = np.random.default_rng(seed)
    rows: list[Any] = []
    labels: list[Any] = []
    left = 10 * count
    for X, y in chunks_of(source, target):
        rows.append(np.asarray(X.toarray() if hasattr(X, "toarray") else X)[:left])
        labels.append(None if y is None else np.asarray(y)[:left])
        left -= len(rows[-1])
        if left <= 0:
            break
    if not rows:
        raise ValueError(f"{source!r} holds no event")
    X = np.concatenate(rows)
    kept = np.sort(rng.permutation(len(X))[:count])
    return Sample(X[kept], None if labels[0] is None else np.concatenate(labels)[kept])


def learn_part(model: Any, source: Any, target: Any) -> Any:
    """A model of one part; every tenth event is held out. Returns it with the number of events learned."""
    learner = copy.deepcopy(model)
    place = learned = 0
    for X, y in chunks_of(source, target):
        kept = ~_held_out(place, len(y) if y is not None else X.shape[0])
        place += len(kept)
        if kept.any():
            learner.partial_fit(X[kept], None if y is None else y[kept])
            learned += int(kept.sum())
    return learner, learned


def losses_of(models: Sequence[object], source: Any, target: Any) -> list[Loss]:
    """Losses of several models on the held-out events of a part."""
    totals, events, place = np.zeros(len(models)), 0, 0
    for X, y in chunks_of(source, target):
        held = _held_out(place, X.shape[0])
        place += len(held)
        if not held.any():
            continue
        events += int(held.sum())
        for at, model in enumerate(models):
            totals[at] += _loss(model, X[held], None if y is None else y[held])
    return [Loss(float(total), events) for total in totals]


def _held_out(place: int, count: int) -> Any:
    return (np.arange(place, place + count) % HELD_OUT) == HELD_OUT - 1


def _loss(model: Any, X: Any, y: Any) -> float:
    predicted = model.predict(X)
    if y is None or is_outlier_detector(model):
        return float((predicted == -1).sum())
    return float((predicted != y).sum()) if is_classifier(model) else float(np.abs(predicted - y).sum())


def measure_of(model: Any) -> str:
    if is_outlier_detector(model):
        return "rate of alarms"
    return "error" if is_classifier(model) else "mean absolute error"


# ---- what holds for all parts -------------------------------------------------------------------------------------------


def settle(learner: Any, samples: list[Sample]) -> Any:
    """A learner with scaling, widths and relevance from a sample of all parts, which stay; it has learned nothing yet.

    Relevance becomes part of a standard scaling: a column that counts more has a smaller spread.
    """
    widths = [sample.X.shape[1] for sample in samples]
    for at, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(f"fit: parts must have the same columns; part 0 has {widths[0]} and part {at} has {width}")
    X = np.concatenate([sample.X for sample in samples])
    y = None if samples[0].y is None else np.concatenate([sample.y for sample in samples])
    order = np.random.default_rng(0).permutation(len(X))  # else the parts would come one after the other
    X, y = X[order], None if y is None else y[order]
    if isinstance(learner, AutoNovelty) and learner.experts is None:
        return clone(learner)  # it measures columns for itself, and so does what several of them become
    if isinstance(learner, Racing):
        return _settled_race(learner, X, y)
    if not isinstance(learner, Prepared):
        return _with_width(clone(learner), X)
    settled = Prepared(clone(learner.model), learner.scale, warmup=len(X), target=learner.target)
    if learner.scale is None:
        return settled.set_params(model=_with_width(settled.model, X))
    settled.fit(X, y)
    scaler = settled.scaler_ if learner.scale != "relevance" else _weighed(settled.scaler_)
    model = _with_width(clone(learner.model), scaler.transform(X))
    fresh = Prepared(model, scaler.method, warmup=len(X), target=learner.target)
    fresh.resume(clone(fresh.model), scaler)
    return fresh


def _weighed(relevance: Any) -> StreamScaler:
    """A standard scaling equivalent to weighted columns."""
    scaler: StreamScaler = copy.deepcopy(relevance.standard)
    count = min(scaler.n_seen_, scaler.warmup or scaler.n_seen_)
    first, sums, squares = scaler.moments
    mean = sums / count
    spread = np.maximum(squares / count - mean * mean, 0.0)
    scaler.moments = np.stack([first, sums, count * (spread / relevance.weights**2 + mean * mean)])
    return scaler


def _settled_race(race: object, X: Any, y: Any) -> Any:
    """A race whose experts have the scalings, and weights of columns, that they had at the end of the sample.

    A scaling is known by after how many events it stays: columns that an expert weighs have one of its own.
    """
    tried = clone(race).partial_fit(X, y)
    rows = np.asarray(X, dtype=np.float64)
    experts, scalers = [], {}
    for place, view in enumerate(core_of(tried).experts()):
        expert = view.composition()
        scaler = view.scaler
        weights = scaler.weights if isinstance(scaler, RelevanceScaler) else None
        if isinstance(expert, Prepared) and expert.scale is not None:
            method = expert.scale if weights is None else "standard"
            key = (method, len(rows) + (0 if weights is None else 1 + place))
            scalers[key] = _frozen(rows, method, key[1], 1.0 if weights is None else weights)
            expert = clone(expert).set_params(scale=method, warmup=key[1])
        experts.append(expert)
    fresh = clone(race).set_params(experts=experts)
    core = fresh.new_race(rows.shape[1])
    for key in core.scaling_keys:  # one that does not stay goes on from the sample
        found = scalers.get(key) or _scaler(*key).fit(rows)
        core.set_scaling(*key, found.snapshot())
    with_run(fresh, Run(fresh.checked_parts(), core)).n_features_in_ = rows.shape[1]
    return fresh


def _scaler(method: str, warmup: int | None) -> StreamScaler:
    return RankScaler(warmup) if method == "rank" else StreamScaler(method, warmup)


def _frozen(rows: Any, method: str, count: int, weights: Any) -> StreamScaler:
    """A scaling of so many events like these, which stays; a column that counts more has a smaller spread."""
    mean = rows.mean(axis=0)
    return _scaler(method, count).fit(np.resize(mean + (rows - mean) / weights, (count, rows.shape[1])))


def _with_width(model: Any, X: Any) -> Any:
    """A Gaussian with the median distance of the sample as width, if no kernel is given."""
    if "kernel" in model.get_params(deep=False) and model.kernel is None:
        finder = WidthFinder(random_state=0)
        finder.update(X)
        model.set_params(kernel=Gaussian(float(f"{finder.gamma:.3g}")))
    return model


def report_of(models: list[object], losses: list[list[Loss]], learned: list[int]) -> FitReport:
    """losses: a list a part, in it the parts' own models and, last, the merged one."""
    means = [
        Loss(sum(loss.total for loss in each), sum(loss.events for loss in each)).mean
        for each in zip(*losses, strict=True)
    ]
    held = sum(part[0].events for part in losses)
    return FitReport(measure_of(models[-1]), means[-1], tuple(means[:-1]), tuple(learned), held)
