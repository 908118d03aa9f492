"""The examples of examples/export: a graph in onnxruntime, and a pump that learns on its device."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from .cases import relative
from .test_c import COMPILERS, STRICT

FOLDER = Path(__file__).parent.parent.parent / "examples" / "export"


def test_a_graph_in_another_runtime(capsys):
    runpy.run_path(str(FOLDER / "onnx_runtime.py"), run_name="__main__")
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert float(lines["right in onnxruntime"]) > 0.9
    assert float(lines["same label as gristmill"]) >= 0.999
    assert lines["columns"] == '["size", "hue"]'


def test_a_pump_that_learns_on_its_device(tmp_path):
    subprocess.run([sys.executable, str(FOLDER / "pump.py"), str(tmp_path / "pump.h")], check=True, capture_output=True)
    shutil.copy(FOLDER / "pump.c", tmp_path)
    compiler = [COMPILERS[-1], *STRICT, str(tmp_path / "pump.c"), "-o", str(tmp_path / "pump"), "-lm"]
    subprocess.run(compiler, check=True)
    pump = runpy.run_path(str(FOLDER / "pump.py"))
    X = pump["readings"](20_000, seed=1, level=1.3)  # another pump than the one that the detector began with
    starts = np.arange(6_000, 20_000, 2_000)
    faulty = np.isin(np.arange(len(X)), (starts[:, None] + np.arange(20)).ravel())
    X[faulty, 2] += 3.0  # knocks
    text = "\n".join(" ".join(map(repr, row)) for row in X.tolist())
    done = subprocess.run(
        [str(tmp_path / "pump"), str(tmp_path / "state")], input=text, capture_output=True, text=True, check=True
    )
    alarms = np.isin(np.arange(len(X)), [int(line) for line in done.stdout.split()])
    assert all(alarms[start : start + 20].any() for start in starts)
    later = np.arange(len(X)) >= 3_000  # it had to learn the level of this pump first
    assert (alarms & ~faulty)[later].mean() < 0.03
    model = pump["after"]((tmp_path / "state").read_bytes())
    assert model.n_seen_ == 3600 + 20_000
    ours = pump["detector"]().partial_fit(X)
    assert relative(model.score_samples(X[-100:]), ours.score_samples(X[-100:])) < 1e-3
