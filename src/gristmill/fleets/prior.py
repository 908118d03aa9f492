"""The prior shared by all keys, with rollback to the last committed chunk."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

#: most samples that a rollback replays
_MOST = 1000


class UndoablePrior:
    """A learner with undo: a copy is taken once in a while, and a log of the chunks since then is replayed on rollback.

    A replay gives the same learner, however the stream is cut into chunks.

    Parameters
    ----------
    learner : the learner, which changes with what it learns
    """

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self._copy: Any = None
        self._since: dict[int, tuple[Any, Any, dict[str, Any]]] = {}  # by number: keeping a chunk twice changes nothing
        self.checked_events = self._number = 0
        self._waits: tuple[Any, Any, dict[str, Any]] | None = None

    def learn(self, X: Any, y: Any, weights: Any, classes: Any) -> npt.NDArray[np.float64]:
        """Learn and return the predictions made before; `keep` or `roll_back` must follow."""
        if self._copy is None or self.checked_events + len(X) > _MOST:
            self._copy, self._since, self.checked_events = copy.deepcopy(self.learner), {}, 0
        self.checked_events += len(X)
        self._number += 1
        more = {} if weights is None else {"sample_weight": weights}
        if classes is not None:
            more["classes"] = classes
        # The caller may reuse the arrays.
        self._waits = None if len(X) > _MOST else (X.copy(), copy.copy(y), {k: copy.copy(v) for k, v in more.items()})
        return np.asarray(self.learner.prequential(X, y, **more), dtype=np.float64)

    def keep(self) -> None:
        """Commit the last chunk."""
        if self._waits is None:  # too many samples to replay
            self.settle()
            return
        self._since[self._number] = self._waits

    def settle(self) -> None:
        """Commit everything learned so far and drop the replay log."""
        self._copy = None

    def roll_back(self) -> None:
        """Roll back to the state before the last chunk."""
        if self._copy is None:
            return
        learner = copy.deepcopy(self._copy)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were raised the first time
            for X, y, more in self._since.values():
                learner.prequential(X, y, **more)
        self.learner = learner
