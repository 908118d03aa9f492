"""Messages on stderr: what was guessed, baselines, leader, warnings."""

from __future__ import annotations

from typing import Any

import click

_GUESSES = "gristmill.guesses"  #: lines on what was guessed, until they are printed
_TASKS = {"classification": "classes", "regression": "numbers", "novelty": "anomalies"}


def found_out(labels: Any, given: str) -> str:
    """The task, guessed from the first labels unless it is given; the guess is printed once they are learned."""
    from ..evaluate.baselines import guess_task

    if given != "auto":
        return given
    guess = guess_task(labels)
    other = {"classification": "regression", "regression": "classification", "novelty": ""}[guess.task]
    change = f" (--task {other} predicts {_TASKS[other]})" if other and labels.dtype.kind in "iuf" else ""
    note(f"predicting {_TASKS[guess.task]}: {guess.reason}{change or ' (--target names another column)'}")
    return guess.task


def note(line: str) -> None:
    """Keep a line on what was guessed."""
    lines = click.get_current_context().meta.setdefault(_GUESSES, [])
    if line not in lines:
        lines.append(line)


class TellLater:
    """Called after each chunk: prints what was guessed after the second one, or `tell_guesses` does at the end.

    A file with a bad row in its first block then ends in one line.
    """

    def __init__(self) -> None:
        self._chunks = 0

    def __call__(self) -> None:
        self._chunks += 1
        if self._chunks == 2:
            tell_guesses()


def tell_guesses() -> None:
    """Print what was guessed, once."""
    for line in click.get_current_context().meta.pop(_GUESSES, ()):
        click.echo(line, err=True)


def print_outcome(comparison: Any) -> None:
    """Print the baselines, a warning if the model is no better than them, and the leader."""
    tell_guesses()
    result, errors = comparison[0], comparison.baselines
    model = getattr(result.model, "model_", result.model)
    own = result.metrics.get("mae" if result.task == "regression" else "error")
    if errors:
        tell_baselines(comparison)
        best = min(errors, key=lambda what: errors[what])
        if own is not None and result.n_events >= 100 and own >= errors[best]:
            click.echo(
                f"warning: no better than {best!r}, a trivial prediction ({own:.4g} and {errors[best]:.4g})", err=True
            )
    if hasattr(model, "report"):
        report = model.report()
        if report.experts:
            click.echo(f"led by: {leader_of(report)}", err=True)
    elif getattr(result, "stored", 1) == 0 and result.n_events >= 100:
        click.echo("warning: no point is stored, so all predictions are the same", err=True)


def tell_baselines(comparison: Any) -> None:
    """Print the error of trivial predictions on the same events."""
    errors = comparison.baselines
    if errors:
        click.echo(f"baselines: {', '.join(f'{what} {wrong:.4g}' for what, wrong in errors.items())}", err=True)


def leader_of(report: Any) -> str:
    """One line on the leader of a race."""
    from ..notation import written

    return f"{written(report.leader.expert)} with {report.leader.weight:.0%} of the weight"
