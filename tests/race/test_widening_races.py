"""A race that gains columns keeps the kernels and the list of experts that it began with, saved or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

WORDS = ["red", "green", "blue", "amber", "teal", "black"]


def events(rng: np.random.RandomState, count: int, words: int) -> list[dict[str, object]]:
    found = []
    for _ in range(count):
        event: dict[str, object] = {
            "size": float(rng.normal()),
            "hue": WORDS[rng.randint(words)],
            "wet": bool(rng.randint(2)),
        }
        if rng.uniform() < 0.1:
            event["size"] = None
        found.append(event)
    return found


MODELS = {
    "AutoClassifier": lambda: gm.AutoClassifier("200 kB"),
    "AutoRegressor": lambda: gm.AutoRegressor("200 kB"),
    "AutoNovelty": lambda: gm.AutoNovelty(memory="100 kB"),
    "Race": lambda: gm.Race([gm.KernelClassifier(budget=gm.Merge(40)), gm.KernelClassifier(budget=gm.DropOldest(30))]),
    "KernelClassifier": lambda: gm.KernelClassifier(budget=gm.Merge(40)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_saved_after_each_chunk_it_goes_on_the_same(name: str, seed: int) -> None:
    rng = np.random.RandomState(seed)
    whole, saved = gm.Prepared(MODELS[name]()), gm.Prepared(MODELS[name]())
    for chunk in range(6):
        X = events(rng, int(rng.randint(1, 90)), min(2 + chunk, len(WORDS)))
        if name == "AutoRegressor":
            y: object = rng.normal(size=len(X))
        else:
            y = None if name == "AutoNovelty" else rng.randint(min(2 + chunk // 3, 3), size=len(X))
        said = whole.prequential(X, y)
        assert np.array_equal(said, saved.prequential(X, y))
        saved = gm.from_bytes(saved.to_bytes())
    assert whole.n_seen_ == saved.n_seen_


def test_lines_stay_in_a_race_that_grows_beyond_their_width() -> None:
    rng = np.random.RandomState(0)
    model = gm.AutoRegressor().partial_fit(rng.normal(size=(150, 58)), rng.normal(size=150))
    model.widen(64)
    X, y = rng.normal(size=(150, 64)), rng.normal(size=150)
    copy = gm.from_bytes(model.to_bytes())
    assert np.array_equal(model.prequential(X, y), copy.prequential(X, y))
    assert [repr(e) for e in model.experts_] == [repr(e) for e in copy.experts_]


def test_every_thread_count_gives_the_same_bits() -> None:
    rng = np.random.RandomState(1)
    X = rng.normal(size=(1500, 6))
    y = X[:, 0] * X[:, 1] > 0
    one, two = (gm.AutoClassifier(n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.prequential(X, y), two.prequential(X, y))
