"""A seqlock: one writer at a time; readers see the state before or after an update, never a part of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Found = TypeVar("Found")


class SeqLock:
    """Guards state that is kept in several places. Readers do not wait for each other.

    `write` does for a chunk; a lone event has no time for it, and its writer holds `lock` and counts `moment` up, to an odd
    number while something changes.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.moment = 0

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        with self.lock:
            self.moment += 1
            try:
                yield
            finally:
                self.moment += 1

    def read(self, find: Callable[[], Found]) -> Found:
        """Result of `find` at one consistent state; repeated under the lock if something changed meanwhile."""
        moment = self.moment
        if moment % 2 == 0:
            try:
                found = find()
            except Exception:
                if self.moment == moment:
                    raise
            else:
                if self.moment == moment:
                    return found
        with self.lock:
            return find()
