"""Projectron, figure 8 (a, b): error against size of the support set, over a range of tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import datasets
from ..notation import parse
from . import Claim, Outcome, fewer

#: data set -> kernel, and the squared tolerances (eta) that are tried; the paper does not list its own
_SETTINGS = {
    "ijcnn1": ("Gaussian(8.0)", (0.1, 0.2, 0.4, 0.6)),
    "a9a": ("Gaussian(0.04)", (0.05, 0.1, 0.2, 0.4)),
}


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Projectron++ at every tolerance; the others at the sizes that it ended with."""
    outcome = Outcome(
        "Projectron, figure 8: error against stored points",
        f"{1 if quick else 3} permutations; Projectron++ with the published (squared) margin step; random "
        "budget Perceptron and Forgetron at the sizes of Projectron++.",
    )
    panels = {}
    for data, (kernel, etas) in _SETTINGS.items():
        X, y = datasets.load(data).arrays()
        if quick:
            X, y = X[:1500], y[:1500]
        found: dict[str, list[tuple[float, float]]] = {}
        paired: list[dict[str, float]] = []
        for repeat in range(1 if quick else 3):
            order = np.random.default_rng(seed + repeat).permutation(len(y))
            for line, size, error, group in _runs(kernel, etas, X[order], y[order], seed + repeat):
                found.setdefault(line, []).append((size, error))
                if group is not None:
                    paired.append(group)
        panels[data] = found
        outcome.tables.append((data, ["learner", "stored points", "online error"], _rows(found, len(etas))))
        outcome.claims += _claims(data, found, paired)
    outcome.figures.append((_picture(panels), "online error against stored points, a dot a permutation"))
    return outcome


def _runs(
    kernel: str, etas: tuple[float, ...], X: Any, y: Any, seed: int
) -> Iterator[tuple[str, int, float, dict[str, float] | None]]:
    """(learner, stored points, error), and at each tolerance the errors of all that have the same size."""
    yield "Perceptron", *_run(f"perceptron({kernel})", X, y, seed), None
    yield "PA-I", *_run(f"passive_aggressive({kernel}, C=1.0)", X, y, seed), None
    for eta in etas:
        text = f"projectron_pp({kernel}, tolerance={float(np.sqrt(eta))!r}, squared=True)"
        size, error = _run(text, X, y, seed)
        yield "Projectron++", size, error, None
        rbp = _run(f"random_budget_perceptron({kernel}, size={size})", X, y, seed)
        yield "RBP", *rbp, None
        forgetron = _run(f"forgetron({kernel}, size={size})", X, y, seed)
        yield "Forgetron", *forgetron, {"Projectron++": error, "RBP": rbp[1], "Forgetron": forgetron[1]}


def _run(text: str, X: Any, y: Any, seed: int) -> tuple[int, float]:
    model = parse(text, seed=seed)
    scores = model.prequential(X, y, classes=[-1, 1])
    return int(model.n_support_), float(np.mean(y * scores <= 0))


def _rows(found: dict[str, list[tuple[float, float]]], settings: int) -> list[list[str]]:
    """Means over the permutations, one row a tolerance."""
    rows = []
    for line, pairs in found.items():
        each = settings if line not in ("Perceptron", "PA-I") else 1
        for place in range(each):
            size, error = np.mean(pairs[place::each], axis=0)
            rows.append([line, f"{size:.0f}", f"{100 * error:.2f} %"])
    return rows


def _claims(data: str, found: dict[str, list[tuple[float, float]]], paired: list[dict[str, float]]) -> list[Claim]:
    claims = [
        fewer(
            f"{data}: Projectron++ errs less than {rival} of the same size",
            [group["Projectron++"] for group in paired],
            [group[rival] for group in paired],
        )
        for rival in ("RBP", "Forgetron")
    ]
    # Each tolerance comes once a permutation; the best one is that with the lowest mean error.
    runs = len(found["Perceptron"])
    tolerances = np.array(found["Projectron++"]).reshape(runs, -1, 2)
    best = tolerances[:, tolerances[:, :, 1].mean(axis=0).argmin()]
    plain = np.array(found["Perceptron"])
    sizes = f"with {best[:, 0].mean():.0f} points against {plain[:, 0].mean():.0f}"
    says = f"{data}: at its best tolerance Projectron++ errs less than the Perceptron, {sizes}"
    return [*claims, fewer(says, best[:, 1], plain[:, 1])]


def _picture(panels: dict[str, dict[str, list[tuple[float, float]]]]) -> Any:
    from ..evaluate.displays import COLOURS, _tidy, pyplot

    figure, axes = pyplot().subplots(
        1, len(panels), figsize=(5.2 * len(panels), 3.8), layout="constrained", squeeze=False
    )
    for ax, (data, found) in zip(axes[0], panels.items(), strict=True):
        for colour, (line, pairs) in zip(COLOURS, found.items(), strict=False):
            sizes, errors = zip(*sorted(pairs), strict=True)
            ax.plot(sizes, errors, "o", color=colour, label=line, markersize=5)
        ax.set(xlabel="stored points", ylabel="online error", xscale="log", title=data)
        ax.legend(frameon=False)
        _tidy(ax)
    return figure
