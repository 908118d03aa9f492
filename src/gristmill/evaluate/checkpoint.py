"""Checkpoints of a run: model file and record of the run, which fit each other also after a crash.

The record is written first, with the model's count of events (`n_seen_`) in its name, then the model replaces the old one
atomically. The sample count of the saved model decides which record belongs to it. The count of the run is in the
record: a model may have learned before the run.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from .. import persist
from .._common.types import Json
from .follower import Follower
from .metrics import PredictionBatch
from .result import Result, asdict_without_model

#: how a record begins
_HEAD = b'{"gristmill": "checkpoint", '


def _record_path(path: Path, seen: int) -> Path:
    return path.with_name(f"{path.name}.{seen}.json")


def _is_record(path: Path) -> bool:
    """Whether a file begins as a record does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD


def _records(path: Path) -> list[Path]:
    """The record files of a model, identified by name and header."""
    name = re.compile(re.escape(path.name) + r"\.[0-9]+\.json", re.DOTALL)
    return [found for found in path.parent.iterdir() if name.fullmatch(found.name) and _is_record(found)]


def write(follower: Follower, path: Any) -> None:
    """Save model and record at this point of the run."""
    path = Path(path)
    place = _record_path(path, int(follower.model.n_seen_))
    if os.path.lexists(place) and not _is_record(place):
        raise ValueError(f"{place} is not a record of gristmill, and it is in the way; give checkpoint another name")
    record = {
        "gristmill": "checkpoint",
        "result": asdict_without_model(follower.result),
        "tallies": {tally.name: tally.state for tally in follower.tallies},
        "recent": [_batch_to_json(batch) for batch in follower.recent_batches],
        "since": follower.since_entry,
        "every": follower.entry_every,
        "window": follower.window,
    }
    persist.write(place, json.dumps(record, default=_plain).encode())
    follower.model.save(path)
    for old in _records(path):
        if old != place:
            os.unlink(old)


def restore(follower: Follower, path: Any) -> int:
    """Restore a follower from a checkpoint; returns the number of its events."""
    path = Path(path)
    if not path.exists():
        return 0
    model = persist.load(path)
    record_path = _record_path(path, int(model.n_seen_))
    if type(model) is not type(follower.model):
        raise ValueError(f"{path}: holds a {type(model).__name__}, and the run is of a {type(follower.model).__name__}")
    if not _is_record(record_path):
        raise ValueError(
            f"{path}: its record {record_path.name} is missing; remove the model to start from the beginning"
        )
    record = json.loads(record_path.read_text(encoding="utf-8"))
    known = {tally.name for tally in follower.tallies}
    if set(record["tallies"]) != known or record["window"] != follower.window:
        raise ValueError(
            f"{path}: the run had metrics {sorted(record['tallies'])} and window {record['window']}, "
            f"now they are {sorted(known)} and {follower.window}"
        )
    follower.model = model
    follower.result = Result(**record["result"], model=model)
    for tally in follower.tallies:
        tally.state = record["tallies"][tally.name]
    follower.recent_batches = deque(_batch_from_json(plain) for plain in record["recent"])
    follower.since_entry, follower.entry_every = record["since"], record["every"]
    return follower.result.n_events


def _batch_to_json(batch: PredictionBatch) -> dict[str, object]:
    return {name: None if part is None else np.asarray(part).tolist() for name, part in batch._asdict().items()}


def _batch_from_json(plain: Json) -> PredictionBatch:
    arrays: Json = {name: None if part is None else np.array(part) for name, part in plain.items()}
    return PredictionBatch(**arrays)


def _plain(value: object) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} cannot be part of a record")
