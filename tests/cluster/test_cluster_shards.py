"""A fleet over shards is one fleet, bit for bit, whatever dies and whenever; without Ray."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import pytest
from cluster_workers import (
    CASES,
    CLASSES,
    NOVELTY,
    Killed,
    LocalWorkers,
    Program,
    alone,
    batches,
    digest,
    same_scores,
)
from sklearn.base import clone

from gristmill import (
    SGD,
    DropOldest,
    Gaussian,
    KernelRegressor,
    KeyedFleet,
    Linear,
    Squared,
    passive_aggressive,
    perceptron,
    persist,
)
from gristmill.cluster.shards.feed import Feed
from gristmill.cluster.shards.log import Log, LogError
from gristmill.cluster.shards.sharded_fleet import ShardedFleet
from gristmill.cluster.shards.snapshots import Snapshot, Store

# ---- the same bits ---------------------------------------------------------------------------------------------------


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
        assert sorted(keyed.keys_) == sorted(one.keys_)
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
                part = f".{self.name_of(arguments[0])}.{'0' * 16}.part"
                (folder / "snapshots" / part).write_bytes(b"half a snap")
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
        store = Store(tmp_path / "snapshots", keyed._log.id)
        assert {snapshot.shards for snapshot in store.all()} == {shards}
        assert store.foreign() == []
    assert found == digest(alone(fleet, seed, texts=texts)[0])


@pytest.mark.parametrize("left", range(1, 9))
def test_a_driver_that_is_killed_while_it_reshards(left, tmp_path, monkeypatch):
    with Program(CLASSES, tmp_path, 2) as keyed:
        for batch in batches(CLASSES):
            keyed.partial_fit(*batch)
        seed = keyed._start.seed
    calls = 0
    for cls, name in ((Store, "write"), (Store, "read"), (Store, "remove"), (Log, "set_meta")):
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
        (KeyedFleet(KernelRegressor(budget=DropOldest(5)), center=True), "cannot run center=True"),
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


@pytest.mark.parametrize("first", [0, -3, -(10**12), 2**40])
@pytest.mark.parametrize("step", [1, 7])
def test_positions_are_any_numbers_that_increase(first, step, tmp_path):
    """Offsets of a queue begin with 0; each is learned once, also by a program that is started again."""
    positions = [first + step * at for at in range(12)]
    for upto in (5, 12):
        with Program(NOVELTY, tmp_path) as keyed:
            assert (keyed.n_seen_, keyed.position_) == ((0, 0) if upto == 5 else (200, positions[4]))
            for position, batch in list(zip(positions, batches(NOVELTY), strict=True))[:upto]:
                keyed.partial_fit(*batch, position=position)
                assert keyed.prequential(*batch, position=position) is None
            assert keyed.position_ == positions[upto - 1]
            assert keyed.n_seen_ == 40 * upto
            found = digest(keyed.collect())
    assert found == digest(alone(NOVELTY)[0])


def test_snapshots_of_another_log_are_refused(tmp_path):
    """The log is gone, or two logs are over one folder: another history must not come back in silence."""
    with Program(NOVELTY, tmp_path, every=40) as keyed:
        for batch in batches(NOVELTY):
            keyed.partial_fit(*batch)
    before = sorted(os.listdir(tmp_path / "snapshots"))
    assert before
    other = tmp_path / "other"
    other.mkdir()
    for path in list(tmp_path.glob("log.db*")):
        path.rename(other / path.name)
    for _ in range(2):  # neither does the first try leave anything behind that the second takes
        with (
            pytest.raises(LogError, match=r"snapshots of another log than .*log\.db.*bring that log back"),
            Program(NOVELTY, tmp_path),
        ):
            pass
    assert sorted(os.listdir(tmp_path / "snapshots")) == before
    for path in list(tmp_path.glob("log.db*")):
        path.unlink()
    for path in list(other.glob("log.db*")):
        path.rename(tmp_path / path.name)
    with Program(NOVELTY, tmp_path) as keyed:
        assert keyed.position_ == 12
        assert digest(keyed.collect()) == digest(alone(NOVELTY)[0])


def test_two_logs_over_one_folder_at_once_do_not_mix(tmp_path):
    """Each finds only its own snapshots, whatever the other writes under the same numbers."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "snapshots").symlink_to(tmp_path / "shared")
    (tmp_path / "shared").mkdir()
    with Program(NOVELTY, folders[0], every=40) as one, Program(NOVELTY, folders[1], every=40) as two:
        for batch, other in zip(batches(NOVELTY), batches(NOVELTY, seed=5), strict=True):
            one.partial_fit(*batch)
            two.partial_fit(*other)
        for keyed in (one, two):
            keyed.flush()
            keyed._workers.end(0)
        assert digest(one.collect()) == digest(alone(NOVELTY)[0])
        assert digest(two.collect()) == digest(alone(NOVELTY, seed=5)[0])


def test_a_log_that_knows_less_than_a_snapshot_is_refused(tmp_path):
    with Program(NOVELTY, tmp_path, every=40) as keyed:
        for batch in batches(NOVELTY):
            keyed.partial_fit(*batch)
    log = Log(tmp_path / "log.db")
    log.drop_last(12)
    log.close()
    with (
        pytest.raises(LogError, match="ends at batch 11, and a snapshot holds batch 12: the log has lost batches"),
        Program(NOVELTY, tmp_path),
    ):
        pass


