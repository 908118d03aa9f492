"""Thesis, figures 5.2 to 5.4: error against the number of landmarks, for numbers and ordered labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gristmill.kernels import Gaussian, SquaredEuclidean

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
from .thesis import Values, mean_distance, standard_error, steps, within, z_scores

_FEW = 50  # above it the landmarks of the sigmoid are nearly dependent, and RegLand-Sp has no bound on its weights
_STEADIED = "RegLand-Sp, steadied"


@dataclass(frozen=True)
class _Figure:
    """What one figure shows, and how much of it is run."""

    panels: tuple[tuple[str, str], ...]  #: (data set, similarity)
    sizes: tuple[int, ...]
    splits: int
    most: int  #: rows to train on
    about: str


def _all(sets: tuple[str, ...], *kinds: str) -> tuple[tuple[str, str], ...]:
    return tuple((data, kind) for kind in kinds for data in sets)


_MISSING = (
    " steadied: RegLand-Sp with a last refit that bounds the weights (reg=1e-5), which the thesis does not have. "
    "PumaDyn-32, Bank and House are not to be had."
)
_WIDTH = "the width of the Gaussian is the mean distance of training pairs, as in the thesis"
_FIGURES = {
    "thesis-figure-5.2": _Figure(
        _all(NUMBERS + ORDERED, "sigmoid"),
        (5, 10, 20, 50, 100, 200),
        5,
        5000,
        "data and settings of thesis-table-5.1, sigmoid similarity",
    ),
    "thesis-figure-5.3": _Figure(
        _all(NUMBERS, "Gaussian", "Euclidean"),
        (5, 20, 100),
        4,
        800,
        f"data of thesis-table-5.1, Gaussian similarity and Euclidean, -|x - y|^2; {_WIDTH}",
    ),
    "thesis-figure-5.4": _Figure(
        _all(ORDERED, "Manhattan", "Gaussian"),
        (5, 10, 20, 50, 100),
        4,
        1500,
        f"data of thesis-table-5.1, Manhattan and Gaussian similarity; {_WIDTH}",
    ),
}

#: (data set, similarity, method) -> a row a split, a column a number of landmarks
Found = dict[tuple[str, str, str], Values]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Every data set, similarity, split, size and method."""
    figure = _FIGURES[name]
    if quick:
        few = tuple(panel for panel in figure.panels if panel[0] in ("bodyfat", "winequality-red"))
        figure = replace(figure, panels=few, sizes=(5, 20), splits=2)
    rows: dict[tuple[str, str, str], list[list[float]]] = {}
    jobs = [(data, kind, repeat) for data, kind in figure.panels for repeat in range(figure.splits)]
    for data, kind, repeat in steps(jobs, name):
        for method, errors in _errors(data, kind, figure, seed + repeat).items():
            rows.setdefault((data, kind, method), []).append(errors)
    found = {key: np.array(values) for key, values in rows.items()}
    outcome = Outcome(
        f"Thesis, figure {name[-3:]}: error against the number of landmarks",
        f"{figure.splits} random splits, {figure.about}; at most {figure.most:,} rows to train on; {figure.sizes[0]} to "
        f"{figure.sizes[-1]} landmarks (KR and the constant have none); in a claim, the geometric mean of the errors at its "
        f"sizes.{_MISSING if any(data in NUMBERS for data, _ in figure.panels) else ''}",
    )
    for title, group in (("(a) mean squared error", NUMBERS), ("(b) mean absolute error", ORDERED)):
        table = [
            [_label(data, kind), method, *(f"{error:.3g}" for error in errors.mean(axis=0))]
            for (data, kind, method), errors in found.items()
            if data in group
        ]
        if table:
            outcome.tables.append((title, ["data set", "method", *map(str, figure.sizes)], table))
    outcome.claims = [claim for panel in figure.panels for claim in _claims(*panel, figure.sizes, found)]
    outcome.figures.append((_picture(found, figure), "error against the number of landmarks, means over splits"))
    return outcome


def _similarity(kind: str, Z: Values, train: Any) -> Any:
    if kind == "Gaussian":
        return Gaussian(1 / (2 * mean_distance(Z[train]) ** 2))
    return {"Euclidean": SquaredEuclidean()}.get(kind) or similarities(Z.shape[1])[kind]


