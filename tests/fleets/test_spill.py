"""Keys on disk: a failure changes nothing, readers see whole changes, and files of others are not touched."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import gristmill
from gristmill import (
    SGD,
    DropOldest,
    Gaussian,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Squared,
)
from gristmill.fleets.spill import Spill
from gristmill.fleets.spill_file import APPLICATION

NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropOldest(3), random_state=0)
X = np.random.default_rng(0).normal(size=(200, 2))


def spilled(path, count=20, most=4, **more):
    return KeyedFleet(NOVELTY, max_keys=most, spill=path, **more).partial_fit(np.arange(count), X[:count])


def whole(fleet):
    """Everything that there is to know of a fleet."""
    return pickle.dumps(fleet.saved_fields()), sorted(fleet.keys_.tolist()), fleet.n_expired_, fleet.n_dropped_


def impatient(monkeypatch):
    monkeypatch.setattr(Spill, "patience", 0.01)


# ---- all or nothing -----------------------------------------------------------------------------------------------


def test_a_locked_file_is_said_to_be_locked_and_nothing_is_learned(tmp_path, monkeypatch):
    impatient(monkeypatch)
    fleet, other = spilled(tmp_path / "keys.db"), spilled(tmp_path / "other.db")
    before = whole(fleet)
    link = sqlite3.connect(tmp_path / "keys.db", isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    for again in range(2):
        with pytest.raises(OSError, match=r"keys.db.* is locked by another program.*nothing was learned"):
            fleet.partial_fit([7, 8, 100, 101], X[:4])
        assert whole(fleet) == before, again
    link.execute("ROLLBACK")
    link.close()
    fleet.partial_fit([7, 8, 100, 101], X[:4])
    assert whole(fleet)[0] == whole(other.partial_fit([7, 8, 100, 101], X[:4]))[0]
    assert fleet[7].n_seen_ == 2


def test_a_full_disk_is_said_to_be_full_and_nothing_is_learned(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    before = whole(fleet)
    pages = fleet._store._spill._link.execute("PRAGMA page_count").fetchone()[0]
    fleet._store._spill._link.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(OSError, match=r"the disk is full.*nothing was learned"):
        fleet.partial_fit(np.arange(50, 200), X[:150])
    assert whole(fleet) == before
    fleet._store._spill._link.execute("PRAGMA max_page_count=100000")
    assert len(fleet.partial_fit(np.arange(50, 200), X[:150])) == 170


def test_a_file_that_is_changed_is_said_to_be_damaged(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    link = sqlite3.connect(tmp_path / "keys.db")
    link.execute("DROP TABLE records")
    link.commit()
    link.close()
    with pytest.raises(OSError, match=r"is damaged, or another program has changed it.*nothing was learned"):
        fleet.partial_fit([50], X[:1])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_while_the_file_is_written_undoes_the_chunk(tmp_path, monkeypatch, moment):
    fleet = spilled(tmp_path / "keys.db")
    before, write = whole(fleet), Spill.write

    def interrupted(self, records, gone, then):
        if moment == "after":
            write(self, records, gone, then)
        raise KeyboardInterrupt

    monkeypatch.setattr(Spill, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.partial_fit([7, 8, 100, 101], X[:4])
    monkeypatch.undo()
    if moment == "before":
        assert whole(fleet) == before
        fleet.partial_fit([7, 8, 100, 101], X[:4])
    assert fleet[7].n_seen_ == fleet[8].n_seen_ == 2  # and not 1, or 3
    assert sorted(fleet.keys_.tolist()) == [*range(20), 100, 101]


def test_a_new_class_is_undone_too(tmp_path, monkeypatch):
    impatient(monkeypatch)
    model = KernelClassifier(Gaussian(0.5), budget=DropOldest(3), random_state=0)
    y = np.arange(20) % 2
    fleet = KeyedFleet(model, max_keys=4, spill=tmp_path / "keys.db").partial_fit(np.arange(20), X[:20], y)
    before = whole(fleet)
    link = sqlite3.connect(tmp_path / "keys.db", isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="locked"):
        fleet.partial_fit(np.arange(10), X[:10], np.arange(10) % 5)
    link.close()
    assert fleet.classes_.tolist() == [0, 1]
    assert whole(fleet) == before


def test_a_file_that_was_locked_at_the_first_events(tmp_path, monkeypatch):
    impatient(monkeypatch)
    link = sqlite3.connect(tmp_path / "keys.db", isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    fleet = KeyedFleet(NOVELTY, max_keys=4, spill=tmp_path / "keys.db")
    with pytest.raises(OSError, match=r"keys\.db' is in use by another fleet; give each fleet a path of its own"):
        fleet.partial_fit(np.arange(20), X[:20])
    assert len(fleet) == 0
    link.close()
    fleet.spill = tmp_path / "another.db"
    fleet.partial_fit(["a", "b"], X[:2])  # of another kind than those that were refused
    assert fleet.keys_ == ["a", "b"]
    wild = KernelRegressor(Linear(), SGD(Squared(), 5.0, 0.0), DropOldest(3))
    fleet = KeyedFleet(wild, max_keys=1, spill=tmp_path / "keys.db")
    with pytest.raises(ValueError, match="overflow"):
        fleet.partial_fit([1] * 9, X[:9] * 1e3, np.full(9, 1e148))
    fleet.spill = tmp_path / "third.db"
    fleet.partial_fit([1, 2], X[:2], [0.0, 1.0])
    assert (tmp_path / "third.db").exists()


def test_members_are_set_and_keys_forgotten_all_or_nothing(tmp_path, monkeypatch):
    impatient(monkeypatch)
    fleet = spilled(tmp_path / "keys.db")
    before, member = whole(fleet), fleet[3]
    link = sqlite3.connect(tmp_path / "keys.db", isolation_level=None)
    link.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="locked"):
        fleet[99] = member
    with pytest.raises(OSError, match="locked"):
        fleet.forget([0, 18, 19])
    link.close()
    assert whole(fleet) == before
    fleet[99] = member
    assert fleet.forget([0, 18, 19, 0, 1234]) == 3
    assert sorted(fleet) == [*range(1, 18), 99]


# ---- readers ------------------------------------------------------------------------------------------------------


def test_a_reader_sees_every_key_while_another_thread_learns(tmp_path):
    fleet = spilled(tmp_path / "keys.db", count=60, most=5)
    fresh = fleet.decision_function([9999], X[:1])[0]
    rng, end, wrong = np.random.default_rng(1), threading.Event(), []

    def read():
        keys = np.arange(60)
        while not end.is_set():
            missing = set(range(60)) - set(fleet.keys_.tolist())
            scores = fleet.decision_function(keys, X[:60])
            if missing or (scores == fresh).any() or not all(key in fleet for key in (3, 40)):
                wrong.append((missing, np.flatnonzero(scores == fresh)))
            assert fleet[int(keys[7])].n_seen_ > 0

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        fleet.partial_fit(rng.integers(0, 60, size=20), X[:20])
    end.set()
    for reader in readers:
        reader.join()
    assert not wrong


# ---- where the file is --------------------------------------------------------------------------------------------


def forged(fleet, path):
    """A model file that names a path."""
    fleet.spill = path
    fleet._store._given = (*fleet._store._given[:2], path)
    return fleet.to_bytes()


def test_a_model_file_does_not_say_where_sqlite_writes(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    expected = fleet.decision_function(np.arange(20), X[:20])
    for path in (tmp_path / "nowhere" / "keys.db", tmp_path / "evil.db"):
        data = forged(copy.deepcopy(fleet), path)
        assert os.fsencode(path) in data
        loaded = gristmill.from_bytes(data)
        assert not path.exists()
        assert not path.parent.samefile(os.path.dirname(loaded.spill)) if path.parent.exists() else True
        np.testing.assert_array_equal(loaded.decision_function(np.arange(20), X[:20]), expected)
        loaded.partial_fit(np.arange(20), X[:20])
        assert not path.exists()


def test_copies_have_a_file_of_their_own_that_goes_with_them(tmp_path):
    fleet = spilled(str(tmp_path / "keys.db"))
    fleet.save(tmp_path / "model")
    others = [gristmill.load(tmp_path / "model"), pickle.loads(pickle.dumps(fleet)), copy.deepcopy(fleet)]
    others += [copy.deepcopy(others[0]), pickle.loads(pickle.dumps(others[0]))]
    places = [os.fspath(other.spill) for other in others]
    assert len({*places, fleet.spill}) == 6
    assert all(os.path.exists(place) and place in repr(other) for place, other in zip(places, others, strict=True))
    expected = fleet.prequential(np.arange(30), X[:30])
    for other in others:
        np.testing.assert_array_equal(other.prequential(np.arange(30), X[:30]), expected)
    anew = clone(others[0])
    assert os.fspath(anew.spill) not in places
    anew.partial_fit(np.arange(20), X[:20])
    assert anew.get_params()["spill"] is anew.spill
    places.append(os.fspath(anew.spill))
    del other, others, anew
    assert not any(os.path.exists(os.path.dirname(place)) for place in places)


def test_another_place_can_be_chosen(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    fleet.save(tmp_path / "model")
    loaded = gristmill.load(tmp_path / "model")
    first = os.fspath(loaded.spill)
    loaded.set_params(spill=tmp_path / "chosen.db")
    loaded.partial_fit([0], X[:1])
    assert (tmp_path / "chosen.db").exists()
    assert not os.path.exists(first)
    assert sorted(loaded) == list(range(20))
    fleet.partial_fit([0], X[:1])
    np.testing.assert_array_equal(
        loaded.decision_function(np.arange(20), X[:20]), fleet.decision_function(np.arange(20), X[:20])
    )
    loaded.spill = tmp_path / "nowhere" / "keys.db"
    with pytest.raises(OSError, match="cannot be used"):
        loaded.predict([0], X[:1])
    loaded.spill = None
    with pytest.raises(ValueError, match=r"spill was .* and is now None: .* would be lost"):
        loaded.predict([0], X[:1])
    loaded.spill = tmp_path / "chosen.db"
    assert sorted(loaded) == list(range(20))


def test_a_database_of_somebody_else_is_not_touched(tmp_path):
    path = tmp_path / "accounts.db"
    link = sqlite3.connect(path)
    link.execute("CREATE TABLE accounts (name TEXT)")
    link.commit()
    link.close()
    before = path.read_bytes()
    with pytest.raises(
        OSError, match=r"accounts.db.* cannot be used: it is an SQLite database that gristmill did not make"
    ):
        spilled(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["accounts.db"]


def test_a_file_belongs_to_one_fleet_and_goes_with_it(tmp_path):
    one, two = spilled(tmp_path / "keys.db"), KeyedFleet(NOVELTY, max_keys=4, spill=tmp_path / "keys.db")
    for _ in range(2):
        with pytest.raises(OSError, match=r"keys\.db' is in use by another fleet; give each fleet a path of its own"):
            two.partial_fit(np.arange(30), X[:30])
        with pytest.raises(OSError, match="is in use by another fleet"):
            one.set_params(spill=str(tmp_path / "keys.db")) and spilled(tmp_path / "keys.db")
    assert len(two) == 0
    assert len(one.partial_fit(np.arange(20), X[:20])) == 20
    del one
    assert os.listdir(tmp_path) == []
    assert len(two.partial_fit(np.arange(30), X[:30])) == 30
    del two
    assert os.listdir(tmp_path) == []


USED = """
import sys, numpy as np
from gristmill import *
from gristmill.fleets.spill import Spill
Spill.patience = 0.05
fleet = KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3)), max_keys=4, spill=sys.argv[1])
try:
    fleet.partial_fit(np.arange(50), np.zeros((50, 2)))
