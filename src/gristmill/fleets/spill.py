"""Records of keys that are not in memory: a table of an SQLite file, removed with the fleet that made it.

Each record has a mark: the CRC-32 of file, time, key and record. A changed record, or one under another key, does not fit
its mark. For each of 1,024 buckets of keys this connection counts its records and adds up their marks, in tables that no
other connection sees. So a key that is not found, after another connection has written to the file, is new, or it is
reported as lost.

A forked child may read as long as its parent has not written since, and may not write.
"""

from __future__ import annotations

import operator
import os
import sqlite3
import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from .spill_file import SpillFile, named_errors

Record = tuple[bytes, bytes]
#: keys of a question to SQLite, which takes so many at a time
_AT_ONCE = 500
#: records of a step of a long way
BATCH = 10_000
_BUCKETS = 1024
_MASK = 2**62 - 1  # of sums of marks: SQLite's whole numbers have 63 bits and a sign
_TIME = struct.Struct("<d")
#: connections of a parent process: they are neither used nor closed by its children
_inherited: list[object] = []

_TABLES = f"""
CREATE TABLE records (key BLOB PRIMARY KEY, last REAL, record BLOB NOT NULL, bucket INTEGER NOT NULL, mark INTEGER NOT NULL);
CREATE INDEX buckets ON records (bucket);
CREATE TABLE changes (number INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
PRAGMA temp_store = MEMORY;
PRAGMA recursive_triggers = ON;
CREATE TEMP TABLE tally (bucket INTEGER PRIMARY KEY, records INTEGER NOT NULL, marks INTEGER NOT NULL);
WITH RECURSIVE each(bucket) AS (SELECT 0 UNION ALL SELECT bucket + 1 FROM each WHERE bucket < {_BUCKETS - 1})
INSERT INTO tally SELECT bucket, 0, 0 FROM each;
CREATE TEMP TRIGGER added AFTER INSERT ON records BEGIN
  UPDATE tally SET records = records + 1, marks = (marks + NEW.mark) & {_MASK} WHERE bucket = NEW.bucket;
END;
CREATE TEMP TRIGGER removed AFTER DELETE ON records BEGIN
  UPDATE tally SET records = records - 1, marks = (marks - OLD.mark) & {_MASK} WHERE bucket = OLD.bucket;
END;
"""


class Spill:
    """Key -> record on disk, with the time of the last event.

    Parameters
    ----------
    place : path of the file, or of a folder that it gets a name in
    """

    patience = 5.0  #: seconds to wait for a program that has locked the file

    def __init__(self, place: Any) -> None:
        self.place = place  # held: a temporary one is removed with the last fleet that holds it
        file = SpillFile(place)
        self._path = file.path
        self._salt = zlib.crc32(file.id.encode())
        self._lock = threading.RLock()
        self._written, self._swept = 0, BATCH
        self._owner, self._changes = os.getpid(), 0
        self._end = weakref.finalize(self, _remove, file, self._owner)
        try:
            self._link = file.open(self.patience)
            with named_errors(self._path):
                self._link.executescript(_TABLES)
            #: SQLite's count of what other connections have written, when all was last in order
            self._version = int(self._asked("PRAGMA data_version")[0][0])
        except BaseException:
            self._end()
            raise

    # ---- marks ------------------------------------------------------------------------------------------------------

    def snapshot(self, key: bytes, last: Any, record: bytes) -> int:
        return zlib.crc32(record, zlib.crc32(key, zlib.crc32(_TIME.pack(last), self._salt)))

    def _marked(self, records: Iterable[Any]) -> Iterator[Any]:
        for key, last, record in records:
            yield key, last, record, zlib.crc32(key) % _BUCKETS, self.snapshot(key, last, record)

    def _checked(self, rows: Iterable[Any]) -> list[Any]:
        """Rows of key, last, record and mark, without the mark."""
        found = []
        for key, last, record, mark in rows:
            if type(key) is not bytes or type(record) is not bytes or type(last) is not float or mark != self.snapshot(
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
            rows = self._asked("SELECT key, last, record, mark FROM records WHERE bucket = ?", (bucket,))
            self._checked(rows)
            wanted = self._asked("SELECT records, marks FROM tally WHERE bucket = ?", (bucket,))
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
            with named_errors(self._path):
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
        with self._lock, named_errors(self._path):
            self._link.execute("BEGIN IMMEDIATE")
            before = self._changes
            self._changes += 1
            try:
                self._link.executemany("DELETE FROM records WHERE key = ?", gone)
                changed = self._link.executemany(
                    "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", self._marked(records)
                )
                self._link.execute("UPDATE changes SET number = ?", (self._changes,))
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
            rows = self._asked(f"SELECT key, last, record, mark FROM records WHERE key IN ({marks})", some)
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
                f"SELECT key FROM records WHERE {'' if past else 'NOT'} (? - last > ?)", (now, ttl)
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
            f"SELECT rowid, key, last, record, mark FROM records WHERE rowid > ? ORDER BY rowid LIMIT {BATCH}",
            (first,),
        ):
            self.write(other._checked(row[1:] for row in some), (), int)
            first = some[-1][0]

    def __len__(self) -> int:
        return int(self._asked("SELECT count(*) FROM records")[0][0])

    def _asked(self, question: str, given: Any = ()) -> list[Any]:
        child = self._is_child()
        with self._lock, named_errors(self._path):
            if not child:
                return self._link.execute(question, given).fetchall()
            self._link.execute("BEGIN")  # one look at the file
            try:
                found = self._link.execute(question, given).fetchall()
                changes = self._link.execute("SELECT number FROM changes").fetchone()[0]
            finally:
                self._link.rollback()
        if changes != self._changes:
            raise OSError(
                f"the spill file {self._path!r} belongs to process {self._owner}, which this one was forked off from and "
                "which has learned since: a child may read only as long as its parent does not learn"
            )
        return found

    def is_at(self, place: Any) -> bool:
        return os.fsdecode(self.place) == os.fsdecode(place)

    def close(self) -> None:
        self._end()


def _remove(file: SpillFile, owner: int) -> None:
    if os.getpid() == owner:  # the file of a forked child is its parent's
        file.remove()
