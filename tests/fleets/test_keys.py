"""What can be a key, and what is said of what cannot."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from gristmill import DropOldest, Gaussian, KernelNovelty, KernelRegressor, KeyedFleet

NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropOldest(3), random_state=0)
X = np.random.default_rng(0).normal(size=(8, 2))


class Place(str, enum.Enum):  # noqa: UP042 - that is what people have
    HERE = "here"
    THERE = "there"


class Text(str):
    pass


class Raw(bytes):
    pass


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ([Place.HERE, Place.THERE], ["here", "there"]),
        ([Text("a"), "b"], ["a", "b"]),
        ([Raw(b"a"), b"b"], [b"a", b"b"]),
        ([Number.ONE, 2], [1, 2]),
        (np.array(["a", "b"]), ["a", "b"]),
        ({"a": 1, "b": 2}.keys(), ["a", "b"]),
        ([np.uint64(1), np.int8(2)], [1, 2]),
    ],
    ids=repr,
)
def test_subclasses_are_keys(keys, shown):
    fleet = KeyedFleet(NOVELTY).partial_fit(keys, X[:2])
    assert list(fleet) == list(fleet.keys_) == shown
    assert all(key in fleet for key in keys)
    assert fleet[next(iter(keys))].n_seen_ == 1


def test_a_fleet_is_iterated_by_keys():
    fleet = KeyedFleet(NOVELTY)
    assert list(fleet) == []
    fleet.partial_fit([3, -1, 3], X[:3])
    assert list(fleet) == [3, -1]
    assert {key: fleet[key].n_seen_ for key in fleet} == {3: 2, -1: 1}


def test_what_can_be_no_key_is_not_there():
    fleet = KeyedFleet(NOVELTY).partial_fit([3, -1], X[:2])
    for key in ("a", b"a", 1.5, None, True, 2**70, [3]):
        assert key not in fleet
    assert "\ud800" not in KeyedFleet(NOVELTY).partial_fit(["a"], X[:1])


@pytest.mark.parametrize(
    "keys", [{1, 2}, {1: 2, 3: 4}, frozenset([1, 2]), "ab", iter([1, 2])], ids=lambda k: type(k).__name__
)
def test_keys_have_an_order(keys):
    with pytest.raises(TypeError, match="keys must be a list, array or column with one key an event, in order, got"):
        KeyedFleet(NOVELTY).partial_fit(keys, X[:2])


def test_half_of_a_character_is_named():
    with pytest.raises(ValueError, match=r"keys must be texts .* row 1 is 'a\\ud800'.*as bytes"):
        KeyedFleet(NOVELTY).partial_fit(["a", "a\ud800"], X[:2])
    with pytest.raises(ValueError, match=r"64 bits"):
        KeyedFleet(NOVELTY).partial_fit([1, 2**63], X[:2])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_keys": True}, "max_keys must be a whole number"),
        ({"max_keys": 1.5}, "max_keys must be a whole number"),
        ({"max_keys": 2, "spill": 5}, "spill must be the path of a file or folder, or None, got 5"),
        (
            {"max_keys": 2, "spill": ""},
            "spill must be the path of a file or folder, such as 'keys.db', or None, got ''",
        ),
        ({"max_keys": 2, "spill": ":memory:"}, "spill must be the path of a file or folder, .* got ':memory:'"),
        ({"prior": 5}, "prior must be a learner for the task of the prototype.*such as a KernelRegressor, got 5"),
    ],
    ids=repr,
)
def test_parameters_are_named(given, says):
    with pytest.raises((TypeError, ValueError), match=says):
        KeyedFleet(KernelRegressor(budget=DropOldest(3)), **given).partial_fit([1], X[:1], [1.0])
