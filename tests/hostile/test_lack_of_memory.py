"""A lack of memory at any moment leaves a race before the chunk or after it: RLIMIT_AS in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc, pickle, resource, sys
import numpy as np
import gristmill as gm

name = sys.argv[1]
rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 40))
y = X[:, 0] * X[:, 1] > 0
labels = {"AutoClassifier": y, "AutoRegressor": X[:, 0] + y, "AutoNovelty": None, "Race": y}[name]
made = {
    "AutoClassifier": lambda: gm.AutoClassifier(),
    "AutoRegressor": lambda: gm.AutoRegressor(),
    "AutoNovelty": lambda: gm.AutoNovelty(experts=[gm.KernelNovelty(gm.Gaussian(0.1), gm.Density(), gm.DropOldest(200))]),
    "Race": lambda: gm.Race([
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.05), budget=gm.Merge(200))),
        gm.Prepared(gm.KernelClassifier(gm.Gaussian(0.05), gm.Perceptron(), gm.Project(0.3, size=100))),
    ]),
}[name]
part = lambda a, b: (X[a:b], None if labels is None else labels[a:b])
begun = made().partial_fit(*part(0, 500))
chunk = part(500, 8000)
saved, before = pickle.dumps(begun), begun.to_bytes()
warm = pickle.loads(saved).partial_fit(*chunk)
after = warm.to_bytes()
del warm
unlimited = resource.getrlimit(resource.RLIMIT_AS)
failed = learned = 0
for step in range(16):
    model = pickle.loads(saved)
    gc.collect()
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + step * 250_000, unlimited[1]))
    try:
        model.partial_fit(*chunk)
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    found = model.to_bytes()
    assert found in (before, after), f"torn at {step * 250_000} bytes"
    learned += found == after
print(failed, learned)
"""


@pytest.mark.parametrize("name", ["AutoClassifier", "AutoRegressor", "AutoNovelty", "Race"])
def test_a_race_without_memory_is_before_the_chunk_or_after_it(name: str) -> None:
    # The allocator keeps nothing that is free, so that what a chunk needs is asked for under the limit.
    frugal = {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=False, env=os.environ | frugal
    )
    assert done.returncode == 0, done.stderr[-2000:]
    failed, learned = map(int, done.stdout.split())
    assert failed > 0
    assert failed + learned >= 16
