"""Successive halving on a stream."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill import Gaussian, norma_regressor, passive_aggressive
from gristmill.evaluate import prequential, search
from gristmill.race import expert_sets as _expert_sets
from gristmill.streams import drifting_digits, from_arrays


def build(C, size=60):
    return passive_aggressive(Gaussian(0.0015), C=C, size=size)


GRID = {"C": [0.001, 0.01, 0.1, 0.3, 1.0], "size": [30, 60]}


@pytest.mark.parametrize("jobs", [None, 2])
def test_survivors_have_learned_the_whole_stream(jobs):
    stream = drifting_digits(n_events=3600)
    found = search(build, GRID, stream, first=400, n_jobs=jobs)
    assert found.rungs == [400, 1200, 3600]
    assert [result.n_events for result in found.results] == [3600] * 2 + [1200] * 2 + [400] * 6
    assert len(found.rows()) == len(found.to_frame()) == 10
    alone = prequential(build(**found.best_params), stream)
    assert found.results[0].metrics == alone.metrics
    assert found.best_model.n_seen_ == 3600
    assert len(found.comparison()) == 2


def test_the_worst_are_dropped_at_each_rung():
    found = search(build, GRID, drifting_digits(n_events=1300), first=400)
    first = {}
    for C in GRID["C"]:
        for size in GRID["size"]:
            run = prequential(build(C, size), drifting_digits(n_events=1300).take(400))
            first[(C, size)] = run.metrics["error"]
    went_on = {tuple(params.values()) for params, result in zip(found.params, found.results, strict=True)
               if result.n_events > 400}  # fmt: skip
    assert len(went_on) == 4
    assert max(first[key] for key in went_on) <= min(first[key] for key in first if key not in went_on)


def test_larger_may_be_better_and_a_list_of_combinations_will_do():
    found = search(build, [{"C": 1e-4}, {"C": 0.3}], drifting_digits(n_events=900), "accuracy", first=300)
    assert found.best_params == {"C": 0.3}
    assert found.metric == "accuracy"


def test_unknown_length_and_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2))
    stream = from_arrays(X, np.sin(X[:, 0]), rows=100)
    pieces = [(chunk.X, chunk.y) for chunk in stream]
    found = search(lambda rate: norma_regressor(Gaussian(1.0), rate, 1e-3, size=50), {"rate": [1e-4, 0.1]}, pieces)
    assert found.rungs == [1000]
    assert found.best_params == {"rate": 0.1}


def test_wrong_wishes():
    stream = drifting_digits(n_events=100)
    with pytest.raises(ValueError, match="the grid holds no combination"):
        search(build, {"C": []}, stream)
    with pytest.raises(ValueError, match="keep must be in"):
        search(build, GRID, stream, keep=1.0)
    with pytest.raises(ValueError, match="first must be at least 1"):
        search(build, GRID, stream, first=0)
    with pytest.raises(ValueError, match="holds no event"):
        search(build, GRID, iter([]))


def test_an_interrupt_keeps_what_was_found():
    def interrupted():
        for place, chunk in enumerate(drifting_digits(n_events=3600)):
            if place == 3:
                raise KeyboardInterrupt
            yield chunk.X[:500], chunk.y[:500]

    found = search(build, GRID, interrupted(), first=400)
    assert found.stopped == "interrupted"
    assert found.results[0].n_events == found.best_model.n_seen_ == 1200
    assert found.rungs == [400, 1200]
    assert {result.stopped for result in found.results} == {"interrupted"}


def test_those_that_an_interrupt_left_behind_are_still_compared():
    found = search(build, {"C": [0.1, 0.3, 1.0]}, drifting_digits(n_events=900), first=900)
    found.results[1].n_events, found.results[2].n_events, found.rungs = 800, 300, [300]
    assert [result.n_events for result in found.comparison()] == [900, 800]


def test_a_stream_alone_is_enough():
    X = np.random.default_rng(0).normal(size=(600, 3)) * [1.0, 100.0, 0.01]
    found = search((X, X[:, 0] * X[:, 1] > 0), first=150)
    assert found.best_params["expert"].startswith("Prepared(KernelClassifier(")
    assert found.results[0].metrics["error"] < 0.25
    assert len(found.params) == sum(hasattr(expert, "model") for expert in _expert_sets.for_classes(3))
    numbers = search((X, 50_000 + 10 * np.sin(X[:, 0])), first=150)
    assert numbers.results[0].metrics["mae"] < 50_000 / 600 + 6  # the first event is scored before any target is known
    with pytest.raises(TypeError, match="a stream alone"):
        search(lambda C: None)
    with pytest.raises(ValueError, match="use AutoNovelty"):
        search((X, None))
