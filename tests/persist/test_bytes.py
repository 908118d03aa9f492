"""Models as bytes: what `save` writes, for every estimator; a name that is written lasts."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest

import gristmill
from gristmill import (
    Fleet,
    Gaussian,
    KeyedFleet,
    ModelFileError,
    _core,
    norma_novelty,
    persist,
)
from tests.saved import models, write

RNG = np.random.default_rng(0)
KEYS, X = RNG.integers(0, 30, size=400), RNG.normal(size=(400, 3))


def races():
    """Fitted races, which `tests/saved` does not have."""
    y = X[:, 0] * X[:, 1]
    return {
        "AutoClassifier": gristmill.AutoClassifier(random_state=0).fit(X, y > 0),
        "AutoRegressor": gristmill.AutoRegressor(random_state=0).fit(X, y),
        "AutoNovelty": gristmill.AutoNovelty(random_state=0).fit(X),
        "RaceClassifier": gristmill.Race([gristmill.KernelClassifier(Gaussian(g)) for g in (0.1, 1.0)]).fit(X, y > 0),
        "RaceRegressor": gristmill.Race([gristmill.KernelRegressor(Gaussian(g)) for g in (0.1, 1.0)]).fit(X, y),
    }


def fleets(tmp_path):
    novelty = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=5)
    frames = X.reshape(40, 10, 3)
    return {
        "Fleet": (Fleet(novelty, n=10).partial_fit(frames), lambda f: f.decision_function(frames[0])),
        "KeyedFleet": (KeyedFleet(novelty).partial_fit(KEYS, X), lambda f: f.decision_function(KEYS, X)),
        "KeyedFleet on disk": (
            KeyedFleet(novelty, max_keys=4, spill=str(tmp_path / "spill.db")).partial_fit(KEYS, X),
            lambda f: f.decision_function(KEYS, X),
        ),
        "KeyedFleet of texts": (
            KeyedFleet(novelty).partial_fit([f"device {key}" for key in KEYS], X),
            lambda f: f.decision_function([f"device {key}" for key in KEYS], X),
        ),
    }


def test_every_estimator_is_tried():
    files = {type(prototype).__name__ for prototype, _ in write.ALL.values()}
    assert set(persist.ESTIMATORS) - files == {"Fleet", "KeyedFleet", *races()}


def text_of(data: bytes) -> str:
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header["__metadata__"]["gristmill"]


@pytest.mark.parametrize("name", write.ALL)
def test_bytes_are_what_save_writes_and_come_back(name, tmp_path):
    model, kind = write.fitted(name)
    data = model.to_bytes()
    model.save(tmp_path / "model")
    assert data == (tmp_path / "model").read_bytes()
    assert json.loads(text_of(data))["isa"] == _core.isa()
    rows, _ = models.stream(kind, write.SHOWN)
    again = gristmill.from_bytes(data)
    assert type(again) is type(model)
    np.testing.assert_array_equal(models.answers(again, rows), models.answers(model, rows))
    assert again.to_bytes() == data


def test_races_come_back_from_bytes():
    for name, model in races().items():
        assert json.loads(text_of(model.to_bytes()))["class"] == name
        again = gristmill.from_bytes(model.to_bytes())
        np.testing.assert_array_equal(again.decision_function(X[:20]), model.decision_function(X[:20]))


@pytest.mark.parametrize("name", ["Fleet", "KeyedFleet", "KeyedFleet on disk", "KeyedFleet of texts"])
def test_fleets_come_back_from_bytes(name, tmp_path):
    fleet, answers = fleets(tmp_path)[name]
    data = fleet.to_bytes()
    np.testing.assert_array_equal(answers(gristmill.from_bytes(data)), answers(fleet))
    np.testing.assert_array_equal(answers(gristmill.from_bytes(memoryview(data))), answers(fleet))


def test_bytes_that_are_no_model_are_refused():
    data = gristmill.KernelNovelty().fit(X).to_bytes()
    with pytest.raises(ModelFileError, match=r"^these 0 bytes are not a model that gristmill can read"):
        gristmill.from_bytes(b"")
    with pytest.raises(ModelFileError, match=f"^these {len(data) - 1} bytes are not a model"):
        gristmill.from_bytes(data[:-1])
    with pytest.raises(ModelFileError, match="checksum is wrong"):
        gristmill.from_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(TypeError, match="from_bytes takes bytes, as to_bytes gives them, got str"):
        gristmill.from_bytes("model")


def test_save_syncs_the_file_and_then_its_directory(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def watched(handle):
        mode = os.fstat(handle).st_mode
        synced.append("directory" if stat.S_ISDIR(mode) else "file")
        if synced[-1] == "directory":
            assert os.listdir(tmp_path) == ["model"], "the new name is there before the directory is synced"
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    gristmill.KernelNovelty().fit(X).save(tmp_path / "model")
    assert synced == ["file", "directory"]
