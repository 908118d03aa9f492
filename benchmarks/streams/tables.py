"""Tables of the results, and what they say of ours beside the best peer."""

from __future__ import annotations

import math
from typing import Any

from ..measure import show
from .cases import ORDER, SOURCES
from .entry import Entry

Results = dict[str, dict[str, dict[str, Any]]]  #: stream, learner, record

WORDS = {"classification": "error", "regression": "mean absolute error", "novelty": "area under the ROC curve"}
CLOCK = {"classification": "River ARF(10)", "regression": "River ARF(10)", "novelty": "IsolationForest"}
WHAT = {
    "whole": "whole stream",
    "last": "last 1,000 events",
    "second half": "second half",
    "microseconds": "processor microseconds an event",
    "bytes": "kilobytes kept by ours, at most",
    "alarms": "share of alarms",
}
PLAIN = ("microseconds", "bytes", "alarms")  #: there is no best of these


def better(task: str, value: float, than: float) -> bool:
    return value > than if task == "novelty" else value < than


def number(record: dict[str, Any], key: str) -> float:
    """The value, or nan of a run that failed."""
    return float(record.get(key, math.nan))


def text(value: float, key: str, task: str) -> str:
    if math.isnan(value):
        return "-"
    if key == "bytes":
        return f"{value / 1000:,.0f}"
    if key == "microseconds":
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    if task == "regression":
        return f"{value:.4g}" if value < 10_000 else f"{value:,.0f}"
    return f"{value:.4f}".lstrip("0") if value < 1 else f"{value:.3f}"


def table(results: Results, entries: list[Entry], task: str, key: str) -> list[dict[str, str]]:
    """A row a learner, a column a stream; the best of a column has a star."""
    of_task = [entry for entry in entries if entry.task == task]
    rows = [{"learner": entry.name} for entry in of_task]
    for stream, records in results.items():
        values = {name: number(record, key) for name, record in records.items()}
        known = [value for value in values.values() if not math.isnan(value)]
        best = (max if task == "novelty" else min)(known) if known else math.nan
        for row in rows:
            value = values.get(row["learner"], math.nan)
            star = "*" if value == best and key not in PLAIN else ""
            row[stream] = text(value, key, task) + star
    return [row for row in rows if any(cell not in ("-", "") for name, cell in row.items() if name != "learner")]


def against(results: Results, entries: list[Entry], task: str) -> list[dict[str, Any]]:
    """Each of ours beside the best peer, and beside the best of trivial and linear ones; streams where both ran."""
    kinds = {entry.name: entry.kind for entry in entries if entry.task == task}
    worse = min if task == "novelty" else max
    rows = []
    for name in (name for name, kind in kinds.items() if kind == "ours"):
        peers = _ratios(results, kinds, name, task, ("peer", "linear"))
        simple = _ratios(results, kinds, name, task, ("trivial", "linear"))
        if not peers:
            continue
        row: dict[str, Any] = {"ours": name, "streams": len(peers)}
        row["better than the best peer"] = sum(better(task, ratio, 1.0) for ratio in peers.values())
        worst = worse(peers, key=lambda stream: peers[stream])
        row["worst ratio"] = f"{peers[worst]:.3f} ({worst})"
        if simple:
            row["worst to trivial, linear"] = f"{worse(simple.values()):.3f}"
        shares = _time_shares(results, name, CLOCK[task])
        if shares:
            row[f"largest share of {CLOCK[task]}'s time"] = f"{max(shares):.3f}"
        rows.append(row)
    return rows


def _time_shares(results: Results, name: str, clock: str) -> list[float]:
    both = [records for records in results.values() if name in records and clock in records]
    return [number(records[name], "microseconds") / number(records[clock], "microseconds") for records in both]


def ratios(results: Results, entries: list[Entry], beside: str) -> list[dict[str, str]]:
    """The second half's error of each of ours over that of one learner, a row a stream."""
    ours = dict.fromkeys(entry.name for entry in entries if entry.kind == "ours" and entry.name != beside)
    rows = []
    for stream, records in results.items():
        base = number(records.get(beside, {}), "second half")
        found = {name: number(records[name], "second half") / base for name in ours if name in records and base > 0}
        if found:
            rows.append({"stream": stream, **{name: f"{ratio:.3f}" for name, ratio in found.items()}})
    return rows


def name_of(stream: str) -> str:
    """The name of a stream without that of its order."""
    return stream.partition(ORDER)[0]


def over_orders(results: Results) -> Results:
    """The mean of every number over the orders of a stream; a run that failed in one order has failed."""
    whole: Results = {}
    for stream in dict.fromkeys(map(name_of, results)):
        parts = [records for other, records in results.items() if name_of(other) == stream]
        learners = [name for name in parts[0] if all(name in part for part in parts)]
        for name in learners:
            each = [part[name] for part in parts]
            keys = [key for key in WHAT if all(key in record for record in each)]
            means = {key: math.fsum(number(record, key) for record in each) / len(each) for key in keys}
            whole.setdefault(stream, {})[name] = means
    return whole


def spreads(results: Results) -> list[dict[str, str]]:
    """A row a stream of several orders: the largest less the least value of each learner."""
    rows = []
    for stream in dict.fromkeys(map(name_of, results)):
        parts = [records for other, records in results.items() if name_of(other) == stream]
        if len(parts) < 2:
            continue
        row = {"stream": stream}
        for name in parts[0]:
            values = [number(part.get(name, {}), "whole") for part in parts]
            row[name] = "-" if any(map(math.isnan, values)) else f"{max(values) - min(values):.4g}"
        rows.append(row)
    return rows


def _ratios(results: Results, kinds: dict[str, str], name: str, task: str, wanted: tuple[str, ...]) -> dict[str, float]:
    """Ours over the best of the wanted kinds, a stream each."""
    found = {}
    for stream, records in results.items():
        rivals = [number(record, "whole") for other, record in records.items() if kinds.get(other) in wanted]
        rivals = [value for value in rivals if not math.isnan(value)]
        own = number(records.get(name, {}), "whole")
        if rivals and not math.isnan(own):
            found[stream] = own / (max if task == "novelty" else min)(rivals)
    return found


def print_all(results: Results, entries: list[Entry], tasks: dict[str, str], keys: tuple[str, ...]) -> None:
    extra = [source.name for source in SOURCES.values() if source.extra]
    held_out = [source.name for source in SOURCES.values() if source.held_out]
    for task, word in WORDS.items():
        of_task = {stream: records for stream, records in results.items() if tasks[stream] == task}
        if not of_task:
            continue
        for key in keys:
            if key != "alarms" or task == "novelty":
                what = WHAT[key] if key in PLAIN else f"{word}, {WHAT[key]}"
                show(f"{task}: {what}", table(of_task, entries, task, key))
        counted = {stream: records for stream, records in of_task.items() if stream not in extra}
        show(
            f"{task}: ours over the best peer, whole stream, without {', '.join(extra)}",
            against(counted, entries, task),
        )
        apart = {stream: records for stream, records in of_task.items() if stream in held_out}
        if apart:
            title = f"{task}: ours over the best peer where nothing was chosen: {', '.join(apart)}"
            show(title, against(apart, entries, task))
