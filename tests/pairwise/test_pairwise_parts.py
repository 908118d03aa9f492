"""Losses, buffers and maps of the user's in the pairwise learners; labels and parameters are named."""

from __future__ import annotations

import numpy as np
import pytest

import gristmill
from gristmill import Gaussian, PairwiseAUC, PairwiseMetric, Polynomial, RandomMaclaurin, TwoStageMKL
from gristmill.pairwise import AUCPairs, PairwiseLearner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)


def test_a_ranker_over_a_map_is_saved_with_the_width_of_its_inputs(tmp_path):
    model = PairwiseAUC(features=RandomMaclaurin(Polynomial(2), 50, random_state=1), random_state=0).fit(X, Y)
    model.save(tmp_path / "m")
    again = gristmill.load(tmp_path / "m")
    assert again.n_features_in_ == 4
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.partial_fit(X, Y).coef_, model.partial_fit(X, Y).coef_)


class Rude(AUCPairs):
    """A loss that writes to what it is shown."""

    def gradient(self, w, x, y, others, labels):
        x[:] = 0
        return w


class Wordy(AUCPairs):
    def value(self, w, x, y, others, labels):
        return "much"


def test_a_loss_cannot_write_to_what_it_is_shown_and_must_speak_in_numbers():
    rows = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        PairwiseLearner(Rude()).fit(rows, Y)
    assert np.array_equal(rows, X)
    with pytest.raises(ValueError, match=r"row 1: value\(\) of .*Wordy.* must return a number, got 'much'"):
        PairwiseLearner(Wordy()).fit(X, Y)


class Offering:
    size = 5

    def __init__(self, answer):
        self.answer = answer

    def offer(self, step, x, label, filled):
        return self.answer


@pytest.mark.parametrize("answer", ["a", 1.5, [0, "b"]])
def test_a_buffer_must_answer_in_positions(answer):
    with pytest.raises(ValueError, match=r"offer\(\) must return None, a position >= 0 or several, got "):
        PairwiseAUC(buffer=Offering(answer)).fit(X, Y)


def test_labels_and_parameters_are_named():
    with pytest.raises(ValueError, match="Input y contains NaN: row 2 is nan"):
        PairwiseAUC().fit(X[:4], [1.0, 0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match="PairwiseMetric: Unknown label type: y, row 1 is None"):
        PairwiseMetric().fit(X[:3], np.array(["a", None, "b"], dtype=object))
    with pytest.raises(ValueError, match="random_state must be None, an int >= 0"):
        PairwiseAUC(random_state=-1).fit(X, Y)
    with pytest.raises(ValueError, match="kernels must be a list of kernels"):
        TwoStageMKL(Gaussian(1.0)).fit(X, Y)
