"""What merged races hold beside their learners, against NumPy: linear models, baselines, intervals, and who goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill import AutoClassifier, AutoRegressor, merge
from gristmill.race.baselines import LastValue, Line, LineOfChanges, Majority, NoChange, RunningMean
from gristmill.race.expert import scaler_of

RNG = np.random.default_rng(5)
#: columns of unlike units and places; two of them move together
Z = RNG.normal(size=(1500, 4)) @ np.array([[1, 0.8, 0, 0], [0, 0.6, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
X = Z * [1.0, 300.0, 0.02, 5.0] + [0.0, 40.0, 3.0, -7.0]
Y = 500 + 30 * Z[:, 0] - 12 * Z[:, 1] + 8 * Z[:, 2] + RNG.normal(size=1500)
CUTS = (slice(0, 300), slice(300, 900), slice(900, 1500))
SHARES = np.array([300, 600, 600]) / 1500


def raced() -> tuple[list[Any], Any]:
    parts = [AutoRegressor(memory="100 kB", random_state=0).partial_fit(X[part], Y[part]) for part in CUTS]
    return parts, merge(parts)


PARTS, WHOLE = raced()
STATES, STATE = [part._engine.state() for part in PARTS], WHOLE._engine.state()
PLACES = {type(spec.asked): place for place, spec in enumerate(WHOLE._engine.specs) if spec.is_trivial}


def affine(model: Any) -> tuple[Any, Any]:
    """Centre and slope of each column as linear models see it; wild values are drawn in, so it is measured in the middle."""
    middle, step = X.mean(axis=0), 0.1 * X.std(axis=0)
    low, high = scaler_of(model._engine, ("standard", None)).transform([middle, middle + step])
    slope = (high - low) / step
    return middle - low / slope, slope


def matrix(state: Any, place: int, width: int) -> Any:
    """The weighted sum of squares and products, of which the state holds the inverse."""
    return np.linalg.inv(np.asarray(state[f"{place}.inverse"]).reshape(width, width))


@pytest.mark.parametrize("kind", [Line, LineOfChanges])
def test_linear_models_minimise_the_sum_of_what_their_parts_minimise(kind: Any) -> None:
    place, constant = PLACES[kind], kind is Line
    width = 4 + constant
    centre, slope = affine(WHOLE)
    first = float(STATES[0][f"{place}.first"][0])
    squares, products = np.zeros((width, width)), np.zeros(width)
    for model, state in zip(PARTS, STATES, strict=True):
        its_centre, its_slope = affine(model)
        back = np.eye(width)  # rows in the scaling of the part, of rows in the united one
        back[constant:, constant:] = np.diag(its_slope / slope)
        if constant:
            back[1:, 0] = (centre - its_centre) * its_slope
        sums, weights = matrix(state, place, width), np.array(state[f"{place}.weights"])
        if constant:
            weights[0] += float(state[f"{place}.first"][0]) - first
        squares += back.T @ sums @ back
        products += back.T @ sums @ weights
    np.testing.assert_allclose(matrix(STATE, place, width), squares, rtol=1e-5, atol=1e-7 * np.abs(squares).max())
    np.testing.assert_allclose(STATE[f"{place}.weights"], np.linalg.solve(squares, products), rtol=1e-6, atol=1e-9)
    assert STATE[f"{place}.first"][0] == first
    assert STATE[f"{place}.last"][0] == STATES[-1][f"{place}.last"][0]
    assert STATE[f"{place}.seen"][0] == 1500
    its_centre, its_slope = affine(PARTS[-1])
    raw = np.asarray(STATES[-1][f"{place}.row"]) / its_slope + its_centre
    np.testing.assert_allclose(STATE[f"{place}.row"], (raw - centre) * slope, rtol=1e-9, atol=1e-9)


def test_a_united_line_predicts_as_one_that_saw_every_part() -> None:
    alone = AutoRegressor(memory="100 kB", random_state=0).partial_fit(X, Y)
    place = PLACES[Line]
    merged, whole = (np.asarray(model._engine.score_expert(place, X[:200])).ravel() for model in (WHOLE, alone))
    assert np.abs(merged - whole).max() < 0.02 * np.abs(whole - Y.mean()).max()


def test_baselines_count_what_all_parts_have_seen() -> None:
    assert STATE[f"{PLACES[LastValue]}.numbers"][0] == STATES[-1][f"{PLACES[LastValue]}.numbers"][0]
    first, total, count = STATE[f"{PLACES[RunningMean]}.numbers"]
    np.testing.assert_allclose(first + total / count, Y.mean())
    assert (first, count) == (STATES[0][f"{PLACES[RunningMean]}.numbers"][0], 1500)


def test_baselines_of_classes_count_every_label() -> None:
    labels = np.where(Z[:, 0] > 1, "b", np.where(Z[:, 1] > 1, "a", "c"))
    parts = [AutoClassifier(memory="100 kB", random_state=0).partial_fit(X[part], labels[part]) for part in CUTS]
    whole = merge(parts)
    places = {type(spec.asked): place for place, spec in enumerate(whole._engine.specs) if spec.is_trivial}
    state, names = whole._engine.state(), list(whole._run.labels.codes)
    counts = dict(zip(names, np.asarray(state[f"{places[Majority]}.numbers"]).tolist(), strict=True))
    assert counts == {name: (labels == name).sum() for name in "abc"}
    newest, *sames = state[f"{places[NoChange]}.numbers"].tolist()
    assert names[int(newest)] == labels[-1]
    same = sum(int((labels[part][1:] == labels[part][:-1]).sum()) for part in CUTS)
    told = [sum(float(part._engine.state()[f"{places[NoChange]}.numbers"][at]) - 1 for part in parts) for at in (1, 2)]
    assert [number - 1 for number in sames] == told
    assert same in told


def test_intervals_are_means_by_share_and_their_events_add_up() -> None:
    expected = sum(share * np.asarray(state["intervals"]) for share, state in zip(SHARES, STATES, strict=True))
    expected[0] = sum(state["intervals"][0] for state in STATES)
    np.testing.assert_allclose(STATE["intervals"], expected, rtol=1e-12)
    assert expected[0] > 1300


def test_experts_that_half_of_the_events_knew_go_on_before_others_and_the_rest_pause() -> None:
    """As many as the part with most of them had; in the order of their mean losses since memory moved."""
    engine = WHOLE._engine
    rests = [bool(engine.experts()[place].rests) for place in range(len(engine.specs))]
    running = {int(place) for place in STATE["shares.experts"]}
    for place, spec in enumerate(engine.specs):
        if not spec.is_trivial:
            assert rests[place] == (place not in running)
    most = max(len(state["shares.experts"]) for state in STATES)
    assert 1 <= len(running) <= most
    known = {
        place: sum(share for share, state in zip(SHARES, STATES, strict=True) if place in state["shares.experts"])
        for place in range(len(engine.specs))
    }
    assert all(known[place] >= 0.5 for place in running) or all(
        known[place] < 0.5 for place in known if place not in running
    )
    assert sum(STATE["shares.bytes"]) <= 100_000
