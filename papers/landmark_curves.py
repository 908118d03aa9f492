"""Thesis, figure 5.2: error against the number of landmarks, for numbers (a) and ordered labels (b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Claim, Outcome, fewer
from .landmark_numbers import (
    NUMBERS,
    ORDERED,
    absolute,
    dense,
    kernel_regression,
    numbers,
    ordered,
    ordinal,
    rounded_regression,
    similarities,
    sparse,
    split,
    squared,
)
from .thesis import Values, standard_error, steps, within, z_scores

_SIZES = (5, 10, 20, 50, 100, 200)
_FEW = 50  # above it the landmarks of the sigmoid are nearly dependent, and RegLand-Sp has no bound on its weights
_SPLITS = 5

#: (data set, method) -> a row a split, a column a number of landmarks
Found = dict[tuple[str, str], Values]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Every data set, split, size and method, with the sigmoid similarity."""
    sets = ("bodyfat", "winequality-red") if quick else NUMBERS + ORDERED
    sizes, splits = ((5, 20), 2) if quick else (_SIZES, _SPLITS)
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for data, repeat in steps([(data, repeat) for data in sets for repeat in range(splits)], "figure 5.2"):
        for method, errors in _errors(data, sizes, seed + repeat).items():
            rows.setdefault((data, method), []).append(errors)
    found = {key: np.array(values) for key, values in rows.items()}
    outcome = Outcome(
        "Thesis, figure 5.2: error against the number of landmarks",
        f"{splits} random splits, data and settings of thesis-table-5.1, sigmoid similarity; {sizes[0]} to {sizes[-1]} "
        "landmarks (KR and the constant have none); in a claim, the geometric mean of the errors at its sizes. steadied: "
        "RegLand-Sp with a last refit that bounds the weights (reg=1e-5), which the thesis does not have. PumaDyn-32, Bank "
        "and House are not at hand.",
    )
    for title, group in (("(a) mean squared error", NUMBERS), ("(b) mean absolute error", ORDERED)):
        table = [
            [data, method, *(f"{error:.3g}" for error in errors.mean(axis=0))]
            for (data, method), errors in found.items()
            if data in group
        ]
        outcome.tables.append((title, ["data set", "method", *map(str, sizes)], table))
    outcome.claims = [claim for data in sets for claim in _claims(data, sizes, found)]
    outcome.figures.append((_picture(found, sets, sizes), "error against the number of landmarks, means over splits"))
    return outcome


def _errors(data: str, sizes: tuple[int, ...], seed: int) -> dict[str, list[float]]:
    """What each method errs by at each size, on one split."""
    real = data in NUMBERS
    X, y = numbers(data) if real else ordered(data)
    train, test = split(len(X), seed)
    Z = z_scores(X, train)
    similarity = similarities(X.shape[1])["sigmoid"]
    known = (Z[train], y[train], Z[test])
    loss, baseline = (squared, kernel_regression) if real else (absolute, rounded_regression)
    centre = y[train].mean() if real else np.median(y[train])
    methods: dict[str, Callable[[int], Values]] = {
        "RegLand": lambda size: dense(similarity, size, *known, seed),
        "RegLand-Sp": lambda size: sparse(similarity, size, *known, seed),
        "RegLand-Sp, steadied": lambda size: sparse(similarity, size, *known, seed, reg=1e-5),
    }
    if not real:
        methods = {"ORLand": lambda size: ordinal(similarity, size, *known, seed)}
    found = {method: [loss(answers(size), y[test]) for size in sizes] for method, answers in methods.items()}
    found["KR"] = [loss(baseline(similarity, *known), y[test])] * len(sizes)
    found["constant"] = [loss(np.full(len(test), centre), y[test])] * len(sizes)
    return found


def _claims(data: str, sizes: tuple[int, ...], found: Found) -> list[Claim]:
    """Errors of several sizes count as one number a split: their geometric mean."""
    few = np.array(sizes) <= _FEW

    def level(method: str, where: Any) -> Values:
        return np.asarray(np.exp(np.log(found[data, method][:, where]).mean(axis=1)))

    claims = []
    groups = [(f"up to {_FEW} landmarks", few), (f"{' and '.join(map(str, np.array(sizes)[~few]))} landmarks", ~few)]
    for text, where in groups:
        if not where.any():
            continue
        for method in ("RegLand", "RegLand-Sp") if data in NUMBERS else ("ORLand",):
            claims.append(
                fewer(f"{data}, {text}: {method} errs less than KR", level(method, where), level("KR", where))
            )
        if data in NUMBERS:
            says = f"{data}, {text}: RegLand-Sp errs less than RegLand"
            claims.append(fewer(says, level("RegLand-Sp", where), level("RegLand", where)))
    if data == "cpusmall" and 20 in sizes:
        at = sizes.index(20)
        claims += [_printed(found[data, method][:, at], method, bound) for method, bound in _SAID.items()]
    return claims


#: what the text says of CPUData and 20 landmarks: at most this, of errors
_SAID = {"RegLand": 0.016, "RegLand-Sp": 0.002, "KR": 0.04}


def _printed(errors: Values, method: str, bound: float) -> Claim:
    error = standard_error(errors)
    ours = f"{errors.mean():.3g} with standard error {error:.1g}"
    says = f"cpusmall, 20 landmarks: the error of {method} is at most the printed one"
    return within(says, errors.mean(), bound, str(bound), ours, error)


def _picture(found: Found, sets: tuple[str, ...], sizes: tuple[int, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    columns = min(4, len(sets))
    lines = -(-len(sets) // columns)
    figure, axes = pyplot().subplots(
        lines, columns, figsize=(3.4 * columns, 3.2 * lines), layout="constrained", squeeze=False
    )
    looks = {
        "RegLand": ("o-", COLOURS[0]),
        "RegLand-Sp": ("s-", COLOURS[1]),
        "RegLand-Sp, steadied": ("^--", COLOURS[4]),
        "ORLand": ("D-", COLOURS[2]),
        "KR": ("-", COLOURS[3]),
        "constant": ("--", "0.6"),
    }
    for ax, data in zip(axes.flat, sets, strict=False):
        for method, (style, colour) in looks.items():
            if (data, method) in found:
                ax.plot(sizes, found[data, method].mean(axis=0), style, color=colour, markersize=4, label=method)
        kind = "squared" if data in NUMBERS else "absolute"
        ax.set(title=data, xscale="log", xlabel="landmarks", ylabel=f"mean {kind} error")
        ax.set_yscale("log" if data in NUMBERS else "linear")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set_xticks([], minor=True)
        tidy(ax)
    for ax in axes.flat[len(sets) :]:
        ax.set_axis_off()
    handles = [
        axes[0][0].plot([], [], style, color=colour, label=method)[0] for method, (style, colour) in looks.items()
    ]
    if lines * columns > len(sets):  # the empty corner is for the legend
        axes.flat[-1].legend(handles=handles, loc="center", frameon=False)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
