"""`python -m benchmarks.cluster`: a keyed fleet on Ray with two shards beside two plain processes, each with half the keys.

Both read the same events from the same file. Ten events a key come first, so that every key is there: fleets take gigabytes,
and on a virtual machine memory that has not been used of late costs the first who asks for it more than all learning.
Time is from the first batch after them to the last that is learned. Processor time is that of everybody at work: driver
and shards, or both processes.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from gristmill import SGD, DropOldest, EpsilonInsensitive, Gaussian, KernelRegressor, KeyedFleet
from gristmill.cluster import Cluster
from gristmill.cluster.shards.batch import shard_of

from .measure import machine, show

SHARDS, BATCH = 2, 10_000


def fleet(points: int) -> KeyedFleet:
    """Nearly every event is stored, and no step can diverge."""
    return KeyedFleet(KernelRegressor(Gaussian(0.02), SGD(EpsilonInsensitive(0.01), 0.1), DropOldest(points)))


def write_events(folder: Path, events: int, keys: int, width: int) -> None:
    """The file: keys, rows and targets, in batches as they come."""
    rng = np.random.default_rng(0)
    np.save(folder / "keys.npy", rng.integers(0, keys, size=events))
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, (events, width))
    for first in range(0, events, BATCH):
        part = rows[first : first + BATCH]
        part[:] = rng.normal(size=part.shape)
    rows.flush()


def batches(folder: Path, begin: int, end: int | None = None) -> Any:
    keys = np.load(folder / "keys.npy", mmap_mode="r")
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    for first in range(begin, len(keys) if end is None else end, BATCH):
        X = np.array(rows[first : first + BATCH])
        yield np.array(keys[first : first + BATCH]), X, X[:, 0].copy()


def plain_half(shard: int, folder: Path, points: int, known: int, gate: Any, ends: Any) -> None:
    """One process with a fleet for its half of the keys."""
    own = fleet(points)

    def learn(begin: int, end: int | None = None) -> None:
        for keys, X, y in batches(folder, begin, end):
            mine = shard_of(keys, SHARDS) == shard
            own.partial_fit(keys[mine], X[mine], y[mine])

    learn(0, known)
    gate.wait()
    first, began = time.monotonic(), time.process_time()
    learn(known)
    ends.put((first, time.monotonic(), time.process_time() - began))
    gate.wait()


def plain(folder: Path, points: int, known: int) -> tuple[float, float]:
    """Wall and processor seconds of two processes."""
    context = multiprocessing.get_context("spawn")
    gate, ends = context.Barrier(SHARDS + 1), context.Queue()
    halves = [
        context.Process(target=plain_half, args=(shard, folder, points, known, gate, ends)) for shard in range(SHARDS)
    ]
    for half in halves:
        half.start()
    gate.wait()
    gate.wait()
    firsts, lasts, spent = zip(*(ends.get() for _ in halves), strict=True)  # this process may be woken late
    for half in halves:
        half.join()
    return max(lasts) - min(firsts), sum(spent)


def spent_by(process: int) -> float:
    """Processor seconds of a process so far, its threads and the system's work for it among them."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def on_ray(cluster: Any, folder: Path, points: int, known: int, name: str) -> tuple[float, float, list[dict[str, Any]]]:
    """Wall and processor seconds of driver and shards."""
    keyed = cluster.keyed(fleet(points), name)
    for keys, X, y in batches(folder, 0, known):
        keyed.partial_fit(keys, X, y)
    keyed.flush()
    processes = [os.getpid(), *(row.process for row in cluster.report())]
    before, began = sum(map(spent_by, processes)), time.perf_counter()
    for keys, X, y in batches(folder, known):
        keyed.partial_fit(keys, X, y)
    keyed.flush()
    wall = time.perf_counter() - began
    spent = sum(map(spent_by, processes)) - before
    rows = [row for row in cluster.report().rows() if row["fleet"] == name]
    keyed.close()
    del cluster._fleets[name]
    return wall, spent, rows


def measured(folder: Path, points: int, known: int, repeats: int) -> list[dict[str, Any]]:
    """All three in turn, so that a busy machine disturbs them alike; the best of each."""
    found: dict[str, list[tuple[float, float]]] = {}
    shards: list[dict[str, Any]] = []

    def take(name: str, wall: float, spent: float) -> None:
        found.setdefault(name, []).append((wall, spent))
        print(f"{name}: {wall:.1f} s, {spent:.1f} s of processors", flush=True)

    for repeat in range(repeats):
        take("two processes", *plain(folder, points, known))
        with Cluster(shards=SHARDS) as cluster:
            take("Ray", *on_ray(cluster, folder, points, known, "bare")[:2])
        with Cluster(shards=SHARDS, snapshots=folder / f"snapshots-{repeat}") as cluster:
            wall, spent, shards = on_ray(cluster, folder, points, known, "safe")
            take("Ray, snapshots and log", wall, spent)
    best = {name: (min(wall for wall, _ in runs), min(cpu for _, cpu in runs)) for name, runs in found.items()}
    base = best["two processes"]
    table = [
        {
            "": name,
            "wall, s": wall,
            "processor, s": cpu,
            "speed against two processes, wall": base[0] / wall,
            "by processor time": base[1] / cpu,
        }
        for name, (wall, cpu) in best.items()
    ]
    written = sum(row["snapshots"] for row in shards), sum(row["snapshot_seconds"] for row in shards)
    print(f"the last run with snapshots wrote {written[0]} of them in {written[1]:.1f} s")
    return table


@click.command()
@click.option("--events", default=2_000_000, show_default=True, type=click.IntRange(min=BATCH))
@click.option("--keys", default=100_000, show_default=True, type=click.IntRange(min=1))
@click.option("-r", "--repeats", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--small", is_flag=True, help="20 points x 5 features in place of 100 x 20.")
def main(events: int, keys: int, repeats: int, small: bool) -> None:
    """Two shards on Ray against two plain processes: at least 0.7 of their speed, and 0.6 with snapshots and log."""
    points, width = (20, 5) if small else (100, 20)
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        known = -(-10 * keys // BATCH) * BATCH
        write_events(folder, known + events, keys, width)
        title = f"{points} points x {width} features, {keys:,} keys, {events:,} events in batches of {BATCH:,}"
        show(title, measured(folder, points, known, repeats))


if __name__ == "__main__":
    main()
