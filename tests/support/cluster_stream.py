"""The stream that programs on Ray learn from, and what one fleet in one process makes of it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from gristmill import DropRandom, Gaussian, KernelClassifier, KeyedFleet

SIZE, WIDTH, KEYS = 500, 4, 300


def fleet() -> KeyedFleet:
    return KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropRandom(12), random_state=5), ttl=4000)


def batch(number: int) -> tuple[Any, Any, Any]:
    """Number from 1; a third class comes with the fifth batch, a fourth with the ninth."""
    rng = np.random.default_rng([7, number])
    keys, X = rng.integers(0, KEYS, size=SIZE), rng.normal(size=(SIZE, WIDTH))
    y = rng.integers(0, 2 + (number >= 5) + (number >= 9), size=SIZE)
    return keys, X, np.where(X[:, 0] > 0.5, 0, y)


def digest(whole: KeyedFleet) -> str:
    """Of every key's learner, the labels and the clock."""
    keys = np.sort(whole._store.keys())
    pack = whole._store.members(keys)
    found = hashlib.blake2b(repr((whole._table.names, whole._core_.now, keys.tolist())).encode())
    for name in sorted(pack):
        found.update(np.ascontiguousarray(pack[name]).tobytes())
    return found.hexdigest()


def alone(count: int) -> tuple[str, Any]:
    """The digest of one fleet after so many batches, and what it said of the last."""
    one = fleet()
    said = None
    for number in range(1, count + 1):
        said = one.prequential(*batch(number))
    return digest(one), said
