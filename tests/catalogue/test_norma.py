"""NORMA with projection, and SVMD, against their twins."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from twin_cases import (
    beside_the_twin,
    compositions,
)

from gristmill import Gaussian, norma_novelty


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions("norma")))
def test_the_core_is_the_twin(task, rule, budget, kind):
    beside_the_twin(task, rule, budget, kind)


@pytest.mark.parametrize("seed", range(3))
def test_a_constant_rate_far_above_nu_alarms_by_the_clock_and_a_decaying_one_does_not(seed):
    """rate * reg = 5 nu: after 1 / nu events a coefficient has faded to (1 - rate)^(1 / nu) = 0.005 of itself."""
    X = np.random.default_rng(seed).normal(size=(6000, 2))
    alarms = {}
    for schedule in ("constant", "inv_sqrt"):
        model = norma_novelty(Gaussian(0.5), nu=0.02, rate=0.1, schedule=schedule)
        alarms[schedule] = np.flatnonzero(model.prequential(X) < 0)[-40:]
        if schedule == "inv_sqrt":
            assert model.margin_ > 1e-4
    assert set(np.diff(alarms["constant"])) == {50}  # 1 / nu, whatever the data are
    assert len(set(np.diff(alarms["inv_sqrt"]))) > 10


def test_no_page_leaves_the_margin_at_zero():
    """Where a page or docstring gives nu and a constant rate, nine tenths of a coefficient are left after 1 / nu events."""
    root = Path(__file__).parents[2]
    folders = [(root / "docs", "*.md"), (root / "src", "*.py"), (root / "examples", "*.py")]
    files = [root / "README.md", *(file for folder, kind in folders for file in folder.rglob(kind))]
    call = r"norma_novelty\(([^()]*(?:\([^()]*\))?[^()]*)\)"
    found = [text for file in files for text in re.findall(call, file.read_text("utf-8"))]
    checked = 0
    for text in found:
        numbers = dict(re.findall(r"(nu|rate|reg)=([\d.]+)", text))
        checked += {"nu", "rate"} <= set(numbers)
        if {"nu", "rate"} <= set(numbers) and "inv_sqrt" not in text:
            kept = 1 - float(numbers["rate"]) * float(numbers.get("reg", 1.0))
            assert kept ** (1 / float(numbers["nu"])) >= 0.9, text
    assert checked >= 5
