"""AutoNovelty beside detectors that are fitted anew every 500 events: `python -m benchmarks.anomalies [events]`.

The area under the ROC curve of the events from the 500th on, and microseconds of processor time per event. Sets that lie in
no data home (GRISTMILL_DATA) are left out.
"""

from __future__ import annotations

import sys
from typing import Any

from .streams import novelty  # noqa: F401  # puts its streams on the list
from .streams.cases import SOURCES, Source
from .streams.entry import Entry
from .streams.ours import OURS
from .streams.run import run
from .streams.sklearn_peers import SKLEARN

PEERS = ("IsolationForest", "LOF")


def entries() -> list[Entry]:
    """AutoNovelty, then the peers."""
    return [entry for entry in (*OURS, *SKLEARN) if entry.task == "novelty" and entry.name in ("AutoNovelty()", *PEERS)]


def measured(source: Source, events: int) -> dict[str, Any] | None:
    """The record of each detector on one stream; None if its file is not there."""
    try:
        case = source.case(events)
    except FileNotFoundError as error:
        print(f"{source.name} is left out: {error}", file=sys.stderr)
        return None
    return {entry.name: run(entry, case) for entry in entries()}


def lines(records: dict[str, dict[str, Any]]) -> list[str]:
    """A table: areas, how far the first detector is behind the better of the others, and times."""
    names = [entry.name for entry in entries()]
    titles = "".join(f"{name:>17s}" for name in names)
    out = [f"{'':34s}{titles}{'behind':>9s}{titles}{'forest / ours':>15s}"]
    for stream, record in records.items():
        areas = [record[name]["whole"] for name in names]
        times = [record[name]["microseconds"] for name in names]
        behind = max(areas[1:]) - areas[0]
        cells = [f"{area:17.3f}" for area in areas] + [f"{behind:+9.3f}"] + [f"{time:14.1f} us" for time in times]
        out.append(f"{stream:34s}" + "".join(cells) + f"{times[1] / times[0]:15.1f}")
    means = [sum(record[name]["whole"] for record in records.values()) / len(records) for name in names]
    out.append(f"{'mean':34s}" + "".join(f"{mean:17.3f}" for mean in means))
    return out


def main(events: int = 12_000) -> None:
    sources = [source for source in SOURCES.values() if source.task == "novelty"]
    records = {source.name: record for source in sources if (record := measured(source, events)) is not None}
    print("\n".join(lines(records)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
