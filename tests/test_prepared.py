"""Prepared, one event at a time."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import (
    Gaussian,
    Prepared,
    passive_aggressive,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_prepared_one_by_one_is_the_same_and_bad_events_change_nothing(scale):
    def new():
        return Prepared(passive_aggressive(Gaussian(0.5), size=50), scale)

    whole, single = new().fit(X, Y), new()
    for place, (row, label) in enumerate(zip(X, Y, strict=True)):
        single.learn_one(row, label)
        if place == 100:
            for bad in (np.array([1.0, np.nan, 0, 0]), np.ones(3)):
                with pytest.raises(ValueError, match=r"column 1|3 features"):
                    single.learn_one(bad, 1)
    assert np.array_equal(whole.decision_function(X), single.decision_function(X))
    assert whole.score_one(X[5]) == whole.decision_function(X[5:6])[0]
    assert whole.predict_one(X[5]) == whole.predict(X[5:6])[0]
