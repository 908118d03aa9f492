"""`gristmill compare`: several learners along one stream."""

from __future__ import annotations

from typing import Any

import click

from . import options

_USUAL = (
    "perceptron",
    "KernelClassifier(rule=Perceptron(), budget=DropOldest(300))",
    "norma_classifier(rate=0.5, reg=0.001, window=1000)",
    "passive_aggressive(C=1.0, size=300)",
    "passive_aggressive(C=0.3, size=300)",
)


@click.command()
@options.reading
@click.option("--learner", "learners", multiple=True, help="May be repeated; a few usual ones otherwise.")
@options.running
@click.option("--warmup", default=0, show_default=True, type=click.IntRange(min=0), help="Events not scored.")
@click.option("--delay", type=click.IntRange(min=0), help="Labels come so many events late.")
def compare(**given: Any) -> None:
    """Run several learners along one stream, all in one pass of the data."""
    from ..evaluate.run import compare as run_all

    opened = options.OpenedSource(given)
    workshop = options.LearnerFactory(opened, given)
    texts = given["learners"] or _USUAL
    twice = next((text for place, text in enumerate(texts) if text in texts[:place]), None)
    if twice is not None:
        raise click.UsageError(f"--learner {twice!r} is given twice")
    models = {text: workshop.build(text) for text in texts}
    guarded = options.GuardedStream(opened.stream)
    try:
        comparison = run_all(
            models, guarded.stream, given["metrics"] or None, given["window"], given["delay"], warmup=given["warmup"]
        )
    except ValueError as error:
        raise guarded.error or error from None
    stopped = str(guarded.error or comparison[0].stopped)
    for result in comparison:
        result.stopped = stopped
    options.show(comparison, given["as_json"])
    options.finish_report(
        given["report"], comparison, f"gristmill compare {opened.stream.name}", workshop.about(),
        opened.stream.bayes_error,
    )  # fmt: skip
    opened.say_bad()
    options.end(guarded.error, stopped, comparison[0].n_events)
