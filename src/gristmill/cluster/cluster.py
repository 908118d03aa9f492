"""`Cluster`: learners over several processes or machines, by Ray."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Self

from .._common.ranges import count, optional
from ..evaluate.progress import wanted
from ..evaluate.result import Comparison
from ..evaluate.run import _named as named_models
from ..streams.stream import as_stream
from .federated import FitReport
from .many_models import Bench, Mapped
from .report import Bar, Report, ShardReport
from .shards.driver import refuse
from .shards.log import Log
from .shards.ray_workers import RayWorkers, import_ray, start_ray
from .shards.sharded_fleet import ShardedFleet


class Cluster:
    """Learners on several processors or machines; a context manager over Ray.

    It is for a fleet of keys that is too large or too busy for one process, for data in several places, and for many
    settings at once. It does not make one learner faster. Experimental: it may change in any minor version.

    Parameters
    ----------
    address : str, optional
        Of a running Ray cluster, as `ray.init` takes it; None starts Ray on the loopback
        address of this machine, and ends it with the block.
    shards : int, default=2
        Processes that keys are spread over.
    snapshots : path or URL, optional
        A folder that all machines see, or a URL that fsspec knows. With it a shard that is lost comes back, and a program
        that died continues where its log ends; without it a lost shard is an error.
    log : path, optional
        The file beside which batches are kept, on a disk of this machine; in the folder of `snapshots` where that is one.
    every : int, optional
        Events of a shard between two of its snapshots. None: at least 100,000, and so that snapshots take about a
        fortieth of the time.
    progress : bool, optional
        A bar with the events a second of each shard; None: where standard error is a terminal.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, KeyedFleet, norma_novelty
    >>> from gristmill.cluster import Cluster
    >>> rng = np.random.default_rng(0)
    >>> devices, X = rng.integers(0, 50, size=5000), rng.normal(size=(5000, 2))
    >>> detector = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=20)
    >>> with Cluster(shards=2) as cluster:
    ...     keyed = cluster.keyed(KeyedFleet(detector))
    ...     scores = keyed.prequential(devices, X)
    ...     len(keyed)
    50
    """

    def __init__(
        self,
        address: str | None = None,
        shards: int = 2,
        snapshots: Any = None,
        log: Any = None,
        every: int | None = None,
        progress: bool | None = None,
    ) -> None:
        count.check("Cluster", "shards", shards)
        optional(count).check("Cluster", "every", every)
        self.address, self.shards, self.every = address, shards, every
        self.snapshots = None if snapshots is None else _absolute(os.fspath(snapshots))
        remote = self.snapshots is not None and "://" in self.snapshots and not self.snapshots.startswith("file://")
        if remote and log is None:
            raise ValueError(
                f"snapshots={self.snapshots!r} is not a folder of this machine; say log= for the log's file"
            )
        if log is not None and snapshots is None:
            raise ValueError("a log without snapshots would grow for ever; give snapshots= too")
        self.log = log
        self.progress = progress
        self._fleets: dict[str, ShardedFleet] = {}
        self._fits: list[FitReport] = []
        self._bar: Bar | None = None
        self._started = False

    # ---- a block of work ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._started = start_ray(self.address, max(self.shards, os.cpu_count() or 1))
        if wanted(self.progress):
            self._bar = Bar()
        return self

    def __exit__(self, kind: Any, error: BaseException, trace: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            with contextlib.suppress(OSError):  # a standard error that cannot be written to must not keep shards open
                print("stopping: the shards write snapshots; press Ctrl-C again to stop at once", file=sys.stderr)
        self.close()

    def close(self) -> None:
        """Let every shard learn its pending batches and write a snapshot, then stop what this object started."""
        try:
            with contextlib.ExitStack() as stack:  # one that fails does not keep the others from closing
                for fleet in self._fleets.values():
                    stack.callback(fleet.close)
        finally:
            self._fleets = {}
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            if self._started:
                self._started = False
                import_ray().shutdown()

    def _running(self) -> Any:
        ray = import_ray()
        if not ray.is_initialized():
            raise RuntimeError("the cluster is not running; use it as `with Cluster(...) as cluster:`")
        return ray

    # ---- a learner a key ----------------------------------------------------------------------------------------------

    def keyed(self, fleet: Any, name: str = "keyed") -> ShardedFleet:
        """A `KeyedFleet` over the shards: what it learns is what it would learn in one process, bit for bit.

        Parameters
        ----------
        fleet : KeyedFleet
            That has not learned yet. `prior` is refused, and so is `max_keys` without `spill`; `ttl` goes by the number of
            the event, or by `time=`.
        name : str
            Of the folder for its snapshots and log; fleets of one program have different names.
        """
        self._running()
        refuse(fleet)
        if not name or Path(name).name != name:
            raise ValueError(f"name must do as the name of a folder, got {name!r}")
        if name in self._fleets:
            raise ValueError(f"there is a fleet {name!r} already; give this one another name=")
        place, log = self._places(name)
        tick = None if self._bar is None else lambda made: self._show(name, made)
        try:
            made = ShardedFleet(fleet, RayWorkers(), self.shards, place, log, self.every, tick)
        except BaseException:
            if log is not None:
                log.close()
            raise
        self._fleets[name] = made
        return made

    # ---- distributed data ---------------------------------------------------------------------------------------------

    def fit(
        self, learner: Any, parts: Any, target: object = "last", size: int | str | None = None, sample: int = 2000
    ) -> Any:
        """One model from data in several places; `report().fits` has its errors.

        Scaling, widths and relevance are settled on a sample of all parts and stay. Each part is then learned where it is,
        but for every tenth event, and the models are merged two by two. It is not for speed: each model has seen only its
        part, and one core learns tens of thousands of events a second.

        Parameters
        ----------
        learner : learner of gristmill that `merge` takes, behind `Prepared` or not; or one that needs no settings
            Of the latter every expert is learned and merged, and `size` is the memory of all.
        parts : list of shards, or a Ray dataset
            A shard is a path or URL (CSV, LIBSVM, JSON lines, Parquet, Arrow), a list of them, or a pair (X, y). Columns
            with names go by their names, in the order of the first shard; all shards have the same ones.
        target : str, int, "last" or None
            The column of the labels in files and datasets.
        size : int or str, optional
            Most points of the model, or its memory in words such as "1 MB".
        sample : int, default=2000
            Events that things are settled on, all parts together.
        """
        from . import federated
        from .merge_tree import merged
        from .shards.ray_workers import answers
        from .sources import agreed, sources_of

        ray = self._running()
        sources = sources_of(parts, target, self.shards)
        count.check("fit", "sample", sample)
        each = -(-sample // len(sources))
        settle, draw, learn, measure, join = (
            ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(task)  # a dataset may need the processors to be read
            for task in (agreed, federated.sample_of, federated.learn_part, federated.losses_of, merged)
        )
        target = answers(ray, settle.remote(sources[0], target))  # names of columns, so that all shards go by them
        samples = answers(ray, [draw.remote(source, target, each, seed) for seed, source in enumerate(sources)])
        settled = ray.put(federated.settle(learner, samples))
        found = answers(ray, [learn.remote(settled, source, target) for source in sources])
        models = [model for model, _ in found]
        level = [ray.put(model) for model in models]
        while len(level) > 1:
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [join.remote(size, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        whole = answers(ray, level[0] if len(models) > 1 else join.remote(size, level[0]))
        asked = ray.put([*models, whole])
        losses = answers(ray, [measure.remote(asked, source, target) for source in sources])
        self._fits.append(federated.report_of([*models, whole], losses, [learned for _, learned in found]))
        return whole

    # ---- many settings at once ----------------------------------------------------------------------------------------

    def map(self, learners: Any, stream: Any, metrics: object = None, window: int = 1000) -> Mapped:
        """Many learners along one stream, shared out among the shards; each is what it would be alone.

        Parameters
        ----------
        learners : list of learners, or dict of name to learner
        stream : Stream, pair (X, y), or iterable of chunks (X, y)
        metrics, window : as for `gristmill.evaluate.prequential`

        Returns
        -------
        learners : list
            As they are after the stream, in the order in which they were given; `comparison` has the record of each.
        """
        ray = self._running()
        named = named_models(learners)
        if not named:
            raise ValueError("map was given no learner")
        source = as_stream(stream)
        names = list(named)
        dealt = [names[at :: self.shards] for at in range(min(self.shards, len(names)))]
        kind = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(Bench)
        benches = [
            kind.remote({name: named[name] for name in own}, metrics, window, source.classes, source.name)
            for own in dealt
        ]
        waiting: list[Any] = []
        for chunk in source:
            held = ray.put(chunk)
            waiting.append([bench.feed.remote(held) for bench in benches])
            if len(waiting) > 4:
                ray.get(waiting.pop(0))
        for asked in waiting:
            ray.get(asked)
        results = {result.name: result for found in ray.get([b.finish.remote() for b in benches]) for result in found}
        return Mapped(Comparison([results[name] for name in names]))

    # ---- places and reports -------------------------------------------------------------------------------------------

    def _places(self, name: str) -> tuple[str | None, Log | None]:
        """The folders of the snapshots and the log of a fleet."""
        if self.snapshots is None:
            return None, None
        place = f"{self.snapshots.rstrip('/')}/{name}"
        if self.log is not None:
            path = Path(self.log)
            path = path if name == "keyed" else path.with_name(f"{path.stem}-{name}{path.suffix}")
        else:
            path = Path(place.removeprefix("file://")) / "log.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        return place, Log(path)

    def _show(self, name: str, fleet: ShardedFleet) -> None:
        if self._bar is not None:
            self._bar.show(name, fleet.records)

    def report(self) -> Report:
        """Events, speed, keys, memory, snapshots and restarts of each shard; `print` it for a table."""
        found = Report()
        found.fits = list(self._fits)
        for name, fleet in self._fleets.items():
            for shard, (tally, record) in enumerate(zip(fleet.tallies(), fleet.records, strict=True)):
                found.append(ShardReport.of(name, shard, tally, record))
        return found


def _absolute(place: str) -> str:
    """An absolute path: shards have another working directory than the driver."""
    return place if "://" in place else os.path.abspath(place)
