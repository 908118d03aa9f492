"""The journal of one model: its events in the order in which they were learned, in one SQLite file.

A position counts events: the event at position p is the (p + 1)-th that was learned. A record holds the rows of one
request as they came. Everything that an answer depends on (events, waiting features, answers to idempotency keys, the
list of snapshots, the roles of the learners) changes in one transaction, which is on disk (`synchronous=FULL`) before
the answer leaves.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..._common.types import Json
from .answers import Reply
from .errors import Damaged

FORMAT = 1
FILE = "journal.sqlite"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE events (
  first INTEGER PRIMARY KEY, rows INTEGER NOT NULL, kind TEXT NOT NULL, options TEXT, body BLOB NOT NULL,
  crc INTEGER NOT NULL, time REAL NOT NULL);
CREATE TABLE learners (
  id INTEGER PRIMARY KEY, role TEXT NOT NULL, spec TEXT NOT NULL, begun INTEGER NOT NULL, reason TEXT);
CREATE TABLE snapshots (
  learner INTEGER NOT NULL, position INTEGER NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, time REAL NOT NULL,
  record BLOB NOT NULL, PRIMARY KEY (learner, position)) WITHOUT ROWID;
CREATE TABLE pending (
  id TEXT PRIMARY KEY, time REAL NOT NULL, bytes INTEGER NOT NULL, row BLOB NOT NULL, predicted BLOB NOT NULL);
CREATE INDEX pending_by_time ON pending (time);
CREATE TABLE answers (
  key TEXT PRIMARY KEY, digest BLOB NOT NULL, status INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL,
  headers TEXT NOT NULL, time REAL NOT NULL);
CREATE INDEX answers_by_time ON answers (time);
CREATE TABLE history (time REAL NOT NULL, what TEXT NOT NULL, details TEXT NOT NULL);
"""
#: bytes that a row takes beside its texts
_OVERHEAD = 100
_KEPT = f"length(body) + length(key) + length(headers) + {_OVERHEAD}"
_HISTORY = 10_000
TABLES = ("meta", "events", "learners", "snapshots", "pending", "answers", "history")


class Record(NamedTuple):
    """The rows of one request."""

    first: int  #: position of its first row
    rows: int  #: rows that count; the body may hold more after a rollback into the middle of it
    kind: str  #: of the body
    options: str | None  #: JSON: what is needed to read the body
    body: bytes
    crc: int
    time: float

    @property
    def end(self) -> int:
        return self.first + self.rows


class Waiting(NamedTuple):
    """The features of an event whose label has not come."""

    id: str
    time: float
    row: bytes  #: JSON of the row
    predicted: bytes  #: JSON: learner -> prediction when it was asked for

    @property
    def bytes(self) -> int:
        return len(self.id) + len(self.row) + len(self.predicted) + 64


class Answer(NamedTuple):
    """What a request with an idempotency key was answered."""

    key: str
    digest: bytes  #: of the request
    status: int
    kind: str
    body: bytes
    headers: str

    @classmethod
    def of(cls, key: str, digest: bytes, reply: Reply) -> Answer:
        return cls(key, digest, reply.status, reply.kind, reply.body, json.dumps(reply.headers))


def checksum(first: int, rows: int, kind: str, options: str | None, body: bytes) -> int:
    """CRC-32 of everything in a record that is replayed."""
    head = struct.pack("<qq", first, rows) + kind.encode() + b"\0" + (options or "").encode() + b"\0"
    return zlib.crc32(body, zlib.crc32(head))


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection with the settings that durability needs; the caller begins and ends transactions."""
    if not create and not path.is_file():
        raise Damaged(f"{path} is missing", 0)
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    except sqlite3.DatabaseError as error:
        raise unreadable(path, error) from error
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA journal_size_limit=16777216")
        connection.execute("PRAGMA cache_size=-8192")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise unreadable(path, error) from error
    return connection


#: errors of SQLite that say nothing about the content of a file: it is locked, the disk is full, a right is missing
_OUTSIDE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR,
}  # fmt: skip


def unreadable(path: Path, error: sqlite3.DatabaseError, position: int = 0, what: str = "") -> Exception:
    """`Damaged`, or OSError where the file may be sound and something else keeps it from being read."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _OUTSIDE and code not in (sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS):
        return OSError(f"{path} cannot be opened: {error}")
    return Damaged(f"{path}{what} cannot be read: {error}", position)


