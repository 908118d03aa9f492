"""Batches one after the other in plain files, each with the state of the stream after it, whole or not at all.

A record is on the disk before the next one is begun, so that only the last can be torn; it is cut off when the files are
opened.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from ...persist import sync_directory

_HEAD = struct.Struct("<8sqQQI")  # mark, number, bytes of the state and of the data, their CRC-32
_MARK = b"grist\0b1"


class SegmentError(ValueError):
    """A file of batches cannot be used; the message says why."""


class Record(NamedTuple):
    """Where a batch is."""

    path: Path
    offset: int  # of its state, which the data follow
    state: int  # bytes
    data: int
    check: int


class Segments:
    """Records by number, in files that begin anew when they are large, so that old ones can go as a whole."""

    LIMIT = 64 << 20  # bytes of a file

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[int, Record] = {}
        self._file: int | None = None
        self._current: Path | None = None
        self._end = 0
        found = segments_of(path)
        for segment in found:
            _refuse_foreign(segment)
        for segment in found:
            self._scan(segment, segment == found[-1])

    def __len__(self) -> int:
        return len(self._records)

    @property
    def last(self) -> int | None:
        return max(self._records, default=None)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _scan(self, path: Path, newest: bool) -> None:
        with path.open("rb+") as file:
            size, place = file.seek(0, os.SEEK_END), 0
            while place < size:
                file.seek(place)
                found = self._record(path, place, file.read(_HEAD.size), size)
                end = place if found is None else found[1].offset + found[1].state + found[1].data
                if found is None or (newest and end == size and not self._is_whole(found[1])):
                    if not newest:
                        raise SegmentError(f"{path} is damaged at byte {place}")
                    file.truncate(place)  # the program died before it was told that the batch is safe
                    break
                self._records[found[0]] = found[1]
                place = end
        self._current, self._end = path, min(place, path.stat().st_size)

    def _record(self, path: Path, place: int, head: bytes, size: int) -> tuple[int, Record] | None:
        if len(head) < _HEAD.size:
            return None
        mark, number, state, data, check = _HEAD.unpack(head)
        offset = place + _HEAD.size
        if mark != _MARK or offset + state + data > size:
            return None
        return number, Record(path, offset, state, data, check)

    def _is_whole(self, record: Record) -> bool:
        state, data = self._parts(record)
        return zlib.crc32(data, zlib.crc32(state)) == record.check

    def _parts(self, record: Record) -> tuple[bytes, bytes]:
        with record.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.state), file.read(record.data)

    def state(self, number: int) -> str:
        record = self._records[number]
        with record.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.state).decode()

    def data(self, number: int) -> bytes | None:
        """What was kept under a number; None where nothing is."""
        record = self._records.get(number)
        if record is None:
            return None
        state, data = self._parts(record)
        if zlib.crc32(data, zlib.crc32(state)) != record.check:
            raise SegmentError(f"{record.path} is damaged: batch {number} is not what was written")
        return data

    # ---- writing ----------------------------------------------------------------------------------------------------

    def append(self, number: int, state: str, data: list[memoryview]) -> None:
        """On the disk once this returns; nothing of it is there where it raises."""
        said = state.encode()
        check = zlib.crc32(said)
        for piece in data:
            check = zlib.crc32(piece, check)
        size = sum(map(len, data))
        file, place = self._open(number), self._end
        assert self._current is not None
        try:
            head = _HEAD.pack(_MARK, number, len(said), size, check)
            _write(file, place, [memoryview(head + said), *data])
            getattr(os, "fdatasync", os.fsync)(file)
            self._records[number] = Record(self._current, place + _HEAD.size, len(said), size, check)
            self._end = place + _HEAD.size + len(said) + size
        except BaseException:
            self._records.pop(number, None)
            self._end = place
            os.ftruncate(file, place)
            raise

    def _open(self, number: int) -> int:
        if self._file is not None and self._end < self.LIMIT:
            return self._file
        if self._file is None and self._current is not None and self._end < self.LIMIT:
            self._file = os.open(self._current, os.O_RDWR)
            return self._file
        self.close()
        path = self._path.with_name(f"{self._path.name}.b{number:015d}")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        self._current, self._end = path, 0
        sync_directory(path.parent)
        return self._file

    def drop_last(self, number: int) -> None:
        """The last record was never there."""
        record = self._records[number]
        place = record.offset - _HEAD.size
        if record.path != self._current or self._file is None:
            self.close()
            self._current, self._file = record.path, os.open(record.path, os.O_RDWR)
        os.ftruncate(self._file, place)
        os.fsync(self._file)
        del self._records[number]
        self._end = place

    def prune(self, upto: int) -> None:
        """Forget old batches, and remove files that hold no others."""
        before = {record.path for record in self._records.values()}
        self._records = {number: record for number, record in self._records.items() if number > upto}
        for path in before - {record.path for record in self._records.values()} - {self._current}:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def segments_of(path: Path) -> list[Path]:
    """The files of batches that belong to a log, the oldest first; their names are exact."""
    name = re.compile(re.escape(path.name) + r"\.b[0-9]{15}", re.DOTALL)
    return sorted(found for found in path.parent.iterdir() if name.fullmatch(found.name))


def _refuse_foreign(path: Path) -> None:
    """Raise where a file does not begin as a file of batches does; an empty one is a file that was just begun."""
    if not path.is_file() or path.is_symlink():
        raise SegmentError(f"{path} is not a file of batches; move it away")
    with path.open("rb") as file:
        start = file.read(len(_MARK))
    if not _MARK.startswith(start):
        raise SegmentError(f"{path} does not begin as a file of batches does: it is damaged, or not gristmill's")


def _write(file: int, place: int, parts: list[memoryview]) -> None:
    os.lseek(file, place, os.SEEK_SET)
    for part in parts:
        while len(part):
            part = part[os.write(file, part) :]
