"""What stands in a table: a learner by name, for one task, and how it is made for a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .cases import Case


class Player(Protocol):
    """A learner on a stream, a few rows at a time, whatever library it comes from."""

    rows: int  #: events that it is given at once

    def ready(self, X: Any, y: Any) -> Any:
        """The rows as the library wants them; not timed, for its users have them so."""

    def answer(self, ready: Any) -> Any:
        """What it said of each event before it learned it: a label, a number, or a score that is low for anomalies."""


@dataclass(frozen=True)
class Entry:
    """A learner of the benchmark."""

    name: str
    task: str
    kind: str  #: "ours", "peer", "linear" (a peer too), or "trivial"
    about: str  #: its settings in words; a stored result is used again only if they are the same
    make: Callable[[Case], Player]


class EventByEvent:
    """Base of players that meet one event at a time."""

    rows = 100

    def ready(self, X: Any, y: Any) -> Any:
        return list(zip(X, y.tolist(), strict=True))

    def answer(self, ready: Any) -> Any:
        return [self.one(x, y) for x, y in ready]

    def one(self, x: Any, y: Any) -> Any:
        raise NotImplementedError
