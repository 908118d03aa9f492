"""Additive kernels in O(log m): cost per event against m, serving, memory, and two real streams.

Pictures go to the folder that `main` is given. The real streams are read from the folder that the environment
variable GRISTMILL_DATA names (cadata.csv.xz, abalone.csv.xz) and are left out without it.
"""

from __future__ import annotations

import lzma
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropSmallest,
    Gaussian,
    KernelRegressor,
    Laplacian,
    PassiveAggressive,
    Polynomial,
    Spline,
    Squared,
    Unbounded,
)
from gristmill.evaluate.displays.additive import AdditiveDisplay

from .measure import best

COLUMNS = 10
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def grow(model: KernelRegressor, rng: np.random.Generator, size: int) -> None:
    """Let the model store terms until it has `size` of them."""
    stored = model.n_support_ if hasattr(model, "n_features_in_") else 0
    while stored < size:
        count = min(size - stored, 100_000)
        model.partial_fit(rng.uniform(size=(count, COLUMNS)), rng.normal(size=count))
        stored = model.n_support_


def cost_per_event(
    base: Any, rng: np.random.Generator, sizes: tuple[int, ...]
) -> tuple[list[dict[str, float]], KernelRegressor]:
    """Score + add, and the naive row, at each size; the model that is left has the last size."""
    model = KernelRegressor(Additive(base), SGD(Squared(), rate=1e-6), Unbounded())
    kernel, rows, events = Additive(base), [], 400
    for size in sizes:
        grow(model, rng, size)
        chunks = iter([(rng.uniform(size=(events, COLUMNS)), rng.normal(size=events)) for _ in range(7)])
        tree = best(lambda chunks=chunks: model.partial_fit(*next(chunks)), 7) / events
        fresh = rng.uniform(size=(events, COLUMNS))
        score = best(lambda fresh=fresh: model.predict(fresh), 3) / events
        stored = model.support_vectors_
        naive = best(lambda stored=stored, fresh=fresh: kernel(fresh[:1], stored), 3)
        memory = model.memory_bytes_ / model.n_support_ / COLUMNS
        rows.append({"m": size, "tree": tree, "score": score, "naive": naive, "bytes": memory})
        print(
            f"  {size:>9,}  {tree * 1e6:8.2f} us  {score * 1e6:8.2f} us  {naive * 1e6:12.1f} us"
            f"  {naive / tree:9.0f}x  {memory:6.1f} bytes",
            flush=True,
        )
    return rows, model


def serving(models: dict[str, KernelRegressor], rng: np.random.Generator, count: int) -> dict[str, float]:
    """Rows a second: compiled models of 10^6 terms, and 100 boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    X = rng.uniform(size=(count, COLUMNS))
    train = rng.uniform(size=(50_000, COLUMNS))
    target = np.sin(6 * train).sum(axis=1)
    with threadpool_limits(1):
        forest = HistGradientBoostingRegressor(max_iter=100, early_stopping=False).fit(train, target)
        found = {"HistGradientBoosting, 100 trees": best(lambda: forest.predict(X), 2)}
        for name, model in models.items():
            found[f"{name}, trees"] = best(lambda model=model: model.predict(X[: count // 10]), 1) * 10
            model.compile()
            found[f"{name}, compiled"] = best(lambda model=model: model.predict(X), 2)
    for name, spent in found.items():
        print(f"  {name:34s} {spent / count * 1e6:8.3f} us a row")
    return {name: spent / count for name, spent in found.items()}


def draw_costs(costs: dict[str, list[dict[str, float]]], folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for color, (name, rows) in zip(("C0", "C1"), costs.items(), strict=True):
        sizes = [row["m"] for row in rows]
        axis.loglog(sizes, [row["tree"] * 1e6 for row in rows], "o-", color=color, label=f"{name}, trees")
        axis.loglog(sizes, [row["naive"] * 1e6 for row in rows], "s--", color=color, label=f"{name}, naive row")
    axis.set_xlabel("stored terms m")
    axis.set_ylabel("microseconds per event")
    axis.set_title(f"score + add, {COLUMNS} coordinates, one thread")
    axis.grid(alpha=0.3, which="both")
    axis.legend()
    figure.savefig(folder / "additive_cost.png", dpi=120)
    plt.close(figure)


# ---- two real streams ----------------------------------------------------------------------------


def read(name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Inputs scaled to [0, 1], the target, and names; a column of letters becomes one column a letter."""
    with lzma.open(Path(os.environ["GRISTMILL_DATA"]) / f"{name}.csv.xz", "rt") as file:
        names = file.readline().strip().split(",")
        table = np.array([line.strip().split(",") for line in file])
    columns, labels = [], []
    for label, column in zip(names[:-1], table[:, :-1].T, strict=True):
        if column[0].isalpha():
            for letter in np.unique(column):
                columns.append((column == letter).astype(float))
                labels.append(f"{label} = {letter}")
        else:
            columns.append(column.astype(float))
            labels.append(label)
    X = np.array(columns).T
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / (high - low), table[:, -1].astype(float), labels


