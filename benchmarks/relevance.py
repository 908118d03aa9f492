"""`python -m benchmarks.relevance`: columns weighed by relevance, beside the same learner without: time, slopes, errors."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from gristmill import (
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Prepared,
    passive_aggressive,
    passive_aggressive_regressor,
)
from gristmill.streams import relevance

from .measure import best, machine, pin, show
from .relevance_cases import DRIFTING, HELD_OUT, OTHERS
from .streams.cases import SOURCES, Case, Source

SIZE = 1000


@click.group()
def main() -> None:
    """What weights by relevance cost and what they are worth."""
    pin()
    print("  ".join(f"{key} {value}" for key, value in machine().items()))


# ---- time ------------------------------------------------------------------------------------------------------------


def noisy_classes(events: int, columns: int, classes: int) -> tuple[Any, Any]:
    """Classes by which of a few directions an event leans to most; a fifth are something else, so points keep coming."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(events, columns))
    y = (X[:, : columns // 2] @ rng.normal(size=(columns // 2, max(classes, 2)))).argmax(axis=1)
    other = rng.uniform(size=events) < 0.2
    y[other] = rng.integers(max(classes, 2), size=other.sum())
    return X, y


def seconds(model: Any, X: Any, y: Any) -> float:
    began = time.thread_time()
    model.prequential(X, y)
    return time.thread_time() - began


@main.command("time")
@click.option("-n", "--events", default=20_000, show_default=True)
@click.option("-r", "--repeats", default=5, show_default=True)
def times(events: int, repeats: int) -> None:
    """Seconds over a stream at 1,000 points; with and without in turn, the least of each."""
    rows = []
    for outputs in (1, 10):
        for columns in (20, 100):
            X, y = noisy_classes(events, columns, outputs)
            for kernel in (Laplacian(3 / columns), Gaussian(2 / columns)):
                spent: dict[str, list[float]] = {"standard": [], "relevance": []}
                for _ in range(repeats):
                    for scale, found in spent.items():
                        model = Prepared(KernelClassifier(kernel, PassiveAggressive(), Merge(SIZE)), scale)
                        found.append(seconds(model, X, y))
                without, given = (min(found) for found in spent.values())
                ratios = np.array(spent["relevance"]) / np.array(spent["standard"])
                rows.append({
                    "outputs": outputs, "columns": columns, "kernel": repr(kernel), "without, s": without,
                    "with, s": given, "ratio": given / without, "median of ratios": float(np.median(ratios)),
                    "asked": 1.6 if outputs == 1 else 2.0,
                })  # fmt: skip
    show(f"{events:,} events, {SIZE} points, PA-I, Merge", rows)


@main.command()
@click.option("-r", "--repeats", default=7, show_default=True)
def gradient(repeats: int) -> None:
    """`gradient` of so many outputs against a `decision_function` of one, 512 rows, 1,000 points."""
    rows = []
    for kind in (np.float64, np.float32):
        for columns in (20, 256):
            for kernel in (Laplacian(3 / columns), Gaussian(2 / columns)):
                for outputs in (1, 3, 10):
                    X, y = noisy_classes(3000, columns, outputs)
                    X = X.astype(kind)
                    first = KernelRegressor(kernel, PassiveAggressive(), Merge(SIZE)).fit(X, y)
                    model = KernelClassifier(kernel, PassiveAggressive(), Merge(SIZE)).fit(X, y)
                    some = X[:512]
                    scores = slopes = np.inf
                    for _ in range(repeats):
                        scores = min(scores, best(lambda m=first, x=some: m.decision_function(x), 1))
                        slopes = min(slopes, best(lambda m=model, x=some: m.gradient(x), 1))
                    rows.append({
                        "numbers": np.dtype(kind).name, "columns": columns, "kernel": repr(kernel), "outputs": outputs,
                        "points": first.n_support_, "scores, ms": 1e3 * scores, "gradient, ms": 1e3 * slopes,
                        "ratio": slopes / scores, "asked": 1 + outputs,
                    })  # fmt: skip
    show("gradient over decision_function of one output", rows)


# ---- errors ----------------------------------------------------------------------------------------------------------

FLOORS = {"ImageSegments": 0.8, "usps + noise": 0.82, "4 of 40": 0.75, "cadata": 0.97, "FriedmanDrift": 1.0}


def learner(case: Case, size: int) -> Any:
    kernel = Laplacian(3 / case.X.shape[1])
    if case.task == "regression":
        return passive_aggressive_regressor(kernel, variant=0, size=size)
    return passive_aggressive(kernel, size=size)


def errors(model: Any, case: Case) -> Any:
    """The error of each event, before it was learned."""
    said = model.prequential(case.X, case.y)
    if case.task == "regression":
        return np.abs(said - case.y)
    classes = model.classes_
    return classes[(said >= 0).astype(int) if said.ndim == 1 else said.argmax(axis=1)] != case.y


def compared(case: Case, size: int) -> dict[str, Any]:
    """Whole stream and second half, with and without."""
    plain, model = (Prepared(learner(case, size), scale) for scale in ("standard", "relevance"))
    without, given = errors(plain, case), errors(model, case)
    half = len(case.y) // 2
    after, before = given[half:].mean(), without[half:].mean()
    ratio = 1.0 if after == before else after / before  # neither errs
    return {
        "stream": case.name, "events": len(case.y), "columns": case.X.shape[1],
        "whole, without": float(without.mean()), "with": float(given.mean()),
        "half, without": float(without[half:].mean()), "half, with": float(given[half:].mean()),
        "ratio": f"{ratio:.3f}", "asked": FLOORS.get(case.name, 1.03),
        "": "" if ratio <= FLOORS.get(case.name, 1.03) else "*",
        "taken": "".join(".x"[found.taken] for found in model.relevance_history_),
    }  # fmt: skip


@main.command()
@click.option("-n", "--events", default=6000, show_default=True)
@click.option("-m", "--size", default=SIZE, show_default=True)
@click.option("-s", "--stream", "wanted", multiple=True, help="Only streams with this word in their name.")
@click.option("--list", "listing", type=click.Choice(["benchmark", "drift", "others", "held-out"]), default="benchmark")
def streams(events: int, size: int, wanted: tuple[str, ...], listing: str) -> None:
    """Error over the second half against the same learner without."""
    benchmark = {name: found for name, found in SOURCES.items() if found.task != "novelty"}
    listed: dict[str, Source] = {"benchmark": benchmark, "drift": DRIFTING, "others": OTHERS, "held-out": HELD_OUT}[
        listing
    ]
    rows = []
    for name, found in listed.items():
        if wanted and not any(word in name for word in wanted):
            continue
        rows.append(compared(found.case(events), size))
    show(f"Laplacian(3/d), PA-I (numbers: PA), Merge({size}), at most {events:,} events; * above what is asked", rows)


#: how much worse, as a share, the stored points may be told with new weights for these to be taken
TESTS = {"always": np.inf, "0.1": 0.1, "0": 0.0, "-0.05": -0.05, "never": -1.0}


@main.command()
@click.option("-n", "--events", default=6000, show_default=True)
@click.option("-m", "--size", default=SIZE, show_default=True)
@click.option("-s", "--stream", "wanted", multiple=True, help="Only streams with this word in their name.")
def drift(events: int, size: int, wanted: tuple[str, ...]) -> None:
    """Error over the second half against the same learner without, by how new weights are tested before they are taken."""
    rows = []
    for name, found in DRIFTING.items():
        if wanted and not any(word in name for word in wanted):
            continue
        case = found.case(events)
        half = len(case.y) // 2
        without = errors(Prepared(learner(case, size)), case)[half:].mean()
        row = {"stream": name, "without": float(without)}
        for test, slack in TESTS.items():
            relevance.SLACK = slack
            model = Prepared(learner(case, size), "relevance")
            ratio = errors(model, case)[half:].mean() / without
            row[test] = f"{ratio:.3f} {''.join('.x'[found.taken] for found in model.relevance_history_)}"
        rows.append(row)
        print(row, flush=True)
    show(
        f"second half over without; new weights taken if the stored points are told no worse than by this, Merge({size})",
        rows,
    )


if __name__ == "__main__":
    main()
