"""Eviction: how many keys stay in memory, for how long, and where the others go (spill file or dropped)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._common.frozen_params import FrozenParams
from .._common.seqlock import SeqLock
from .._common.times import read_ttl
from .base import FleetBase
from .keys import KeyKind, as_text, from_texts
from .spill import Record, Spill
from .spill_lock import check_spill

Found = TypeVar("Found")


class Room(NamedTuple):
    """Limits passed to the core."""

    max_keys: int  # 0: any number
    ttl: float
    spills: bool


class EvictingFleet(FleetBase):
    """Keys in memory and on disk, updated in one transaction; and parameters that may change in mid-stream."""

    max_keys: Any
    ttl: Any
    spill: Any
    prior: Any
    _kind: KeyKind | None = None
    _spill: Spill | None = None
    _turns: SeqLock | None = None  #: guards updates of several parts: spill file, prior
    _runs_with: FrozenParams | None = None
    _given: tuple[Any, Any, Any] = (None, None, None)  #: max_keys, ttl and spill as the core has them

    # ---- parameters -------------------------------------------------------------------------------------------------

    def _room(self) -> Room:
        cap = self.max_keys
        whole = isinstance(cap, int | np.integer) and not isinstance(cap, bool)
        if cap is not None and not (whole and 1 <= cap < 2**32 - 1):
            raise ValueError(f"max_keys must be a whole number above 0 and below 2**32 - 1, or None, got {cap!r}")
        ttl = read_ttl(self.ttl)
        if self.spill is not None:
            check_spill(self.spill)
            if cap is None:
                raise ValueError("spill takes what max_keys leaves no room for; give max_keys too")
        return Room(int(cap or 0), ttl, self.spill is not None)

    def _run_with(self) -> None:
        """Record the parameters; later changes are changes in mid-stream."""
        self._runs_with = FrozenParams(self, ("prototype", "prior"))
        self._given = (self.max_keys, self.ttl, self.spill)
        if self._turns is None and not (self.spill is None and self.prior is None):
            self._turns = SeqLock()

    def _check_parameters(self) -> None:
        if self._runs_with is not None:
            self._runs_with.refuse_changed(self)
        super()._check_parameters()

    def _settle(self) -> Any:
        """The core with the present parameters; raises if a fixed parameter was changed in mid-stream."""
        core = self._started()
        if self._runs_with is not None:
            self._runs_with.refuse_changed(self)
            max_keys, ttl, spill = self._given
            if not (self.max_keys is max_keys and self.ttl is ttl and self.spill is spill):
                self._change_room(core)
        return core

    def _change_room(self, core: Any) -> None:
        room, before = self._room(), self._given[2]
        if before is not None and self.spill is None:
            raise ValueError(
                f"spill was {before!r} and is now None: keys that are not in memory would be lost; set it back, or to "
                "another path, to which they are moved"
            )
        self._turns = self._turns or (SeqLock() if room.spills else None)
        with self._writing():
            if self._spill is not None and not self._spill.is_at(self.spill):
                moved = Spill(self.spill)
                moved.take(self._spill)
                self._spill.close()
                self._spill = moved
            self._kept(core, partial(core.configure, *room))
            self._given = (self.max_keys, self.ttl, self.spill)

    # ---- changes and looks ------------------------------------------------------------------------------------------

    def _writing(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._turns is None else self._turns.write()

    def _looking(self, find: Callable[[], Found]) -> Found:
        """Result of `find` over memory and disk, at one consistent state."""
        return find() if self._turns is None else self._turns.read(find)

    def _kept(self, core: Any, change: Callable[[], Found]) -> Found:
        """Run `change` and write evicted records to the spill file; roll back the core if the write fails."""
        if self.spill is None:
            return change()
        try:
            if self._spill is None:
                self._spill = Spill(self.spill)
            found = change()
            self._hand_over(core, self._spill)
        except OSError as error:
            core.rollback()
            raise OSError(f"{error}; nothing was learned or changed, and the call can be made again") from error
        except BaseException:
            core.rollback()
            raise
        return found

    def _hand_over(self, core: Any, spill: Spill) -> None:
        leaving, gone = core.evicted()
        if not leaving and not gone:
            core.keep()
            return
        past = spill.to_sweep(core.now, read_ttl(self.ttl))
        expired = len(core.missing(from_texts(past, self._kind))) if past else 0
        spill.write(leaving, gone + [(key,) for key in past], partial(core.keep, expired))

    # ---- keys on disk -----------------------------------------------------------------------------------------------

    def _found(self, core: Any, rows: Any) -> list[Record]:
        """Records on disk of those of these keys that are not in memory."""
        return [] if self._spill is None else self._spill.get(core.missing(rows))

    def _others(self, core: Any) -> Any:
        """Keys that are not in memory and not past their time, sorted, as the core takes them."""
        if self._spill is None:
            return from_texts([], self._kind)
        now, ttl = core.now, read_ttl(self.ttl)
        rest = set(core.missing(from_texts(self._spill.keys(now, ttl), self._kind)))
        rest.update(key for key, last, _ in core.evicted()[0] if not now - last > ttl)  # on their way
        return from_texts(sorted(rest), self._kind)

    def _expired(self, core: Any) -> int:
        """Number of expired keys; expired records stay on disk until the next sweep."""
        if self._spill is None:
            return int(core.expired)
        past = self._spill.keys(core.now, read_ttl(self.ttl), past=True)
        return int(core.expired) + len(core.missing(from_texts(past, self._kind)))

    def _forget(self, core: Any, rows: Any) -> int:
        """requires: each key once."""
        there = np.flatnonzero(core.known(rows, self._found(core, rows)))
        rows = _some(rows, there)
        if self._spill is None:
            core.forget(rows)
        else:
            texts = [(as_text(key, self._kind),) for key in rows]
            self._spill.write((), texts, partial(core.forget, rows))
        return len(there)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_spill", "_kind", "_turns", "_runs_with", "_given")
        return {key: value for key, value in super().__getstate__().items() if key not in own}


def _some(rows: Any, places: Any) -> Any:
    return rows[places] if isinstance(rows, np.ndarray) else [rows[i] for i in places.tolist()]
