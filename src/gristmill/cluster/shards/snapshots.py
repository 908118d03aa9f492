"""Snapshots of shards: state and last number in one file, in a folder or at a URL that fsspec knows."""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ... import persist

_NAME = re.compile(r"(\d{4})-(\d{4})-(\d{12})\.snapshot")


class Snapshot(NamedTuple):
    """Which snapshot: of which shard of how many, after which batch."""

    shards: int
    shard: int
    number: int

    @property
    def name(self) -> str:
        return f"{self.shards:04d}-{self.shard:04d}-{self.number:012d}.snapshot"


class Store:
    """Snapshots by name. What is found under a name is whole: a file is written beside it first."""

    def __init__(self, place: Any) -> None:
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
        """One line of JSON, then the model. Equal numbers have equal states, so a file may be replaced by its like."""
        said = json.dumps({"snapshot": 1, **snapshot._asdict(), "bytes": len(model)}).encode()
        data = said + b" %08x\n" % zlib.crc32(said) + model
        if not self._remote:
            persist.write(Path(self.place) / snapshot.name, data)
            return
        system, path = self._system()
        system.pipe_file(f"{path}/{snapshot.name}", data)  # object stores show a file when it is whole

    def read(self, snapshot: Snapshot) -> Any:
        """The fleet, or ModelFileError where the file is damaged."""
        if not self._remote:
            data = (Path(self.place) / snapshot.name).read_bytes()
        else:
            system, path = self._system()
            data = system.cat_file(f"{path}/{snapshot.name}")
        line, _, model = data.partition(b"\n")
        said, _, sum_ = line.rpartition(b" ")
        try:
            fine = int(sum_, 16) == zlib.crc32(said)
            header = json.loads(said) if fine else {}
        except ValueError:
            header = {}
        wanted = {"snapshot": 1, **snapshot._asdict(), "bytes": len(model)}
        if header != wanted:
            raise persist.ModelFileError(f"{snapshot.name} is damaged, or is not a snapshot of gristmill")
        return persist.from_bytes(model)

    def all(self) -> list[Snapshot]:
        """Every snapshot there is, the newest of a shard last."""
        if not self._remote:
            names = os.listdir(self.place)
        else:
            system, path = self._system()
            system.invalidate_cache()
            names = [str(found).rsplit("/", 1)[-1] for found in system.ls(path, detail=False)]
        found = (_NAME.fullmatch(name) for name in names)
        return sorted(Snapshot(*(int(part) for part in match.groups())) for match in found if match)

    def of(self, shards: int, shard: int) -> list[Snapshot]:
        return [found for found in self.all() if found[:2] == (shards, shard)]

    def sweep(self, shards: int, shard: int) -> None:
        """Remove what a shard that died in the middle of a snapshot has left."""
        if not self._remote:
            persist.remove_parts(Path(self.place), re.compile(rf"{shards:04d}-{shard:04d}-\d{{12}}\.snapshot"))

    def remove(self, snapshot: Snapshot) -> None:
        if not self._remote:
            (Path(self.place) / snapshot.name).unlink(missing_ok=True)
            return
        system, path = self._system()
        if system.exists(f"{path}/{snapshot.name}"):
            system.rm_file(f"{path}/{snapshot.name}")
