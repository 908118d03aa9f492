"""Pairwise learning against NumPy and against the bare products; all numbers are ratios within this run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gristmill import Gaussian, PairwiseAUC, PairwiseMetric, ReservoirX

from .measure import best, show


def stream(count: int, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, width)) / np.sqrt(width)
    y = np.where(X @ rng.normal(size=width) + 0.5 * rng.normal(size=count) > 0, 1, -1)
    return X, y


def pair_by_pair(X: np.ndarray, y: np.ndarray, size: int, rate: float) -> np.ndarray:
    """Algorithm 8 as it is printed: a loop over events, and over the pairs of each."""
    rng = np.random.default_rng(0)
    w, points, labels = np.zeros(X.shape[1]), [], []
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        gradient = np.zeros_like(w)
        for other, other_label in zip(points, labels, strict=True):
            if other_label != label and label * (w @ (x - other)) < 1:
                gradient -= label * (x - other)
        if points:
            w = w - rate / np.sqrt(t) / len(points) * gradient
        if len(points) < size:
            points.append(x), labels.append(label)
        elif t == size + 1:
            pool, marks = [*points, x], [*labels, label]
            chosen = rng.integers(size + 1, size=size)
            points, labels = [pool[i] for i in chosen], [marks[i] for i in chosen]
        else:
            for slot in np.flatnonzero(rng.random(size) < 1 / t):
                points[slot], labels[slot] = x, label
    return w


def buffer_at_once(X: np.ndarray, y: np.ndarray, size: int, rate: float) -> np.ndarray:
    """The same with one vectorised expression an event."""
    rng = np.random.default_rng(0)
    w, points, labels, filled = np.zeros(X.shape[1]), np.empty((size, X.shape[1])), np.empty(size), 0
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        if filled:
            P, L = points[:filled], labels[:filled]
            active = (label != L) & (label * (w @ x - P @ w) < 1)
            w = w - rate / np.sqrt(t) / filled * label * (active @ P - active.sum() * x)
        if filled < size:
            points[filled], labels[filled] = x, label
            filled += 1
        elif t == size + 1:
            chosen = rng.integers(size + 1, size=size)
            points, labels = np.vstack([points, x])[chosen], np.append(labels, label)[chosen]
        else:
            hit = rng.random(size) < 1 / t
            points[hit], labels[hit] = x, label
    return w


def bare_products(width: int, size: int, events: int) -> float:
    """Seconds an event of the two s x d products alone, P w and g P, by NumPy's BLAS."""
    rng = np.random.default_rng(0)
    P, w, g = rng.normal(size=(size, width)), rng.normal(size=width), rng.normal(size=size)
    out_s, out_d = np.empty(size), np.empty(width)

    def run() -> None:
        for _ in range(events):
            np.dot(P, w, out=out_s)
            np.dot(g, P, out=out_d)

    return best(run) / events


def linear_auc(width: int, size: int = 100) -> dict[str, float]:
    X, y = stream(20_000, width)
    ours = best(lambda: PairwiseAUC(buffer=ReservoirX(size), rate=0.1, random_state=0).fit(X, y)) / len(X)
    # the buffer of the loops shall be full, as ours is: the events that fill it are taken off
    pairs = best(lambda: pair_by_pair(X[: size + 400], y[: size + 400], size, 0.1), 2)
    pairs = (pairs - best(lambda: pair_by_pair(X[:size], y[:size], size, 0.1), 2)) / 400
    vectorised = best(lambda: buffer_at_once(X[:5000], y[:5000], size, 0.1), 2) / 5000
    bare = bare_products(width, size, 5000)
    return {
        "features": width,
        "buffer": size,
        "events per second": 1 / ours,
        "times a NumPy loop over pairs": pairs / ours,
        "times a vectorised NumPy loop": vectorised / ours,
        "share of the bare products' time": ours / bare,
    }


def one_event(width: int, size: int = 100) -> dict[str, float]:
    X, y = stream(20_000, width)
    model = PairwiseAUC(buffer=ReservoirX(size), rate=0.1, random_state=0).fit(X[:200], y[:200])
    rows, labels = list(X), y.tolist()

    def run() -> None:
        for x, label in zip(rows, labels, strict=True):
            model.learn_one(x, label)

    return {"features": width, "learn_one events per second": len(X) / best(run)}


def kernel_auc(width: int = 20, size: int = 100) -> dict[str, float]:
    X, y = stream(6000, width)
    model = PairwiseAUC(Gaussian(1.0), buffer=ReservoirX(size), rate=1.0, random_state=0)
    taken = best(lambda: model.fit(X, y), 2) / len(X)
    rows = Gaussian(1.0)
    bare = best(lambda: rows(X[:512], model.support_vectors_)) / 512
    return {
        "features": width,
        "stored points": model.n_support_,
        "events per second": 1 / taken,
        "times one row of kernel values": taken / bare,
    }


def metric(width: int, size: int = 50) -> dict[str, float]:
    rng = np.random.default_rng(0)
    count = 2000 if width <= 50 else 300
    y = rng.integers(5, size=count)
    X = (rng.normal(size=(count, width)) + rng.normal(size=(5, width))[y]) / np.sqrt(width)
    model = PairwiseMetric(buffer=ReservoirX(size), rate=0.5, init="zero", random_state=0)
    border = best(lambda: model.fit(X, y), 2) / count
    inside = PairwiseMetric(buffer=ReservoirX(size), rate=0.001, random_state=0)
    free = best(lambda: inside.fit(X, y), 2) / count

    def eigenvalues() -> None:
        for _ in range(20):
            np.linalg.eigh(model.metric_)

    solver = best(eigenvalues) / 20
    return {
        "features": width,
        "events per second, on the cone's border": 1 / border,
        "share of events projected": model.n_projections_ / count,
        "events per second, inside the cone": 1 / free,
        "share projected": inside.n_projections_ / count,
        "border: times one eigh of NumPy": border / solver,
    }


def main() -> dict[str, Any]:
    """Run everything, print it, return it."""
    result: dict[str, Any] = {}
    for title, run in (
        ("linear AUC, one pass", lambda: [linear_auc(20), linear_auc(300)]),
        ("linear AUC, one event at a time from Python", lambda: [one_event(20)]),
        ("kernelised AUC, Gaussian, budget 1000", lambda: [kernel_auc()]),
        ("metric, buffer 50", lambda: [metric(d) for d in (10, 25, 50, 100)]),
    ):
        result[title] = run()
        show(title, result[title])
    return result


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
