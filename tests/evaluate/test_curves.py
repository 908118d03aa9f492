"""Curves of a run: each number stands at its event."""

from __future__ import annotations

import numpy as np

from gristmill import (
    Gaussian,
    perceptron,
)
from gristmill.evaluate import PrequentialDisplay, prequential
from gristmill.streams import two_gaussians

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)


def test_the_curve_of_stored_points_is_that_of_its_events():
    curve = prequential(perceptron(Gaussian(1.0)), two_gaussians(5000), window=500).curve
    model = perceptron(Gaussian(1.0))
    rows, labels = two_gaussians(5000).arrays()
    for entry, start in zip(curve, range(0, 5000, 500), strict=True):
        model.partial_fit(rows[start : start + 500], labels[start : start + 500])
        assert (entry["event"], entry["stored"]) == (start + 500, model.n_support_)


def test_a_short_stream_has_a_point_in_its_picture():
    X = np.random.default_rng(0).normal(size=(50, 2))
    result = prequential(perceptron(Gaussian(1.0)), (X, X[:, 0] > 0))
    assert [line.get_marker() for line in PrequentialDisplay.from_results(result).plot().lines_] == ["None", "o"]
