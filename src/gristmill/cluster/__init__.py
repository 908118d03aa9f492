"""Beyond one machine: keyed fleets over processes, data that stay where they are, many settings, on Ray.

Imports fleets, merging and evaluation. Begin with `cluster.py`; `shards/` holds the durable part.
"""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
