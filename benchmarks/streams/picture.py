"""One picture: a row a stream, a mark a learner; left of the line is better than the best peer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .entry import Entry
from .tables import WORDS, Results, number

FARTHEST = 4.0  #: times the best peer's error; what is worse stands at the edge
MARKS = "osD^vP*Xph<>"
SHADES = {"ours": "autumn", "peer": "winter", "linear": "summer", "trivial": "gray"}


def draw(results: Results, entries: list[Entry], tasks: dict[str, str], path: Path) -> None:
    """A panel a task: errors over that of the best peer, for detectors the area under the curve itself."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = {task: [s for s in results if tasks[s] == task] for task in WORDS}
    panels = {task: streams for task, streams in panels.items() if streams}
    heights = [max(4.5, 0.32 * len(streams) + 1.4) for streams in panels.values()]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(9.5, sum(heights)), squeeze=False, height_ratios=heights, layout="constrained"
    )
    for axis, (task, streams) in zip(axes.flat, panels.items(), strict=True):
        _panel(axis, {stream: results[stream] for stream in streams}, entries, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axis: Any, results: Results, entries: list[Entry], task: str) -> None:
    shown = [entry for entry in entries if entry.task == task]
    base = {stream: _best_peer(records, shown, task) for stream, records in results.items()}
    for entry, (colour, mark) in zip(shown, _styles(shown), strict=True):
        points = []
        for row, (stream, records) in enumerate(results.items()):
            value = number(records.get(entry.name, {}), "whole")
            ratio = value if task == "novelty" else min(value / base[stream], FARTHEST)
            if math.isfinite(ratio):
                points.append((ratio, row))
        if points:
            size, layer = (46, 3) if entry.kind == "ours" else (26, 2)
            axis.scatter(*zip(*points, strict=True), color=colour, marker=mark, s=size, zorder=layer, label=entry.name)
    axis.set_yticks(range(len(results)), list(results), fontsize=8)
    axis.set_ylim(len(results) - 0.5, -0.5)
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    if task == "novelty":
        axis.set_xlabel(WORDS[task])
    else:
        axis.axvline(1.0, color="#555555", linewidth=0.8)
        ticks = [0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, FARTHEST]
        axis.set_xscale("log")
        axis.set_xticks(ticks, [*(f"{tick:g}" for tick in ticks[:-1]), f"{FARTHEST:g} or more"])
        axis.set_xticks([], minor=True)
        axis.set_xlabel(f"{WORDS[task]} over that of the best peer")
    axis.set_title(task, loc="left", fontsize=10)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7, frameon=False)


def _best_peer(records: dict[str, dict[str, Any]], entries: list[Entry], task: str) -> float:
    """Without a peer in the table the best of all is the measure."""
    found = {entry.name: number(records.get(entry.name, {}), "whole") for entry in entries}
    peers = [found[entry.name] for entry in entries if entry.kind in ("peer", "linear")]
    known = [value for value in peers if math.isfinite(value)] or [v for v in found.values() if math.isfinite(v)]
    return max(min(known, default=1.0), 1e-12)


def _styles(entries: list[Entry]) -> list[tuple[Any, str]]:
    """Warm colours for ours, cold ones for peers, grey for the trivial ones."""
    from matplotlib import colormaps

    counts = {kind: sum(entry.kind == kind for entry in entries) for kind in SHADES}
    met = dict.fromkeys(SHADES, 0)
    styles = []
    for entry in entries:
        place = met[entry.kind]
        met[entry.kind] += 1
        shade = colormaps[SHADES[entry.kind]](0.15 + 0.6 * place / max(counts[entry.kind] - 1, 1))
        styles.append((shade, MARKS[place % len(MARKS)]))
    return styles
