"""Records of keys that are not in memory: a table of an SQLite file, gone with the fleet that made it.

Each record has a mark: the CRC-32 of table, time, key and record. A changed record, or one under another key, does not fit
its mark. For each of 1,024 buckets of keys this connection counts its records and adds up their marks, in tables that no
other connection sees. So a key that is not found, after another connection has written to the file, is new, or it is
reported as lost.

A process that was forked off may read as long as its parent has not written since, and may not write.
"""

from __future__ import annotations

import contextlib
import operator
import os
import secrets
import sqlite3
import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from .spill_lock import APPLICATION, SpillLock, refuse_foreign

Record = tuple[bytes, bytes]
#: keys of a question to SQLite, which takes so many at a time
_AT_ONCE = 500
#: records of a step of a long way
BATCH = 10_000
_BUCKETS = 1024
_MASK = 2**62 - 1  # of sums of marks: SQLite's whole numbers have 63 bits and a sign
_TIME = struct.Struct("<d")
#: connections of a parent process: they are neither used nor closed by its children
_inherited: list[Any] = []
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


_TABLES = """
CREATE TABLE {table} (key BLOB PRIMARY KEY, last REAL, record BLOB NOT NULL, bucket INTEGER NOT NULL, mark INTEGER NOT NULL);
CREATE INDEX buckets_{table} ON {table} (bucket);
CREATE TABLE changes_{table} (number INTEGER NOT NULL);
INSERT INTO changes_{table} VALUES (0);
PRAGMA temp_store = MEMORY;
PRAGMA recursive_triggers = ON;
CREATE TEMP TABLE tally_{table} (bucket INTEGER PRIMARY KEY, records INTEGER NOT NULL, marks INTEGER NOT NULL);
WITH RECURSIVE each(bucket) AS (SELECT 0 UNION ALL SELECT bucket + 1 FROM each WHERE bucket < {buckets})
INSERT INTO tally_{table} SELECT bucket, 0, 0 FROM each;
CREATE TEMP TRIGGER added_{table} AFTER INSERT ON {table} BEGIN
  UPDATE tally_{table} SET records = records + 1, marks = (marks + NEW.mark) & {mask} WHERE bucket = NEW.bucket;
END;
CREATE TEMP TRIGGER removed_{table} AFTER DELETE ON {table} BEGIN
  UPDATE tally_{table} SET records = records - 1, marks = (marks - OLD.mark) & {mask} WHERE bucket = OLD.bucket;
END;
"""


