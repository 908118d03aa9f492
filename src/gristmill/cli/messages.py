"""Messages of `gristmill learn` on stderr: detected task, baselines, leader, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

_LINE = "gristmill.target"  #: the detected task, until it is printed


def found_out(labels: Any, said: str) -> str:
    """Detect the task from the first labels unless it is given; print it once they are learned."""
    from ..evaluate.baselines import task_of_target

    task = task_of_target(labels) if said == "auto" else said
    if said == "auto":
        kinds = {
            "classification": "a class",
            "regression": "a number",
            "novelty": "missing: strange events are looked for",
        }
        click.get_current_context().meta[_LINE] = f"the target is {kinds[task]} (--task says otherwise)"
    return task


def watched(stream: Any, task: str | None) -> tuple[Any, Any]:
    """The stream, and what trivial answers would have made of it once it has gone by."""
    from ..evaluate.baselines import Baselines

    baselines = Baselines(task or "")

    def chunks() -> Any:
        for chunk in stream:
            yield chunk
            baselines.update(chunk.y)  # after learning, so that an error in the data is reported first

    return replace(stream, chunks=chunks), baselines


def tell(result: Any, baselines: Any) -> None:
    """Print the detected task, the baselines, a warning if the model is no better than them, and the leader."""
    if line := click.get_current_context().meta.get(_LINE):
        click.echo(line, err=True)
    model = getattr(result.model, "model_", result.model)
    errors = baselines.errors
    name = "mae" if baselines.task == "regression" else "error"
    own = result.metrics.get(name)
    if errors and baselines.events:
        click.echo(f"baselines: {', '.join(f'{what} {wrong:.4g}' for what, wrong in errors.items())}", err=True)
        best = min(errors, key=lambda what: errors[what])
        if own is not None and baselines.events >= 100 and own >= errors[best]:
            click.echo(
                f"warning: no better than {best!r}, which costs nothing ({own:.4g} and {errors[best]:.4g})", err=True
            )
    if hasattr(model, "report"):
        told = model.report()
        if told.experts:
            click.echo(f"led by: {leader_of(told)}", err=True)
    elif getattr(result, "stored", 1) == 0 and result.n_events >= 100:
        click.echo("warning: nothing is stored, so that every answer is the same", err=True)


def leader_of(report: Any) -> str:
    """One line on the leader of a race."""
    from ..notation import written

    return f"{written(report.leader.expert)} with {report.leader.weight:.0%} of the weight"
