"""The report of a run: outcome, baselines, columns with their relevance, and the largest errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import drift
from .details import BINS, COVERAGE, MOST_CLASSES, Details
from .report import Report
from .result import Comparison, Result, number

#: headings of metrics with a short name
_NAMES = {"mae": "Mean absolute error", "rmse": "Root mean squared error", "roc_auc": "Area under the ROC curve"}
#: experts of a race, columns of a table and drift marks that are listed
_EXPERTS, _COLUMNS, _MARKS = 6, 50, 50
#: of pictures in inches: letters are readable on a phone
_SIZE = (5.0, 3.4)


def run_report(
    comparison: Comparison,
    title: str,
    about: dict[str, str],
    bayes_error: float | None = None,
    between: Callable[[Report], None] | None = None,
) -> Report:
    """The report of a run. `between` adds parts behind the curves."""
    from .displays.runs import PrequentialDisplay, pyplot

    plt = pyplot()
    report = Report(title)
    if "command" in about:
        report.code(about["command"])
    for result in comparison:
        if result.stopped:
            report.warning(f"Stopped after {result.n_events:,} events: {result.stopped}")
            break
    _outcome(report, comparison)
    for metric in comparison[0].metrics:
        _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
        display = PrequentialDisplay.from_results(comparison, metric, bayes_error).plot(ax)
        says = f"{metric.replace('_', ' ')} over the stream, each event predicted before it was learned"
        report.heading(_NAMES.get(metric, metric.replace("_", " ").capitalize())).figure(display.figure_, says)
        plt.close(display.figure_)
    if between is not None:
        between(report)
    _drifts(report, comparison)
    for result in comparison:
        name = f": {result.name}" if len(comparison) > 1 else ""
        _leader(report, result, name)
        _columns(report, result, name)
        if result.details is not None:
            _details(report, result, result.details, name)
    figure, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    draw_stored(ax, comparison)
    report.heading("Stored points").figure(figure, "stored points over the stream")
    plt.close(figure)
    report.heading("Settings").table(["", ""], [[key, value] for key, value in about.items() if key != "command"])
    return report


def _outcome(report: Report, comparison: Comparison) -> None:
    """The summary, with the baselines as rows, and a warning where a model is no better than those."""
    heads, body = comparison.cells()
    first = comparison[0]
    own = "mae" if first.task == "regression" else "error"
    if own in first.metrics:
        place = 1 + 2 * list(first.metrics).index(own)
        for name, error in comparison.baselines.items():
            row = [name, *([""] * (len(heads) - 1))]
            row[place] = number(error)
            body.append(row)
    report.heading("Outcome")
    report.text(f"{first.n_events:,} events of {first.stream}, each predicted before it was learned.")
    report.table(heads, body)
    best = min(comparison.baselines.values(), default=None)
    for result in comparison if best is not None and own in first.metrics else ():
        assert best is not None
        if result.n_events >= 100 and result.metrics[own] >= best:
            report.warning(f"{result.name} is no better than the best baseline, which needs no learning.")


def draw_stored(ax: Any, comparison: Any) -> None:
    """How many points each model keeps, over the stream."""
    from .displays.runs import COLOURS, _legend_above, _tidy, lone

    for place, result in enumerate(comparison):
        events = [entry["event"] for entry in result.curve]
        stored = [entry["stored"] for entry in result.curve]
        ax.plot(events, stored, color=COLOURS[place % len(COLOURS)], label=result.name, marker=lone(events))
    ax.set(xlabel="event", ylabel="stored points")
    ax.set_ylim(bottom=0)
    _legend_above(ax)
    _tidy(ax)


def _drifts(report: Report, comparison: Comparison) -> None:
    """Where the error of each model changed."""
    rows = [
        [result.name, drift.describe(mark, result.task)] for result in comparison for mark in result.drifts[:_MARKS]
    ]
    if rows:
        report.heading("Where the error changed").table(["learner", "found by ADWIN"], rows)


def _leader(report: Report, result: Result, name: str) -> None:
    """The experts of a race, by weight."""
    model = getattr(result.model, "model_", result.model)
    if not hasattr(model, "report"):
        return
    found = model.report()
    if hasattr(found, "cells") and found.experts:
        heads, body = found.cells()
        report.heading(f"Leading experts{name}").table(heads, body[:_EXPERTS])


def _columns(report: Report, result: Result, name: str) -> None:
    """The columns of the table with their kinds, and how much each moves the prediction where that is known."""
    model = result.model
    table = getattr(model, "table_", None)
    if table is None or not (table.named or hasattr(model, "relevance_")):
        return
    lines = table.describe()[:_COLUMNS]
    names = [line["column"] for line in lines]
    shares = _relevance(result, names)
    heads, rows = ["column", "kind", "missing values"], []
    for line in lines:
        kind = f"category, {line['values']:,} values" if line["kind"] == "category" else line["kind"]
        rows.append([line["column"], kind, "yes" if line["missing"] else "no"])
    if shares is None:
        report.heading(f"Columns{name}").table(heads, rows)
        return
    rows = sorted([[row[0], f"{shares[row[0]]:.3f}", *row[1:]] for row in rows], key=lambda row: -float(row[1]))
    report.heading(f"Columns{name}").table([heads[0], "relevance", *heads[1:]], rows)
    report.small("Relevance: how much the predictions change with the column, as a share of the sum.")


def _relevance(result: Result, names: list[str]) -> dict[str, float] | None:
    """Of `Prepared(scale="relevance")` its own; of others by shuffling columns of recent rows."""
    own = getattr(result.model, "relevance_", None)
    if own is not None and len(own) == len(names):
        return dict(zip(names, np.asarray(own).tolist(), strict=True))
    return None if result.details is None else result.details.relevance(result.model, names)


def _details(report: Report, result: Result, details: Details, name: str) -> None:
    if details.confusions:
        _confusions(report, details, name)
    if details.pairs:
        _predicted(report, details, name)
    if details.count.sum():
        _calibration(report, details, name)
    if details.intervals:
        held = details.covered / details.intervals
        report.heading(f"Intervals{name}").text(
            f"{COVERAGE:.0%} intervals contained {held:.1%} of {details.intervals:,} targets; "
            f"their mean width was {details.widths / details.intervals:.4g}."
        )
    if details.worst and not details.worst[0].truth:
        rows = [[f"{one.event:,}", f"{-one.loss:.4g}"] for one in details.worst]
        report.heading(f"Strongest alarms{name}").table(["event", "score"], rows)
        report.small("The alarms with the lowest scores.")
    elif details.worst:
        rows = [[f"{one.event:,}", one.truth, one.predicted, f"{one.loss:.4g}"] for one in details.worst]
        last = "absolute error" if result.task == "regression" else "score"
        report.heading(f"Worst errors{name}").table(["event", "true", "predicted", last], rows)
        if result.task != "regression":
            report.small("The wrong predictions with the largest scores.")


def _confusions(report: Report, details: Details, name: str) -> None:
    """True classes in rows, predicted ones in columns; the rarest classes together."""
    totals: dict[str, int] = {}
    for (truth, predicted), count in details.confusions.items():
        totals[truth] = totals.get(truth, 0) + count
        totals.setdefault(predicted, 0)
    kept = sorted(totals, key=lambda label: -totals[label])[:MOST_CLASSES]
    names = sorted(kept) + (["others"] if len(totals) > len(kept) else [])
    place = {label: names.index(label) if label in kept else len(names) - 1 for label in totals}
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    for (truth, predicted), count in details.confusions.items():
        counts[place[truth], place[predicted]] += count
    report.heading(f"Confusion matrix{name}").shaded("true \\ predicted", names, names, counts.tolist())


def _predicted(report: Report, details: Details, name: str) -> None:
    from .displays.runs import COLOURS, _tidy, pyplot

    truth, predicted = np.array(details.pairs).T
    figure, ax = pyplot().subplots(figsize=_SIZE, layout="constrained")
    ends = [truth.min(), truth.max()]
    ax.plot(ends, ends, color="0.6", linewidth=1.0, linestyle=":")
    ax.scatter(truth, predicted, s=8, alpha=0.5, color=COLOURS[0], linewidths=0)
    low, high = np.quantile(predicted, [0.002, 0.998])
    ax.set(xlabel="true", ylabel="predicted", ylim=(min(low, ends[0]), max(high, ends[1])))
    _tidy(ax)
    says = f"predicted against true targets, {len(truth):,} of the events; on the dotted line both are equal"
    report.heading(f"Predicted against true{name}").figure(figure, says)
    pyplot().close(figure)


def _calibration(report: Report, details: Details, name: str) -> None:
    rows = [
        [f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}", f"{count:,}", f"{sure / count:.3f}", f"{right / count:.3f}"]
        for place, (sure, right, count) in enumerate(zip(details.sure, details.right, details.count, strict=True))
        if count
    ]
    error = float(np.abs(details.sure - details.right).sum() / details.count.sum())
    heads = ["probability", "predictions", "mean probability", "share right"]
    report.heading(f"Calibration{name}").text(
        f"Calibration error {error:.3f}: the mean difference between the last two columns."
    )
    report.table(heads, rows)
