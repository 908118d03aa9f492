"""Single events of tables: learned and answered by the core, with the bits of a chunk and the numbers of a naive twin."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.features import FeatureClassifier, RandomMaclaurin

NAMES = ["a", "b", "c", "d"]
CELLS = {
    "number": st.floats(-1e6, 1e6) | st.integers(-1000, 1000) | st.none() | st.just(float("nan")) | st.just("NA"),
    "boolean": st.booleans() | st.sampled_from([0, 1, 1.0, "true", " FALSE ", None, ""]),
    "category": st.sampled_from(
        ["red", "blue", " red", "rouge ", "Ünï", "7", "7.0", "007.0", "true", "TRUE", "none", None]
    )
    | st.integers(-3, 12)
    | st.sampled_from([True, False, 2.0, 2.5, -0.0]),
}


@st.composite
def tables(draw: Any) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Kinds of some columns, and events; columns may come late, and be missing from an event."""
    kinds = {name: draw(st.sampled_from(sorted(CELLS))) for name in NAMES}
    late = {name: draw(st.sampled_from([0, 0, 0, 12])) for name in NAMES}
    late["a"] = 0
    events = []
    for place in range(draw(st.integers(20, 40))):
        names = draw(st.permutations([name for name in NAMES if place >= late[name]]))
        gone = draw(st.sampled_from([None, None, *NAMES]))
        event = {name: draw(CELLS[kinds[name]]) for name in names if name != gone}
        events.append(event or {"a": draw(CELLS[kinds["a"]])})
    return kinds, events


MODELS: dict[str, Any] = {
    "classifier": lambda: gm.KernelClassifier(gm.Gaussian(0.3), budget=gm.DropOldest(10), random_state=0),
    "weights": lambda: gm.KernelClassifier(gm.Gaussian(0.3), class_weight={1: 2.0}, random_state=0),
    "regressor": lambda: gm.KernelRegressor(gm.Gaussian(0.3), budget=gm.Merge(10), random_state=0),
    "novelty": lambda: gm.KernelNovelty(gm.Gaussian(0.3), budget=gm.DropOldest(10), random_state=0),
    "trees": lambda: gm.KernelClassifier(gm.Laplacian(0.3), budget=gm.Project(0.1, 10), random_state=0),
    "features": lambda: FeatureClassifier(RandomMaclaurin(gm.Polynomial(2), 20, random_state=0), random_state=0),
    "race": lambda: gm.AutoClassifier(memory="200 kB", random_state=0),
    "race of numbers": lambda: gm.AutoRegressor(memory="200 kB", random_state=0),
    "anomalies": lambda: gm.AutoNovelty(memory="200 kB", random_state=0),
}


def labels_of(name: str, count: int, seed: int) -> list[Any]:
    rng = np.random.RandomState(seed)
    if "novelty" in name or name == "anomalies":
        return [None] * count
    return (
        rng.normal(5, 3, size=count).tolist()
        if "regressor" in name or "numbers" in name
        else rng.randint(3, size=count).tolist()
    )


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one == other
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def state(model: Any) -> Any:
    """All that a file holds, but for the seeds of the experts of a race, which come from the system."""
    arrays, plain = model.saved_fields()
    return {name: array.tobytes() for name, array in arrays.items() if not name.endswith("random_seed")}, plain


def by_chunks(model: Any) -> Any:
    """A copy that answers by way of chunks."""
    other = copy.copy(model)
    other._pipeline.single_events = lambda: None
    return other


@pytest.mark.parametrize("name", ["race", "race of numbers"])
def test_a_first_event_of_missing_values_begins_a_race_as_in_a_chunk(name):
    """Its row has no column yet: the memory that the table takes from the race may not depend on the rows after it."""
    kinds = {"a": "boolean", "b": "number", "c": "boolean"}
    events = [{"c": None, "b": None}, {"a": False, "b": None, "c": False}, {"a": True, "b": 1.0, "c": False}]
    y = labels_of(name, len(events), 0)
    singly, chunk = (gm.Prepared(MODELS[name](), columns=kinds) for _ in range(2))
    for x, label in zip(events, y, strict=True):
        singly.learn_one(x, label)
    chunk.partial_fit(events, y)
    assert state(singly) == state(chunk)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10, deadline=None)
