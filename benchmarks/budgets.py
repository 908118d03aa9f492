"""`python -m benchmarks.budgets`: what a hard size costs. PA-I with each budget, the unbounded learner, Projectron++."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gristmill import (
    DropOldest,
    DropRandom,
    DropSmallest,
    KernelClassifier,
    Laplacian,
    Merge,
    PassiveAggressive,
    Unbounded,
    forgetron,
    projectron_pp,
)
from gristmill.streams import rotating_hyperplane, switching_mixture

from .data import SEED, arrays, digest, shuffled, standardised
from .measure import machine, pin, show
from .progress import bar
from .store import Store

SIZES = (30, 100, 300, 1000)
FIRST = 4000
LAST = 1000
PICTURED = ("usps", "cod-rna")
HEIGHTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)

#: The budgets under PA-I, C = 1: one line each.
BUDGETS: dict[str, Callable[[int], Any]] = {
    "DropOldest": lambda size: DropOldest(size),
    "DropRandom": lambda size: DropRandom(size),
    "DropSmallest": lambda size: DropSmallest(size),
    "Merge": lambda size: Merge(size),
}

#: In the order of their file or generator; all others are shuffled.
STREAMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "elec2": lambda: arrays("elec2"),
    "switching": lambda: switching_mixture(20_000, random_state=SEED).arrays(),
    "turning": lambda: rotating_hyperplane(20_000, random_state=SEED).arrays(),
}
SETS = ("usps", "mnist", "ijcnn1", "cod-rna", "a9a", "nursery", *STREAMS)
REFERENCE = "unbounded"


def data(name: str, events: int | None) -> tuple[Any, Any]:
    """The events, their columns standardised over the whole file."""
    X, y = STREAMS[name]() if name in STREAMS else shuffled(*arrays(name))
    return np.ascontiguousarray(standardised(X)[:events]), y[:events]


def budgeted(budget: Any) -> Callable[[Any], Any]:
    return lambda kernel: KernelClassifier(kernel, PassiveAggressive(C=1.0), budget, random_state=SEED)


def wrong(model: Any, X: Any, y: Any, stop: int | None = None) -> Any:
    """Which events were mistaken before they were learned; None if more than `stop` points came to be stored."""
    parts = []
    for start in range(0, len(y), 1000):
        said, truth = model.prequential(X[start : start + 1000], y[start : start + 1000]), y[start : start + 1000]
        classes = model.classes_
        if len(classes) == 1:
            parts.append(np.zeros(len(truth), dtype=bool))
        else:
            parts.append(classes[(said >= 0).astype(int) if said.ndim == 1 else said.argmax(axis=1)] != truth)
        if stop is not None and model.n_support_ > stop:
            return None
    return np.concatenate(parts)


def run(build: Callable[[Any], Any], X: Any, y: Any) -> dict[str, Any]:
    """One pass; what is true of the first 4,000 events is read from the same pass."""
    model = build(Laplacian(3 / X.shape[1]))
    began = time.process_time()
    mistakes = wrong(model, X, y)
    seconds = time.process_time() - began
    return {**errors(mistakes), "stored": int(model.n_support_), "microseconds": 1e6 * seconds / len(y)}


def errors(mistakes: Any) -> dict[str, Any]:
    first = mistakes[:FIRST]
    return {
        name: [float(part.mean()), float(part[-LAST:].mean())] for name, part in (("first", first), ("whole", mistakes))
    }


def projected(X: Any, y: Any, size: int) -> dict[str, Any]:
    """Projectron++ whose tolerance makes it store at most `size` points and nearly as many, found by halving."""
    best: dict[str, Any] = {"stored": 0}
    far = (
        1.0 if len(np.unique(y)) == 2 else 2.0
    )  # squared length of a step, k(x, x) = 1: from there on nothing is stored
    low, high = 0.0, 6.0  # tolerance^2 = far (1 - 10^-exponent): narrow kernels want it close to that
    for _ in range(12):
        exponent = (low + high) / 2
        tolerance = (far * (1.0 - 10.0**-exponent)) ** 0.5
        model = projectron_pp(Laplacian(3 / X.shape[1]), tolerance=tolerance)
        began = time.process_time()
        mistakes = wrong(model, X, y, stop=size)
        seconds = time.process_time() - began
        if mistakes is None:
            low = exponent
            continue
        high = exponent
        if model.n_support_ > best["stored"]:
            best = {**errors(mistakes), "stored": int(model.n_support_), "microseconds": 1e6 * seconds / len(y)}
            best["tolerance"] = tolerance
        if model.n_support_ >= 0.9 * size:
            break
    return best


def jobs(X: Any, y: Any, sizes: list[int]) -> dict[tuple[str, int], Callable[[], dict[str, Any]]]:
    """What there is to measure on one set, by name and size."""
    found: dict[tuple[str, int], Callable[[], dict[str, Any]]] = {}
    found[REFERENCE, 0] = partial(run, budgeted(Unbounded()), X, y)
    for size in sizes:
        for name, budget in BUDGETS.items():
            found[name, size] = partial(run, budgeted(budget(size)), X, y)
        if len(np.unique(y)) == 2:
            found["Forgetron", size] = partial(run, partial(forgetron, size=size), X, y)
        found["Projectron++", size] = partial(projected, X, y, size)
    return found


ALL = (REFERENCE, *BUDGETS, "Forgetron", "Projectron++")


def measured(
    names: list[str], budgets: list[str], sizes: list[int], events: int | None, store: Store
) -> dict[str, Any]:
    """By set, then by budget and size. What was not asked for is taken from the store where it has it."""
    results: dict[str, Any] = {}
    facts = machine()
    with bar(sum(1 + (len(budgets)) * len(sizes) for _ in names)) as begin:
        for name in names:
            try:
                X, y = data(name, events)
            except FileNotFoundError as missing:
                print(f"{name} is left out: {missing}")
                continue
            what = {"data": digest(X[:1000], y), "events": len(y)}
            folder = f"budgets, {events or 'whole'}"
            for (budget, size), job in jobs(X, y, sizes).items():
                if budget in budgets:
                    tick = begin(f"{name}: {budget} {size or ''}", 1)
                    kept = store.put(folder, name, f"{budget} {size}", **what, **job(), machine=facts)
                    tick(1)
                else:
                    kept = store.find(folder, name, f"{budget} {size}", **what) or {}
                results.setdefault(name, {})[budget, size] = kept
    return results


def pair(record: dict[str, Any], part: str) -> str:
    if part not in record:
        return "-"
    return "/".join(f"{value:.3f}".lstrip("0") for value in record[part])


def tables(results: dict[str, Any], sizes: list[int]) -> None:
    for part, title in (("first", f"first {FIRST:,} events"), ("whole", "all events")):
        rows = []
        for name, found in results.items():
            for size in sizes:
                row = {"set": name, "points": size}
                row |= {budget: pair(found.get((budget, size), {}), part) for budget in ALL[1:]}
                rows.append({**row, REFERENCE: pair(found.get((REFERENCE, 0), {}), part) if size == sizes[0] else ""})
        show(f"{title}: error / of the last {LAST:,}", rows)
    rows = []
    for name, found in results.items():
        row = {"set": name, "size": max(sizes)}
        for budget in ALL:
            record = found.get((budget, 0 if budget == REFERENCE else max(sizes)), {})
            if "microseconds" in record:
                row[budget] = f"{record['microseconds']:.0f} ({record['stored']:,})"
        rows.append(row)
    show("processor microseconds an event (points stored in the end)", rows)


def draw(results: dict[str, Any], sizes: list[int], path: Path, part: str) -> None:
    """Error against stored points, all budgets, two data sets."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = sorted(results, key=lambda name: name not in PICTURED)[:2]
    figure, axes = plt.subplots(1, len(shown), figsize=(4.6 * len(shown), 3.6), squeeze=False)
    for axis, name in zip(axes.flat, shown, strict=True):
        found = results[name]
        for budget in ALL[1:]:
            records = [found.get((budget, size), {}) for size in sizes]
            points = [(record["stored"], record[part][0]) for record in records if part in record]
            if points:
                axis.plot(
                    *zip(*points, strict=True),
                    marker="o",
                    markersize=4,
                    label=budget,
                    linewidth=2.5 if budget == "Merge" else 1.2,
                )
        if part in found.get((REFERENCE, 0), {}):
            axis.axhline(found[REFERENCE, 0][part][0], color="#555555", linestyle="--", label=REFERENCE)
        axis.set(xscale="log", yscale="log", title=name, xlabel="stored points")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.set_xticks([], minor=True)
        low, high = axis.get_ylim()
        heights = [height for height in HEIGHTS if low <= height <= high]
        axis.set_yticks(heights, [f"{height:g}" for height in heights])
        axis.set_yticks([], minor=True)
    axes[0, 0].set_ylabel("prequential error")
    axes[0, 0].legend(*axes[0, -1].get_legend_handles_labels(), fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


@click.command()
@click.option("-d", "--data", "sets", multiple=True, type=click.Choice(SETS), help="Several times; all unless said.")
@click.option(
    "-b", "--budget", "budgets", multiple=True, type=click.Choice(ALL), help="Measured now; the others from the store."
)
@click.option("-p", "--points", "sizes", multiple=True, type=int, help="Sizes; 30, 100, 300 and 1,000 unless said.")
@click.option("-n", "--events", type=click.IntRange(min=10), help="At most; whole files unless said.")
@click.option("--results", default="bench-results", show_default=True, type=click.Path(path_type=Path))
def main(
    sets: tuple[str, ...], budgets: tuple[str, ...], sizes: tuple[int, ...], events: int | None, results: Path
) -> None:
    """PA-I, C = 1, Laplacian(3/d) on standardised columns, with every budget at four sizes; errors of the first
    4,000 events and of all, the unbounded learner, and Projectron++ of the same size.
    """
    pin()
    points = sorted(sizes or SIZES)
    found = measured(list(sets or SETS), list(budgets or ALL), points, events, Store(results))
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    tables(found, points)
    path = results / "budgets.png"
    draw(found, points, path, "whole")
    print(f"\npicture: {path}")


if __name__ == "__main__":
    main()
