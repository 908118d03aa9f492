"""Progress of runs that take more than two seconds: in a notebook, or on a terminal by rich."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any

from .follower import Follower
from .result import Comparison

Tick = Callable[[int], None]


#: seconds that a run lasts before its progress is drawn
PATIENCE = 2.0


def wanted(progress: bool | None) -> bool:
    """The given choice, else whether output goes to a notebook, or to a terminal with rich installed."""
    if progress is not None:
        return progress
    if in_notebook():
        return True
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("rich") is not None


def in_notebook() -> bool:
    """Whether output goes to a notebook."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return type(found).__name__ == "ZMQInteractiveShell"


@contextmanager
def live(followers: list[Follower], total: int | None, title: str | Callable[[], str], show: bool) -> Iterator[Tick]:
    """Yields a function to call with the number of events done; draws a bar and the table so far. A title may change.

    Nothing is drawn in the first `PATIENCE` seconds, and what was drawn is removed at the end.
    """
    if not show:
        yield lambda done: None
        return
    began, drawn = perf_counter(), list[_Notebook | _Terminal]()

    def tick(done: int) -> None:
        if not drawn and perf_counter() - began >= PATIENCE:
            drawn.append(_Notebook() if in_notebook() else _Terminal(total))
        for display in drawn:
            comparison = Comparison([follower.refresh() for follower in followers]) if followers else None
            display.draw(title() if callable(title) else title, done, total, comparison)

    try:
        yield tick
    finally:
        for display in drawn:
            display.close()


class _Terminal:
    """A bar above the table, by rich, on standard error."""

    def __init__(self, total: int | None) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._task = self._bar.add_task("", total=total)
        self._live = Live(self._bar, console=Console(stderr=True), refresh_per_second=8, transient=True)
        self._live.start()

    def draw(self, title: str, done: int, total: int | None, comparison: Comparison | None) -> None:
        from rich.console import Group

        self._bar.update(self._task, completed=done, description=title)
        self._live.update(self._bar if comparison is None else Group(self._bar, rich_table(comparison)))

    def close(self) -> None:
        self._live.stop()


class _Notebook:
    """The same as HTML in the output of a cell, drawn at most four times a second."""

    def __init__(self) -> None:
        ipython = import_module("IPython.display")
        self._html, self._last = ipython.HTML, 0.0
        self._handle = ipython.display(self._html(""), display_id=True)

    def draw(self, title: str, done: int, total: int | None, comparison: Comparison | None) -> None:
        if perf_counter() - self._last < 0.25:
            return
        self._last = perf_counter()
        bar = "" if total is None else f'<progress value="{done}" max="{total}" style="width:20em"></progress> '
        count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        table = "" if comparison is None else comparison._repr_html_()
        self._handle.update(self._html(f"<div>{bar}{count} events of {html.escape(title)}</div>{table}"))

    def close(self) -> None:
        self._handle.update(self._html(""))


def rich_table(comparison: Comparison) -> Any:
    """The summaries as a table for the terminal."""
    from rich.table import Table

    heads, body = comparison.cells()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, head in enumerate(heads):
        table.add_column(head, justify="left" if column == 0 else "right")
    for row in body:
        table.add_row(*row)
    return table
