"""Keys past their time are as if they had never come, and times are what their unit says."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pytest

import gristmill
from gristmill import DropOldest, Gaussian, KernelNovelty, KeyedFleet
from gristmill._common.times import read_times
from tests.fleets.test_fleet import same

NOVELTY = KernelNovelty(Gaussian(0.5), budget=DropOldest(3), random_state=0)
X = np.random.default_rng(0).normal(size=(300, 2))
PLACES = ["memory", "disk"]


def settings(place, tmp_path):
    return {} if place == "memory" else {"max_keys": 2, "spill": tmp_path / "keys.db"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("cut", [1, 3, 8])
def test_a_key_past_its_time_is_as_if_it_had_never_come(tmp_path, place, cut):
    fleet = KeyedFleet(NOVELTY, ttl=10, **settings(place, tmp_path))
    keys, times = [1, 2, 3, 4, 1, 5, 6, 7], np.array([0, 1, 2, 3, 4, 12.5, 13, 14.5])
    for first in range(0, 8, cut):
        fleet.partial_fit(keys[first : first + cut], X[:8][first : first + cut], time=times[first : first + cut])
    fresh = fleet.decision_function([99], X[:1])[0]
    for look in range(2):  # looking changes nothing
        assert sorted(fleet.keys_) == [5, 6, 7], look
        assert len(fleet) == 3
        assert not any(key in fleet for key in (1, 2, 3, 4))
        assert fleet.n_expired_ == 4
        assert (fleet.decision_function([1, 2, 3, 4], X[:4]) == fresh).all()
        assert fleet.forget([1, 2]) == 0
        with pytest.raises(KeyError):
            fleet[2]
        arrays, fitted = fleet.saved_fields()
        assert sorted(arrays["keys"]) == [5, 6, 7]
        assert fitted["expired"] == 4
    again = pickle.loads(pickle.dumps(fleet))
    assert again.n_expired_ == 4
    for one in (fleet, again):
        one.partial_fit([2], X[:1], time=[15.0])
        assert one[2].n_seen_ == 1
        assert one.n_expired_ == 4  # it was counted when its time was over


@pytest.mark.parametrize("place", PLACES)
def test_every_key_that_came_is_there_or_counted(tmp_path, place):
    """For any cut of the stream, and with reads in between."""
    rng = np.random.default_rng(5)
    keys, times = rng.integers(0, 30, size=300), np.cumsum(rng.exponential(size=300))
    found = []
    for cuts in ([], [1, 50, 51, 200], range(1, 300)):
        fleet = KeyedFleet(NOVELTY, ttl=12.0, **settings(place, tmp_path))
        starts = 0
        for at in np.split(np.arange(300), list(cuts)):
            if len(cuts) > 10:
                starts += int(at.size and (fleet._core_ is None or keys[at[0]] not in _known_at(fleet, times[at[0]])))
            fleet.partial_fit(keys[at], X[at], time=times[at])
            if len(cuts) == 4:
                len(fleet), fleet.keys_, fleet.n_expired_, fleet.predict([3], X[:1], time=[times[at[-1]] + 5])
        found.append((sorted(fleet), fleet.n_expired_))
        if len(cuts) > 10:
            assert starts == len(fleet) + fleet.n_expired_
    assert found[0] == found[1] == found[2]
    assert found[0][1] > 20


def _known_at(fleet, time):
    fresh = fleet.decision_function([12345], X[:1])[0]
    return [key for key in fleet if fleet.score_one(key, X[0], time=time) != fresh or fleet[key].n_seen_ == 0]


def test_memory_does_not_keep_keys_past_their_time():
    fleet = KeyedFleet(NOVELTY, ttl=100)
    for first in range(0, 20_000, 500):
        fleet.partial_fit(np.arange(first, first + 500), np.tile(X[:250], (2, 1)))
    assert fleet._core_.live == 101
    assert fleet.memory_bytes_ < 200_000
    assert fleet.n_expired_ == 20_000 - 101


def test_disk_does_not_keep_keys_past_their_time(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.fleets.spill.BATCH", 50)
    fleet = KeyedFleet(NOVELTY, ttl=100, max_keys=10, spill=tmp_path / "keys.db")
    for first in range(0, 3000, 50):
        fleet.partial_fit(np.arange(first, first + 50), X[:50])
    assert len(fleet._store._spill) < 400
    assert len(fleet) == 101
    assert fleet.n_expired_ == 3000 - 101


def test_a_key_that_came_back_from_disk_and_went_past_its_time_does_not_come_back_again(tmp_path):
    keys = np.array([1, 2, 3, 1, 9, 9, 9, 9, 9, 9, 9, 1, 2, 1])
    for cuts in ([], [3], [3, 4, 11]):
        alone = KeyedFleet(NOVELTY, ttl=5)
        fleet = KeyedFleet(NOVELTY, ttl=5, max_keys=2, spill=tmp_path / "keys.db")
        for one in (alone, fleet):
            for at in np.split(np.arange(14), cuts):
                one.partial_fit(keys[at], X[at])
        same(fleet[1], alone[1])
        assert (sorted(fleet), fleet.n_expired_) == (sorted(alone), alone.n_expired_)


def test_looking_ahead_does_not_move_the_clock():
    fleet = KeyedFleet(NOVELTY, ttl=10).partial_fit([1, 2], X[:2], time=[0.0, 5.0])
    fresh = fleet.score_one(99, X[0])
    assert fleet.score_one(1, X[0], time=11.0) == fresh != fleet.score_one(2, X[0], time=11.0)
    assert fleet.predict_one(1, X[0], time=11.0) == fleet.predict_one(99, X[0])
    assert sorted(fleet) == [1, 2]


def test_an_event_that_comes_late_counts_as_of_now():
    fleet = KeyedFleet(NOVELTY, ttl=10).partial_fit([1, 2, 1], X[:3], time=[0.0, 9.0, 2.0])
    fleet.partial_fit([3], X[:1], time=[15.0])
    assert sorted(fleet) == [1, 2, 3]


def test_times_below_0(tmp_path):
    fleet = KeyedFleet(NOVELTY, ttl=10).partial_fit([1, 2, 3], X[:3], time=[-1000.0, -995.0, -989.0])
    assert sorted(fleet) == [2, 3]
    fleet.save(tmp_path / "model")
    loaded = gristmill.load(tmp_path / "model")
    assert sorted(loaded) == [2, 3]
    loaded.partial_fit([2], X[:1], time=[-986.0])
    assert loaded[2].n_seen_ == 2


# ---- units --------------------------------------------------------------------------------------------------------

START = datetime.datetime(2024, 5, 1, 12)
STEPS = [0, 1, 1.5, 3600]
WHEN = [START + datetime.timedelta(seconds=step) for step in STEPS]
BASE = START.replace(tzinfo=datetime.UTC).timestamp()


def forms():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    arrow = pytest.importorskip("pyarrow")
    return {
        "datetimes": WHEN,
        "of a time zone": [when.replace(tzinfo=datetime.UTC).astimezone(zone) for when in WHEN],
        "datetime64 in a list": [np.datetime64(when) for when in WHEN],
        **{unit: np.array(WHEN, dtype=f"datetime64[{unit}]") for unit in ("ms", "us", "ns")},
        "pandas": pandas.Series(pandas.to_datetime(WHEN)),
        "pandas, of a time zone": pandas.Series(pandas.to_datetime(WHEN)).dt.tz_localize("UTC"),
        "pandas index": pandas.DatetimeIndex(WHEN),
        "polars": polars.Series(WHEN),
        "arrow": arrow.array(WHEN),
        "seconds": [BASE + step for step in STEPS],
    }


def test_dates_of_any_unit_are_seconds():
    for name, form in forms().items():
        np.testing.assert_array_equal(read_times(form, 4) - BASE, STEPS, err_msg=name)
    days = np.array(["1970-01-02", "1970-01-03"])
    for unit in ("D", "h", "m", "s"):
        np.testing.assert_array_equal(read_times(days.astype(f"datetime64[{unit}]"), 2), [86400, 172800])
    np.testing.assert_array_equal(read_times([datetime.date(1970, 1, 2)], 1), [86400])


@pytest.mark.parametrize(
    "ttl", [60, 60.0, datetime.timedelta(minutes=1), np.timedelta64(1, "m"), np.timedelta64(60_000, "ms")]
)
def test_a_span_is_in_seconds(ttl, tmp_path):
    for unit in ("s", "ms", "ns"):
        times = (np.datetime64(START) + np.array([0, 30_000, 90_000], dtype="timedelta64[ms]")).astype(
            f"datetime64[{unit}]"
        )
        fleet = KeyedFleet(NOVELTY, ttl=ttl).partial_fit([1, 2, 3], X[:3], time=times)
        assert sorted(fleet) == [2, 3]
        fleet.learn_one(2, X[0], time=times[2].astype(datetime.datetime) if unit != "ns" else times[2])
        fleet.save(tmp_path / "model")
        loaded = gristmill.load(tmp_path / "model")
        loaded.partial_fit([1], X[:1], time=[times[2] + np.timedelta64(61, "s")])
        assert sorted(loaded) == [1]


@pytest.mark.parametrize(
    ("time", "says"),
    [
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[s]"), "row 1 is NaT"),
        ([START, None], "row 1 is None"),
        ([START, 5.0], r"row 1 is 5\.0"),
        ([1.0, np.nan], "row 1 is nan"),
        (["today", "now"], "row 0 is 'today'"),
        ([1.0], "an event, 2, got shape"),
    ],
    ids=repr,
)
def test_what_is_no_time_is_named_by_row(time, says):
    fleet = KeyedFleet(NOVELTY, ttl=5)
    with pytest.raises(ValueError, match=says):
        fleet.partial_fit([1, 2], X[:2], time=time)
    assert len(fleet) == 0


@pytest.mark.parametrize(
    "ttl", [True, 0, -1, float("nan"), "1 h", np.timedelta64("NaT"), datetime.timedelta(0)], ids=repr
)
def test_what_is_no_time_to_live_is_refused(ttl):
    with pytest.raises(ValueError, match="ttl must be a number above 0"):
        KeyedFleet(NOVELTY, ttl=ttl).partial_fit([1], X[:1], time=[0.0])


def test_a_span_needs_times():
    with pytest.raises(ValueError, match=r"ttl=.* is a span of time: give time="):
        KeyedFleet(NOVELTY, ttl=datetime.timedelta(minutes=1)).partial_fit([1], X[:1])
