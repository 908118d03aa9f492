"""`python -m benchmarks.serve [PART ...]`: the floors of the service.

Client and server run on this machine. What is compared is measured in turn, in slices of a second or two, and the median of
the ratios counts, so that other work on the machine disturbs both sides. Rows per second *per core of the server* are rows
per second of the processor time that the server's process took.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from ..measure import machine, show
from . import clients, hostile
from .load import background, drive, events, learning, request
from .servers import Server, empty, plain_river, service

LEARNER = "passive_aggressive(Gaussian(0.5), size=100)"
PATH = "/v1/models/m/learn"
#: so many that requests share an fsync, which takes longer than all the rest
CONNECTIONS = 256


def per_core(server: Server, requests: list[bytes], rows: int, seconds: float, connections: int) -> tuple[float, float]:
    """Requests per second, and rows per second of the server's processor time."""
    before = server.processor_seconds()
    found = drive(server.port, requests, connections, seconds)
    spent = server.processor_seconds() - before
    if set(found.statuses) != {200}:
        raise RuntimeError(f"answers other than 200: {found.statuses}")
    return found.rate, found.requests * rows / spent


def single(seconds: float, repeats: int) -> list[dict[str, Any]]:
    """One row a request, beside an empty handler.

    Requests that wait together share one fsync. So few connections wait for the disk, and the floor is that of many.
    """
    requests = learning(PATH, 1, 5000)
    found = []
    with tempfile.TemporaryDirectory() as folder, service(folder, LEARNER) as ours, empty() as other:
        drive(ours.port, requests, CONNECTIONS, 1.0)
        drive(other.port, requests, CONNECTIONS, 1.0)
        for connections in (16, 64, CONNECTIONS):
            pairs = [
                (per_core(ours, requests, 1, seconds, connections), per_core(other, requests, 1, seconds, connections))
                for _ in range(repeats)
            ]
            ratio = statistics.median(one[0] / two[0] for one, two in pairs)
            learned = statistics.median(one[0] for one, _ in pairs)
            nothing = statistics.median(two[0] for _, two in pairs)
            shares = statistics.median(one[1] / two[1] for one, two in pairs)
            cost = statistics.median(1e6 / one[1] for one, _ in pairs)
            text = (
                f"{learned:,.0f} beside {nothing:,.0f} requests/s; {cost:.0f} us of the processor, {1 / shares:.1f} x"
            )
            what = f"1 row a request, durable, {connections} connections: times an empty handler"
            line = floor(what, ratio, 0.35, text)
            found.append(line if connections == CONNECTIONS else {**line, "wanted": "", "kept": ""})
        found.append({"floor": "fsync of this disk, ms", "measured": 1000 * _fsync(folder), "wanted": "", "kept": ""})
    return found


def _fsync(folder: str) -> float:
    """Median seconds."""
    times = []
    with open(Path(folder) / "fsync", "wb") as file:
        for _ in range(30):
            file.write(bytes(8192))
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def many(seconds: float, repeats: int) -> list[dict[str, Any]]:
    """Many rows a request, in JSON and Arrow, and FastAPI around River."""
    lists, arrow = learning(PATH, 100), learning(PATH, 1000, 50, arrow=True)
    alone = learning(PATH, 1, 5000)
    found: dict[str, list[float]] = {"json": [], "arrow": [], "river": [], "river 1": [], "ours 1": [], "rate": []}
    with (
        tempfile.TemporaryDirectory() as folder, service(f"{folder}/store", LEARNER) as ours,
        plain_river(folder) as river,
    ):  # fmt: skip
        drive(ours.port, lists, 4, 1.0)
        for _ in range(repeats):
            rate, cores = per_core(ours, lists, 100, seconds, 4)
            found["json"].append(cores)
            found["rate"].append(100 * rate)
            found["arrow"].append(per_core(ours, arrow, 1000, seconds, 2)[1])
            found["ours 1"].append(per_core(ours, alone, 1, seconds, CONNECTIONS)[0])
            found["river"].append(100 * per_core(river, lists[:20], 100, seconds, 4)[0])
            found["river 1"].append(per_core(river, alone, 1, seconds, CONNECTIONS)[0])
    json_rows, arrow_rows = statistics.median(found["json"]), statistics.median(found["arrow"])
    times = [a / b for a, b in zip(found["rate"], found["river"], strict=True)]
    single_times = [a / b for a, b in zip(found["ours 1"], found["river 1"], strict=True)]
    return [
        floor("100 rows a request in JSON: rows/s per core of the server", json_rows, 40_000, ""),
        floor("1,000 rows a request in Arrow: rows/s per core", arrow_rows, 200_000, f"{arrow_rows / json_rows:.1f} x JSON"),
        floor("100 rows a request: times FastAPI + River's ARF + pickle", statistics.median(times), 10,
              f"{statistics.median(found['rate']):,.0f} beside {statistics.median(found['river']):,.0f} rows/s"),
        floor("1 row a request: times FastAPI + River's ARF + pickle", statistics.median(single_times), 10,
              f"{statistics.median(found['ours 1']):,.0f} beside {statistics.median(found['river 1']):,.0f} rows/s"),
    ]  # fmt: skip


