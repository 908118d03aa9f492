"""`python -m benchmarks.threads`: wall time with two threads beside one, the best of interleaved runs."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from gristmill import DropOldest, Gaussian, KernelClassifier

from .measure import machine

#: what is done -> events, columns, points; small ones must not be slower with two threads
SHAPES = {
    "prequential, 4,000 points x 123": (12_000, 123, 4000, "learn"),
    "prequential, 8,000 points x 784": (9_000, 784, 8000, "learn"),
    "predict, 4,000 points x 123": (8_000, 123, 4000, "predict"),
    "prequential, 100 points x 20": (20_000, 20, 100, "learn"),
    "predict, 100 points x 20": (20_000, 20, 100, "predict"),
    "predict one row, 100 points x 20": (1, 20, 100, "predict"),
}


def ready(events: int, width: int, points: int) -> tuple[Any, Any, Any]:
    """A model whose budget is full, and events that all teach it something."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(points + events, width))
    y = rng.integers(0, 2, size=len(X))
    model = KernelClassifier(Gaussian(0.5 / width), budget=DropOldest(points), random_state=0)
    return model.fit(X[:points], y[:points]), X[points:], y[points:]


def seconds(model: Any, X: Any, y: Any, verb: str, n_jobs: int) -> float:
    model.set_params(n_jobs=n_jobs)
    before = time.perf_counter()
    for _ in range(1 if len(X) > 1 else 200):
        model.prequential(X, y) if verb == "learn" else model.decision_function(X)
    return time.perf_counter() - before


@click.command()
@click.option("--repeats", default=5)
def main(repeats: int) -> None:
    """One thread and two in turn; the best wall time of each, and their ratio."""
    click.echo(machine())
    click.echo("| what | one thread, s | two, s | ratio |\n|---|---|---|---|")
    for what, (events, width, points, verb) in SHAPES.items():
        model, X, y = ready(events, width, points)
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for n_jobs in times:
                times[n_jobs].append(seconds(model, X, y, verb, n_jobs))
        one, two = min(times[1]), min(times[2])
        click.echo(f"| {what} | {one:.4g} | {two:.4g} | {one / two:.2f} |")


if __name__ == "__main__":
    main()
