"""Thesis, figures 4.1 and 4.2: accuracy against the number of landmarks, on matrices and with a Gaussian similarity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import Claim, Outcome
from .landmark_classes import DBOOST, matrix_task, methods, more, vector_task
from .thesis import Values, steps


@dataclass(frozen=True)
class _Figure:
    sets: tuple[str, ...]
    sizes: tuple[int, ...]
    runs: int
    most: int  #: rows of a data set
    shown: tuple[str, ...]
    about: str


_FIGURES = {
    "thesis-figure-4.1": _Figure(
        ("aural-sonar", "voting", "protein"),
        (10, 30, 100),
        6,
        10_000,
        ("BBS", "BBS+D", "FTUNE-S", "FTUNE+D-S", "DBOOST"),
        "similarity matrices and splits of thesis-table-4.1, 10 to 100 landmarks (the thesis: up to 300). "
        "Amazon47, AmazonBinary, FaceRec, Mirex07 and Patrol are not to "
        "be had; the text does not say which four sets the figure shows.",
    ),
    "thesis-figure-4.2": _Figure(
        ("cod-rna", "nursery", "opt-digits"),
        (10, 20, 30, 50, 100, 300),
        4,
        1000,
        ("BBS", "DBOOST", "FTUNE-S", "FTUNE-M"),
        "data and splits of thesis-table-4.2, at most 1,000 rows of each, since tuning is slow, and 10 to 300 landmarks. "
        "The text does not say which four sets the figure shows.",
    ),
}

#: (data set, method) -> (run, size): accuracies
Found = dict[tuple[str, str], Values]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """All methods see the same splits."""
    figure = _FIGURES[name]
    if quick:
        figure = replace(figure, sets=figure.sets[:1], sizes=(10, 30), runs=2)
    tasks = {data: matrix_task(data) if _matrices(name) else vector_task(data, figure.most) for data in figure.sets}
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for data, repeat in steps([(data, repeat) for data in figure.sets for repeat in range(figure.runs)], name):
        similarity, X, y, new, truth = tasks[data](seed + repeat)
        right: dict[str, list[float]] = {}
        for size in figure.sizes:
            made = methods(similarity, size, seed + repeat, _matrices(name), len(np.unique(y)))
            for method in (method for method in figure.shown if method in made):
                right.setdefault(method, []).append(made[method].fit(X, y).score(new, truth))
        for method, values in right.items():
            rows.setdefault((data, method), []).append(values)
    found = {key: np.array(values) for key, values in rows.items()}
    outcome = Outcome(
        f"Thesis, figure {name[-3:]}: accuracy against the number of landmarks",
        f"{figure.runs} random splits (the thesis: 20); {figure.about} {DBOOST}",
    )
    table = [[*key, *(f"{value:.3f}" for value in values.mean(axis=0))] for key, values in found.items()]
    outcome.tables.append(("accuracy", ["data set", "method", *map(str, figure.sizes)], table))
    judge = _diverse if _matrices(name) else _dominates
    outcome.claims = [claim for data in figure.sets for claim in judge(data, figure.sizes, found)]
    outcome.figures.append((_picture(found, figure), "accuracy against the number of landmarks, means over runs"))
    return outcome


def _matrices(name: str) -> bool:
    return name == "thesis-figure-4.1"


def _level(found: Found, data: str, method: str, where: Any) -> Values:
    return np.asarray(found[data, method][:, where].mean(axis=1))


def _diverse(data: str, sizes: tuple[int, ...], found: Found) -> list[Claim]:
    """The thesis: five to six points for few landmarks, on all four sets."""
    few = np.array(sizes) <= 30
    return [
        more(
            f"{data}, up to 30 landmarks: diverse ones are better, {diverse} above {plain}",
            _level(found, data, diverse, few),
            _level(found, data, plain, few),
            "by 5 to 6 points",
        )
        for plain, diverse in (("BBS", "BBS+D"), ("FTUNE-S", "FTUNE+D-S"))
    ]


def _dominates(data: str, sizes: tuple[int, ...], found: Found) -> list[Claim]:
    """The thesis: better at every size, and much better with 30 and 50 landmarks."""
    count = np.array(sizes)
    groups = {"30 and 50 landmarks": (count == 30) | (count == 50), "all sizes": count > 0}
    return [
        more(
            f"{data}, {words}: {ours} is right more often than {rival}",
            _level(found, data, ours, where),
            _level(found, data, rival, where),
        )
        for words, where in groups.items()
        for ours in ("FTUNE-S", "FTUNE-M")
        for rival in ("BBS", "DBOOST")
        if (data, ours) in found
    ]


def _picture(found: Found, figure: _Figure) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    sets, sizes = figure.sets, figure.sizes
    page, axes = pyplot().subplots(1, len(sets), figsize=(3.9 * len(sets), 3.9), layout="constrained", squeeze=False)
    colours = dict(zip(figure.shown, COLOURS, strict=False))
    for ax, data in zip(axes[0], sets, strict=True):
        for method in figure.shown:
            if (data, method) in found:
                dashes = "--" if "+D" in method else "-"
                ax.plot(sizes, found[data, method].mean(axis=0), f"o{dashes}", color=colours[method], markersize=4)
        ax.set(title=data, xscale="log", xlabel="landmarks", ylabel="accuracy" if data == sets[0] else None)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set_xticks([], minor=True)
        tidy(ax)
    handles = [axes[0][0].plot([], [], "o-", color=colours[method], label=method)[0] for method in figure.shown]
    page.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return page
