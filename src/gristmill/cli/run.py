"""`gristmill run`, the demonstration: a few learners on one drifting stream, in bounded memory."""

from __future__ import annotations

import click


def line_up(seed: int) -> dict[str, object]:
    """The learners of the demonstration; the first keeps every point, the others have a limit."""
    from ..budgets import DropOldest, Unbounded
    from ..catalogue import norma_classifier, passive_aggressive
    from ..kernels import Gaussian
    from ..learners.kernel import KernelClassifier
    from ..race.auto import AutoClassifier
    from ..rules import PassiveAggressive, Perceptron

    kernel = Gaussian(gamma=0.0015)
    return {
        "PA-I, every point kept": KernelClassifier(kernel, PassiveAggressive(), Unbounded()),
        "PA-I, 1000 points merged": passive_aggressive(kernel, size=1000),
        "AutoClassifier, 1 MB": AutoClassifier(memory="1 MB", random_state=seed),
        "NORMA, last 1000 steps": norma_classifier(kernel, rate=0.5, reg=0.001, window=1000),
        "Perceptron, 300 newest": KernelClassifier(kernel, Perceptron(), DropOldest(300)),
    }


@click.command()
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(min=1), help="Length of the stream.")
@click.option("--window", default=1000, show_default=True, type=click.IntRange(min=1), help="Events in a rolling mean.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Random seed of the stream and the learners.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line per learner instead of a table.")
@click.option("--report", type=click.Path(dir_okay=False), help="Write a self-contained HTML report.")
def run(events: int, window: int, seed: int, as_json: bool, report: str | None) -> None:
    """Compare a few learners on a drifting stream of handwritten digits.

    The first learner keeps every support vector, so its memory and its time per event grow with the stream. The others have
    a limit: the second has nearly the same error with 1,000 support vectors, and the third needs no settings.

    Each event is predicted, scored, then learned. In the course of the stream the frequencies of the classes change and
    the digits turn by 90 degrees, so the first digits do not help to recognise the last ones.
    """
    from ..evaluate.progress import rich_table
    from ..evaluate.run import compare
    from ..streams import drifting_digits
    from .options import check_places, finish_report

    check_places({"report": report})
    comparison = compare(line_up(seed), drifting_digits(events, random_state=seed), window=window)
    about = {"stream": f"{events:,} digits under a turning camera", "kernel": "Gaussian(gamma=0.0015)"}
    finish_report(report, comparison, "gristmill run", about)
    if as_json:
        for result in comparison:
            click.echo(result.to_json())
        return
    from rich.console import Console

    console = Console()
    console.print(f"{events:,} digits under a turning camera, each predicted before it was learned.")
    console.print(f"error: over all events, and over the last {window:,}; memory: all that the model keeps.\n")
    console.print(rich_table(comparison))
    kept, merged = comparison[0], comparison[1]
    share = f"{merged.bytes / kept.bytes:.0%} of that memory"
    errors = f"its error is {merged.metrics['error']:.4f} in place of {kept.metrics['error']:.4f}"
    console.print(f"\nWith every point kept, memory grows: {kept.stored:,} points so far.")
    console.print(f"Merged into {merged.stored:,} points, the same rule takes {share}; {errors}.")
