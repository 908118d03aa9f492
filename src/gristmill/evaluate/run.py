"""Prequential runs: predict, score, learn, in that order, for one model or several on the same stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..streams.stream import Stream, as_stream, size
from . import checkpoint as checkpoints
from . import drift as drifts
from . import progress as bars
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
    followers = _followers(named, source, metrics, window, warmup, delay, drift)
    if checkpoint is None:
        return _run(followers, source, progress)[0]
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

    result = _run(followers, rest, progress, done, save_when_due)[0]
    if result.n_events > last:
        checkpoints.write(follower, checkpoint)
    return result


def compare(
    models: Any,
    stream: Any,
    metrics: Any = None,
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
    return _run(_followers(_named(models), source, metrics, window, warmup, delay, drift), source, progress)


def _followers(
    models: dict[str, Any],
    source: Stream,
    metrics: Any,
    window: int,
    warmup: int,
    delay: int | None,
    drift: bool | None,
) -> list[Follower]:
    if window < 1 or warmup < 0:
        raise ValueError(f"window must be at least 1 and warmup at least 0, got {window!r} and {warmup!r}")
    if delay is not None and delay < 0:
        raise ValueError(f"delay must be at least 0 or None, got {delay!r}")
    if not models:
        raise ValueError("there is no model to run")
    shared = (metrics, window, warmup, source.classes, source.name, drifts.wanted(drift))
    if delay:
        return [DelayedFollower(model, name, *shared, delay=delay) for name, model in models.items()]
    return [Follower(model, name, *shared) for name, model in models.items()]


def _run(
    followers: list[Follower], source: Stream, progress: bool | None, done: int = 0, after_chunk: Any = None
) -> Comparison:
    """Feed every follower every chunk. An interrupt ends the stream there: what was learned is kept."""
    total = None if source.n_events is None else done + source.n_events
    stopped = ""
    with bars.live(followers, total, source.name, bars.wanted(progress)) as tick:
        try:
            for chunk in source:
                for follower in followers:
                    follower.feed(chunk)
                done += size(chunk)
                if after_chunk is not None:
                    after_chunk()
                tick(done)
        except KeyboardInterrupt as stop:
            stopped = str(stop) or "interrupted"
    if not done and not stopped:
        raise ValueError(f"{source.name}: the stream holds no event")
    for follower in followers:
        follower.result.stopped = stopped
    return Comparison([follower.finish() for follower in followers])


def _named(models: Any) -> dict[str, Any]:
    if isinstance(models, Mapping):
        return dict(models)
    named: dict[str, Any] = {}
    for model in models:
        base = type(model).__name__
        key = next(k for k in (base, *(f"{base} {n}" for n in range(2, 10_000))) if k not in named)
        named[key] = model
    return named
