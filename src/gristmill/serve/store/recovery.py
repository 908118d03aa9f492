"""A damaged journal: what can be kept, what would be lost, and a new journal of what can be kept."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from . import snapshots
from .errors import Damaged
from .journal import _SCHEMA, FILE, FORMAT, TABLES, Record, checksum, connect, unreadable


@dataclasses.dataclass(frozen=True)
class Loss:
    """What a model would lose.

    Parameters
    ----------
    name : str
        Of the model.
    position : int
        Events that can be kept.
    last : int or None
        Events that were learned, where the journal can still tell.
    reason : str
    """

    name: str
    position: int
    last: int | None
    reason: str

    def text(self) -> str:
        count = "an unknown number of events" if self.last is None else f"at least {self.last - self.position} events"
        return f"model {self.name}: {self.reason}. It would go back to position {self.position}; {count} would be lost."


def plan(folder: Path) -> list[Loss]:
    """What would be lost of each model of a store whose journal is damaged; nothing is changed."""
    found = []
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            loss = _examined(Path(entry.path))
            if loss is not None:
                found.append(loss)
    return found


def _rows(connection: sqlite3.Connection, table: str, path: Path) -> tuple[list[Any], str | None]:
    """The rows of a table of the file up to the first that cannot be read."""
    found: list[Any] = []
    try:
        order = {"events": "first", "snapshots": "learner, position"}.get(
            table, "rowid" if table not in ("meta",) else "key"
        )
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}"):
            found.append(row)
    except sqlite3.DatabaseError as error:
        reason = unreadable(path, error)
        if not isinstance(reason, Damaged):
            raise reason from error
        return found, str(error)
    return found, None


def _examined(folder: Path) -> Loss | None:
    if not (folder / FILE).exists():
        return None
    try:
        connection = connect(folder / FILE)
    except Damaged as error:
        return Loss(folder.name, 0, None, str(error))
    with contextlib.closing(connection):
        meta, _ = _rows(connection, "meta", folder / FILE)
        last = dict(meta).get("position")
        events, reason = _rows(connection, "events", folder / FILE)
        position = events[0][0] if events else int(last or 0)
        for row in events:
            record = Record(*row)
            if record.first != position:
                reason = f"the event at position {position} is missing"
                break
            if checksum(*record[:5]) != record.crc:
                reason = f"the record at position {position} ({record.rows} events) is damaged"
                break
            position = record.end
        else:
            if reason is None and last is not None and position < int(last):
                reason = f"the event at position {position} is missing"
        if reason is None:
            return None
        saved = [row[1] for row in _rows(connection, "snapshots", folder / FILE)[0] if _sound(folder, row)]
        best = max([position, *saved])  # a snapshot may be newer than the damage
        return Loss(folder.name, best, None if last is None else int(last), reason)


def _sound(folder: Path, row: Any) -> bool:
    return snapshots.read(snapshots.path_of(folder, row[0], row[1]), row[2]) is not None


def recover(folder: Path, loss: Loss) -> str:
    """Write a journal of what can be kept, and put it in place; returns the name under which the damaged one is kept."""
    new, old = folder / f"{FILE}.new", folder / FILE
    for path in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
        path.unlink(missing_ok=True)
    source, target = connect(old), connect(new, create=True)
    try:
        target.executescript(_SCHEMA)
        target.execute("BEGIN IMMEDIATE")
        for table in TABLES:
            for row in _rows(source, table, old)[0]:
                if table == "events" and (row[0] + row[1] > loss.position or checksum(*row[:5]) != row[5]):
                    continue
                if table == "snapshots" and row[1] > loss.position:
                    continue
                marks = ", ".join("?" * len(row))
                target.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
        _contiguous(target, loss.position)
        for key, value in (("position", loss.position), ("format", FORMAT)):
            target.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        details = f'{{"position": {loss.position}}}'
        target.execute("INSERT INTO history VALUES (?, 'recover', ?)", (time.time(), details))
        target.execute("COMMIT")
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        source.close()
        target.close()
    kept = f"{FILE}.damaged-{int(time.time())}"
    os.rename(old, folder / kept)
    for end in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{old}{end}", folder / f"{kept}{end}")
    os.rename(new, old)
    snapshots.sync(folder)
    return kept


def _contiguous(target: sqlite3.Connection, position: int) -> None:
    """Keep the records that end at the position without a gap."""
    start = position
    for first, rows in target.execute("SELECT first, rows FROM events ORDER BY first DESC").fetchall():
        if first + rows != start:
            break
        start = first
    target.execute("DELETE FROM events WHERE first < ?", (start,))
