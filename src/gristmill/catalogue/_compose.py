"""What the functions of the catalogue share."""

from __future__ import annotations

from typing import TypeVar

from ..budgets import Budget, DropOldest, Unbounded, Window
from ..learners.base import KernelLearner

Model = TypeVar("Model", bound=KernelLearner)


def built(model: Model) -> Model:
    """The model, after its composition was checked: estimators check at fit, the catalogue at once."""
    model.checked_parts()
    return model


def truncated(window: int | None, size: int | None) -> Budget:
    """NORMA's own ways to forget: by age in steps, or the oldest stored point."""
    if window is not None and size is not None:
        raise ValueError(f"give window (age in steps) or size (stored points), not both: got {window!r} and {size!r}")
    if window is not None:
        return Window(window)
    return Unbounded() if size is None else DropOldest(size)
