"""Thesis, figure 3.2: accuracy, training and test time of RF and H0/1 against the number of random features."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Claim, Outcome, fewer
from .maclaurin_table import SETS, Set, kernel_of, load, timed
from .thesis import Rows, Values, shares, standard_error, steps, unit_norms

#: column of the figure -> data set, kernel
_COLUMNS = (
    ("spambase", "polynomial"),
    ("nursery", "polynomial"),
    ("ijcnn1", "exponential"),
    ("cod-rna", "exponential"),
)
_METHODS = ("RF", "H0/1")
_SIZES = (10, 50, 200)
_FEW = 50  # what counts as a small number of features; the thesis does not say
_MOST = 2000
_MEASURES = ("accuracy, %", "seconds to train", "seconds to test")

#: (data set, method) -> (split, size, measure)
Found = dict[tuple[str, str], Values]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Both maps at every size, with the C of each chosen as in table 3.1."""
    columns, sizes, splits, most = (_COLUMNS[:1], (10, 50), 2, 150) if quick else (_COLUMNS, _SIZES, 3, _MOST)
    rows: dict[tuple[str, str], list[list[tuple[float, float, float]]]] = {}
    for data, kernel, split in steps([(d, k, split) for d, k in columns for split in range(splits)], "figure 3.2"):
        for method, numbers in _measure(data, kernel, sizes, most, seed + split).items():
            rows.setdefault((data, method), []).append(numbers)
    found = {key: np.array(values) for key, values in rows.items()}
    outcome = Outcome(
        "Thesis, figure 3.2: RF and H0/1 against the number of random features",
        f"{splits} random splits (the thesis: 5), 60 % of the rows to train on, of these at most {most:,} (the thesis: "
        f"20,000), as many at most of the rest to test; scaling, kernels, C and solver as in thesis-table-3.1. D from "
        f"{sizes[0]} to {sizes[-1]} random features; H0/1 has the columns of the data beside them, which D does not count. "
        f"Few features: up to {_FEW}. Times are of the processor.",
    )
    for place, measure in enumerate(_MEASURES):
        table = [
            [data, method, *(f"{value:.3g}" for value in numbers[:, :, place].mean(axis=0))]
            for (data, method), numbers in found.items()
        ]
        outcome.tables.append((measure, ["data set", "map", *(f"D = {size}" for size in sizes)], table))
    outcome.claims = [claim for data, _ in columns for claim in _claims(data, sizes, found)]
    outcome.figures.append((_picture(found, [data for data, _ in columns], sizes), "means over splits"))
    return outcome


def _measure(
    data: str, kernel_name: str, sizes: tuple[int, ...], most: int, seed: int
) -> dict[str, list[tuple[float, float, float]]]:
    X, y = load(SETS[data].files)
    train, test = shares(len(X), 0.6, seed, most)
    test = test[:most]
    Z = unit_norms(X, train)
    kernel = kernel_of(kernel_name, Z, train)
    return {method: [_at(kernel, method, size, Z, y, train, test, seed) for size in sizes] for method in _METHODS}


def _at(
    kernel: Any, method: str, size: int, Z: Values, y: Any, train: Rows, test: Rows, seed: int
) -> tuple[float, float, float]:
    return timed(kernel, method, Set((), size, size, 1), Z, y, train, test, seed)


def _claims(data: str, sizes: tuple[int, ...], found: Found) -> list[Claim]:
    few = np.array(sizes) <= _FEW
    plain, exact = (found[data, method] for method in _METHODS)

    def wrong(numbers: Values, where: Any) -> Any:
        return 100 - numbers[:, where, 0].mean(axis=1)

    gain = wrong(plain, few) - wrong(exact, few)
    says = f"{data}: H0/1 errs less than RF with few features, in percent (mean of D up to {_FEW})"
    claims = [fewer(says, wrong(exact, few), wrong(plain, few), "much higher accuracies")]
    last = exact[:, -1, 0] - exact[:, 0, 0]
    error = standard_error(last)
    holds = None if abs(last.mean()) <= 2 * error else bool(last.mean() > 0)
    ours = (
        f"{last.mean():.2f} points from D = {sizes[0]} to {sizes[-1]}, standard error {error:.2g}; the gain above was "
    )
    claims.append(Claim(f"{data}: H0/1 moves up slowly", "-", ours + f"{gain.mean():.1f}", holds))
    for place, doing in ((2, "test"), (1, "train")):
        says = f"{data}: H0/1 needs more time to {doing} than RF, D = {sizes[-1]} (seconds)"
        claims.append(fewer(says, plain[:, -1, place], exact[:, -1, place]))
    return claims


def _picture(found: Found, sets: list[str], sizes: tuple[int, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(
        3, len(sets), figsize=(3.0 * len(sets), 6.6), layout="constrained", squeeze=False, sharex=True
    )
    for column, data in enumerate(sets):
        for place, measure in enumerate(_MEASURES):
            ax = axes[place][column]
            for colour, method in zip(COLOURS, _METHODS, strict=False):
                ax.plot(
                    sizes, found[data, method][:, :, place].mean(axis=0), "o-", color=colour, markersize=4, label=method
                )
            ax.set(xscale="log", yscale="linear" if place == 0 else "log")
            ax.set_title(data if place == 0 else "")
            ax.set_xlabel("random features D" if place == 2 else "")
            ax.set_ylabel(measure if column == 0 else "")
            tidy(ax)
    axes[0][0].legend(frameon=False)
    return figure
