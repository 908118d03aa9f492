"""The SQLite file of a spill: where it lies, whose it is, and when it is removed.

One file belongs to one fleet. Its header says that gristmill made it, and its id says for which fleet. The connection of a
living fleet holds SQLite's shared lock, and a fleet that opens the file needs the exclusive lock first. So a file in use is
refused, and a file that a killed process has left is taken over.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

#: SQLite's mark of the program that a database belongs to: "GRML"
APPLICATION = 0x47524D4C
#: device and number of the files that fleets of this process use. SQLite's locks do not hold between these: to open and
#: close such a file by any other way than its own connection would release them.
_used: set[tuple[int, int]] = set()
_opening = threading.Lock()


def _in_child() -> None:
    global _opening
    _opening = threading.Lock()  # a thread of the parent may have held the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

#: what SQLite's codes mean
_CAUSES = {
    "SQLITE_BUSY": "is locked by another program",
    "SQLITE_LOCKED": "is locked by another program",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_IOERR": "cannot be read or written",
    "SQLITE_READONLY": "may not be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_PERM": "may not be opened",
}
_DAMAGED = "is damaged, or another program has changed it"
_IN_USE = "is in use by another fleet; give each fleet a path of its own, or a folder"


class TemporarySpill(os.PathLike[str]):
    """A spill file in the system's temporary folder; it is removed with the last fleet that holds it.

    A copy of it, by `copy`, pickle or scikit-learn's `clone`, is another file.
    """

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="gristmill-")  # readable by this user only
        self._path = os.path.join(folder, "keys.db")
        self._end = weakref.finalize(self, _remove_folder, folder, os.getpid())

    def __fspath__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"TemporarySpill({self._path!r})"

    def __copy__(self) -> TemporarySpill:
        return TemporarySpill()

    def __deepcopy__(self, memo: object) -> TemporarySpill:
        return TemporarySpill()

    def __reduce__(self) -> Any:
        return TemporarySpill, ()


def _remove_folder(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends without removing the file of its parent
        shutil.rmtree(folder, ignore_errors=True)


def check_spill(spill: object) -> None:
    """Refuse what is not the path of a file or folder."""
    if not isinstance(spill, str | bytes | os.PathLike):
        raise TypeError(f"spill must be the path of a file or folder, or None, got {spill!r}")
    if os.fsdecode(spill) in ("", ":memory:"):
        raise ValueError(f"spill must be the path of a file or folder, such as 'keys.db', or None, got {spill!r}")


@contextlib.contextmanager
def named_errors(path: str, opening: bool = False) -> Iterator[None]:
    """Errors of SQLite and of the file system as OSError with the path and the cause."""
    try:
        yield
    except sqlite3.Error as error:
        code = str(getattr(error, "sqlite_errorname", ""))
        known = next((cause for name, cause in _CAUSES.items() if code.startswith(name)), _DAMAGED)
        if opening and "locked" in known:
            known = _IN_USE
        elif opening and "full" not in known:
            known = "cannot be used"
        raise OSError(f"the spill file {path!r} {known}: {error}") from error
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise OSError(f"the spill file {path!r} cannot be used: {error}") from error


class SpillFile:
    """An SQLite file of one fleet, with a connection to it once it is open.

    Parameters
    ----------
    place : path of the file, or of a folder, in which the file gets a name of its own
    """

    link: sqlite3.Connection | None = None
    _identity: tuple[int, int] | None = None  #: of the file, once it is this fleet's

    def __init__(self, place: Any) -> None:
        self.id = secrets.token_hex(8)
        path = os.fsdecode(place)
        self.path = os.path.join(path, f"keys-{self.id}.db") if os.path.isdir(path) else path

    def open(self, patience: float) -> sqlite3.Connection:
        """Make the file, or take over one that is not in use; where this raises, `remove` must follow.

        patience: seconds to wait for the exclusive lock: a process that was killed a moment ago may still hold its own.
        """
        with named_errors(self.path, opening=True), _opening:
            while not self._is_taken_over(patience):
                pass
            # A connection that opens a file in WAL mode keeps the shared lock; one that turns the mode on does not.
            self.link = link = self._connected(patience)
            # A crash loses the fleet in memory too: what lasts is `save`.
            link.execute("PRAGMA synchronous=OFF")
            if link.execute("SELECT id FROM fleet").fetchall() != [(self.id,)]:
                self._identity = None
                raise OSError(f"the spill file {self.path!r} {_IN_USE}")
        return link

    def _is_taken_over(self, patience: float) -> bool:
        """Open and empty the file; False if its owner has removed it meanwhile, so that it must be made again."""
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        before = _identity(self.path)
        if before in _used:
            raise OSError(f"the spill file {self.path!r} {_IN_USE}")
        try:
            refuse_foreign(self.path)
        except (FileNotFoundError, sqlite3.OperationalError):
            if os.path.exists(self.path):
                raise
            return False
        self.link = link = self._connected(patience)
        link.execute("PRAGMA locking_mode=EXCLUSIVE")
        link.execute("PRAGMA journal_mode=DELETE")  # is refused while another connection is open
        link.execute("BEGIN EXCLUSIVE")
        if before is None or _identity(self.path) != before:
            link.close()
            return False
        for (table,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            link.execute(f'DROP TABLE "{table}"')
        link.execute(f"PRAGMA application_id={APPLICATION}")
        link.execute("CREATE TABLE fleet (id TEXT NOT NULL)")
        link.execute("INSERT INTO fleet VALUES (?)", (self.id,))
        link.execute("COMMIT")
        self._identity = before
        _used.add(before)
        link.execute("PRAGMA locking_mode=NORMAL")
        link.execute("PRAGMA journal_mode=WAL")
        link.close()
        return True

    def _connected(self, patience: float) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=patience, check_same_thread=False, isolation_level=None)

    def remove(self) -> None:
        """Close the connection, and remove the file if it is this fleet's."""
        with contextlib.suppress(sqlite3.Error):  # a forked child may read, and the file may be gone
            if self.link is not None:
                self.link.execute("PRAGMA busy_timeout=0")
                self.link.execute("PRAGMA locking_mode=EXCLUSIVE")
                self.link.execute("PRAGMA journal_mode=DELETE")
        if self._identity is not None and _identity(self.path) == self._identity:  # while the lock is held
            for name in (self.path, f"{self.path}-wal", f"{self.path}-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(name)
        if self._identity is not None:
            _used.discard(self._identity)  # its number may be given to a new file once it is closed
        if self.link is not None:
            self.link.close()


def _identity(path: str) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def refuse_foreign(path: str) -> None:
    """Raise where there is a database that gristmill did not make; the check changes nothing and does not block."""
    if os.path.getsize(path) == 0:
        return
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as link:
        found = link.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION:
        raise OSError(
            f"the spill file {path!r} cannot be used: it is an SQLite database that gristmill did not make; give a path "
            "of its own"
        )
