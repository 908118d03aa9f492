"""The search of the papers: a grid whose best entry lies on its edge is widened there."""

from __future__ import annotations

import ast
import math
from importlib import import_module
from pathlib import Path

import pytest

import papers
from papers.search import Axis, edges, few, fixed, search, tuned, watched


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

    assert search({"C": fixed(1.0, 10.0, 100.0, why="printed")}, cost).values == {"C": 100.0}
    assert asked == [1.0, 10.0, 100.0]


def test_limits_are_kept_and_zero_is_an_end():
    best = search({"alpha": Axis((0.5, 0.7, 0.9), most=1.0)}, lambda alpha: -alpha)
    assert best.values == {"alpha": 0.9}
    best = search({"decay": Axis((0.0, 0.1, 1.0))}, lambda decay: decay)
    assert best.values == {"decay": 0.0}
    best = search({"rate": Axis((0.5, 1.0), least=0.2)}, lambda rate: rate)
    assert best.values == {"rate": 0.25}


def test_a_plateau_is_not_followed_and_a_slope_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("papers.search.WIDENINGS", 3)
    flat = search({"rate": Axis((0.1, 1.0))}, lambda rate: 0.0)
    assert flat.values == {"rate": 0.1}
    endless = search({"rate": Axis((0.1, 1.0))}, lambda rate: -rate)
    assert endless.values == {"rate": 1000.0}
    assert endless.at_edge == ("rate",)
    assert "still at its edge" in endless.remark()
    assert endless.grid == {"rate": (0.1, 1.0, 10.0, 100.0, 1000.0)}


def test_forbidden_entries_widen_nothing():
    asked = []

    def cost(eta):
        asked.append(eta)
        return math.inf

    best = search({"eta": Axis((0.1, 0.2))}, cost)
    assert asked == [0.1, 0.2]
    assert best.cost == math.inf
    assert best.at_edge == ()


def test_a_quick_run_stays_on_its_grid():
    asked = []

    def cost(rate):
        asked.append(rate)
        return -rate

    assert search({"rate": Axis((0.1, 1.0))}, cost, quick=True).values == {"rate": 1.0}
    assert asked == [0.1, 1.0]
    assert few(Axis((0.1, 1.0, 10.0))).values == (1.0, 10.0)


def test_searches_are_counted_and_their_edges():
    with watched() as found:
        search({"rate": Axis((0.1, 1.0, 10.0))}, bowl(rate=1.0))
        search({"rate": Axis((0.1, 1.0, 10.0))}, bowl(rate=100.0))
        with watched() as inner:
            search({"rate": Axis((0.1, 1.0))}, lambda rate: -rate)
    search({"rate": Axis((0.1, 1.0, 10.0))}, bowl(rate=100.0))
    assert len(inner) == 1
    assert edges(found) == "3 searches; 2 widened their grid, 1 still had their best at its edge in the end"


# ---- no target searches by hand ----------------------------------------------------------------------------------


PAPERS = Path(papers.__file__).parent
#: what takes the best of something that is no grid of a parameter
NO_GRIDS = {
    "__init__.py: max((len(row[place]) for row in [heads, *rows]))": "the width of a column",
    "landmark_spectrum.py: np.argmax(accuracies)": "the C of a linear SVM over six powers of ten, inside each run",
    "pairwise_kernels.py: min(pairs, key=lambda pair: pair[0])": "a choice among kernels and constraints",
    "pairwise_kernels.py: min((error for _, error in singles))": "the best kernel in hindsight, called so",
}


def calls(tree, *names):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
            yield node


@pytest.fixture(scope="module")
def sources():
    return {path.name: ast.parse(path.read_text("utf-8")) for path in sorted(PAPERS.glob("*.py"))}


def test_the_best_of_a_grid_is_found_by_the_search_that_widens(sources):
    """A figure that selects the best of several settings without the grid search states its reason."""
    found = set()
    for name, tree in sources.items():
        if name == "search.py":
            continue
        for call in calls(tree, "argmin", "argmax", "nanargmin", "nanargmax", "GridSearchCV"):
            found.add(f"{name}: {ast.unparse(call)}")
        for call in calls(tree, "min", "max", "sorted"):
            over = call.args and isinstance(call.args[0], ast.GeneratorExp | ast.ListComp)
            if over or any(word.arg == "key" for word in call.keywords):
                found.add(f"{name}: {ast.unparse(call)}")
    assert found == set(NO_GRIDS)


def test_a_search_stays_on_its_grid_only_in_quick_runs_or_for_a_reason(sources):
    for name, tree in sources.items():
        for call in calls(tree, "search"):
            others = [ast.unparse(word.value) for word in call.keywords]
            assert [ast.unparse(part) for part in call.args[2:]] + others in ([], ["quick"]), (
                f"{name}: {ast.unparse(call)}"
            )
        reasons = [word.value for call in calls(tree, "fixed") for word in call.keywords if word.arg == "why"]
        assert len(reasons) == len(list(calls(tree, "fixed")))
        assert all(isinstance(reason, ast.Constant) and reason.value for reason in reasons)
        # An axis of one value has no ratio by which it could grow, nor has one that ends in 0.
        for call in calls(tree, "Axis"):
            values = call.args[0]
            assert not isinstance(values, ast.Tuple) or len(values.elts) > 1, f"{name}: {ast.unparse(call)}"


def every_axis():
    """Axes of all modules, wherever a constant holds them, with the names of their limits."""

    def inside(value):
        if isinstance(value, Axis):
            yield value
        elif isinstance(value, dict):
            yield from (axis for one in value.values() for axis in inside(one))
        elif isinstance(value, tuple | list):
            yield from (axis for one in value for axis in inside(one))

    for path in sorted(PAPERS.glob("*.py")):
        if path.stem == "__main__":
            continue
        module = import_module("papers" if path.stem == "__init__" else f"papers.{path.stem}")
        for name, value in vars(module).items():
            for axis in inside(value):
                yield pytest.param(axis, id=f"{path.stem}.{name}-{axis.values[0]:g}")


@pytest.mark.parametrize("axis", every_axis())
def test_every_axis_widens_at_both_ends_up_to_its_limits(axis):
    low = search({"value": axis}, lambda value: value)
    high = search({"value": axis}, lambda value: -value)
    if axis.why:
        assert low.widened == high.widened == {}
        return
    assert low.values["value"] < axis.values[0] or axis.values[0] ** 2 / axis.values[1] < axis.least
    assert high.values["value"] > axis.values[-1] or axis.values[-1] ** 2 / axis.values[-2] > axis.most


def test_no_entry_is_tried_twice(monkeypatch):
    asked = []

    def cost(rate, decay):
        asked.append((rate, decay))
        return -rate

    monkeypatch.setattr("papers.search.WIDENINGS", 4)
    search({"rate": Axis((0.1, 1.0)), "decay": fixed(0.0, 0.5, why="both ends")}, cost)
    assert len(asked) == len(set(asked)) == 6 * 2


def test_a_learner_is_tuned_on_the_streams_together():
    X = [[0.0], [1.0], [0.0], [1.0]]
    import numpy as np

    streams = [(np.array(X), np.array([-1, 1, -1, 1]))] * 2
    text, best = tuned(lambda gamma: f"perceptron(Gaussian({gamma}))", {"gamma": Axis((1.0, 2.0))}, streams)
    assert text == f"perceptron(Gaussian({best.values['gamma']}))"
    assert best.cost == 4  # the first of each class, a tie and a mistake, in both streams
