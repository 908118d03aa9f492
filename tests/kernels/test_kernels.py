"""Every kernel against its formula, exp against a longer float, the instruction sets against each other."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from oracle import naive_matrix
from scipy.sparse import csr_array, csr_matrix

from gristmill import (
    Exponential,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Linear,
    Manhattan,
    Normalized,
    Polynomial,
    Sigmoid,
    SquaredEuclidean,
    Vovk,
    _core,
)
from gristmill.kernels import PythonKernel

KERNELS = [
    Linear(),
    Polynomial(1, 0.5, 0.0),
    Polynomial(2),
    Polynomial(5, 0.3, 2.0),
    Gaussian(0.3),
    Gaussian(8.0),
    Laplacian(0.4),
    Exponential(1.3),
    Vovk(),
    Vovk(1),
    Vovk(6),
    Sigmoid(0.7, -0.3),
    Manhattan(),
    SquaredEuclidean(),
    Normalized(Polynomial(3)),
    Normalized(Linear()),
    2.5 * Gaussian(1.0),
    Gaussian(1.0) + Linear(),
    Gaussian(1.0) * Linear() + 0.5 * Laplacian(1.0),
    Normalized(Linear() + Exponential(2.0)) * (Gaussian(0.1) + Manhattan()),
]
# Around the lanes of a block, the tiles of rows, the strips of features, and the sparse store's border.
SHAPES = [(1, 1, 1), (3, 5, 2), (7, 16, 9), (5, 17, 31), (13, 40, 8), (4, 25, 161), (2, 9, 330), (6, 200, 5)]


def rows(count, width, seed, zeros=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, width)) * (rng.random((count, width)) > zeros)
    return X * (0.95 / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)))


def close(found, wanted, tolerance):
    found = np.asarray(found)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max(initial=0.0) <= tolerance * max(1.0, np.abs(wanted).max(initial=0.0))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_matrix_is_the_formula(kernel):
    for left, right, width in SHAPES:
        X, Y = rows(left, width, 1), rows(right, width, 2)
        wanted = naive_matrix(kernel, X, Y)
        close(kernel(X, Y), wanted, 1e-12)
        close(kernel(csr_array(X), csr_matrix(Y)), wanted, 1e-12)
        close(kernel(X.astype(np.float32), Y.astype(np.float32)), wanted, 1e-5)
        close(kernel(csr_array(X, dtype=np.float32), csr_array(Y, dtype=np.float32)), wanted, 1e-5)
        close(kernel.diagonal(X), np.diag(naive_matrix(kernel, X)), 1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_wide_sparse_rows(kernel):
    X, Y = np.zeros((5, 3000)), np.zeros((9, 3000))
    X[:, ::300], Y[:, ::300] = rows(5, 10, 3), rows(9, 10, 4)
    close(kernel(csr_array(X), csr_array(Y)), naive_matrix(kernel, X, Y), 1e-12)
    close(
        kernel(csr_array(X, dtype=np.float32), csr_array(Y, dtype=np.float32)),
        naive_matrix(kernel, X, Y),
        1e-5,
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_one_pair_is_an_entry_of_the_matrix(kernel):
    X = rows(6, 5, 5)
    matrix = kernel(X)
    assert [[kernel(x, y) for y in X] for x in X] == matrix.tolist()
    close(matrix, matrix.T, 1e-14)
    assert np.array_equal(kernel.diagonal(X), [kernel.diagonal(x[None, :])[0] for x in X])


def test_a_point_is_at_distance_0_from_itself():
    X = np.random.default_rng(0).normal(size=(40, 37)) * 1e3
    for Z in (X, X.astype(np.float32), csr_array(X)):
        for kernel in (Gaussian(10.0), Laplacian(10.0)):
            if isinstance(Z, csr_array) and isinstance(kernel, Laplacian):
                assert np.diag(kernel(Z)) == pytest.approx(np.ones(40), abs=1e-9)  # a sum of differences of sums
            else:
                assert np.array_equal(np.diag(kernel(Z)), np.ones(40))


# ---- exp -----------------------------------------------------------------------------------------


def ulps(found, exact, kind):
    """Distance in units of the last place of `kind`, measured in a longer float."""
    near = exact.astype(kind)
    place = np.spacing(np.abs(near)).astype(np.longdouble)
    return np.abs(found.astype(np.longdouble) - exact) / place


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs a float longer than double")
def test_exp_is_within_two_ulp():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(-707.9, 709.7, 200_000), rng.uniform(-1, 1, 100_000), [0.0, 1e-300, -1e-17]])
    # With one feature and sigma 1 the exponent is the product with 1: exactly t.
    values = Exponential(1.0)(t[:, None], np.ones((1, 1)))[:, 0]
    assert ulps(values, np.exp(t.astype(np.longdouble)), np.float64).max() < 2


def test_exp_in_single_precision_is_within_two_ulp():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.uniform(-86.9, 88.7, 200_000), rng.uniform(-1, 1, 100_000)]).astype(np.float32)
    values = Exponential(1.0)(t[:, None], np.ones((1, 1), dtype=np.float32))[:, 0]
    assert ulps(values.astype(np.float32), np.exp(t.astype(np.longdouble)), np.float32).max() < 2


def test_exp_at_the_ends_of_its_range():
    def exp(t, kind=np.float64):
        return Exponential(1.0)(np.array([[t]], dtype=kind), np.ones((1, 1), dtype=kind))[0, 0]

    assert exp(-1e5) == 0
    assert exp(-750.0) == 0
    assert exp(0.0) == 1
    assert exp(709.7) == pytest.approx(np.exp(709.7), rel=1e-15)
    assert exp(720.0) == np.inf
    assert exp(-200.0, np.float32) == 0
    assert exp(100.0, np.float32) == np.inf
    far = Gaussian(1.0)(np.array([[0.0]]), np.array([[1e100], [30.0], [1.0]]))[0]
    assert far.tolist() == [0.0, 0.0, pytest.approx(np.exp(-1), rel=1e-15)]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs a float longer than double")
def test_tanh_is_accurate_near_0_and_far():
    t = np.concatenate([np.logspace(-12, 1.5, 2000), -np.logspace(-12, 1.5, 2000), [0.0]])
    values = Sigmoid(1.0, 0.0)(t[:, None], np.ones((1, 1)))[:, 0]
    exact = np.tanh(t.astype(np.longdouble))
    assert np.abs(values - exact)[exact != 0].max() <= 1e-15
    assert (np.abs(values - exact) / np.maximum(np.abs(exact), 1e-300)).max() < 1e-13


# ---- instruction sets ----------------------------------------------------------------------------

PROGRAM = """
import numpy as np, gristmill as g
from gristmill import _core
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 37)) * 0.15
y = np.sign(X[:, 0] + X[:, 1] * X[:, 2]).astype(int)
kernel = g.Gaussian(0.5) + g.Normalized(g.Polynomial(2)) * g.Laplacian(0.1) + g.Sigmoid(0.3)
model = g.KernelClassifier(kernel, g.SGD(g.Logistic(), 0.3, 0.02), g.DropOldest(37))
scores = model.prequential(X, y)
single = g.KernelClassifier(kernel, g.SGD(g.Logistic(), 0.3, 0.02), g.DropOldest(37))
print(_core.isa())
print(*[s.hex() for s in scores.tolist()])
print(*single.prequential(X.astype(np.float32), y).tolist())
"""


def run_with(isa):
    environment = {**os.environ, "GRISTMILL_ISA": isa}
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return out[0], np.array([float.fromhex(s) for s in out[1].split()]), np.array(out[2].split(), dtype=float)


def test_instruction_sets_agree():
    names, double, single = zip(*(run_with(isa) for isa in _core.isas()), strict=True)
    assert list(names) == _core.isas()
    for other in double[1:]:
        close(other, double[0], 1e-12)
    for other in single:
        close(other, double[0], 1e-4)
    # the present process must give the bits of a process that asked for the same set
    scope: dict = {"print": lambda *a: None}
    exec(PROGRAM, scope)
    assert np.array_equal(scope["scores"], double[names.index(_core.isa())])


# ---- refusals ------------------------------------------------------------------------------------


def test_vovk_refuses_points_outside_the_unit_ball():
    with pytest.raises(ValueError, match=r"row 1 has norm 1\.5.*norm below 1"):
        Vovk()([[0.1, 0.2], [1.5, 0.0]], [[0.1, 0.1]])
    model = KernelClassifier(Vovk()).fit([[0.1], [0.2]], [0, 1])
    with pytest.raises(ValueError, match="row 0 has norm 1, but"):
        model.partial_fit([[1.0]], [0])
    assert model.n_seen_ == 2


def test_normalized_refuses_a_negative_diagonal():
    with pytest.raises(ValueError, match=r"k\(x, x\) = .* < 0"):
        Normalized(Sigmoid(1.0, -5.0))([[0.1], [0.2]], [[0.3]])

    def negative(x, y):
        return -float(x @ y)

    kernel = Normalized(negative)
    with pytest.raises(ValueError, match=r"k\(x, x\) = -4\.0 < 0"):
        kernel([np.array([2.0])], [np.array([1.0])])
    model = KernelClassifier(kernel)
    with pytest.raises(ValueError, match="positive definite"):
        model.fit(np.array([[2.0], [1.0]]), [0, 1])


def test_normalized_is_0_where_a_point_is_0():
    assert Normalized(Linear())([[0.0], [2.0]], [[0.0], [3.0]]).tolist() == [[0.0, 0.0], [0.0, 1.0]]
    python = Normalized(PythonKernel(lambda x, y: float(x @ y)))
    assert python([np.zeros(1)], [np.ones(1)]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Gaussian(0.0), "gamma must be a number > 0, got 0.0"),
        (lambda: Gaussian(np.nan), "gamma must be a number > 0, got nan"),
        (lambda: Gaussian("a"), "gamma must be a number > 0, got 'a'"),
        (lambda: Polynomial(0), "degree must be a whole number"),
        (lambda: Polynomial(2**40), "degree must be a whole number"),
        (lambda: Vovk(10**9), "degree must be a whole number"),
        (lambda: Polynomial(2, 1.0, -1.0), "coef0 must be a number >= 0"),
        (lambda: -1.0 * Gaussian(1.0), "factor must be a number > 0"),
        (lambda: Gaussian(1.0) + 3, "kernel must be"),
        (lambda: KernelClassifier("rbf").fit([[1.0]], [0]), "kernel must be .* got 'rbf'"),
        (lambda: Gaussian(1.0)([[1.0]], [[1.0, 2.0]]), "same number of features, got 1 and 2"),
        (lambda: Gaussian(1.0)([[np.nan]], [[1.0]]), "contains NaN: row 0, column 0"),
        (lambda: Gaussian(1.0)([[1.0]], [[1.0], [np.inf]]), "contains infinity: row 1"),
        (lambda: Gaussian(1.0)([[1e200]], [[1.0]]), "row 0 is too large"),
        (lambda: Gaussian(1.0)([[1.0]], [[1e200]]), "row 0 is too large"),
        (lambda: Gaussian(1.0)(np.zeros((2, 2, 2))), "3 dimensions"),
    ],
)
def test_refusals_name_what_is_wrong(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