@given(
    table=tables(),
    seed=st.integers(0, 99),
    cuts=st.sets(st.integers(1, 39), max_size=6),
    scale=st.sampled_from(["standard", "minmax", None]),
)
def test_single_events_and_chunks_give_the_same_bits(name, table, seed, cuts, scale):
    kinds, events = table
    if name == "features":  # they are drawn for the columns of the first event
        events = [{**dict.fromkeys(NAMES), **event} for event in events]
    y = labels_of(name, len(events), seed)
    make = lambda: gm.Prepared(MODELS[name](), scale=scale, columns=kinds)  # noqa: E731
    singly, chunks = make(), make()
    edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for start, stop in itertools.pairwise(edges):
        chunks.partial_fit(events[start:stop], None if y[0] is None else y[start:stop])
        for x, label in zip(events[start:stop], y[start:stop], strict=True):
            singly.learn_one(x, label)
        assert state(singly) == state(chunks)
    other = by_chunks(chunks)
    for x in [*events, {"a": None, "new": 1.0}]:
        for verb in ("predict_one", "score_one", "predict_proba_one"):
            if hasattr(singly, verb):
                assert same(getattr(singly, verb)(x), getattr(other, verb)(x)), verb
    assert state(singly) == state(chunks)


RNG = np.random.RandomState(0)
MIXED = [
    {
        "n": float(n),
        "k": int(k),
        "hue": ["red", "blue", None][int(k) % 3],
        "on": bool(n > 0),
        "gap": None if k == 2 else 1.5,
    }
    for n, k in zip(RNG.normal(size=300), RNG.randint(5, size=300), strict=True)
]


def begun(model: Any = None, events: Any = MIXED, **settings: Any) -> Any:
    y = [event["n"] > 0 for event in MIXED]
    model = gm.KernelClassifier(gm.Gaussian(0.3), random_state=0) if model is None else model
    return gm.Prepared(model, **settings).partial_fit(events[:200], y[:200])


def test_known_events_do_not_go_the_way_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the way of chunks")

    forms = {"dicts": lambda x: x, "lists": lambda x: [*x.values()], "tuples": lambda x: (*x.values(),)}
    for form in forms.values():
        model = begun(events=[forms["dicts"](x) for x in MIXED])
        model.learn_one(form(MIXED[200]), True)
        with monkeypatch.context() as patch:
            patch.setattr(type(model._pipeline), "learn", refuse)
            patch.setattr(type(model._pipeline), "rows", refuse)
            patch.setattr(type(model.model_), "_learned", refuse)
            for x in MIXED[201:]:
                model.learn_one(form(x), x["n"] > 0)
                assert model.predict_one(form(x)) in (True, False)
                assert set(model.predict_proba_one(form(x))) == {True, False}
                assert isinstance(model.score_one(form(x)), float)
        assert model.n_seen_ == model.table_.n_seen_ == model.scaler_.n_seen_ == 300


def naive_row(seen: list[dict[str, Any]], x: dict[str, Any]) -> list[float]:
    """A row of MIXED by a pass over all events: columns in the order in which they came, scaled by all of `seen`."""
    row: dict[str, float] = {}

    def mean(name: str, events: list[dict[str, Any]]) -> float:
        known = [event[name] for event in events if event[name] is not None]
        return known[0] + sum(value - known[0] for value in known) / len(known)

    for name in ("n", "k", "gap"):
        filled = [
            mean(name, seen[: place + 1]) if event[name] is None else event[name] for place, event in enumerate(seen)
        ]
        now = mean(name, seen) if x[name] is None else x[name]
        row[name] = (now - np.mean(filled)) / (np.std(filled) or 1.0)
    row["on"] = float(x["on"])
    row["gap:missing"] = float(x["gap"] is None)
    for hue in ("red", "blue"):
        row[f"hue={hue}"] = np.sqrt(0.5) * (x["hue"] == hue)
    row["hue:missing"] = np.sqrt(0.5) * (x["hue"] is None)
    return [row[name] for name in begun().get_feature_names_out()]


