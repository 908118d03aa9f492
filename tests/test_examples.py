"""Every example runs, is short, and ends in numbers."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert any(letter.isdigit() for letter in said)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40


def test_monitoring_notices_the_faults(capsys):
    runpy.run_path(str(EXAMPLES[0].parent / "monitor_machine.py"), run_name="__main__")
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    noticed, all_faults = map(int, lines["faults noticed"].split(" of "))
    assert noticed >= 0.8 * all_faults
    assert float(lines["false alarms"].split("%")[0]) < 2.0


def test_parts_of_the_additive_example_are_those_it_was_made_of(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES[0].parent / "additive_regressor.py"), run_name="__main__")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("swing"))
    swing = {word.split()[0]: float(word.split()[1]) for word in line.split(": ")[1].split(", ")}
    assert swing["nothing"] < 0.2 < swing["wind"] < swing["hour"]
    assert (tmp_path / "additive_regressor.png").read_bytes().startswith(b"\x89PNG")
