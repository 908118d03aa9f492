"""Files that earlier versions wrote still load, answer and go on learning; no score of any learner has moved by a bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import catalogue, persist
from tests.saved import models, write

FOLDERS = sorted(path for path in write.HERE.glob("format*") if path.is_dir())
SAID = {
    f"{folder.name}/{name}": said
    for folder in FOLDERS
    for name, said in json.loads((folder / "said.json").read_text()).items()
}
DIGESTS = json.loads((write.HERE / "digests.json").read_text())
LEARNERS = {**models.IN_CORE, **models.catalogue_learners()}


def close(found, wanted):
    np.testing.assert_allclose(found, np.array(wanted), rtol=1e-12, atol=1e-12)


#: they came after format 1, whose files are kept here
SINCE_FORMAT_2 = {
    "AutoClassifier",
    "AutoNovelty",
    "AutoRegressor",
    "CentredFleet",
    "Fleet",
    "KeyedFleet",
    "RaceClassifier",
    "RaceRegressor",
}


def test_every_estimator_has_a_file():
    written = {_class_in(path) for folder in FOLDERS for path in folder.glob("*.safetensors")}
    assert set(persist.ESTIMATORS) - SINCE_FORMAT_2 <= written, (
        "add it to tests/saved/models.py and run tests/saved/write.py"
    )


def _class_in(path: Path) -> str:
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["gristmill"])["class"]


# A kernelised AUC learner of format 1 handed over what any budget dropped; now only Merge folds, so it goes on otherwise.
GOES_ON_OTHERWISE = {"format1/auc-kernel", "format1/auc-kernel-random"}


@pytest.mark.parametrize("name", SAID)
def test_a_saved_model_loads_answers_and_goes_on(name):
    said = SAID[name]
    model = gristmill.load(write.HERE / f"{name}.safetensors")
    X, y = models.stream(said["kind"], write.LEARNED + write.THEN)
    close(models.answers(model, X[: write.SHOWN]), said["answers"])
    if "scores" in said and name not in GOES_ON_OTHERWISE:
        rest = slice(write.LEARNED, None)
        close(models.learn(model, X[rest], None if y is None else y[rest], said["kind"]), said["scores"])
        close(models.answers(model, X[: write.SHOWN]), said["later"])


@pytest.mark.parametrize("name", SAID)
def test_a_saved_model_saved_again_is_the_same(name, tmp_path):
    X, _ = models.stream(SAID[name]["kind"], write.SHOWN)
    model = gristmill.load(write.HERE / f"{name}.safetensors")
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(models.answers(gristmill.load(tmp_path / "again"), X), models.answers(model, X))


def test_every_algorithm_has_a_digest():
    assert {f"catalogue-{name}" for name in catalogue.__all__} <= set(DIGESTS["fused"])
    assert set(DIGESTS["fused"]) == set(DIGESTS["baseline"]) == set(LEARNERS)


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_are_the_same_to_the_last_bit(name):
    model, kind = LEARNERS[name]
    X, y = models.stream(kind, 300)
    assert models.digest(models.learn(clone(model), X, y, kind)) == DIGESTS[write.family()][name]


@pytest.mark.parametrize("isa", ["avx512", "avx2", "baseline"])
def test_the_digests_hold_on_every_instruction_set(isa):
    """Machines that fuse multiply and add agree bit for bit; one without is another family."""
    command = [sys.executable, write.__file__, "--show"]
    shown = json.loads(subprocess.check_output(command, env={**os.environ, "GRISTMILL_ISA": isa}))
    assert shown["isa"] in (isa, "baseline")
    wanted = DIGESTS["baseline" if shown["isa"] == "baseline" else "fused"]
    assert {name for name, found in shown["digests"].items() if found != wanted[name]} == set()
