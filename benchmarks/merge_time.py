"""`python -m benchmarks.merge_time`: what folding costs beside dropping, on a9a with 793 points."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from gristmill import DropOldest, Gaussian, KernelClassifier, Laplacian, Merge, PassiveAggressive

from .data import arrays
from .measure import machine, pin, show

SIZE = 793


def seconds(kernel: Any, budget: Any, X: Any, y: Any) -> tuple[float, Any]:
    """Processor seconds of one prequential pass, and the model after it."""
    model = KernelClassifier(kernel, PassiveAggressive(C=1.0), budget)
    began = time.thread_time()
    model.prequential(X, y)
    return time.thread_time() - began, model


def row(kernel: Any, X: Any, y: Any, repeats: int) -> dict[str, Any]:
    """Both budgets in turn, so that a busy machine disturbs them alike."""
    times: dict[str, list[float]] = {"DropOldest": [], "Merge": []}
    for _ in range(repeats):
        for name, budget in (("DropOldest", DropOldest(SIZE)), ("Merge", Merge(SIZE))):
            spent, model = seconds(kernel, budget, X, y)
            times[name].append(spent)
    dropping, folding = (min(values) for values in times.values())
    return {
        "kernel": repr(kernel),
        "DropOldest, s": dropping,
        "Merge, s": folding,
        "ratio": folding / dropping,
        "further rows an event": model._engine.extra_rows / len(y),
    }


@click.command()
@click.option("-r", "--repeats", default=7, show_default=True, type=click.IntRange(min=1))
def main(repeats: int) -> None:
    """PA-I with Merge and DropOldest in turn on one core, best of several; kernel rows beyond the newcomer's."""
    pin()
    X, y = arrays("a9a")
    X = np.ascontiguousarray(X)
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    kernels = (Gaussian(0.04), Laplacian(3 / X.shape[1]))
    show(f"a9a, {len(y):,} events, {SIZE} points, PA-I", [row(kernel, X, y, repeats) for kernel in kernels])


if __name__ == "__main__":
    main()
