"""Projections against a quadratic program, and against the inequality that says all of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from gristmill.pairwise import GroupBall, L1Ball, L2Ball, PSDCone, Simplex, TraceBall

VECTOR_SETS = [L2Ball(1.3), L1Ball(1.3), Simplex(), Simplex(2.0)]
MATRIX_SETS = [make(1.7, psd) for make in (L2Ball, L1Ball, TraceBall, GroupBall) for psd in (False, True)] + [PSDCone()]


def norm(set_, w):
    if isinstance(set_, L2Ball):
        return np.linalg.norm(w)
    if isinstance(set_, L1Ball | Simplex):
        return np.abs(w).sum()
    if isinstance(set_, TraceBall):
        return np.linalg.svd(w, compute_uv=False).sum()
    if isinstance(set_, GroupBall):
        return np.linalg.norm(w, axis=0).sum()
    return 0.0


def assert_feasible(set_, w):
    if getattr(set_, "psd", False):
        np.testing.assert_allclose(w, w.T, atol=1e-12)
        assert np.linalg.eigvalsh(w).min() >= -1e-10
    if hasattr(set_, "radius"):
        assert norm(set_, w) <= set_.radius * (1 + 1e-9)
    if isinstance(set_, Simplex):
        assert w.min() >= 0
        assert w.sum() == pytest.approx(set_.radius, abs=1e-12)


@pytest.mark.parametrize("set_", VECTOR_SETS, ids=str)
def test_vectors_against_a_quadratic_program(set_):
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = rng.normal(size=4) * 2
        # |v|_1 <= r as v = p - q with p, q >= 0
        split = isinstance(set_, L1Ball)
        unpack = (lambda z: z[:4] - z[4:]) if split else (lambda z: z)
        bounds = [(0, None)] * 8 if split else [(0, None)] * 4 if isinstance(set_, Simplex) else None
        kind = "eq" if isinstance(set_, Simplex) else "ineq"
        room = (lambda z: set_.radius**2 - z @ z) if isinstance(set_, L2Ball) else (lambda z: set_.radius - z.sum())
        best = minimize(
            lambda z, x=x, unpack=unpack: 0.5 * np.sum((unpack(z) - x) ** 2),
            np.full(8 if split else 4, 0.1),
            bounds=bounds,
            constraints=[{"type": kind, "fun": room}],
            options={"ftol": 1e-15, "maxiter": 500},
        )
        np.testing.assert_allclose(set_.project(x), unpack(best.x), atol=2e-5)


@pytest.mark.parametrize("set_", MATRIX_SETS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_matrices_reach_the_nearest_point(set_, n):
    """p = P(x) is feasible, idempotent, and <x - p, z - p> <= 0 for all feasible z: a full check."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n)) * 2
    if getattr(set_, "psd", False):
        x = (x + x.T) / 2
    p = set_.project(x)
    assert_feasible(set_, p)
    np.testing.assert_allclose(set_.project(p), p, atol=1e-7)
    scale = np.linalg.norm(x - p) + 1e-12
    for _ in range(50):
        z = rng.normal(size=(n, n))
        z = z @ z.T if getattr(set_, "psd", False) else z
        if hasattr(set_, "radius"):
            z *= rng.uniform(0, 1) * set_.radius / norm(set_, z)
        assert np.sum((x - p) * (z - p)) <= 1e-6 * scale * (1 + np.linalg.norm(z))
        near = p + 0.01 * (z - p)  # feasible too: the set is convex
        assert np.linalg.norm(x - near) >= np.linalg.norm(x - p) * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("set_", MATRIX_SETS, ids=str)
def test_inside_nothing_moves(set_):
    a = np.random.default_rng(0).normal(size=(4, 4))
    w = a @ a.T
    w *= 0.5 * getattr(set_, "radius", 1.0) / max(norm(set_, w), 1e-9) if hasattr(set_, "radius") else 1.0
    np.testing.assert_allclose(set_.project(w), w, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 33, 60])
def test_cone_agrees_with_lapack(n):
    rng = np.random.default_rng(n)
    for x in (
        rng.normal(size=(n, n)),
        np.diag(rng.normal(size=n)),
        np.zeros((n, n)),
        np.ones((n, n)),
        -np.eye(n),
    ):
        a = (x + x.T) / 2
        values, vectors = np.linalg.eigh(a)
        expected = (vectors * np.maximum(values, 0)) @ vectors.T
        np.testing.assert_allclose(PSDCone().project(a), expected, atol=1e-12 * max(1, n))


@pytest.mark.parametrize("factor", [1e-150, 1e-12, 1e12, 1e140])
def test_cone_at_extreme_scales(factor):
    a = np.random.default_rng(3).normal(size=(6, 6))
    a = (a + a.T) / 2
    np.testing.assert_allclose(
        PSDCone().project(factor * a) / factor, PSDCone().project(a), rtol=1e-9, atol=1e-9 * np.abs(a).max()
    )


@pytest.mark.parametrize(
    ("set_", "array", "words"),
    [
        (Simplex(), np.eye(2), "a vector"),
        (PSDCone(), np.ones(3), "a square matrix"),
        (L2Ball(1.0), np.ones((2, 3)), "a vector or a square matrix"),
        (L1Ball(1.0), [1.0, np.nan], "finite"),
    ],
)
def test_wrong_arrays_are_named(set_, array, words):
    with pytest.raises(ValueError, match=words):
        set_.project(array)


@pytest.mark.parametrize("make", [L2Ball, L1Ball, Simplex, TraceBall, GroupBall])
@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan, "1"])
def test_radius_must_be_positive(make, radius):
    with pytest.raises((ValueError, TypeError), match="radius must be a number > 0"):
        make(radius)
