"""Synthetic streams: what their documents say of them."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import streams

MAKERS = [
    streams.drifting_mixture,
    streams.switching_mixture,
    streams.silk_sequence,
    streams.two_gaussians,
    streams.sea,
    streams.rotating_hyperplane,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_length_seed_and_labels(make):
    stream = make(2345, random_state=5)
    X, y = stream.arrays()
    again, _ = stream.arrays()
    other, _ = make(2345, random_state=6).arrays()
    assert len(X) == len(y) == stream.n_events == 2345
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)
    assert set(np.unique(y)) == set(stream.classes) == {-1, 1}
    assert 0.3 < (y == 1).mean() < 0.7
    with pytest.raises(ValueError, match="n_events must be at least 1, got 0"):
        make(0)


def test_two_gaussians_have_the_bayes_error_they_say():
    stream = streams.two_gaussians(200_000, random_state=1)
    X, y = stream.arrays()
    rule = np.sign(X @ np.array([1 / 0.2, 1 / 2.0]))
    assert (rule != y).mean() == pytest.approx(stream.bayes_error, abs=0.003)


def test_silk_sequence_has_the_bayes_error_it_says():
    # Over a short stretch the path is straight, so a line between the classes is the best rule.
    stream = streams.silk_sequence(100_000, speed=1e-6, random_state=0)
    X, y = stream.arrays()
    across = np.array([-1.0, 1.0]) / np.sqrt(2)
    assert (np.where(X @ across >= 0, 1, -1) != y).mean() == pytest.approx(stream.bayes_error, abs=0.004)


def test_silk_sequence_may_turn_until_places_change_their_class():
    X, y = streams.silk_sequence(20_000, speed=1e-6, turns=0.5, random_state=0).arrays()
    across = np.array([-1.0, 1.0]) / np.sqrt(2)
    right = np.where(X @ across >= 0, 1, -1) == y
    assert right[:1000].mean() > 0.9
    assert right[-1000:].mean() < 0.1


def test_sea_and_hyperplane_have_the_noise_they_say():
    X, y = streams.sea(40_000, noise=0.1).arrays()
    threshold = np.repeat([8.0, 9.0, 7.0, 9.5], 10_000)
    assert ((X[:, 0] + X[:, 1] <= threshold) != (y == 1)).mean() == pytest.approx(0.1, abs=0.01)
    clean = streams.rotating_hyperplane(4000, noise=0.0, turns=0.0)
    X, y = clean.arrays()
    from sklearn.linear_model import LogisticRegression

    assert LogisticRegression(C=1e6, max_iter=1000).fit(X, y).score(X, y) > 0.99


@pytest.mark.parametrize("make", [streams.drifting_mixture, streams.switching_mixture])
def test_mixtures_are_cleanly_separable_for_a_while(make):
    from sklearn.svm import SVC

    X, y = make(1000, random_state=2).arrays()
    assert SVC(gamma=2.0, C=1e4).fit(X[:300], y[:300]).score(X[:300], y[:300]) == 1.0


def test_switching_switches():
    X, y = streams.switching_mixture(2000, random_state=0).arrays()
    means = [X[start : start + 1000][y[start : start + 1000] == 1].mean(axis=0) for start in (0, 1000)]
    assert np.linalg.norm(means[0] - means[1]) > 0.5


def test_shares_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"flip must be in \[0, 0.5\], got 0.7"):
        streams.two_gaussians(flip=0.7)
    with pytest.raises(ValueError, match="every must be at least 1"):
        streams.switching_mixture(every=0)
    with pytest.raises(ValueError, match="n_features must be at least 2"):
        streams.rotating_hyperplane(n_features=1)
