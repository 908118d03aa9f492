"""However the stream is cut, bit for bit: every kernel over every kind of rows, with budgets that look at what leaves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from gristmill import (
    DropOldest,
    Exponential,
    FeasibleSet,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Linear,
    Manhattan,
    Normalized,
    PassiveAggressive,
    Polynomial,
    forgetron,
    norma_classifier,
    projection_classifier,
)

KERNELS = [
    Gaussian(1.0),
    Laplacian(0.7),
    Polynomial(3),
    Exponential(1.0),
    Normalized(Polynomial(2)),
    Gaussian(0.5) * Laplacian(1.0) + Linear(),
]
LEARNERS = {
    "Forget": lambda kernel: forgetron(kernel, 30),
    "Forget, basic": lambda kernel: forgetron(kernel, 30, basic=True),
    "DropOldest": lambda kernel: KernelClassifier(kernel, PassiveAggressive(), DropOldest(30)),
    "Window": lambda kernel: norma_classifier(kernel, 0.5, 0.01, window=50),
    "a ball": lambda kernel: projection_classifier(kernel, radius=2.0),
}


def _rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 7)) * (rng.random((400, 7)) < 0.6)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    wide = np.zeros((400, 3000))
    wide[:, ::430] = X
    kinds = {"dense": X, "float32": X.astype(np.float32), "CSR": csr_array(X), "wide CSR": csr_array(wide)}
    return kinds, np.where(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=400) > 0, 1, -1)


ROWS, LABELS = _rows()


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pieces_make_the_same_model(kernel, kind, learner):
    X, y = ROWS[kind], LABELS
    whole = LEARNERS[learner](kernel)
    said = whole.prequential(X, y)
    pieces = LEARNERS[learner](kernel)
    cuts = [0, 7, 150, *range(151, 200), 203, 400]
    told = [pieces.prequential(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    assert np.array_equal(np.concatenate(told), said)
    assert np.array_equal(pieces.dual_coef_, whole.dual_coef_)
    assert np.array_equal(pieces.support_ids_, whole.support_ids_)
    assert pieces.norm_ == whole.norm_


class Wavering:
    """Drops the oldest for a while, then lets the store grow, and so on."""

    def victim(self, stored):
        ids = np.asarray(stored.ids)
        return int(ids.argmin()) if len(ids) > 10 and ids.max() % 60 < 40 else None


def test_a_budget_that_lets_the_store_grow_again():
    X, y = ROWS["dense"], LABELS

    def new():
        return KernelClassifier(Gaussian(1.0), FeasibleSet(radius=2.0), Wavering())

    whole, pieces = new().fit(X, y), new()
    for start in range(0, 400, 3):
        pieces.partial_fit(X[start : start + 3], y[start : start + 3])
    assert whole.n_support_ > 32
    assert np.array_equal(pieces.dual_coef_, whole.dual_coef_)
    assert pieces.norm_ == whole.norm_


def test_a_distance_by_coordinates_does_not_care_which_row_is_stored():
    for kernel in (Manhattan(), Laplacian(0.3)):
        for rows in (ROWS["CSR"], ROWS["wide CSR"]):
            values = kernel(rows[:50], rows[50:90])
            assert np.array_equal(values, kernel(rows[50:90], rows[:50]).T)
            assert np.array_equal(np.diag(kernel(rows[:50], rows[:50])), kernel.diagonal(rows[:50]))
            assert values == pytest.approx(kernel(rows[:50].toarray(), rows[50:90].toarray()), abs=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(0.2), Laplacian(0.1)], ids=repr)
def test_the_width_of_sparse_rows_changes_no_bit_and_takes_no_memory(kernel):
    """Columns numbered up to two thousand million, as hashed features have them: the same run as in 3,000 columns."""
    rng = np.random.default_rng(5)
    narrow = csr_array(np.where(rng.random((200, 3000)) < 0.005, rng.normal(size=(200, 3000)), 0.0))
    wide = csr_array(
        (narrow.data, narrow.indices.astype(np.int64) * 700_000, narrow.indptr), shape=(200, 2_100_000_000)
    )
    y = rng.random(200) > 0.5

    def run(X):
        return KernelClassifier(kernel, PassiveAggressive(), DropOldest(50)).prequential(X, y)

    assert np.array_equal(run(wide), run(narrow))
