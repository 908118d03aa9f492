"""A race that gains columns keeps the kernels and the list of experts that it began with, saved or not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.race.baselines import LastValue, Line, LineOfChanges

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
    "Race with a Python object": lambda: gm.Race([
        gm.KernelClassifier(gm.Gaussian(0.3), gm.Perceptron(), gm.Project(0.3, size=30)),
        gm.Prepared(gm.KernelClassifier(budget=gm.Merge(40)), "relevance"),
    ]),
    "Race over numbers": lambda: gm.Race([
        gm.Prepared(gm.KernelRegressor(gm.Laplacian(0.5), budget=gm.Merge(40)), "minmax"),
        gm.KernelRegressor(gm.Gaussian(0.3), gm.SGD(gm.Squared(), 0.3), gm.Project(0.3, size=30)),
        LastValue(), Line(), LineOfChanges(),
    ]),
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
        if name in ("AutoRegressor", "Race over numbers"):
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


@pytest.mark.parametrize("kind", [gm.AutoClassifier, gm.AutoRegressor])
def test_every_thread_count_gives_the_same_bits(kind: Any) -> None:
    """Experts learn, follow renewed ranks and weigh their columns side by side."""
    rng = np.random.RandomState(1)
    X = rng.normal(size=(1500, 6))
    y = X[:, 0] * X[:, 1] > 0 if kind is gm.AutoClassifier else X[:, 0] * X[:, 1]
    one, two = (kind(n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.prequential(X, y), two.prequential(X, y))
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_categories_that_outgrow_the_memory_are_refused_by_name_and_change_nothing() -> None:
    rng = np.random.RandomState(0)
    stream = [{"size": float(rng.normal()), "hue": f"c{i // 8}"} for i in range(400)]
    model, fits = gm.Prepared(gm.AutoRegressor("50 kB")), 0
    before = b""

    def learn() -> None:
        nonlocal before, fits
        for event in stream:
            before = model.to_bytes() if fits % 8 == 0 and fits else b""  # a category comes
            model.learn_one(event, event["size"])
            fits += 1

    with pytest.raises(ValueError, match=r"'hue=c\d+' would be column .* made of column 'hue'.* at least \d+") as told:
        learn()
    assert fits > 160  # 20 categories
    assert model.to_bytes() == before
    found = re.search(
        r"memory=50000 bytes are too few for \d+ columns and 1 classes: it takes at least (\d+)", str(told.value)
    )
    assert found is not None
    other = gm.Prepared(gm.AutoRegressor(int(found[1])))
    for event in stream[: fits + 1]:
        other.learn_one(event, event["size"])
    assert other.n_seen_ == fits + 1


def test_ranks_that_outgrow_the_memory_become_moments() -> None:
    """Points stored by ranks follow; a chunk, single samples and a load in between give the same bits."""
    rng = np.random.RandomState(4)
    stream = [{"size": float(np.exp(rng.normal())), "hue": f"c{i // 5}"} for i in range(600)]
    labels = [event["size"] > 1.5 for event in stream]
    whole, single = (gm.Prepared(gm.AutoClassifier("300 kB")) for _ in range(2))
    whole.prequential(stream, labels)
    for place, (event, label) in enumerate(zip(stream, labels, strict=True)):
        single.learn_one(event, label)
        if place % 97 == 0:
            single = gm.from_bytes(single.to_bytes())
    assert np.array_equal(whole.decision_function(stream), single.decision_function(stream))
