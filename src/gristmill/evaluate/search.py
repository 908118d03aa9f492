"""Choosing parameters on a stream: successive halving by prequential loss, in one pass of the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._common.tables import html_table, text_table
from .._common.types import Json
from ..notation import written
from ..streams.errors import BadRows, StreamError
from ..streams.files.bad_cells import put_aside
from ..streams.stream import Chunk, as_stream, cut, size
from ..streams.tables.cells import CellError
from ..streams.tables.frame import Frame, frame_of
from . import progress as bars
from .follower import Follower
from .result import Comparison, Result, number

#: a follower that has learned, and the bad rows: number of the chunk, row, column, reason
_Fed = tuple[Follower, list[tuple[int, int, str, str]]]
#: events handed to a worker at a time
_BATCH = 20_000


@dataclass
class SearchResult:
    """All candidates with their events and metric, the best first.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive
    >>> from gristmill.evaluate import search
    >>> from gristmill.streams import drifting_digits
    >>> build = lambda C: passive_aggressive(Gaussian(0.0015), C=C, size=100)
    >>> found = search(build, {"C": [0.01, 0.1, 0.3]}, drifting_digits(n_events=4000))
    >>> found.best_params
    {'C': 0.3}
    """

    params: list[dict[str, object]]  #: of each candidate, best first
    results: list[Result]  #: in the same order
    metric: str
    rungs: list[int] = field(default_factory=list)  #: events after which candidates were dropped
    stopped: str = ""  #: why the search ended before its stream did
    error: Exception | None = None  #: what the stream ended with, if it could not be read on

    @property
    def best_params(self) -> dict[str, object]:
        return self.params[0]

    @property
    def best_model(self) -> Any:
        """The best candidate, fitted on the whole stream (on what came before an interrupt)."""
        return self.results[0].model

    def rows(self) -> list[Json]:
        """One flat row a candidate."""
        return [
            {
                **params,
                "events": result.n_events,
                self.metric: result.metrics[self.metric],
                "stored": result.stored,
            }
            for params, result in zip(self.params, self.results, strict=True)
        ]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings and cells, as people read them."""
        names = list(self.params[0])
        body = [
            [
                *(str(params[name]) for name in names),
                f"{result.n_events:,}",
                number(result.metrics[self.metric]),
                f"{result.stored:,}",
            ]
            for params, result in zip(self.params, self.results, strict=True)
        ]
        return [*names, "events", self.metric, "stored points"], body

    def to_frame(self) -> Any:
        """The whole table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def table(self) -> str:
        """The whole table as text."""
        return text_table(*self.cells())

    __str__ = __repr__ = table

    def _repr_html_(self) -> str:
        return html_table(*self.cells(), f"{len(self.params)} candidates, the best first")

    def comparison(self) -> Comparison:
        """The candidates that came to the end of the stream, or were running when it was interrupted."""
        most = self.results[0].n_events
        # An interrupt leaves some of the running ones a batch behind; those that were dropped stand at a rung.
        return Comparison([r for r in self.results if r.n_events >= most or r.n_events not in self.rungs])


def search(
    builder: object,
    grid: Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]] | None = None,
    stream: object = None,
    metric: str | None = None,
    *,
    first: int | None = None,
    keep: float = 1 / 3,
    window: int = 1000,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> SearchResult:
    """Try every combination of parameters on a stream, and drop the worst on the way.

    All candidates learn the first events; the best third goes on to three times as many, and so forth, until
    the stream ends. Every candidate sees every event at most once, and the data are read once. An interrupt
    (Ctrl-C) ends the stream there, and what was found so far is returned.

    Parameters
    ----------
    builder : callable
        Called with a combination as keyword arguments, returns a learner. `search(stream)`, with the stream alone, needs
        none: the candidates are the experts of the learners without settings, each by itself with a megabyte.
    grid : dict of lists, or list of dicts
        Every combination of the lists; or the combinations themselves.
    stream : Stream, pair (X, y), or iterable of chunks
    metric : str, optional
        Cumulative, by which candidates are ranked; that of the task otherwise.
    first : int, optional
        Events before the first are dropped; so that three are left at the end if the length is known, else
        1000.
    keep : float in (0, 1)
        Share that goes on.
    window : int
        For the rolling metrics of the curves.
    n_jobs : int, optional
        Processes; as in scikit-learn -1 is all cores and None is one.
    progress : bool, optional

    References
    ----------
    K. Jamieson, A. Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS
    2016.
    """
    found = tried(
        builder, grid, stream, metric, first=first, keep=keep, window=window, n_jobs=n_jobs, progress=progress
    )
    if found.error is not None:
        raise found.error
    return found


def tried(
    builder: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
    stream: Any = None,
    metric: str | None = None,
    *,
    first: int | None = None,
    keep: float = 1 / 3,
    window: int = 1000,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> SearchResult:
    """As `search`; if the stream breaks off, the result so far with its `error`."""
    if not 0 < keep < 1:
        raise ValueError(f"keep must be in (0, 1), got {keep!r}")
    if stream is None:
        if grid is not None or callable(builder):
            raise TypeError("search: give a builder, a grid and a stream, or a stream alone")
        source, builder, grid = without_settings(as_stream(builder))
    else:
        source = as_stream(stream)
    combinations = _combinations({} if grid is None else grid)
    candidates = [
        Follower(builder(**params), _name(params), metric, window, 0, source.classes, source.name)
        for params in combinations
    ]
    rung = first if first is not None else _first_rung(len(candidates), source.n_events, keep)
    if rung < 1:
        raise ValueError(f"first must be at least 1, got {rung!r}")
    race = _Race(candidates, rung, keep, n_jobs, source.bad)
    stopped, error = "", None
    with bars.live([], source.n_events, f"{len(combinations)} candidates", bars.wanted(progress)) as tick:
        try:
            for chunk in source:
                race.take(chunk)
                tick(race.done)
            race.flush()
        except KeyboardInterrupt as stop:
            stopped = str(stop) or "interrupted"
        except (StreamError, OSError) as caught:
            race.flush()  # the rows before those that cannot be read
            error, stopped = caught, str(caught)
    if not race.done and (error is not None or not stopped):
        raise error or ValueError(f"{source.name}: the stream holds no event")
    by_name = {_name(params): params for params in combinations}
    results = [follower.finish() for follower in race.ranking()]
    for result in results:
        result.stopped = stopped
    params = [by_name[result.name] for result in results]
    return SearchResult(params, results, race.metric.name, race.rungs, stopped, error)


def without_settings(
    source: Any, task: str | None = None, memory: int | str = "1 MB"
) -> tuple[Any, Callable[..., Any], list[Json]]:
    """The stream, and the experts for its first rows as candidates, by their text; the task is guessed if not given."""
    from ..race import auto, expert_sets
    from ..race.baselines import Trivial
    from .baselines import task_of_target

    chunks = iter(source)
    first = next(chunks, None)
    if first is None:
        raise ValueError(f"{source.name}: the stream holds no event")
    width, task = first.X.shape[1], task or task_of_target(first.y)
    if task == "novelty":
        raise ValueError("search: without labels detectors cannot be compared; use AutoNovelty")
    made = expert_sets.for_classes(width) if task == "classification" else expert_sets.for_numbers(width)
    experts = {written(e): e for e in made if not isinstance(e, Trivial)}
    kind = auto.AutoClassifier if task == "classification" else auto.AutoRegressor

    def build(expert: str) -> Any:
        return kind(memory, experts=[experts[expert]])

    whole = replace(source, chunks=lambda: itertools.chain([first], chunks))
    return whole, build, [{"expert": text} for text in experts]


class _Race:
    """The running candidates; at each rung the worst are dropped."""

    def __init__(
        self, candidates: list[Follower], rung: int, keep: float, n_jobs: int | None, bad: BadRows | None
    ) -> None:
        self._bad = bad
        self.running, self.dropped = candidates, list[Follower]()
        self.rung, self.keep, self.n_jobs = rung, keep, n_jobs
        self.metric = candidates[0].kinds[0]
        self.done, self.rungs = 0, list[int]()
        self._waiting, self._count = list[Chunk](), 0

    def take(self, chunk: Chunk) -> None:
        """Take in a chunk, cut where candidates are to be dropped."""
        start, count = 0, size(chunk)
        while start < count:
            left = self.rung - self.done - self._count if len(self.running) > 1 else count
            stop = min(count, start + left)
            self._waiting.append(chunk if (start, stop) == (0, count) else cut(chunk, start, stop))
            self._count += stop - start
            start = stop
            if self.done + self._count == self.rung and len(self.running) > 1:
                self.flush()
                self._drop()
            elif self._count >= _BATCH:
                self.flush()

    def flush(self) -> None:
        """Let every candidate learn the buffered chunks."""
        if not self._waiting:
            return
        chunks, count = self._waiting, self._count
        self._waiting, self._count = [], 0
        fed = _feed(self.running, chunks, self.n_jobs, go_on=self._bad is not None)
        self.running = [follower for follower, _ in fed]
        self.done += count
        for at, row, column, why in fed[0][1]:  # all candidates read the columns in the same way
            put_aside(CellError(row, column, None, why), frame_of(chunks[at].X), self._bad)

    def _drop(self) -> None:
        self.rungs.append(self.running[0].result.n_events)
        ranked = sorted(self.running, key=self._loss)
        left = max(1, math.ceil(len(ranked) * self.keep))
        self.running, self.dropped = ranked[:left], ranked[left:] + self.dropped
        self.rung = math.ceil(self.rung / self.keep)

    def ranking(self) -> list[Follower]:
        """All candidates, best first; those that came further before the others."""
        return sorted(self.running, key=self._loss) + self.dropped

    def _loss(self, follower: Follower) -> float:
        value = follower.tallies[0].value() * (-1.0 if self.metric.greater else 1.0)
        return math.inf if math.isnan(value) else value


def _combinations(grid: Any) -> list[Json]:
    if isinstance(grid, Mapping):
        lists = [list(values) for values in grid.values()]
        found = [dict(zip(grid, values, strict=True)) for values in itertools.product(*lists)]
    else:
        found = [dict(params) for params in grid]
    if not found:
        raise ValueError("the grid holds no combination: every parameter needs at least one value")
    return found


def _name(params: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _first_rung(candidates: int, n_events: int | None, keep: float) -> int:
    if n_events is None:
        return 1000
    halvings = max(0, math.ceil(math.log(max(candidates, 1) / 3) / -math.log(keep))) if candidates > 3 else 0
    return max(100, int(n_events * keep ** (halvings + 1)))


def _feed(followers: list[Follower], chunks: list[Chunk], n_jobs: int | None, go_on: bool) -> list[_Fed]:
    if n_jobs in (None, 1) or len(followers) == 1:
        return [_fed(follower, chunks, go_on) for follower in followers]
    from joblib import Parallel, delayed

    sent = [chunk._replace(X=replace(chunk.X, where=None)) if isinstance(chunk.X, Frame) else chunk for chunk in chunks]
    return list(Parallel(n_jobs=n_jobs)(delayed(_fed)(follower, sent, go_on) for follower in followers))


def _fed(follower: Follower, chunks: list[Chunk], go_on: bool) -> _Fed:
    """Learn chunks up to the first bad row, or with `go_on` all good rows; also returns the bad ones."""
    bad: list[tuple[int, int, str, str]] = []
    for at, chunk in enumerate(chunks):
        start = 0
        while (error := follower.feed(cut(chunk, start, size(chunk)))) is not None:
            bad.append((at, start + error.row, error.column, error.why))
            if not go_on:
                return follower, bad
            start += error.row + 1
    return follower, bad
