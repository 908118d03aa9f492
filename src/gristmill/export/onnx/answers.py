"""Scores to answers: labels and probabilities, numbers and their intervals, alarms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plain import (
    COVERAGES,
    AdditiveExpansion,
    Calibration,
    Constant,
    Description,
    Detector,
    Expansion,
    Expert,
    ExportError,
    LinearFunction,
    MaclaurinFeatures,
    Mixture,
    Neighbours,
    NoveltyMixture,
)
from . import kernels
from .graph import Graph, Value
from .rows import scaled

_FARTHEST = 30.0  # of a logit
_LEAST = 1e-290  # of a density


def scores_of(graph: Graph, expert: Expert, rows: Value) -> Value:
    """(events, outputs)."""
    x = (rows if expert.scaling is None else scaled(graph, rows, expert.scaling)).cast(graph.number)
    if expert.single:  # the library rounds its rows, too
        x = x.cast(np.float32).cast(graph.number)
    body: Any = expert.body
    if isinstance(body, Constant):
        # A sum over no column: zeros, as many as there are events.
        scores = x.slice(0, 1) * 0.0 + expert.intercept[None, :]
    elif isinstance(body, LinearFunction):
        scores = (x - body.origin[None, :]) @ body.weights[:, None] + expert.intercept[None, :]
    else:
        make: Any = {
            Expansion: kernels.terms,
            Neighbours: kernels.near,
            AdditiveExpansion: kernels.curves,
            MaclaurinFeatures: kernels.products,
        }.get(type(body), kernels.waves)
        graph.low = -87.0 if expert.single else -708.0
        scores = make(graph, body, x) + expert.intercept[None, :]
        graph.low = None
    if expert.target is not None:
        centre, spread = expert.target
        scores = scores * spread + centre
    return scores


def probabilities(graph: Graph, calibration: Calibration, scores: Value, outputs: int) -> Value:
    """One column a class, in the order of the outputs."""
    slope = calibration.slope * calibration.unit
    if outputs == 1:
        both = np.array([[-1.0, 1.0]])
        logits = scores @ (both * slope) + both * calibration.offsets[0]
        # By exp: onnxruntime's Sigmoid is 1 less a share below 0, which leaves no digits of a small one.
        return 1.0 / (graph.exp(-graph.clip(logits, -_FARTHEST, _FARTHEST)) + 1.0)
    logits = scores * slope + calibration.offsets[None, :]
    shares = graph.exp((logits - logits.largest()).at_least(-_FARTHEST))
    return shares / shares.sum()


def mixed(graph: Graph, found: Description, mixture: Mixture, by_expert: list[Value]) -> Value:
    """Probabilities, or numbers, weighted."""
    total: Value | None = None
    for component in mixture.components:
        one = by_expert[component.expert]
        if component.calibration is not None:
            one = probabilities(graph, component.calibration, one, found.outputs)
        part = one * component.weight
        total = part if total is None else total + part
    if total is None:
        raise ExportError(f"{found.kind}: no expert has any weight; learn some events first")
    return total


def novelty_score(graph: Graph, found: NoveltyMixture, by_expert: list[Value]) -> Value:
    """The logarithm of the share of events that were stranger, drawn to the wanted share of alarms; (events, 1)."""
    views: list[Value] = []
    least = _LEAST if graph.number == np.float64 else 1e-37
    for density, middle, spread in zip(by_expert, found.middles, found.spreads, strict=True):
        if np.isnan(spread):
            continue
        away = (graph.log(density.at_least(least)) - float(middle)) / float(spread)
        away = graph.clip(away, -5e5, 5e5)
        size = graph.abs(away)
        tamed = graph.op("Sign", away) * (graph.log(size.at_least(1.0)) + 1.0)
        views.append(graph.where(size <= 1.0, away, tamed))
    zero = by_expert[0] * 0.0
    view = zero if not views else sum(views[1:], views[0]) / float(len(views))
    share = zero if len(found.scores) < 2 else graph.log(share_of(graph, found.scores, view))
    return stretched(graph, found, share)


def stretched(graph: Graph, found: NoveltyMixture | Detector, share: Value) -> Value:
    """Logarithms of shares, those near the wanted share of alarms drawn so that an alarm begins there."""
    start = share - found.level
    below, above = found.reach + found.begins, found.reach - found.begins
    factor = graph.where(start >= found.begins, start * 0.0 + found.reach / above, found.reach / below)
    drawn = (start - found.begins) * factor + found.level
    return graph.where(graph.abs(start) >= found.reach, share, drawn)


def share_of(graph: Graph, scores: Any, value: Value) -> Value:
    """Of which share of the last scores a value is the quantile; beyond them an exponential tail."""
    n = len(scores)
    each = 1.0 / (n + 1)
    lowest, highest = float(scores[0]), float(scores[-1])
    below_all = graph.exp((value - lowest).at_most(0.0).at_least(-600.0)) * each
    above_all = 1.0 - graph.exp((highest - value).at_most(0.0).at_least(-600.0)) * each
    count = (value >= scores[None, :]).cast(np.int64)
    count = graph.op("ReduceSum", count, graph.whole([1]), keepdims=1)
    below = count.at_least(1).at_most(n - 1)
    table = graph.constant(scores)
    low = graph.op("Gather", table, below - 1, axis=0)
    high = graph.op("Gather", table, below, axis=0)
    gap = high - low
    part = (value - low) / graph.where(gap > 0.0, gap, 1.0)
    inside = (below.cast(graph.number) + part) * each
    found = graph.where(value >= highest, above_all, inside)
    return graph.where(value >= lowest, found, below_all)


# ---- outputs ------------------------------------------------------------------------------------------------------


def classes(graph: Graph, found: Description, scores: Value, shares: Value) -> None:
    """scores, shares: in the order of the outputs."""
    count = len(found.labels)
    if count == 1:
        graph.output("label", _named(graph, found, (shares.slice(0, 1).cast(np.int64) * 0).flat()), ["N"])
        graph.output("probabilities", shares.slice(0, 1) * 0.0 + 1.0, ["N", 1])
        graph.output("scores", scores.flat(), ["N"])
        return
    if found.outputs == 1:
        shown = scores * found.sign
        best = (shown >= 0.0).cast(np.int64).flat()
        graph.output("label", _named(graph, found, best), ["N"])
        graph.output("scores", shown.flat(), ["N"])
    else:
        shown = scores.columns(found.order)
        best = graph.op("ArgMax", shown, dtype=np.int64, axis=1, keepdims=0)
        graph.output("label", _named(graph, found, best), ["N"])
        graph.output("scores", shown, ["N", count])
    graph.output("probabilities", _agreeing(graph, shares.columns(found.order), best, count), ["N", count])


def _agreeing(graph: Graph, shares: Value, best: Value, count: int) -> Value:
    """None is larger than that of the best class, as `predict_proba` has it."""
    place = graph.op("Unsqueeze", best, graph.whole([1]))
    top = graph.op("GatherElements", shares, place, axis=1)
    is_best = graph.op("Equal", place, graph.whole([list(range(count))]), dtype=np.bool_)
    limit = top * (1 - 1e-9)
    cut = graph.where(is_best, shares, shares.at_most(limit))
    over = graph.where(is_best, shares * 0.0, shares) - limit
    return graph.where(over.largest() > 0.0, cut / cut.sum(), shares)


def _named(graph: Graph, found: Description, places: Value) -> Value:
    """Labels by their place among the sorted ones."""
    names = [found.labels[at] for at in found.order]
    if all(isinstance(name, str) for name in names):
        table = graph.strings(names)
    else:
        array = np.array(names)
        if array.dtype.kind not in "biuf":
            raise ExportError(f"the labels {names!r} have no common type in ONNX; use whole numbers or texts")
        table = graph.constant(array, array.dtype)
    return graph.op("Gather", table, places, axis=0)


def numbers(graph: Graph, found: Description, predicted: Value) -> None:
    targets = found.outputs
    if found.target is not None:
        centre, spread = found.target
        predicted = predicted * spread[None, :] + centre[None, :]
    graph.output(
        "prediction", predicted.flat() if targets == 1 else predicted, ["N"] if targets == 1 else ["N", targets]
    )
    if found.half_widths is None:
        return
    half_widths = found.half_widths if targets > 1 else found.half_widths[0]
    ends = np.stack([-half_widths, half_widths], axis=-1)  # (targets,) levels, 2
    axes = [2] if targets == 1 else [2, 3]
    lone = graph.op("Unsqueeze", predicted, graph.whole(axes))
    ends = ends[None]
    shape = ["N", len(COVERAGES), 2] if targets == 1 else ["N", targets, len(COVERAGES), 2]
    graph.output("intervals", lone + ends, shape)


def alarms(graph: Graph, found: Description, score: Value) -> None:
    """score: `score_samples`, (events, 1)."""
    shown = score - found.offset
    graph.output("label", graph.where(shown >= 0.0, graph.whole(1), graph.whole(-1)).flat(), ["N"])
    graph.output("scores", shown.flat(), ["N"])
    graph.output("score_samples", score.flat(), ["N"])
