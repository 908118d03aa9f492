"""A fleet over shards is one fleet, bit for bit, whatever dies and whenever; without Ray."""

from __future__ import annotations

import contextlib
import os
import zlib

import numpy as np
import pytest
from sklearn.base import clone

from cluster_workers import Killed, LocalWorkers
from gristmill import (
    SGD,
    DropOldest,
    DropRandom,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Prepared,
    Squared,
    norma_novelty,
    passive_aggressive,
    perceptron,
    persist,
)
from gristmill.cluster.batch import Batch, Cut, Start, segments_of, shard_of
from gristmill.cluster.fleet import ShardedFleet
from gristmill.cluster.log import Log, LogError, State
from gristmill.cluster.shard import Message, Plan, Shard
from gristmill.cluster.snapshots import Snapshot, Store

NOVELTY = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=6))
CLASSES = KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropRandom(5)))  # random_state=None: a seed a key
NUMBERS = KeyedFleet(KernelRegressor(Gaussian(0.5), budget=DropOldest(5)))


def batches(fleet, count=12, size=40, keys=15, seed=0, texts=False):
    """Batches of events; of classes, those above 2 come late and one at a time."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        devices = rng.integers(0, keys, size=size)
        X = rng.normal(size=(size, 3))
        if isinstance(fleet._model, KernelClassifier):
            y = rng.integers(0, 2 + min(number, 11) // 4, size=size)
            y = np.array(["a", "z", "k", "b", "y"])[y]
        elif isinstance(fleet._model, KernelRegressor):
            y = X[:, 0] + devices
        else:
            y = None
        yield [f"device {key}" for key in devices] if texts else devices, X, y


def digest(fleet):
    """Every key's learner, its last event, the labels and the clock."""
    keys = fleet._all_keys()
    order = np.argsort(keys)
    keys = keys[order] if isinstance(keys, np.ndarray) else [keys[i] for i in order]
    rows = keys if isinstance(keys, np.ndarray) else [key.encode() if isinstance(key, str) else key for key in keys]
    pack = fleet._core_.members(rows, fleet._found(fleet._core_, rows))
    sums = {name: zlib.crc32(np.ascontiguousarray(array).tobytes()) for name, array in pack.items()}
    return list(keys), sums, fleet._table.names, fleet._core_.now, fleet._core_.classes


class Program:
    """A driver that can be killed and started again, in a folder of its own."""

    def __init__(self, fleet, folder, shards=2, every=100, workers=None):
        self.fleet, self.folder, self.shards, self.every = fleet, folder, shards, every
        self.workers = workers or LocalWorkers()

    def __enter__(self):
        self.log = Log(self.folder / "log.db")
        self.keyed = ShardedFleet(
            clone(self.fleet), self.workers, self.shards, str(self.folder / "snapshots"), self.log, self.every
        )
        return self.keyed

    def __exit__(self, kind, *_):
        if kind is Killed:  # nothing is written, nothing said goodbye to
            for shard in range(self.shards):
                self.workers.end(shard)
            self.log.close()
            return True
        with contextlib.suppress(Killed):
            self.keyed.close()
        return False


def alone(fleet, seed_of=None, **how):
    """The same batches in one fleet in one process, with the seed that the cluster drew."""
    one = clone(fleet)
    if seed_of is not None:
        one._seed = lambda: seed_of
    scores = [one.prequential(*batch) for batch in batches(fleet, **how)]
    return one, scores


