"""A bar on a terminal, a line for each piece of work elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[int], None]
Begin = Callable[[str, int], Tick]


@contextmanager
def bar(pieces: int) -> Iterator[Begin]:
    """Yields a function that begins a piece of work (what, how many events) and gives the function that says how
    far it is. The bar is drawn only when told something: a thread of its own would cost processor time that is
    measured here.
    """
    if not sys.stderr.isatty():
        yield lines(pieces)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:42}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as shown:
        whole = shown.add_task("all", total=pieces)
        part = shown.add_task("")

        def begin(what: str, events: int) -> Tick:
            shown.reset(part, total=events, description=what)
            shown.refresh()

            def tick(done: int) -> None:
                shown.update(part, completed=done)
                if done >= events:
                    shown.advance(whole)
                shown.refresh()

            return tick

        yield begin


def lines(pieces: int) -> Begin:
    """The same for a file or a pipe."""
    count = 0

    def begin(what: str, events: int) -> Tick:
        nonlocal count
        count += 1
        print(f"[{count}/{pieces}] {what}", file=sys.stderr, flush=True)
        return lambda done: None

    return begin
