"""merge: one model of several that learned apart."""

from __future__ import annotations

from typing import Any

from .._common.ranges import size as size_range
from ..streams.rank import united
from ..streams.scaling import StreamScaler
from .compatibility import check, shares_of


def merge(models: object, size: int | str | None = None, weights: object = "n_seen") -> Any:
    """One model of several that learned apart, from different parts of the data.

    The result predicts the weighted mean of the models' scores: their stored points are united, equal points once, and
    compressed to `size`. It is for distributed data: one pass over all of them, where that is possible, is better,
    because each model has seen less.

    Parameters
    ----------
    models : sequence of fitted models of one kind, with the same parts
        Kernel learners; learners with additive kernels, whose terms are united and the smallest dropped; learners over
        features of one and the same map, whose weights are averaged; any of these behind `Prepared`; `StreamScaler`;
        `AutoClassifier` and the others that race, and `Race`, expert by expert.
        Class lists may differ: they are united, and a model scores 0 for a class that it has not seen.
    size : int or str, optional
        Most points of the result, or its memory in words such as "1 MB"; by default what the models' budget says, the
        largest of them. `Unbounded()` then keeps all. Of a race that shares out memory, that memory, in words.
    weights : "n_seen" or sequence of numbers >= 0, default="n_seen"
        How much each model counts: by default in proportion to the events it has seen.

    Returns
    -------
    model : a model of the same kind
        It learns on as if it had seen all events: `n_seen_` and the steps that schedules go by add up, ages of points
        keep their order within their share of the stream, scaling continues from all counts. Intercepts, adaptive margins
        and rates, the map to probabilities and relevance weights are weighted means (Alma's corrections add up), the
        random state is that of the first model. Positions in the streams of brokers are left out.

    Notes
    -----
    `Prepared`: counts, means and variances add up (smallest and largest with "minmax"), and each stored point goes back
    by the scaling that its model has now, and forward by the merged one. Explicit weights live in the scaled space and
    cannot follow, so they merge behind a scaling only where it is the same for all. Targets that are scaled on the way are
    measured by the mean and spread of all of them.

    Races must be of the same experts. Losses of the experts add up, so that their weights are multiplied. An expert goes on
    where it ran over at least half of the events, with the memory of its rank among all; the others rest, and come
    back as in any race. Trivial experts add their counts, linear models their sums of squares.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, merge, passive_aggressive
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> shards = [passive_aggressive(Gaussian(1.0), size=100).fit(X[i::4], y[i::4]) for i in range(4)]
    >>> model = merge(shards)
    >>> print(f"{model.n_support_} points, {model.n_seen_} events: {(model.predict(X) == y).mean():.2f} right")
    100 points, 4000 events: 0.98 right
    """
    # These bring in what a merge of two kernel learners does not need.
    from ..prepared.prepared import Prepared
    from ..race.race import Racing
    from . import prepared, races
    from .learners import learners

    if size is not None:
        size_range.check("merge", "size", size)
    models = list(models) if isinstance(models, list | tuple) else _no_list(models)
    if not models:
        raise ValueError("merge: there is no model to merge")
    kinds = sorted({type(model).__name__ for model in models})
    if len(kinds) > 1:
        raise TypeError(f"merge: models must be of one kind, got {' and '.join(kinds)}")
    if isinstance(models[0], StreamScaler):
        return united(models)
    if isinstance(models[0], Prepared):
        made = prepared.merged(models, size, weights)
    elif isinstance(models[0], Racing):
        made = races.merged(models, size, weights)
    else:
        check(models)
        made = learners(models, size, shares_of(models, weights))
    # How far one model has read a broker says nothing about the others: going on from there would learn events twice.
    vars(made).pop("stream_positions_", None)
    return made


def _no_list(models: object) -> list[Any]:
    raise TypeError(f"merge: models must be a list or tuple of fitted models, got {type(models).__name__}")
