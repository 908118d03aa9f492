"""`--cluster` of `gristmill learn --key`, without Ray: what is left of the files for a run that is started again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gristmill.cli.keyed.cluster import Rest
from gristmill.streams import from_arrays

X = np.arange(50.0)[:, None]


def test_a_run_goes_on_after_what_was_learned():
    rest = Rest(from_arrays(X, X[:, 0], rows=7), SimpleNamespace(n_seen_=20))
    assert np.concatenate([chunk.y for chunk in rest.stream]).tolist() == list(range(20, 50))
    assert not rest.is_empty


def test_a_run_that_has_learned_nothing_begins_at_the_beginning():
    rest = Rest(from_arrays(X, X[:, 0], rows=7), SimpleNamespace(n_seen_=0))
    assert sum(len(chunk.y) for chunk in rest.stream) == 50
    assert not rest.is_empty


def test_a_run_that_has_learned_all_has_nothing_left():
    rest = Rest(from_arrays(X, X[:, 0], rows=7), SimpleNamespace(n_seen_=50))
    assert list(rest.stream) == []
    assert rest.is_empty


def test_fewer_events_than_were_learned_are_other_files():
    rest = Rest(from_arrays(X, X[:, 0], rows=7, name="a.csv"), SimpleNamespace(n_seen_=60))
    assert list(rest.stream) == []
    with pytest.raises(ValueError, match=r"a\.csv: 60 events were learned before, and now there are 50"):
        _ = rest.is_empty
