"""`python -m benchmarks.fleet [threads] [fleets] [frames] [keyed] [spill]`: many learners against a loop, one vectorised
exp, OpenCV and River, as ratios of one run. Without a name all parts run.

What is divided by what runs in turn, several times, and the best of each counts: on a machine that others use, a fast moment
for one side alone would say nothing.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import gristmill
from gristmill import Fleet, Gaussian, KeyedFleet, ilk_novelty, norma_novelty
from gristmill.video import BackgroundSubtractor

from .measure import best, machine, pin
from .memory_limit import MemoryLimit

FRAMES = 16
RECORD_BYTES = 704  # of a key with 20 points of 5 features, without its place in the table


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


def event_work(n: int, size: int) -> Callable[[], Any]:
    fleet, X = full(n, size), pixels(n, FRAMES, 9)
    return lambda: fleet.partial_fit(X)


def exp_work() -> Callable[[], Any]:
    """One vectorised float exp in the same process: NumPy's, over numbers that stay in the cache."""
    x = -np.random.default_rng(0).random(4096).astype(np.float32)
    out = np.empty_like(x)
    return lambda: [np.exp(x, out=out) for _ in range(500)]


def loop_work(size: int) -> Callable[[], Any]:
    """Four thousand events of a learner alone, event by event: rows of doubles, which `learn_one` takes fastest."""
    model, X = clone(detector(size)), pixels(1, 4000)[:, 0].astype(np.float64)
    model.partial_fit(X)
    rows = list(X)
    return lambda: [model.learn_one(x) for x in rows]


def cv_work(height: int, width: int) -> Callable[[], Any] | None:
    """Sixteen frames of OpenCV's MOG2."""
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    model = cv2.createBackgroundSubtractorMOG2()
    X = (pixels(height * width, 64) * 255).astype(np.uint8).reshape(64, height, width, 3)
    for frame in X:
        model.apply(frame)
    return lambda: [model.apply(frame) for frame in X[:FRAMES]]


def apply_work(height: int, width: int, size: int) -> Callable[[], Any]:
    """Sixteen frames of `BackgroundSubtractor`, one by one, without the median, which MOG2 does not take, either."""
    subtractor = BackgroundSubtractor(detector(size), median=1)
    X = (pixels(height * width, 64) * 255).astype(np.uint8).reshape(64, height, width, 3)
    for frame in X:
        subtractor.apply(frame)
    return lambda: [subtractor.apply(frame) for frame in X[:FRAMES]]


