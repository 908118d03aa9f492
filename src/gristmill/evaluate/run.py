"""Prequential runs: predict, score, learn, in that order, for one model or several on the same stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._common.types import Options
from ..streams.errors import StreamError
from ..streams.files.bad_cells import put_aside
from ..streams.stream import Chunk, Stream, as_stream, cut, size
from ..streams.tables.cells import CellError
from ..streams.tables.frame import frame_of
from . import checkpoint as checkpoints
from . import drift as drifts
from . import progress as bars
from .baselines import Baselines
from .delay import DelayedFollower
from .follower import Follower
from .result import Comparison, Result


def prequential(
    model: Any,
    stream: Any,
    metrics: Any = None,
    window: int = 1000,
    delay: int | None = None,
    *,
    warmup: int = 0,
    name: str | None = None,
    checkpoint: Any = None,
    checkpoint_every: int = 100_000,
    progress: bool | None = None,
    drift: bool | None = None,
) -> Result:
    """Run a model along a stream; each event is first predicted, then scored, then learned.

    Parameters
    ----------
    model : learner
        Any estimator of gristmill, fresh or fitted; or any with `partial_fit`, which is then tested on each
        chunk before it is trained on it.
    stream : Stream, pair (X, y), or iterable of chunks (X, y)
        Of tables, such as `read(path, raw=True)`, a row with a cell that does not fit its column is an error after the
        rows before it are learned, unless the stream has a place for bad rows (`read(path, raw=True, bad=BadRows())`).
    metrics : str or list of str, optional
        error, accuracy, balanced_accuracy, log_loss, roc_auc, mae, rmse, alarm_rate, or scikit-learn's names.
    window : int
        Events over which the rolling metrics are taken.
    delay : int, optional
        Labels come so many events late.
    warmup : int
        The first events, learned but not scored.
    name : str, optional
        For tables; the class of the model otherwise.
    checkpoint : path, optional
        Where the model is saved on the way, with the record beside it; a run that finds it there goes on from
        it.
    checkpoint_every : int
        Events between two savings.
    progress : bool, optional
        Draw a progress display; by default where there is a terminal.
    drift : bool, optional
        Mark where the error changed, in `drifts` of the result, by River's ADWIN; by default where River is
        installed.

    Returns
    -------
    result : Result
        Its `model` is the fitted one.

    Examples
    --------
    >>> from gristmill import Gaussian, perceptron
    >>> from gristmill.evaluate import prequential
    >>> from gristmill.streams import drifting_digits
    >>> result = prequential(perceptron(Gaussian(0.001)), drifting_digits(n_events=2000))
    >>> result.n_events
    2000
    """
    source = as_stream(stream)
    named = {name or type(model).__name__: model}
    followers = followers_of(named, source, metrics, window, warmup, delay, drift)
    if checkpoint is None:
        return Run(followers, source, progress).go_on()[0]
    if delay:
        raise ValueError("a checkpoint does not hold the labels still to come: give checkpoint or delay, not both")
    if checkpoint_every < 1:
        raise ValueError(f"checkpoint_every must be at least 1, got {checkpoint_every!r}")
    follower = followers[0]
    done = checkpoints.restore(follower, checkpoint)
    rest = source.skip(done) if done else source
    last = done

    def save_when_due() -> None:
        nonlocal last
        if follower.result.n_events - last >= checkpoint_every:
            checkpoints.write(follower, checkpoint)
            last = follower.result.n_events

    result = Run(followers, rest, progress, done, save_when_due).go_on()[0]
    if result.n_events > last:
        checkpoints.write(follower, checkpoint)
    return result


def compare(
    models: object,
    stream: object,
    metrics: object = None,
    window: int = 1000,
    delay: int | None = None,
    *,
    warmup: int = 0,
    progress: bool | None = None,
    drift: bool | None = None,
) -> Comparison:
    """Run several models along one stream, all in one pass of the data.

    Parameters
    ----------
    models : dict of name to model, or list of models
    stream, metrics, window, delay, warmup, progress, drift :
        As for `prequential`.

    Examples
    --------
    >>> from gristmill import Gaussian, passive_aggressive, perceptron
    >>> from gristmill.evaluate import compare
    >>> from gristmill.streams import drifting_digits
    >>> kernel = Gaussian(0.001)
    >>> models = {"perceptron": perceptron(kernel), "PA-I": passive_aggressive(kernel, size=100)}
    >>> [result.name for result in compare(models, drifting_digits(n_events=500))]
    ['perceptron', 'PA-I']
    """
    source = as_stream(stream)
    return Run(followers_of(_named(models), source, metrics, window, warmup, delay, drift), source, progress).go_on()


def followers_of(
    models: Mapping[str, object],
    source: Stream,
    metrics: object = None,
    window: int = 1000,
    warmup: int = 0,
    delay: int | None = None,
    drift: bool | None = None,
    details: bool = False,
) -> list[Follower]:
    """A follower of each model, by its name."""
    if window < 1 or warmup < 0:
        raise ValueError(f"window must be at least 1 and warmup at least 0, got {window!r} and {warmup!r}")
    if delay is not None and delay < 0:
        raise ValueError(f"delay must be at least 0 or None, got {delay!r}")
    if not models:
        raise ValueError("there is no model to run")
    shared = (metrics, window, warmup, source.classes, source.name, drifts.wanted(drift), details)
    if delay:
        return [DelayedFollower(model, name, *shared, delay=delay, bad=source.bad) for name, model in models.items()]
    return [Follower(model, name, *shared) for name, model in models.items()]


class Run:
    """One pass of a stream for several models: each chunk is fed to each follower.

    A row with a cell that does not fit its column goes to `source.bad`, and the run continues behind it. Without a place for
    bad rows the run ends there; it also ends where the stream cannot be read on, and at an interrupt. What was learned
    before is kept.

    Parameters
    ----------
    followers : list of Follower
    source : Stream
    progress : bool, optional
    done : int
        Events that were learned before this run.
    after_chunk : callable, optional
    baselines : bool
        Whether trivial predictions are scored, too.

    Attributes
    ----------
    error : StreamError or OSError or None
        What ended the stream early.
    """

    def __init__(
        self,
        followers: list[Follower],
        source: Stream,
        progress: bool | None = None,
        done: int = 0,
        after_chunk: Callable[[], None] | None = None,
        baselines: bool = False,
    ) -> None:
        self.followers, self.source, self.error = followers, source, None
        self._progress, self._done, self._after_chunk = progress, done, after_chunk
        self._baselines = Baselines(followers[0].result.task if baselines else "")

    error: Exception | None

    def go(self) -> Comparison:
        """Run to the end of the stream or to an error, which is stored in `error`."""
        followers, source, stopped = self.followers, self.source, ""
        total = None if source.n_events is None else self._done + source.n_events
        with bars.live(followers, total, source.name, bars.wanted(self._progress)) as tick:
            try:
                for chunk in self._chunks():
                    self._take(chunk)
                    if self.error is not None:
                        break
                    if self._after_chunk is not None:
                        self._after_chunk()
                    tick(self._done)
            except KeyboardInterrupt as stop:
                stopped = str(stop) or "interrupted"
        if not self._done and not stopped:
            raise self.error or ValueError(f"{source.name}: the stream holds no event")
        for follower in followers:
            follower.result.stopped = stopped if self.error is None else str(self.error)
        return Comparison([follower.finish() for follower in followers], self._baselines.errors)

    def go_on(self) -> Comparison:
        """Run to the end of the stream; errors are raised, an interrupt is not."""
        comparison = self.go()
        if self.error is not None:
            raise self.error
        return comparison

    def _chunks(self) -> Iterator[Chunk]:
        """The chunks up to the first error of the source."""
        chunks = iter(self.source)
        while True:
            try:
                chunk = next(chunks, None)
            except (ValueError, OSError) as error:
                self.error = error
                return
            if chunk is None:
                return
            yield chunk

    def _take(self, chunk: Chunk) -> None:
        """Feed a chunk to all; the first model decides which rows are bad."""
        first, *others = self.followers
        try:
            while True:
                bad = first.feed(chunk)
                part = chunk if bad is None else cut(chunk, 0, bad.row)
                for follower in others:
                    self._feed(follower, part)
                self._baselines.update(part.y)
                self._done += size(part)
                if bad is None:
                    return
                self._put_aside(bad, chunk)
                chunk = cut(chunk, bad.row + 1, size(chunk))
        except StreamError as error:
            self.error = error

    def _feed(self, follower: Follower, chunk: Chunk) -> None:
        """Feed rows that the first model has learned; another model may refuse some of them."""
        while (bad := follower.feed(chunk)) is not None:
            self._put_aside(bad, chunk)
            chunk = cut(chunk, bad.row + 1, size(chunk))

    def _put_aside(self, bad: CellError, chunk: Chunk) -> None:
        frame, first = frame_of(chunk.X), self._done - bad.row
        if frame.where is None:
            frame = replace(frame, where=lambda row: f"{self.source.name}, row {first + row}")
        put_aside(bad, frame, self.source.bad)


def _named(models: Any) -> dict[str, object]:
    if isinstance(models, Mapping):
        return dict(models)
    named: Options = {}
    for model in models:
        base = type(model).__name__
        key = next(k for k in (base, *(f"{base} {n}" for n in range(2, 10_000))) if k not in named)
        named[key] = model
    return named
