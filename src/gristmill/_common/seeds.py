"""`random_state` of scikit-learn and NumPy as a generator, or as the seed of a core."""

from __future__ import annotations

import functools
import secrets

import numpy as np

from .._common.types import RandomState


def generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from any `random_state` that scikit-learn or NumPy accepts."""
    whole = isinstance(random_state, int | np.integer) and random_state >= 0
    if random_state is None or whole or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    raise ValueError(f"random_state must be None, an int >= 0, a Generator or a RandomState, got {random_state!r}")


@functools.lru_cache(maxsize=1024)
def _known_seed(random_state: int) -> int:
    return int(generator(random_state).integers(2**63))


def seed_of(random_state: RandomState) -> int:
    """The core's seed; cheap where there is nothing to compute."""
    if random_state is None:
        return secrets.randbits(63)
    return _known_seed(random_state) if type(random_state) is int else int(generator(random_state).integers(2**63))
