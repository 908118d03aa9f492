"""Random Maclaurin features and other explicit feature maps, learners over them, and their error bounds.

Imports `learners`; `pairwise` uses its maps. Begin with `maclaurin.py`, then `learner.py`.
"""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
