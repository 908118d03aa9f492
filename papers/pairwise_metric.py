"""Nearest neighbours before and after online metric learning: the loss of the thesis, section 6.6.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from gristmill import datasets
from gristmill.pairwise import PairwiseMetric

from . import Claim, Outcome
from .search import Axis, few, search
from .thesis import hold_out

_RATES = Axis((0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0))
_DISTANCES = Axis((2.0, 8.0))  # mean squared distances to begin with; 2 is where pairs of two classes cease to push
_NEIGHBOURS = Axis((1.0, 3.0), least=1.0)
_KEPT = (100, 500, None)  # points that the neighbours are looked for among; None: the whole training part
_LINES = ("Euclid", "PairwiseMetric", "LDA, batch")

_SETTING = (
    "{runs} orders of the training part, one pass of PairwiseMetric(init='identity') with its 50 points of buffer; inputs "
    "centred, with a mean squared distance of 2 or 8 to begin with (more or less where "
    "that is better). usps: 40 principal components, the official test part; "
    "digits: the first 1,200 of scikit-learn's digits, tested on the rest; with noise: 40 columns of noise beside them. "
    "Neighbours are looked for among the first 100, 500 or all points of the stream. Rate, scale and number of neighbours "
    "(1, 3 or more) by a hold-out fifth, for Euclid too. LDA (batch) stands beside them. The thesis has the loss but no "
    "experiment. Standard errors are over runs and test points together."
)

Parts = tuple[Any, Any, Any, Any]
Families = dict[str, tuple[Callable[..., Any], dict[str, Axis]]]  # learner -> linear map of X, y; what it is tuned by
Errors = dict[str, Any]  # learner -> whether it erred, one row a run, one column a test point


def run(name: str, quick: bool, seed: int) -> Outcome:
    """A fixed test part; the runs differ in the order of the stream, and so in the points that are kept."""
    runs, kept = (2, _KEPT[::2]) if quick else (5, _KEPT)
    outcome = Outcome("Online metric learning for nearest neighbours", _SETTING.format(runs=runs))
    found: dict[str, dict[str, Errors]] = {}
    for data in ("usps", "digits", "digits and noise"):
        table: dict[str, dict[str, list[Any]]] = {}
        for repeat in range(runs):
            parts = _parts(data, seed + repeat, quick)
            for count, line, errors in _errors(parts, kept, _families(seed + repeat, quick), quick):
                table.setdefault(_label(count), {}).setdefault(line, []).append(errors)
        found[data] = {label: {line: np.array(rows) for line, rows in lines.items()} for label, lines in table.items()}
    heads = ["data", "points kept", *_LINES]
    rows = [
        [data, label, *(f"{1 - lines[line].mean():.4f}" for line in _LINES)]
        for data, table_ in found.items()
        for label, lines in table_.items()
    ]
    outcome.tables.append(("Test accuracy of nearest neighbours", heads, rows))
    outcome.claims = [
        _better(f"{data}, {label} points kept: the learned metric errs less than Euclid's", lines)
        for data, table_ in found.items()
        for label, lines in table_.items()
    ]
    outcome.figures.append((_picture(found), "test accuracy of nearest neighbours by the points they are among"))
    return outcome


def _label(count: int | None) -> str:
    return "all" if count is None else f"{count}"


# ---- the data --------------------------------------------------------------------------------------------


def _parts(data: str, seed: int, quick: bool) -> Parts:
    """Training part in random order and test part, centred; the mean squared distance of two points is 2."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(seed)
    if data == "usps":
        (X, y), (test, test_y) = datasets.load("usps").arrays(), datasets.load("usps.t").arrays()
        shadow = PCA(40, random_state=0).fit(X)
        X, test = shadow.transform(X), shadow.transform(test)
    else:
        images, labels = load_digits(return_X_y=True)
        if data != "digits":
            images = np.hstack([images, 0.7 * 16 * rng.normal(size=(len(images), 40))])
        X, y, test, test_y = images[:1200], labels[:1200], images[1200:], labels[1200:]
    order = rng.permutation(len(X))[: 200 if quick else None]
    X, y = X[order], y[order]
    if quick:
        test, test_y = test[:60], test_y[:60]
    mean = X.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum((X - mean) ** 2, axis=1)))
    return (X - mean) / scale, y, (test - mean) / scale, test_y


# ---- measuring -------------------------------------------------------------------------------------------


