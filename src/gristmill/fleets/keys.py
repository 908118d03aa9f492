"""Keys as the core takes them: an array of whole numbers, or a list of bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.labels import LabelTable

KeyKind = Literal["int", "str", "bytes"]
#: keys as the core takes them
Keys = npt.NDArray[np.int64] | list[bytes]


@dataclasses.dataclass(frozen=True)
class Start:
    """What the first events settle for all that follow."""

    kind: KeyKind
    width: int
    dtype: str
    seed: int
    timed: bool

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Start:
        return cls(**json.loads(text))


class KeyedEvents(NamedTuple):
    """Events of a keyed fleet as the core takes them."""

    kind: KeyKind
    rows: Keys
    X: Any
    labels: Any  # codes or targets; None for novelty
    weights: Any  # those of their classes included
    times: Any
    known: int  # classes that are known before the first event
    table: LabelTable  # of the classes, after the last
    y: Any  # as it came, one an event
    given_weights: Any  # as they came, one an event


def read_keys(keys: object, known: KeyKind | None) -> tuple[KeyKind, Any]:
    """The kind of the keys and the keys themselves; a fleet has keys of one kind."""
    kind, rows = _read(keys, known)
    if known is not None and kind != known:
        raise TypeError(f"the keys of this fleet are of type {known}, got {kind}")
    return kind, rows


def _read(keys: Any, known: KeyKind | None) -> tuple[KeyKind, Any]:
    if isinstance(keys, str | bytes | set | frozenset | dict) or not hasattr(keys, "__len__"):
        raise TypeError(f"keys must be a list, array or column with one key an event, in order, got {keys!r}")
    if hasattr(keys, "to_pylist"):  # Arrow
        keys = np.asarray(keys)
    if hasattr(keys, "to_numpy"):
        keys = keys.to_numpy()
    if isinstance(keys, np.ndarray):
        if keys.ndim != 1:
            raise ValueError(f"keys must have one dimension, got {keys.ndim}")
        if keys.dtype.kind in "iu":
            return "int", _whole(keys)
        keys = keys.tolist()
    kinds = {type(key) for key in keys}
    if not kinds:  # empty: the check of the rows raises
        return known or "int", np.zeros(0, dtype=np.int64) if known in (None, "int") else []
    of = {_kind_of(kind) for kind in kinds}
    if of == {"str"}:
        return "str", _encoded(keys)
    if of == {"bytes"}:
        return "bytes", [bytes(key) for key in keys]
    if of == {"int"}:
        if kinds <= {int, np.int64}:
            with contextlib.suppress(OverflowError):  # full validation raises
                return "int", np.array(list(keys), dtype=np.int64)
        return "int", _whole(np.array(list(keys), dtype=object))
    raise TypeError(f"keys must be all whole numbers, all strings or all bytes; {_odd(list(keys))}")


def _encoded(keys: Any) -> list[bytes]:
    try:
        return [str.encode(key) for key in keys]  # a subclass may have another idea of it
    except UnicodeEncodeError:
        row = next(row for row, key in enumerate(keys) if any("\ud800" <= letter <= "\udfff" for letter in key))
        raise ValueError(
            f"keys must be texts that can be written as UTF-8: row {row} is {keys[row]!r}, which holds half of a "
            "character; such keys can be given as bytes, all of them: key.encode('utf-8', 'surrogatepass')"
        ) from None


def _kind_of(kind: type) -> KeyKind | None:
    if issubclass(kind, str):
        return "str"
    if issubclass(kind, bytes):
        return "bytes"
    return "int" if issubclass(kind, int | np.integer) and kind is not bool else None


def _odd(keys: Sequence[object]) -> str:
    """Raise for the first key of another or an invalid type."""
    alike = ((str, np.str_), (bytes, np.bytes_), (int, np.integer))
    kind = next((kind for kind in alike if isinstance(keys[0], kind) and not isinstance(keys[0], bool)), None)
    if kind is None:
        return f"row 0 is {keys[0]!r}"
    row = next(row for row, key in enumerate(keys) if not isinstance(key, kind) or isinstance(key, bool))
    return f"row 0 is {keys[0]!r}, row {row} is {keys[row]!r}"


def _whole(keys: Any) -> Any:
    if len(keys) and (keys.min() < -(2**63) or keys.max() >= 2**63):
        raise ValueError(f"keys must fit into 64 bits with a sign, got {keys.max()}")
    return np.ascontiguousarray(keys, dtype=np.int64)


def as_text(key: Any, kind: KeyKind | None) -> bytes:
    """A key as the bytes that stand for it on disk."""
    return int(key).to_bytes(8, "little", signed=True) if kind == "int" else bytes(key)


def from_texts(texts: list[bytes], kind: KeyKind | None) -> Any:
    """Keys as the core takes them, from the bytes that stand for them on disk."""
    return np.frombuffer(b"".join(texts), dtype="<i8").astype(np.int64) if kind == "int" else texts


def shown_keys(keys: Any, kind: KeyKind | None) -> Any:
    """Keys of the core as they are shown outside."""
    if kind == "int":
        return np.array(keys, dtype=np.int64)
    return [key.decode() for key in keys] if kind == "str" else [bytes(key) for key in keys]


def selected(keys: Keys, places: npt.NDArray[np.int64]) -> Keys:
    """Some keys by their places."""
    return keys[places] if isinstance(keys, np.ndarray) else [keys[i] for i in places.tolist()]


def concatenated(first: Any, second: Any) -> Keys:
    """Keys of one kind, one list after the other."""
    return np.concatenate([first, second]) if isinstance(first, np.ndarray) else [*first, *second]
