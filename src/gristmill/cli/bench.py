"""`gristmill bench`: events per second on this machine, for a few sizes."""

from __future__ import annotations

import json
from time import perf_counter

import click


@click.command()
@click.option(
    "--events", default=20_000, show_default=True, type=click.IntRange(min=1000), help="Number of events in each run."
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
def bench(events: int, as_json: bool) -> None:
    """Measure events per second on this machine: chunks and single events, double and single precision.

    A Passive-Aggressive learner with a Gaussian kernel on random labels, so that nearly every event is stored
    and another one is removed: the worst case of a full budget.
    """
    rows = []
    for features, size in ((20, 100), (20, 1000), (128, 100), (128, 1000)):
        row: dict[str, float] = {"features": features, "stored": size}
        for kind in ("float64", "float32"):
            row[kind] = _chunks(features, size, events, kind)
        row["learn_one"] = _singles(features, size, events // 4)
        rows.append(row)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    click.echo("features  stored  chunks float64  chunks float32  one by one   (events per second)")
    for row in rows:
        click.echo(
            f"{row['features']:8.0f}  {row['stored']:6.0f}  {row['float64']:14,.0f}  "
            f"{row['float32']:14,.0f}  {row['learn_one']:10,.0f}"
        )


def _made(features: int, events: int, kind: str) -> tuple[object, object]:
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.normal(size=(events, features)).astype(kind), rng.choice([-1, 1], size=events)


def _chunks(features: int, size: int, events: int, kind: str) -> float:
    from ..catalogue import passive_aggressive
    from ..kernels import Gaussian

    X, y = _made(features, events, kind)
    model = passive_aggressive(Gaussian(0.5 / features), size=size)
    began = perf_counter()
    model.prequential(X, y)
    return events / (perf_counter() - began)


def _singles(features: int, size: int, events: int) -> float:
    from ..catalogue import passive_aggressive
    from ..kernels import Gaussian

    X, y = _made(features, events + size, "float64")
    model = passive_aggressive(Gaussian(0.5 / features), size=size)
    labels = y.tolist()  # type: ignore[attr-defined]
    rows = list(X)  # type: ignore[call-overload]
    for x, label in zip(rows[:size], labels[:size], strict=True):
        model.learn_one(x, label)
    began = perf_counter()
    for x, label in zip(rows[size:], labels[size:], strict=True):
        model.learn_one(x, label)
    return events / (perf_counter() - began)
