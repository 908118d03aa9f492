"""The learners of all keys: in memory, up to a number of keys and an age, and beyond it in a spill file or dropped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .._common.times import read_ttl
from .keys import KeyedEvents, Keys, Start, as_text, concatenated, from_texts, selected
from .spill import BATCH, Record, Spill
from .spill_file import check_spill

Found = TypeVar("Found")
Arrays = dict[str, npt.NDArray[Any]]


class Limits(NamedTuple):
    """How many keys stay in memory and for how long, as the core takes it."""

    max_keys: int  # 0: any number
    ttl: float
    spills: bool

    @classmethod
    def of(cls, max_keys: Any, ttl: Any, spill: Any) -> Limits:
        """Of the parameters of a fleet, which are checked."""
        whole = isinstance(max_keys, int | np.integer) and not isinstance(max_keys, bool)
        if max_keys is not None and not (whole and 1 <= max_keys < 2**32 - 1):
            raise ValueError(f"max_keys must be a whole number above 0 and below 2**32 - 1, or None, got {max_keys!r}")
        age = read_ttl(ttl)
        if spill is not None:
            check_spill(spill)
            if max_keys is None:
                raise ValueError("spill stores the keys beyond max_keys; give max_keys too")
        return cls(int(max_keys or 0), age, spill is not None)


class KeyStore:
    """Learners by key, in memory and on disk. Each change reaches both or neither.

    A change is pending in the core until the records that it evicts are written: then both are committed. If the file cannot
    be written, the core is rolled back. Readers on other threads must be kept away while something changes.

    Parameters
    ----------
    core : compiled store of the keys in memory
    start : what the first events have settled
    max_keys, ttl, spill : parameters of the fleet
    """

    def __init__(self, core: Any, start: Start, max_keys: object, ttl: Any, spill: Any) -> None:
        self.core, self.start = core, start
        self._limits = Limits.of(max_keys, ttl, spill)
        self._given = (max_keys, ttl, spill)
        self._spill: Spill | None = None

    # ---- limits -----------------------------------------------------------------------------------------------------

    def has(self, max_keys: object, ttl: Any, spill: Any) -> bool:
        """Whether these parameters are the present ones."""
        was_keys, was_ttl, was_spill = self._given
        return max_keys is was_keys and ttl is was_ttl and spill is was_spill

    def configure(self, max_keys: Any, ttl: Any, spill: Any) -> None:
        """Change the limits in mid-stream; surplus keys leave the memory, and another path gets the records."""
        limits, before = Limits.of(max_keys, ttl, spill), self._given
        if before[2] is not None and spill is None:
            raise ValueError(
                f"spill was {before[2]!r} and is now None: keys that are not in memory would be lost; set it back, or to "
                "another path, to which they are moved"
            )
        if self._spill is not None and not self._spill.is_at(spill):
            moved = Spill(spill)
            moved.take(self._spill)
            old, self._spill = self._spill, moved
            old.close()
        self._limits, self._given = limits, (max_keys, ttl, spill)
        try:
            self._changed(partial(self.core.configure, *limits))
        except BaseException:
            self._limits, self._given = Limits.of(*before), before  # the next call tries again
            raise

    def close(self) -> None:
        """Remove the spill file."""
        if self._spill is not None:
            self._spill.close()
            self._spill = None

    # ---- changes ----------------------------------------------------------------------------------------------------

    def learn(self, events: KeyedEvents, offsets: Any, want: bool) -> Any:
        """Learn events that the core has not checked yet; scores before each, if they are wanted."""
        given = (events.labels, events.weights, offsets, events.times, events.known)
        if not self._limits.spills:
            return self.core.learn(events.rows, events.X, *given, [], want)
        return self._changed(lambda: self.core.learn(events.rows, events.X, *given, self._spilled(events.rows), want))

    def set_members(self, rows: Keys, pack: Arrays, last: Any) -> None:
        """Replace the learners of some keys; last: the time of the last event of each."""
        self._changed(lambda: self.core.set_members(rows, pack, last, self._spilled(rows)))

    def restore(self, rows: Keys, pack: Arrays, last: Any, slots: Any, touched: Any, hand: int) -> None:
        """Learners and their places, which decide future evictions. requires: nothing was learned."""
        self._changed(lambda: self.core.restore(rows, pack, last, slots, touched, hand))

    def take(self, other: KeyStore, rows: Keys) -> None:
        """Learners of some keys of another store of the same parts."""
        for first in range(0, len(rows), BATCH):
            some = rows[first : first + BATCH]
            pack = other.members(some)
            self.set_members(some, pack, np.ascontiguousarray(pack.pop("last"), dtype=np.float64))

    def forget(self, rows: Keys) -> int:
        """Remove keys; returns how many of them were known. requires: each key once."""
        there = np.flatnonzero(self.known(rows))
        rows = selected(rows, there)
        if self._spill is None:
            self.core.forget(rows)
        else:
            texts = [(as_text(key, self.start.kind),) for key in rows]
            self._spill.write((), texts, partial(self.core.forget, rows))
        return len(there)

    def _changed(self, change: Callable[[], Found]) -> Found:
        """Run `change` and write the records that it evicts; if that fails, roll the core back."""
        if not self._limits.spills:
            return change()
        try:
            if self._spill is None:
                self._spill = Spill(self._given[2])
            found = change()
            self._write_evicted(self._spill)
        except OSError as error:
            self.core.rollback()
            raise OSError(f"{error}; nothing was learned or changed, and the call can be made again") from error
        except BaseException:
            self.core.rollback()
            raise
        return found

    def _write_evicted(self, spill: Spill) -> None:
        evicted, gone = self.core.evicted()
        if not evicted and not gone:
            self.core.keep()
            return
        past = spill.to_sweep(self.core.now, self._limits.ttl)
        expired = len(self.core.missing(from_texts(past, self.start.kind))) if past else 0
        spill.write(evicted, gone + [(key,) for key in past], partial(self.core.keep, expired))

    # ---- looks ------------------------------------------------------------------------------------------------------

    def _spilled(self, rows: Keys) -> list[Record]:
        """Records on disk of those of these keys that are not in memory."""
        return [] if self._spill is None else self._spill.get(self.core.missing(rows))

    def score(self, rows: Keys, X: Any, offsets: Any, times: Any, shares: bool = False) -> tuple[Any, int]:
        """Scores, or probabilities of the classes (shares), and the number of classes."""
        found: tuple[Any, int] = self.core.score(rows, X, offsets, times, self._spilled(rows), shares)
        return found

    def known(self, rows: Keys) -> Any:
        """Whether each key has a learner."""
        return self.core.known(rows, self._spilled(rows))

    def members(self, rows: Keys) -> Arrays:
        """Learners as lists; KeyError for a key without one."""
        try:
            found: Arrays = self.core.members(rows, self._spilled(rows))
        except IndexError as error:
            raise KeyError(str(error)) from None
        return found

    def keys(self) -> Keys:
        """Every key that is known: those in memory, then the others."""
        return concatenated(self.core.keys(), self.spilled_keys())

    def spilled_keys(self) -> Keys:
        """Keys that are not in memory and not expired, sorted."""
        kind = self.start.kind
        if self._spill is None:
            return from_texts([], kind)
        now, ttl = self.core.now, self._limits.ttl
        rest = set(self.core.missing(from_texts(self._spill.keys(now, ttl), kind)))
        rest.update(key for key, last, _ in self.core.evicted()[0] if not now - last > ttl)  # not written yet
        return from_texts(sorted(rest), kind)

    @property
    def expired(self) -> int:
        """Number of expired keys; expired records stay on disk until the next sweep."""
        if self._spill is None:
            return int(self.core.expired)
        past = self._spill.keys(self.core.now, self._limits.ttl, past=True)
        return int(self.core.expired) + len(self.core.missing(from_texts(past, self.start.kind)))
