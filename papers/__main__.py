"""`python -m papers NAME`: a figure or table of the papers, with our learners and a verdict on each claim."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from . import TARGETS, Outcome, run


class _Refused(click.ClickException):
    """A wish that cannot be met: the message is one line."""

    exit_code = 2


class _OneLine(click.Command):
    """Bad input, and a data set or library that is missing, are one line on standard error and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError) as error:
            raise _Refused(" ".join(str(error).split())) from error


@click.command(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False)
@click.option("--list", "listing", is_flag=True, help="Say which targets there are.")
@click.option("--quick", is_flag=True, help="Fewer events and repetitions: to see that it works.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of streams and learners.")
@click.option("--json", "as_json", is_flag=True, help="Claims and tables as one JSON object.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write a self-contained HTML report.")
@click.option("--pictures", type=click.Path(file_okay=False), help="Folder for the pictures, as PNG.")
def main(
    name: str | None,
    listing: bool,
    quick: bool,
    seed: int,
    as_json: bool,
    report: str | None,
    pictures: str | None,
) -> None:
    """Redraw a figure or table of the papers, and say whether its claim holds."""
    if listing or name is None:
        width = max(map(len, TARGETS)) + 2
        for target, (_, paper, what, data) in TARGETS.items():
            needs = f" (data: {', '.join(data)})" if data else ""
            click.echo(f"{target:{width}}{paper}: {what}{needs}")
        return
    outcome = run(name, quick, seed)
    if as_json:
        tables = [{"name": title, "heads": heads, "rows": rows} for title, heads, rows in outcome.tables]
        claims = [asdict(claim) for claim in outcome.claims]
        click.echo(json.dumps({"target": name, "claims": claims, "tables": tables, "missing": outcome.missing}))
    else:
        click.echo(outcome.text())
    if pictures:
        folder = Path(pictures)
        folder.mkdir(parents=True, exist_ok=True)
        for place, (figure, _) in enumerate(outcome.figures):
            path = folder / (f"{name}.png" if not place else f"{name}-{place + 1}.png")
            figure.savefig(path, dpi=110)
            click.echo(f"picture: {path}", err=True)
        for place, (animation, _) in enumerate(outcome.animations):
            path = folder / (f"{name}.gif" if not place else f"{name}-{place + 1}.gif")
            path.write_bytes(animation)
            click.echo(f"animation: {path}", err=True)
    if report:
        _report(outcome, report)
    from .drawing import pyplot

    for figure, _ in outcome.figures:
        pyplot().close(figure)


def _report(outcome: Outcome, path: str) -> None:
    from gristmill.evaluate.report import Report

    page = Report(outcome.title).text(outcome.setting)
    if outcome.missing:
        page.warning(f"Not in this version, and so left out: {', '.join(outcome.missing)}")
    verdicts = [[claim.verdict, claim.says, claim.paper, claim.ours] for claim in outcome.claims]
    page.heading("Claims").table(["", "claim", "paper", "ours"], verdicts)
    for figure, says in outcome.figures:
        page.figure(figure, says)
    for title, heads, rows in outcome.tables:
        page.heading(title).table(heads, rows)
    page.write(path)
    click.echo(f"report: {path}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m papers")
