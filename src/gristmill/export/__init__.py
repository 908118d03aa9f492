"""Models for elsewhere: ONNX graphs, C99 headers that predict and learn, JSON; and what devices learned, back again.

`_description.py` is the only module that reads models; `onnx/` and `c/` write files from its descriptions. Begin with
`_plain.py`, which says what a description holds. Imported by the command line only.
"""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
