"""Wild values, heavy tails, jumps and many classes: the learners without settings beside cheap peers.

`python -m benchmarks.robust [events]` prints, for each hard stream, the error over its last sixth and that of the same
stream without the difficulty. The peers are naive Bayes, learned in chunks of 50 events, and boosted trees that are fitted
anew on all events so far, twelve times.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.naive_bayes import GaussianNB

from gristmill import AutoClassifier, AutoRegressor

Floats = npt.NDArray[np.float64]
SEEDS = (0, 1, 2)
REFITS = 12


def curved(events: int, seed: int) -> tuple[Floats, Any]:
    """Two classes by a curve in two of six columns."""
    X = np.random.default_rng(seed).normal(size=(events, 6))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 0.9 > 0).astype(int)


def numbers(events: int, seed: int) -> tuple[Floats, Floats]:
    """The same curve as a target, with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(events, 6))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=events)


def classes(events: int, seed: int, count: int = 200) -> tuple[Floats, Any]:
    """Many classes, a Gaussian cluster each, in twenty columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(count, size=events)
    return rng.normal(size=(count, 20))[y] + 0.7 * rng.normal(size=(events, 20)), y


def wild_value(X: Floats, y: Any) -> tuple[Floats, Any]:
    X = X.copy()
    X[0, 0] = 1e8
    return X, y


def late_wild_value(X: Floats, y: Any) -> tuple[Floats, Any]:
    X = X.copy()
    X[len(X) // 2, 0] = 1e8
    return X, y


def lognormal(X: Floats, y: Any) -> tuple[Floats, Any]:
    return np.exp(3 * X), y


def jump(X: Floats, y: Any) -> tuple[Floats, Any]:
    X = X.copy()
    X[len(X) // 2 :, 0] += 30
    return X, y


def trend(X: Floats, y: Any) -> tuple[Floats, Any]:
    return X + 10 * np.arange(len(X))[:, None] / len(X), y


def wild_target(X: Floats, y: Any) -> tuple[Floats, Any]:
    y = y.copy()
    y[0] = 1e9
    return X, y


def late_wild_target(X: Floats, y: Any) -> tuple[Floats, Any]:
    y = y.copy()
    y[len(y) // 2] = 1e9
    return X, y


def many_wild_targets(X: Floats, y: Any) -> tuple[Floats, Any]:
    y = y.copy()
    y[::100] = 1e9
    return X, y


def as_it_is(X: Floats, y: Any) -> tuple[Floats, Any]:
    return X, y


#: name: how a stream is made, and what makes it hard
LINES: dict[str, tuple[Callable[[int, int], tuple[Floats, Any]], Callable[[Floats, Any], tuple[Floats, Any]]]] = {
    "1e8 in the first row": (curved, wild_value),
    "1e8 in the middle": (curved, late_wild_value),
    "lognormal columns, sigma 3": (curved, lognormal),
    "a column jumps by 30": (curved, jump),
    "columns drift by 10": (curved, trend),
    "a target of 1e9 in the first row": (numbers, wild_target),
    "a target of 1e9 in the middle": (numbers, late_wild_target),
    "1 % of the targets 1e9": (numbers, many_wild_targets),
    "200 classes": (classes, as_it_is),
}


def ours(X: Floats, y: Any) -> Floats:
    """Loss of each event before it is learned."""
    if y.dtype.kind == "f":
        return np.asarray(np.abs(AutoRegressor().prequential(X, y) - y))
    model = AutoClassifier()
    scores = model.prequential(X, y)
    found = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.asarray(model.classes_[found] != y, dtype=float)


def bayes(X: Floats, y: Any) -> Floats:
    model, known, wrong = GaussianNB(), np.unique(y), np.ones(len(y))
    for start in range(0, len(y), 50):
        part = slice(start, start + 50)
        if start:
            wrong[part] = model.predict(X[part]) != y[part]
        model.partial_fit(X[part], y[part], known)
    return wrong


def trees(X: Floats, y: Any) -> Floats:
    is_number = y.dtype.kind == "f"
    step, loss = len(y) // REFITS, np.full(len(y), np.nan)
    for start in range(step, len(y), step):
        part = slice(start, start + step)
        model = HistGradientBoostingRegressor() if is_number else HistGradientBoostingClassifier()
        found = model.fit(X[:start], y[:start]).predict(X[part])
        loss[part] = np.abs(found - y[part]) if is_number else found != y[part]
    return loss


def tail(loss: Floats) -> float:
    """The mean of the last sixth, without the events whose targets are wild."""
    last = loss[-len(loss) // 6 :]
    return float(np.mean(last[last < 1e6]))


def line(name: str, events: int) -> str:
    make, spoil = LINES[name]
    learners: list[Callable[[Floats, Any], Floats]] = [ours]
    if make is not numbers:
        learners.append(bayes)
    if make is not classes:
        learners.append(trees)
    cells, clean, seconds = dict.fromkeys(learners, 0.0), 0.0, 0.0
    for seed in SEEDS:
        X, y = make(events, seed)
        clean += tail(ours(X, y)) / len(SEEDS)
        X, y = spoil(X, y)
        for learner in learners:
            begin = time.process_time()
            cells[learner] += tail(learner(X, y)) / len(SEEDS)
            seconds += (time.process_time() - begin) / len(SEEDS) if learner is ours else 0.0
    shown = "".join(f"{cells[learner]:12.3f}" if learner in cells else f"{'':>12s}" for learner in (ours, bayes, trees))
    return f"{name:36s}{clean:12.3f}{shown}{1e6 * seconds / events:12.0f}"


def main(events: int = 6_000) -> None:
    warnings.filterwarnings("ignore")
    print(f"{'':36s}{'clean':>12s}{'ours':>12s}{'naive Bayes':>12s}{'trees':>12s}{'us/event':>12s}")
    for name in LINES:
        print(line(name, 2 * events if LINES[name][0] is classes else events), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
