"""A loaded model goes on exactly as the saved one; the scores of every learner have the recorded digests."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import catalogue
from tests.saved import models, write

DIGESTS = json.loads((write.HERE / "digests.json").read_text())
LEARNERS = {**models.IN_CORE, **models.catalogue_learners()}


@pytest.mark.parametrize("name", write.ALL)
def test_a_saved_model_predicts_and_learns_as_before(name, tmp_path):
    model, kind = write.fitted(name)
    model.save(tmp_path / "model")
    again = gristmill.load(tmp_path / "model")
    X, y = models.stream(kind, write.LEARNED + write.THEN)
    rows, rest = X[: write.SHOWN], slice(write.LEARNED, None)
    np.testing.assert_array_equal(models.answers(again, rows), models.answers(model, rows))
    if name not in models.BATCH:
        y = None if y is None else y[rest]
        np.testing.assert_array_equal(models.learn(again, X[rest], y, kind), models.learn(model, X[rest], y, kind))
        np.testing.assert_array_equal(models.answers(again, rows), models.answers(model, rows))


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
