"""The span of the stored points: factor, projections and coefficients against numpy, and over long runs."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

import gristmill
from gristmill import (
    SGD,
    Alma,
    Gaussian,
    Hinge,
    KernelClassifier,
    Linear,
    MarginProjection,
    Perceptron,
    Project,
)

KERNEL = Gaussian(0.8)


def stream(steps=400, classes=2, seed=0, width=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(steps, width))
    values = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=steps)
    return X, np.where(values > 0, 1, -1) if classes == 2 else np.digitize(values, [-0.4, 0.4])


def spans(model):
    """Each output's members (rows of the stored points) and coordinates."""
    state = model._engine.state()
    edges = np.concatenate([[0], np.cumsum(state["span_sizes"])])
    for a, b in pairwise(edges):
        yield state["members"][a:b], state["coordinates"][a:b], state["coordinate_sums"][a:b]


def state_table(model):
    """Points and coefficients by slot, as the members are numbered."""
    slots = np.argsort(np.argsort(model._engine.state()["ids"]))  # the estimator shows them by age
    return model.support_vectors_[slots], model.dual_coef_[slots]


def check_factor(model, kernel, tolerance):
    """Coordinates are L^T a for the Cholesky factor of a Gram matrix made afresh."""
    points, coefs = state_table(model)
    assert not model.average
    norm2 = 0.0
    for output, (members, coordinates, _) in enumerate(spans(model)):
        factor = np.linalg.cholesky(kernel(points[members]))
        fresh = factor.T @ coefs[members, output]
        scale = max(1.0, np.abs(fresh).max())
        assert np.abs(fresh - coordinates).max() <= tolerance * scale
        solved = np.linalg.solve(factor.T, coordinates)
        assert np.abs(solved - coefs[members, output]).max() <= 10 * tolerance * max(1.0, np.abs(solved).max())
        norm2 += float(coordinates @ coordinates)
    assert model.norm_**2 == pytest.approx(norm2, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rule", [Perceptron(), MarginProjection(), SGD(Hinge(), 0.3, 0.05), Alma(0.9)], ids=repr)
def test_coordinates_are_those_of_a_fresh_factor(rule, classes):
    X, y = stream(classes=classes)
    model = KernelClassifier(KERNEL, rule, Project(0.25)).fit(X, y)
    assert model.n_support_ > 3 * 16, "more than one stair of the factor"
    check_factor(model, KERNEL, 1e-9)


def test_each_step_is_the_projection_that_numpy_finds():
    """Mistakes farther than the tolerance from the members enter; others change f by their projection."""
    X, y = stream()
    tolerance, model = 0.35, KernelClassifier(KERNEL, Perceptron(), Project(0.35))
    model.partial_fit(X[:1], y[:1], classes=[-1, 1])
    folded = stored = 0
    for x, label in zip(X[1:], y[1:], strict=True):
        points, before, score = model.support_vectors_, model.dual_coef_[:, 0], model.score_one(x)
        row = KERNEL(x[None], points)[0]
        share = np.linalg.lstsq(KERNEL(points), row, rcond=None)[0]
        residual = math.sqrt(max(0.0, 1 - row @ share))
        model.learn_one(x, label)
        after = model.dual_coef_[:, 0]
        if label * score > 0:
            assert np.array_equal(after, before)
        elif residual <= tolerance:
            folded += 1
            np.testing.assert_allclose(after, before + label * share, atol=1e-9)
        else:
            stored += 1
            np.testing.assert_allclose(after, [*before, label], atol=1e-9)
    assert folded > 20
    assert stored > 20


def long_run(X, y, kernel, tolerance):
    """Projectron again in numpy, the factor made afresh whenever a point enters."""
    points, coefs, ids, inverse, said = np.empty((0, X.shape[1])), np.empty(0), [], np.empty((0, 0)), []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        row = np.exp(-kernel.gamma * ((points - x) ** 2).sum(axis=1))
        score = float(row @ coefs)
        said.append(score)
        if label * score > 0:
            continue
        share = inverse @ row
        if 1 - row @ share <= tolerance**2:
            coefs = coefs + label * share
        else:
            points, coefs = np.vstack([points, x]), np.append(coefs, label)
            ids.append(t)
            inverse = np.linalg.inv(kernel(points))
    return np.array(said), ids, coefs


def test_a_hundred_thousand_trials():
    X, y = stream(100_000, width=2, seed=4)
    X = np.clip(X, -2, 2)
    model = KernelClassifier(Gaussian(0.5), Perceptron(), Project(0.5))
    found = np.concatenate([model.prequential(X[a : a + 9999], y[a : a + 9999]) for a in range(0, len(X), 9999)])
    wanted, ids, coefs = long_run(X, y, Gaussian(0.5), 0.5)
    assert (y * wanted <= 0).sum() > 10_000, "the span must have worked"
    assert model.support_ids_.tolist() == ids
    scale = np.abs(wanted).max()
    assert np.abs(found - wanted).max() <= 1e-6 * scale
    assert np.abs(model.dual_coef_[:, 0] - coefs).max() <= 1e-6 * np.abs(coefs).max()
    check_factor(model, Gaussian(0.5), 1e-6)
    fresh = pickle.loads(pickle.dumps(model))  # makes its factor from the points
    assert np.array_equal(fresh.prequential(X[:500], y[:500]), model.prequential(X[:500], y[:500]))


@pytest.mark.parametrize("distance", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("classes", [2, 3])
def test_near_duplicates(distance, classes):
    """Rows that all but repeat, with other labels: the factor stays regular, the scores are right."""
    X, y = stream(60, classes)
    rng = np.random.default_rng(5)
    X = np.vstack([X, X + distance * rng.normal(size=X.shape), X + distance * rng.normal(size=X.shape)])
    y = np.concatenate([y, np.roll(y, 7), y])
    plain = KernelClassifier(KERNEL, Perceptron(), gristmill.Unbounded())
    model = KernelClassifier(KERNEL, Perceptron(), Project(0.0))
    wanted, found = plain.prequential(X, y), model.prequential(X, y)
    # What is dropped is at most sqrt(1e-10) long a mistake.
    assert np.abs(found - wanted).max() <= 3e-3
    for members, coordinates, _ in spans(model):
        assert np.isfinite(coordinates).all()
        assert len(members) <= (60 if distance <= 1e-9 else 180), "a repeated row enters a class once"
    if distance <= 1e-9:
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("average", [False, True])
def test_saving_in_the_middle_changes_no_bit(tmp_path, classes, average):
    X, y = stream(classes=classes)
    more = {"classes": np.unique(y)}
    straight = KernelClassifier(KERNEL, MarginProjection(), Project(0.3), average=average)
    wanted = straight.prequential(X, y, **more)
    cut = KernelClassifier(KERNEL, MarginProjection(), Project(0.3), average=average)
    said = [cut.prequential(X[:150], y[:150], **more)]
    cut.save(tmp_path / "model")
    said.append(gristmill.load(tmp_path / "model").prequential(X[150:], y[150:], **more))
    assert np.array_equal(np.concatenate(said), wanted)
    said[1:] = [pickle.loads(pickle.dumps(cut)).prequential(X[150:], y[150:], **more)]
    assert np.array_equal(np.concatenate(said), wanted)


@pytest.mark.parametrize("classes", [2, 3])
def test_event_by_event_is_the_chunk_bit_for_bit(classes):
    X, y = stream(classes=classes)
    chunk = KernelClassifier(KERNEL, MarginProjection(), Project(0.3)).fit(X, y)
    single = KernelClassifier(KERNEL, MarginProjection(), Project(0.3))
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert np.array_equal(single.dual_coef_, chunk.dual_coef_)
    assert np.array_equal(single.support_ids_, chunk.support_ids_)


def test_sparse_rows_and_single_precision():
    X, y = stream()
    X *= np.random.default_rng(1).random(X.shape) < 0.7
    rule, budget = MarginProjection(), Project(0.3)
    dense, sparse, single = (KernelClassifier(KERNEL, rule, budget) for _ in range(3))
    wanted = dense.prequential(X, y)
    np.testing.assert_allclose(sparse.prequential(csr_array(X), y), wanted, atol=1e-9)
    assert sparse.support_ids_.tolist() == dense.support_ids_.tolist()
    short = X.astype(np.float32)
    exact = KernelClassifier(KERNEL, rule, budget)
    np.testing.assert_allclose(single.prequential(short, y), exact.prequential(short.astype(float), y), atol=1e-3)
    assert single.support_vectors_.dtype == np.float32
    assert single.support_ids_.tolist() == exact.support_ids_.tolist()


def test_single_precision_with_repeated_rows_does_not_diverge():
    X, y = stream(60)
    X, y = np.tile(X, (5, 1)).astype(np.float32), np.concatenate([y, -y, y, -y, y])
    model = KernelClassifier(KERNEL, Perceptron(), Project(0.0))
    scores = model.prequential(X, y)
    plain = KernelClassifier(KERNEL, Perceptron(), gristmill.Unbounded()).prequential(X, y)
    assert model.n_support_ <= 60
    np.testing.assert_allclose(scores, plain, atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("failure", ["raises", "nan"])
def test_a_chunk_that_fails_half_way_is_undone(classes, failure):
    X, y = stream(120, classes)
    calls = {"left": math.inf}

    def kernel(a, b):
        calls["left"] -= 1
        if calls["left"] < 0:
            if failure == "raises":
                raise RuntimeError("out of order")
            return math.nan
        return math.exp(-0.8 * float(((a - b) ** 2).sum()))

    def learner():
        return KernelClassifier(kernel, MarginProjection(), Project(0.3), average=True)

    more = {"classes": np.unique(y)}
    model, straight = learner(), learner()
    straight.partial_fit(X, y, **more)
    model.partial_fit(X[:40], y[:40], **more)
    before = model._engine.state()
    for left in (0, 5, 200, 1000):
        calls["left"] = left
        with pytest.raises((RuntimeError, ValueError), match=r"out of order|nan"):
            model.partial_fit(X[40:], y[40:], **more)
        calls["left"] = math.inf
        now = model._engine.state()
        for name, value in before.items():
            assert name == "points" or np.array_equal(value, now[name]), name
    model.partial_fit(X[40:], y[40:], **more)
    assert np.array_equal(model.dual_coef_, straight.dual_coef_)


def test_more_dimensions_than_points_of_a_linear_kernel():
    """Every factor row is made of whole numbers here, so the coefficients are known exactly."""
    X = np.array([[2.0, 0.0], [0.0, 4.0], [2.0, 4.0], [-2.0, -4.0]])
    model = KernelClassifier(Linear(), Perceptron(), Project(0.0))
    model.fit(X, [1, 1, -1, 1])
    assert model.support_ids_.tolist() == [0, 1]
    np.testing.assert_allclose(model.dual_coef_[:, 0], [-1.0, -1.0])
