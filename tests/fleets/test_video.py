"""Background subtraction: a mask of 0 and 255, over a fleet that is its learners."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import median_filter

from gristmill import KernelRegressor
from gristmill.video import BackgroundSubtractor, smooth


def scene(count, seed=0, shape=(24, 32, 3)):
    return np.random.default_rng(seed).integers(100, 112, size=(count, *shape), dtype=np.uint8)


@pytest.mark.parametrize("shape", [(24, 32), (24, 32, 3)])
def test_what_is_new_is_marked(shape):
    subtractor = BackgroundSubtractor()
    masks = [subtractor.apply(frame) for frame in scene(40, shape=shape)]
    assert masks[0].dtype == np.uint8
    assert masks[0].shape == (24, 32)
    assert not masks[0].any()
    assert not masks[-1].any()
    frame = scene(1, 1, shape)[0]
    frame[5:15, 8:20] = 240
    mask = subtractor.apply(frame)
    assert set(np.unique(mask)) == {0, 255}
    assert (mask[7:13, 10:18] == 255).all()
    assert not mask[:, 24:].any()


def test_each_pixel_has_the_learner_that_it_would_have_alone():
    frames = scene(30)
    subtractor = BackgroundSubtractor()
    scores = np.stack([subtractor.score(frame) for frame in frames])
    alone = subtractor.prototype.prequential(frames[:, 3, 7].astype(np.float32) / np.float32(255))
    assert np.array_equal(scores[:, 3, 7], alone)


def test_many_frames_at_a_time_are_one_by_one():
    frames = scene(20)
    frames[12:, 4:12, 5:15] = 250
    one, many = BackgroundSubtractor(), BackgroundSubtractor()
    masks = np.stack([one.apply(frame) for frame in frames])
    assert np.array_equal(many.apply_many(frames[:7]), masks[:7])
    assert np.array_equal(many.apply_many(frames[7:]), masks[7:])
    assert masks[12].any()


def test_whole_numbers_are_parts_of_their_largest():
    frames = scene(10)
    said = [BackgroundSubtractor() for _ in range(3)]
    for frame in frames:
        scores = [
            model.score(frame * np.array(scale, dtype))
            for model, scale, dtype in zip(said, (1, 257, 1), (np.uint8, np.uint16, np.uint8), strict=True)
        ]
    assert np.array_equal(scores[0], scores[2])
    assert np.allclose(scores[0], scores[1], atol=1e-5)


@pytest.mark.parametrize("side", [1, 3, 5, 17])
def test_the_majority_is_the_median(side):
    new = np.random.default_rng(0).random((20, 30)) < 0.5
    assert np.array_equal(smooth(new, side) > 0, median_filter(new.astype(np.uint8), side, mode="nearest") > 0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="odd"):
        BackgroundSubtractor(median=4)
    with pytest.raises(TypeError, match="KernelNovelty"):
        BackgroundSubtractor(KernelRegressor())
    subtractor = BackgroundSubtractor()
    subtractor.apply(scene(1)[0])
    with pytest.raises(ValueError, match="shape"):
        subtractor.apply(scene(1, shape=(24, 30, 3))[0])
    with pytest.raises(ValueError, match="shape"):
        subtractor.apply(np.zeros(5))
    with pytest.raises(ValueError, match="type"):
        subtractor.apply(scene(1)[0].astype(float))
    for wrong in (np.int64, complex):
        with pytest.raises(ValueError, match="uint8"):
            BackgroundSubtractor().apply(scene(1)[0].astype(wrong))
    for wrong in (np.nan, "a", None, True):
        with pytest.raises(ValueError, match="threshold"):
            BackgroundSubtractor(threshold=wrong)
