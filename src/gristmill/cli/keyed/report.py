"""Output of `gristmill learn --key` about its keys: text, JSON and report."""

from __future__ import annotations

import json
from typing import Any

import click

from ..._common.types import Options
from .. import options

#: events that a key must have had to be among the worst
LEAST = 10
#: characters of a key in a table
_LONGEST = 40


def counted(count: int, thing: str) -> str:
    """A count with its noun, in the plural where needed."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def shown(key: str) -> str:
    """A key on one line, shortened."""
    text = " ".join(key.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def gone(fleet: Any) -> list[str]:
    """How often keys were dropped and expired in this run, one phrase each."""
    dropped, expired = _gone(fleet)
    losses = []
    if dropped:
        losses.append(f"a key was dropped {counted(dropped, 'time')} (--max-keys)")
    if expired:
        losses.append(f"a key expired {counted(expired, 'time')} (--ttl)")
    return losses


def _gone(fleet: Any) -> tuple[int, int]:
    len(fleet)  # counting keys removes the expired ones
    # Shards of a cluster drop nothing: what does not fit is on their disks.
    return int(getattr(fleet, "n_dropped_", 0)), int(getattr(fleet, "n_expired_", 0))


def as_json(result: Any, run: Any, worst: list[Any]) -> str:
    dropped, expired = _gone(run.fleet)
    plain = json.loads(result.to_json())
    plain |= {"keys": len(run.fleet), "dropped": dropped, "expired": expired}
    return json.dumps({**plain, "worst": [record.to_dict(run.measure) for record in worst]})


def cells(run: Any, worst: list[Any]) -> tuple[list[str], list[list[str]]]:
    """Headings, and a row of texts a key."""
    from ...evaluate.result import number

    measure = run.measure.replace("_", " ")
    if run.task == "novelty":
        body = [[shown(r.key), f"{r.events:,}", f"{r.alarms:,}", number(r.loss)] for r in worst]
        return ["key", "events", "alarms", measure], body
    return ["key", "events", measure], [[shown(r.key), f"{r.events:,}", number(r.loss)] for r in worst]


def heading(run: Any) -> str:
    """What the worst keys are called."""
    return "keys with the most alarms" if run.task == "novelty" else "worst keys"


def table(run: Any, worst: list[Any], given: Options) -> str:
    """How many keys there are, and the worst of them with their curves."""
    from ...evaluate.result import number

    known = "; ".join([counted(len(run.fleet), "key"), *gone(run.fleet)])
    if not worst:
        return f"{known}; none has had {LEAST} events" if given["worst"] else known
    most = max(max(record.curve) for record in worst)
    heads, body = cells(run, worst)
    widths = [max(len(row[place]) for row in [heads, *body]) for place in range(len(heads))]
    what = f"the {heading(run)} of those with at least {LEAST} events"
    lines = [f"{known}; {what}, each with its curve from 0 to {number(most)}:"]
    for row, record in zip([heads, *body], [None, *worst], strict=True):
        texts = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join([*texts, "over time" if record is None else record.sparkline(most)]))
    return "\n".join(lines)


def write(
    path: str, comparison: Any, title: str, about: dict[str, str], run: Any, worst: list[Any], given: Any
) -> None:
    """The report of a run with a section on keys before the details."""
    from ...evaluate.run_report import run_report

    def keys(report: Any) -> None:
        for loss in gone(run.fleet):
            report.warning(f"{loss[0].upper()}{loss[1:]}, and what it had learned was lost.")
        if given["worst"]:
            report.heading(heading(run).capitalize())
            _worst(report, run, worst)

    known = {"keys": f"{len(run.fleet):,}"}
    run_report(comparison, title, {"command": options.command(), **about, **known}, between=keys).write(path)
    click.echo(f"report: {path}", err=True)


def _worst(report: Any, run: Any, worst: list[object]) -> None:
    from ...evaluate.displays.runs import pyplot

    if not worst:
        report.text(f"No key has had {LEAST} events.")
        return
    measure = run.measure.replace("_", " ")
    figure = _curves(worst, measure)
    report.text(f"Of the keys with at least {LEAST} events.").table(*cells(run, worst))
    report.figure(figure, f"{measure} of these keys, each over its own events, from its first to its last")
    pyplot().close(figure)


def _curves(worst: list[Any], measure: str) -> Any:
    from ...evaluate.displays.runs import COLOURS, _legend_above, _tidy, pyplot

    figure, ax = pyplot().subplots(figsize=(7.0, 3.4), layout="constrained")
    styles = ("-", "--", ":", "-.")
    for place, record in enumerate(worst):
        # Each point is the mean over a part of the key's events, and stands in the middle of it.
        share = [(point + 0.5) / len(record.curve) for point in range(len(record.curve))]
        style = styles[place // len(COLOURS) % len(styles)]
        # A legend leaves out what begins with _, and takes what stands between $ for a formula.
        label = "\u200b" + shown(record.key).replace("$", r"\$")
        ax.plot(share, record.curve, style, marker=".", color=COLOURS[place % len(COLOURS)], label=label)
    ax.set(xlabel="share of the key's events", ylabel=measure, xlim=(0, 1))
    ax.set_ylim(bottom=0)
    _legend_above(ax)
    _tidy(ax)
    return figure
