"""Learning from pairs of events on a stream, with a finite buffer.

AUC, metrics, similarities and kernel mixtures are losses of two events, and a stream cannot keep all
pairs. Each new event meets the points of a buffer, which is kept as a sample of the past; one step follows;
the event is offered to the buffer. P. Kar, Topics in Resource-efficient Kernel Learning, 2013, chapter 6.
"""

from __future__ import annotations

from .._lazy import attach, listed

_NAMES = listed(__file__)
__getattr__ = attach(__name__, _NAMES)
__all__ = list(_NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
