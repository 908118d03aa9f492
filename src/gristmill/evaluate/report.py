"""A report in one HTML file: tables and pictures inside it, no network, no script."""

from __future__ import annotations

import base64
import html
import io
import platform
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from .._common.tables import are_numbers
from .._version import __version__
from ..persist import write

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #666; --line: #e2e2e2; --paper: #fff; --warn: #fff4e0;
  --code: #f4f4f4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --soft: #a0a0a0; --line: #3a3a3a; --paper: #161616; --warn: #3a2f14; --code: #242424; }
  img { filter: invert(0.91) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; max-width: 60rem;
       padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 0.3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 0.4rem; }
.scroll { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; overflow-wrap: normal; }
th, td { padding: 0.28rem 1rem 0.28rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; border-bottom-color: var(--soft); white-space: nowrap; }
.number { text-align: right; white-space: nowrap; } td:first-child:not(.number) { min-width: 6.5rem; max-width: 22rem; }
img { max-width: 100%; height: auto; } .small { color: var(--soft); font-size: 0.85rem; margin: 0.3rem 0; }
.warn { background: var(--warn); border-left: 4px solid #e69f00; padding: 0.5rem 0.9rem; }
code, pre { background: var(--code); padding: 0.1rem 0.3rem; font-size: 0.88rem; }
pre { padding: 0.6rem 0.9rem; overflow-x: auto; white-space: pre-wrap; }
@media (max-width: 40rem) { th, td { padding-right: 0.7rem; } td:first-child:not(.number) { min-width: 5rem; } }
.shade { text-align: right; padding: 0.28rem 0.6rem; }
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
        """A warning."""
        self._parts.append(f'<p class="warn">{html.escape(words)}</p>')
        return self

    def small(self, words: str) -> Report:
        """A remark in small letters."""
        self._parts.append(f'<p class="small">{html.escape(words)}</p>')
        return self

    def code(self, words: str) -> Report:
        self._parts.append(f"<pre>{html.escape(words)}</pre>")
        return self

    def table(self, heads: list[str], rows: list[list[Any]]) -> Report:
        """A table; numbers to the right, names to the left."""
        texts = [[str(cell) for cell in row] for row in rows]
        kinds = [' class="number"' if are_numbers([row[c] for row in texts]) else "" for c in range(len(heads))]

        def line(cells: list[str], tag: str) -> str:
            inner = (f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
            return f"<tr>{''.join(inner)}</tr>"

        head = line(heads, "th") if any(heads) else ""
        return self._table(head, "".join(line(row, "td") for row in texts))

    def shaded(self, corner: str, heads: list[str], names: list[str], counts: list[list[int]]) -> Report:
        """A table of counts in which a darker cell is a larger share of its row."""
        top = "".join(f'<th class="shade">{html.escape(head)}</th>' for head in [*heads, "events"])
        body = ""
        for name, row in zip(names, counts, strict=True):
            total = sum(row)
            cells = (
                f'<td class="shade" style="background:rgba(0,114,178,{0.75 * count / max(total, 1):.2f})">{count:,}</td>'
                for count in row
            )
            body += f'<tr><td>{html.escape(name)}</td>{"".join(cells)}<td class="shade">{total:,}</td></tr>'
        return self._table(f"<tr><th>{html.escape(corner)}</th>{top}</tr>", body)

    def _table(self, head: str, body: str) -> Report:
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        self._parts.append(f'<div class="scroll">{table}</div>')
        return self

    def figure(self, figure: Any, says: str) -> Report:
        """A matplotlib figure embedded in the page; `says` is its alternative text."""
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=144)
        data = base64.b64encode(image.getvalue()).decode()
        self._parts.append(f'<p><img alt="{html.escape(says)}" src="data:image/png;base64,{data}"></p>')
        return self.small(says)

    def html(self) -> str:
        """The page."""
        now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
        made = f"{now}, gristmill {__version__}, Python {platform.python_version()}, {platform.machine()}"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title>"
            f"<style>{_STYLE}</style></head><body><h1>{html.escape(self.title)}</h1>"
            f'<p class="small">{html.escape(made)}</p>' + "\n".join(self._parts) + "</body></html>\n"
        )

    def write(self, path: Any) -> None:
        """Write the page to a file atomically."""
        write(Path(path), self.html().encode())
