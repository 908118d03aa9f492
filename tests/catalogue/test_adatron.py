"""The Adatron against its twin, in one pass and in several."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from oracle import Twin
from twin_cases import (
    KERNEL,
    STREAMS,
    beside_the_twin,
    compositions,
    same,
    stream,
)

from gristmill import (
    Adatron,
    KernelClassifier,
    Linear,
    Unbounded,
)


@pytest.mark.parametrize(("task", "rule", "budget", "kind"), list(compositions("adatron")))
def test_the_core_is_the_twin(task, rule, budget, kind):
    beside_the_twin(task, rule, budget, kind)


@pytest.mark.parametrize("kind", STREAMS)
def test_several_passes_of_the_adatron(kind):
    X, y = stream(kind, "binary", 40)
    kernel, rule = Linear() if kind == "degenerate" else KERNEL, Adatron(0.8, 2.0, passes=4)
    model, twin = KernelClassifier(kernel, rule, Unbounded()).fit(X, y), Twin(kernel, rule)
    for p in range(4):
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            twin.step(x, label, index=None if p == 0 else t)
    same(model, twin, "after four passes")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
