"""Batches, the log, snapshots and one shard, each by itself."""

from __future__ import annotations

import os
import sqlite3
import zlib

import numpy as np
import pytest
import safetensors.numpy
from cluster_workers import (
    NOVELTY,
    NUMBERS,
    batches,
)
from sklearn.base import clone

from gristmill.cluster.shards.batch import Batch, Cut, segments_of, shard_of
from gristmill.cluster.shards.log import Log, LogError, State
from gristmill.cluster.shards.segments import Segments
from gristmill.cluster.shards.shard import Message, Plan, Shard
from gristmill.cluster.shards.snapshots import Snapshot, Store
from gristmill.fleets.keys import Start

# ---- batches ---------------------------------------------------------------------------------------------------------


def naive_shard(key, shards):
    """splitmix64's finisher in plain whole numbers."""
    z = (key if isinstance(key, int) else zlib.crc32(key)) % 2**64
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return ((z ^ (z >> 31)) >> 32) * shards >> 32


def test_the_shard_of_a_key_never_changes():
    texts = [b"", b"a", b"device 7", "ä".encode()]
    assert shard_of(np.arange(-4, 8), 3).tolist() == [2, 2, 2, 2, 2, 1, 1, 0, 1, 1, 2, 1]
    assert shard_of(texts, 5).tolist() == [4, 0, 0, 0]
    assert shard_of(np.arange(-4, 200), 7).tolist() == [naive_shard(key, 7) for key in range(-4, 200)]
    assert shard_of(texts, 7).tolist() == [naive_shard(key, 7) for key in texts]
    counts = np.bincount(shard_of(np.arange(100_000), 8), minlength=8)
    assert counts.min() > 12_000
    assert counts.max() < 13_000


@pytest.mark.parametrize("texts", [False, True])
def test_a_batch_comes_back_from_bytes_and_its_parts_are_the_batch(texts):
    keys, X, y = next(batches(NUMBERS, texts=texts))
    rows = [key.encode() for key in keys] if texts else keys
    batch = Batch(7, rows, X, y, None, np.arange(40.0), ((0, 2), (11, 3)), ("a", "b", "c"), 40.0, False)
    again = Batch.from_bytes(batch.to_bytes())
    assert again.to_bytes() == batch.to_bytes()
    assert (again.number, again.segments, again.names) == (7, batch.segments, batch.names)
    assert (again.now, again.sure) == (40.0, False)
    cut = Cut.of(batch, 3)
    seen = np.full(40, -1.0)
    for shard in range(3):
        part = cut.part(shard)
        assert set(shard_of(part.rows, 3)) <= {shard}
        seen[cut.places(shard)] = part.times
        assert part.segments[1][0] == int((cut.places(shard) < 11).sum())
    assert seen.tolist() == list(range(40))


