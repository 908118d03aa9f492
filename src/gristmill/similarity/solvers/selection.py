"""Which objects become landmarks: at random, or diverse ones by a greedy choice (DSELECT)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compare import Positions, TrainingBlock

_GATHER = {"mean": np.add, "min": np.minimum, "max": np.maximum}


def random_landmarks(size: int, count: int, rng: np.random.Generator) -> Positions:
    """`count` distinct positions out of `size`, in ascending order."""
    return np.sort(rng.choice(size, size=count, replace=False)).astype(np.int64)


def diverse_landmarks(
    block: TrainingBlock, candidates: object, count: int, rng: np.random.Generator, mode: str = "mean"
) -> Positions:
    """DSELECT: a random first landmark, then always the candidate least similar to those already chosen.

    Parameters
    ----------
    block : the training objects and their similarities, asked one column at a time
    candidates : positions that may be chosen (T in the thesis)
    count : how many to choose (d); at most as many as there are candidates
    mode : {"mean", "min", "max"}
        What is made least over the candidates: the mean similarity to the chosen set (which is what
        diversity means there), the lowest one (as printed, which can choose near copies), or the highest one
        (farthest first).

    Returns
    -------
    positions in the order they were chosen; ties go to the lowest position.

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, Algorithm 3.
    """
    left = np.unique(np.asarray(candidates, dtype=np.int64))
    if not 1 <= count <= len(left):
        raise ValueError(f"count must be between 1 and the number of candidates, {len(left)}, got {count}")
    gather = _GATHER[mode]
    chosen = [int(left[rng.integers(len(left))])]
    closeness: npt.NDArray[np.float64] | None = None
    while len(chosen) < count:
        newest = block.columns(chosen[-1:])[:, 0]
        closeness = newest.copy() if closeness is None else gather(closeness, newest)
        left = left[left != chosen[-1]]
        chosen.append(int(left[np.argmin(closeness[left])]))
    return np.array(chosen, dtype=np.int64)


def choose(
    block: TrainingBlock, selection: object, count: int, rng: np.random.Generator, codes: Any = None
) -> Positions:
    """Positions of the landmarks, ascending. With class codes, diverse landmarks are chosen class by class.

    As many from each class as fit, floor(count / classes) and at least one, so that no class is without.
    """
    size = block.size
    if isinstance(selection, str) and selection == "random":
        return random_landmarks(size, min(count, size), rng)
    if isinstance(selection, str) and selection == "diverse":
        if codes is None:
            return np.sort(diverse_landmarks(block, np.arange(size), min(count, size), rng))
        labels, counts = np.unique(codes, return_counts=True)
        share = max(1, count // len(labels))
        parts = [
            diverse_landmarks(block, np.flatnonzero(codes == label), min(share, int(members)), rng)
            for label, members in zip(labels, counts, strict=True)
        ]
        return np.sort(np.concatenate(parts))
    return _given(selection, size)


_SAYS = "selection must be 'random', 'diverse' or distinct positions in the training set"


def check_selection(selection: Any) -> None:
    """Refuse what is no choice of landmarks, whatever the training set."""
    given = not isinstance(selection, str) and np.ndim(selection) == 1 and np.asarray(selection).dtype.kind in "iu"
    if not given and not (isinstance(selection, str) and selection in ("random", "diverse")):
        raise ValueError(f"{_SAYS}, got {selection!r}")


def _given(selection: object, size: int) -> Positions:
    check_selection(selection)
    says, positions = _SAYS, np.asarray(selection)
    if positions.ndim != 1 or positions.size == 0 or not np.issubdtype(positions.dtype, np.integer):
        raise ValueError(f"{says}, got {selection!r}")
    if positions.min() < 0 or positions.max() >= size:
        raise ValueError(f"{says}: {positions.min()} to {positions.max()} were given for {size} objects")
    if len(np.unique(positions)) != len(positions):
        raise ValueError(f"{says}: {selection!r} holds one twice")
    return np.sort(positions.astype(np.int64))
