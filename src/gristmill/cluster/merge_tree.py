"""Merge two models: one node of the merge tree."""

from __future__ import annotations

from typing import Any

from ..merging.merge import merge


def merged(size: int | str | None, *models: object) -> Any:
    """The two models merged, weighted by their numbers of events."""
    return merge(list(models), size)
