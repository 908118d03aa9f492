"""A report in one HTML file: tables and pictures inside it, no network, no script."""

from __future__ import annotations

import base64
import html
import io
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._version import __version__
from ..persist import write
from . import drift

_NUMBER = re.compile(r"^(-|-?[\d.,]+( ?%| k?M?B)?)$")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 2.5rem auto; max-width: 62rem;
       padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.8rem 0; }
th, td { padding: 0.25rem 1.2rem 0.25rem 0; text-align: left; border-bottom: 1px solid #e4e4e4; }
th { font-weight: 600; border-bottom: 1px solid #999; white-space: nowrap; } .number { text-align: right; }
td:first-child:not(.number) { min-width: 6.5rem; } td { vertical-align: top; }
img { max-width: 100%; height: auto; } .small { color: #666; font-size: 0.85rem; }
.warn { background: #fff4e0; border-left: 4px solid #e69f00; padding: 0.5rem 0.9rem; }
code, pre { background: #f5f5f5; padding: 0.1rem 0.3rem; } pre { padding: 0.6rem 0.9rem; overflow-x: auto; }
"""


@dataclass
class Report:
    """Collects parts in order and writes them to one file.

    Examples
    --------
    >>> from gristmill.evaluate.report import Report
    >>> page = Report("A run").table(["learner", "error"], [["perceptron", "0.02"]]).html()
    >>> "<td>perceptron</td>" in page
    True
    """

    title: str
    _parts: list[str] = field(default_factory=list)

    def text(self, words: str) -> Report:
        """A paragraph."""
        self._parts.append(f"<p>{html.escape(words)}</p>")
        return self

    def heading(self, words: str) -> Report:
        self._parts.append(f"<h2>{html.escape(words)}</h2>")
        return self

    def warning(self, words: str) -> Report:
        """Something that the reader must not miss."""
        self._parts.append(f'<p class="warn">{html.escape(words)}</p>')
        return self

    def code(self, words: str) -> Report:
        self._parts.append(f"<pre>{html.escape(words)}</pre>")
        return self

    def table(self, heads: list[str], rows: list[list[Any]]) -> Report:
        """A table; numbers to the right, names to the left."""
        columns = range(len(heads))
        kinds = [' class="number"' if all(_NUMBER.match(str(row[c])) for row in rows) else "" for c in columns]

        def line(cells: list[Any], tag: str) -> str:
            inner = (f"<{tag}{kinds[c]}>{html.escape(str(cells[c]))}</{tag}>" for c in columns)
            return f"<tr>{''.join(inner)}</tr>"

        head, body = line(heads, "th"), "".join(line(row, "td") for row in rows)
        self._parts.append(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>")
        return self

    def figure(self, figure: Any, says: str) -> Report:
        """A matplotlib figure embedded in the page; `says` is its alternative text."""
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=110)
        data = base64.b64encode(image.getvalue()).decode()
        self._parts.append(f'<p><img alt="{html.escape(says)}" src="data:image/png;base64,{data}"></p>')
        self._parts.append(f'<p class="small">{html.escape(says)}</p>')
        return self

    def html(self) -> str:
        """The page."""
        made = f"gristmill {__version__}, Python {platform.python_version()}, {platform.machine()}"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(self.title)}</title>"
            f"<style>{_STYLE}</style></head><body><h1>{html.escape(self.title)}</h1>"
            f'<p class="small">{html.escape(made)}</p>' + "\n".join(self._parts) + "</body></html>\n"
        )

    def write(self, path: Any) -> None:
        """Write the page to a file, all or nothing: a failure leaves what was there before."""
        write(Path(path), self.html().encode())


def run_report(
    comparison: Any,
    title: str,
    about: dict[str, str],
    bayes_error: float | None = None,
    between: Callable[[Report], None] | None = None,
) -> Report:
    """The usual report of a run: what was run, the table, the curves, stored points over time.

    `between` adds what belongs between the curves and what only some readers want.
    """
    from .displays.runs import PrequentialDisplay, pyplot

    plt = pyplot()
    report = Report(title).table(["", ""], [[key, value] for key, value in about.items()])
    for result in comparison:
        if result.stopped:
            report.warning(f"Stopped after {result.n_events:,} events: {result.stopped}")
            break
    report.heading("In the end").table(*comparison.cells())
    for metric in comparison[0].metrics:
        display = PrequentialDisplay.from_results(comparison, metric, bayes_error).plot()
        says = f"{metric.replace('_', ' ')} over the stream, each event predicted before it was learned"
        report.heading(metric.replace("_", " ").capitalize()).figure(display.figure_, says)
        plt.close(display.figure_)
    if between is not None:
        between(report)
    _drifts(report, comparison)
    _columns(report, comparison)
    figure, ax = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
    draw_stored(ax, comparison)
    report.heading("Stored points").figure(figure, "stored points over the stream")
    plt.close(figure)
    return report


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


def _drifts(report: Report, comparison: Any) -> None:
    """Where the error of each model changed."""
    rows = [[result.name, drift.describe(mark, result.task)] for result in comparison for mark in result.drifts[:50]]
    if rows:
        report.heading("Where the error changed").table(["learner", "by ADWIN over what each event cost"], rows)


def _columns(report: Report, comparison: Any) -> None:
    """Relevance of the columns, for each model that has it."""
    from .displays.relevance import RelevanceDisplay
    from .displays.runs import pyplot

    for result in comparison:
        if not hasattr(result.model, "relevance_"):
            continue
        display = RelevanceDisplay.from_estimator(result.model).plot()
        says = f"{result.name}: how much each column moves the answer"
        report.heading("Which columns matter").figure(display.figure_, says)
        pyplot().close(display.figure_)
