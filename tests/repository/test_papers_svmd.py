"""SVMD for many classes, against the library's for two."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import Gaussian, svmd
from papers.svmd_classes import ManySVMD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))
Y = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=700) > 0).astype(np.int64)


@pytest.mark.parametrize("size", [20, 1000])
@pytest.mark.parametrize(("reg", "meta", "decay"), [(0.0, 0.1, 1.0), (0.05, 0.3, 0.9), (0.01, 0.0, 0.0)])
def test_two_classes_are_the_librarys_with_twice_the_kernel(size, reg, meta, decay):
    library = svmd(2.0 * Gaussian(0.7), rate=0.2, reg=reg, meta_rate=meta, decay=decay, size=size)
    scores = library.prequential(X, 2 * Y - 1, classes=[-1, 1])
    many = ManySVMD(Gaussian(0.7), 0.2, reg, meta, decay, size)
    assert np.array_equal(many.mistakes(X, Y), (2 * Y - 1) * scores <= 0)
    assert many.norm2 >= -1e-9


def test_inner_products_are_carried_through_steps_and_drops():
    labels = RNG.integers(4, size=300)
    seen = {}

    class Watched(ManySVMD):
        def _drop(self, values, f, v, place):
            super()._drop(values, f, v, place)
            seen["along"] = self.along, np.sum(f * (values @ v))
            seen["norm2"] = self.norm2, np.sum(f * (values @ f))

    Watched(Gaussian(0.5), 0.3, 0.02, 0.05, 0.95, 30).mistakes(X[:300], labels)
    for carried, plain in seen.values():
        assert carried == pytest.approx(plain)


def test_three_classes_are_learned():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    wrong = ManySVMD(Gaussian(0.5), 0.5, 0.0, 0.01, 0.9, 200).mistakes(X, labels)
    assert wrong[0]  # all scores are 0, and a tie is a mistake
    assert wrong[350:].mean() < 0.5 * wrong[:50].mean()


def test_a_rate_that_runs_away_is_said():
    with pytest.raises(ValueError, match="runs away"):
        ManySVMD(Gaussian(0.001), 1e100, 0.0, 1e300, 1.0, 20).mistakes(1e3 * X, Y)
