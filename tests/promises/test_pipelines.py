"""Learners in scikit-learn's pipelines: cross-validation, importances, calibration, displays."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import DecisionBoundaryDisplay, PartialDependenceDisplay, permutation_importance
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gristmill import AutoClassifier, KernelClassifier, Prepared

mpl.use("agg")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2)) * [1.0, 100.0]
Y = (X[:, 0] > 0).astype(int)
MAKE = {
    "kernel": lambda: make_pipeline(StandardScaler(), KernelClassifier(random_state=0)),
    "auto": lambda: make_pipeline(StandardScaler(), AutoClassifier()),
    "prepared": lambda: Prepared(KernelClassifier(random_state=0)),
}


@pytest.mark.parametrize("make", MAKE)
def test_cross_validation(make):
    assert cross_val_score(MAKE[make](), X, Y, cv=3).mean() > 0.8


@pytest.mark.parametrize("make", MAKE)
def test_importances(make):
    found = permutation_importance(MAKE[make]().fit(X, Y), X, Y, n_repeats=3, random_state=0).importances_mean
    assert found[0] > 0.2 > found[1]


@pytest.mark.parametrize("make", MAKE)
def test_calibration(make):
    model = CalibratedClassifierCV(MAKE[make](), cv=2).fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("make", MAKE)
def test_displays(make):
    model = MAKE[make]().fit(X, Y)
    boundary = DecisionBoundaryDisplay.from_estimator(model, X, grid_resolution=10)
    assert boundary.response.shape == (10, 10)
    dependence = PartialDependenceDisplay.from_estimator(model, X, [0], grid_resolution=5)
    assert dependence.pd_results[0]["average"].shape == (1, 5)
