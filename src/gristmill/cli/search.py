"""`gristmill search`: parameters chosen on the stream itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from .._common.types import Options
from . import messages, options


@click.command()
@options.reading
@click.option(
    "--learner",
    help="Learner with names in braces: 'passive_aggressive(C={C}, size=300)'. Default: the experts of 'auto'.",
)
@click.option("--grid", "grids", multiple=True, metavar="NAME=V1,V2,...", help="Values of a name. May be repeated.")
@options.guessing
@click.option("--first", type=click.IntRange(min=1), help="Events before the first candidates are dropped.")
@click.option("--jobs", default=-1, show_default=True, type=int, help="Number of processes; -1 is all cores.")
@options.running
@click.option("--model", "model_path", type=click.Path(dir_okay=False), help="Save the best model to this file.")
@click.option("--keep", is_flag=True, help="Save the best model even if a bad row ends the search.")
def search(**given: Any) -> None:
    """Compare combinations of parameters on one stream; the worst are dropped early."""
    from ..evaluate.search import tried, without_settings

    if bool(given["learner"]) != bool(given["grids"]):
        raise click.UsageError("--learner and --grid go together; without both the experts of auto are tried")
    grid = dict(_parse(text) for text in given["grids"])
    missing = [name for name in grid if f"{{{name}}}" not in given["learner"]]
    if missing:
        raise click.UsageError(f"--learner has no {{{missing[0]}}} to put the values of --grid {missing[0]} into")
    opened = options.OpenedSource(given)
    workshop = options.LearnerFactory(opened, given)
    metric = given["metrics"][0] if given["metrics"] else None

    def build(**values: str) -> Any:
        text = given["learner"]
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return workshop.build(text)

    candidates: Any = grid
    source = opened.stream
    if not given["learner"]:
        source, plain, candidates = without_settings(source, workshop.task, given["memory"])
        build = _prepared(plain)
    how = {"first": given["first"], "window": given["window"], "n_jobs": given["jobs"]}
    found = tried(build, candidates, source, metric, **how)
    _finish(given, opened, found, workshop.about())


def _prepared(plain: Any) -> Any:
    """The same learners, in a model that knows its columns; a race scales for itself."""
    from ..prepared.prepared import Prepared

    return lambda **values: Prepared(plain(**values), None)


def _finish(given: Options, opened: Any, found: Any, about: dict[str, str]) -> None:
    if found.error is None:
        messages.tell_guesses()
    _show(given, found)
    if given["model_path"] and (found.error is None or given["keep"]):
        opened.settle(found.best_model)
        options.save(found.best_model, given["model_path"], found.results[0].n_events)
    if given["report"]:
        _report(given["report"], found, about, given["learner"] or "auto")
    opened.print_bad_rows()
    options.end(found.error, found.stopped, found.results[0].n_events)


def _parse(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not name.isidentifier() or not found:
        raise click.UsageError(f"--grid {text!r}: write NAME=V1,V2,...")
    return name, found


def _show(given: Mapping[str, object], found: Any) -> None:
    if given["as_json"]:
        for row in found.rows():
            click.echo(json.dumps(row))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:  # a pipe has no width: long names are not folded
        click.echo(found.table())
        return
    heads, body = found.cells()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        is_text = place < len(heads) - 3  # parameters come before events, metric and points
        table.add_column(head, justify="left" if is_text else "right", overflow="fold")
    for row in body:
        table.add_row(*row)
    console.print(table)


def _report(path: object, found: Any, about: dict[str, str], learner: str) -> None:
    from ..evaluate.displays.runs import COLOURS
    from ..evaluate.result import Comparison
    from ..evaluate.run_report import run_report

    about = {
        "command": options.command(),
        "learner": learner,
        **about,
        "dropped after": ", ".join(f"{rung:,}" for rung in found.rungs) or "never",
    }
    report = run_report(Comparison(found.results[: len(COLOURS)]), "gristmill search", about)
    report.heading("All candidates, best first").table(*found.cells()).write(path)
    click.echo(f"report: {path}", err=True)
