"""NORMA, figure 3: novel digits of USPS, found in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from gristmill import datasets
from gristmill.catalogue import norma_novelty
from gristmill.kernels import Gaussian

from . import Claim, Outcome

_SHAPE = (16, 16)


def run(name: str, quick: bool, seed: int) -> Outcome:
    """One pass over the training part; the first alarms, and the worst of both parts in the end."""
    X, y = datasets.load("usps").arrays()
    test, test_y = datasets.load("usps.t").arrays()
    if quick:
        X, y = X[:2000], y[:2000]
    nu = 0.01
    # 2 sigma^2 = 0.5 d = 128, so gamma = 1/128; the rate is 1/sqrt(t).
    model = norma_novelty(Gaussian(1 / 128), nu=nu, rate=1.0, schedule="inv_sqrt")
    scores = model.prequential(X)
    first = np.flatnonzero(scores < 0)[:50]
    worst = np.argsort(model.decision_function(X), kind="stable")[:50]
    worst_test = np.argsort(model.decision_function(test), kind="stable")[:50]
    outcome = Outcome(
        "NORMA, figure 3: novel digits of USPS",
        f"One pass over {len(X):,} digits of 16 x 16 grey values, Gaussian kernel with 2 sigma^2 = 128, "
        f"nu = {nu}, rate 1/sqrt(t); {model.n_support_} points stored in the end.",
    )
    sheets = {
        "the first 50 alarms": X[first],
        "the 50 worst of the training part": X[worst],
        "the 50 worst of the test part": test[worst_test],
    }
    outcome.figures.append((_picture(sheets), "left: first alarms; middle and right: the worst in the end"))
    alarms = np.flatnonzero(scores < 0)
    train, held = _outside(X, y, X, y, same=True), _outside(X, y, test, test_y, same=False)
    groups = {
        "all of the training part": list(train),
        "first 25 alarms": [part[alarms[:25]] for part in train],
        "last 25 alarms": [part[alarms[-25:]] for part in train],
        "50 worst of the training part": [part[worst] for part in train],
        "all of the test part": list(held),
        "50 worst of the test part": [part[worst_test] for part in held],
    }
    heads = ["digits", "mean rank of the distance to the nearest other digit", "misread by that digit"]
    rows = [[who, f"{ranks.mean():.2f}", f"{misread.mean():.1%}"] for who, (ranks, misread) in groups.items()]
    outcome.tables.append(("How odd they are, seen from outside the model", heads, rows))
    outcome.claims = _claims(groups, len(alarms) / len(X), nu)
    return outcome


def _claims(groups: dict[str, list[Any]], alarms: float, nu: float) -> list[Claim]:
    """The paper judges by eye. Two outside measures stand in for the eye, and they need not agree."""
    share = Claim("the share of alarms is about nu", f"{nu:.3f}", f"{alarms:.4f}", nu / 2 < alarms < 2 * nu)
    comparisons = [
        ("later alarms are odder than the first", "last 25 alarms", "first 25 alarms"),
        (
            "the worst of the training part are odd",
            "50 worst of the training part",
            "all of the training part",
        ),
        ("the worst of the test part are odd", "50 worst of the test part", "all of the test part"),
    ]
    claims = [share]
    for place, measure in enumerate(("far from every other digit", "misread by its nearest neighbour")):
        for says, left, right in comparisons:
            claims.append(_above(f"{says} ({measure})", groups[left][place], groups[right][place]))
    return claims


def _above(says: str, left: Any, right: Any) -> Claim:
    """The claim that one mean is above another; undecided within two standard errors."""
    gap = float(np.mean(left) - np.mean(right))
    error = float(np.sqrt(np.var(left) / len(left) + np.var(right) / len(right)))
    ours = f"{np.mean(left):.3f} against {np.mean(right):.3f}, standard error {error:.2g}"
    return Claim(says, "by eye", ours, None if abs(gap) <= 2 * error else gap > 0)


def _outside(X: Any, y: Any, queries: Any, labels: Any, same: bool) -> tuple[Any, Any]:
    """Of each digit: the rank in (0, 1] of its distance to the nearest other one, and whether it misreads."""
    from sklearn.neighbors import NearestNeighbors

    finder = NearestNeighbors(n_neighbors=2 if same else 1, algorithm="brute").fit(X)
    distance, nearest = (part[:, -1] for part in finder.kneighbors(queries))
    ranks = (np.argsort(np.argsort(distance, kind="stable"), kind="stable") + 1) / len(distance)
    return ranks, y[nearest] != labels


def _picture(sheets: dict[str, Any]) -> Any:
    from .drawing import pyplot, sheet

    figure, axes = pyplot().subplots(1, len(sheets), figsize=(11.0, 3.0), layout="constrained")
    for ax, (title, images) in zip(axes, sheets.items(), strict=True):
        ax.imshow(sheet(images, _SHAPE, 10), cmap="gray_r")
        ax.set_title(title, fontsize=10)
        ax.set_axis_off()
    return figure
