"""The log of batches, written before any shard sees one, so that it survives the driver.

What holds for the whole run is in an SQLite file in WAL mode; the batches, which are large, lie beside it in plain files.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..._common.types import FilePath
from ...fleets.keys import Start
from .batch import Batch
from .segments import SegmentError, Segments, segments_of

#: SQLite's mark of the program that a database belongs to: "GRMB"
_APPLICATION = 0x47524D42


class LogError(RuntimeError):
    """The log cannot be used; the message gives the reason."""


#: of a batch: a whole number, or the place behind it in each partition of a broker
Position = int | dict[str, int | str]


class State(NamedTuple):
    """Position and classes of the stream after a batch."""

    number: int = 0  # batches, counted by the log
    position: Position | None = None  # as the program numbers them; None before the first batch
    events: int = 0
    now: float = 0.0
    names: tuple[Any, ...] = ()  # of the classes, in the order they came

    def to_json(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> State:
        fields = json.loads(text)
        return cls(**{**fields, "names": tuple(fields["names"])})


class Log:
    """Batches by number, each with the state of the stream after it, in one record.

    The files belong to one program at a time.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self._lock = _lock(self.path.with_name(f"{self.path.name}.lock"))
        try:
            self._link = self._opened()
            self._batches = self._batches_of(self._identified())
        except SegmentError as error:
            self.close()
            raise LogError(str(error)) from None
        except sqlite3.Error as error:
            self.close()
            raise LogError(f"{self.path} cannot be opened: {error}") from error
        except BaseException:
            self.close()
            raise

    def _opened(self) -> sqlite3.Connection:
        link = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            _refuse_foreign(link, self.path)
            link.execute(f"PRAGMA application_id={_APPLICATION}")
            link.execute("PRAGMA journal_mode=WAL")
            # A batch is safe once it is here, from a loss of power too: a snapshot must never know more than the log.
            link.execute("PRAGMA synchronous=FULL")
            link.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        except BaseException:
            link.close()
            raise
        return link

    def _identified(self) -> str:
        """The id of the log: files of batches and snapshots carry it, so that those of another log are refused."""
        known = self.meta("id")
        if known is None:
            left = segments_of(self.path)
            if left:
                raise LogError(
                    f"{self.path} is missing or new, but batches of a log of this name exist ({left[0].name}): restore it, "
                    "or move them away to start a new log"
                )
            known = secrets.token_hex(8)
            self.set_meta("id", known)
        return known

    def _batches_of(self, log: str) -> Segments:
        self.id = log
        name, length = json.loads(self.meta("closed") or '["", 0]')
        return Segments(self.path, log.encode(), (str(name), int(length)))

    # ---- what holds for the whole run -------------------------------------------------------------------------------

    def meta(self, name: str) -> str | None:
        row = self._link.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        self._link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def start(self) -> Start | None:
        """What the first batch has fixed; None if no batch is in the log."""
        text = self.meta("start") if len(self._batches) else None
        return None if text is None else Start.from_json(text)

    @property
    def shards(self) -> int | None:
        text = self.meta("shards")
        return None if text is None else int(text)

    # ---- batches ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """After the last batch."""
        last = self._batches.last
        return State() if last is None else State.from_json(self._batches.state(last))

    def append(self, batch: Batch, state: State, start: Start | None = None) -> None:
        """Append a batch, which is on disk when this returns. start: given with the first batch."""
        if start is not None:
            self.set_meta("start", start.to_json())
        self._batches.append(batch.number, state.to_json(), batch.pieces())

    def drop_last(self, number: int) -> None:
        """Remove the last batch, which was refused."""
        self.set_meta("closed", '["", 0]')
        self._batches.drop_last(number)

    def read(self, after: int, upto: int) -> Iterator[Batch]:
        """Batches after one number up to another, in order; a gap is an error."""
        for number in range(after + 1, upto + 1):
            try:
                data = self._batches.data(number)
            except SegmentError as error:
                raise LogError(str(error)) from None
            if data is None:
                raise LogError(f"{self.path} does not hold batch {number}, which a shard needs to continue")
            yield Batch.from_bytes(data)

    def prune(self, upto: int) -> None:
        """Remove batches that every shard has in a snapshot; the last two stay, because they hold the stream position."""
        self._batches.prune(min(upto, (self._batches.last or 0) - 2))

    def __len__(self) -> int:
        return len(self._batches)

    def close(self) -> None:
        if hasattr(self, "_batches"):
            with contextlib.suppress(sqlite3.Error):  # a full disk: the next program replays more and loses nothing
                self.set_meta("closed", json.dumps(self._batches.end))
        self.abandon()

    def abandon(self) -> None:
        """Release the files without closing the log, as if the process had been killed."""
        for part in ("_link", "_batches"):  # a log that could not be opened lacks some
            if hasattr(self, part):
                getattr(self, part).close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _refuse_foreign(link: sqlite3.Connection, path: Path) -> None:
    """Raise if the database was not made by gristmill; it is only read."""
    found = link.execute("PRAGMA application_id").fetchone()[0]
    if found != _APPLICATION and (found or link.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise LogError(f"{path} is an SQLite database that gristmill did not make; give log= a path of its own")


def _lock(path: Path) -> int | None:
    """Lock the folder until the process ends."""
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
