"""Batches in plain files, each written atomically with the state of the stream after it.

A file begins with a mark and the id of its log. A record is on the disk before the next one is begun, so that only the last
can be torn; it is cut off when the files are opened. Damage anywhere else is an error.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ...persist import sync_directory

_FILE = struct.Struct("<8s16s")  # mark, id of the log
_BEGIN = b"gristlog"
_HEAD = struct.Struct("<8sqQQI")  # mark, number, bytes of the state and of the data, their CRC-32
_SUM = struct.Struct("<I")  # of the head
_LENGTH = _HEAD.size + _SUM.size
_MARK = b"grist\0b2"


class SegmentError(ValueError):
    """A segment file cannot be used; the message gives the reason."""


class Record(NamedTuple):
    """Position of a batch in its file."""

    path: Path
    offset: int  # of its state, which the data follow
    state: int  # bytes
    data: int
    check: int

    @property
    def end(self) -> int:
        return self.offset + self.state + self.data


class Segments:
    """Records by number in segment files of bounded size, so that old segments can be deleted as a whole.

    Parameters
    ----------
    path : Path
        Of the log; the files lie beside it.
    log : bytes
        Its id, 16 bytes.
    safe : (str, int), optional
        Name and length of the newest file when it was last closed: nothing before that place can be torn.
    """

    LIMIT = 64 << 20  # bytes of a file

    def __init__(self, path: Path, log: bytes, safe: tuple[str, int] = ("", 0)) -> None:
        self._path, self._log, self._safe = path, log, safe
        self._records: dict[int, Record] = {}
        self._file: int | None = None
        self._current: Path | None = None
        self._end = 0
        found = segments_of(path)
        for segment in found:
            self._refuse_foreign(segment, segment == found[-1])
        if safe[0] and (not found or found[-1].name < safe[0]):
            raise SegmentError(f"{path.with_name(safe[0])} is missing, and it held batches that were on disk")
        for segment in found:
            self._scan(segment, segment == found[-1])

    def __len__(self) -> int:
        return len(self._records)

    @property
    def last(self) -> int | None:
        return max(self._records, default=None)

    @property
    def end(self) -> tuple[str, int]:
        """Name and length of the newest file."""
        return ("", 0) if self._current is None else (self._current.name, self._end)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _refuse_foreign(self, path: Path, newest: bool) -> None:
        """Raise if a file does not start with the header of this log; a truncated header is that of a new file."""
        if not path.is_file() or path.is_symlink():
            raise SegmentError(f"{path} is not a file of batches; move it away")
        with path.open("rb") as file:
            start = file.read(_FILE.size)
        if not start.startswith(_BEGIN) and not _BEGIN.startswith(start):
            raise SegmentError(f"{path} does not begin as a file of batches does: it is damaged, or not gristmill's")
        whole = _FILE.pack(_BEGIN, self._log)
        if start != whole and not (newest and whole.startswith(start)):
            raise SegmentError(f"{path} holds batches of another log than {self._path.name}, or is damaged")

    def _scan(self, path: Path, newest: bool) -> None:
        with path.open("rb+") as file:
            size, place = file.seek(0, os.SEEK_END), _FILE.size
            if size < place:
                self._cut(file, path, 0, newest)
                place = size = 0
            while place < size:
                file.seek(place)
                found = _read_head(path, place, file.read(_LENGTH), size)
                last = max(self._records, default=None)
                if found is not None and last is not None and found[0] != last + 1:
                    found = None
                if found is None or (newest and found[1].end == size and not self._is_whole(found[1])):
                    self._cut(file, path, place, newest)
                    break
                self._records[found[0]] = found[1]
                place = found[1].end
        self._current, self._end = path, place

    def _cut(self, file: Any, path: Path, place: int, newest: bool) -> None:
        """Truncate a torn record at the end. A torn record before an intact one, or before a synced position, is damage."""
        if not newest:
            raise SegmentError(f"{path} is damaged at byte {place}")
        if path.name == self._safe[0] and place < self._safe[1]:
            raise SegmentError(f"{path} is damaged at byte {place}: {self._safe[1]} bytes of it were safe")
        file.seek(place)
        rest = file.read()
        at = rest.find(_MARK, 1)
        while at >= 0:
            found = _read_head(path, place + at, rest[at : at + _LENGTH], place + len(rest))
            if found is not None and self._is_whole(found[1]):
                raise SegmentError(f"{path} is damaged at byte {place}, before batch {found[0]}, which is intact")
            at = rest.find(_MARK, at + 1)
        file.truncate(place)  # the program died before the batch was acknowledged

    def _is_whole(self, record: Record) -> bool:
        state, data = self.checked_parts(record)
        return zlib.crc32(data, zlib.crc32(state)) == record.check

    def checked_parts(self, record: Record) -> tuple[bytes, bytes]:
        with record.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.state), file.read(record.data)

    def state(self, number: int) -> str:
        record = self._records[number]
        with record.path.open("rb") as file:
            file.seek(record.offset)
            return file.read(record.state).decode()

    def data(self, number: int) -> bytes | None:
        """The record with this number, or None."""
        record = self._records.get(number)
        if record is None:
            return None
        state, data = self.checked_parts(record)
        if zlib.crc32(data, zlib.crc32(state)) != record.check:
            raise SegmentError(f"{record.path} is damaged: batch {number} is not what was written")
        return data

    # ---- writing ----------------------------------------------------------------------------------------------------

    def append(self, number: int, state: str, data: list[memoryview]) -> None:
        """Append a record, which is on disk when this returns; after an error nothing was appended."""
        text = state.encode()
        check = zlib.crc32(text)
        for piece in data:
            check = zlib.crc32(piece, check)
        size = sum(map(len, data))
        file, place = self._open(number), self._end
        assert self._current is not None
        try:
            begin = b"" if place else _FILE.pack(_BEGIN, self._log)
            head = _HEAD.pack(_MARK, number, len(text), size, check)
            _write(file, place, [memoryview(begin + head + _SUM.pack(zlib.crc32(head)) + text), *data])
            getattr(os, "fdatasync", os.fsync)(file)
            record = Record(self._current, place + len(begin) + _LENGTH, len(text), size, check)
            self._records[number], self._end = record, record.end
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
        """Remove the last record."""
        record = self._records[number]
        place = record.offset - _LENGTH
        if record.path != self._current or self._file is None:
            self.close()
            self._current, self._file = record.path, os.open(record.path, os.O_RDWR)
        os.ftruncate(self._file, place)
        os.fsync(self._file)
        del self._records[number]
        self._end = place

    def prune(self, upto: int) -> None:
        """Drop old batches and delete the files that hold no others."""
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


def _read_head(path: Path, place: int, head: bytes, size: int) -> tuple[int, Record] | None:
    """Number and place of a record, or None if the head is incomplete."""
    if len(head) < _LENGTH or _SUM.unpack(head[_HEAD.size :])[0] != zlib.crc32(head[: _HEAD.size]):
        return None
    mark, number, state, data, check = _HEAD.unpack(head[: _HEAD.size])
    found = Record(path, place + _LENGTH, state, data, check)
    return None if mark != _MARK or found.end > size else (number, found)


def _write(file: int, place: int, parts: list[memoryview]) -> None:
    os.lseek(file, place, os.SEEK_SET)
    for part in parts:
        while len(part):
            part = part[os.write(file, part) :]
