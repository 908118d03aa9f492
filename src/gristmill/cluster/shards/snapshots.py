"""Snapshots of shards: state and last number in one file, in a folder or at a URL that fsspec knows."""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ... import persist

_NAME = re.compile(r"(\d{4})-(\d{4})-(\d{12})-([0-9a-f]{16})\.snapshot")


class Snapshot(NamedTuple):
    """Identity of a snapshot: shard, number of shards, and last batch."""

    shards: int
    shard: int
    number: int


class Store:
    """Snapshots by name. What is found under a name is whole: a file is written beside it first.

    Parameters
    ----------
    place : folder, or URL that fsspec knows
    log : str
        The id of the log whose batches they hold, 16 hexadecimal digits. Those of other logs are another history.
    """

    def __init__(self, place: Any, log: str) -> None:
        self.log = log
        self.place = os.fspath(place).removeprefix("file://")
        self._remote = "://" in self.place
        if not self._remote:
            Path(self.place).mkdir(parents=True, exist_ok=True)

    def _system(self) -> tuple[Any, str]:
        import fsspec

        system, path = fsspec.core.url_to_fs(self.place)
        system.makedirs(path, exist_ok=True)
        return system, path

    def write(self, snapshot: Snapshot, model: bytes) -> None:
        """One line of JSON, then the model. Snapshots of one number are equal, so a file may be replaced."""
        header_text = json.dumps({"snapshot": 2, **snapshot._asdict(), "log": self.log, "bytes": len(model)}).encode()
        data = header_text + b" %08x\n" % zlib.crc32(header_text) + model
        if not self._remote:
            persist.write(Path(self.place) / self.name_of(snapshot), data)
            return
        system, path = self._system()
        system.pipe_file(f"{path}/{self.name_of(snapshot)}", data)  # object stores show only complete files

    def read(self, snapshot: Snapshot) -> Any:
        """The fleet, or ModelFileError where the file is damaged."""
        if not self._remote:
            data = (Path(self.place) / self.name_of(snapshot)).read_bytes()
        else:
            system, path = self._system()
            data = system.cat_file(f"{path}/{self.name_of(snapshot)}")
        line, _, model = data.partition(b"\n")
        header_text, _, sum_ = line.rpartition(b" ")
        try:
            fine = int(sum_, 16) == zlib.crc32(header_text)
            header = json.loads(header_text) if fine else {}
        except ValueError:
            header = {}
        wanted = {"snapshot": 2, **snapshot._asdict(), "log": self.log, "bytes": len(model)}
        if header != wanted:
            raise persist.ModelFileError(f"{self.name_of(snapshot)} is damaged, or is not a snapshot of gristmill")
        return persist.from_bytes(model)

    def name_of(self, snapshot: Snapshot) -> str:
        return f"{snapshot.shards:04d}-{snapshot.shard:04d}-{snapshot.number:012d}-{self.log}.snapshot"

    def _names(self) -> list[str]:
        if not self._remote:
            return os.listdir(self.place)
        system, path = self._system()
        system.invalidate_cache()
        return [str(found).rsplit("/", 1)[-1] for found in system.ls(path, detail=False)]

    def all(self) -> list[Snapshot]:
        """Every snapshot of this log, the newest of a shard last."""
        found = (_NAME.fullmatch(name) for name in self._names())
        return sorted(
            Snapshot(*(int(part) for part in match.groups()[:3])) for match in found if match and match[4] == self.log
        )

    def foreign(self) -> list[str]:
        """Names of snapshots of other logs."""
        return sorted(name for name in self._names() if (match := _NAME.fullmatch(name)) and match[4] != self.log)

    def of(self, shards: int, shard: int) -> list[Snapshot]:
        return [found for found in self.all() if found[:2] == (shards, shard)]

    def sweep(self, shards: int, shard: int) -> None:
        """Remove temporary files of shards that died while writing."""
        if not self._remote:
            persist.remove_parts(
                Path(self.place), re.compile(rf"{shards:04d}-{shard:04d}-\d{{12}}-{self.log}\.snapshot")
            )

    def remove(self, snapshot: Snapshot) -> None:
        if not self._remote:
            (Path(self.place) / self.name_of(snapshot)).unlink(missing_ok=True)
            return
        system, path = self._system()
        if system.exists(f"{path}/{self.name_of(snapshot)}"):
            system.rm_file(f"{path}/{self.name_of(snapshot)}")
