"""The threshold for stated costs or F1, and average precision, compared with a direct search and with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from gristmill import AutoClassifier, AutoNovelty
from gristmill.evaluate import prequential, threshold

RNG = np.random.default_rng(0)
Y = (RNG.random(400) < 0.1).astype(int)
SCORES = (RNG.normal(size=400) + 1.5 * Y).round(1)  # some are equal


def cost_of(cut, cost):
    found = cut <= SCORES
    return (cost[0] * (found & (Y == 0)).sum() + cost[1] * (~found & (Y == 1)).sum()) / len(Y)


@pytest.mark.parametrize("cost", [(1, 1), (1, 10), (10, 1), (0, 1), (1, 0)])
def test_no_other_cut_costs_less(cost):
    found = threshold(SCORES, Y, cost=cost)
    cuts = np.concatenate([np.unique(SCORES), [SCORES.max() + 1]])
    assert found.value == pytest.approx(min(cost_of(cut, cost) for cut in cuts))
    assert found.value == pytest.approx(cost_of(found.cut, cost))
    assert found.at_zero == pytest.approx(cost_of(0.0, cost))


def test_no_other_cut_has_a_larger_f1():
    found = threshold(SCORES, Y)
    best = max(f1_score(Y, cut <= SCORES) for cut in np.unique(SCORES))
    assert found.value == pytest.approx(best)
    assert f1_score(Y, found.cut <= SCORES) == pytest.approx(best)


def test_names_and_predictions():
    X, names = RNG.normal(size=(600, 3)), np.array(["fine", "fraud"])
    y = names[(X[:, 0] + RNG.normal(size=600) > 2).astype(int)]
    model = AutoClassifier()
    found = threshold(model.prequential(X, y), y, cost=(1, 20))
    assert found.cut < 0
    assert (found.predict(model, X) == "fraud").sum() > (model.predict(X) == "fraud").sum()


@pytest.mark.parametrize(
    ("scores", "y", "cost", "message"),
    [
        ([0.1, 0.2], [0, 0], None, "two classes, got 1"),
        ([0.1, 0.2], [0], None, "one label an event"),
        ([[0.1, 0.2, 0.3]], [0], None, "one number"),
        ([0.1, np.nan], [0, 1], None, "score 1 is not finite"),
        ([0.1, 0.2], [0, 1], (0, 0), "cost must be two numbers"),
        ([0.1, 0.2], [0, 1], (1, -1), "cost must be two numbers"),
        ([0.1, 0.2], [0, 1], 3, "cost must be two numbers"),
    ],
)
def test_what_does_not_fit_is_refused(scores, y, cost, message):
    with pytest.raises(ValueError, match=message):
        threshold(scores, y, cost=cost)


def test_average_precision_is_that_of_scikit_learn():
    X = RNG.normal(size=(900, 3))
    y = (X[:, 0] + RNG.normal(size=900) > 1.5).astype(int)
    scores = AutoClassifier().prequential(X, y)
    found = prequential(AutoClassifier(), (X, y), metrics=["average_precision"]).metrics["average_precision"]
    assert found == pytest.approx(average_precision_score(y, scores), abs=2e-3)


def test_average_precision_of_anomalies():
    X = RNG.normal(size=(900, 3))
    strange = RNG.random(900) < 0.05
    X[strange] += 4
    y = np.where(strange, -1, 1)
    found = prequential(AutoNovelty(), (X, y), metrics=["average_precision"]).metrics["average_precision"]
    assert found == pytest.approx(average_precision_score(strange, -AutoNovelty().prequential(X)), abs=2e-3)
