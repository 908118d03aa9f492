"""The same stream gives the same model on AVX2, AVX-512 and NEON, bit for bit; an unknown instruction set is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill import _core

HERE = Path(__file__).parent.parent / "support"
KEPT = json.loads((HERE / "isa_digests.json").read_text(encoding="utf-8"))


def run(isa: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GRISTMILL_ISA": isa}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("isa", [name for name in _core.isas() if name != "baseline"])
def test_what_fuses_gives_the_digests_that_are_kept(isa):
    done = run(isa, str(HERE / "isa_digests.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["isa"] == isa
    assert found["digests"] == KEPT


def test_the_widest_is_chosen_when_none_is_asked_for():
    said = run("", "-c", "from gristmill import _core; print(_core.isa())").stdout
    assert said.strip() == _core.isas()[-1]


@pytest.mark.parametrize("isa", ["sse9", "AVX2", "neon" if "neon" not in _core.isas() else "avx2"])
def test_an_unknown_one_is_an_error_that_names_those_there_are(isa):
    done = run(isa, "-c", "from gristmill import _core")
    assert done.returncode == 1
    assert f"ImportError: GRISTMILL_ISA is '{isa}', but this machine has: {', '.join(_core.isas())}" in done.stderr
