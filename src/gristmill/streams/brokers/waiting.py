"""Events that wait for their labels, and labels that came before their events, in one SQLite file beside the model.

Every row has the number of the message that brought it and of the message that took it. The file may be ahead of the model
file when a process dies; `back` takes it to the number that the model file has.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from ..._common.types import FilePath, Json

_OURS = 0x67726973  # application id of the file
_SCHEMA = """
CREATE TABLE waiting (
  brought INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, time REAL NOT NULL, row TEXT NOT NULL, outcome TEXT,
  taken INTEGER, PRIMARY KEY (brought, kind)) WITHOUT ROWID;
CREATE INDEX waiting_by_id ON waiting (id, kind);
CREATE INDEX waiting_by_taken ON waiting (taken) WHERE taken IS NOT NULL;
CREATE INDEX waiting_by_time ON waiting (time);
"""
_SIZE = "length(row) + length(id) + 64"


class Kept(NamedTuple):
    """A row that waited."""

    time: float
    row: Json
    outcome: Any  #: the score of an event when it came


class Waiting:
    """Rows by id, on disk, within a time and a space.

    Parameters
    ----------
    path : path
        Created if it is not there; a file of anything else is refused.
    space : int
        Bytes of all rows; the oldest leave first.

    Examples
    --------
    >>> import os, tempfile
    >>> from gristmill.streams.brokers.waiting import Waiting
    >>> waiting = Waiting(os.path.join(tempfile.mkdtemp(), "m.waiting"), space=10_000)
    >>> waiting.put(1, "event", "a17", 0.0, {"amount": 12.5})
    0
    >>> waiting.take(2, "event", "a17", oldest=-60.0).row["amount"]
    12.5
    >>> waiting.close()
    """

    def __init__(self, path: FilePath, space: int) -> None:
        self.space = space
        path = Path(path)
        there = path.exists() and path.stat().st_size > 0
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            if there and self._one("PRAGMA application_id") != _OURS:
                raise ValueError(f"{path}: this file holds something else than waiting events; move it away")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            if not there:
                self._connection.executescript(f"BEGIN; PRAGMA application_id={_OURS}; {_SCHEMA} COMMIT;")
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{path}: this file cannot be used for waiting events: {error}") from error
        except ValueError:
            self._connection.close()
            raise
        self._count()

    def _one(self, question: str, *values: object) -> Any:
        found = self._connection.execute(question, values).fetchone()
        return None if found is None else found[0]

    def _count(self) -> None:
        where = "FROM waiting WHERE taken IS NULL"
        self.count = int(self._one(f"SELECT count(*) {where} AND kind = 'event'"))
        self.bytes = int(self._one(f"SELECT coalesce(sum({_SIZE}), 0) {where}"))

    def back(self, number: int) -> None:
        """Forget what messages after a number brought and took."""
        self._connection.execute("DELETE FROM waiting WHERE brought > ?", (number,))
        self._connection.execute("UPDATE waiting SET taken = NULL WHERE taken > ?", (number,))
        self._count()

    def put(self, number: int, kind: str, id_: str, time: float, row: Json) -> int:
        """Keep a row, in place of an older one of its id; returns how many others had to leave for want of space."""
        self._leave(number, "id = ? AND kind = ?", id_, kind)
        text = json.dumps(row)
        self._connection.execute(
            "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, NULL, NULL)", (number, kind, id_, time, text)
        )
        self.count += kind == "event"
        self.bytes += len(text) + len(id_) + 64
        left = 0
        while self.bytes > self.space:
            first = self._one("SELECT brought FROM waiting WHERE taken IS NULL ORDER BY brought LIMIT 1")
            left += self._leave(number, "brought = ?", first)
        return left

    def _leave(self, number: int, where: str, *values: object) -> int:
        gone = self._connection.execute(
            f"UPDATE waiting SET taken = ? WHERE taken IS NULL AND {where} RETURNING kind, {_SIZE}", (number, *values)
        ).fetchall()
        self.count -= sum(kind == "event" for kind, _ in gone)
        self.bytes -= sum(size for _, size in gone)
        return len(gone)

    def take(self, number: int, kind: str, id_: str, oldest: float) -> Kept | None:
        """The row of an id that is no older than a time; it waits no longer."""
        found = self._connection.execute(
            "SELECT brought, time, row, outcome FROM waiting WHERE taken IS NULL AND id = ? AND kind = ?", (id_, kind)
        ).fetchone()
        if found is None or found[1] < oldest:
            return None
        self._leave(number, "brought = ? AND kind = ?", found[0], kind)
        return Kept(found[1], json.loads(found[2]), None if found[3] is None else json.loads(found[3]))

    def note(self, number: int, outcome: Any) -> None:
        """The score of the event that a message brought."""
        self._connection.execute(
            "UPDATE waiting SET outcome = ? WHERE brought = ? AND kind = 'event'", (json.dumps(outcome), number)
        )

    def sync(self) -> None:
        """Everything is on disk when this returns."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def purge(self, number: int, oldest: float) -> int:
        """Remove what was taken up to a number that is saved, and what is too old; returns how many were too old."""
        self._connection.execute("DELETE FROM waiting WHERE taken <= ?", (number,))
        gone = self._connection.execute("DELETE FROM waiting WHERE time < ? AND taken IS NULL", (oldest,)).rowcount
        if gone:
            self._count()
        return gone

    def close(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        self._connection.close()
