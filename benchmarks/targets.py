"""What ten targets cost beside one, in processor time, at 50 features: `python -m benchmarks.targets [events]`."""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import numpy as np

from gristmill import SGD, DropOldest, Gaussian, KernelRegressor, Merge, PassiveAggressive, Squared

from .data import SEED

COLUMNS, TARGETS, ROUNDS = 50, 10, 5
LEARNERS = {
    "PA, Merge(1000)": lambda: KernelRegressor(Gaussian(1 / COLUMNS), PassiveAggressive(), Merge(1000)),
    "PA, newest 1000": lambda: KernelRegressor(Gaussian(1 / COLUMNS), PassiveAggressive(), DropOldest(1000)),
    "NORMA, newest 1000": lambda: KernelRegressor(Gaussian(1 / COLUMNS), SGD(Squared(), 0.2, 0.001), DropOldest(1000)),
}


def seconds(model: Any, X: Any, y: Any) -> float:
    began = process_time()
    model.prequential(X, y)
    return process_time() - began


def main(events: int) -> None:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(events, COLUMNS))
    Y = np.sin(X @ rng.normal(size=(COLUMNS, TARGETS)) / 4) + 0.1 * rng.normal(size=(events, TARGETS))
    print(f"{'learner':20} {'one, us':>9} {'ten, us':>9} {'ratio':>6}")
    for name, make in LEARNERS.items():
        pairs = [
            (seconds(make(), X, Y[:, 0]), seconds(make(), X, Y)) for _ in range(ROUNDS)
        ]  # in turn, the best of each
        one, ten = (1e6 * min(times) / events for times in zip(*pairs, strict=True))
        print(f"{name:20} {one:9.2f} {ten:9.2f} {ten / one:6.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