def same_scores(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


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


# ---- snapshots -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["folder", "memory://snapshots"])
def test_snapshots_come_back_and_damaged_ones_are_refused(place, tmp_path):
    store = Store(tmp_path / place if "://" not in place else place)
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
    for left in store.all():
        store.remove(left)


def test_a_damaged_snapshot_is_passed_over(tmp_path):
    """The one before it serves, as long as the log reaches back so far."""
    one, _ = alone(NOVELTY)
    store = Store(tmp_path / "snapshots")
    program = Program(NOVELTY, tmp_path, every=10**9)
    kept = {}
    with program as keyed:
        for number, batch in enumerate(batches(NOVELTY)):
            keyed.partial_fit(*batch)
            if number in (3, 7):
                keyed._feed.ask_all("snapshot")
            if number == 3:
                kept = {found: store.read(found).to_bytes() for found in store.all()}
        for snapshot, data in kept.items():
            store.write(snapshot, data)
        assert [found.number for found in store.of(2, 1)] == [4, 8]
        path = tmp_path / "snapshots" / Snapshot(2, 1, 8).name
        for damage in (path.read_bytes()[:-1], b"", b"{}\n", path.read_bytes().replace(b'"number": 8', b'"number": 9')):
            path.write_bytes(damage)
            with pytest.raises(persist.ModelFileError, match="is damaged, or is not a snapshot"):
                store.read(Snapshot(2, 1, 8))
        program.workers.end(1)
        assert digest(keyed.collect()) == digest(one)
        assert [record.restored for record in keyed._feed.records] == [0, 4]


# ---- the same bits ---------------------------------------------------------------------------------------------------


CASES = {
    "novelty": NOVELTY,
    "classes": CLASSES,
    "numbers": NUMBERS,
    "one seed": KeyedFleet(KernelClassifier(Gaussian(0.5), budget=DropRandom(5), random_state=3)),
    "scaled": KeyedFleet(Prepared(KernelRegressor(Gaussian(0.5), budget=DropOldest(5)))),
    "ttl": KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=6), ttl=60),
    "may diverge": KeyedFleet(KernelRegressor(Linear(), SGD(Squared(), 0.001), DropOldest(4))),
}


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_shards_say_and_learn_what_one_fleet_does(name, shards, tmp_path):
    fleet = CASES[name]
    with Program(fleet, tmp_path, shards) as keyed:
        found = [keyed.prequential(*batch) for batch in batches(fleet)]
        one, wanted = alone(fleet, keyed._start.seed)
        same_scores(found, wanted)
        assert digest(keyed.collect()) == digest(one)
        keys, X, _ = next(batches(fleet, keys=20, seed=5))
        np.testing.assert_array_equal(keyed.decision_function(keys, X), one.decision_function(keys, X))
        np.testing.assert_array_equal(keyed.predict(keys, X), one.predict(keys, X))
        assert sorted(keyed.keys_) == sorted(one._all_keys())
        assert keyed[3].to_bytes() == one[3].to_bytes()
        assert keyed.position_ == 12
        assert keyed.n_seen_ == 480


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["novelty", "classes", "scaled", "ttl", "may diverge"])
def test_kills_duplicates_and_another_order_change_nothing(name, seed, tmp_path):
    fleet = CASES[name]
    workers = LocalWorkers(np.random.default_rng(seed), kill=0.15, muddle=0.3)
    found = []
    with Program(fleet, tmp_path, 3, every=50, workers=workers) as keyed:
        for number, batch in enumerate(batches(fleet)):
            if number % 3:
                keyed.partial_fit(*batch)
                found.append(None)
            else:
                found.append(keyed.prequential(*batch))
        one, wanted = alone(fleet, keyed._start.seed)
        workers.kill = 0.0
        assert digest(keyed.collect()) == digest(one)
    same_scores(found[::3], wanted[::3])
    assert workers.kills > 3


# ---- the driver dies -------------------------------------------------------------------------------------------------


PLACES = {
    "before the log": (Log, "append", False),
    "after the log": (Log, "append", True),
    "in the middle of a snapshot": (Store, "write", False),
    "after a snapshot": (Store, "write", True),
    "before older batches are forgotten": (Log, "prune", False),
    "before an older snapshot goes": (Store, "remove", False),
}


def run_and_kill(fleet, folder, cls, name, after, times, monkeypatch):
    """A program that is killed at a place and started again, which goes on after its position, until it comes through."""
    left, true = times, getattr(cls, name)

    def deadly(self, *arguments, **named):
        nonlocal left
        left -= 1
        if left % 5 == 0 and left > -60:
            if after:
                true(self, *arguments, **named)
            if name == "write":
                (folder / "snapshots" / f".{arguments[0].name}.0.part").write_bytes(b"half a snap")
            raise Killed
        return true(self, *arguments, **named)

    monkeypatch.setattr(cls, name, deadly)
    starts, workers = 0, LocalWorkers()
    while True:
        starts += 1
        assert starts < 60
        done = False
        with Program(fleet, folder, every=20, workers=workers) as keyed:
            for number, batch in enumerate(batches(fleet, count=24), start=1):
                if number > keyed.position_ - 1:  # the last one is sent once more, and changes nothing
                    keyed.partial_fit(*batch, position=number)
            seed, found = keyed._start.seed, digest(keyed.collect())
            done = True
        if done:
            return seed, found, starts - 1 + workers.deaths