class Journal:
    """The journal of one model.

    Parameters
    ----------
    folder : Path
        Of the model; it holds `journal.sqlite`.

    Attributes
    ----------
    id : str
        Drawn when the journal was created.
    position : int
        Number of events.
    start : int
        Position of the first event that is still held.
    size : int
        Bytes of the events that are held.
    waiting : int
        Events that wait for a label; `waiting_bytes` is their size.
    expired : int
        Events whose label never came.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.appended = 0  #: bytes that were appended since it was opened
        self._connection = connect(folder / FILE)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise unreadable(folder / FILE, error) from error
        except Exception:
            self._connection.close()
            raise

    @classmethod
    def create(cls, folder: Path, spec: Json, about: Json) -> Journal:
        """A journal without events for one learner, the champion."""
        path = folder / FILE
        connection = connect(path, create=True)
        connection.executescript(_SCHEMA)
        meta = {"format": FORMAT, "id": uuid.uuid4().hex, "position": 0, "expired": 0, "created": time.time(), **about}
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
        connection.execute("INSERT INTO learners VALUES (1, 'champion', ?, 0, NULL)", (json.dumps(spec),))
        connection.execute("COMMIT")
        connection.close()
        return cls(folder)

    def _open(self) -> None:
        meta = dict(self._connection.execute("SELECT key, value FROM meta"))
        if meta.get("format") != FORMAT:
            raise Damaged(f"{self.folder / FILE}: format {meta.get('format')!r}, this version reads {FORMAT}", 0)
        self.id, self.position, self.expired = str(meta["id"]), int(meta["position"]), int(meta["expired"])
        self.created = float(meta["created"])
        self.start, self.size = self._connection.execute(
            "SELECT coalesce(min(first), ?), coalesce(sum(length(body)), 0) FROM events", (self.position,)
        ).fetchone()
        self.waiting, self.waiting_bytes = self._connection.execute(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM pending"
        ).fetchone()
        self.answer_bytes = self._connection.execute(f"SELECT coalesce(sum({_KEPT}), 0) FROM answers").fetchone()[0]

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    # ---- transactions ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside is on disk when the outermost block ends, or nothing of it is."""
        if self._connection.in_transaction:
            yield self._connection
            return
        counts = (
            self.position,
            self.start,
            self.size,
            self.waiting,
            self.waiting_bytes,
            self.expired,
            self.answer_bytes,
        )
        position, expired = self.position, self.expired
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            if self.position != position:
                self._set("position", self.position)
            if self.expired != expired:
                self._set("expired", self.expired)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            (
                self.position, self.start, self.size, self.waiting, self.waiting_bytes, self.expired, self.answer_bytes
            ) = counts  # fmt: skip
            raise

    def _set(self, key: str, value: Any) -> None:
        self._connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))

    # ---- events ---------------------------------------------------------------------------------------------

    def append(self, parts: list[tuple[int, str, str | None, bytes]], moment: float) -> None:
        """One more record for each part (rows, kind, options, body), inside a transaction."""
        first, size, records = self.position, 0, []
        for rows, kind, options, body in parts:
            crc = checksum(first, rows, kind, options, body)
            records.append((first, rows, kind, options, body, crc, moment))
            first += rows
            size += len(body)
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", records)
        self.position = first
        self.size += size
        self.appended += size

    def records(self, position: int, end: int | None = None) -> Iterator[Record]:
        """The records from a position on, checked; `Damaged` names the first position that cannot be read."""
        end = self.position if end is None else end
        expected: int | None = None
        try:
            cursor = self._connection.cursor()
            cursor.execute(
                "SELECT first, rows, kind, options, body, crc, time FROM events WHERE first + rows > ? AND first < ? "
                "ORDER BY first", (position, end)
            )  # fmt: skip
            for values in cursor:
                record = Record(*values)
                if expected is None:
                    expected = min(position, record.first)
                if record.first > expected:
                    raise Damaged(
                        f"{self.folder / FILE}: the event at position {expected} is missing; the next is {record.first}",
                        expected,
                    )
                if checksum(*record[:5]) != record.crc:
                    raise Damaged(
                        f"{self.folder / FILE}: the record at position {record.first} ({record.rows} events) is damaged: "
                        f"its checksum does not fit", record.first
                    )  # fmt: skip
                expected = record.end
                yield record
        except sqlite3.DatabaseError as error:
            at = position if expected is None else expected
            raise unreadable(self.folder / FILE, error, at, f": the event at position {at}") from error
        at = position if expected is None else expected
        if at < end:
            raise Damaged(f"{self.folder / FILE}: the event at position {at} is missing, of {end} in all", at)

    def try_to_write(self, size: int) -> None:
        """Write so many bytes and remove them; raises what a transaction of that size would."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('trial', zeroblob(?))", (size + 20_000,))
        with self.transaction() as connection:
            connection.execute("DELETE FROM meta WHERE key = 'trial'")

    def prune(self, position: int) -> None:
        """Drop events before a position, inside a transaction."""
        where = "WHERE first + rows <= ?"
        gone = self._connection.execute(f"SELECT coalesce(sum(length(body)), 0) FROM events {where}", (position,))
        self.size -= gone.fetchone()[0]
        self._connection.execute(f"DELETE FROM events {where}", (position,))
        held = self._connection.execute("SELECT coalesce(min(first), ?) FROM events", (self.position,))
        self.start = held.fetchone()[0]

    def bytes_since(self, position: int) -> int:
        """Bytes of the events from a position on; reads them all."""
        found = self._connection.execute(
            "SELECT coalesce(sum(length(body)), 0) FROM events WHERE first >= ?", (position,)
        )
        return int(found.fetchone()[0])

    def truncate(self, position: int) -> list[Record]:
        """Drop events from a position on, inside a transaction; a record across it is shortened. Returns what it dropped."""
        gone = list(self.records(position))
        for record in gone:
            if record.first >= position:
                self._connection.execute("DELETE FROM events WHERE first = ?", (record.first,))
                self.size -= len(record.body)
            else:
                rows = position - record.first
                crc = checksum(record.first, rows, *record[2:5])
                self._connection.execute(
                    "UPDATE events SET rows = ?, crc = ? WHERE first = ?", (rows, crc, record.first)
                )
        self.position = position
        return gone

    # ---- learners and snapshots -----------------------------------------------------------------------------

    def learners(self) -> list[tuple[int, str, Json, int, str | None]]:
        """Id, role, specification, position at which it began, and why it failed, of each learner."""
        found = self._connection.execute("SELECT id, role, spec, begun, reason FROM learners ORDER BY id")
        return [(id_, role, json.loads(spec), begun, reason) for id_, role, spec, begun, reason in found]

    def snapshots(self, learner: int) -> list[tuple[int, str, int, float, bytes]]:
        """Position, SHA-256, bytes, time and record of each snapshot of a learner, the newest first."""
        return list(
            self._connection.execute(
                "SELECT position, sha256, bytes, time, record FROM snapshots WHERE learner = ? ORDER BY position DESC",
                (learner,),
            )
        )

    def note(self, what: str, **details: Any) -> None:
        """A line of the history of the model, inside a transaction; the oldest of 10,000 leaves."""
        self._connection.execute("INSERT INTO history VALUES (?, ?, ?)", (time.time(), what, json.dumps(details)))
        self._connection.execute("DELETE FROM history WHERE rowid <= (SELECT max(rowid) FROM history) - ?", (_HISTORY,))

    def history(self) -> list[Json]:
        found = self._connection.execute("SELECT time, what, details FROM history ORDER BY time")
        return [{"time": moment, "what": what, **json.loads(details)} for moment, what, details in found]

    # ---- events that wait for a label -----------------------------------------------------------------------

    def keep(self, events: list[Waiting]) -> None:
        """Keep features until their labels come, inside a transaction; an id that is held already is replaced."""
        for event in events:
            self.take(event.id)
            self._connection.execute(
                "INSERT INTO pending VALUES (?, ?, ?, ?, ?)",
                (event.id, event.time, event.bytes, event.row, event.predicted),
            )
            self.waiting += 1
            self.waiting_bytes += event.bytes

    def waits(self, id_: str) -> Waiting | None:
        """The event that waits under an id."""
        found = self._connection.execute("SELECT id, time, row, predicted FROM pending WHERE id = ?", (id_,)).fetchone()
        return None if found is None else Waiting(*found)

    def take(self, id_: str) -> None:
        """An event waits no longer, inside a transaction."""
        gone = self._connection.execute("DELETE FROM pending WHERE id = ? RETURNING bytes", (id_,)).fetchall()
        for (count,) in gone:
            self.waiting -= 1
            self.waiting_bytes -= count

    def expire(self, before: float, space: int) -> int:
        """Drop what has waited since before a moment, and the oldest beyond the space, inside a transaction."""
        gone = self._connection.execute("DELETE FROM pending WHERE time < ? RETURNING bytes", (before,)).fetchall()
        self.waiting_bytes -= sum(count for (count,) in gone)
        dropped = len(gone)
        while self.waiting_bytes > space:
            oldest = self._connection.execute(
                "DELETE FROM pending WHERE rowid IN (SELECT rowid FROM pending ORDER BY time LIMIT 64) RETURNING bytes"
            ).fetchall()
            if not oldest:
                break
            self.waiting_bytes -= sum(count for (count,) in oldest)
            dropped += len(oldest)
        self.waiting -= dropped
        self.expired += dropped
        return dropped

    # ---- answers to idempotency keys ------------------------------------------------------------------------

    def answer(self, key: str) -> Answer | None:
        found = self._connection.execute(
            "SELECT key, digest, status, kind, body, headers FROM answers WHERE key = ?", (key,)
        ).fetchone()
        return None if found is None else Answer(*found)

    def remember(self, answer: Answer, moment: float) -> None:
        """Keep an answer, inside a transaction."""
        self._connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", (*answer, moment))
        self.answer_bytes += len(answer.body) + len(answer.key) + len(answer.headers) + _OVERHEAD

    def forget_answers(self, before: float, space: int) -> None:
        """Drop answers from before a moment, and the oldest beyond the space, inside a transaction."""
        size = f"RETURNING {_KEPT}"
        gone = self._connection.execute(f"DELETE FROM answers WHERE time < ? {size}", (before,)).fetchall()
        self.answer_bytes -= sum(count for (count,) in gone)
        while self.answer_bytes > space:
            gone = self._connection.execute(
                f"DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers ORDER BY time LIMIT 64) {size}"
            ).fetchall()
            if not gone:
                break
            self.answer_bytes -= sum(count for (count,) in gone)

    # ---- its size on disk -----------------------------------------------------------------------------------

    @property
    def file_bytes(self) -> int:
        """Bytes of the files of the journal."""
        total = 0
        for name in (FILE, f"{FILE}-wal"):
            with contextlib.suppress(OSError):
                total += os.stat(self.folder / name).st_size
        return total
