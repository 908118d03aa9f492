"""A chunk of a keyed fleet, passed through key means, prior and store: committed by all of them or rolled back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .key_means import KeyMeans, Means
from .keys import KeyedEvents
from .prior import UndoablePrior


class Chunk:
    """Events, the offsets that means and prior subtract from their targets, and those to add to the scores again.

    Parameters
    ----------
    prior, means : those of the fleet, or fresh ones; None where the fleet has none
    events : as they came
    """

    def __init__(self, prior: UndoablePrior | None, means: KeyMeans | None, events: KeyedEvents) -> None:
        self.prior, self.means, self.events = prior, means, events
        self.offsets: object = None
        self._added: list[object] = []
        self._found: Means | None = None

    def center(self) -> None:
        """Take the mean of each key off its targets; the first event of a key only settles its mean."""
        assert self.means is not None
        events = self.events
        found = self.means.before(events.rows, events.labels, events.given_weights, events.times)
        rest, weights = np.where(found.known, events.labels - found.level, 0.0), events.given_weights
        if not found.known.all():
            weights = np.where(found.known, 1.0 if weights is None else weights, 0.0)
        self.events = events._replace(labels=rest, y=rest, weights=weights, given_weights=weights)
        self._found = found
        self._added.append(found.level)

    def explain(self, classes: object, offsets: Callable[..., Any] | None) -> None:
        """Let the prior learn; keys learn what is left. offsets: of scores of classes, which are not taken off but added."""
        assert self.prior is not None
        events = self.events
        scores = self.prior.learn(events.X, events.y, events.given_weights, classes)
        if offsets is not None:
            self.offsets = offsets(self.prior.learner, scores, events.table)
        else:
            self.events = events._replace(labels=events.labels - scores)
            self._added.insert(0, scores)

    def whole(self, scores: Any) -> Any:
        """Scores of the keys' learners plus the offsets of their targets."""
        for part in self._added:
            scores = scores + part
        return scores

    def keep(self) -> None:
        """Commit the chunk in means and prior; a second call changes nothing."""
        if self.means is not None and self._found is not None:
            self.means.keep(self._found)
        if self.prior is not None:
            self.prior.keep()

    def roll_back(self) -> None:
        """Roll the prior back; the means change only in `keep`."""
        if self.prior is not None:
            self.prior.roll_back()
