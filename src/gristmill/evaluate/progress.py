"""Progress by rich where there is a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .follower import Follower
from .result import Comparison

Tick = Callable[[int], None]


def wanted(progress: bool | None) -> bool:
    """An explicit wish, else whether standard error is a terminal and rich is there."""
    if progress is not None:
        return progress
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("rich") is not None


@contextmanager
def live(followers: list[Follower], total: int | None, title: str | Callable[[], str], show: bool) -> Iterator[Tick]:
    """Yields a function to call with the number of events done; draws a bar and the table so far. A title may change."""
    if not show:
        yield lambda done: None
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    task = bar.add_task(title() if callable(title) else title, total=total)

    def picture() -> Any:
        if not followers:
            return bar
        return Group(bar, rich_table(Comparison([follower.refresh() for follower in followers])))

    with Live(picture(), console=Console(stderr=True), refresh_per_second=8, transient=True) as display:

        def tick(done: int) -> None:
            bar.update(task, completed=done, description=title() if callable(title) else title)
            display.update(picture())

        yield tick


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