def test_rows_agree_with_a_naive_twin() -> None:
    model = begun()
    events = model._pipeline.single_events()
    for x in MIXED[200:]:
        np.testing.assert_allclose(events.row_of(x), naive_row(MIXED[:200], x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "x",
    [
        {"n": float("inf")}, {"n": "one"}, {"hue": [1]}, {"on": 2}, {"n": True}, {}, {"other": 1.0}, [1.0, 2], "red", None,
        {"hue": "x" * 300}, {"n": 10**400}, {"hue": "\ud800"}, np.arange(5), np.array([1.0, 2.0]), {1: 2.0},
        [1.0, 2, True, False, 1.5], np.array([1.0, 2.0, np.inf, 0.0, 1.0]),
    ],
)  # fmt: skip
def test_an_event_that_does_not_fit_is_answered_as_in_a_chunk(x: Any) -> None:
    """By the same error or the same numbers, and an error changes nothing."""

    def outcome(work: Any) -> Any:
        try:
            return work()
        except Exception as error:
            return type(error), str(error)

    model, other = begun(), begun()
    model.learn_one(MIXED[200], True)
    other.learn_one(MIXED[200], True)
    other._pipeline.single_events = lambda: None
    other._pipeline.learn_one = lambda x, y: False
    other._pipeline.events = None
    before = state(model)
    for verb in ("predict_one", "score_one", "predict_proba_one"):
        found, wanted = (outcome(lambda one=one, verb=verb: getattr(one, verb)(x)) for one in (model, other))
        assert same(found, wanted), verb
    assert state(model) == before
    found, wanted = (outcome(lambda one=one: one.learn_one(x, True)) for one in (model, other))
    assert found == wanted
    assert state(model) == state(other)
    assert found is None or state(model) == before


@pytest.mark.parametrize("y", [[1], np.ones(1), "yes", None, float("nan"), 10**400, 1e200])
def test_a_label_that_does_not_fit_changes_nothing(y: Any) -> None:
    for model in (begun(), gm.Prepared(gm.KernelRegressor(random_state=0)).partial_fit(MIXED[:200], np.arange(200.0))):
        model.learn_one(MIXED[200], 1)
        before = state(model)
        try:
            model.learn_one(MIXED[201], y)
        except (ValueError, TypeError, OverflowError, UserWarning):
            assert state(model) == before


def test_two_threads_see_whole_updates() -> None:
    import threading

    model = begun(gm.KernelRegressor(gm.Gaussian(0.3), budget=gm.DropOldest(20), random_state=0))
    twin = copy.copy(model)
    stop, wrong = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            value = model.predict_one(MIXED[0])
            rows = model.predict(MIXED[:3])
            if not (np.isfinite(value) and np.isfinite(rows).all()):
                wrong.append((value, rows))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for place in range(600):
        x = MIXED[200 + place % 100]
        model.learn_one(x, float(place))
        if place % 50 == 0:
            model.partial_fit(MIXED[:2], [1.0, 2.0])
    stop.set()
    for thread in threads:
        thread.join()
    for place in range(600):
        twin.learn_one(MIXED[200 + place % 100], float(place))
        if place % 50 == 0:
            twin.partial_fit(MIXED[:2], [1.0, 2.0])
    assert not wrong
    assert state(model) == state(twin)


@pytest.mark.parametrize(
    "bad", [{"n": "one"}, {"when": "2024-05-17", "n": "one"}], ids=["a number", "a time before it"]
)
def test_after_a_refused_chunk_events_are_encoded_as_if_it_had_not_come(bad: dict[str, Any]) -> None:
    model, twin = begun(), begun()
    model.learn_one(MIXED[200], True)
    twin.learn_one(MIXED[200], True)
    chunk = [{"n": 1.0, "hue": "green", "new": 1.0}, {"n": None, "late": "x"}, bad]
    with pytest.raises(ValueError, match="'one' is not a number"):
        model.partial_fit(chunk, [True, False, True])
    assert state(model) == state(twin)
    for place, x in enumerate([*MIXED[201:], {**MIXED[0], "hue": "green"}, {**MIXED[0], "late": 1.0}, *MIXED[:20]]):
        assert same(model.score_one(x), twin.score_one(x)), place
        model.learn_one(x, x["n"] > 0)
        twin.learn_one(x, x["n"] > 0)
    assert model._pipeline.table.core.entries == twin._pipeline.table.core.entries
    assert state(model) == state(twin)


def test_a_copy_and_a_file_go_on_with_single_events() -> None:
    import pickle

    model = begun()
    others = [
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        gm.from_bytes(model.to_bytes()),
    ]
    for x in MIXED[200:230]:
        for one in (model, *others):
            one.learn_one(x, x["n"] > 0)
    assert all(state(other) == state(model) for other in others)
    assert all(other._pipeline.events is not None for other in others)


@pytest.mark.parametrize("model", [gm.KernelClassifier, gm.KernelRegressor])
def test_relevance_counts_single_events_and_renews_where_a_chunk_does(model: Any) -> None:
    settings = {"scale": "relevance"}
    rng = np.random.RandomState(3)
    events = [{"n": float(n), "m": float(m), "hue": "ab"[int(m > 0)]} for n, m in rng.normal(size=(1100, 2))]
    y = [float(x["n"]) for x in events] if model is gm.KernelRegressor else [x["n"] > 0 for x in events]
    make = lambda: gm.Prepared(model(gm.Gaussian(0.3), budget=gm.Merge(20), random_state=0), **settings)  # noqa: E731
    singly, chunks = make(), make().partial_fit(events, y)
    quick = 0
    for x, label in zip(events, y, strict=True):
        way = singly._pipeline and singly._pipeline.events
        quick += bool(way and way.learn_one(x, label)) or bool(singly.learn_one(x, label))
    assert quick > 900
    assert len(singly.relevance_history_) == 2
    assert state(singly) == state(chunks)
    other = by_chunks(chunks)
    assert all(singly.score_one(x) == other.score_one(x) for x in events[:50])
