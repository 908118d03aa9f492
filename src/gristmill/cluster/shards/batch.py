"""Numbered batches of keyed events: what the log keeps, what a shard is sent, and which shard a key belongs to."""

from __future__ import annotations

import dataclasses
import json
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ...fleets.keys import Keys, selected

_ARRAYS = ("X", "labels", "weights", "times")
_TYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "uint8": "U8"}


def shard_of(rows: Any, shards: int) -> npt.NDArray[np.int64]:
    """The shard of each key: the same on every machine, in every run and for every Python.

    Keys are mixed by the finisher of splitmix64, texts after their CRC-32. The high bits decide, because a shard's own
    table of keys goes by low ones.
    """
    if isinstance(rows, np.ndarray):
        z = rows.astype(np.int64).view(np.uint64)
    else:
        z = np.fromiter(map(zlib.crc32, rows), dtype=np.uint64, count=len(rows))
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (((z >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)).astype(np.int64)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Events in order, or keys to forget where X is None.

    A class enters at the event that brings it, for the keys of all shards. So a batch has segments: the first event of
    each, and how many classes are known from there on.
    """

    number: int
    rows: Keys
    X: Any
    labels: Any  # codes or targets
    weights: Any
    times: Any
    segments: tuple[tuple[int, int], ...]
    names: tuple[Any, ...]  # of the classes that are known at the end
    now: float  # the clock at the end
    sure: bool = True  # no shard can refuse it any more

    def __len__(self) -> int:
        return len(self.rows)

    def pieces(self) -> list[memoryview]:
        """As the log keeps it, one after the other: a safetensors file, no code, and no copy of the events."""
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        if isinstance(self.rows, np.ndarray):
            arrays["keys"] = self.rows
        else:
            arrays["lengths"] = np.array([len(text) for text in self.rows], dtype=np.int64)
            arrays["texts"] = np.frombuffer(b"".join(self.rows), dtype=np.uint8)
        fields = {
            "number": self.number,
            "segments": self.segments,
            "names": self.names,
            "now": self.now,
            "sure": self.sure,
        }
        header: dict[str, Any] = {"__metadata__": {"batch": json.dumps(fields)}}
        pieces, end = [], 0
        for name, array in arrays.items():
            begin, end = end, end + array.nbytes
            header[name] = {"dtype": _TYPES[array.dtype.name], "shape": array.shape, "data_offsets": (begin, end)}
            if array.nbytes:  # one of no bytes cannot be seen as bytes
                pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return [memoryview(len(text).to_bytes(8, "little") + text), *pieces]

    def to_bytes(self) -> bytes:
        """The same in one piece."""
        return b"".join(self.pieces())

    @classmethod
    def from_bytes(cls, data: bytes) -> Batch:
        from safetensors.numpy import load as unpacked

        arrays = unpacked(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        fields = json.loads(header["__metadata__"]["batch"])
        if "keys" in arrays:
            rows: Any = arrays["keys"]
        else:
            whole, ends = arrays["texts"].tobytes(), np.cumsum(arrays["lengths"])
            firsts = ends - arrays["lengths"]
            rows = [whole[first:end] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
        segments = tuple((int(first), int(known)) for first, known in fields["segments"])
        given = {name: arrays.get(name) for name in _ARRAYS}
        names, now, sure = tuple(fields["names"]), float(fields["now"]), bool(fields["sure"])
        return cls(int(fields["number"]), rows, **given, segments=segments, names=names, now=now, sure=sure)


@dataclasses.dataclass(frozen=True)
class Cut:
    """Split a batch by shard; `order` has the original position of each sample."""

    batch: Batch
    order: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    sorted_rows: Keys
    sorted_columns: dict[str, Any]

    @classmethod
    def of(cls, batch: Batch, shards: int) -> Cut:
        owners = shard_of(batch.rows, shards)
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=shards))
        rows = selected(batch.rows, order)
        columns = {name: getattr(batch, name) for name in _ARRAYS}
        columns = {name: None if column is None else column[order] for name, column in columns.items()}
        return cls(batch, order, ends, rows, columns)

    @property
    def nbytes(self) -> int:
        """Of the rows."""
        X = self.sorted_columns["X"]
        return 0 if X is None else int(X.nbytes)

    def span(self, shard: int) -> slice:
        return slice(int(self.ends[shard - 1]) if shard else 0, int(self.ends[shard]))

    def places(self, shard: int) -> npt.NDArray[np.int64]:
        """Where the events of a shard stand in the batch."""
        return self.order[self.span(shard)]

    def part(self, shard: int) -> Batch:
        """The events of one shard, with the segments cut as the batch's are."""
        span = self.span(shard)
        places = self.order[span]
        segments = tuple((int(np.searchsorted(places, first)), known) for first, known in self.batch.segments)
        columns: dict[str, Any] = {
            name: None if column is None else column[span] for name, column in self.sorted_columns.items()
        }
        return dataclasses.replace(self.batch, rows=self.sorted_rows[span], **columns, segments=segments)


def segments_of(labels: Any, before: int, known: int) -> tuple[tuple[int, int], ...]:
    """Where classes enter: the first event is 0; codes are numbers in the order in which classes come."""
    found = [(0, max(before, known))]
    if labels is None or not len(labels) or labels.max() < max(found[0][1], 2):
        return tuple(found)
    most = np.maximum.accumulate(labels)
    for first in np.flatnonzero(np.diff(most, prepend=-1.0) > 0).tolist():
        classes = int(most[first]) + 1
        if classes > max(found[-1][1], 2):  # two classes share one output
            found.append((first, classes))
    return tuple(found)


def widened(scores: npt.NDArray[np.float64], outputs: int) -> npt.NDArray[np.float64]:
    """Scores of fewer classes as the core shows them once more are known."""
    had = scores.shape[1]
    if had == outputs:
        return scores
    wide = np.zeros((len(scores), outputs))
    if had == 1:
        wide[:, 0], wide[:, 1] = -0.5 * scores[:, 0], 0.5 * scores[:, 0]
    else:
        wide[:, :had] = scores
    return wide
