"""Beyond one machine: fleets of keys over shards, data that live apart, many settings at once; by Ray (`gristmill[ray]`)."""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