class Spill:
    """Key -> record on disk, with the time of the last event. Fleets that have the same path have a table each."""

    patience = 5.0  #: seconds to wait for a program that has locked the file

    def __init__(self, place: Any) -> None:
        self.place = place  # held: a temporary one goes with the last who holds it
        self._path = os.fsdecode(place)
        self._table = f"records_{secrets.token_hex(8)}"
        self._salt = zlib.crc32(self._table.encode())
        self._lock = threading.RLock()
        self._written, self._swept = 0, BATCH
        self._owner, self._changes = os.getpid(), 0
        with self._named(opening=True):
            while (seat := self._seated()) is None:
                pass
        #: SQLite's count of what other connections have written, when all was last in order
        self._version = int(self._asked("PRAGMA data_version")[0][0])
        self._end = weakref.finalize(self, _drop, self._link, self._table, seat, os.getpid())

    def _seated(self) -> SpillLock | None:
        """Open the file and have a seat at it; None: somebody else had the same idea, so once more."""
        seat = SpillLock(self._path)
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
            link.executescript(_TABLES.format(table=self._table, mask=_MASK, buckets=_BUCKETS - 1))
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

    # ---- marks ------------------------------------------------------------------------------------------------------

    def _mark(self, key: bytes, last: Any, record: bytes) -> int:
        return zlib.crc32(record, zlib.crc32(key, zlib.crc32(_TIME.pack(last), self._salt)))

    def _marked(self, records: Iterable[Any]) -> Iterator[Any]:
        for key, last, record in records:
            yield key, last, record, zlib.crc32(key) % _BUCKETS, self._mark(key, last, record)

    def _checked(self, rows: Iterable[Any]) -> list[Any]:
        """Rows of key, last, record and mark, without the mark."""
        found = []
        for key, last, record, mark in rows:
            if type(key) is not bytes or type(record) is not bytes or type(last) is not float or mark != self._mark(
                key, last, record
            ):  # fmt: skip
                raise OSError(
                    f"the spill file {self._path!r} is damaged: the record of key {key!r} is not what was written"
                )
            found.append((key, last, record))
        return found

    def _refuse_lost(self, keys: Iterable[bytes] | None = None) -> None:
        """Raise where records are gone that must be there: of the buckets of some keys, or of all.

        Without a write by another connection nothing can be gone.
        """
        if os.getpid() != self._owner or self._asked("PRAGMA data_version")[0][0] == self._version:
            return
        buckets = range(_BUCKETS) if keys is None else sorted({zlib.crc32(key) % _BUCKETS for key in keys})
        for bucket in buckets:
            rows = self._asked(f"SELECT key, last, record, mark FROM {self._table} WHERE bucket = ?", (bucket,))
            self._checked(rows)
            wanted = self._asked(f"SELECT records, marks FROM tally_{self._table} WHERE bucket = ?", (bucket,))
            if wanted != [(len(rows), sum(row[3] for row in rows) & _MASK)]:
                raise OSError(
                    f"the spill file {self._path!r} is damaged: it lacks records of this fleet, or holds others; another "
                    "program has changed it"
                )
        if keys is None:
            self._version = int(self._asked("PRAGMA data_version")[0][0])

    # ---- a process that was forked off ------------------------------------------------------------------------------

    def _is_child(self) -> bool:
        """Whether this is another process than the one that opened the file; its connection is then one of its own."""
        if os.getpid() == self._owner:
            return False
        if getattr(self, "_reader", None) != os.getpid():
            _inherited.append(self._link)
            address = f"file:{quote(os.path.abspath(self._path))}?mode=ro"
            with self._named():
                self._link = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            self._lock, self._reader = (
                threading.RLock(),
                os.getpid(),
            )  # a thread of the parent may have held the old one
        return True

    def _refuse_child(self) -> None:
        if self._is_child():
            raise OSError(
                f"the spill file {self._path!r} belongs to process {self._owner}, which this one was forked off from: a "
                "child may not learn; give it a fleet of its own, by copy.deepcopy or to_bytes before the fork"
            )

    def write(self, records: Iterable[Any], gone: Iterable[Any], then: Callable[[], Any]) -> None:
        """Let go of keys, take records, and do `then`, which is compiled and cannot fail: all of it or nothing."""
        self._refuse_child()
        with self._lock, self._named():
            self._link.execute("BEGIN IMMEDIATE")
            before = self._changes
            self._changes += 1
            try:
                self._link.executemany(f"DELETE FROM {self._table} WHERE key = ?", gone)
                changed = self._link.executemany(
                    f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?, ?, ?)", self._marked(records)
                )
                self._link.execute(f"UPDATE changes_{self._table} SET number = ?", (self._changes,))
                # No line of Python runs between the two, so an interrupt comes before both or after both.
                tuple(map(operator.call, (self._link.commit, then)))
            except BaseException:
                if self._link.in_transaction:
                    self._link.rollback()
                    self._changes = before
                raise
            self._written += max(changed.rowcount, 0)

    # ---- looks ------------------------------------------------------------------------------------------------------

    def get(self, keys: list[bytes]) -> list[Record]:
        found: list[Record] = []
        lost: list[bytes] = []
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._asked(f"SELECT key, last, record, mark FROM {self._table} WHERE key IN ({marks})", some)
            there = [(key, record) for key, _, record in self._checked(rows)]
            if len(there) < len(some):
                lost += set(some) - {key for key, _ in there}
            found += there
        if lost:
            self._refuse_lost(lost)
        return found

    def keys(self, now: float, ttl: float, past: bool = False) -> list[bytes]:
        """Keys that are not past their time, or those that are."""
        self._refuse_lost()
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
        other._refuse_child()
        other._refuse_lost()
        first = -1
        while some := other._asked(
            f"SELECT rowid, key, last, record, mark FROM {other._table} WHERE rowid > ? ORDER BY rowid LIMIT {BATCH}",
            (first,),
        ):
            self.write(other._checked(row[1:] for row in some), (), int)
            first = some[-1][0]

    def __len__(self) -> int:
        return int(self._asked(f"SELECT count(*) FROM {self._table}")[0][0])

    def _asked(self, question: str, given: Any = ()) -> list[Any]:
        child = self._is_child()
        with self._lock, self._named():
            if not child:
                return self._link.execute(question, given).fetchall()
            self._link.execute("BEGIN")  # one look at the file
            try:
                found = self._link.execute(question, given).fetchall()
                changes = self._link.execute(f"SELECT number FROM changes_{self._table}").fetchone()[0]
            finally:
                self._link.rollback()
        if changes != self._changes:
            raise OSError(
                f"the spill file {self._path!r} belongs to process {self._owner}, which this one was forked off from and "
                "which has learned since: a child may read only as long as its parent does not learn"
            )
        return found

    def is_at(self, place: Any) -> bool:
        return self._path == os.fsdecode(place)

    def close(self) -> None:
        self._end()


def _drop(link: sqlite3.Connection, table: str, seat: SpillLock, owner: int) -> None:
    """The table goes; with the last one, the file."""
    if os.getpid() != owner:  # a process that was forked off: the file is its parent's
        return
    last = seat.may_remove()
    with contextlib.suppress(sqlite3.Error):  # the file may be gone; it holds nothing that anyone needs
        if not last:
            link.executescript(f"DROP TABLE IF EXISTS {table}; DROP TABLE IF EXISTS changes_{table}")
    link.close()
    if last:
        with contextlib.suppress(OSError):
            seat.clear()
    seat.leave()
