"""A store of keys as arrays and plain values for a file: every key, in memory or spilled, one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.types import Fitted
from ..persist.model_file import ModelFileError
from .key_store import Arrays, KeyStore
from .keys import KeyKind, Keys, concatenated
from .spill import BATCH

#: free records between those of keys that are read back: more would ask for memory that the file does not explain
_SPARSE, _FEW = 64, 1024


def written(store: KeyStore, bounded: bool) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and plain values of a store. bounded: by `max_keys`, so that the order of slots decides evictions."""
    core, kind = store.core, store.start.kind
    keys, arrays, hand, now, classes, dropped, _ = core.residents()
    others = store.spilled_keys()
    hand = _order(arrays, len(keys), len(others), hand, bounded)
    parts = [arrays]
    for first in range(0, len(others), BATCH):  # not all of them in memory at once
        parts.append(store.members(others[first : first + BATCH]))
    arrays = _joined(parts)
    both = concatenated(keys, others)
    arrays["keys"], arrays["key_lengths"] = keys_as_arrays(both)
    fitted = {
        "classes": classes,
        "seed": store.start.seed,
        "kind": kind,
        "timed": store.start.timed,
        "now": now,
        "hand": hand,
        "dropped": dropped,
        "expired": store.expired,
    }
    return arrays, fitted


def count_of(arrays: Arrays, fitted: dict[str, object]) -> int:
    """Number of keys in a file; a kind of keys that does not exist is refused."""
    if fitted["kind"] not in ("int", "str", "bytes"):
        raise ModelFileError(f"its keys are of a kind {fitted['kind']!r}")
    return len(arrays["keys" if fitted["kind"] == "int" else "key_lengths"])


def read_into(store: KeyStore, arrays: Arrays, fitted: Fitted) -> None:
    """Fill an empty store from `written`, whose arrays are taken out."""
    keys, now = keys_from_arrays(store.start.kind, arrays.pop("keys"), arrays.pop("key_lengths")), float(fitted["now"])
    slots, touched = (arrays.pop(name, None) for name in ("slots", "touched"))
    last = np.ascontiguousarray(arrays.pop("last"), dtype=np.float64)
    if not math.isfinite(now) or not np.isfinite(last).all():
        raise ModelFileError("its clock holds something else than finite numbers")
    store.core.set_now(now)
    if slots is None:  # no limit on keys: the order of slots decides nothing
        store.set_members(keys, arrays, last)
    else:
        store.restore(keys, arrays, last, slots, touched, int(fitted["hand"]))
    store.core.set_counts(int(fitted["dropped"]), int(fitted["expired"]))


def _order(arrays: Arrays, count: int, others: int, hand: int, bounded: bool) -> int:
    """Store the slot order, which decides future CLOCK evictions; return the clock hand."""
    if not bounded:
        del arrays["slots"], arrays["touched"]
        return 0
    slots = arrays["slots"]
    if max(hand, slots[-1] if count else 0) >= _SPARSE * (count + others) + _FEW:
        hand = int(np.searchsorted(slots, hand))
        slots = np.arange(count, dtype=np.int64)
    arrays["slots"] = np.append(slots, np.full(others, -1, dtype=np.int64))
    arrays["touched"] = np.append(arrays["touched"], np.zeros(others, dtype=np.uint8))
    return hand


def _joined(parts: list[Arrays]) -> Arrays:
    """Lists of members one after the other; what has no entry in any is left out."""
    order = {name: parts[0].pop(name) for name in ("slots", "touched") if name in parts[0]}
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([part[name] for part in parts if name in part]) for name in names} | order


def keys_as_arrays(keys: Keys) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Keys as one array, and the lengths of texts."""
    if isinstance(keys, np.ndarray):
        return keys, np.zeros(0, dtype=np.int64)
    lengths = np.array([len(text) for text in keys], dtype=np.int64)
    return np.frombuffer(b"".join(keys), dtype=np.uint8), lengths


def keys_from_arrays(kind: KeyKind, keys: Any, lengths: Any) -> Keys:
    """Back from `keys_as_arrays`; what is damaged is refused."""
    if kind == "int":
        if len(np.unique(keys)) != len(keys) or keys.dtype != np.int64:
            raise ModelFileError("its keys are not distinct whole numbers")
        return np.asarray(keys)
    ends = np.cumsum(lengths)
    if (lengths < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(keys):
        raise ModelFileError("its keys are damaged")
    whole = keys.tobytes()
    texts = [whole[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist(), strict=True)]
    if len(set(texts)) != len(texts):
        raise ModelFileError("its keys are not distinct")
    return texts
