"""`gristmill compare`: several learners along one stream."""

from __future__ import annotations

from typing import Any

import click

from . import messages, options

#: the learners that are compared without --learner, by task
_USUAL = {
    "classification": (
        "auto",
        "perceptron",
        "KernelClassifier(rule=Perceptron(), budget=DropOldest(300))",
        "norma_classifier(rate=0.5, reg=0.001, window=1000)",
        "passive_aggressive(C=1.0, size=300)",
    ),
    "regression": (
        "auto",
        "KernelRegressor(budget=Merge(300))",
        "norma_regressor(rate=0.2, reg=0.001, size=300)",
        "passive_aggressive_regressor(epsilon=0.1, size=300)",
    ),
    "novelty": ("auto", "KernelNovelty()", "norma_novelty(nu=0.05, rate=0.2, schedule='inv_sqrt', size=300)"),
}


@click.command()
@options.reading
@click.option("--learner", "learners", multiple=True, help="A learner. May be repeated. Default: a few for the task.")
@options.guessing
@options.running
@options.scoring
def compare(**given: Any) -> None:
    """Run several learners on one stream, all in one pass of the data."""
    from ..evaluate.run import Run, followers_of

    opened = options.OpenedSource(given)
    workshop = options.LearnerFactory(opened, given)
    texts = given["learners"] or _USUAL[workshop.task]
    twice = next((text for place, text in enumerate(texts) if text in texts[:place]), None)
    if twice is not None:
        raise click.UsageError(f"--learner {twice!r} is given twice")
    models = {text: workshop.build(text) for text in texts}
    followers = followers_of(
        models, opened.stream, given["metrics"] or None, given["window"], given["warmup"], given["delay"],
        details=bool(given["report"]),
    )  # fmt: skip
    run = Run(followers, opened.stream, after_chunk=messages.TellLater(), baselines=True)
    comparison = run.go()
    if run.error is None:
        messages.tell_guesses()
    options.show(comparison, given["as_json"])
    if run.error is None:  # a bad row is one line
        messages.tell_baselines(comparison)
    options.finish_report(
        given["report"], comparison, f"gristmill compare {opened.stream.name}", workshop.about(),
        opened.stream.bayes_error,
    )  # fmt: skip
    opened.print_bad_rows()
    options.end(run.error, comparison[0].stopped, comparison[0].n_events)