except OSError as error:
    print(error)
"""


def test_a_file_in_use_by_another_process_is_refused(tmp_path):
    path = tmp_path / "keys.db"
    fleet = spilled(path)
    for _ in range(2):
        found = subprocess.run([sys.executable, "-c", USED, str(path)], check=True, capture_output=True, text=True)
        assert f"{str(path)!r} is in use by another fleet" in found.stdout
        assert len(fleet.partial_fit(np.arange(20), X[:20])) == 20
    del fleet
    assert subprocess.run([sys.executable, "-c", USED, str(path)], check=True, capture_output=True).stdout == b""
    assert os.listdir(tmp_path) == []


def test_fleets_in_one_folder_have_a_file_each(tmp_path):
    one, two, alone = spilled(tmp_path), spilled(tmp_path), spilled(tmp_path / "alone.db")
    assert len({name for name in os.listdir(tmp_path) if name.startswith("keys-") and name.endswith(".db")}) == 2
    for start in range(0, 100, 10):
        for fleet in (one, two, alone):
            fleet.partial_fit(np.arange(start, start + 20), X[start : start + 20])
    assert whole(one)[0] == whole(two)[0] == whole(alone)[0]
    del one, two, alone, fleet
    assert os.listdir(tmp_path) == []


LEFT = """
import os, signal, sys, numpy as np
from gristmill import *
fleet = KeyedFleet(KernelNovelty(Gaussian(0.5), budget=DropOldest(3)), max_keys=4, spill=sys.argv[1])
fleet.partial_fit(np.arange(500), np.zeros((500, 2)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_behind_goes(tmp_path):
    path = tmp_path / "keys.db"
    assert subprocess.run([sys.executable, "-c", LEFT, str(path)], check=False).returncode == -signal.SIGKILL
    assert path.exists()
    fleet = spilled(path)
    link = sqlite3.connect(path)
    assert link.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    assert link.execute("SELECT count(*) FROM records").fetchone()[0] == 16
    link.close()
    assert len(fleet) == 20
    del fleet
    assert os.listdir(tmp_path) == []


def test_a_process_that_is_forked_off_leaves_the_file_to_its_parent(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    child = os.fork()
    if child == 0:
        fleet._store._spill.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(fleet.partial_fit(np.arange(20), X[:20])) == 20


@pytest.mark.parametrize("kind", ["int", "str"])
def test_many_keys_on_disk_are_saved_in_steps(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("gristmill.fleets.saved_keys.BATCH", 7)
    keys = list(range(-30, 30)) if kind == "int" else [f"k{i}" for i in range(60)]
    fleet = KeyedFleet(NOVELTY, max_keys=4, spill=tmp_path / "keys.db").partial_fit(keys, X[:60])
    loaded = gristmill.from_bytes(fleet.to_bytes())
    assert sorted(loaded) == sorted(keys)
    np.testing.assert_array_equal(loaded.decision_function(keys, X[:60]), fleet.decision_function(keys, X[:60]))


def test_of_many_fleets_that_open_a_file_at_once_one_has_it(tmp_path):
    def work(seed):
        tries = 0
        while done.count(seed) < 5 and tries < 5000:
            tries += 1
            try:
                fleet = spilled(tmp_path / "keys.db", count=10 + seed, most=2)
            except OSError as error:
                wrong.extend([str(error)] if "is in use by another fleet" not in str(error) else [])
                time.sleep(0.001)
                continue
            if sorted(fleet) != list(range(10 + seed)):
                wrong.append(seed)
            done.append(seed)
            del fleet

    wrong, done = [], []
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(done) == sorted([0, 1, 2, 3] * 5)
    assert os.listdir(tmp_path) == []


# ---- what changes on the disk is reported --------------------------------------------------------------------------


DAMAGES = {
    "a bit of a record": "UPDATE {t} SET record = cast(record AS BLOB) WHERE key = {k0}",
    "swapped records": "UPDATE {t} SET record = (SELECT record FROM {t} WHERE key = {k1}) WHERE key = {k0}",
    "swapped with their marks": "UPDATE {t} SET (record, mark) = (SELECT record, mark FROM {t} WHERE key = {k1}) "
    "WHERE key = {k0}",
    "another time": "UPDATE {t} SET last = last + 1 WHERE key = {k0}",
    "a time that is none": "UPDATE {t} SET last = 'noon' WHERE key = {k0}",
    "a text as record": "UPDATE {t} SET record = 'words' WHERE key = {k0}",
    "a deleted record": "DELETE FROM {t} WHERE key = {k0}",
    "another key": "UPDATE {t} SET key = x'ffff' WHERE key = {k0}",
    "all records deleted": "DELETE FROM {t}",
}


@pytest.mark.parametrize("damage", sorted(DAMAGES))
@pytest.mark.parametrize("verb", ["learn", "predict", "save", "member", "move"])
def test_damage_is_reported_and_changes_nothing(damage, verb, tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    link = sqlite3.connect(tmp_path / "keys.db")
    k0, k1 = (f"x'{key.hex()}'" for (key,) in link.execute("SELECT key FROM records ORDER BY key LIMIT 2"))
    if damage == "a bit of a record":
        record = bytearray(link.execute(f"SELECT record FROM records WHERE key = {k0}").fetchone()[0])
        record[len(record) // 2] ^= 1
        link.execute(f"UPDATE records SET record = ? WHERE key = {k0}", (bytes(record),))
    else:
        link.execute(DAMAGES[damage].format(t="records", k0=k0, k1=k1))
    link.commit()
    link.close()
    tasks = {
        "learn": lambda: fleet.partial_fit(np.arange(20), X[:20]),
        "predict": lambda: fleet.predict(np.arange(20), X[:20]),
        "save": lambda: fleet.save(tmp_path / "m.gm"),
        "member": lambda: [fleet[key] for key in range(20)],
        "move": lambda: fleet.set_params(spill=tmp_path / "other.db").partial_fit([1], X[:1]),
    }
    with pytest.raises(OSError, match=r"keys\.db' is damaged: (the record of key|it lacks records)"):
        tasks[verb]()
    assert fleet._core_.now == 20
    assert not (tmp_path / "m.gm").exists()


def test_more_records_than_a_step_are_moved_to_another_place(tmp_path):
    """Over 10,000, so that the second step must go on where the first ended."""
    count, small = 10_450, KernelNovelty(Gaussian(0.5), budget=DropOldest(1), random_state=0)
    X = np.random.default_rng(0).normal(size=(count, 1))
    fleet = KeyedFleet(small, max_keys=100, spill=tmp_path / "one.db").partial_fit(np.arange(count), X)
    before = fleet.decision_function(np.arange(count), X)
    fleet.set_params(spill=tmp_path / "two.db")
    assert len(fleet.keys_) == count
    fleet.partial_fit([0], X[:1])
    assert len(fleet._store._spill) >= count - 100
    assert not (tmp_path / "one.db").exists()
    np.testing.assert_array_equal(fleet.decision_function(np.arange(1, count), X[1:]), before[1:])


# ---- processes that are forked off ---------------------------------------------------------------------------------


def forked(task):
    """What a task returns in a process that is forked off, or its error."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            said = pickle.dumps(task())
        except BaseException as error:
            said = pickle.dumps(f"{type(error).__name__}: {error}")
        os.write(theirs, said)
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        found = pickle.loads(file.read())
    os.waitpid(process, 0)
    return found


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("verb", ["partial_fit", "prequential", "learn_one", "forget", "move"])
def test_a_forked_child_cannot_change_the_file_of_its_parent(verb, tmp_path):
    fleet, twin = spilled(tmp_path / "keys.db"), spilled(tmp_path / "twin.db")
    before = whole(fleet)
    tasks = {
        "partial_fit": lambda: fleet.partial_fit(np.arange(20), X[20:40]) and "changed",
        "prequential": lambda: fleet.prequential(np.arange(20), X[20:40]),
        "learn_one": lambda: [fleet.learn_one(key, X[key]) for key in range(20)] and "changed",
        "forget": lambda: fleet.forget(np.arange(20)),
        "move": lambda: fleet.set_params(spill=tmp_path / "new.db").partial_fit([0], X[:1]) and "changed",
    }
    said = forked(tasks[verb])
    assert "OSError" in said
    assert f"belongs to process {os.getpid()}, which this one was forked off from: a child may not learn" in said
    assert whole(fleet) == before
    for one in (fleet, twin):
        one.partial_fit(np.arange(5, 25), X[40:60])
    assert whole(fleet)[0] == whole(twin)[0]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_reads_what_there_was_or_gets_an_error(tmp_path):
    fleet = spilled(tmp_path / "keys.db")
    wanted = fleet.decision_function(np.arange(20), X[:20])

    def ask():
        return fleet.decision_function(np.arange(20), X[:20])

    np.testing.assert_array_equal(forked(ask), wanted)
    assert forked(fleet.to_bytes) == fleet.to_bytes()
    assert forked(lambda: gristmill.from_bytes(fleet.to_bytes()).partial_fit([1], X[:1])[1].n_seen_) == 2
    gate, go = os.pipe()

    def later():
        os.read(gate, 1)
        return ask()

    thread = threading.Thread(target=lambda: found.append(forked(later)))
    found = []
    thread.start()
    time.sleep(0.3)
    fleet.partial_fit(np.arange(20), X[20:40])
    os.write(go, b"x")
    thread.join()
    os.close(gate)
    os.close(go)
    assert "which has learned since" in found[0]


def test_more_records_than_one_step_takes_are_moved_and_saved_whole(tmp_path):
    count = 10_037  # steps are of 10,000 records
    rows = np.random.default_rng(1).normal(size=(count, 2))
    plain = KeyedFleet(NOVELTY).partial_fit(np.arange(count), rows)
    fleet = KeyedFleet(NOVELTY, max_keys=4, spill=tmp_path / "one.db").partial_fit(np.arange(count), rows)
    fleet.set_params(spill=tmp_path / "two.db").partial_fit([0], rows[:1])
    plain.partial_fit([0], rows[:1])
    for found in (fleet, gristmill.from_bytes(fleet.to_bytes())):
        assert sorted(found.keys_.tolist()) == list(range(count))
        assert np.array_equal(found.predict(np.arange(count), rows), plain.predict(np.arange(count), rows))
        assert found.score_one(count - 1, rows[-1]) == plain.score_one(count - 1, rows[-1])
