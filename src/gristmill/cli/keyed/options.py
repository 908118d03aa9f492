"""Options of `gristmill learn` that mean something with --key only."""

from __future__ import annotations

from collections.abc import Mapping

import click

from .. import options

all_of_them = options.together(
    click.option("--key", help="Column that names the key (device, customer, ...): one model per key."),
    click.option("--worst", default=5, show_default=True, type=click.IntRange(min=0), help="With --key: keys to show."),
    click.option("--prior/--no-prior", default=None,
                 help="With --key: one more model learns from all keys, and each key learns its residuals. Default: yes, "
                 "except for novelty and with --cluster."),
    click.option("--max-keys", type=click.IntRange(min=1),
                 help="With --key: keep at most this many keys; the one without events for longest is dropped."),
    click.option("--spill", type=click.Path(dir_okay=False),
                 help="With --max-keys: SQLite file that stores the keys beyond the limit instead of dropping them."),
    click.option("--ttl", type=click.FloatRange(min=0, min_open=True),
                 help="With --key: forget a key without an event for this long; in events, or in units of --time."),
    click.option("--time", metavar="COLUMN",
                 help="With --ttl: column with the time of an event: a number, or a date (--ttl is then in seconds)."),
    click.option("--cluster", metavar="ADDRESS",
                 help="With --key: address of a Ray cluster; 'local' starts one on this machine."),
    click.option("--shards", type=click.IntRange(1, 9999), help="With --cluster: number of processes. Default: 2."),
    click.option("--snapshots",
                 help="With --cluster: folder or URL of the state from which a repeated command continues."),
)  # fmt: skip


def refuse_without_key(given: Mapping[str, object]) -> None:
    """What means something for keys only."""
    if given["more"]:
        raise click.UsageError("several files need --key")
    for name in ("worst", "prior", "max_keys", "spill", "ttl", "time", "cluster", "shards", "snapshots"):
        if options.is_given(name):
            option = "no-prior" if name == "prior" and not given["prior"] else name.replace("_", "-")
            raise click.UsageError(f"--{option} needs --key")
