"""Projectron, figure 8 (a, b): error against size of the support set, over a range of tolerances.

The other panels of figure 8 and figure 9 are measured and judged by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import datasets

from . import Claim, Outcome, fewer
from .mistakes import follow
from .search import Axis, search

#: learner -> (repeat, tolerance, (stored points, error)); the Perceptron and PA-I have one "tolerance"
Found = dict[str, npt.NDArray[np.float64]]

#: learners of a fixed size, which get as many points as Projectron++ ended with
BINARY = {
    "RBP": "random_budget_perceptron({k}, size={B})",
    "Forgetron": "forgetron({k}, size={B})",
}
#: data set -> kernel, and the squared tolerances (eta) that are tried; the paper does not list its own
_SETTINGS = {
    "ijcnn1": ("Gaussian(8.0)", (0.1, 0.2, 0.4, 0.6)),
    "a9a": ("Gaussian(0.04)", (0.05, 0.1, 0.2, 0.4)),
}
RULES = (
    "Projectron++ with the published (squared) margin step; rivals of a fixed size get the size of Projectron++ "
    "at each tolerance, and errors are compared as means over all tolerances."
)


@dataclass(frozen=True)
class Panel:
    """One data set with all that is run on it."""

    data: str
    kernel: str
    etas: tuple[float, ...]
    X: Any
    y: Any
    rivals: dict[str, str]


def run(name: str, quick: bool, seed: int) -> Outcome:
    """Projectron++ at every tolerance; the others at the sizes that it ended with."""
    repeats = 1 if quick else 3
    outcome = Outcome("Projectron, figure 8 a, b: error against stored points", f"{repeats} permutations; {RULES}")
    panels = []
    for data, (kernel, etas) in _SETTINGS.items():
        X, y = datasets.load(data).arrays()
        if quick:
            X, y = X[:1500], y[:1500]
        panels.append(Panel(data, kernel, etas, X, y, BINARY))
    compare(outcome, panels, repeats, seed)
    return outcome


def compare(outcome: Outcome, panels: list[Panel], repeats: int, seed: int) -> None:
    """Run every panel; add its table and claims, and the picture of all."""
    shown = {}
    for panel in panels:
        found = measure(panel, repeats, seed)
        outcome.tables.append((panel.data, ["learner", "eta", "stored points", "online error"], _rows(panel, found)))
        outcome.claims += _claims(panel, found, seed)
        shown[panel.data] = found
    outcome.figures.append((_picture(shown), "online error against stored points, a dot a permutation"))


def measure(panel: Panel, repeats: int, seed: int) -> Found:
    """(stored points, error) of every learner, on each permutation and at each tolerance."""
    found: dict[str, list[list[tuple[int, float]]]] = {}
    for repeat in range(repeats):
        X, y = _permuted(panel, seed + repeat)
        for line, text in {
            "Perceptron": f"perceptron({panel.kernel})",
            "PA-I": f"passive_aggressive({panel.kernel}, C=1.0)",
        }.items():
            found.setdefault(line, []).append([_run(text, X, y, seed + repeat)])
        ours = [_run(_projectron(panel, eta), X, y, seed + repeat) for eta in panel.etas]
        found.setdefault("Projectron++", []).append(ours)
        for line, text in panel.rivals.items():
            texts = [text.replace("{k}", panel.kernel).replace("{B}", str(size)) for size, _ in ours]
            found.setdefault(line, []).append([_run(filled, X, y, seed + repeat) for filled in texts])
    return {line: np.array(runs) for line, runs in found.items()}


def _projectron(panel: Panel, eta: float) -> str:
    # The paper's numbers fit a test of the squared residual against eta; our tolerance bounds the residual.
    return f"projectron_pp({panel.kernel}, tolerance={float(np.sqrt(eta))!r}, squared=True)"


def _permuted(panel: Panel, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(len(panel.y))
    return panel.X[order], panel.y[order]


def _run(text: str, X: Any, y: Any, seed: int) -> tuple[int, float]:
    wrong, model = follow(text, X, y, seed)
    return int(model.n_support_), float(np.mean(wrong))


def _rows(panel: Panel, found: Found) -> list[list[str]]:
    """Means over the permutations, one row a tolerance."""
    return [
        [line, f"{eta:g}" if len(means) > 1 else "-", f"{size:.0f}", f"{100 * error:.2f} %"]
        for line, means in ((line, runs.mean(axis=0)) for line, runs in found.items())
        for eta, (size, error) in zip(panel.etas, means, strict=False)
    ]


def _claims(panel: Panel, found: Found, seed: int) -> list[Claim]:
    errors = {line: runs[:, :, 1].mean(axis=1) for line, runs in found.items()}
    return [
        *(
            fewer(f"{panel.data}: Projectron++ errs less than {rival} of the same size", errors["Projectron++"], other)
            for rival, other in errors.items()
            if rival in panel.rivals
        ),
        _beats_the_perceptron(panel, found, seed),
    ]


def _beats_the_perceptron(panel: Panel, found: Found, seed: int) -> Claim:
    """The paper sees a point with fewer errors and fewer points; the tolerance is chosen where nothing is counted."""
    X, y = _permuted(panel, seed + 10_000)
    largest, _ = _run(f"perceptron({panel.kernel})", X, y, seed)

    def error(eta: float) -> float:
        size, wrong = _run(_projectron(panel, eta), X, y, seed)
        return wrong if size < largest else np.inf

    best = search({"eta": Axis(panel.etas, most=1.0)}, error)
    if np.isinf(best.cost):
        says = f"{panel.data}: some tolerance stores fewer points than the Perceptron and errs less"
        return Claim(says, "-", "none of them stores fewer", False)
    eta = best.values["eta"]
    ours, plain = _at(panel, found, eta, seed), found["Perceptron"][:, 0]
    sizes = f"{ours[:, 0].mean():.0f} points against {plain[:, 0].mean():.0f}"
    says = f"{panel.data}: Projectron++ errs less than the Perceptron with fewer points"
    says += f" (at eta = {eta:g}, chosen on a permutation that is not counted; {sizes})"
    return fewer(says, ours[:, 1], plain[:, 1])


def _at(panel: Panel, found: Found, eta: float, seed: int) -> Any:
    """(stored points, error) of Projectron++ on each counted permutation; a tolerance beyond those drawn is run now."""
    if eta in panel.etas:
        return found["Projectron++"][:, panel.etas.index(eta)]
    repeats = len(found["Projectron++"])
    return np.array([_run(_projectron(panel, eta), *_permuted(panel, seed + r), seed + r) for r in range(repeats)])


def _picture(panels: dict[str, Found]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(
        1, len(panels), figsize=(5.2 * len(panels), 3.8), layout="constrained", squeeze=False
    )
    for ax, (data, found) in zip(axes[0], panels.items(), strict=True):
        for colour, (line, runs) in zip(COLOURS, found.items(), strict=False):
            sizes, errors = runs.reshape(-1, 2).T
            # The Perceptron is where the curves end: a square of its own, above the dots, keeps it in sight.
            single = runs.shape[1] == 1
            look = {"marker": "s", "markersize": 7, "zorder": 4} if single else {"marker": "o", "markersize": 4}
            ax.plot(sizes, errors, linestyle="", color=colour, label=line, **look)
            ax.plot(*runs.mean(axis=0).T, "-", color=colour, linewidth=1.0)
        ax.set(xlabel="stored points", ylabel="online error", xscale="log", title=data)
        ax.legend(frameon=False)
        _sizes(ax)
        tidy(ax)
    return figure


def _sizes(ax: Any) -> None:
    """Plain numbers along a logarithmic axis, whether it spans one decade or four."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
