"""One picture: error against time, a panel a stream, ours in colour before the peers."""

from __future__ import annotations

import math
from pathlib import Path

from .entry import Entry
from .tables import Results, number

COLOURS = {"ours": "#b3541e", "peer": "#4a6c8c", "linear": "#7f9f7f", "trivial": "#999999"}


def draw(results: Results, entries: list[Entry], tasks: dict[str, str], path: Path) -> None:
    """Left is faster, down is better (for detectors: up); both matter, so both are shown."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    across = min(5, len(results))
    down = math.ceil(len(results) / across)
    figure, axes = plt.subplots(down, across, figsize=(3.1 * across, 2.6 * down), squeeze=False)
    for axis in axes.flat[len(results) :]:
        axis.set_axis_off()
    for axis, (stream, records) in zip(axes.flat, results.items(), strict=False):
        _panel(axis, stream, records, entries, tasks[stream])
    handles = [
        plt.Line2D([], [], marker="o", linestyle="", color=colour, label=kind) for kind, colour in COLOURS.items()
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False)
    figure.supxlabel("processor microseconds an event", y=0.045)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axis: object, stream: str, records: dict[str, dict[str, float]], entries: list[Entry], task: str) -> None:
    values = []
    for entry in entries:
        record = records.get(entry.name, {})
        x, y = number(record, "microseconds"), number(record, "whole")
        if entry.task == task and math.isfinite(x) and math.isfinite(y):
            values.append(y)
            axis.scatter(x, y, color=COLOURS[entry.kind], s=22, zorder=3 if entry.kind == "ours" else 2)
            axis.annotate(_short(entry.name), (x, y), xytext=(3, 2), textcoords="offset points", fontsize=5)
    axis.set_xscale("log")
    axis.set_title(stream, fontsize=8)
    axis.tick_params(labelsize=6)
    if task != "novelty" and values:  # one that diverged would hide all others
        axis.set_ylim(0.8 * min(values), 1.2 * min(max(values), 5 * min(values)))


def _short(name: str) -> str:
    return name.removeprefix("River ").removeprefix("sklearn ")