def _errors(
    parts: Parts, kept: tuple[int | None, ...], families: Families, quick: bool
) -> Iterator[tuple[int | None, str, Any]]:
    """(points kept, learner, errors on the test part) with rate and neighbours from the hold-out."""
    X, y, _, _ = parts
    cut = hold_out(len(X))
    held = (X[:cut], y[:cut], X[cut:], y[cut:])
    for line, (make, axes) in families.items():
        tried: dict[tuple[float, ...], Any] = {}
        learned: dict[tuple[float, ...], Any] = {}  # again from the whole training part, those that were chosen
        for count in kept:
            grid = {**axes, "neighbours": _NEIGHBOURS}
            best = search(grid, _held_out(held, make, tried, count), quick).values
            neighbours = int(best.pop("neighbours"))
            key = tuple(best.values())
            if key not in learned:
                learned[key] = make(X, y, **best)
            yield count, line, _misses(parts, learned[key], count, neighbours)


def _held_out(
    held: Parts, make: Callable[..., Any], tried: dict[tuple[float, ...], Any], count: int | None
) -> Callable[..., float]:
    """The share of errors on the hold-out, by parameters; a map that was made before is not made again."""

    def missed(neighbours: float, **values: float) -> float:
        key = tuple(values.values())
        if key not in tried:
            tried[key] = make(*held[:2], **values)
        return float(_misses(held, tried[key], count, int(neighbours)).mean())

    return missed


def _families(seed: int, quick: bool) -> Families:
    """Of each line a maker of the linear map before Euclid's distance, and what the hold-out chooses among."""
    tuning = {"distance": _DISTANCES, "rate": few(_RATES) if quick else _RATES}
    return {
        "Euclid": (lambda X, y: np.eye(X.shape[1]), {}),
        "PairwiseMetric": (partial(_metric, seed), tuning),
        "LDA, batch": (_discriminants, {}),
    }


def _metric(seed: int, X: Any, y: Any, distance: float, rate: float) -> Any:
    scaled = X * np.sqrt(distance / 2)
    return PairwiseMetric(rate=rate, init="identity", random_state=seed).fit(scaled, y).components_.T


def _discriminants(X: Any, y: Any) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis().fit(X, y).scalings_[:, : len(np.unique(y)) - 1]


def _misses(parts: Parts, linear: Any, count: int | None, neighbours: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    X, y, test, test_y = parts
    model = KNeighborsClassifier(neighbours).fit(X[:count] @ linear, y[:count])
    return (model.predict(test @ linear) != test_y).astype(float)


# ---- judging and showing ---------------------------------------------------------------------------------


def _better(says: str, errors: Errors) -> Claim:
    """The learned metric errs less; the runs share their test points, so both scatters count."""
    before, after = errors["Euclid"], errors["PairwiseMetric"]
    gap = before - after
    error = float(np.hypot(_standard_error(gap.mean(axis=0)), _standard_error(gap.mean(axis=1))))
    holds = None if abs(gap.mean()) <= 2 * error else bool(gap.mean() > 0)
    spread = f"difference {gap.mean():.3g} with standard error {error:.2g}"
    return Claim(says, "-", f"error {after.mean():.4f} against {before.mean():.4f}, {spread}", holds)


def _standard_error(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _picture(found: dict[str, dict[str, Errors]]) -> Any:
    from .drawing import COLOURS, pyplot, tidy

    figure, axes = pyplot().subplots(1, len(found), figsize=(3.9 * len(found), 3.6), layout="constrained")
    for ax, (data, table) in zip(axes, found.items(), strict=True):
        places = np.arange(len(table))
        for number, (line, colour) in enumerate(zip(_LINES, COLOURS, strict=False)):
            runs = [1 - errors[line].mean(axis=1) for errors in table.values()]
            means, spreads = [r.mean() for r in runs], [r.std() for r in runs]
            ax.errorbar(
                places + 0.06 * (number - 1), means, spreads, marker="os^"[number], capsize=3, color=colour, label=line,
                linewidth=1.3,
            )  # fmt: skip
        ax.set_xticks(places, list(table))
        ax.set(title=data, xlabel="points kept")
        ax.margins(x=0.1)
        tidy(ax)
    axes[0].set_ylabel("test accuracy of nearest neighbours")
    axes[0].legend(frameon=False, loc="lower right")
    return figure
