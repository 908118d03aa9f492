"""Events that wait for their labels, by an id: `learn_one(x, id=...)`, then `label(id, y)`.

Learners assign these functions as methods, so that they do not get one more base.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

import numpy as np

from .._common.types import Labels

#: events that wait at most; the oldest is forgotten for one more
MOST = 10_000


class Waits(Protocol):
    """A learner that has these methods."""

    learn_one: Callable[..., None]
    _waiting: Mapping[Hashable, object]


def wait(self: Waits, key: Hashable, x: object, y: object) -> None:
    """Keep an event until its label comes."""
    if y is not None:
        raise ValueError(f"learn_one: the event {key!r} has a label; id= is for an event whose label comes later")
    waiting = dict(self.__dict__.get("_waiting", {}))
    if key in waiting:
        raise ValueError(f"learn_one: an event with id={key!r} waits for its label already")
    kept = np.array(x) if isinstance(x, np.ndarray) else x.copy() if hasattr(x, "copy") else x
    waiting[key] = kept  # in a dict of its own: a copy of the learner waits by itself
    if len(waiting) > MOST:
        del waiting[next(iter(waiting))]
    self._waiting = waiting


def label(self: Waits, id: Hashable, y: Labels, sample_weight: float = 1.0) -> None:
    """Learn the event that came as `learn_one(x, id=...)`, now that its label is known.

    At most 10,000 events wait; the oldest is forgotten for one more. Events that wait are pickled with the model, and
    are no part of a model file.

    Parameters
    ----------
    id : hashable
        As it was given with the event.
    y : label or target
    sample_weight : float, default=1.0

    Examples
    --------
    >>> from gristmill import AutoClassifier
    >>> model = AutoClassifier().fit([[0.0], [2.0]] * 20, ["calm", "storm"] * 20)
    >>> model.learn_one([1.9], id="order 7")
    >>> model.n_waiting_, model.n_seen_
    (1, 40)
    >>> model.label("order 7", "storm")
    >>> model.n_waiting_, model.n_seen_
    (0, 41)
    """
    waiting = self.__dict__.get("_waiting", {})
    if id not in waiting:
        raise KeyError(
            f"label: no event with id={id!r} waits for its label: it has come already, or was among the oldest of more "
            f"than {MOST:,} that waited"
        )
    self.learn_one(waiting[id], y, sample_weight)
    self._waiting = {key: kept for key, kept in waiting.items() if key != id}


def _n_waiting(self: Waits) -> int:
    """How many events wait for their labels."""
    return len(self.__dict__.get("_waiting", ()))


n_waiting_ = property(_n_waiting)
