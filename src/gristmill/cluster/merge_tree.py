"""Two models as one: a node of the tree in which parts are merged."""

from __future__ import annotations

from typing import Any

from ..merging.merge import merge


def merged(size: int | str | None, *models: object) -> Any:
    """Weighted by the events that each has seen."""
    return merge(list(models), size)
