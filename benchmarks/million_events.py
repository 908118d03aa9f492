"""`python -m benchmarks.million_events [prepared | keyed] [events]`: memory and time over a million events.

prepared: `Prepared(AutoClassifier())` over dicts with numbers, gaps and categories of which new ones keep coming. keyed: a
keyed fleet with spill, whose keys are drawn unevenly from ten times as many as `max_keys`, so that most of them are on disk.
Resident memory beside `memory_bytes_`, and processor time an event, after each tenth of the stream.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gristmill import AutoClassifier, Gaussian, KeyedFleet, Prepared, norma_novelty

MOST, CHUNK = 10_000, 1000


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def follow(model: Any, learn: Callable[[int], None], events: int, on_disk: Callable[[], int]) -> None:
    """A line of the table after each tenth; learn: the chunk that begins at an event. Making the chunk is counted, too."""
    print(f"{'events':>9} {'resident MB':>12} {'memory_bytes_ MB':>17} {'on disk MB':>11} {'us an event':>12}")
    used, part = time.process_time(), max(CHUNK, events // 10)
    for done in range(CHUNK, events + 1, CHUNK):
        learn(done - CHUNK)
        if done % part == 0:
            now = time.process_time()
            print(
                f"{done:>9,} {resident() / 1e6:>12.1f} {model.memory_bytes_ / 1e6:>17.3f} {on_disk() / 1e6:>11.1f} "
                f"{1e6 * (now - used) / part:>12.1f}",
                flush=True,
            )
            used = now


def prepared(events: int) -> None:
    rng = np.random.default_rng(0)
    model = Prepared(AutoClassifier(random_state=0))

    def learn(start: int) -> None:
        numbers = rng.normal(size=(CHUNK, 3))
        words = rng.integers(0, 20 + start // 1000, size=CHUNK)  # a new one each thousand events
        gaps = rng.random(CHUNK) < 0.05
        rows = [
            {"a": None if gap else a, "b": b, "c": c, "word": f"word {word}", "hue": "red" if a > 0 else "blue"}
            for (a, b, c), word, gap in zip(numbers.tolist(), words.tolist(), gaps.tolist(), strict=True)
        ]
        model.partial_fit(rows, (numbers[:, 1] * numbers[:, 2] + 0.5 * (words % 3 == 0) > 0).astype(int))

    follow(model, learn, events, lambda: 0)


def keyed(events: int) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        fleet = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=10), max_keys=MOST, spill=folder)

        def learn(start: int) -> None:
            keys = (10 * MOST * rng.random(CHUNK) ** 2).astype(np.int64)
            fleet.partial_fit(keys, rng.normal(size=(CHUNK, 5)))

        follow(fleet, learn, events, lambda: sum(entry.stat().st_size for entry in os.scandir(folder)))


def main() -> None:
    kinds: dict[str, Callable[[int], None]] = {"prepared": prepared, "keyed": keyed}
    wanted = [name for name in sys.argv[1:] if name in kinds] or list(kinds)
    events = next((int(text) for text in sys.argv[1:] if text.isdigit()), 1_000_000)
    for name in wanted:
        print(name)
        kinds[name](events)


if __name__ == "__main__":
    main()
