"""Projectron, figures 8 and 9: error against size of the support set, over a range of tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import datasets
from ..notation import parse
from . import Claim, Outcome, fewer

#: target -> for each data set: kernel, and the squared tolerances (the eta of the paper) that are tried
_SETTINGS: dict[str, dict[str, tuple[str, tuple[float, ...]]]] = {
    "projectron-8": {
        "a9a": ("Gaussian(0.04)", (0.05, 0.1, 0.2, 0.4)),
        "ijcnn1": ("Gaussian(8.0)", (0.1, 0.2, 0.4, 0.6)),
    },
    # A normalised kernel, so that one range of tolerances means the same on every image. A point enters for
    # two classes at once, so its squared residual goes up to 2.
    "projectron-9": {"usps": ("Normalized(Polynomial(13, 1.0, 1.0))", (1.4, 1.6, 1.8, 1.9))},
}


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Projectron++ at every tolerance; the others at the sizes that it ended with."""
    outcome = Outcome(
        f"Projectron, figure {name[-1]}: error against stored points",
        f"{1 if quick else 3} permutations; Projectron++ with the published (squared) margin step; random "
        "budget Perceptron (and Forgetron where there are two classes) at the sizes of Projectron++.",
    )
    panels = {}
    for data, (kernel, etas) in _SETTINGS[name].items():
        X, y = datasets.load(data).arrays()
        if quick:
            X, y = X[:1500], y[:1500]
        binary = len(np.unique(y)) == 2
        found: dict[str, list[tuple[float, float]]] = {}
        paired: list[dict[str, float]] = []
        for repeat in range(1 if quick else 3):
            order = np.random.default_rng(seed + repeat).permutation(len(y))
            for line, size, error, group in _runs(kernel, etas, binary, X[order], y[order], seed + repeat):
                found.setdefault(line, []).append((size, error))
                if group is not None:
                    paired.append(group)
        panels[data] = found
        outcome.tables.append((data, ["learner", "stored points", "online error"], _rows(found, len(etas))))
        outcome.claims += _claims(data, found, paired, binary)
    outcome.figures.append((_picture(panels), "online error against stored points, a dot a permutation"))
    return outcome


def _runs(
    kernel: str, etas: tuple[float, ...], binary: bool, X: Any, y: Any, seed: int
) -> Iterator[tuple[str, int, float, dict[str, float] | None]]:
    """(learner, stored points, error), and at each tolerance the errors of all that have the same size."""
    for line, text in (
        ("Perceptron", f"perceptron({kernel})"),
        ("PA-I", f"passive_aggressive({kernel}, C=1.0)"),
    ):
        yield (line, *_run(text, X, y, seed), None)
    for eta in etas:
        size, error = _run(
            f"projectron_pp({kernel}, tolerance={float(np.sqrt(eta))!r}, squared=True)", X, y, seed
        )
        group = {"Projectron++": error}
        yield "Projectron++", size, error, None
        rivals = {"RBP": f"random_budget_perceptron({kernel}, size={size})"}
        if binary:
            rivals["Forgetron"] = f"forgetron({kernel}, size={size})"
        for line, text in rivals.items():
            stored, group[line] = _run(text, X, y, seed)
            yield line, stored, group[line], group if line == list(rivals)[-1] else None


def _run(text: str, X: Any, y: Any, seed: int) -> tuple[int, float]:
    model = parse(text, seed=seed)
    classes = np.unique(y)
    scores = model.prequential(X, y, classes=classes)
    if scores.ndim == 1:
        wrong = np.where(y == classes[1], 1, -1) * scores <= 0
    else:
        own = scores[np.arange(len(y)), np.searchsorted(classes, y)]
        rivals = np.where(classes[None, :] == y[:, None], -np.inf, scores)
        wrong = own <= rivals.max(axis=1)
    return int(model.n_support_), float(wrong.mean())


def _rows(found: dict[str, list[tuple[float, float]]], settings: int) -> list[list[str]]:
    """Means over the permutations, one row a tolerance."""
    rows = []
    for line, pairs in found.items():
        each = settings if line not in ("Perceptron", "PA-I") else 1
        for place in range(each):
            size, error = np.mean(pairs[place::each], axis=0)
            rows.append([line, f"{size:.0f}", f"{100 * error:.2f} %"])
    return rows


def _claims(
    data: str, found: dict[str, list[tuple[float, float]]], paired: list[dict[str, float]], binary: bool
) -> list[Claim]:
    claims = [
        fewer(
            f"{data}: Projectron++ errs less than {rival} of the same size",
            [group["Projectron++"] for group in paired],
            [group[rival] for group in paired],
        )
        for rival in (("RBP", "Forgetron") if binary else ("RBP",))
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
