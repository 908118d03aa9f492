"""Rows of very many columns: learned where the memory allows it, else refused with what would do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array

from gristmill import AutoClassifier, AutoNovelty, AutoRegressor, KernelClassifier, KernelRegressor, Linear, Merge

WIDTH = 16_000
S = random_array((60, WIDTH), density=0.002, format="csr", random_state=0)
Y = np.arange(60) % 2


@pytest.mark.parametrize(("kind", "expert"), [(AutoClassifier, KernelClassifier), (AutoRegressor, KernelRegressor)])
def test_too_little_memory_names_columns_bytes_and_what_else_there_is(kind, expert):
    with pytest.raises(
        ValueError, match=r"1000000 bytes are too few for 16000 columns .* at least \d+ bytes; sparse rows"
    ):
        kind(experts=[expert(budget=Merge(500))] * 3).partial_fit(S, Y)


def test_a_detector_says_how_much_would_do():
    with pytest.raises(ValueError, match="AutoNovelty: memory: 1000000 bytes are too few for rows of 16000 columns"):
        AutoNovelty().partial_fit(S)


def test_enough_memory_is_enough():
    model = AutoClassifier(memory="32 MB").partial_fit(S, Y)
    assert model.memory_bytes_ <= 32_000_000
    assert set(model.predict(S)) <= {0, 1}


def test_what_the_error_names_works():
    model = KernelClassifier(Linear(), budget=Merge(500)).fit(S, Y)
    assert model.predict(S).shape == (60,)
