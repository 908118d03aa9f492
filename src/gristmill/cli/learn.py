"""`gristmill learn`: one learner along one stream, and the model kept."""

from __future__ import annotations

from typing import Any

import click

from .._common.types import Options
from . import live, messages, options
from .keyed import options as keyed_options


@click.command()
@options.reading
@click.argument("more", nargs=-1)
@click.option(
    "--learner",
    default="auto",
    show_default=True,
    help="Learner. auto: several learners without settings, mixed; `gristmill learners` lists others.",
)
@options.guessing
@options.running
@click.option("--model", "model_path", type=click.Path(dir_okay=False), help="Save the model to this file.")
@click.option("--resume", type=click.Path(exists=True, dir_okay=False), help="Continue training a saved model.")
@options.scoring
@click.option("--keep", is_flag=True, help="Save the model even if a bad row ends the run.")
@keyed_options.all_of_them
@live.saving
def learn(**given: Any) -> None:
    """Learn from a file, a pipe or a named stream; each event is predicted before it is learned.

    DATA is a file (CSV, LIBSVM, JSON lines, Parquet, Arrow; compressed or not), - for standard input, the name of
    a data set of the data home (a9a, usps, ...) or of a generator (sea, drifting_digits, ...). With --key there may be MORE
    files with the same columns.

    DATA may be a broker: kafka://host:9092/topic?group=g, redis://host:6379/0/stream, mqtt://host/plant/+/pump. Then --model
    is saved continually, together with the position in the stream, and the same command continues from there.
    """
    from .. import persist
    from ..evaluate.run import Run, followers_of
    from ..streams.brokers import is_broker

    if is_broker(given["data"]):
        live.learn(given)
        return
    live.refuse_without_broker(given)
    if given["proba"] or given["interval"]:
        raise click.UsageError("--proba and --interval need --to and a broker; for files use `gristmill predict`")
    model = None
    if given["resume"]:
        _refuse_with_resume(
            "learner", "task", "memory", "target", "kernel", "scale", "kinds", "drop", "missing",
            "max_keys", "ttl", "spill", "prior",
        )  # fmt: skip
        model = persist.load(given["resume"])
    if given["key"] or hasattr(model, "keys_"):
        from .keyed import commands as keyed

        keyed.learn(given, model)
        return
    keyed_options.refuse_without_key(given)
    opened = options.OpenedSource(given, model)
    about: dict[str, str] = {"stream": opened.stream.name}
    if model is None:
        name = given["learner"]
        workshop = options.LearnerFactory(opened, given)
        model = workshop.build(name)
        about = workshop.about()
    else:
        name = f"{type(getattr(model, 'model', model)).__name__} of {given['resume']}"
    followers = followers_of(
        {name: model}, opened.stream, given["metrics"] or None, given["window"], given["warmup"], given["delay"],
        details=bool(given["report"]),
    )  # fmt: skip
    run = Run(followers, opened.stream, after_chunk=messages.TellLater(), baselines=True)
    _finish(given, opened, run.go(), {"learner": repr(model), **about}, run.error)


def _refuse_with_resume(*names: str) -> None:
    """Refuse options that the saved model has fixed already."""
    for name in names:
        if options.is_given(name):
            option = "column" if name == "kinds" else name.replace("_", "-")
            raise click.UsageError(f"--{option} is fixed by the model of --resume; omit it, or start without --resume")


def _finish(given: Options, opened: Any, comparison: Any, about: dict[str, str], error: Exception | None) -> None:
    result = comparison[0]
    model = result.model
    if error is None:
        messages.tell_guesses()
    opened.settle(model)
    if given["model_path"] and (error is None or given["keep"]):
        options.save(model, given["model_path"], result.n_events)
    options.log_drifts(comparison)
    options.show(comparison, given["as_json"])
    if error is None:  # a bad row is one line
        messages.print_outcome(comparison)
    options.finish_report(given["report"], comparison, f"gristmill learn {opened.stream.name}", about)
    opened.print_bad_rows()
    options.end(error, result.stopped, result.n_events)