@pytest.mark.parametrize("fleet", [NOVELTY, CLASSES, CASES["may diverge"]], ids=["novelty", "classes", "may diverge"])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_killed_goes_on_where_it_was(place, fleet, tmp_path, monkeypatch):
    cls, name, after = PLACES[place]
    seed, found, deaths = run_and_kill(fleet, tmp_path, cls, name, after, 1, monkeypatch)
    assert found == digest(alone(fleet, seed, count=24)[0])
    assert deaths > 0
    assert not [left for left in os.listdir(tmp_path / "snapshots") if left.endswith(".part")]


# ---- resharding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("name", ["classes", "ttl"])
def test_resharding_keeps_every_key(name, texts, tmp_path):
    fleet = CASES[name]
    for shards, upto in ((2, 5), (3, 9), (1, 12)):
        with Program(fleet, tmp_path, shards, every=100) as keyed:
            for number, batch in enumerate(batches(fleet, texts=texts), start=1):
                if keyed.position_ < number <= upto:
                    keyed.partial_fit(*batch, position=number)
            seed, found = keyed._start.seed, digest(keyed.collect())
        assert {snapshot.shards for snapshot in Store(tmp_path / "snapshots").all()} == {shards}
    assert found == digest(alone(fleet, seed, texts=texts)[0])


@pytest.mark.parametrize("left", range(1, 9))
def test_a_driver_that_is_killed_while_it_reshards(left, tmp_path, monkeypatch):
    with Program(CLASSES, tmp_path, 2) as keyed:
        for batch in batches(CLASSES):
            keyed.partial_fit(*batch)
        seed = keyed._start.seed
    calls = 0
    for cls, name in ((Store, "write"), (Store, "read"), (Store, "remove"), (Log, "say")):
        true = getattr(cls, name)

        def deadly(self, *arguments, true=true):
            nonlocal calls
            calls += 1
            if calls == left:
                raise Killed
            return true(self, *arguments)

        monkeypatch.setattr(cls, name, deadly)
    for _ in range(2):
        program = Program(CLASSES, tmp_path, 3)
        try:
            with program as keyed:
                found = digest(keyed.collect())
        except Killed:
            program.log.close()
    assert found == digest(alone(CLASSES, seed)[0])


# ---- refusals --------------------------------------------------------------------------------------------------------


def said_or_error(fleet, *batch):
    try:
        return fleet.prequential(*batch)
    except ValueError as error:
        return str(error)


def test_a_batch_that_diverges_changes_nothing(tmp_path):
    """The error is that of one fleet, whichever shard met it; the batches after it go on from before."""
    wild = KeyedFleet(KernelRegressor(Linear(), SGD(Squared(), 0.1), DropOldest(4)))
    rng = np.random.default_rng(0)
    one = clone(wild)
    with Program(wild, tmp_path, 3, every=20) as keyed:
        refused = 0
        for number in range(12):
            keys, X = rng.integers(0, 9, size=30), rng.normal(size=(30, 3))
            if number % 3 == 2:
                X[7:] *= 1e150
            y = X[:, 0]
            wanted, position = said_or_error(one, keys, X, y), keyed.position_
            found = said_or_error(keyed, keys, X, y)
            np.testing.assert_array_equal(found, wanted)
            refused += isinstance(wanted, str)
            assert keyed.position_ == position + (not isinstance(wanted, str))
        assert refused >= 3
        assert digest(keyed.collect()) == digest(one)


