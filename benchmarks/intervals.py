"""Intervals on streams: coverage at every level, over the whole stream and in windows of 500 events, and widths beside
scikit-learn's GradientBoosting quantiles and River's jackknife: `python -m benchmarks.intervals [events]`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from gristmill import Laplacian, Prepared, passive_aggressive_regressor
from gristmill.river import Regressor

from .data import SEED
from .streams.cases import SOURCES

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
WINDOW = 500
NAMES = ("FriedmanDrift", "cadata", "abalone", "cpusmall", "TrumpApproval", "prices")
SHOWN = 0.9  # the level at which widths are compared


def made(kind: str, events: int) -> Any:
    """Streams whose noise or truth changes: by jumps, by waves, by turns, with heavy tails."""
    rng = np.random.default_rng(SEED)
    X, t = rng.uniform(-2, 2, size=(events, 3)), np.arange(events)
    turn = np.where((t // 2500) % 2 == 0, 1.0, -1.0) if kind == "turns" else 1.0
    truth = turn * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    noise = rng.standard_t(2, size=events) if kind == "heavy tails" else rng.normal(size=events)
    scale = {"jumps": np.where((t // 2500) % 2 == 0, 0.1, 1.0), "waves": 0.3 * np.exp(np.sin(t / 1000))}.get(kind, 0.2)
    return X, truth + scale * noise


def streams(events: int) -> Iterator[tuple[str, Any, Any]]:
    for name in NAMES:
        if SOURCES[name].needs and "GRISTMILL_DATA" not in os.environ:
            print(f"{name}: left out, GRISTMILL_DATA is not set", file=sys.stderr)
            continue
        case = SOURCES[name].case(events)
        yield name, case.X, np.asarray(case.y, dtype=float)
    for kind in ("jumps", "waves", "turns", "heavy tails"):
        yield kind, *made(kind, events)


def learner(columns: int) -> Prepared:
    return Prepared(passive_aggressive_regressor(Laplacian(3 / columns), variant=0, size=1000, random_state=0))


def covered(y: Any, intervals: Any) -> Any:
    return (intervals[:, 0] <= y) & (y <= intervals[:, 1])


def boosted(X: Any, y: Any, half: int) -> Any:
    """Quantiles learned from the first half in one batch."""
    from sklearn.ensemble import GradientBoostingRegressor

    sides = [(1 - SHOWN) / 2, (1 + SHOWN) / 2]
    models = [
        GradientBoostingRegressor(loss="quantile", alpha=side, random_state=0).fit(X[:half], y[:half]) for side in sides
    ]
    return np.stack([model.predict(X[half:]) for model in models], axis=1)


def jackknife(regressor: Any, X: Any, y: Any) -> Any:
    """River's residual quantiles over the last 500 events, each event predicted before it is learned."""
    from river import conf

    model, said = conf.RegressionJackknife(regressor, SHOWN, WINDOW), np.empty((len(y), 2))
    names = [f"c{i}" for i in range(X.shape[1])]
    for i, (x, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        row = dict(zip(names, x, strict=True))
        found = model.predict_one(row, with_interval=True)
        said[i] = (found.lower, found.upper) if hasattr(found, "lower") else (found, found)
        model.learn_one(row, target)
    return said


def linear() -> Any:
    from river import linear_model, preprocessing

    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


def coverages(name: str, X: Any, y: Any) -> None:
    for level in LEVELS:
        inside = covered(y, learner(X.shape[1]).prequential_interval(X, y, level))
        whole = 100 * (inside.mean() - level)
        off = 100 * np.abs(inside[: len(y) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(axis=1) - level)
        print(f"{name:14} {level:6} {whole:+9.2f} {100 * (off <= 4).mean():10.1f} {off.max():9.1f}", flush=True)


def widths(name: str, X: Any, y: Any) -> None:
    half = len(y) // 2
    d = X.shape[1]
    said = {
        "ours": learner(d).prequential_interval(X, y, SHOWN)[half:],
        "jackknife, our learner": jackknife(Regressor(learner(d)), X, y)[half:],
        "jackknife, linear": jackknife(linear(), X, y)[half:],
        "boosted quantiles": boosted(X, y, half),
    }
    unit = np.abs(y[half:] - np.median(y[half:])).mean()
    for title, intervals in said.items():
        inside, width = covered(y[half:], intervals), np.diff(intervals, axis=1).ravel() / unit
        off = 100 * np.abs(inside[: len(inside) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(axis=1) - SHOWN)
        print(f"{name:14} {title:24} {inside.mean():9.3f} {off.max():12.1f} {width.mean():9.3f}", flush=True)


def main(events: int) -> None:
    print(f"{'stream':14} {'level':>6} {'whole off':>9} {'within 4':>10} {'worst off':>9}")
    for name, X, y in streams(events):
        coverages(name, X, y)
    print(f"\n{'stream':14} {'method, second half':24} {'coverage':>9} {'worst window':>12} {'width':>9}")
    for name, X, y in streams(events):
        widths(name, X, y)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
