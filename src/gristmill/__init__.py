"""gristmill: kernel learning on a stream, in bounded memory and bounded time per event.

Names are imported when they are first used, so that `import gristmill` and the command line start fast. What is here is
listed in `__init__.pyi`; parts of a family live in their family, such as `gristmill.pairwise.PSDCone`.
"""

from __future__ import annotations

from ._lazy import attach, listed

_NAMES = listed(__file__)
#: modules that need an extra: `gristmill.river` works where it is installed, and `dir(gristmill)` never imports it
_EXTRAS = ("river", "serve")
__all__ = list(_NAMES)
__getattr__ = attach(__name__, {**_NAMES, **dict.fromkeys(_EXTRAS, "")})


def __dir__() -> list[str]:
    return sorted(__all__)
