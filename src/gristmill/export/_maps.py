"""Random Maclaurin maps written out: the core draws their signs from a seed, and a file needs the signs themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._plain import Floats, MaclaurinFactor, MaclaurinFeatures

_SHORTEST = 64  #: a Hadamard transform is no shorter
_MASK = (1 << 64) - 1


class _Random:
    """The core's generator: the n-th number is a hash of the seed and n (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self.seed, self.counter = seed & _MASK, 0

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        steps = np.arange(self.counter + 1, self.counter + 1 + count, dtype=np.uint64)
        self.counter += count
        with np.errstate(over="ignore"):
            z = np.uint64(self.seed) + np.uint64(0x9E3779B97F4A7C15) * steps
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))

    def bits(self, count: int) -> npt.NDArray[np.bool_]:
        """So many bits, lowest first; what is left of the last word is thrown away."""
        words = self.words(-(-count // 64))
        places = np.arange(64, dtype=np.uint64)
        return np.asarray((words[:, None] >> places & np.uint64(1)).astype(bool).ravel()[:count])

    def below(self, n: int) -> int:
        limit = _MASK - _MASK % n
        while True:
            found = int(self.words(1)[0])
            if found < limit:
                return found % n


def _signs(bits: npt.NDArray[np.bool_]) -> Floats:
    return np.where(bits, 1.0, -1.0)


def _levels(degrees: npt.NDArray[Any]) -> list[int]:
    """How many features have a first factor, a second one, ...; degrees: highest first."""
    most = int(degrees.max(initial=0))
    return [int((degrees >= level).sum()) for level in range(1, most + 1)]


def _hadamard(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Floats:
    """Entries of the Walsh-Hadamard matrix: the parity of the bits that both places share."""
    shared = rows[:, None] & columns[None, :]
    parity = np.zeros_like(shared)
    while shared.any():
        parity ^= shared & 1
        shared >>= 1
    return np.where(parity == 1, -1.0, 1.0)


def _structured(count: int, width: int, random: _Random) -> tuple[Floats, Floats, npt.NDArray[np.int64], int]:
    """The signs of the transforms, the rows that serve as projections, and the length of a transform."""
    least = min(max(count, _SHORTEST), width)
    size = 1 << (least - 1).bit_length()
    transforms = -(-count // size)
    signs = _signs(random.bits(transforms * width)).reshape(transforms, width)
    rows = np.arange(transforms * size)
    for i in range(len(rows), 1, -1):
        other = random.below(i)
        rows[i - 1], rows[other] = rows[other], rows[i - 1]
    rows = rows[:count]
    entries = _hadamard(rows % size, np.arange(width) & (size - 1))
    return signs, entries, rows // size, size


def products_of(map_: Any, coefs: Floats) -> MaclaurinFeatures:
    """A fitted RandomMaclaurin over a dot-product kernel, and the weights of its features, (features, outputs)."""
    drawn = map_.drawn()
    random, width = _Random(drawn.seed), drawn.width
    real_counts, pair_counts = _levels(drawn.degrees), _levels(drawn.pair_degrees)
    real: list[MaclaurinFactor] = []
    pairs: list[MaclaurinFactor] = []
    if map_.structured:
        for count in real_counts:
            signs, entries, which, _ = _structured(count, width, random)
            real.append(MaclaurinFactor((entries * signs[which]).T))
        for count in pair_counts:
            signs, entries, which, _ = _structured(count, width, random)
            imaginary = random.bits(signs.size).reshape(signs.shape)
            whole = entries * signs[which]
            there = imaginary[which]
            pairs.append(MaclaurinFactor(np.where(there, 0.0, whole).T, np.where(there, whole, 0.0).T))
    else:
        total, more = sum(real_counts) * width, sum(pair_counts) * width
        bits = random.bits(total + 2 * more)
        flat = _signs(bits[:total]).reshape(-1, width)
        both = bits[total:].reshape(-1, width, 2)
        values = _signs(both[..., 1])
        start = 0
        for count in real_counts:
            real.append(MaclaurinFactor(flat[start : start + count].T))
            start += count
        start = 0
        for count in pair_counts:
            there, some = both[start : start + count, :, 0], values[start : start + count]
            pairs.append(MaclaurinFactor(np.where(there, 0.0, some).T, np.where(there, some, 0.0).T))
            start += count
    constant, linear = drawn.lead
    return MaclaurinFeatures(
        width,
        float(constant),
        float(linear),
        np.asarray(drawn.weights, dtype=np.float64),
        tuple(real),
        np.asarray(drawn.pair_weights, dtype=np.float64),
        tuple(pairs),
        coefs,
    )
