"""Small tables as aligned text, and as HTML for notebooks and reports."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_NUMBER = re.compile(r"^(-|[-+]?[\d.,]+(e[-+]?\d+)?( ?%| k?M?B)?)$")
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit"
_CAPTION = "text-align:left;padding:.3em 0;color:inherit"
_CELL = "padding:.25em .9em .25em 0;border-bottom:1px solid rgba(128,128,128,.3);background:none;vertical-align:top;"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side, the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def are_numbers(column: Sequence[str]) -> bool:
    """Whether all cells of a column are numbers, or empty; those stand to the right."""
    return any(column) and all(not cell or _NUMBER.match(cell) for cell in column)


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table that brings its style and takes the colours of the page, so that it is readable in light and dark."""
    right = [are_numbers([row[column] for row in rows]) for column in range(len(heads))]

    def line(cells: Sequence[str], tag: str, more: str) -> str:
        inner = (
            f'<{tag} style="{_CELL}text-align:{"right" if to_right else "left"};{more}">{html.escape(cell)}</{tag}>'
            for cell, to_right in zip(cells, right, strict=True)
        )
        return f"<tr>{''.join(inner)}</tr>"

    above = f'<caption style="{_CAPTION}">{html.escape(caption)}</caption>' if caption else ""
    head = line(heads, "th", "font-weight:600;white-space:nowrap") if any(heads) else ""
    body = "".join(line(row, "td", "") for row in rows)
    table = f'<table style="{_TABLE}">{above}<thead>{head}</thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'
