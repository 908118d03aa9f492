"""Who rests and who returns where memory moves, by the losses since it moved; the limit holds at every event around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gristmill
from gristmill import AutoClassifier, AutoNovelty, DropOldest, Gaussian, KernelNovelty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3300, 3))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.9).astype(int)
EXPERTS, LAST, CLEAR = 10, 3, 2.0  # that run at first; that always go on; standard errors of a mean loss


def learned(memory: str, cuts: list[int]) -> Any:
    """The model, the running experts, those that returned, and mean losses since memory moved, at each cut."""
    model, found, start = AutoClassifier(memory=memory, random_state=0, passes=1), {}, 0
    for stop in cuts:
        model.partial_fit(X[start:stop], Y[start:stop])
        start = stop
        engine = model._engine
        state, mixture = engine.state(), engine.mixture
        recent = np.asarray(mixture.recent)[:EXPERTS] / np.maximum(np.asarray(mixture.counted)[:EXPERTS], 1)
        rests = {place for place in range(EXPERTS) if engine.experts()[place].rests}
        running = [int(place) for place in state["shares.experts"]]
        assert rests == set(range(EXPERTS)) - set(running)
        assert sum(state["shares.bytes"]) <= gristmill._common.ranges.bytes_in(memory)
        found[stop] = running, state["shares.returned"].tolist(), recent
    return found


CUTS = [99, 100, 199, 200, 399, 400, 799, 800, 1599, 1600, 3199, 3200]


def stay(running: list[int], losses: Any, count: int) -> set[int]:
    """The three best, and whoever is not clearly worse than the best."""
    ranked = sorted(running, key=lambda place: losses[place])
    best = losses[ranked[0]]
    lost = {place for place in ranked[LAST:] if losses[place] - best > CLEAR * np.sqrt(losses[place] / count)}
    return set(ranked) - lost


def test_with_much_memory_only_clear_losers_rest_and_not_before_the_400th_event() -> None:
    found = learned("3 MB", CUTS)
    for position in (100, 200):
        assert sorted(found[position][0]) == list(range(EXPERTS))
    for position, events in ((400, 200), (800, 400)):
        running, _, losses = found[position - 1]
        assert set(found[position][0]) == stay(running, losses, events)
        assert LAST <= len(found[position][0]) < len(running)


@pytest.mark.parametrize("memory", ["3 MB", "150 kB"])
def test_from_the_1600th_event_on_one_returns_each_time_the_longest_waiting_first(memory: str) -> None:
    found = learned(memory, CUTS)
    assert [found[position][1] for position in (800, 1600, 3200)] == [[], [3], [3, 4]]
    assert found[1600][0][-1] == 3  # and is the last to be given memory
    assert found[3200][0][-1] == 4
    assert 3 not in found[3200][0]  # which had lost clearly
    assert found[3199][2][3] > 2 * found[3199][2][1]


def test_where_the_leader_is_full_two_thirds_go_on() -> None:
    found = learned("150 kB", CUTS)
    assert sorted(found[100][0]) == list(range(EXPERTS))
    sizes = [len(found[position][0]) for position in (200, 400, 800)]
    assert sizes == [6, 4, 3]  # 0.65 of 10, of 6, and never below three
    for position in (200, 400, 800):
        running, _, losses = found[position - 1]
        best = sorted(running, key=lambda place: losses[place])[: len(found[position][0])]
        assert set(found[position][0]) == set(best)


def test_the_leader_has_most_memory_and_shares_halve() -> None:
    """Of the last three; a window keeps the share that it began with."""
    model = AutoClassifier(memory="150 kB", random_state=0, passes=1).partial_fit(X[:800], Y[:800])
    state = model._engine.state()
    shares = dict(zip(state["shares.experts"].tolist(), state["shares.bytes"].tolist(), strict=True))
    windows = [place for place in shares if isinstance(model._engine.specs[place].parts.budget, DropOldest)]
    others = [bytes_ for place, bytes_ in shares.items() if place not in windows]
    assert others == sorted(others, reverse=True)
    assert all(shares[place] <= state["shares.begun"][0] for place in windows)


@pytest.mark.parametrize("memory", ["60 kB", "150 kB"])
def test_the_limit_holds_at_every_event_around_a_move(memory: str) -> None:
    model, limit = AutoClassifier(memory=memory, random_state=0, passes=1), gristmill._common.ranges.bytes_in(memory)
    start = 0
    for position in (100, 200, 400, 800, 1600):
        model.partial_fit(X[start : position - 3], Y[start : position - 3])
        for at in range(position - 3, position + 3):
            model.learn_one(X[at], Y[at])
            assert model.memory_bytes_ <= limit
        start = position + 3


@pytest.mark.parametrize(("width", "most"), [(400, 125), (2000, 50)])
def test_detectors_of_a_race_over_wide_rows_have_few_points(width: int, most: int) -> None:
    """50,000 numbers a megabyte, and 50 points at least, so that an event takes little time."""
    experts = [KernelNovelty(Gaussian(gamma), budget=DropOldest(10)) for gamma in (0.5 / width, 2.0 / width)]
    model = AutoNovelty(memory="2 MB", experts=experts, random_state=0)
    wide = np.random.default_rng(1).normal(size=(2 * 10 * most, width))
    model.partial_fit(np.concatenate([wide, wide + 0.5]))
    assert 0.9 * 2 * most <= max(model._engine.sizes) <= 2 * most  # whole blocks of points
    assert model.memory_bytes_ <= 2_000_000
