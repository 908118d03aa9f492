"""Similarities made positive by their spectrum."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem

import gristmill
from gristmill import Gaussian, Landmarks, Manhattan, Sigmoid
from gristmill.similarity import SpectrumLandmarks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NEW = RNG.normal(size=(15, 3))
INDEFINITE = Sigmoid(0.7, -0.5)


def changed(S, spectrum):
    values, vectors = np.linalg.eigh(S)
    new = {"clip": np.maximum(values, 0), "flip": np.abs(values), "square": values**2}[spectrum]
    return (vectors * new) @ vectors.T


@pytest.mark.parametrize("spectrum", ["clip", "flip", "square"])
def test_with_all_objects_the_inner_products_are_the_changed_matrix(spectrum):
    S = INDEFINITE(X, X)
    assert np.linalg.eigvalsh(S)[0] < -1
    direct = SpectrumLandmarks(INDEFINITE, 60, spectrum=spectrum).fit(X)
    looked = SpectrumLandmarks("precomputed", 60, spectrum=spectrum).fit(S)
    for Z in (direct.transform(X), looked.transform(S), direct.fit_transform(X)):
        np.testing.assert_allclose(Z @ Z.T, changed(S, spectrum), atol=1e-9)
    # A new object against the training ones: the linear map that changes S changes its row as well.
    linear = changed(S, spectrum) @ np.linalg.pinv(S, rcond=1e-10)
    found = direct.transform(NEW) @ direct.transform(X).T
    np.testing.assert_allclose(found, INDEFINITE(NEW, X) @ linear.T, atol=1e-7)
    assert np.array_equal(direct.eigenvalues_, np.sort(direct.eigenvalues_))


def test_a_shift_makes_the_landmarks_own_matrix_positive():
    S = INDEFINITE(X, X)
    model = SpectrumLandmarks(INDEFINITE, 60, spectrum="shift").fit(X)
    shifted = S - np.linalg.eigvalsh(S)[0] * np.eye(60)
    # The features solve Z z = s, Z Z^T the shifted matrix: z z' = s shifted^-1 s'.
    Z = model.transform(NEW)
    values, vectors = np.linalg.eigh(S)
    kept = (np.abs(values) > 1e-10 * np.abs(values).max()) & (values - values[0] > 1e-10 * np.abs(values).max())
    inverse = (vectors[:, kept] / (values[kept] - values[0])) @ vectors[:, kept].T
    s = INDEFINITE(NEW, X)
    np.testing.assert_allclose(Z @ Z.T, s @ inverse @ s.T, atol=1e-8)
    assert np.linalg.eigvalsh(shifted)[0] > -1e-9


@pytest.mark.parametrize("spectrum", ["clip", "flip"])
def test_a_kernel_is_left_as_it_is(spectrum):
    """Nystroem of scikit-learn on the same landmarks."""
    model = SpectrumLandmarks(Gaussian(0.4), 20, spectrum=spectrum, random_state=3).fit(X)
    theirs = Nystroem(kernel="rbf", gamma=0.4, n_components=20).fit(model.landmarks_)
    A, B = model.transform(NEW), theirs.transform(NEW)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-7)
    assert np.all(model.eigenvalues_ > 0)


def test_landmarks_are_square():
    plain = Landmarks(INDEFINITE, 20, normalize=False, random_state=3).fit(X)
    model = SpectrumLandmarks(INDEFINITE, 20, spectrum="square", random_state=3).fit(X)
    assert np.array_equal(plain.landmark_indices_, model.landmark_indices_)
    A, B = plain.transform(NEW), model.transform(NEW)
    np.testing.assert_allclose(B @ B.T, A @ A.T, rtol=1e-8)


def test_files_and_names_of_columns():
    model = SpectrumLandmarks(Manhattan(), 12, "diverse", "flip", random_state=1).fit(X)
    again = gristmill.from_bytes(model.to_bytes())
    assert np.array_equal(again.transform(NEW), model.transform(NEW))
    assert len(model.get_feature_names_out()) == model.transform(NEW).shape[1] <= 12


def test_objects_and_asymmetric_similarities():
    words = ["grist", "mill", "stream", "stone", "wheel", "water"]
    model = SpectrumLandmarks(lambda a, b: len(set(a) & set(b)) / len(a), 6, spectrum="clip").fit(words)
    Z = model.transform(words)
    assert np.isfinite(Z).all()
    assert np.all(np.linalg.eigvalsh(Z @ Z.T) > -1e-9)


def test_refusals():
    with pytest.raises(ValueError, match="a square matrix, got 60 x 5"):
        SpectrumLandmarks("precomputed", 5).fit(INDEFINITE(X, X[:5]))
    with pytest.raises(TypeError, match="spectrum must be one of"):
        SpectrumLandmarks(spectrum="drop").fit(X)
    with pytest.raises(ValueError, match="no eigenvalue that spectrum='clip' keeps"):
        SpectrumLandmarks("precomputed", 3).fit(-np.eye(3))
