"""`python -m benchmarks.keyed_memory [events]`: a keyed fleet with spill over a million events.

Resident memory beside `memory_bytes_`, and processor time an event, after each tenth of the stream. Keys are drawn unevenly
from ten times as many as `max_keys`, so that most of them are on disk.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import numpy as np

from gristmill import Gaussian, KeyedFleet, norma_novelty

MOST, CHUNK = 10_000, 1000


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        model = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=10)
        fleet = KeyedFleet(model, max_keys=MOST, spill=folder)
        print(f"{'events':>9} {'resident MB':>12} {'memory_bytes_ MB':>17} {'spill MB':>9} {'us an event':>12}")
        used, part = time.process_time(), max(CHUNK, events // 10)
        for done in range(CHUNK, events + 1, CHUNK):
            keys = (10 * MOST * rng.random(CHUNK) ** 2).astype(np.int64)
            fleet.partial_fit(keys, rng.normal(size=(CHUNK, 5)))
            if done % part == 0:
                now = time.process_time()
                disk = sum(entry.stat().st_size for entry in os.scandir(folder))
                print(
                    f"{done:>9,} {resident() / 1e6:>12.1f} {fleet.memory_bytes_ / 1e6:>17.1f} {disk / 1e6:>9.1f} "
                    f"{1e6 * (now - used) / part:>12.1f}",
                    flush=True,
                )
                used = now


if __name__ == "__main__":
    main()
