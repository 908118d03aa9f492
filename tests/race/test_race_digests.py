"""Races and `Prepared` predict what they predicted before the race moved into the core, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill import _core

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import race_digests  # noqa: E402

RECORDED = json.loads((HERE / "race_digests.json").read_text())
#: the narrowest instruction set has no fused multiply-add, and other last bits
FUSED = [name for name in _core.isas() if name != "baseline"]


def test_every_case_is_recorded() -> None:
    assert list(RECORDED) == list(race_digests.CASES)


@pytest.mark.parametrize("isa", FUSED)
def test_scores_are_those_recorded(isa: str) -> None:
    program = [sys.executable, str(HERE / "race_digests.py")]
    found = subprocess.run(
        program, env={**os.environ, "GRISTMILL_ISA": isa}, capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout) == RECORDED