class FullDisk(Store):
    """Snapshots of shard 1 do not fit."""

    def write(self, snapshot, model):
        if snapshot.shard == 1:
            raise OSError(28, "No space left on device")
        super().write(snapshot, model)


@pytest.mark.parametrize("verb", ["partial_fit", "prequential"])
def test_a_snapshot_that_fails_is_a_warning_and_every_batch_is_learned_once(verb, tmp_path, monkeypatch):
    """The batch is safe in the log, so an error would make the program send it again."""
    monkeypatch.setattr("gristmill.cluster.shards.shard.Store", FullDisk)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with Program(NOVELTY, tmp_path, every=60) as keyed:
            for batch in batches(NOVELTY):
                getattr(keyed, verb)(*batch)
            keyed.flush()
            assert keyed.n_seen_ == 480
            found = digest(keyed.collect())
            with pytest.raises(OSError, match="No space left"):
                keyed.snapshot()  # the caller gets the error
            assert len(keyed._log) == 12, "no batch is forgotten that is in no snapshot"
    first, *_, last = (str(one.message) for one in told)
    assert re.search("shard 1 could not write a snapshot.*No space left.*safe in the log", first)
    assert re.search("the last snapshots could not be written.*No space left.*all batches are safe", last)
    assert found == digest(alone(NOVELTY)[0])
    monkeypatch.undo()
    with Program(NOVELTY, tmp_path, every=60) as keyed:
        assert keyed.position_ == 12
        assert digest(keyed.collect()) == found


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


def test_old_snapshots_and_batches_go(tmp_path):
    with Program(NOVELTY, tmp_path, every=40) as keyed:
        for batch in batches(NOVELTY, count=40):
            keyed.partial_fit(*batch)
        keyed.snapshot()
        keyed.partial_fit(*next(batches(NOVELTY))).flush()
        store = Store(tmp_path / "snapshots", keyed._log.id)
        assert all(1 <= len(store.of(2, shard)) <= 6 for shard in range(2))
        assert len(keyed._log) <= 10


def test_a_damaged_snapshot_is_passed_over(tmp_path, monkeypatch):
    """The one before it serves, as long as the log reaches back so far."""
    monkeypatch.setattr(Log, "prune", lambda log, upto: None)
    one, _ = alone(NOVELTY)
    program = Program(NOVELTY, tmp_path, every=10**9)
    kept = {}
    with program as keyed:
        store = Store(tmp_path / "snapshots", keyed._log.id)
        for number, batch in enumerate(batches(NOVELTY)):
            keyed.partial_fit(*batch)
            if number in (3, 7):
                keyed._feed.ask_all("snapshot")
            if number == 3:
                kept = {found: store.read(found).to_bytes() for found in store.all()}
        for snapshot, data in kept.items():
            store.write(snapshot, data)
        assert [found.number for found in store.of(2, 1)] == [4, 8]
        path = tmp_path / "snapshots" / store.name_of(Snapshot(2, 1, 8))
        whole = path.read_bytes()
        line, _, model = whole.partition(b"\n")
        last = b"0" if line[-1:] != b"0" else b"1"
        damages = [
            b"", b"{}\n", whole[:-1], whole.replace(b'"number": 8', b'"number": 9'), line[:-1] + last + b"\n" + model,
            whole.replace(b'"snapshot": 2', b'"snapshot":  2'), whole.replace(store.log.encode(), b"0" * 16),
        ]  # fmt: skip
        for damage in damages:
            assert damage != whole
            path.write_bytes(damage)
            with pytest.raises(persist.ModelFileError, match="is damaged, or is not a snapshot"):
                store.read(Snapshot(2, 1, 8))
        program.workers.end(1)
        assert digest(keyed.collect()) == digest(one)
        assert [record.restored for record in keyed._feed.records] == [0, 4]


class SlowWorkers(LocalWorkers):
    """Nothing is ready before it is waited for; the batches of each message to shard 0 are noted."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def ready(self, shard, ticket):
        return False

    def submit(self, shard, method, *arguments):
        if method == "receive" and shard == 0:
            self.sent.append([message.part.number for message in arguments[0]])
        return super().submit(shard, method, *arguments)


def test_batches_go_together_while_the_shards_are_busy(tmp_path):
    one, _ = alone(NOVELTY, count=30)
    with Program(NOVELTY, tmp_path, workers=SlowWorkers()) as keyed:
        keyed._feed.MOST_SECONDS = float("inf")
        for batch in batches(NOVELTY, count=30):
            keyed.partial_fit(*batch)
        keyed.flush()
        sent = keyed._workers.sent
        assert sent[:3] == [[1], [2], list(range(3, 11))]
        assert [number for message in sent for number in message] == list(range(1, 31))
        assert max(map(len, sent)) == Feed.TOGETHER
        assert digest(keyed.collect()) == digest(one)


def test_a_batch_that_takes_long_does_not_wait_for_others(tmp_path):
    workers = SlowWorkers()
    with Program(NOVELTY, tmp_path, workers=workers) as keyed:
        keyed._feed.MOST_SECONDS = 0.0
        for batch in batches(NOVELTY):
            keyed.partial_fit(*batch)
        keyed.flush()
        assert all(len(message) == 1 for message in workers.sent)
