"""Pictures of predictions: they show the values that the model returned."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest

from gristmill import Gaussian, KernelClassifier, KernelNovelty, KernelRegressor, Perceptron
from gristmill.evaluate import ExplanationDisplay, IntervalDisplay, ReliabilityDisplay

mpl.use("Agg")


def widths(display):
    return [bar.get_width() for bar in display.bars_]


def labels(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


@pytest.fixture(scope="module")
def stream():
    X = np.random.default_rng(0).normal(size=(600, 3))
    return X, np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])


def test_bars_of_points_add_up_to_the_score(stream):
    X, y = stream
    model = KernelClassifier(Gaussian(0.5), Perceptron()).fit(X, y)
    display = ExplanationDisplay.from_estimator(model, X[0], top=5)
    for output in range(3):
        display.plot(output=output)
        assert len(widths(display)) == 7
        assert math.fsum(widths(display)) == pytest.approx(model.decision_function(X[:1])[0, output], abs=1e-12)
    winner = math.fsum(widths(display.plot()))
    assert winner == pytest.approx(model.decision_function(X[:1]).max(), abs=1e-12)
    assert labels(display)[0].startswith(f"event {display.explanation.ids[0]} ({display.explanation.labels[0]}), k = ")


def test_bars_of_strange_columns(stream):
    X, _ = stream
    model = KernelNovelty(Gaussian(0.5)).fit(X)
    display = ExplanationDisplay.from_estimator(model, [0.0, 9.0, 0.0], names=["heat", "noise", "speed"])
    assert labels(display.plot(columns=True))[0] == "noise"
    assert widths(display) == sorted(display.explanation.columns.tolist(), reverse=True)
    with pytest.raises(ValueError, match="novelty"):
        ExplanationDisplay.from_estimator(KernelRegressor().fit(X, X[:, 0]), X[0]).plot(columns=True)


def test_reliability_is_that_of_its_bins():
    sure = np.array([0.55, 0.58, 0.95, 0.99, 1.0])
    right = np.array([True, False, True, True, True])
    display = ReliabilityDisplay(sure, right, n_bins=10).plot()
    assert display.calibration_error_ == pytest.approx((abs(0.55 + 0.58 - 1) + abs(0.95 + 0.99 + 1.0 - 3)) / 5)
    assert display.line_.get_ydata().tolist() == [0.5, 1.0]
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    found = ReliabilityDisplay.from_predictions(["a", "b"], shares, ["a", "b", "c"])
    assert found.sure.tolist() == [0.7, 0.8]
    assert found.right.tolist() == [True, False]


def test_intervals_over_a_stream():
    X = np.linspace(0, 20, 1500)[:, None]
    y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=1500)
    display = IntervalDisplay.from_estimator(KernelRegressor(Gaussian(2.0)), X, y, 0.9).plot(last=400)
    assert len(display.missed_.get_xdata()) == (~display.covered_[-400:]).sum()
    assert abs(display.covered_.mean() - 0.9) < 0.01
    assert IntervalDisplay(y[:3], [[-np.inf, np.inf], [0, 1], [0, 1]], 0.9).plot().band_ is not None
