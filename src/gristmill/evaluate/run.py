"""Prequential runs: predict, score, learn, in that order, for one model or several on the same stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..streams.chunks import as_stream, size
from . import progress as bars
from .follow import Follower
from .result import Comparison, Result


def prequential(
    model: Any,
    stream: Any,
    metrics: Any = None,
    window: int = 1000,
    *,
    warmup: int = 0,
    name: str | None = None,
    progress: bool | None = None,
) -> Result:
    """Run a model along a stream; each event is first predicted, then scored, then learned.

    Parameters
    ----------
    model : learner
        Any estimator of gristmill, fresh or fitted; or any with `partial_fit`, which is then tested on each
        chunk before it is trained on it.
    stream : Stream, pair (X, y), or iterable of chunks (X, y)
    metrics : str or list of str, optional
        error, accuracy, balanced_accuracy, log_loss, roc_auc, mae, rmse, alarm_rate, or scikit-learn's names
        for them.
    window : int
        Events over which the rolling metrics are taken.
    warmup : int
        The first events, learned but not scored.
    name : str, optional
        For tables; the class of the model otherwise.
    progress : bool, optional
        Draw a progress display; by default where there is a terminal.

    Examples
    --------
    >>> from gristmill import Gaussian, perceptron
    >>> from gristmill.evaluate import prequential
    >>> from gristmill.streams import drifting_digits
    >>> result = prequential(perceptron(Gaussian(0.001)), drifting_digits(n_events=2000))
    >>> result.n_events
    2000
    """
    known = name or type(model).__name__
    return compare({known: model}, stream, metrics, window, warmup=warmup, progress=progress)[0]


def compare(
    models: Any,
    stream: Any,
    metrics: Any = None,
    window: int = 1000,
    *,
    warmup: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Run several models along one stream, all in one pass of the data.

    Parameters
    ----------
    models : dict of name to model, or list of models
    stream, metrics, window, warmup, progress :
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
    if window < 1 or warmup < 0:
        raise ValueError(f"window must be at least 1 and warmup at least 0, got {window!r} and {warmup!r}")
    source = as_stream(stream)
    followers = [
        Follower(model, name, metrics, window, warmup, source.classes, source.name)
        for name, model in _named(models).items()
    ]
    done = 0
    with bars.live(followers, source.n_events, source.name, bars.wanted(progress)) as tick:
        for chunk in source:
            for follower in followers:
                follower.feed(chunk)
            done += size(chunk)
            tick(done)
    if not done:
        raise ValueError(f"{source.name}: the stream holds no event")
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
