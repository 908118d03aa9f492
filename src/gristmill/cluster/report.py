"""A report of the shards, and a progress bar."""

from __future__ import annotations

import dataclasses
from typing import Any

from .federated import FitReport
from .shards.feed import Record
from .shards.shard import Tally


@dataclasses.dataclass(frozen=True)
class ShardReport:
    """One shard of one fleet."""

    fleet: str
    shard: int
    events: int  # learned since it was started
    events_per_second: float  # while it learned
    keys: int  # in memory
    memory_bytes: int
    batch: int  # the last that it has learned
    saved: int  # the batch of its newest snapshot that may be relied upon
    snapshots: int
    snapshot_seconds: float
    restarts: int
    replayed: int  # batches
    process: int

    @classmethod
    def of(cls, fleet: str, shard: int, tally: Tally, record: Record) -> ShardReport:
        rate = tally.events / tally.seconds if tally.seconds else 0.0
        return cls(
            fleet, shard, tally.events, rate, tally.keys, tally.memory_bytes, tally.number, tally.saved,
            tally.snapshots, tally.snapshot_seconds, record.restarts, record.replayed, tally.process,
        )  # fmt: skip


class Report(list[ShardReport]):
    """A row a shard; as text, a table. `fits` has what came of each `Cluster.fit`."""

    fits: list[FitReport]

    def rows(self) -> list[dict[str, Any]]:
        return [dataclasses.asdict(row) for row in self]

    def __str__(self) -> str:
        heads = [field.name for field in dataclasses.fields(ShardReport)]
        cells = [[_cell(value) for value in dataclasses.astuple(row)] for row in self]
        widths = [max(len(text) for text in column) for column in zip(heads, *cells, strict=True)]
        lines = [[head.rjust(width) for head, width in zip(heads, widths, strict=True)]]
        lines += [[text.rjust(width) for text, width in zip(row, widths, strict=True)] for row in cells]
        return "\n".join(["  ".join(line) for line in lines] + [str(fit) for fit in self.fits])


def _cell(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


class Bar:
    """Progress on standard error: one line per shard with its events per second."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,} events"),
            TextColumn("{task.fields[rate]:,.0f} a second"), TimeElapsedColumn(), console=Console(stderr=True),
            transient=True,
        )  # fmt: skip
        self._tasks: dict[tuple[str, int], Any] = {}
        self._bar.start()

    def show(self, name: str, records: list[Record]) -> None:
        for shard, record in enumerate(records):
            if (name, shard) not in self._tasks:
                self._tasks[name, shard] = self._bar.add_task(f"{name}, shard {shard}", total=None, rate=0.0)
            rate = record.events / record.seconds if record.seconds else 0.0
            self._bar.update(self._tasks[name, shard], completed=record.events, rate=rate)

    def stop(self) -> None:
        self._bar.stop()
