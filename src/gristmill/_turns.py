"""One writer at a time, and readers who see what there is before a change or after it, never half of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Found = TypeVar("Found")


class Turns:
    """For what is kept in several places that change together. Readers do not wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._moment = 0  # odd while something changes

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        with self._lock:
            self._moment += 1
            try:
                yield
            finally:
                self._moment += 1

    def read(self, find: Callable[[], Found]) -> Found:
        """What `find` finds, all of one moment: once more, and alone, if something changed meanwhile."""
        moment = self._moment
        if moment % 2 == 0:
            try:
                found = find()
            except Exception:
                if self._moment == moment:
                    raise
            else:
                if self._moment == moment:
                    return found
        with self._lock:
            return find()