def _errors(data: str, kind: str, figure: _Figure, seed: int) -> dict[str, list[float]]:
    """What each method errs by at each size, on one split."""
    real, sizes = data in NUMBERS, figure.sizes
    X, y = numbers(data) if real else ordered(data)
    train, test = split(len(X), seed, figure.most)
    Z = z_scores(X, train)
    similarity = _similarity(kind, Z, train)
    known = (Z[train], y[train], Z[test])
    loss, baseline = (squared, kernel_regression) if real else (absolute, rounded_regression)
    centre = y[train].mean() if real else np.median(y[train])
    methods: dict[str, Callable[[int], Values]] = {
        "RegLand": lambda size: dense(similarity, size, *known, seed),
        "RegLand-Sp": lambda size: sparse(similarity, size, *known, seed),
        _STEADIED: lambda size: sparse(similarity, size, *known, seed, reg=1e-5),
    }
    if not real:
        methods = {"ORLand": lambda size: ordinal(similarity, size, *known, seed)}
    found = {method: [loss(answers(size), y[test]) for size in sizes] for method, answers in methods.items()}
    found["KR"] = [loss(baseline(similarity, *known), y[test])] * len(sizes)
    found["constant"] = [loss(np.full(len(test), centre), y[test])] * len(sizes)
    return found


def _label(data: str, kind: str) -> str:
    """Figure 5.2 has one similarity, the sigmoid, and does not name it at each data set."""
    return data if kind == "sigmoid" else f"{data}, {kind}"


def _claims(data: str, kind: str, sizes: tuple[int, ...], found: Found) -> list[Claim]:
    """Errors of several sizes count as one number a split: their geometric mean."""
    few = np.array(sizes) <= _FEW

    def level(method: str, where: Any) -> Values:
        return np.asarray(np.exp(np.log(found[data, kind, method][:, where]).mean(axis=1)))

    claims, panel = [], _label(data, kind)
    groups = [(f"up to {_FEW} landmarks", few), (f"{' and '.join(map(str, np.array(sizes)[~few]))} landmarks", ~few)]
    for text, where in groups:
        if not where.any():
            continue
        for method in ("RegLand", "RegLand-Sp") if data in NUMBERS else ("ORLand",):
            claims.append(
                fewer(f"{panel}, {text}: {method} errs less than KR", level(method, where), level("KR", where))
            )
        if data in NUMBERS:
            says = f"{panel}, {text}: RegLand-Sp errs less than RegLand"
            claims.append(fewer(says, level("RegLand-Sp", where), level("RegLand", where)))
    if panel == "cpusmall" and 20 in sizes:
        at = sizes.index(20)
        claims += [_printed(found[data, kind, method][:, at], method, bound) for method, bound in _SAID.items()]
    return claims


#: what the text says of CPUData and 20 landmarks: at most this, of errors
_SAID = {"RegLand": 0.016, "RegLand-Sp": 0.002, "KR": 0.04}


def _printed(errors: Values, method: str, bound: float) -> Claim:
    error = standard_error(errors)
    ours = f"{errors.mean():.3g} with standard error {error:.1g}"
    says = f"cpusmall, 20 landmarks: the error of {method} is at most the printed one"
    return within(says, errors.mean(), bound, str(bound), ours, error)


def _picture(found: Found, figure: _Figure) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    panels, sizes = figure.panels, figure.sizes
    columns = min(5 if len(panels) == 10 else 4, len(panels))
    lines = -(-len(panels) // columns)
    page, axes = pyplot().subplots(
        lines, columns, figsize=(3.1 * columns, 3.1 * lines), layout="constrained", squeeze=False
    )
    looks = {
        "RegLand": ("o-", COLOURS[0]),
        "RegLand-Sp": ("s-", COLOURS[1]),
        _STEADIED: ("^--", COLOURS[4]),
        "ORLand": ("D-", COLOURS[2]),
        "KR": ("-", COLOURS[3]),
        "constant": ("--", "0.6"),
    }
    looks = {method: look for method, look in looks.items() if any(key[2] == method for key in found)}
    for ax, (data, kind) in zip(axes.flat, panels, strict=False):
        for method, (style, colour) in looks.items():
            if (data, kind, method) in found:
                ax.plot(sizes, found[data, kind, method].mean(axis=0), style, color=colour, markersize=4, label=method)
        measure = "squared" if data in NUMBERS else "absolute"
        ax.set(title=_label(data.replace("winequality", "wine"), kind), xscale="log", xlabel="landmarks")
        ax.set(ylabel=f"mean {measure} error", yscale="log" if data in NUMBERS else "linear")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set_xticks([], minor=True)
        tidy(ax)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    handles = [axes[0][0].plot([], [], style, color=c, label=method)[0] for method, (style, c) in looks.items()]
    if lines * columns > len(panels):  # the empty corner is for the legend
        axes.flat[-1].legend(handles=handles, loc="center", frameon=False)
    else:
        page.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return page
