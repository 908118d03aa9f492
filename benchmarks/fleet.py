"""`python -m benchmarks.fleet`: many learners against a loop, one vectorised exp, OpenCV and River, as ratios of one run."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import gristmill
from gristmill import Fleet, Gaussian, KeyedFleet, ilk_novelty, norma_novelty

from .measure import best, machine, pin

FRAMES = 16


def pixels(n: int, frames: int = FRAMES, seed: int = 0) -> Any:
    """Colours that change a little from frame to frame, as those of a waving tree do."""
    rng = np.random.default_rng(seed)
    base = rng.random((3, n, 3))
    pick = rng.integers(0, 3, size=(frames, n))
    return np.clip(base[pick, np.arange(n)] + 0.03 * rng.normal(size=(frames, n, 3)), 0, 1).astype(np.float32)


def detector(size: int) -> Any:
    return ilk_novelty(Gaussian(30.0), C=0.1, reg=0.005, size=size)


def full(n: int, size: int, jobs: int = 1) -> Any:
    """A fleet whose budgets are full."""
    fleet = Fleet(detector(size), n, n_jobs=jobs)
    for seed in range(4):
        fleet.partial_fit(pixels(n, 16, seed))
    return fleet


def event_seconds(n: int, size: int, repeats: int = 3) -> float:
    fleet, X = full(n, size), pixels(n, FRAMES, 9)
    return best(lambda: fleet.partial_fit(X), repeats) / (n * FRAMES)


def exp_seconds() -> float:
    """One vectorised float exp in the same process: NumPy's, over numbers that stay in the cache."""
    x = -np.random.default_rng(0).random(4096).astype(np.float32)
    out = np.empty_like(x)
    return best(lambda: [np.exp(x, out=out) for _ in range(500)], 5) / (500 * 4096)


def loop_seconds(size: int) -> float:
    """A learner alone, event by event."""
    model, X = clone(detector(size)), pixels(1, 4000)[:, 0].astype(np.float64)
    model.partial_fit(X)
    rows = list(X)
    return best(lambda: [model.learn_one(x) for x in rows]) / len(rows)


def cv_seconds(height: int, width: int) -> float | None:
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    model = cv2.createBackgroundSubtractorMOG2()
    X = (pixels(height * width, 64) * 255).astype(np.uint8).reshape(64, height, width, 3)
    for frame in X:
        model.apply(frame)
    return best(lambda: [model.apply(frame) for frame in X]) / len(X)


def keyed(count: int, events: int) -> dict[str, float]:
    model = norma_novelty(Gaussian(0.2), nu=0.1, rate=0.2, reg=0.01, size=20)
    model.random_state = 0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 5)).astype(np.float32)
    fleet = KeyedFleet(model)
    start = time.thread_time()
    fleet.partial_fit(np.arange(100_000), X[:100_000])
    begun = time.thread_time() - start
    for _ in range(8):
        fleet.partial_fit(rng.permutation(count), X)
    keys = rng.integers(0, count, size=events)
    rows = rng.normal(size=(events, 5)).astype(np.float32)
    seconds = best(lambda: fleet.partial_fit(keys, rows)) / events
    return {"seconds": seconds, "bytes": fleet.memory_bytes_ / count, "start of 100,000 keys": begun}


def river_seconds(count: int) -> float | None:
    """River's one-class SVM in a dict, a key each; few keys, which is kind to it."""
    try:
        from river import anomaly
    except ImportError:
        return None
    rng = np.random.default_rng(0)
    models: dict[int, Any] = {}
    keys = rng.integers(0, count, size=20_000).tolist()
    rows = [dict(enumerate(row)) for row in rng.normal(size=(20_000, 5)).tolist()]

    def work() -> None:
        for key, row in zip(keys, rows, strict=True):
            model = models.get(key)
            if model is None:
                model = models[key] = anomaly.OneClassSVM(nu=0.1)
            model.score_one(row)
            model.learn_one(row)

    work()
    return best(work) / len(keys)


def spilled(count: int, cap: int, events: int) -> float:
    """Events per second of wall clock with most keys on disk."""
    model = norma_novelty(Gaussian(0.2), nu=0.1, rate=0.2, reg=0.01, size=20)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        fleet = KeyedFleet(model, max_keys=cap, spill=Path(folder) / "keys.db")
        for first in range(0, count, 100_000):
            some = np.arange(first, min(first + 100_000, count))
            fleet.partial_fit(some, rng.normal(size=(len(some), 5)).astype(np.float32))
        start = time.perf_counter()
        for first in range(0, events, 10_000):
            keys = rng.integers(0, count, size=min(10_000, events - first))
            fleet.partial_fit(keys, rng.normal(size=(len(keys), 5)).astype(np.float32))
        return events / (time.perf_counter() - start)


def line(what: str, value: float, floor: str) -> None:
    print(f"{what:<72} {value:>10.3g}   {floor}")


def fleets() -> None:
    small, loop = event_seconds(19_200, 20), loop_seconds(20)
    line("a loop over learn_one / a fleet of 19,200 (20 points, 3 features)", loop / small, "floor 100, goal 250")
    fleet = full(1_600, 20)
    alone = clone(detector(20)).fit(pixels(1, 200)[:, 0])
    line(
        "bytes of a fleet / of separate learners (memory_bytes_)",
        fleet.memory_bytes_ / 1_600 / alone.memory_bytes_,
        "floor 0.2",
    )
    line("time a (learner, point) / one vectorised float exp", small / 20 / exp_seconds(), "floor 4.5, goal 2.5")
    line("time a learner, 307,200 / 19,200", event_seconds(307_200, 20, 2) / small, "floor 1.15")
    for height, width in ((120, 160), (240, 320)):
        other = cv_seconds(height, width)
        if other is None:
            print("OpenCV is not installed (gristmill[video])")
            continue
        for size, floor in ((10, "floor 1"), (20, "floor 0.8, goal 1.5")):
            own = event_seconds(height * width, size) * height * width
            line(f"frames per second / MOG2's, {width} x {height}, {size} points", other / own, floor)
    if len(os.sched_getaffinity(0)) > 1:
        X, times = pixels(19_200, 16, 9), []
        for jobs in (1, 2):
            fleet = full(19_200, 20, jobs)
            start = time.perf_counter()
            for _ in range(5):
                fleet.partial_fit(X)
            times.append(time.perf_counter() - start)
        line("two threads / one (wall clock)", times[0] / times[1], "floor 1.7")


def main() -> None:
    pin()
    print("  ".join(f"{key} {value}" for key, value in machine().items()), "gristmill", gristmill.__version__)
    fleets()
    found = keyed(1_000_000, 500_000)
    river = river_seconds(1_000)
    line("KeyedFleet, 10^6 keys, 20 points, 5 features: ns an event", found["seconds"] * 1e9, "")
    if river is not None:
        line("River's OneClassSVM in a dict / KeyedFleet", river / found["seconds"], "floor 40, goal 100")
    line("bytes a key", found["bytes"], "floor 850")
    line("start of 100,000 keys, seconds", found["start of 100,000 keys"], "floor 1")
    line("events a second, 10^6 keys, 10^5 of them in memory", spilled(1_000_000, 100_000, 50_000), "said")


if __name__ == "__main__":
    main()
