"""Where a spill file may lie: never on a file of somebody else's, and never where a model file says."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import quote

try:
    import fcntl
except ImportError:  # Windows: nobody can be told to be alone, so nothing that others may use is removed
    fcntl = None  # type: ignore[assignment]

#: SQLite's mark of the program that a database belongs to: "GRML"
APPLICATION = 0x47524D4C


class TemporarySpill(os.PathLike[str]):
    """A spill file in the system's temporary folder; it is removed with the last fleet that holds it.

    A copy of it, by `copy`, pickle or scikit-learn's `clone`, is another file.
    """

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="gristmill-")  # nobody else can read it
        self._path = os.path.join(folder, "keys.db")
        self._end = weakref.finalize(self, _remove, folder, os.getpid())

    def __fspath__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"TemporarySpill({self._path!r})"

    def __copy__(self) -> TemporarySpill:
        return TemporarySpill()

    def __deepcopy__(self, memo: Any) -> TemporarySpill:
        return TemporarySpill()

    def __reduce__(self) -> Any:
        return TemporarySpill, ()


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked off ends without taking the file along
        shutil.rmtree(folder, ignore_errors=True)


def check_spill(spill: Any) -> None:
    """Refuse what is not the path of a file."""
    if not isinstance(spill, str | bytes | os.PathLike):
        raise TypeError(f"spill must be the path of a file, or None, got {spill!r}")
    if os.fsdecode(spill) in ("", ":memory:"):
        raise ValueError(f"spill must be the path of a file, such as 'keys.db', or None, got {spill!r}")


def refuse_foreign(path: str) -> None:
    """Raise where there is a database that gristmill did not make; looking changes nothing, and waits for nobody."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as link:
        found = link.execute("PRAGMA application_id").fetchone()[0]
    if found != APPLICATION:
        raise OSError(
            f"the spill file {path!r} cannot be used: it is an SQLite database that gristmill did not make; give a path "
            "of its own"
        )


class SpillLock:
    """A fleet's seat at a spill file. The system takes it back when a process is killed, so who comes next knows.

    It is a shared lock on a file beside the spill file: SQLite has locks of its own on the latter.
    """

    def __init__(self, path: str) -> None:
        self._path, self._beside = path, f"{path}-fleets"
        self._handle: int | None = None
        self._file: Any = None
        while fcntl is not None and self._handle is None:
            handle = os.open(self._beside, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                self.is_alone = _locked(handle, alone=True)
                if not self.is_alone and not _locked(handle, alone=False):
                    break  # a file system without locks
                if _same(os.fstat(handle), _stat(self._beside)):  # else who left last has just removed it
                    self._handle, handle = handle, -1
            finally:
                if handle >= 0:
                    os.close(handle)

    is_alone = False

    def clear(self) -> None:
        """What a process that was killed has left behind goes. requires: is_alone, and the file is gristmill's."""
        for name in (self._path, f"{self._path}-wal", f"{self._path}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)

    def settle(self) -> bool:
        """The file is open: others may come. False: one came while the lock was passed on, and took it to be left behind."""
        self._file, self.is_alone = _stat(self._path), False
        if self._handle is not None:
            _locked(self._handle, alone=False)
        return self._file is not None and _same(self._file, _stat(self._path))

    def may_remove(self) -> bool:
        """Whether nobody else uses the file, and it is still the one that was opened."""
        self.is_alone = self._handle is not None and _locked(self._handle, alone=True)
        return self.is_alone and self._file is not None and _same(self._file, _stat(self._path))

    def leave(self) -> None:
        if self._handle is None:
            return
        if self.is_alone and os.fstat(self._handle).st_size == 0:
            with contextlib.suppress(OSError):
                os.unlink(self._beside)
        os.close(self._handle)
        self._handle = None


def _locked(handle: int, alone: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except OSError:
        return False
    return True


def _stat(path: str) -> Any:
    with contextlib.suppress(OSError):
        return Path(path).stat()
    return None


def _same(one: Any, other: Any) -> bool:
    return other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
