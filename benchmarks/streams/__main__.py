"""`python -m benchmarks.streams`: measure, print the tables, draw the picture; peers' results are kept and used again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..measure import machine, pin, show
from ..progress import bar
from ..store import Store
from . import novelty  # noqa: F401  # puts its streams on the list
from .cases import SOURCES, TASKS, Case
from .entry import Entry
from .moa_peers import MOA
from .ours import OURS
from .picture import draw
from .river_peers import RIVER
from .run import run
from .sklearn_peers import SKLEARN
from .tables import WHAT, Results, name_of, over_orders, print_all, ratios, spreads
from .trivial import TRIVIAL

ENTRIES: list[Entry] = [*OURS, *RIVER, *MOA, *SKLEARN, *TRIVIAL]


def chosen(asked: tuple[str, ...], known: list[str], what: str) -> list[str]:
    """Of each word the name that is just that, or all that hold it, in the order of the list; all if none is asked for."""
    found: set[str] = set() if asked else set(known)
    for word in asked:
        holding = {name for name in known if word.lower() in name.lower()}
        if not holding:
            raise click.BadParameter(f"no {what} has {word!r} in its name; there are {', '.join(known)}")
        found |= {name for name in holding if name.lower() == word.lower()} or holding
    return [name for name in known if name in found]


def cases(names: list[str], events: int, orders: int = 1) -> list[Case]:
    """The streams whose data are there; those whose order means nothing in so many orders. A line for each left out."""
    made = []
    for name in names:
        source = SOURCES[name]
        try:
            made += [source.case(events, order) for order in range(orders if source.shuffled else 1)]
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return made


def identity(entry: Entry, case: Case, events: int) -> dict[str, Any]:
    """What must be the same for a stored result to be used again."""
    return {"stream": case.name, "learner": entry.name, "about": entry.about, "data": case.digest, "limit": events}


def kept(work: list[tuple[Entry, Case]], store: Store, events: int) -> Results:
    """What is stored."""
    results: Results = {case.name: {} for _, case in work}
    for entry, case in work:
        record = store.find("streams", case.name, entry.name, **identity(entry, case, events))
        if record is not None:
            results[case.name][entry.name] = record
    return results


def measured(work: list[tuple[Entry, Case]], store: Store, events: int, fresh: set[str]) -> Results:
    """All results: those of the fresh kinds are measured, the others where they are not stored."""
    results = kept(work, store, events)
    todo = [(entry, case) for entry, case in work if entry.kind in fresh or entry.name not in results[case.name]]
    facts = machine()
    with bar(len(todo)) as begin:
        for entry, case in todo:
            record = run(entry, case, begin(f"{case.name}: {entry.name}", len(case.y)))
            record = {**identity(entry, case, events), **record, "machine": facts}
            results[case.name][entry.name] = store.put("streams", case.name, entry.name, **record)
    return results


@click.command()
@click.option("-s", "--stream", "streams", multiple=True, help="Streams with this word in their name; several times.")
@click.option(
    "-l", "--learner", "learners", multiple=True, help="Learners with this word in their name; several times."
)
@click.option("-t", "--task", "tasks", multiple=True, type=click.Choice(TASKS), help="All three unless said.")
@click.option("-k", "--kind", "kinds", multiple=True, type=click.Choice(["ours", "peer", "linear", "trivial"]))
@click.option("-n", "--events", default=6000, show_default=True, type=click.IntRange(min=10), help="At most, a stream.")
@click.option(
    "--orders",
    default=1,
    show_default=True,
    type=click.IntRange(1, 20),
    help="Of a stream whose order means nothing; the mean over them counts.",
)
@click.option("--again", is_flag=True, help="Measure peers anew too.")
@click.option("--stored", is_flag=True, help="Measure nothing: show what is stored.")
@click.option("--beside", help="Ratios of the second half's error to that of this learner, for all of ours.")
@click.option("--results", default="bench-results", show_default=True, type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="Names of streams and learners.")
def main(
    streams: tuple[str, ...],
    learners: tuple[str, ...],
    tasks: tuple[str, ...],
    kinds: tuple[str, ...],
    events: int,
    orders: int,
    again: bool,
    stored: bool,
    beside: str | None,
    results: Path,
    listed: bool,
) -> None:
    """Our learners beside peers and trivial ones: prequential error (mean absolute error, area under the curve), of
    the last 1,000 events, and processor time; the same events, one thread. Results of peers are stored and used
    again while stream and settings stay the same.
    """
    names = chosen(streams, [s.name for s in SOURCES.values() if not tasks or s.task in tasks], "stream")
    wanted = set(chosen(learners, list(dict.fromkeys(entry.name for entry in ENTRIES)), "learner"))
    entries = [entry for entry in ENTRIES if entry.name in wanted and (not kinds or entry.kind in kinds)]
    if listed:
        for name in names:
            print(f"{SOURCES[name].task:15} {name}")
        for entry in entries:
            print(f"{entry.task:15} {entry.kind:8} {entry.name}: {entry.about}")
        return
    pin()
    found = cases(names, events, orders)
    # Learner by learner: the cheap ones have gone over all streams when the slow ones begin.
    work = [(entry, case) for entry in entries for case in found if case.task == entry.task]
    store = Store(results)
    fresh = {"ours", "trivial", "peer", "linear"} if again else {"ours", "trivial"}
    got = kept(work, store, events) if stored else measured(work, store, events, fresh)
    report(got, entries, found, results / "streams.png")
    if beside is not None:
        show(f"second half, over {beside}", ratios(got, entries, beside))


def report(got: Results, entries: list[Entry], found: list[Case], path: Path) -> None:
    got = {stream: records for stream, records in got.items() if records}
    if not got:
        print("nothing is stored yet")
        return
    tasks = {case.name: case.task for case in found}
    several = len(got) > len({name_of(stream) for stream in got})
    if several:
        got, each = over_orders(got), got
        show("largest less least over the orders, whole stream", spreads(each))
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    print_all(got, entries, tasks, tuple(WHAT))
    draw(got, entries, tasks, path)
    print(f"\npicture: {path}")


if __name__ == "__main__":
    main()
