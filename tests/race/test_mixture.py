"""The mixture of a race: weights that follow losses, probabilities of each expert, and the history that is told."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import _core


def softmax_of(calibration, scores, k):
    return calibration.probabilities(scores[None], k)[0]


def twin(said, labels, classes, share, gap=10.0, doubt=0.3):
    """The mixture in NumPy: said is (experts, rows, outputs). Each expert has a voice with a shift, and one without."""
    experts, m = len(said), 2 * len(said)
    said = np.concatenate([said, said])
    weights, out = np.full(m, 1 / m), []
    calibrations = [_core.Calibration(shifts=voice < experts) for voice in range(m)]
    for calibration in calibrations:
        for known in range(2, classes):
            if known == 2:
                calibration.split()
            calibration.add()
    k = max(classes, 2)
    for row, label in enumerate(labels.astype(int)):
        shares = np.stack([softmax_of(c, s[row], k) for c, s in zip(calibrations, said, strict=True)])
        voices = weights - share / m  # what was dealt out to all says nothing
        out.append(voices @ shares / voices.sum())
        unsure = np.minimum(5.0, -np.log(np.maximum(shares[:, label], 1e-9)))
        loss = (1 - doubt) * (shares.argmax(axis=1) != label) + doubt * unsure
        eta = np.log(m) / gap
        tried = weights * np.exp(-eta * (loss - loss.min()))
        gap = max(10.0, 0.999 * gap + max(0.0, weights @ loss - (loss.min() - np.log(tried.sum()) / eta)))
        weights = (1 - share) * tried / tried.sum() + share / m
        for calibration, scores in zip(calibrations, said, strict=True):
            calibration.learn(scores[row], int(label))
    return np.array(out), weights.reshape(2, experts).sum(axis=0)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_mixture_agrees_with_its_twin(classes):
    rng = np.random.default_rng(classes)
    labels = rng.integers(classes, size=400).astype(float)
    outputs = 1 if classes == 2 else classes
    signal = 2 * labels[:, None] - 1 if classes == 2 else np.eye(classes)[labels.astype(int)]
    said = np.stack([signal * strength + rng.normal(size=(400, outputs)) for strength in (0.1, 1.0, 3.0)])
    mixture = _core.Mixture("classes", 3, 0.01)
    mixture.add_classes(classes)
    scores = np.concatenate(
        [mixture.learn(said[:, a:b].copy(), [0, 1, 2], labels[a:b], classes) for a, b in ((0, 7), (7, 400))]
    )
    shares, weights = twin(said, labels, classes, 0.01)
    expected = np.log(shares[:, 1:] / shares[:, :1]) if classes == 2 else np.log(shares)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mixture.weights, weights, rtol=1e-9)
    assert mixture.weights.argmax() == 2
    np.testing.assert_allclose(mixture.probabilities(scores).sum(axis=1), 1.0)


@pytest.mark.parametrize("lean", [0.0, 2.0])
def test_a_shift_between_the_classes_is_learned_where_it_helps_and_else_not_followed(lean):
    rng = np.random.default_rng(1)
    labels = (rng.random(3000) < 0.5).astype(float)
    said = (2 * labels - 1 + lean + rng.normal(size=3000))[None, :, None]
    mixture = _core.Mixture("classes", 1, 0.002)
    mixture.add_classes(2)
    wrong = (mixture.learn(said, [0], labels, 2)[:, 0] >= 0) != labels
    own = (said[0, :, 0] >= 0) != labels
    assert mixture.errors[0] == own.sum()  # what is reported of an expert are its own mistakes
    if lean:
        assert wrong[500:].mean() < 0.6 * own[500:].mean()
    else:
        assert wrong.sum() <= own.sum() + 10


def test_a_forged_state_is_refused():
    labels = (np.random.default_rng(2).random(200) < 0.5).astype(float)
    mixture = _core.Mixture("classes", 2, 0.01)
    mixture.add_classes(2)
    mixture.learn(np.random.default_rng(3).normal(size=(2, 200, 1)), [0, 1], labels, 2)
    for name in ("hedge_weights", "recent"):
        with pytest.raises(ValueError, match=name):
            _core.Mixture("classes", 2, 0.01).restore({**mixture.state(), name: np.ones(3)})


def test_an_expert_whose_scores_are_not_finite_leaves_at_that_row():
    rng = np.random.default_rng(0)
    labels = (rng.random(60) < 0.5).astype(float)
    said = rng.normal(size=(2, 60, 1))
    gone = said.copy()
    gone[1, 40:] = np.nan
    whole, cut = _core.Mixture("classes", 2, 0.01), _core.Mixture("classes", 2, 0.01)
    for mixture in (whole, cut):
        mixture.add_classes(2)
    first = whole.learn(gone, [0, 1], labels, 2)
    parts = [
        cut.learn(said[:, :40].copy(), [0, 1], labels[:40], 2),
        cut.learn(gone[:, 40:].copy(), [0, 1], labels[40:], 2),
    ]
    np.testing.assert_array_equal(first, np.concatenate(parts))
    np.testing.assert_allclose(whole.weights, [1.0, 0.0], rtol=1e-15, atol=0)  # a sum over two voices


def test_the_history_is_thinned_and_told_in_order():
    mixture = _core.Mixture("numbers", 2, 0.01)
    said = np.zeros((2, 50_000, 1))
    said[1] = 1.0
    mixture.learn(said, [0, 1], np.zeros(50_000), 0)
    history = mixture.history
    assert 64 <= len(history) <= 128
    assert (np.diff(history[:, 0]) > 0).all()
    np.testing.assert_allclose(history[:, 2:4].sum(axis=1), 1.0, rtol=1e-6)
    assert history[-1, 2] > 0.9
    assert history[-1, 4:].tolist() == [0.0, 1.0]
