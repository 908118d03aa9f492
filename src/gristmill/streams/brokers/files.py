"""Records to a file of JSON lines: what a run before a crash wrote is not written again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import IO, Any, Self

from .contract import Record, Writer, Written
from .url import Url

#: bytes at the end of a file that are looked through for the newest positions: more than lies between two savings
_TAIL = 1 << 26
_HEAD = b'{"position": '  # a file that begins otherwise was not written here


class FileWriter(Writer):
    """A file that records are appended to, one JSON object a line."""

    def __init__(self, url: Url) -> None:
        super().__init__(url)
        self._path = os.path.join(url.hosts, url.path) if url.hosts else f"/{url.path}"
        self._file: IO[bytes] | None = None
        self._written = Written()

    @classmethod
    def at(cls, path: Any) -> Self:
        """A writer to a path."""
        made = cls(Url("file", "", os.path.abspath(os.fspath(path)).removeprefix("/")))
        made._path = os.path.abspath(os.fspath(path))
        return made

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            file = open(self._path, "a+b")  # noqa: SIM115  # closed by close
            file.seek(0)
            head = file.read(len(_HEAD))
            if not _HEAD.startswith(head):
                file.close()
                raise ValueError(f"{self._path}: this file does not hold predictions of gristmill; give another one")
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _TAIL))
            tail = file.read()
            whole = tail.rfind(b"\n") + 1
            file.truncate(end - len(tail) + whole)  # a line that was cut off by a crash is written anew
            for line in tail[:whole].splitlines():
                self._note(line)
            self._file = file
        return self._file

    def _note(self, line: bytes) -> None:
        try:
            place = json.loads(line)["position"]
            self._written.note(place["source"], place["partition"], place["offset"])
        except (ValueError, KeyError, TypeError):
            pass  # the first line of the tail may begin in its middle

    def send(self, records: Sequence[Record]) -> None:
        file = self._opened()
        fresh = self._written.fresh(records)
        file.write(b"".join(record.body() + b"\n" for record in fresh))
        file.flush()  # for those who follow the file; what a crash leaves half written is cut off
        for record in fresh:
            self._written.note(record.source, record.partition, record.offset)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None
