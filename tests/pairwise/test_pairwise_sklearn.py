"""scikit-learn's own checks on the pairwise estimators."""

from __future__ import annotations

import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from gristmill import DropSmallest, Gaussian, Linear, PairwiseAUC, PairwiseMetric, PairwiseSimilarity, TwoStageMKL
from gristmill.pairwise import OAM, PairwiseLearner

#: f(x) ranks and its zero has no meaning, so `predict` cuts elsewhere
RANKER = {"check_classifiers_train": "predict cuts the scores at threshold_, which the buffer gives, and not at 0"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "exceptions"),
    [
        (PairwiseAUC(), RANKER),
        (PairwiseAUC(Gaussian(0.1), budget=DropSmallest(50)), RANKER),
        (OAM(), RANKER),
        (PairwiseMetric(rate=0.01), {}),
        (PairwiseSimilarity(rate=0.01), {}),
        (PairwiseLearner(), {}),
        (TwoStageMKL([Linear(), Gaussian(0.1)]), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_check_estimator(model, exceptions):
    check_estimator(model, expected_failed_checks=exceptions)


@pytest.mark.parametrize("model", [PairwiseAUC(rate=0.1, random_state=0), OAM(C=0.001, random_state=0)])
def test_in_a_pipeline_scored_by_auc(model):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, y, scoring="roc_auc", cv=3)
    assert scores.min() > 0.98
    accuracy = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3)
    assert accuracy.min() > 0.9


@pytest.mark.parametrize("name", ["PairwiseAUC", "OAM"])
def test_nothing_learned_yet(name):
    model = {"PairwiseAUC": PairwiseAUC, "OAM": OAM}[name]()
    assert model.score_one([1.0]) == 0.0
    assert model.predict_one([1.0]) is None