def learners(name: str, C: float) -> dict[str, KernelRegressor]:
    """The kernels that are tried under one name, each with the same rule."""
    rule, widths = PassiveAggressive(C=C, epsilon=0.1), (0.3, 1.0, 3.0, 10.0, 30.0)
    if name == "linear":
        return {name: KernelRegressor(Polynomial(degree=1, gamma=1.0, coef0=1.0), rule, Unbounded())}
    if name == "Gaussian, budget 500":
        return {
            f"Gaussian({g:g}), {budget!r}": KernelRegressor(Gaussian(g), rule, budget)
            for g in widths
            for budget in (DropSmallest(500), DropOldest(500))
        }
    if name == "additive spline":
        return {f"Additive(Spline({z}))": KernelRegressor(Additive(Spline(z)), rule, Unbounded()) for z in (0, 1)}
    return {f"Additive(Laplacian({g:g}))": KernelRegressor(Additive(Laplacian(g)), rule, Unbounded()) for g in widths}


def tuned(name: str, X: np.ndarray, y: np.ndarray) -> tuple[str, KernelRegressor]:
    """The candidate with the least prequential error on the first events."""
    best, chosen = float("inf"), ("", KernelRegressor())
    for C in (0.01, 0.03, 0.1, 0.3, 1.0):
        for label, model in learners(name, C).items():
            error = float(np.abs(y - model.prequential(X, y)).mean())
            if error < best:
                best, chosen = error, (f"{label}, C={C:g}", learners(name, C)[label])
    return chosen


def real_stream(name: str, folder: Path) -> list[dict[str, Any]]:
    """Prequential absolute error in one random order, each learner tuned on the first 2,000 events."""
    import matplotlib.pyplot as plt

    X, y, labels = read(name)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order] / y.std()
    rows, shown = [], None
    for kind in ("linear", "Gaussian, budget 500", "additive spline", "additive Laplacian"):
        label, model = tuned(kind, X[:2000], y[:2000])
        start = time.thread_time()
        error = np.abs(y - model.prequential(X, y))
        spent = time.thread_time() - start
        late = float(error[len(y) // 2 :].mean())
        rows.append(
            {
                "learner": label,
                "error": float(error.mean()),
                "late": late,
                "terms": model.n_support_,
                "seconds": spent,
            }
        )
        print(
            f"  {label:44s} {rows[-1]['error']:.4f}  {late:.4f}  {model.n_support_:>7,} terms"
            f"  {spent:7.2f} s  {spent / len(y) * 1e6:7.1f} us an event",
            flush=True,
        )
        shown = model if kind == "additive spline" else shown
    display = AdditiveDisplay.from_estimator(shown, labels, X=X)
    display.figure_.savefig(folder / f"additive_{name}.png", dpi=100)
    plt.close(display.figure_)
    return rows


def main(
    folder: str | Path = "bench-results", sizes: tuple[int, ...] = SIZES, serve: int = 1_000_000
) -> dict[str, Any]:
    """Run everything; returns what was measured."""
    import matplotlib

    matplotlib.use("Agg")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    costs, models = {}, {}
    for name, base in (("Laplacian", Laplacian(10.0)), ("Spline(1)", Spline(1))):
        print(f"{name}, {COLUMNS} coordinates: m, score + add, score alone, naive row, naive / tree, memory")
        costs[name], models[name] = cost_per_event(base, rng, sizes)
        ratio = costs[name][-1]["tree"] / costs[name][0]["tree"]
        print(f"  {ratio:.1f} times the time at {sizes[-1]:,} as at {sizes[0]:,}")
    draw_costs(costs, folder)
    print(f"serving {serve:,} rows with {sizes[-1]:,} terms:")
    found: dict[str, Any] = {"costs": costs, "serving": serving(models, rng, serve)}
    if "GRISTMILL_DATA" in os.environ:
        for name in ("cadata", "abalone"):
            print(f"{name}: mean absolute error / standard deviation of the target, all and last half")
            found[name] = real_stream(name, folder)
    return found
