"""A size in bytes: the model never keeps more, whatever comes."""

import pickle

import numpy as np
import pytest
from oracle import Twin
from scipy.sparse import csr_array

import gristmill
from gristmill import (
    DropOldest,
    DropRandom,
    DropSmallest,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    MarginProjection,
    Merge,
    PassiveAggressive,
    Perceptron,
    Project,
)
from gristmill.budgets import points_for

BUDGETS = [Merge, DropOldest, DropSmallest, DropRandom]


def stream(count, width=6, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, width))
    return X, np.floor(classes * (np.arctan2(X[:, 0], X[:, 1]) / (2 * np.pi) + 0.5)).astype(int) % classes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.__name__)
def test_the_memory_is_used_and_never_exceeded(budget, dtype):
    X, y = stream(6000)
    model = KernelClassifier(Laplacian(3.0), PassiveAggressive(), budget("20 kB"), random_state=0)
    for at in range(0, 6000, 500):
        model.partial_fit(X[at : at + 500].astype(dtype), y[at : at + 500])
        assert model.memory_bytes_ <= 20_000
    assert model.memory_bytes_ > 0.8 * 20_000
    assert model.n_support_ == points_for("20 kB", 6, 1, dtype, budget(1))


def test_a_million_events_keep_the_memory():
    X, y = stream(10_000, 3)
    model = KernelClassifier(Gaussian(2.0), Perceptron(), Merge("8 kB"))
    for _ in range(100):
        model.partial_fit(X, y)
        assert model.memory_bytes_ <= 8_000
    assert model.n_seen_ == 1_000_000


@pytest.mark.parametrize("average", [False, True])
def test_new_classes_fold_points_away_and_every_cut_gives_the_same_bits(average):
    X, y = stream(1500, classes=6)
    y = np.where(np.arange(1500) < 400, y % 2, np.where(np.arange(1500) < 800, y % 3, y))
    parts = Laplacian(3.0), PassiveAggressive(), Merge("20 kB")
    whole = KernelClassifier(*parts, average=average).fit(X, y)
    cut = KernelClassifier(*parts, average=average)
    for at in range(0, 1500, 170):
        cut = pickle.loads(pickle.dumps(cut)) if at else cut
        cut.partial_fit(X[at : at + 170], y[at : at + 170])
        assert cut.memory_bytes_ <= 20_000
    np.testing.assert_array_equal(cut.dual_coef_, whole.dual_coef_)
    np.testing.assert_array_equal(cut.support_ids_, whole.support_ids_)
    assert whole.memory_bytes_ <= 20_000
    bad = X.copy()
    bad[700] = np.nan
    before = pickle.dumps(cut)
    with pytest.raises(ValueError, match="row 700"):
        cut.partial_fit(bad, y + 6)
    assert pickle.dumps(cut) == before


def test_a_class_that_fails_brings_the_points_back():
    class Fragile:
        def __call__(self, trial):
            if trial.step > 520:
                raise RuntimeError("the rule broke")
            return gristmill.Step(coefficient=trial.label)

    X, y = stream(600, classes=4)
    y[:500] %= 2
    model = KernelClassifier(Gaussian(1.0), Fragile(), Merge("10 kB")).fit(X[:500], y[:500])
    before, size = model.decision_function(X), model.n_support_
    with pytest.raises(RuntimeError, match="broke"):
        model.partial_fit(X[500:], y[500:])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_support_ == size


def test_what_cannot_be_counted_or_does_not_fit_is_refused():
    X, y = stream(50)
    with pytest.raises(ValueError, match=r"at least \d+ bytes"):
        KernelClassifier(Gaussian(1.0), Perceptron(), Merge("600 B")).fit(X, y)
    wide = csr_array((50, 5000))
    with pytest.raises(ValueError, match="fixed width"):
        KernelClassifier(Gaussian(1.0), Perceptron(), Merge("1 MB")).fit(wide, y)
    with pytest.raises(ValueError, match="fixed width"):
        KernelClassifier(lambda a, b: float(a == b), Perceptron(), Merge("1 MB")).fit(list("ab"), [0, 1])
    for text in ("1", "MB", "1 parsec", "-1 MB"):
        with pytest.raises(TypeError, match="1 MB"):
            Merge(text)


def test_a_size_in_bytes_is_saved(tmp_path):
    X, y = stream(500)
    model = KernelRegressor(Gaussian(1.0), budget=Merge("5 kB")).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = gristmill.load(tmp_path / "m.safetensors")
    assert again.budget == Merge("5 kB")
    assert again.memory_bytes_ <= 5_000
    np.testing.assert_array_equal(again.partial_fit(X, y).dual_coef_, model.partial_fit(X, y).dual_coef_)


@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection()], ids=repr)
def test_a_full_span_projects_whatever_comes(rule):
    X, y = stream(300, 4)
    model, twin = (
        KernelClassifier(Gaussian(0.5), rule, Project(0.1, size=20)),
        Twin(Gaussian(0.5), rule, Project(0.1, size=20)),
    )
    said = [twin.step(x, 2 * label - 1) for x, label in zip(X, y, strict=True)]
    np.testing.assert_allclose(model.prequential(X, y, classes=[0, 1]), said, rtol=1e-6, atol=1e-7)
    assert model.n_support_ == 20
