"""Additive kernels: values against quadrature, trees against the naive sum, learners against the twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from additive_cases import BASES, BUDGETS, InBall, Scripted, data, off_naive
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Twin
from oracle_kernels import naive_matrix, spline

from gristmill import (
    SGD,
    Additive,
    Alma,
    DropOldest,
    EpsilonInsensitive,
    FeasibleSet,
    Gaussian,
    Implicit,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Logistic,
    PassiveAggressive,
    Perceptron,
    Pinball,
    Romma,
    Spline,
    Squared,
    Unbounded,
    Window,
)

# ---- the kernel as a value -----------------------------------------------------------------------


@pytest.mark.parametrize("order", range(4))
def test_spline_is_its_definition(order):
    p, q = np.meshgrid(np.linspace(0, 3, 7), np.linspace(0, 5, 9), indexing="ij")
    got = Spline(order)(p.reshape(-1, 1), q.reshape(-1, 1)).diagonal()
    assert np.allclose(got, spline(p, q, order).ravel(), rtol=1e-13)


def test_the_printed_cubic_is_not_a_kernel():
    """Equation (4) of the paper has 5/6 where 1/6 is meant: k(4, 4) would be negative."""
    printed = 1 + 16 + 4**3 / 2 - 5 / 6 * 4**3
    assert printed < 0 < Spline(1)([4.0], [4.0]) == pytest.approx(1 + 16 + 4**3 / 2 - 4**3 / 6)


@pytest.mark.parametrize("base", BASES)
def test_matrix_is_the_sum_over_coordinates_and_positive_semidefinite(base):
    X, _ = data(60)
    kernel = Additive(base, products=[(0, 1)])
    K = kernel(X)
    assert np.allclose(K, naive_matrix(kernel, X), rtol=1e-12)
    assert np.allclose(kernel.diagonal(X), K.diagonal())
    assert np.linalg.eigvalsh(K).min() > -1e-8 * np.abs(K).max()


def test_sums_weights_columns_and_missing_values():
    X, _ = data(50, width=4)
    kernel = 0.5 * (Additive(Spline(), columns=[0, 1]) + 2.0 * Additive(Laplacian(2.0), columns=[3], products=[(0, 2)]))
    assert np.allclose(kernel(X[:9], X), naive_matrix(kernel, X[:9], X), rtol=1e-12)
    holes = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.3, np.nan, X)
    skipping = Additive(Spline(), missing="skip")
    assert np.allclose(skipping(holes), naive_matrix(skipping, holes), rtol=1e-12)
    assert skipping([np.nan] * 4, [1.0] * 4) == 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Spline(4), "order must be one of 0, 1, 2, 3"),
        (lambda: Additive(Gaussian(1.0)), "base must be Spline"),
        (lambda: Additive(Spline(), columns=[1, 1]), "columns must be a sequence of distinct"),
        (lambda: Additive(Spline(), products=[(1,)]), "products must be a sequence of pairs"),
        (lambda: Additive(Spline(), missing="drop"), "missing must be one of"),
        (lambda: -1.0 * Additive(Spline()), "weight must be a number > 0"),
        (lambda: Additive(Spline()) + Additive(Spline(), missing="skip"), "must agree on missing"),
        (lambda: Additive(Spline())([[-1.0]]), "MinMaxScaler"),
        (lambda: Spline()([[1.0, 2.0]]), r"use Additive\(Spline"),
        (lambda: Additive(Spline(), columns=[5])([[1.0]]), "names column 5, but X has 1"),
        (lambda: (Additive(Spline()) + Gaussian(1.0))([[1.0]]), "evaluated by trees"),
    ],
)
def test_values_out_of_range_are_refused_by_name(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


# ---- the trees against the naive sum -------------------------------------------------------------


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_scores_are_the_naive_sum(base, scale):
    X, y = data(1500, scale=scale)
    model = KernelRegressor(Additive(base), PassiveAggressive(C=10.0, epsilon=0.01), Unbounded()).fit(X, y)
    assert model.n_support_ > 1000  # three levels
    probe = np.vstack([X[:60], np.zeros((1, 3)), np.full((1, 3), 2 * scale)])
    assert off_naive(model, probe) < 1e-13
    model.compile()
    assert off_naive(model, probe) < 1e-13


finite_keys = st.one_of(st.integers(0, 6).map(float), st.floats(0, 1e4), st.sampled_from([0.0, 5e-324, 1e-300, 1e4]))
steps = st.lists(
    st.tuples(
        st.tuples(finite_keys, finite_keys),
        st.floats(-1e4, 1e4).map(lambda c: c if abs(c) > 1e-4 else 0.0),
        st.sampled_from([1.0, 1.0, 1.0, 0.5, -1.25, 0.0]),
    ),
    min_size=1,
    max_size=120,
)


@settings(max_examples=80, deadline=None)
@given(steps=steps, base=st.sampled_from(BASES), budget=st.sampled_from(BUDGETS))
def test_any_interleaving_of_adding_removing_and_scaling(steps, base, budget):
    X = np.array([key for key, _, _ in steps])
    rule = Scripted([(coefficient, shrink) for _, coefficient, shrink in steps])
    model = KernelRegressor(Additive(base), rule, budget, random_state=0)
    for i in range(0, len(X), 7):
        model.partial_fit(X[i : i + 7], np.zeros(len(X[i : i + 7])))
        assert off_naive(model, X[-3:]) < 1e-9
    assert off_naive(model, X) < 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), base=st.sampled_from(BASES))
def test_the_order_of_insertion_does_not_matter(seed, base):
    rng = np.random.default_rng(seed)
    X, coefs = rng.uniform(size=(200, 2)).round(int(rng.integers(1, 4))), rng.normal(size=200)
    order = rng.permutation(200)
    one = KernelRegressor(Additive(base), Scripted([(c, 1.0) for c in coefs]), Unbounded()).fit(X, coefs)
    two = KernelRegressor(Additive(base), Scripted([(c, 1.0) for c in coefs[order]]), Unbounded()).fit(X[order], coefs)
    size = np.abs(coefs) @ Additive(base)(X, X[:50])
    assert np.all(np.abs(one.predict(X[:50]) - two.predict(X[:50])) <= 1e-13 * size)


def test_a_large_term_that_leaves_takes_its_rounding_with_it():
    """Sums are recomputed, not corrected: 1e8 comes and goes, and 1e-3 beside it is still exact."""
    for key in (0.5, 0.25):  # shared with the small term, and not
        rule = Scripted([(1e8, 1.0), (1e-3, 1.0), (0.0, 1.0)])
        model = KernelRegressor(Additive(Spline()), rule, Window(2)).fit([[key], [0.5], [2.0]], np.zeros(3))
        assert model.n_support_ == 1
        assert model.predict([[0.7]])[0] == pytest.approx(1e-3 * Spline()([0.5], [0.7]), rel=1e-12)


@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e3])
def test_laplacian_never_overflows(gamma):
    """|gamma x| up to 1e6, where exp(gamma x) is far beyond the largest double."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(800, 2)) * 1e6 / gamma
    model = KernelRegressor(Additive(Laplacian(gamma)), Scripted([(c, 1.0) for c in rng.normal(size=800)]), Unbounded())
    model.fit(X, np.zeros(800))
    assert off_naive(model, X[:100]) < 1e-12
    extreme = np.array([[1.7e308, -1.7e308], [0.0, 5e-324], [-1.7e308, 1e-300]])
    model.rule = PassiveAggressive()
    model.fit(np.vstack([X, extreme]), np.ones(803))
    assert np.isfinite(model.predict(extreme)).all()
    with np.errstate(over="ignore"):  # the naive sum's distances overflow, and rightly become exp(-inf)
        assert off_naive(model, extreme) < 1e-12


