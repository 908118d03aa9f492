"""The memory of a learner that shares it out is that of table and scaling, too; what it is too small for is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import AutoClassifier, AutoNovelty, AutoRegressor, Prepared
from gristmill._common.ranges import bytes_in
from gristmill.race.auto import Auto

AUTOS = {
    name: value
    for name in gristmill.__all__
    if isinstance(value := getattr(gristmill, name), type) and issubclass(value, Auto)
}
SCALES = ["standard", "minmax", None]  #: the others need one kernel learner, which shares out no memory


def events(start: int, stop: int) -> tuple[list[dict[str, Any]], Any]:
    """Numbers, gaps, categories that keep coming, and from the 300th event on further columns."""
    rng = np.random.RandomState(start)
    rows = []
    for place in range(start, stop):
        row = {"a": float(rng.normal()), "b": f"value {rng.randint(2 + place // 8)}", "c": bool(rng.randint(2))}
        if rng.rand() < 0.05 and place:
            row["a"] = None
        if place >= 300:
            row[f"late{rng.randint(20)}"] = float(rng.normal())
        rows.append(row)
    return rows, np.array([f"k{rng.randint(2 + (place > 200))}" for place in range(start, stop)])


def answers(name: str, labels: Any) -> Any:
    return None if "Novelty" in name else labels if "Classifier" in name else np.array([float(t[1:]) for t in labels])


def given_to(name: str) -> dict[str, Any]:
    return {"random_state": 0} if "Novelty" in name else {"random_state": 0, "passes": 1}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("memory", ["400 kB", 800_000])
@pytest.mark.parametrize("name", AUTOS)
def test_table_scaling_and_learner_together_stay_within_the_memory(name: str, memory: Any, scale: str | None) -> None:
    limit = memory if isinstance(memory, int) else bytes_in(memory)
    given = given_to(name)
    model = Prepared(AUTOS[name](memory=memory, **given), scale=scale)
    most = 0
    for start in range(0, 720, 60):
        rows, labels = events(start, start + 60)
        model.partial_fit(rows, answers(name, labels))
        most = max(most, model.memory_bytes_)
    assert most <= limit
    assert most > 0.3 * limit
    again = gristmill.from_bytes(model.to_bytes())
    assert again.memory_bytes_ <= limit
    rows, labels = events(720, 780)
    for one in (model, again):
        one.partial_fit(rows, answers(name, labels))
    np.testing.assert_array_equal(model.decision_function(rows), again.decision_function(rows))
    assert max(model.memory_bytes_, again.memory_bytes_) <= limit


@pytest.mark.parametrize("name", AUTOS)
def test_what_is_taken_does_not_depend_on_the_cuts(name: str) -> None:
    given = given_to(name)
    rows, labels = events(0, 400)
    y = answers(name, labels)
    whole = Prepared(AUTOS[name](memory="400 kB", **given)).partial_fit(rows, y)
    cut = clone(whole)
    for start in range(0, 400, 37):
        cut.partial_fit(rows[start : start + 37], None if y is None else y[start : start + 37])
    one = clone(whole)
    for place, row in enumerate(rows):
        one.learn_one(row, None if y is None else y[place])
    for other in (cut, one):
        np.testing.assert_array_equal(other.decision_function(rows), whole.decision_function(rows))
        assert other.model_._engine.outside == whole.model_._engine.outside > 0


@pytest.mark.parametrize("name", AUTOS)
def test_categories_that_a_memory_is_too_small_for_are_named(name: str) -> None:
    """And nothing of the chunk is learned."""
    given = given_to(name)
    model = Prepared(AUTOS[name](memory=45_000, **given))
    before = b""

    def learn() -> None:
        nonlocal before
        for start in range(0, 900, 30):
            rows, labels = events(start, start + 30)
            before = model.to_bytes() if start else b""
            model.partial_fit(rows, answers(name, labels))

    with pytest.raises(ValueError, match="memory") as caught:
        learn()
    assert "would be column" in str(caught.value)
    assert f"of which are made of column 'b', and {name} cannot learn so many: memory" in str(caught.value)
    assert "Give it more memory, or leave the column out (drop)" in str(caught.value)
    assert model.to_bytes() == before


@pytest.mark.parametrize("model", [AutoClassifier(passes=1), AutoRegressor(passes=1), AutoNovelty()], ids=repr)
def test_merged_models_stay_within_the_memory(model: Any) -> None:
    name = type(model).__name__
    whole = Prepared(model.set_params(memory="400 kB"), scale=None)
    parts = []
    for seed in range(2):
        rows, labels = events(0, 300)
        part = clone(whole).partial_fit(rows, answers(name, labels))
        rng = np.random.RandomState(seed)
        for _ in range(10):
            order = rng.permutation(300)
            part.partial_fit([rows[at] for at in order], answers(name, labels[order]))
        parts.append(part)
    merged = gristmill.merge(parts)
    assert merged.memory_bytes_ <= 400_000