def test_bad_input_is_refused_before_it_is_logged(tmp_path):
    one = clone(CLASSES)
    with Program(CLASSES, tmp_path) as keyed:
        first = next(batches(CLASSES))
        keyed.partial_fit(*first)
        one.partial_fit(*first)
        keys, X, y = first
        bad = X.copy()
        bad[3, 1] = np.nan
        for arguments in ((keys, bad, y), (keys, X[:, :2], y), (keys, X, y[:5]), (["a"] * 40, X, y), (keys, X, None)):
            with pytest.raises((ValueError, TypeError)) as wanted:
                one.partial_fit(*arguments)
            with pytest.raises(type(wanted.value)) as found:
                keyed.partial_fit(*arguments)
            assert str(found.value) == str(wanted.value)
        assert keyed.position_ == 1


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (KeyedFleet(passive_aggressive(Gaussian(1.0), size=5), prior=perceptron(Gaussian(1.0))), "cannot run prior="),
        (KeyedFleet(NOVELTY.prototype, max_keys=5), "cannot run max_keys without spill"),
        (clone(NOVELTY).partial_fit([1], [[1.0]]), "has not learned yet"),
        (NOVELTY.prototype, "keyed takes a KeyedFleet, got"),
    ],
)
def test_what_would_not_be_the_same_is_refused_by_name(fleet, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ShardedFleet(fleet, LocalWorkers(), 2)


def test_a_log_is_of_one_fleet(tmp_path):
    with Program(NOVELTY, tmp_path):
        pass
    with pytest.raises(LogError, match="belongs to a fleet with ttl=null, got 60"), Program(CASES["ttl"], tmp_path):
        pass


def test_positions_are_the_programs_own(tmp_path):
    with Program(NOVELTY, tmp_path) as keyed:
        first, second, *_ = batches(NOVELTY)
        keyed.partial_fit(*first, position=1000)
        before = digest(keyed.collect())
        assert keyed.prequential(*second, position=1000) is None
        assert keyed.partial_fit(*second, position=7).position_ == 1000
        assert digest(keyed.collect()) == before
        assert keyed.partial_fit(*second).position_ == 1001
        with pytest.raises(TypeError, match="position must be a whole number"):
            keyed.partial_fit(*second, position="7")


def test_keys_are_forgotten_and_stay_so(tmp_path):
    one, _ = alone(NOVELTY)
    gone = [3, 4, 99]
    with Program(NOVELTY, tmp_path, every=10**9) as keyed:
        for batch in batches(NOVELTY):
            keyed.partial_fit(*batch)
        assert keyed.forget(gone) == one.forget(gone) == 2
        keyed._workers.end(0)
        keyed._workers.end(1)
        assert digest(keyed.collect()) == digest(one)
        with pytest.raises(KeyError):
            keyed[3]


def test_keys_on_disk(tmp_path):
    fleet = KeyedFleet(NOVELTY.prototype, max_keys=4, spill=str(tmp_path / "spill.db"))
    workers = LocalWorkers(np.random.default_rng(1), kill=0.1)
    with Program(fleet, tmp_path, workers=workers, every=60) as keyed:
        found = [keyed.prequential(*batch) for batch in batches(NOVELTY)]
        one, wanted = alone(NOVELTY)
        assert digest(keyed.collect())[:2] == digest(one)[:2]
    same_scores(found, wanted)


def test_without_snapshots_a_lost_shard_is_an_error():
    workers = LocalWorkers()
    keyed = ShardedFleet(clone(NOVELTY), workers, 2)
    found = [keyed.prequential(*batch) for batch in batches(NOVELTY)]
    same_scores(found, alone(NOVELTY)[1])
    workers.end(1)
    with pytest.raises(RuntimeError, match=r"shard 1 was lost.*give Cluster\(snapshots="):
        keyed.collect()


def test_a_shard_learns_each_batch_once_in_order():
    keys, X, _ = next(batches(NOVELTY))
    plan = Plan(0, 1, NOVELTY, None, None)
    start = Start("int", 3, "float64", 0, False)
    parts = [Batch(n, keys, X + n, None, None, None, ((0, 0),), (), 40.0 * n) for n in (1, 2, 3)]
    one = clone(NOVELTY)
    wanted = {n: one.prequential(keys, X + n) for n in (1, 2, 3)}
    shard = Shard(plan)
    assert shard.receive(Message(start, parts[2], 0, True)) == {}
    assert shard.receive(Message(start, parts[1], 0, True)) == {}
    answers = shard.receive(Message(start, parts[0], 0, True))
    assert list(answers) == [1, 2, 3]
    for number, answer in answers.items():
        np.testing.assert_array_equal(answer.scores[0][:, 0], wanted[number])
    assert shard.receive(Message(start, parts[1], 0, True)) == {}
    assert shard.tally().events == 120


def test_old_snapshots_and_batches_go(tmp_path):
    with Program(NOVELTY, tmp_path, every=40) as keyed:
        for batch in batches(NOVELTY, count=40):
            keyed.partial_fit(*batch)
        keyed.snapshot()
        keyed.partial_fit(*next(batches(NOVELTY))).flush()
        assert all(len(Store(tmp_path / "snapshots").of(2, shard)) <= 6 for shard in range(2))
        kept = keyed._log._link.execute("SELECT count(*) FROM batches").fetchone()[0]
        assert kept <= 10
