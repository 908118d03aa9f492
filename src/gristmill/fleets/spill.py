"""Records of keys that are not in memory: a table of an SQLite file, gone with the fleet that made it."""

from __future__ import annotations

import contextlib
import operator
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .spill_lock import APPLICATION, Seat, refuse_foreign

Record = tuple[bytes, bytes]
#: keys of a question to SQLite, which takes so many at a time
_AT_ONCE = 500
#: records of a step of a long way
BATCH = 10_000
_DAMAGED = "is damaged, or another program has changed it"
#: what SQLite's codes mean for who reads the message
_CAUSES = {
    "SQLITE_BUSY": "is locked by another program",
    "SQLITE_LOCKED": "is locked by another program",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_IOERR": "cannot be read or written",
    "SQLITE_READONLY": "may not be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_PERM": "may not be opened",
}


class Spill:
    """Key -> record on disk, with the time of the last event. Fleets that have the same path have a table each."""

    patience = 5.0  #: seconds to wait for a program that has locked the file

    def __init__(self, place: Any) -> None:
        self.place = place  # held: a temporary one goes with the last who holds it
        self._path = os.fsdecode(place)
        self._table = f"records_{secrets.token_hex(8)}"
        self._lock = threading.RLock()
        self._written, self._swept = 0, BATCH
        with self._named(opening=True):
            while (seat := self._seated()) is None:
                pass
        self._end = weakref.finalize(self, _drop, self._link, self._table, seat, os.getpid())

    def _seated(self) -> Seat | None:
        """Open the file and have a seat at it; None: somebody else had the same idea, so once more."""
        seat = Seat(self._path)
        try:
            refuse_foreign(self._path)
            if seat.is_alone:
                seat.clear()
            self._link = self._opened()
            if seat.settle():
                return seat
            self._link.close()
        except BaseException:
            seat.leave()
            raise
        seat.leave()
        return None

    def _opened(self) -> sqlite3.Connection:
        link = sqlite3.connect(self._path, timeout=self.patience, check_same_thread=False, isolation_level=None)
        try:
            link.execute(f"PRAGMA application_id={APPLICATION}")
            # A crash loses the fleet in memory too: what lasts is `save`.
            link.execute("PRAGMA synchronous=OFF")
            link.execute("PRAGMA journal_mode=WAL")
            link.execute(f"CREATE TABLE {self._table} (key BLOB PRIMARY KEY, last REAL, record BLOB NOT NULL)")
        except BaseException:
            link.close()
            raise
        return link

    @contextlib.contextmanager
    def _named(self, opening: bool = False) -> Iterator[None]:
        """SQLite's errors name neither the file nor, in plain words, the cause."""
        try:
            yield
        except sqlite3.Error as error:
            code = str(getattr(error, "sqlite_errorname", ""))
            known = next((said for name, said in _CAUSES.items() if code.startswith(name)), _DAMAGED)
            if opening and "locked" not in known and "full" not in known:
                known = "cannot be used"
            raise OSError(f"the spill file {self._path!r} {known}: {error}") from error
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            raise OSError(f"the spill file {self._path!r} cannot be used: {error}") from error

    def write(self, records: Iterable[Any], gone: Iterable[Any], then: Callable[[], Any]) -> None:
        """Let go of keys, take records, and do `then`, which is compiled and cannot fail: all of it or nothing."""
        with self._lock, self._named():
            self._link.execute("BEGIN IMMEDIATE")
            try:
                self._link.executemany(f"DELETE FROM {self._table} WHERE key = ?", gone)
                changed = self._link.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?)", records)
                # No line of Python runs between the two, so an interrupt comes before both or after both.
                tuple(map(operator.call, (self._link.commit, then)))
            except BaseException:
                if self._link.in_transaction:
                    self._link.rollback()
                raise
            self._written += max(changed.rowcount, 0)

    def get(self, keys: list[bytes]) -> list[Record]:
        found: list[Record] = []
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            marks = ",".join("?" * len(some))
            found += self._asked(f"SELECT key, record FROM {self._table} WHERE key IN ({marks})", some)
        if not all(type(record) is bytes for _, record in found):
            raise OSError(
                f"the spill file {self._path!r} is damaged: it holds a record that is not one of this fleet's"
            )
        return found

    def keys(self, now: float, ttl: float, past: bool = False) -> list[bytes]:
        """Keys that are not past their time, or those that are."""
        return [
            key
            for (key,) in self._asked(
                f"SELECT key FROM {self._table} WHERE {'' if past else 'NOT'} (? - last > ?)", (now, ttl)
            )
        ]

    def to_sweep(self, now: float, ttl: float) -> list[bytes]:
        """Keys past their time, looked for whenever as much was written as there was at the last look."""
        if self._written < self._swept:
            return []
        found = self.keys(now, ttl, past=True)
        self._written, self._swept = 0, max(BATCH, len(self) - len(found))
        return found

    def take(self, other: Spill) -> None:
        """All records of another one."""
        first = -1
        while some := other._asked(
            f"SELECT rowid, key, last, record FROM {other._table} WHERE rowid > ? ORDER BY rowid LIMIT {BATCH}",
            (first,),
        ):
            self.write((row[1:] for row in some), (), int)
            first = some[-1][0]

    def __len__(self) -> int:
        return int(self._asked(f"SELECT count(*) FROM {self._table}")[0][0])

    def _asked(self, question: str, given: Any = ()) -> list[Any]:
        with self._lock, self._named():
            return self._link.execute(question, given).fetchall()

    def is_at(self, place: Any) -> bool:
        return self._path == os.fsdecode(place)

    def close(self) -> None:
        self._end()


def _drop(link: sqlite3.Connection, table: str, seat: Seat, owner: int) -> None:
    """The table goes; with the last one, the file."""
    if os.getpid() != owner:  # a process that was forked off: the file is its parent's
        return
    last = seat.may_remove()
    with contextlib.suppress(sqlite3.Error):  # the file may be gone; it holds nothing that anyone needs
        if not last:
            link.execute(f"DROP TABLE IF EXISTS {table}")
    link.close()
    if last:
        with contextlib.suppress(OSError):
            seat.clear()
    seat.leave()
