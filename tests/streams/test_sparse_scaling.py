"""Sparse rows behind a scaling: divided and not centred, alike in every cut."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import gristmill
from gristmill import DropOldest, Gaussian, KernelClassifier, KernelRegressor, Merge, Prepared, merge


def events(count=400, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(count, 6)) * (rng.random((count, 6)) < 0.4) * [1.0, 1000.0, 0.01, 5.0, 1.0, 30.0]
    return csr_array(dense), dense[:, 0] + dense[:, 1] / 1000 > 0


def divided(dense, scale):
    """By the root mean square of a column so far, zeros counted; or by its range with 0 in it."""
    out = np.zeros_like(dense)
    squares = np.zeros(dense.shape[1])
    low, high = np.zeros(dense.shape[1]), np.zeros(dense.shape[1])
    for row, x in enumerate(dense):
        if scale == "minmax":
            low, high = np.minimum(low, x), np.maximum(high, x)
            spread = high - low
        else:
            count = max(row, 1)
            spread = np.sqrt(squares / count)
            reach = np.where((spread > 0) & (row >= 16), 5 * spread, np.inf)
            squares = squares + np.clip(x, -reach, reach) ** 2
            spread = np.sqrt(squares / (row + 1))
        z = x / np.where(spread > 0, spread, 1.0)
        if scale != "minmax":
            over = np.maximum(np.abs(z) - 5, 0.0)
            z = np.where(over > 0, np.sign(z) * (5 + over / (1 + over / 5)), z)
        out[row] = z
    return out


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_a_column_is_divided_and_not_centred(scale):
    X, y = events()
    model = Prepared(KernelClassifier(Gaussian(0.3), budget=DropOldest(50)), scale)
    plain = KernelClassifier(Gaussian(0.3), budget=DropOldest(50))
    np.testing.assert_allclose(
        model.prequential(X, y), plain.prequential(csr_array(divided(X.toarray(), scale)), y), atol=1e-9
    )


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("warmup", [None, 30])
def test_cuts_files_and_copies_change_no_bit(scale, warmup, tmp_path):
    X, y = events()
    whole, cut = (Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(40)), scale, warmup) for _ in range(2))
    expected, said, start = whole.prequential(X, y), [], 0
    for stop in (2, 3, 17, 18, 200, 201, 400):
        said.append(cut.prequential(X[start:stop], y[start:stop]))
        cut.save(tmp_path / "model")
        cut, start = copy.deepcopy(pickle.loads(pickle.dumps(gristmill.load(tmp_path / "model")))), stop
    np.testing.assert_array_equal(expected, np.concatenate(said))
    np.testing.assert_array_equal(whole.decision_function(X), cut.decision_function(coo_array(X)))
    assert whole.predict_one(X[[3]]) == whole.predict(X[[3]])[0]


def test_dense_rows_after_sparse_ones_are_divided_too():
    X, y = events()
    mixed, sparse = (
        Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(40))).fit(X[:200], y[:200]) for _ in range(2)
    )
    mixed.partial_fit(X[200:].toarray(), y[200:])
    sparse.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(mixed.decision_function(X.toarray()), sparse.decision_function(X))


def test_units_of_columns_do_not_matter():
    X, y = events()
    twos = csr_array(X.toarray() * 2.0 ** np.array([3, -9, 0, 20, 1, -1]))
    said = [Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(40))).prequential(rows, y) for rows in (X, twos)]
    np.testing.assert_array_equal(*said)


def test_gradients_are_in_the_units_of_the_columns():
    X, _ = events()
    y = X.toarray()[:, 0]
    model = Prepared(KernelRegressor(Gaussian(0.3), budget=Merge(60))).fit(X, y)
    row = X[[7]].toarray()
    step = np.zeros((1, 6))
    step[0, 0] = 1e-5
    slope = (model.predict(csr_array(row + step)) - model.predict(csr_array(row - step))) / 2e-5
    np.testing.assert_allclose(model.gradient(X[[7]])[0, 0], slope[0], rtol=1e-4)


def test_what_does_not_fit_is_refused_and_changes_nothing():
    X, y = events()
    model = Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(40))).fit(X, y)
    before = model.to_bytes()
    bad = X[:10].copy()
    bad.data[3] = np.nan
    with pytest.raises(ValueError, match="is not a finite number"):
        model.partial_fit(bad, y[:10])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(csr_array(np.eye(3)), y[:3])
    assert model.to_bytes() == before
    dense = Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(40))).fit(X.toarray(), y)
    with pytest.raises(TypeError, match="these must be dense"):
        dense.partial_fit(X, y)
    with pytest.raises(TypeError, match="weighs sparse rows of at most 1,024 columns"):
        Prepared(KernelClassifier(), "relevance").fit(csr_array((2, 1025)), [0, 1])
    with pytest.raises(ValueError, match="too many; use scale=None"):
        Prepared(KernelClassifier()).fit(csr_array((2, 2**30)), [0, 1])


def test_models_of_sparse_rows_merge_in_their_units():
    X, y = events()
    parts = [Prepared(KernelClassifier(Gaussian(0.3), budget=Merge(100))).fit(X[at::2], y[at::2]) for at in (0, 1)]
    one = merge(parts)
    assert (one.predict(X) == y).mean() > 0.8
