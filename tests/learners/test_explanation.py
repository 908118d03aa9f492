"""An explanation adds up to the score exactly, over every hypothesis with stored points."""

from __future__ import annotations

import math

import numpy as np
import public_learners
import pytest
from scipy.sparse import csr_array

import gristmill
from gristmill import Gaussian, KernelClassifier, KernelNovelty, KernelRegressor, Prepared, norma_novelty
from gristmill.features import FeatureClassifier
from tests.learners.test_probabilities import KINDS

STORING = [kind for kind in KINDS if kind != "weights"]


def check(model, x, outputs):
    why = model.explain(x, top=5)
    score = np.atleast_1d(model.score_one(x))
    assert len(score) == outputs
    np.testing.assert_array_equal(np.atleast_1d(why.score), score)
    parts = why.contributions.reshape(len(why.ids), -1)
    coefs = why.coefficients.reshape(parts.shape)
    np.testing.assert_array_equal(parts, coefs * why.kernel_values[:, None])
    for o in range(outputs):
        total = math.fsum([*parts[:, o], *(np.atleast_1d(part)[o] for part in (why.intercept, why.rest, why.rounding))])
        assert total == score[o]
    loud = np.abs(parts).max(axis=1)
    assert (np.diff(loud) <= 0).all()
    whole = model.explain(x, top=None)
    assert len(whole.ids) == model.n_support_
    np.testing.assert_array_equal(whole.rest, 0.0)
    np.testing.assert_allclose(why.rounding, 0.0, atol=1e-9)
    return why


@pytest.mark.parametrize("kind", STORING)
@pytest.mark.parametrize("classes", [2, 4])
def test_classifiers(kind, classes):
    X, _ = public_learners.stream("", 90)
    y = np.array(["a", "b", "c", "d"])[(classes * X[:, 0]).astype(int)]
    model = KINDS[kind]().fit(X, y)
    for x in X[:5]:
        why = check(model, x, 1 if classes == 2 else classes)
        known = [label is None or label == y[id_] for id_, label in zip(why.ids, why.labels, strict=True)]
        assert all(known)
        if kind in ("points", "window", "objects"):
            assert None not in why.labels


def test_regressors_say_targets():
    X, _ = public_learners.stream("", 60)
    y = X @ np.arange(4.0)
    model = KernelRegressor(Gaussian(2.0), budget=gristmill.DropOldest(20)).fit(X, y)
    why = check(model, X[7], 1)
    assert why.labels == y[why.ids].tolist()
    first, last = str(why).splitlines()[1], str(why).splitlines()[-1]
    assert first.split() == [
        str(why.ids[0]),
        str(why.labels[0]),
        *(f"{v:.4g}" for v in (why.kernel_values[0], *why.coefficients[:1], *why.contributions[:1])),
    ]
    assert last.split() == ["score", f"{why.score:.4g}"]
    sparse = KernelRegressor(Gaussian(2.0), budget=gristmill.DropOldest(20)).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.explain(X[7], top=5).contributions, why.contributions)


def test_several_classes_are_columns_of_contributions():
    X, _ = public_learners.stream("", 90)
    model = KINDS["points"]().fit(X, (3 * X[:, 0]).astype(int))
    why = model.explain(X[0], top=2)
    heads, *points, rest, intercept, score = str(why).splitlines()
    assert heads.endswith("to score 2")
    assert [line.split()[-3:] for line in points] == [[f"{v:.4g}" for v in row] for row in why.contributions]
    for line, values in ((rest, why.rest), (intercept, why.intercept), (score, why.score)):
        assert line.split()[-3:] == [f"{v:.4g}" for v in values]


def test_novelty_names_the_strange_column():
    X = np.random.default_rng(0).normal(size=(1500, 4))
    model = norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, schedule="inv_sqrt", size=200).fit(X)
    strange = np.array([0.1, 0.0, 6.0, -0.2])
    why = check(model, strange, 1)
    assert int(np.argmax(why.columns)) == 2
    assert why.labels == [None] * 5
    assert "unusual columns: 2" in str(why)
    scaled = Prepared(KernelNovelty(Gaussian(0.5))).fit(X * [1, 100, 1, 1])
    assert int(np.argmax(scaled.explain(strange * [1, 100, 1, 1]).columns)) == 2


def test_columns_that_go_together_are_not_blamed_for_another():
    """The nearest stored point of all is a compromise here: each of its columns is a little off."""
    rng = np.random.default_rng(0)
    speed = np.sin(np.arange(3000) / 50)
    X = np.column_stack([speed, 0.5 * speed, 2 * speed]) + 0.05 * rng.normal(size=(3000, 3))
    model = Prepared(KernelNovelty(Gaussian(0.5))).fit(X)
    for row in range(0, 3000, 300):
        strange = X[row] + [0.0, 0.0, -3.0 * np.sign(X[row, 0])]
        assert int(np.argmax(model.explain(strange).columns)) == 2


def test_what_cannot_be_explained():
    X, y = public_learners.stream("", 30)
    with pytest.raises(AttributeError, match="stores no points"):
        FeatureClassifier().fit(X / 4, y).explain(X[0])
    model = KernelClassifier(Gaussian(1.0)).fit(X, y)
    for top in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="top must be"):
            model.explain(X[0], top=top)
    with pytest.raises(ValueError, match="features"):
        model.explain(X[0][:2])
