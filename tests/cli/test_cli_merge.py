"""`gristmill merge`: one file of several models that learned apart."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill import Gaussian, KeyedFleet, Prepared, passive_aggressive
from gristmill.cli import main


def call(*arguments, code=0):
    done = CliRunner().invoke(main, ["merge", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def saved(tmp_path):
    """Two models of halves of one stream, as two processes of a group save them, with their positions."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    paths = []
    for part in (0, 1):
        model = Prepared(passive_aggressive(Gaussian(1.0), size=40)).fit(X[part::2], y[part::2])
        model.stream_positions_ = {"kafka://h/t": {"position": {str(part): 200}, "events": 200}}
        paths.append(tmp_path / f"{part}.safetensors")
        model.save(paths[-1])
    return [*paths, X, y]


def test_the_merged_file_is_the_merged_model(saved, tmp_path):
    first, second, X, y = saved
    out = tmp_path / "both.safetensors"
    assert "400 events of 2 models" in call(first, second, "--model", out).stdout
    model = gristmill.load(out)
    expected = gristmill.merge([gristmill.load(first), gristmill.load(second)])
    assert model.decision_function(X).tolist() == expected.decision_function(X).tolist()
    assert (model.predict(X) == y).mean() > 0.85
    assert not hasattr(model, "stream_positions_")  # those of one model would let the other's events be learned again
    small = tmp_path / "small.safetensors"
    call(first, second, "--model", small, "--size", "10", "--weights", "1,2")
    assert gristmill.load(small).n_support_ == 10


def test_a_wrong_merge_is_refused_and_writes_nothing(saved, tmp_path):
    first, second, X, y = saved
    out = tmp_path / "both.safetensors"
    fleet = tmp_path / "fleet.safetensors"
    keyed = KeyedFleet(passive_aggressive(Gaussian(1.0), size=10))
    keyed.partial_fit(["a", "b"] * 200, X, y)
    keyed.save(fleet)
    assert "at least two models" in call(first, "--model", out, code=2).output
    assert "write n_seen, or numbers" in call(first, second, "--model", out, "--weights", "1,x", code=2).output
    assert (
        "weights must be 2 finite numbers" in call(first, second, "--model", out, "--weights", "1,2,3", code=2).output
    )
    assert "models must be of one kind" in call(first, fleet, "--model", out, code=2).output
    assert "KeyedFleet" in call(fleet, fleet, "--model", out, code=2).output
    assert "no folder" in call(first, second, "--model", tmp_path / "none" / "m", code=2).output
    assert not out.exists()
    before = first.read_bytes()
    assert "--force replaces it" in call(first, second, "--model", first, code=2).output
    assert first.read_bytes() == before
    call(first, second, "--model", first, "--force")
    assert gristmill.load(first).n_seen_ == 400
