"""Options of `gristmill learn` that mean something with --key only."""

from __future__ import annotations

from typing import Any

import click

from .. import options

all_of_them = options.together(
    click.option("--key", help="Column of the keys (device, customer, ...): keep a model of its own for each."),
    click.option("--worst", default=5, show_default=True, type=click.IntRange(min=0), help="With --key: keys to show."),
    click.option("--prior/--no-prior", default=None,
                 help="With --key: one more model that learns from all keys, and a key learns what is left; by default "
                 "except for novelty and with --cluster."),
    click.option("--max-keys", type=click.IntRange(min=1), help="With --key: the quietest keys beyond so many go."),
    click.option("--spill", type=click.Path(dir_okay=False),
                 help="With --max-keys: an SQLite file for the quietest keys, which come back from there."),
    click.option("--ttl", type=click.FloatRange(min=0, min_open=True),
                 help="With --key: a key without an event for so long starts anew; in events, or on the clock of --time."),
    click.option("--time", metavar="COLUMN",
                 help="With --ttl: when an event came, as a number in any unit, or a date and then --ttl is in seconds."),
    click.option("--cluster", metavar="ADDRESS", help="With --key: on this Ray cluster; 'local' starts one here."),
    click.option("--shards", type=click.IntRange(1, 9999), help="With --cluster: processes; 2 unless said."),
    click.option("--snapshots",
                 help="With --cluster: folder or URL that the run goes on from when it is started again."),
)  # fmt: skip


def refuse_without_key(given: dict[str, Any]) -> None:
    """What means something for keys only."""
    if given["more"]:
        raise click.UsageError("several files go with --key")
    for name in ("worst", "prior", "max_keys", "spill", "ttl", "time", "cluster", "shards", "snapshots"):
        if options.is_said(name):
            option = "no-prior" if name == "prior" and not given["prior"] else name.replace("_", "-")
            raise click.UsageError(f"--{option} goes with --key")
