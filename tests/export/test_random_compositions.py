"""Exports of random compositions answer as the library does. `make fuzz` tries thousands of them."""

from __future__ import annotations

import os

import pytest

from . import test_c, test_onnx
from .compositions import case

COUNT = int(os.environ.get("GRISTMILL_EXPORTS", "16"))
FIRST = int(os.environ.get("GRISTMILL_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_in_onnx(seed):
    model, rows, limit = case(seed)
    test_onnx.agree(model, rows, limit=limit)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, COUNT // 3)))
def test_in_c(seed, tmp_path):
    model, rows, limit = case(seed, single=True)
    test_c.agree(model, rows, tmp_path, test_c.COMPILERS[seed % len(test_c.COMPILERS)], limit)
