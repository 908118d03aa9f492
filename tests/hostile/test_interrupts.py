"""Every public learner: an interrupt at any call or return leaves the model before the chunk or after it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import public_learners
import pytest
from interrupts import interrupted

from gristmill import (
    SGD,
    DropOldest,
    Fleet,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Merge,
    Prepared,
    Squared,
)

# A generator that is interrupted while it is closed reports what it cannot raise.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
EVERY, STRIDE = 150, 5  #: moments that are all tried, and the step between later ones


@pytest.mark.parametrize("name", public_learners.public())
def test_a_chunk_is_learned_whole_or_not_at_all(name: str) -> None:
    X, y = public_learners.stream(name, 45)
    begun = public_learners.made(name).partial_fit(X[:40], None if y is None else y[:40])
    part = X[40:], None if y is None else y[40:]
    before = pickle.dumps(copy.copy(begun))
    after = pickle.dumps(copy.copy(begun).partial_fit(*part))
    assert before != after
    moment = 1
    while True:
        model = copy.copy(begun)
        if not interrupted(lambda model=model: model.partial_fit(*part), moment):
            break
        assert pickle.dumps(model) in (before, after), f"torn by an interrupt at moment {moment}"
        moment += 1 if moment < EVERY else STRIDE
    assert moment > 1


CLASSES = KernelClassifier(Gaussian(1.0), budget=DropOldest(5), random_state=0)
NUMBERS = KernelRegressor(Gaussian(1.0), budget=DropOldest(5), random_state=0)
#: a learner that can refuse an event after others have learned it
WILD = KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(3), random_state=0)
PRIOR = KernelRegressor(Gaussian(0.3), SGD(Squared(), 0.5), Merge(8), average=True, random_state=0)
#: fleets, and what they learn at first and then: keys (none for Fleet), rows, labels
FLEETS: dict[str, tuple[Any, bool]] = {
    "Fleet": (Fleet(CLASSES, 4), True),
    "keys": (KeyedFleet(CLASSES), True),
    "scaled": (KeyedFleet(Prepared(CLASSES)), True),
    "few keys": (KeyedFleet(CLASSES, max_keys=3, ttl=9.0), True),
    "spilled": (KeyedFleet(CLASSES, max_keys=3, spill="keys.db"), True),
    "prior of classes": (KeyedFleet(CLASSES, prior=Prepared(CLASSES)), True),
    "prior of numbers": (KeyedFleet(NUMBERS, prior=PRIOR), False),
    "prior, learners that may refuse": (KeyedFleet(WILD, prior=Prepared(PRIOR)), False),
    "centred": (KeyedFleet(NUMBERS, center=True, ttl=9.0), False),
    "centred, spilled, prior": (KeyedFleet(NUMBERS, center=True, max_keys=3, spill="keys.db", prior=PRIOR), False),
}


def fleet_chunk(name: str, start: int, stop: int) -> tuple[Any, ...]:
    """Keys, rows and labels of some events; the last rows bring a third class."""
    X = np.random.default_rng(0).normal(size=(stop, 2)) * 0.3
    labels = np.where(np.arange(stop) >= 46, 2, X[:, 0] > 0).astype(int) if FLEETS[name][1] else 5.0 + X[:, 0]
    keys = np.arange(stop) * 7 % 6
    if name == "Fleet":
        return X[start:stop].reshape(-1, 4, 2), labels[start:stop].reshape(-1, 4)
    return keys[start:stop], X[start:stop], labels[start:stop]


@pytest.mark.parametrize("verb", ["prequential", "the first chunk"])
@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_learns_a_chunk_whole_or_not_at_all(name: str, verb: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    first, part = fleet_chunk(name, 0, 40), fleet_chunk(name, 40, 48)

    def begun() -> Any:
        fleet = copy.deepcopy(FLEETS[name][0])
        return fleet.partial_fit(*first) if verb == "prequential" else fleet

    def state(fleet: Any) -> Any:
        return pickle.dumps(fleet.saved_fields()) if fleet.__sklearn_is_fitted__() else None

    before, after = state(begun()), state(begun().partial_fit(*part))
    assert before != after
    moment = 1
    while True:
        fleet = begun()
        if not interrupted(lambda fleet=fleet: fleet.prequential(*part), moment):
            break
        found = state(fleet)
        assert found in (before, after), f"torn by an interrupt at moment {moment}"
        if found == before:  # what was rolled back goes on as if nothing had happened
            assert state(fleet.partial_fit(*part)) == after, f"rolled back to something else at moment {moment}"
        fleet.forget(fleet.keys_) if name != "Fleet" else None
        del fleet
        step = 3 if FLEETS[name][0].get_params().get("spill") else 1  # to open a file takes long
        moment += step if moment < EVERY else 3 * STRIDE
    assert moment > 10