@pytest.mark.parametrize("rows", [np.arange(2), [b"", b""], [b"a", b"bcd"]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_pieces_of_a_batch_are_a_safetensors_file(rows, dtype):
    X = np.arange(8.0).reshape(2, 4)[:, ::2].astype(dtype)
    batch = Batch(1, rows, X, np.ones(2), None, None, ((0, 0),), (), 2.0)
    found = safetensors.numpy.load(b"".join(batch.pieces()))
    np.testing.assert_array_equal(found["X"], X)
    assert found["X"].dtype == dtype
    np.testing.assert_array_equal(found["labels"], np.ones(2))
    again = Batch.from_bytes(batch.to_bytes()).rows
    assert list(again) == list(rows)


def test_segments_begin_where_a_third_class_and_later_ones_enter():
    assert segments_of(np.array([0.0, 1, 0, 2, 1, 3]), 0, 0) == ((0, 0), (3, 3), (5, 4))
    assert segments_of(np.array([0.0, 1, 0, 2, 1, 3]), 2, 4) == ((0, 4),)
    assert segments_of(None, 0, 0) == ((0, 0),)


# ---- the log ---------------------------------------------------------------------------------------------------------


def plain_batch(number):
    return Batch(number, np.arange(3), np.ones((3, 2)), None, None, None, ((0, 0),), (), 3.0 * number)


def test_the_log_keeps_batch_and_state_together(tmp_path):
    log = Log(tmp_path / "log.db")
    start = Start("int", 2, "float64", 2**63 + 5, False)
    for number in (1, 2, 3):
        log.append(plain_batch(number), State(number, 10 * number, 3 * number), start if number == 1 else None)
    with pytest.raises(LogError, match="in use by another program"):
        Log(tmp_path / "log.db")
    log.close()
    log = Log(tmp_path / "log.db")
    assert log.start == start
    assert log.state == State(3, 30, 9)
    assert [batch.number for batch in log.read(1, 3)] == [2, 3]
    log.prune(3)
    assert [batch.number for batch in log.read(1, 3)] == [2, 3], "the last two stay"
    with pytest.raises(LogError, match="does not hold batch 1"):
        list(log.read(0, 3))
    log.drop_last(3)
    assert log.state == State(2, 20, 6)
    log.drop_last(2)
    assert log.start is None
    log.close()


def test_large_logs_are_many_files_and_old_ones_go(tmp_path, monkeypatch):
    monkeypatch.setattr(Segments, "LIMIT", 1500)
    log = Log(tmp_path / "log.db")
    start = Start("int", 2, "float64", 5, False)
    for number in range(1, 21):
        log.append(plain_batch(number), State(number, number, 3 * number), start)
    files = sorted(tmp_path.glob("log.db.b*"))
    assert len(files) > 3
    log.prune(15)
    assert [batch.number for batch in log.read(15, 20)] == [16, 17, 18, 19, 20]
    left = sorted(tmp_path.glob("log.db.b*"))
    assert left == files[-len(left) :]
    assert len(left) < len(files)
    for number in (20, 19, 18, 17):  # back into an older file
        log.drop_last(number)
    log.append(plain_batch(17), State(17, 99, 51))
    log.close()
    log = Log(tmp_path / "log.db")
    assert log.state == State(17, 99, 51)
    assert [batch.number for batch in log.read(15, 17)] == [16, 17]
    log.close()


def three(path, **how):
    """A log of three batches, by a program that is killed then."""
    log = Log(path)
    for number in (1, 2, 3):
        log.append(plain_batch(number), State(number, number, 3 * number), Start("int", 2, "float64", 5, False))
    log.abandon()
    (path,) = path.parent.glob("log.db.b*")
    return path, path.read_bytes(), [record.offset - 40 for record in log._batches._records.values()]


def test_a_torn_batch_was_never_there(tmp_path):
    path, whole, places = three(tmp_path / "log.db")
    assert [whole[place : place + 5] for place in places] == [b"grist"] * 3
    for cut in range(places[2], len(whole), 3):  # whatever the disk has of the last one
        path.write_bytes(whole[:cut])
        log = Log(tmp_path / "log.db")
        assert log.state.number == 2
        log.append(plain_batch(3), State(3, 3, 9))
        log.abandon()
        assert path.read_bytes() == whole
    for place in (places[2], places[2] + 20, len(whole) - 5):
        path.write_bytes(flipped(whole, place))
        log = Log(tmp_path / "log.db")
        assert log.state.number == 2
        log.abandon()
    for cut in range(places[0]):  # of a file that was just begun
        path.write_bytes(whole[:cut])
        log = Log(tmp_path / "log.db")
        assert log.state.number == 0
        log.append(plain_batch(1), State(1, 1, 3))
        log.abandon()
        assert path.read_bytes() == whole[: places[1]]


def flipped(whole, place, bit=0):
    torn = bytearray(whole)
    torn[place] ^= 1 << bit
    return bytes(torn)


def test_damage_before_intact_batches_is_an_error_with_its_place(tmp_path):
    """Any bit of the first two of three batches: nothing is cut off, and nothing else is read in its place."""
    path, whole, places = three(tmp_path / "log.db")
    for place in range(len(whole)):
        path.write_bytes(flipped(whole, place, place % 8))
        if place >= places[2]:
            break
        try:
            log = Log(tmp_path / "log.db")
        except LogError as error:
            said = str(error)
        else:
            said = None
        if said is not None:
            at = max([0, *(start for start in places if start <= place)])
            assert f"is damaged at byte {at}, before batch" in said or at == 0
            assert path.name in said
        else:
            number = 1 + (place >= places[1])
            with pytest.raises(LogError, match=f"batch {number} is not what was written"):
                list(log.read(0, 3))
            log.abandon()
        assert path.read_bytes() == flipped(whole, place, place % 8)
    path.write_bytes(whole)
    log = Log(tmp_path / "log.db")
    assert log.state.number == 3
    log.abandon()


def test_what_was_safe_when_the_log_was_closed_is_never_cut_off(tmp_path):
    path, whole, places = three(tmp_path / "log.db")
    Log(tmp_path / "log.db").close()
    for damage in (
        flipped(whole, len(whole) - 5),
        flipped(whole, places[2] + 3),
        whole[:-1],
        whole[: places[2] + 9],
        b"",
    ):
        path.write_bytes(damage)
        with pytest.raises(LogError, match=rf"is damaged at byte ({places[2]}|0): {len(whole)} bytes of it were safe"):
            Log(tmp_path / "log.db")
        assert path.read_bytes() == damage
    path.unlink()
    with pytest.raises(LogError, match="is missing, and it held batches that were on disk"):
        Log(tmp_path / "log.db")
    path.write_bytes(whole)
    log = Log(tmp_path / "log.db")
    log.drop_last(3)  # a batch that was refused may go
    log.abandon()
    log = Log(tmp_path / "log.db")
    assert log.state.number == 2
    log.close()


def test_batches_without_their_log_are_refused(tmp_path):
    """log.db is lost, or it is that of another run."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        three(tmp_path / name / "log.db")
    for path in (tmp_path / "one").glob("log.db*"):
        if ".b0" not in path.name:
            path.unlink()
    for _ in range(2):
        with pytest.raises(LogError, match=r"log\.db is missing or new, but batches of a log of this name exist"):
            Log(tmp_path / "one" / "log.db")
    (segment,) = (tmp_path / "one").glob("log.db.b*")
    segment.replace(tmp_path / "two" / segment.name)
    with pytest.raises(LogError, match="holds batches of another log than"):
        Log(tmp_path / "two" / "log.db")


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    log = Log(tmp_path / "log.db")
    log.append(plain_batch(1), State(1, 1, 3), Start("int", 2, "float64", 5, False))
    (path,) = tmp_path.glob("log.db.b*")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(OSError, match="No space left"):
            log.append(plain_batch(2), State(2, 2, 6))
    assert path.read_bytes() == before
    assert log.state.number == 1
    log.append(plain_batch(2), State(2, 2, 6))
    assert log.state.number == 2
    log.close()


@pytest.mark.parametrize("name", ["log.db", "run[1].log", "run*.log", "a?.db", "-x.db"])
def test_the_log_touches_no_file_but_its_own(name, tmp_path, monkeypatch):
    monkeypatch.setattr(Segments, "LIMIT", 1500)
    path = tmp_path / name
    others = [
        f"{name}.bak", f"{name}.b", f"{name}.b1", f"{name}.b00000000000000x", f"{name}.b0000000000000012", "run1.log",
        f"other{name}.b000000000000001", f"{name}.b000000000000001.bak", "run1.log.b000000000000001", "log.db.notes",
    ]  # fmt: skip
    for other in others:
        (tmp_path / other).write_bytes(b"the only copy of " + other.encode() * 50)
    for number in range(1, 13):
        log = Log(path)
        assert log.state.number == number - 1
        log.append(plain_batch(number), State(number, number, 3 * number), Start("int", 2, "float64", 5, False))
        log.prune(number - 5)
        log.close()
    log = Log(path)
    assert [batch.number for batch in log.read(8, 12)] == [9, 10, 11, 12]
    log.close()
    for other in others:
        assert (tmp_path / other).read_bytes() == b"the only copy of " + other.encode() * 50


def test_the_log_refuses_files_of_others_under_its_names(tmp_path):
    path = tmp_path / "log.db"
    Log(path).close()
    strange = tmp_path / "log.db.b000000000000007"
    strange.write_bytes(b"my only notes" * 100)
    with pytest.raises(LogError, match=r"b000000000000007 does not begin as a file of batches"):
        Log(path)
    assert strange.read_bytes() == b"my only notes" * 100
    strange.unlink()
    log = Log(path)
    strange = tmp_path / "log.db.b000000000000001"
    strange.write_bytes(b"it came later")
    with pytest.raises(FileExistsError):
        log.append(plain_batch(1), State(1, 1, 3), Start("int", 2, "float64", 5, False))
    assert strange.read_bytes() == b"it came later"
    log.close()


def test_the_log_refuses_databases_of_others(tmp_path):
    path = tmp_path / "mine.db"
    link = sqlite3.connect(path)
    link.execute("CREATE TABLE meta (name TEXT, value TEXT)")
    link.execute("INSERT INTO meta VALUES ('shards', 'mine')")
    link.commit()
    link.close()
    before = path.read_bytes()
    with pytest.raises(LogError, match="did not make; give log="):
        Log(path)
    assert path.read_bytes() == before
    path.write_bytes(b"no database at all" * 100)
    for _ in range(2):  # the lock is free again
        with pytest.raises(LogError, match="cannot be opened: file is not a database"):
            Log(path)
    assert path.read_bytes() == b"no database at all" * 100


def test_a_shard_removes_no_part_file_but_its_own(tmp_path):
    store = Store(tmp_path, "0" * 16)
    kept = [
        "0002-0001-000000000005-0000000000000000.snapshot.bak",
        ".0002-0001-notes.part",
        ".0002-0000-000000000005-0000000000000000.snapshot.0123456789abcdef.part",
    ]
    left = ".0002-0001-000000000005-0000000000000000.snapshot.0123456789abcdef.part"
    for name in [*kept, left]:
        (tmp_path / name).write_bytes(b"x")
    store.sweep(2, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


# ---- snapshots -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["folder", "memory://snapshots"])
def test_snapshots_come_back_and_damaged_ones_are_refused(place, tmp_path):
    store = Store(tmp_path / place if "://" not in place else place, "5" * 16)
    fleet = clone(NOVELTY)
    fleet.partial_fit(*next(batches(NOVELTY)))
    for number in (5, 40):
        store.write(Snapshot(2, 1, number), fleet.to_bytes())
    store.write(Snapshot(3, 1, 7), fleet.to_bytes())
    assert store.of(2, 1) == [Snapshot(2, 1, 5), Snapshot(2, 1, 40)]
    assert store.read(Snapshot(2, 1, 40)).to_bytes() == fleet.to_bytes()
    store.remove(Snapshot(2, 1, 5))
    store.remove(Snapshot(2, 1, 5))
    assert store.of(2, 1) == [Snapshot(2, 1, 40)]
    other = Store(store.place, "6" * 16)
    assert other.all() == []
    assert other.foreign() == [store.name_of(Snapshot(2, 1, 40)), store.name_of(Snapshot(3, 1, 7))]
    for left in store.all():
        store.remove(left)
    assert other.foreign() == []


def test_a_shard_learns_each_batch_once_in_order():
    keys, X, _ = next(batches(NOVELTY))
    plan = Plan(0, 1, NOVELTY, None, None)
    start = Start("int", 3, "float64", 0, False)
    parts = [Batch(n, keys, X + n, None, None, None, ((0, 0),), (), 40.0 * n) for n in (1, 2, 3)]
    one = clone(NOVELTY)
    wanted = {n: one.prequential(keys, X + n) for n in (1, 2, 3)}
    shard = Shard(plan)
    assert shard.receive([Message(start, parts[2], 0, True)]) == {}
    assert shard.receive([Message(start, parts[1], 0, True)]) == {}
    answers = shard.receive([Message(start, parts[0], 0, True)])
    assert list(answers) == [1, 2, 3]
    for number, answer in answers.items():
        np.testing.assert_array_equal(answer.scores[0][:, 0], wanted[number])
    assert shard.receive([Message(start, parts[1], 0, True)]) == {}
    assert shard.tally().events == 120
