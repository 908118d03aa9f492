"""gristmill: kernel learning on a stream, in bounded memory and bounded time per event.

Names are imported when they are first used, so that `import gristmill` and the command line start fast. What is here is
listed in `__init__.pyi`; parts of a family live in their family, such as `gristmill.pairwise.PSDCone`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._lazy import attach, listed

_NAMES = listed(__file__)
_find = attach(__name__, _NAMES)
#: where names are that stood here before there were families; they are still found
_FAMILIES = ("features", "pairwise", "similarity", "kernels", "additive_display")

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES or not name[:1].isalpha():
        return _find(name)
    for family in _FAMILIES:
        home = import_module(f".{family}", __name__)
        if name in getattr(home, "__all__", vars(home)):
            return getattr(home, name)
    return _find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
