"""The promises over everything public that learns on a stream, found by introspection, fleets and scalers included."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import registry

import gristmill
from gristmill import _core
from gristmill._common.ranges import bytes_in

NAMES = list(registry.DOORS)


@pytest.fixture(params=NAMES)
def door(request):
    return registry.DOORS[request.param]


def public_learners():
    """Every public class that learns on a stream, by the list of public names that the reference is made of."""
    path = Path(__file__).parent.parent.parent / "docs" / "_ext" / "public_names.py"
    listing = importlib.util.module_from_spec(importlib.util.spec_from_file_location("public_names", path))
    sys.modules["public_names"] = listing  # dataclasses look their module up there
    listing.__spec__.loader.exec_module(listing)
    found = set()
    for public in listing.public_names():
        value = getattr(importlib.import_module(public.module), public.name)
        if inspect.isclass(value) and any(
            callable(getattr(value, verb, None)) for verb in ("partial_fit", "learn_one", "apply")
        ):
            found.add(public.name)
    return found


def test_nothing_slips_out():
    assert public_learners() - set(registry.EXEMPT) == set(NAMES) - registry.VARIANTS
    assert set(registry.EXEMPT) <= public_learners(), "an exemption of a learner that no longer exists"
    assert all(registry.EXEMPT.values()), "each exemption has a reason"


# ---- cuts, files, seeds -----------------------------------------------------------------------------------------------


def test_cuts_pauses_and_pickles_change_no_bit(door, tmp_path):
    X, y = door.stream(60)
    whole = door.learned(X, y)
    pieces, rng = door.made(), np.random.default_rng(1)
    at = 0
    while at < len(X):
        end = at + int(rng.choice([1, 2, 7, 13]))
        pieces = door.learn(pieces, X[at:end], door.some(y, at, end))
        if door.saves and rng.random() < 0.4:
            pieces.save(tmp_path / "model")
            pieces = gristmill.load(tmp_path / "model")
        elif door.saves and rng.random() < 0.4:
            pieces = gristmill.from_bytes(pieces.to_bytes())
        elif rng.random() < 0.5:
            pieces = pickle.loads(pickle.dumps(pieces))
        at = end
    assert door.said(pieces, X) == door.said(whole, X)


def test_the_same_seed_gives_the_same_run(door):
    X, y = door.stream(60)
    first, second = (door.learned(X, y) for _ in range(2))
    assert door.said(first, X) == door.said(second, X)
    again, other = pickle.loads(pickle.dumps(first)), second
    for model in (again, other):
        door.learn(model, X, y)
    assert door.said(again, X) == door.said(other, X), "the generator goes on from where it was"


# ---- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nan", "infinity", "narrow", "wide", "text", "no rows", "lengths"])
def test_a_bad_input_changes_nothing(door, kind):
    X, y = door.stream(40)
    model = door.learned(X, y)
    before, said = pickle.dumps(model), door.said(model, X)
    bad, labels = X[:6].copy(), door.some(y, 0, 6)
    if kind == "nan":
        bad[4, 1] = np.nan
    elif kind == "infinity":
        bad[4, 1] = np.inf
    elif kind == "narrow":
        bad = bad[:, :3]
    elif kind == "wide":
        bad = np.hstack([bad, bad])
    elif kind == "text":
        bad = bad.astype(object)
        bad[4, 1] = "grist"
    elif kind == "no rows":
        bad, labels = bad[:0], door.some(y, 0, 0)
    elif labels is None:
        return  # nothing to be of another length
    else:
        labels = labels[:5]
    if kind in door.takes:
        return
    with pytest.raises((ValueError, TypeError)):
        door.learn(model, bad, labels)
    assert pickle.dumps(model) == before
    assert door.said(model, X) == said
    door.learn(model, X, y)


# ---- memory ------------------------------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_stream(door):
    piece = 300 if door.name.startswith("Race") else 100  # a race keeps 128 lines of its history
    X, y = door.stream(6 * piece)
    model, given = door.made(**door.small), door.small.get("memory")
    sizes = []
    for at in range(0, len(X), piece):
        model = door.learn(model, X[at : at + piece], door.some(y, at, at + piece))
        sizes.append(door.memory(model))
    if given is None:
        assert len(set(sizes[4:])) == 1, sizes
    else:  # it is shared out among experts as they do well, and never more than was given
        assert max(sizes) <= bytes_in(given), sizes


# ---- threads -----------------------------------------------------------------------------------------------------------


def test_readers_beside_a_learner_see_states_that_were_there(door):
    """What `test_threads.py` asks of learners, here of fleets and of what stands before learners, too."""
    X, y = door.stream(50)
    twin = door.learned(X[:20], door.some(y, 0, 20))
    states = {door.said(twin, X)}
    for at in range(20, 50):
        twin = door.learn(twin, X[at : at + 1], door.some(y, at, at + 1))
        states.add(door.said(twin, X))
    model = door.learned(X[:20], door.some(y, 0, 20))
    seen, errors, done = set(), [], threading.Event()

    def read():
        while not done.is_set():
            try:
                seen.add(door.said(model, X))
                seen.add(door.said(pickle.loads(pickle.dumps(model)), X))
            except Exception as error:
                errors.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for reader in readers:
            reader.start()
        for at in range(20, 50):
            door.learn(model, X[at : at + 1], door.some(y, at, at + 1))
    finally:
        done.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert not errors, repr(errors[0])
    assert seen <= states
    assert door.said(model, X) == door.said(twin, X)


# ---- instruction sets --------------------------------------------------------------------------------------------------


def test_every_instruction_set_that_fuses_gives_the_same_bits():
    found = {}
    for isa in _core.isas():
        if isa != "baseline":
            done = subprocess.run(
                [sys.executable, str(Path(registry.__file__))],
                env={**os.environ, "GRISTMILL_ISA": isa},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            found[isa] = json.loads(done.stdout)
            assert found[isa].pop("isa") == isa
    first, *others = found.values()
    for other in others:
        assert {name for name in first if first[name] != other[name]} == set()
    assert set(first) == set(NAMES)
