"""Several targets at once: one store, a column of coefficients and a rule a target. Twins are separate learners."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_regressor_multioutput

import gristmill
from gristmill import (
    SGD,
    Additive,
    DropOldest,
    DropRandom,
    DropSmallest,
    EpsilonInsensitive,
    FeasibleSet,
    Forget,
    Gaussian,
    Huber,
    Implicit,
    KernelRegressor,
    Laplacian,
    Merge,
    PassiveAggressive,
    Pinball,
    Polynomial,
    Prepared,
    Project,
    RandomMaclaurin,
    Squared,
    StepSizeAdaptation,
    Unbounded,
    Window,
)
from gristmill.features import FeatureRegressor

KERNEL = Gaussian(1.0)


def stream(n=250, targets=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    Y = np.stack([np.sin(3 * X[:, t % 4]) * 2.0**t + 0.1 * rng.normal(size=n) for t in range(targets)], axis=1)
    return X, Y


def apart(model, X, Y, verb="prequential", **more):
    """What separate learners say, a column each."""
    return np.stack([getattr(clone(model), verb)(X, y, **more) for y in Y.T], axis=1)


RULES = {
    "squared": SGD(Squared(), 0.2, 0.05, intercept=True),
    "tube": SGD(EpsilonInsensitive(0.1, nu=0.3), 0.2, 0.05, "inv_sqrt"),
    "huber": SGD(Huber(0.3, nu=0.5), 0.2, 0.05),
    "pinball": SGD(Pinball(0.8), 0.2, 0.05),
    "pa": PassiveAggressive(epsilon=0.3),
    "pa-2": PassiveAggressive(variant=2, epsilon=0.3),
    "implicit": Implicit(Squared(), 0.5, 0.5, 0.1),
    "feasible": FeasibleSet(0.3),
}
#: every event of these rules is stored for every target, so that budgets by age treat all alike
ALIKE = {"squared": RULES["squared"], "implicit": RULES["implicit"]}


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_without_a_budget_they_are_separate_learners(name, average):
    X, Y = stream()
    model = KernelRegressor(KERNEL, RULES[name], Unbounded(), average=average)
    said = clone(model).prequential(X, Y)
    assert said.shape == Y.shape
    np.testing.assert_allclose(said, apart(model, X, Y), rtol=1e-9, atol=1e-9)
    fitted = model.fit(X, Y)
    for t, y in enumerate(Y.T):
        alone = clone(model).fit(X, y)
        np.testing.assert_allclose(fitted.predict(X)[:, t], alone.predict(X), rtol=1e-9, atol=1e-9)
        assert fitted.intercept_[t] == pytest.approx(alone.intercept_[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("budget", [DropOldest(20), Window(30), DropRandom(20, uniform=True)])
@pytest.mark.parametrize("name", ALIKE)
def test_budgets_by_age_keep_the_same_points(name, budget):
    X, Y = stream()
    model = KernelRegressor(KERNEL, ALIKE[name], budget, random_state=3)
    np.testing.assert_allclose(clone(model).prequential(X, Y), apart(model, X, Y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["squared", "pa"])
def test_later_passes_change_every_target_in_place(name):
    X, Y = stream(120)
    model = KernelRegressor(KERNEL, RULES[name], Unbounded(), passes=3)
    fitted = clone(model).fit(X, Y)
    alone = np.stack([clone(model).fit(X, y).predict(X) for y in Y.T], axis=1)
    np.testing.assert_allclose(fitted.predict(X), alone, rtol=1e-9, atol=1e-9)


def test_a_point_is_stored_if_any_coefficient_is_not_0():
    X, Y = stream(60)
    Y[:, 0] = 0.0  # never off by more than the tube
    model = KernelRegressor(KERNEL, PassiveAggressive(epsilon=0.3), Unbounded()).fit(X, Y)
    assert (model.dual_coef_[:, 0] == 0).all()
    assert (model.dual_coef_[:, 1:] != 0).any(axis=1).all()
    silent = KernelRegressor(KERNEL, PassiveAggressive(epsilon=1e3), Unbounded()).fit(X, Y)
    assert silent.n_support_ == 0


LEARNERS = {
    "merge": KernelRegressor(KERNEL, budget=Merge(30)),
    "smallest": KernelRegressor(KERNEL, SGD(EpsilonInsensitive(0.1, nu=0.3), 0.2, 0.05), DropSmallest(25)),
    "random": KernelRegressor(KERNEL, budget=DropRandom(25), random_state=1),
    "project": KernelRegressor(KERNEL, PassiveAggressive(epsilon=0.3), Project(0.5)),
    "project, size": KernelRegressor(KERNEL, RULES["squared"], Project(0.3, size=15)),
    "bytes": KernelRegressor(KERNEL, budget=Merge("20 kB")),
    "average": KernelRegressor(KERNEL, budget=Merge(30), average=True),
    "additive": KernelRegressor(Additive(Laplacian(1.0)), budget=DropOldest(25)),
    "feature": FeatureRegressor(RandomMaclaurin(Polynomial(2), 40, random_state=0), SGD(Squared(), 0.05)),
    "function": KernelRegressor(lambda a, b: float(np.dot(a, b)), budget=DropOldest(25)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_cut_gives_the_same_bits(name):
    X, Y = stream(160)
    model = LEARNERS[name]
    whole, cut, single = clone(model), clone(model), clone(model)
    said = whole.prequential(X, Y)
    parts = [cut.prequential(X[a:b], Y[a:b]) for a, b in ((0, 1), (1, 70), (70, 160))]
    assert np.array_equal(np.concatenate(parts), said)
    for x, y in zip(X, Y, strict=True):
        single.learn_one(x, y)
    for other in (cut, single):
        assert np.array_equal(other.predict(X), whole.predict(X))
        assert np.array_equal(other.predict_interval(X), whole.predict_interval(X))
    assert np.array_equal(whole.predict_one(X[3]).shape, (3,))
    if name in ("merge", "smallest", "random"):
        assert whole.n_support_ <= 30


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "function"])
def test_saved_and_pickled_in_mid_stream(name, tmp_path):
    X, Y = stream(160)
    whole = clone(LEARNERS[name]).fit(X, Y)
    half = clone(LEARNERS[name]).fit(X[:80], Y[:80])
    half.save(tmp_path / "model")
    for other in (gristmill.load(tmp_path / "model"), pickle.loads(pickle.dumps(half))):
        other.partial_fit(X[80:], Y[80:])
        assert np.array_equal(other.predict(X), whole.predict(X))
        assert np.array_equal(other.predict_interval(X, 0.8), whole.predict_interval(X, 0.8))


@pytest.mark.parametrize("form", [csr_array, lambda X: X.astype(np.float32)])
def test_sparse_and_single_rows(form):
    X, Y = stream(120)
    X[np.abs(X) < 0.5] = 0.0
    rows = form(X)
    model = KernelRegressor(KERNEL, RULES["squared"], Unbounded())
    tolerance = 1e-4 if getattr(rows, "dtype", None) == np.float32 else 1e-9
    np.testing.assert_allclose(model.prequential(rows, Y), apart(model, X, Y), rtol=tolerance, atol=tolerance)


def test_weights_are_those_of_events():
    X, Y = stream(120)
    weights = np.random.default_rng(1).integers(0, 3, size=120).astype(float)
    model = KernelRegressor(KERNEL, RULES["squared"], Unbounded())
    said = clone(model).prequential(X, Y, sample_weight=weights)
    np.testing.assert_allclose(said, apart(model, X, Y, sample_weight=weights), rtol=1e-9, atol=1e-9)


def test_intervals_are_those_of_separate_learners():
    X, Y = stream(400)
    model = KernelRegressor(KERNEL, RULES["squared"], Unbounded())
    said = clone(model).prequential_interval(X, Y, 0.8)
    assert said.shape == (400, 3, 2)
    np.testing.assert_allclose(said, apart(model, X, Y, "prequential_interval", coverage=0.8), rtol=1e-9)
    low, high = model.fit(X, Y).predict_interval_one(X[0])
    assert np.array_equal(np.stack([low, high], axis=-1), model.predict_interval(X[:1])[0])


def test_gradient_and_reasons_follow():
    X, Y = stream(120)
    model = KernelRegressor(KERNEL, budget=Merge(40)).fit(X, Y)
    slopes, step = model.gradient(X[:5]), 1e-6
    assert slopes.shape == (5, 3, 4)
    for j in range(4):
        moved = X[:5] + step * np.eye(4)[j]
        np.testing.assert_allclose((model.predict(moved) - model.predict(X[:5])) / step, slopes[:, :, j], atol=1e-4)
    why = model.explain(X[0], top=7)
    assert why.contributions.shape == (7, 3)
    for t in range(3):
        parts = [*why.contributions[:, t], why.intercept[t], why.rest[t], why.rounding[t]]
        assert math.fsum(parts) == why.score[t] == model.predict_one(X[0])[t]
    for place, told in zip(why.ids, why.labels, strict=True):
        assert np.array_equal(told, Y[place])


def test_behind_scaling_and_relevance():
    X, Y = stream(1200)
    for scale in ("standard", "relevance"):
        model, cut = (Prepared(KernelRegressor(KERNEL, budget=Merge(50)), scale) for _ in range(2))
        said = model.prequential(X, Y)
        assert np.abs(said[-300:] - Y[-300:]).mean() < 0.5 * np.abs(Y[-300:]).mean()
        for a, b in ((0, 300), (300, 1200)):
            cut.partial_fit(X[a:b], Y[a:b])
        assert np.array_equal(cut.predict(X), model.predict(X))


REFUSED = [
    (KernelRegressor(KERNEL, FeasibleSet(0.1, radius=2.0), Unbounded()), "FeasibleSet"),
    (KernelRegressor(KERNEL, StepSizeAdaptation(Squared(), 0.1), DropOldest(20)), "StepSizeAdaptation"),
    (KernelRegressor(KERNEL, lambda trial: None, DropOldest(20)), "written in Python"),
]


@pytest.mark.parametrize(("model", "says"), REFUSED)
def test_rules_that_cannot_share_a_store_are_refused_by_name(model, says):
    X, Y = stream(30)
    with pytest.raises(ValueError, match=says):
        model.fit(X, Y)
    model.fit(X, Y[:, 0])
    assert not model.__sklearn_tags__().target_tags.multi_output
    assert Forget(20).multiclass is False


def test_bad_targets_change_nothing():
    X, Y = stream(40)
    model = KernelRegressor(KERNEL).fit(X, Y)
    before = model.predict(X)
    bent = Y.copy()
    bent[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7, target 2 is nan"):
        model.partial_fit(X, bent)
    for wrong, count in ((Y[:, :2], 2), (Y[:, 0], 1)):
        with pytest.raises(ValueError, match=rf"y has {count} target\(s\) a row, but the model was started with 3"):
            model.partial_fit(X, wrong)
    with pytest.raises(ValueError, match="started with"):
        model.learn_one(X[0], 1.0)
    with pytest.raises(ValueError, match="3"):
        model.partial_fit(X[:30], Y)
    assert model.n_seen_ == 40
    assert np.array_equal(model.predict(X), before)
    alone = KernelRegressor(KERNEL).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"y has 3 target\(s\) a row, but the model was started with 1"):
        alone.learn_one(X[0], Y[0])


def test_scikit_learns_check_and_score():
    assert KernelRegressor().__sklearn_tags__().target_tags.multi_output
    check_regressor_multioutput("KernelRegressor", KernelRegressor())
    X, Y = stream(300)
    assert KernelRegressor(KERNEL).fit(X, Y).score(X, Y) > 0.9
    column = KernelRegressor(KERNEL).fit(X, Y[:, 0]).predict(X)
    with pytest.warns(Warning, match="column-vector"):
        assert np.array_equal(KernelRegressor(KERNEL).fit(X, Y[:, :1]).predict(X), column)
