"""Figures 2 and 3 of ILK and SILK, on a small clip made here."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from papers import ilk_video
from papers.__main__ import main


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Seventy frames of a noisy scene; a bright square comes in near the end."""
    rng = np.random.default_rng(0)
    scene = rng.integers(40, 160, size=(48, 64, 3))
    frames = np.clip(scene + rng.integers(-6, 7, size=(70, 48, 64, 3)), 0, 255).astype(np.uint8)
    truth = np.zeros((48, 64), dtype=np.uint8)
    truth[12:36, 20:44] = 1
    frames[60:, 12:36, 20:44] = 250
    np.savez(tmp_path / ilk_video.FILE, frames=frames, truth=truth, truth_frame=62)
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    return tmp_path


def test_curves_of_two_lights(home):
    result = CliRunner().invoke(main, ["ilk-2", "--quick", "--json", "--pictures", str(home)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert len(found["tables"]) == 2
    steady = {row[0]: float(row[1]) for row in found["tables"][0]["rows"]}
    assert steady["SILK"] > 0.95
    assert (home / "ilk-2.png").read_bytes().startswith(b"\x89PNG")


def test_masks_are_scored_where_nothing_was_chosen(home):
    clip = ilk_video.load()
    assert clip.empty.stop < 60 <= clip.at
    frames, truths = ilk_video.pasted(clip, 0)
    assert len(frames) == clip.empty.stop
    assert all(at in clip.empty and truth.any() for at, truth in truths.items())
    masks, seconds, threshold = ilk_video._ours("SILK", {"gamma": 20.0, "C": 0.1, "reg": 0.005}, clip, 0)
    assert ilk_video.f1(ilk_video.smooth(masks[clip.at], ilk_video.MEDIAN) > 0, clip.truth) > 0.9
    assert seconds > 0
    assert -1 <= threshold < 0
    assert np.mean([(ilk_video.smooth(masks[at], ilk_video.MEDIAN) > 0).mean() for at in clip.empty]) < 0.02
    masks = {line: masks for line in ("SILK", "MOG2")}
    assert ilk_video._animation(clip, masks, True).startswith(b"GIF8")


def test_a_clip_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    result = CliRunner().invoke(main, ["ilk-2"])
    assert result.exit_code == 2
    assert "waving-trees.npz is not in the data home" in result.stderr
