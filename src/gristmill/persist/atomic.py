"""Files that are replaced as a whole: written beside their place, synced, renamed.

A program that is killed in between leaves a part file. The next write to the same path removes it. The writer of a part
file holds a lock on it, so the part of another program that is still at work stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: abandoned parts cannot be distinguished from those in use, so they stay
    fcntl = None  # type: ignore[assignment]

_PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part", re.DOTALL)


def write(path: Path, data: bytes) -> None:
    """All or nothing, and lasting: written beside, synced, renamed, and the directory synced.

    A file that is replaced passes its mode on, and its owner where the system allows that.
    """
    remove_parts(path.parent, path.name)
    before = _status(path)
    name, handle = _begin(path, 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                _take_over(file.fileno(), before)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # the lock is held until the part has its name
                os.replace(name, path)
        if fcntl is None:  # Windows renames no open file
            os.replace(name, path)
        sync_directory(path.parent)  # else the new name may be lost with the power
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _begin(path: Path, mode: int) -> tuple[Path, int]:
    """A new part file, locked."""
    while True:
        name = path.parent / f".{path.name}.{secrets.token_hex(8)}.part"
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except FileNotFoundError as error:  # it would name the part
            raise FileNotFoundError(error.errno, "There is no folder to write to", str(path.parent)) from None
        if fcntl is None:
            return name, handle
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # else another program removed it before it was locked
            return name, handle
        os.close(handle)


def _take_over(handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if hasattr(os, "fchown") and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def remove_parts(folder: Path, name: str | re.Pattern[str]) -> None:
    """Remove part files that killed programs left behind.

    Parameters
    ----------
    folder : Path
    name : str or compiled pattern
        Of the file that they were to become.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _PART.fullmatch(entry.name)
            if found is None or not entry.is_file(follow_symlinks=False):
                continue
            if found[1] == name if isinstance(name, str) else name.fullmatch(found[1]):
                _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    """Remove a part file unless its writer is alive."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(handle)


def sync_directory(folder: Path) -> None:
    """Names in a folder last from now on."""
    if os.name != "posix":  # elsewhere a directory cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
