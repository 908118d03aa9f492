"""`python -m papers`: the command, its targets that need little or no data, and how a claim is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gristmill.streams import two_gaussians
from papers import TARGETS
from papers.__main__ import main

ROOT = Path(__file__).parent.parent.parent


def call(*arguments):
    return CliRunner().invoke(main, list(arguments))


def test_the_command_runs_from_the_root_of_the_checkout():
    listed = subprocess.run(
        [sys.executable, "-m", "papers", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(TARGETS)


def test_papers_stay_out_of_the_package():
    import gristmill

    assert not hasattr(gristmill, "reproduce")
    assert not (Path(gristmill.__file__).parent / "papers").exists()


def test_a_wrong_name_is_one_line_and_exit_code_2():
    result = call("norma-7")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: there is no target 'norma-7'; did you mean 'norma-")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["norma-2", "ilk-1", "projectron-7"])
def test_targets_that_need_no_data(name, tmp_path):
    result = call(name, "--quick", "--json", "--pictures", str(tmp_path), "--report", str(tmp_path / "r"))
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["claims"]) >= 4
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<img" in (tmp_path / "r").read_text()
    assert call(name, "--quick").stdout.count("\n") > 8


def test_targets_that_need_data(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    missing = call("norma-3")
    assert missing.exit_code == 2
    assert "usps-train.csv is not in the data home" in missing.stderr
    rng = np.random.default_rng(0)
    for file, count in (("usps-train.csv", 400), ("usps-test.csv", 100)):
        images, labels = rng.uniform(-1, 1, size=(count, 256)), rng.integers(10, size=count)
        rows = [
            ",".join([*(f"{value:.2f}" for value in image), str(label)])
            for image, label in zip(images.tolist(), labels, strict=True)
        ]
        (tmp_path / file).write_text(",".join([*(f"p{n}" for n in range(256)), "digit"]) + "\n" + "\n".join(rows))
    shown = call("norma-3", "--quick")
    assert shown.exit_code == 0
    assert "the share of alarms is about nu" in shown.stdout


@pytest.mark.parametrize("name", ["projectron-6", "projectron-8"])
def test_projectron_on_made_up_data(name, tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    X, y = two_gaussians(400).arrays()
    lines = [f"{label} 1:{a:.4f} 2:{b:.4f}" for (a, b), label in zip(X.tolist(), y, strict=True)]
    for file in ("a9a.libsvm", "ijcnn1.libsvm"):
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    found = json.loads(call(name, "--quick", "--json", "--pictures", str(tmp_path)).stdout)
    assert any("Forgetron" in claim["says"] for claim in found["claims"])
    assert (tmp_path / f"{name}.png").exists()