def test_equal_keys_are_one_entry():
    X = np.zeros((5000, 2))
    X[:, 1] = np.arange(5000) % 3
    model = KernelRegressor(Additive(Laplacian(1.0)), Scripted([(1.0, 1.0)] * 5000), Unbounded()).fit(X, np.zeros(5000))
    assert model.n_support_ == 5000
    spread = KernelRegressor(Additive(Laplacian(1.0)), Scripted([(1.0, 1.0)] * 5000), Unbounded())
    spread.fit(np.random.default_rng(0).normal(size=(5000, 2)), np.zeros(5000))
    assert model.memory_bytes_ < 0.5 * spread.memory_bytes_
    assert model.predict(X[:1])[0] == pytest.approx(5000 + sum(math.exp(-(i % 3)) for i in range(5000)), rel=1e-12)


# ---- the learners against the twin ---------------------------------------------------------------

REGRESSION = [
    PassiveAggressive(C=2.0, epsilon=0.05),
    SGD(Squared(), rate=0.02, reg=0.1, intercept=True),
    SGD(EpsilonInsensitive(0.1), rate=0.1, reg=0.01, schedule="inv_sqrt"),
    SGD(Pinball(0.25), rate=0.1, reg=0.01),
    FeasibleSet(epsilon=0.05, radius=1.5),
    Implicit(Squared(), C=0.5, rate=0.5, reg=0.1),
]
CLASSIFICATION = [
    Perceptron(),
    Romma(),
    Romma(aggressive=True),
    Alma(alpha=0.9),
    FeasibleSet(radius=2.0),
    Implicit(Logistic(), C=0.5, reg=0.05),
]


