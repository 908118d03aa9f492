"""Learning with similarities that need not be kernels: any function of two objects, through landmarks.

A similarity compares two objects; a landmark is an object that all others are compared with; a predictor is
linear in the similarities to the landmarks. Nothing asks the similarity to be positive definite or even
symmetric, and nothing ever needs the matrix of all pairs.
"""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
