"""What all pictures share: the colours of the library's displays, and bare axes."""

from __future__ import annotations

from typing import Any

from gristmill.evaluate.displays.runs import COLOURS, pyplot, sheet

__all__ = ["COLOURS", "pyplot", "sheet", "tidy"]


def tidy(ax: Any) -> None:
    """No frame above and to the right, and a pale grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)