def in_turn(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The best processor time of each; three runs a turn, because the first finds the caches full of other things."""
    times = [[best(work) for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def device_model() -> Any:
    model = norma_novelty(Gaussian(0.2), nu=0.1, rate=0.2, reg=0.01, size=20)
    model.random_state = 0
    return model


def devices(count: int) -> tuple[Any, float]:
    """A fleet of so many keys whose budgets are full, and the seconds that the first 100,000 took."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 5)).astype(np.float32)
    fleet = KeyedFleet(device_model())
    start = time.thread_time()
    fleet.partial_fit(np.arange(100_000), X[:100_000])
    begun = time.thread_time() - start
    while fleet.n_stored_ < 19.9 * count:  # about one event in ten is stored
        for _ in range(20):
            fleet.partial_fit(rng.permutation(count), X)
    return fleet, begun


def river_models(count: int) -> dict[int, Any] | None:
    """River's one-class SVM in a dict, as many keys."""
    try:
        from river import anomaly
    except ImportError:
        return None
    row = dict(enumerate(np.random.default_rng(0).normal(size=5).tolist()))
    models = {}
    for key in range(count):
        model = models[key] = anomaly.OneClassSVM(nu=0.1)
        model.learn_one(row)
    return models


def keyed(count: int, events: int = 500_000) -> None:
    """Events of random keys; each is scored and learned, by River too."""
    fleet, begun = devices(count)
    rng = np.random.default_rng(1)
    keys, X = rng.integers(0, count, size=events), rng.normal(size=(events, 5)).astype(np.float32)
    models, few = river_models(count), 20_000
    known, rows = models or {}, [dict(enumerate(row)) for row in X[:few].tolist()]
    turns = itertools.count()

    def river() -> None:
        first = next(turns) * few  # other keys each time, as the fleet has more than a cache holds
        for key, row in zip(keys[first : first + few].tolist(), rows, strict=True):
            model = known[key]
            model.score_one(row)
            model.learn_one(row)

    works: dict[str, Callable[[], Any]] = {"own": lambda: fleet.prequential(keys, X)}
    if models is not None:
        works["river"] = river
    if MemoryLimit.can_measure():
        memory = MemoryLimit(count, RECORD_BYTES)
        works["memory"] = lambda: memory.work(events)
    gc.freeze()  # a million models in a dict are no work of the fleet's
    times = dict(zip(works, in_turn(list(works.values()), 6), strict=True))
    own = times["own"] / events
    line(f"KeyedFleet, {count:,} keys, 20 points, 5 features: ns an event", own * 1e9, "")
    if "memory" in times:
        line("limit of memory on this machine: as many records, and no work: ns", times["memory"] / events * 1e9, "")
        line("KeyedFleet / limit of memory on this machine", own / (times["memory"] / events), "")
    if "river" in times:
        line("River's OneClassSVM, as many in a dict: ns an event", times["river"] / few * 1e9, "")
        line("River's OneClassSVM in a dict / KeyedFleet", times["river"] / few / own, "floor 40, goal 100")
    if "memory" in times and "river" in times:
        line("River's OneClassSVM in a dict / limit of memory", times["river"] / few / (times["memory"] / events), "")
    line("points a key", fleet.n_stored_ / count, "20")
    line("bytes a key", fleet.memory_bytes_ / count, "floor 850")
    line("start of 100,000 keys, seconds", begun, "floor 1")


def spill(count: int, cap: int, events: int = 200_000) -> None:
    """Events per second of wall clock with most keys on disk."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.db"
        fleet = KeyedFleet(device_model(), max_keys=cap, spill=path)
        start = time.perf_counter()
        for first in range(0, count, 100_000):
            some = np.arange(first, min(first + 100_000, count))
            fleet.partial_fit(some, rng.normal(size=(len(some), 5)).astype(np.float32))
        line(f"keys a second, {count:,} come and {cap:,} stay in memory", count / (time.perf_counter() - start), "")
        line("gigabytes on disk", sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e9, "")
        start = time.perf_counter()
        for first in range(0, events, 10_000):
            keys = rng.integers(0, count, size=min(10_000, events - first))
            fleet.partial_fit(keys, rng.normal(size=(len(keys), 5)).astype(np.float32))
        line(
            f"events a second, {count:,} keys, {cap:,} of them in memory",
            events / (time.perf_counter() - start),
            "said",
        )
        fleet._store.close()


def line(what: str, value: float, floor: str) -> None:
    print(f"{what:<72} {value:>10.3g}   {floor}")


def fleets() -> None:
    small, large = 19_200, 307_200
    works = [event_work(small, 20), loop_work(20), exp_work(), event_work(large, 20)]
    own, loop, exp, more = in_turn(works, 8)
    own, loop, exp, more = own / (small * FRAMES), loop / 4000, exp / (500 * 4096), more / (large * FRAMES)
    line("an event of a fleet of 19,200 (20 points, 3 features), ns", own * 1e9, "")
    line("learn_one, ns", loop * 1e9, "")
    line("a loop over learn_one / a fleet of 19,200", loop / own, "floor 100, goal 250")
    fleet = full(1_600, 20)
    alone = clone(detector(20)).fit(pixels(1, 200)[:, 0])
    line(
        "bytes of a fleet / of separate learners (memory_bytes_)",
        fleet.memory_bytes_ / 1_600 / alone.memory_bytes_,
        "floor 0.2",
    )
    line("time a (learner, point) / one vectorised float exp", own / 20 / exp, "floor 4.5, goal 2.5")
    line("time a learner, 307,200 / 19,200", more / own, "floor 1.15")


def frames() -> None:
    for height, width in ((120, 160), (240, 320)):
        other = cv_work(height, width)
        if other is None:
            print("OpenCV is not installed (gristmill[video])")
            return
        sizes = ((10, "floor 1"), (20, "floor 0.8, goal 1.5"))
        works = [event_work(height * width, size) for size, _ in sizes]
        works += [apply_work(height, width, size) for size, _ in sizes]
        mog2, *times = in_turn([other, *works], 8)
        for (size, floor), together, alone in zip(sizes, times[:2], times[2:], strict=True):
            what = f"frames per second / MOG2's, {width} x {height}, {size} points"
            line(f"{what}, {FRAMES} frames a call", mog2 / together, floor)
            line(f"{what}, one by one", mog2 / alone, "")


def threads() -> None:
    """Wall clock; needs two idle cores. In turn, three calls each, as `in_turn` does."""
    X, fleets = pixels(19_200, 16, 9), [full(19_200, 20, jobs) for jobs in (1, 2)]
    times: list[list[float]] = [[], []]
    for _ in range(16):
        for fleet, each in zip(fleets, times, strict=True):
            for _ in range(3):
                start = time.perf_counter()
                fleet.partial_fit(X)
                each.append(time.perf_counter() - start)
    line("two threads / one (wall clock)", min(times[0]) / min(times[1]), "floor 1.7")


PARTS = ("threads", "fleets", "frames", "keyed", "spill")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--resident", type=int, default=100_000, help="keys in memory of the part `spill`")
    given = parser.parse_args()
    given.parts = given.parts or list(PARTS)
    if unknown := [part for part in given.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    print("  ".join(f"{key} {value}" for key, value in machine().items()), "gristmill", gristmill.__version__)
    if "threads" in given.parts and len(os.sched_getaffinity(0)) > 1:
        threads()
    pin()
    if "fleets" in given.parts:
        fleets()
    if "frames" in given.parts:
        frames()
    if "keyed" in given.parts:
        keyed(given.keys)
    if "spill" in given.parts:
        spill(given.keys, given.resident)


if __name__ == "__main__":
    main()
