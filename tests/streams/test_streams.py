"""The stream protocol and the bundled stream."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, issparse

from gristmill.streams import Chunk, as_stream, drifting_digits, from_arrays


def total(stream):
    return sum(len(chunk.y) for chunk in stream)


@pytest.mark.parametrize(("events", "rows"), [(1, 1000), (99, 50), (100, 100), (2500, 1000), (2500, 130)])
def test_digits_have_the_length_asked_for(events, rows):
    stream = drifting_digits(n_events=events, rows=rows)
    assert total(stream) == events == stream.n_events


def test_digits_are_the_same_for_a_seed_however_they_are_cut():
    whole, labels = drifting_digits(700, random_state=3).arrays()
    again, same = drifting_digits(700, random_state=3, rows=100).arrays()
    other, _ = drifting_digits(700, random_state=4).arrays()
    assert np.array_equal(whole, again)
    assert np.array_equal(labels, same)
    assert not np.array_equal(whole, other)


def test_digits_drift_in_class_and_in_angle():
    from scipy.ndimage import rotate
    from sklearn.datasets import load_digits

    X, y = drifting_digits(20_000, turn=90.0).arrays()
    assert np.bincount(y[:500], minlength=10).argmax() == 0
    assert np.bincount(y[4700:5300], minlength=10).argmax() == 5
    images = load_digits().data
    assert all((images == x).all(axis=1).any() for x in X[:100])
    last = np.array([rotate(image.reshape(8, 8), 89.55, reshape=False, order=1).ravel() for image in images])
    assert all(np.isclose(last, x).all(axis=1).any() for x in X[-100:])


def test_take_and_skip_meet():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    stream = from_arrays(X, y, rows=3)
    for place in range(1, 10):
        head, tail = stream.take(place), stream.skip(place)
        assert (head.n_events, tail.n_events) == (place, 10 - place)
        assert np.array_equal(np.concatenate([head.arrays()[1], tail.arrays()[1]]), y)
    assert stream.take(99).n_events == 10
    with pytest.raises(ValueError, match="at least 1, got 0"):
        stream.take(0)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        stream.skip(-1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(frame):
    chunk = next(iter(from_arrays(frame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), [0, 1])))
    assert chunk.names == ("a", "b")
    assert np.array_equal(chunk.X, [[1.0, 3.0], [2.0, 4.0]])


def test_sparse_stays_sparse_and_objects_stay_objects():
    sparse, _ = from_arrays(csr_array(np.eye(5)), np.arange(5), rows=2).arrays()
    assert issparse(sparse)
    assert np.array_equal(sparse.toarray(), np.eye(5))
    words, _ = from_arrays(["to", "be", "or"], [1, 0, 1], rows=2).arrays()
    assert words == ["to", "be", "or"]


def test_as_stream_takes_what_people_hold():
    X, y = np.zeros((4, 2)), np.arange(4)
    for source in ((X, y), [Chunk(X[:2], y[:2]), (X[2:], y[2:])], from_arrays(X, y)):
        assert np.array_equal(as_stream(source).arrays()[1], y)
    assert as_stream(X).arrays()[1] is None
    with pytest.raises(TypeError, match="got str"):
        as_stream("a9a")


def test_rows_and_labels_must_be_as_many():
    with pytest.raises(ValueError, match="X has 3 rows and y has 2"):
        from_arrays(np.zeros((3, 1)), [0, 1])
