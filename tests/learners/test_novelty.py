"""Novelty detectors: alarms come by the data and not by the clock."""

from __future__ import annotations

import numpy as np

from gristmill import (
    Gaussian,
    Prepared,
    norma_novelty,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)


def test_alarms_come_by_the_data_and_not_by_the_clock():
    caught = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(6000, 4))
        strange = rng.choice(np.arange(3000, 6000), 5, replace=False)
        rows[strange, 0] += 8
        detector = Prepared(norma_novelty(Gaussian(0.05), nu=0.01, rate=0.001, size=200))
        caught += (detector.prequential(rows) < 0)[strange].sum()
    assert caught >= 18
