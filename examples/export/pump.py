"""
A pump that learns what is usual
================================

Writes pump.h: a detector that is trained with an hour of one pump, and continues to learn on each device. `pump.c` is the
firmware around it:

    python pump.py && cc -std=c99 -O2 pump.c -o pump -lm && ./pump < readings.txt
"""

import sys

import numpy as np

from gristmill import SGD, DropOldest, Gaussian, Hinge, KernelNovelty, Prepared
from gristmill.export import from_device, to_c


def readings(count: int, seed: int, level: float = 1.0) -> np.ndarray:
    """Speed in Hz, root mean square and peak of the vibration, heat in C; each pump has a level of its own."""
    rng = np.random.default_rng(seed)
    speed = 50 + 5 * np.sin(np.arange(count) / 300) + 0.5 * rng.normal(size=count)
    rms = level * 0.02 * speed + 0.02 * rng.normal(size=count)
    peak = 3 * rms + 0.1 * rng.normal(size=count)
    heat = 30 + 0.4 * speed + 0.5 * rng.normal(size=count)
    return np.column_stack([speed, rms, peak, heat])


def detector() -> Prepared:
    rule = SGD(Hinge(0.0, nu=0.01), rate=0.1, reg=0.01)
    return Prepared(KernelNovelty(Gaussian(0.3), rule, DropOldest(60))).fit(readings(3600, seed=0))


def after(state: bytes) -> Prepared:
    """The model of a device, from the bytes that it sent."""
    return from_device(state, detector())


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "pump.h"
    with open(name, "w") as file:
        file.write(to_c(detector(), learn=True, number="float32", name="pump"))
    print(f"wrote {name}")
