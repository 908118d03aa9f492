"""What a fitted learner holds, compared bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def state(model: Any) -> dict[str, Any]:
    """The arrays of its core, but for seeds, which differ where none was given."""
    found = {name: np.asarray(value) for name, value in model._engine.state().items()}
    return {name: value for name, value in found.items() if not name.endswith("random_seed")}


def same(one: Any, other: Any) -> bool:
    """Whether two learners hold the same numbers."""
    mine, its = state(one), state(other)
    return mine.keys() == its.keys() and all(np.array_equal(mine[name], its[name]) for name in mine)
