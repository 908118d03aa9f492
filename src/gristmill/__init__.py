"""gristmill: kernel learning on a stream, in bounded memory and bounded time per event.

Names are imported when they are first used, so that `import gristmill` and the command line start fast. What is here is
listed in `__init__.pyi`; parts of a family live in their family, such as `gristmill.pairwise.PSDCone`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from typing import Any

from ._lazy import attach, listed

_NAMES = listed(__file__)
_find = attach(__name__, _NAMES)
__all__ = list(_NAMES)


@functools.cache
def _moved() -> dict[str, str]:
    """Names that stood here before there were families, and their homes: they are still found."""
    found = {"AdditiveDisplay": "additive_display", "Kernel": "kernels", "PythonKernel": "kernels"}
    for family in ("features", "pairwise", "similarity"):
        found |= dict.fromkeys(listed(str(Path(__file__).parent / family / "__init__.py")), family)
    return found


def __getattr__(name: str) -> Any:
    if name in _NAMES or name not in _moved():
        return _find(name)
    return getattr(import_module(f".{_moved()[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