def latency(seconds: float, repeats: int) -> list[dict[str, Any]]:
    """Predictions at rest, and while another client learns at full speed, on one connection and on four."""
    found = []
    with tempfile.TemporaryDirectory() as folder, service(folder, LEARNER) as ours:
        drive(ours.port, learning(PATH, 100), 2, 1.0)
        for connections in (1, 4):
            line = _beside(ours, connections, seconds, repeats)
            found.append(line if connections == 1 else {**line, "wanted": "", "kept": ""})
    return found


def _beside(ours: Server, connections: int, seconds: float, repeats: int) -> dict[str, Any]:
    rows, _ = events(500, seed=1)
    asks = [request("/v1/models/m/predict", msgspec.json.encode({"rows": [row]})) for row in rows]
    lists = learning(PATH, 100)
    context = multiprocessing.get_context("spawn")
    rest: list[float] = []
    busy: list[float] = []
    rates: list[float] = []
    for _ in range(repeats):
        rest.append(drive(ours.port, asks, 1, seconds, pause=0.002).quantile(0.99))
        answer = context.Queue()
        worker = context.Process(target=background, args=(ours.port, lists, connections, seconds + 4, answer))
        worker.start()
        try:
            drive(ours.port, asks, 1, 1.5, pause=0.002)  # the other process starts
            busy.append(drive(ours.port, asks, 1, seconds, pause=0.002).quantile(0.99))
            rates.append(100 * answer.get(timeout=60)[0])
        finally:
            worker.join(60)
            worker.kill()
    ratio = statistics.median(b / a for a, b in zip(rest, busy, strict=True))
    text = f"{1000 * statistics.median(busy):.2f} beside {1000 * statistics.median(rest):.2f} ms; "
    text += f"{statistics.median(rates):,.0f} rows/s learned meanwhile"
    what = f"p99 of predict while a client learns on {connections} connections, times that at rest"
    return floor(what.replace("1 connections", "1 connection"), ratio, 3, text, most=True)


def floor(what: str, value: float, limit: float, details: str, most: bool = False) -> dict[str, Any]:
    """A line of the table."""
    kept = value <= limit if most else value >= limit
    return {
        "floor": what, "measured": value, "wanted": f"{'at most' if most else 'at least'} {limit:,}",
        "kept": "yes" if kept else "NO", "details": details,
    }  # fmt: skip


PARTS: dict[str, Callable[..., list[dict[str, Any]]]] = {"single": single, "many": many, "latency": latency}


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice([*PARTS, "clients", "hostile"]))
@click.option("--seconds", default=2.0, show_default=True, help="Of each slice.")
@click.option("--repeats", default=5, show_default=True, help="Slices of each side.")
@click.option("--requests", default=100_000, show_default=True, help="Hostile requests.")
def main(parts: tuple[str, ...], seconds: float, repeats: int, requests: int) -> None:
    """Measure the floors of the service; PARTS are all unless named."""
    wanted = parts or (*PARTS, "clients", "hostile")
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    rows: list[dict[str, Any]] = []
    for name in wanted:
        if name == "clients":
            found = [floor(what, float(good), 1, details) for what, good, details in clients.run()]
        elif name == "hostile":
            found = [floor(*line) for line in hostile.run(requests)]
        else:
            found = PARTS[name](seconds, repeats)
        show(name, found)
        rows += found
    folder = Path("bench-results")
    folder.mkdir(exist_ok=True)
    (folder / "serve.json").write_text(json.dumps(rows, indent=1))
    sys.exit(any(row["kept"] == "NO" for row in rows))


if __name__ == "__main__":
    main()
