"""Herbster's projection algorithms against their twins."""

from __future__ import annotations

import pytest
from twin_cases import (
    beside_the_twin,
    compositions,
)


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions("herbster")))
def test_the_core_is_the_twin(task, rule, budget, kind):
    beside_the_twin(task, rule, budget, kind)
