"""How everything here is measured: processor time of one thread, the best of a few runs, peers in the same process."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of processor time; other programs on the machine do not count, a cold cache does."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def pin() -> None:
    """One core for this process and one thread for BLAS."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    from gristmill import _core

    facts = {"python": platform.python_version(), "machine": platform.machine(), "instructions": _core.isa()}
    try:
        with open("/proc/cpuinfo") as lines:
            facts["processor"] = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        facts["processor"] = platform.processor()
    for name in ("gristmill", "numpy", "scikit-learn", "river"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "absent"
    return facts


def product_seconds(X: Any, P: Any) -> float:
    """The bare BLAS products X P^T, in blocks so that the result stays in memory that is reused."""
    rows = 4096
    out = np.empty((rows, len(P)), dtype=X.dtype)

    def work() -> None:
        for first in range(0, len(X), rows):
            block = X[first : first + rows]
            np.matmul(block, P.T, out=out[: len(block)])

    return best(work)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """A plain table."""
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))  # a row may lack some
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    print(f"\n{title}")
    print("  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)))
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "" if value is None else str(value)
