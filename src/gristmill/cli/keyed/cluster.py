"""`--cluster` of `gristmill learn --key`: the keys spread over shards, and several files as one stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import click

from ..._common.types import Options
from .. import options


def chained(opened: Any, given: Options) -> Any:
    """The first file and those after it, which have the columns that it has settled."""
    if not given["more"]:
        return opened.stream
    for path in given["more"]:  # before anything is learned from the first
        if str(path) != "-" and "://" not in str(path) and not os.path.exists(path):
            raise click.ClickException(f"{path}: there is no such file")
    first = opened.stream

    def chunks() -> Iterator[Any]:
        yield from first
        for path in given["more"]:
            known = SimpleNamespace(columns_=opened.settled())
            yield from options.OpenedSource(
                {**given, "data": path, "limit": None}, known, key=opened.key, bad=opened.bad
            ).stream  # fmt: skip

    whole = replace(first, chunks=chunks, n_events=None)
    return whole.take(given["limit"]) if given["limit"] else whole


@contextmanager
def over(fleet: object, given: Options) -> Iterator[Any]:
    """The fleet itself, or on the shards of a cluster."""
    if given["cluster"] is None:
        for name in ("snapshots", "shards"):
            if given[name] is not None:
                raise click.UsageError(f"--{name} needs --cluster")
        yield fleet
        return
    if given["resume"]:
        raise click.UsageError("--resume cannot be used with --cluster; --snapshots FOLDER continues an earlier run")
    from ...cluster import Cluster

    address = None if given["cluster"] == "local" else given["cluster"]
    with Cluster(address, given["shards"] or 2, given["snapshots"]) as cluster:
        yield cluster.keyed(fleet)


class Rest:
    """What a cluster has not learned yet in an earlier run over the same files.

    Parameters
    ----------
    stream : Stream
        Of all files.
    fleet : KeyedFleet or ShardedFleet
    """

    def __init__(self, stream: Any, fleet: Any) -> None:
        self._whole = stream
        self._read = 0  #: events, those before included
        self.done = int(getattr(fleet, "n_seen_", 0))  #: events that were learned before
        self.stream = stream
        if self.done:
            click.echo(f"continuing after {self.done:,} events", err=True)
            self.stream = replace(stream, chunks=self._counted).skip(self.done)

    def _counted(self) -> Iterator[Any]:
        from ...streams.stream import size

        for chunk in self._whole:
            self._read += size(chunk)
            yield chunk

    @property
    def is_empty(self) -> bool:
        """Whether all was read, and all of it was learned before; it is an error if there was more then."""
        if self.done and self._read < self.done:
            raise ValueError(
                f"{self._whole.name}: {self.done:,} events were learned before, and now there are {self._read:,}; give the "
                "same files, or another folder of --snapshots"
            )
        return bool(self.done) and self._read == self.done
