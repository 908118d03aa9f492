"""Thesis, figures 6.1 to 6.3: test AUC against buffer size, OLP with RS-x beside OAM_gra with RS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from gristmill.pairwise import OAM, PairwiseAUC, ReservoirX

from . import Claim, Outcome, fewer
from .search import Axis, search
from .thesis import arrays, hold_out, split

#: those of the thesis' sets that are to be had, by figure. The text does not name the four sets of figure 6.1,
#: so the last two stand for it: large and unbalanced, and with many features.
FIGURES = {
    "thesis-figure-6.2": ("fourclass", "heart", "diabetes", "breast-cancer", "ionosphere", "german"),
    "thesis-figure-6.3": ("svmguide1", "cod-rna", "a9a"),
}
MORE = ("ijcnn1", "spambase")
SETS = (*(name for names in FIGURES.values() for name in names), *MORE)

_SIZES = (4, 10, 20, 50, 100, 200)
_SMALL = 10  # what counts as a small buffer in the verdicts; the thesis does not say
_NEAR = 0.01  # how much AUC a competitive learner may lose; the thesis does not say
_MOST = 20_000
_LINES = ("OLP", "OLP, averaged", "OAM_gra")
_OURS = _LINES[:2]

_SETTING = (
    "{splits} random splits (the thesis: 5), 60 % of the points to train (at most {most:,}), z-scores, one pass, "
    "hinge; "
    "the rate of every learner at every buffer size by a hold-out fifth of the training part, over decades. "
    "OLP with RS-x, its last hypothesis and its average; "
    "OAM_gra with two RS halves. "
    f"Small buffers: up to {_SMALL} points; competitive: at most {_NEAR} of AUC below. "
    "The thesis draws curves and prints no numbers."
)

Curves = dict[str, Any]  # learner -> AUC, one row a split, one column a buffer size


def run(name: str, quick: bool, seed: int) -> Outcome:
    """All sets of the figure; the same splits, hence the same numbers, whichever figure is asked for."""
    sets = FIGURES.get(name, SETS)
    sizes, splits, most = (_SIZES[::3], 2, 150) if quick else (_SIZES, 20, _MOST)
    which = f"figure {name.removeprefix('thesis-figure-')}" if name in FIGURES else "figures 6.1 to 6.3"
    outcome = Outcome(f"Thesis, {which}: AUC against buffer size", _SETTING.format(splits=splits, most=most))
    panels: dict[str, tuple[str, Curves, dict[str, list[float]]]] = {}
    for data in sets:
        X, y = arrays(data)
        if quick:
            X, y = X[:400], y[:400]
        title = f"{data} ({min(int(0.6 * len(X)), most):,} x {X.shape[1]})"
        panels[data] = (title, *_measure(X, y, sizes, range(seed, seed + splits), most, 3 if quick else 1))
    outcome.tables.append(_aucs(panels, sizes))
    outcome.tables.append(_verdicts(panels, sizes))
    outcome.claims = _claims(panels, sizes)
    outcome.figures.append((_picture(panels, sizes), "test AUC, mean and standard deviation over the splits"))
    return outcome


# ---- measuring -------------------------------------------------------------------------------------------


def _measure(
    X: Any, y: Any, sizes: tuple[int, ...], seeds: Iterable[int], most: int, stride: int
) -> tuple[Curves, dict[str, list[float]]]:
    """AUC of every learner by split and buffer size, and of the batch learners by split."""
    found: dict[str, list[list[float]]] = {line: [] for line in _LINES}
    batch: dict[str, list[float]] = {}
    for seed in seeds:
        parts = split(X, y, seed, most)
        for line in _LINES:
            found[line].append([_tuned(*_family(line, size, seed, stride), *parts) for size in sizes])
        for line, value in _batch(*parts).items():
            batch.setdefault(line, []).append(value)
    return {line: np.array(values) for line, values in found.items()}, batch


def _family(line: str, size: int, seed: int, stride: int) -> tuple[Callable[[float], Any], Axis]:
    """A learner by its rate, and the grid of that; OAM sums over pairs where OLP takes their mean."""
    if line == "OAM_gra":
        return partial(_oam, size, seed), Axis(tuple(10.0**k for k in range(-6, 1, stride)))
    return partial(_olp, size, seed, line != "OLP"), Axis(tuple(10.0**k for k in range(-3, 3, stride)))


def _olp(size: int, seed: int, average: bool, rate: float) -> PairwiseAUC:
    return PairwiseAUC(buffer=ReservoirX(size), rate=rate, average=average, random_state=seed)


def _oam(size: int, seed: int, C: float) -> OAM:
    return OAM("gra", C=C, size=size, random_state=seed)


def _tuned(make: Callable[[float], Any], grid: Axis, X: Any, y: Any, test: Any, test_y: Any) -> float:
    """Test AUC at the rate that is best on the hold-out, learned again from all of the training part."""
    cut = hold_out(len(X))

    def lost(rate: float) -> float:
        return 1 - _auc(make(rate).fit(X[:cut], y[:cut]), X[cut:], y[cut:])

    return _auc(make(search({"rate": grid}, lost).values["rate"]).fit(X, y), test, test_y)


def _batch(X: Any, y: Any, test: Any, test_y: Any) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    return {
        "LogisticRegression": _auc(LogisticRegression(max_iter=1000).fit(X, y), test, test_y),
        "LinearSVC": _auc(LinearSVC(C=0.1, dual=False).fit(X, y), test, test_y),
    }


def _auc(model: Any, X: Any, y: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y == model.classes_[1], model.decision_function(X)))


# ---- judging ---------------------------------------------------------------------------------------------


def _small(curves: Curves, line: str, sizes: tuple[int, ...]) -> Any:
    """1 - AUC of each split, mean over the small buffers."""
    return 1 - curves[line][:, np.array(sizes) <= _SMALL].mean(axis=1)


def _competitive(ours: Any, rival: Any) -> bool | None:
    """Whether less than `_NEAR` of AUC is lost over all sizes; None within two standard errors of that."""
    lost = (rival - ours).mean(axis=1) - _NEAR
    error = 2 * lost.std(ddof=1) / np.sqrt(len(lost))
    return None if abs(lost.mean()) <= error else bool(lost.mean() < 0)


def _most(says: str, verdicts: list[bool | None]) -> Claim:
    """The claim about most sets, from what was found on each."""
    yes, no = verdicts.count(True), verdicts.count(False)
    holds = True if 2 * yes > len(verdicts) else False if 2 * no >= len(verdicts) else None
    ours = f"holds on {yes}, does not hold on {no}, cannot tell on {verdicts.count(None)} of {len(verdicts)}"
    return Claim(says, "by eye", ours, holds)


def _judged(panels: dict[str, Any], line: str, sizes: tuple[int, ...]) -> list[tuple[bool | None, Claim]]:
    """Of each set: is the learner competitive, and does it rank better than OAM_gra with a small buffer?"""
    return [
        (
            _competitive(curves[line], curves["OAM_gra"]),
            fewer(data, _small(curves, line, sizes), _small(curves, "OAM_gra", sizes)),
        )
        for data, (_, curves, _) in panels.items()
    ]


def _claims(panels: dict[str, Any], sizes: tuple[int, ...]) -> list[Claim]:
    claims = []
    for line in _OURS:
        judged = _judged(panels, line, sizes)
        claims.append(_most(f"{line}: competitive with OAM_gra on most sets", [near for near, _ in judged]))
        better = f"{line}: better than OAM_gra with small buffers"
        claims.append(_most(f"{better} on most sets", [claim.holds for _, claim in judged]))
        ours, rival = (
            [float(np.mean(_small(curves, who, sizes))) for _, curves, _ in panels.values()]
            for who in (line, "OAM_gra")
        )
        claims.append(fewer(f"{better}, 1 - AUC over the sets together (paired by set)", ours, rival, "by eye"))
    return claims


# ---- showing ---------------------------------------------------------------------------------------------


def _shown(values: Any) -> str:
    return f"{np.mean(values):.4f} +- {np.std(values):.4f}"


def _aucs(panels: dict[str, Any], sizes: tuple[int, ...]) -> tuple[str, list[str], list[list[str]]]:
    heads = ["data (trained on)", "learner", *(f"s = {size}" for size in sizes)]
    lines = []
    for title, curves, batch in panels.values():
        for place, line in enumerate(_LINES):
            cells = [_shown(curves[line][:, k]) for k in range(len(sizes))]
            lines.append([title if not place else "", line, *cells])
        lines += [["", f"{line}, batch", _shown(values), *[""] * (len(sizes) - 1)] for line, values in batch.items()]
    return "Test AUC, mean and standard deviation", heads, lines


def _verdicts(panels: dict[str, Any], sizes: tuple[int, ...]) -> tuple[str, list[str], list[list[str]]]:
    heads = ["data", *(f"{line}: {what}" for line in _OURS for what in ("competitive", "better with small buffers"))]
    columns = []
    for line in _OURS:
        judged = _judged(panels, line, sizes)
        columns += [
            [Claim("", "", "", near).verdict for near, _ in judged],
            [claim.verdict for _, claim in judged],
        ]
    return "Set by set, against OAM_gra", heads, [list(row) for row in zip(panels, *columns, strict=True)]


def _picture(panels: dict[str, Any], sizes: tuple[int, ...]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    across = min(4, len(panels) + 1)
    down = -(-(len(panels) + 1) // across)  # one place is the legend's
    figure, axes = pyplot().subplots(
        down, across, figsize=(3.5 * across, 2.9 * down), layout="constrained", squeeze=False
    )
    for ax, (title, curves, batch) in zip(axes.flat, panels.values(), strict=False):
        for place, (line, marker) in enumerate(zip(_LINES, "os^", strict=True)):
            beside = np.array(sizes) * 1.06 ** (place - 1)  # so that the bars can be told apart
            mean, spread = curves[line].mean(axis=0), curves[line].std(axis=0)
            ax.errorbar(
                beside, mean, spread, marker=marker, capsize=2, label=line, linewidth=1.3, markersize=4,
                color=COLOURS[place],
            )  # fmt: skip
        level = float(np.mean(batch["LogisticRegression"]))
        ax.axhline(level, color="gray", linestyle="--", linewidth=1, label="LogisticRegression, batch")
        ax.set(title=title, xscale="log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        tidy(ax)
    figure.supylabel("test AUC", fontsize=11)
    figure.supxlabel("points in the buffer", fontsize=11)
    free = list(axes.flat)[len(panels) :]
    for ax in free:
        ax.set_axis_off()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    free[-1].legend(handles, labels, loc="center", frameon=False, fontsize=11)
    return figure
