"""The log of batches: an SQLite file in WAL mode, written before any shard sees a batch, so that it survives the driver."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .batch import Batch, Start


class LogError(RuntimeError):
    """The log cannot be used; the message says why."""


class State(NamedTuple):
    """Where the stream stands after a batch."""

    number: int = 0  # batches, counted by the log
    position: int = 0  # as the program numbers them
    events: int = 0
    now: float = 0.0
    names: tuple[Any, ...] = ()  # of the classes, in the order they came

    def to_json(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> State:
        said = json.loads(text)
        return cls(**{**said, "names": tuple(said["names"])})


class Log:
    """Batches by number, each with the state of the stream after it, in one transaction.

    The file belongs to one program at a time.
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self._lock = _lock(self.path.with_name(f"{self.path.name}.lock"))
        self._link = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._link.execute("PRAGMA page_size=32768")  # batches are large
        self._link.execute("PRAGMA journal_mode=WAL")
        self._link.execute("PRAGMA wal_autocheckpoint=2000")  # pages, 64 MB
        # A batch is safe once it is here, from a loss of power too: a snapshot must never know more than the log.
        self._link.execute("PRAGMA synchronous=FULL")
        with self._transaction():
            self._link.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._link.execute(
                "CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL)"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._link.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._link.execute("ROLLBACK")
            raise
        self._link.execute("COMMIT")

    # ---- what holds for the whole run -------------------------------------------------------------------------------

    def said(self, name: str) -> str | None:
        row = self._link.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def say(self, name: str, value: str) -> None:
        self._link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def start(self) -> Start | None:
        text = self.said("start")
        return None if text is None else Start.from_json(text)

    @property
    def shards(self) -> int | None:
        text = self.said("shards")
        return None if text is None else int(text)

    # ---- batches ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """After the last batch."""
        row = self._link.execute("SELECT state FROM batches ORDER BY number DESC LIMIT 1").fetchone()
        return State() if row is None else State.from_json(row[0])

    def append(self, batch: Batch, state: State, start: Start | None = None) -> None:
        """Safe once this returns. start: where this batch is the first."""
        data = batch.to_bytes()
        with self._transaction():
            if start is not None:
                self.say("start", start.to_json())
            self._link.execute("INSERT INTO batches VALUES (?, ?, ?)", (batch.number, state.to_json(), data))

    def drop_last(self, number: int) -> None:
        """A batch that was refused was never there."""
        with self._transaction():
            self._link.execute("DELETE FROM batches WHERE number = ?", (number,))
            if self._link.execute("SELECT count(*) FROM batches").fetchone()[0] == 0:
                self._link.execute("DELETE FROM meta WHERE name = 'start'")

    def read(self, after: int, upto: int) -> Iterator[Batch]:
        """Batches after one number up to another, in order; a gap is an error."""
        for number in range(after + 1, upto + 1):
            row = self._link.execute("SELECT data FROM batches WHERE number = ?", (number,)).fetchone()
            if row is None:
                raise LogError(f"{self.path} does not hold batch {number}, which a shard needs to go on")
            yield Batch.from_bytes(row[0])

    def prune(self, upto: int) -> None:
        """Forget batches that every shard has in a snapshot; the last two stay, because they say where the stream stands."""
        upto = min(upto, self.state.number - 2)
        self._link.execute("DELETE FROM batches WHERE number <= ?", (upto,))

    def close(self) -> None:
        self._link.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(path: Path) -> int | None:
    """Held as long as the program lives, and not a moment longer."""
    try:
        import fcntl
    except ImportError:  # not on this system, which has its own way of locking open files
        return None
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise LogError(f"{path} is in use by another program; one program at a time feeds a cluster") from None
    return handle
