"""Snapshot files: the model file of a learner at a position, replaced and removed by exact name only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path

_NAME = re.compile(r"learner-(\d{1,9})-at-(\d{1,18})\.model(\.part)?")


def path_of(folder: Path, learner: int, position: int) -> Path:
    return folder / f"learner-{learner}-at-{position}.model"


def write(path: Path, data: bytes) -> str:
    """Put a file in its place so that it is whole or not there, on disk when this returns; gives its SHA-256."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    sync(path.parent)
    return hashlib.sha256(data).hexdigest()


def read(path: Path, sha256: str) -> bytes | None:
    """The bytes of a snapshot; None if it is missing or is not what was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def tidy(folder: Path, known: set[tuple[int, int]]) -> None:
    """Remove snapshot files that no journal lists: what a crash left behind, and what was pruned."""
    for entry in os.scandir(folder):
        found = _NAME.fullmatch(entry.name)
        if found is None or not entry.is_file(follow_symlinks=False):
            continue
        if found[3] or (int(found[1]), int(found[2])) not in known:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def sync(folder: Path) -> None:
    """The names in a folder are on disk when this returns."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
