"""The search of the papers: a grid whose best entry lies on its edge is widened there."""

from __future__ import annotations

import math

import pytest

from papers.search import Axis, fixed, search, tuned


def bowl(**places):
    """A cost that is least at the given places, by the logarithm."""
    return lambda **values: sum((math.log10(values[name] / place)) ** 2 for name, place in places.items())


def test_a_best_entry_inside_leaves_the_grid_alone():
    best = search({"rate": Axis((0.1, 1.0, 10.0))}, bowl(rate=1.0))
    assert best.values == {"rate": 1.0}
    assert best.widened == {}
    assert best.at_edge == ()
    assert best.remark() == ""


@pytest.mark.parametrize(("place", "ends"), [(1e-4, (1e-5, 10.0)), (1e3, (0.1, 1e4))])
def test_an_edge_is_widened_until_the_best_is_inside(place, ends):
    best = search({"rate": Axis((0.1, 1.0, 10.0))}, bowl(rate=place))
    assert best.values["rate"] == pytest.approx(place)
    assert best.widened["rate"] == pytest.approx(ends)
    assert best.at_edge == ()


def test_every_axis_widens_by_its_own_ratio():
    best = search({"rate": Axis((1.0, 2.0)), "decay": Axis((0.001, 0.01))}, bowl(rate=8.0, decay=1e-5))
    assert best.values == pytest.approx({"rate": 8.0, "decay": 1e-5})
    assert best.widened == {"rate": (1.0, 16.0), "decay": (1e-6, 0.01)}
    assert "rate widened to 1..16" in best.remark()


def test_a_printed_grid_stays_as_printed():
    asked = []

    def cost(C):
        asked.append(C)
        return -C

    assert search({"C": fixed(1.0, 10.0, 100.0)}, cost).values == {"C": 100.0}
    assert asked == [1.0, 10.0, 100.0]


def test_limits_are_kept_and_zero_is_an_end():
    best = search({"alpha": Axis((0.5, 0.7, 0.9), most=1.0)}, lambda alpha: -alpha)
    assert best.values == {"alpha": 0.9}
    best = search({"decay": Axis((0.0, 0.1, 1.0))}, lambda decay: decay)
    assert best.values == {"decay": 0.0}
    best = search({"rate": Axis((0.5, 1.0), least=0.2)}, lambda rate: rate)
    assert best.values == {"rate": 0.25}


def test_a_plateau_is_not_followed_and_a_slope_without_end_is_given_up():
    flat = search({"rate": Axis((0.1, 1.0))}, lambda rate: 0.0)
    assert flat.values == {"rate": 0.1}
    endless = search({"rate": Axis((0.1, 1.0))}, lambda rate: -rate, widenings=3)
    assert endless.values == {"rate": 1000.0}
    assert endless.at_edge == ("rate",)
    assert "still at its edge" in endless.remark()


def test_no_entry_is_tried_twice():
    asked = []

    def cost(rate, decay):
        asked.append((rate, decay))
        return -rate

    search({"rate": Axis((0.1, 1.0)), "decay": fixed(0.0, 0.5)}, cost, widenings=4)
    assert len(asked) == len(set(asked)) == 6 * 2


def test_a_learner_is_tuned_on_the_streams_together():
    X = [[0.0], [1.0], [0.0], [1.0]]
    import numpy as np

    streams = [(np.array(X), np.array([-1, 1, -1, 1]))] * 2
    text, best = tuned(lambda gamma: f"perceptron(Gaussian({gamma}))", {"gamma": Axis((1.0, 2.0))}, streams)
    assert text == f"perceptron(Gaussian({best.values['gamma']}))"
    assert best.cost == 4  # the first of each class, a tie and a mistake, in both streams