@pytest.mark.parametrize("base", [Laplacian(3.0), Spline(1)])
@pytest.mark.parametrize("rule", REGRESSION, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("budget", BUDGETS[:4], ids=lambda b: type(b).__name__)
def test_regressor_is_the_twin(base, rule, budget):
    X, y = data(90)
    twin = Twin(Additive(base), rule, budget, task="regression")
    expected = [twin.step(x, t) for x, t in zip(X, y, strict=True)]
    model = KernelRegressor(Additive(base), rule, budget)
    assert np.allclose(model.prequential(X, y), np.ravel(expected), rtol=0, atol=1e-9)
    assert model.support_ids_.tolist() == sorted(twin.ids)
    assert model.norm_**2 == pytest.approx(twin.norm2(), rel=1e-9)


@pytest.mark.parametrize("rule", CLASSIFICATION, ids=repr)
@pytest.mark.parametrize("budget", BUDGETS[:4], ids=lambda b: type(b).__name__)
def test_binary_classifier_is_the_twin(rule, budget):
    X, y = data(90)
    labels = np.where(y > 1, 1, -1)
    twin = Twin(Additive(Laplacian(3.0)), rule, budget)
    expected = [twin.step(x, c) for x, c in zip(X, labels, strict=True)]
    model = KernelClassifier(Additive(Laplacian(3.0)), rule, budget)
    assert np.allclose(model.prequential(X, labels), np.ravel(expected), rtol=0, atol=1e-9)
    assert model.support_ids_.tolist() == sorted(twin.ids)
    assert model.norm_**2 == pytest.approx(twin.norm2(), rel=1e-9)


def test_classifier_with_three_classes_is_the_twin():
    X, y = data(200)
    labels = np.digitize(y, [0.5, 1.5])
    for rule in (Perceptron(), PassiveAggressive(C=0.5)):
        twin = Twin(Additive(Spline()), rule, DropOldest(30), task="classification", n_classes=3)
        expected = np.array([twin.step(x, c) for x, c in zip(X, labels, strict=True)])
        model = KernelClassifier(Additive(Spline()), rule, DropOldest(30))
        assert np.allclose(model.prequential(X, labels, classes=[0, 1, 2]), expected, atol=1e-9)
        assert model.n_support_ == 30


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: type(b).__name__)
def test_the_norm_is_that_of_the_gram_matrix(budget):
    X, y = data(200)
    kernel = Additive(Laplacian(2.0), missing="skip")
    X[::7, 0] = np.nan
    model = KernelRegressor(kernel, InBall(), budget, random_state=1)
    for i in range(0, 200, 20):
        model.partial_fit(X[i : i + 20], 5 * y[i : i + 20])
        a = model.dual_coef_[:, 0]
        assert model.norm_**2 == pytest.approx(a @ kernel(model.support_vectors_) @ a, rel=1e-9)
        assert model.norm_ <= 2 + 1e-12 or isinstance(budget, Window)  # what leaves at the end of an event may raise it


def test_a_long_decay_is_renormalised_unseen():
    X, y = data(900)
    model = KernelRegressor(Additive(Spline()), SGD(Squared(), rate=0.1, reg=5.0), Unbounded())
    twin = Twin(Additive(Spline()), model.rule, Unbounded(), task="regression")
    assert model.partial_fit(X[:700], y[:700]).n_support_ == 700  # 0.5^700 is 1e-211
    k = Additive(Spline())
    assert model.predict(X[:5]) == pytest.approx(k(X[:5], model.support_vectors_) @ model.dual_coef_[:, 0], rel=1e-9)
    for x, t in zip(X[:60], y[:60], strict=True):
        twin.step(x, t)
    assert np.isfinite(twin.norm2())
    one = KernelRegressor(Additive(Spline()), model.rule, Unbounded())
    for x, t in zip(X[:700], y[:700], strict=True):
        one.learn_one(x, t)
    assert np.array_equal(one.predict(X), model.predict(X))
