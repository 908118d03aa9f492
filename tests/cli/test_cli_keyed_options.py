"""Options of `gristmill learn --key` and `predict`: who must go, on which clock, and what contradicts a saved model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill.cli import main


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False, **kwargs)


def refused(said, *arguments):
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.stderr.split()), result.stderr


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    path = tmp_path_factory.mktemp("keyed") / "events.csv"
    rng = np.random.default_rng(0)
    lines = ["device,site,seconds,level,state"]
    for second in range(600):
        level = rng.normal()
        lines.append(f"d{rng.integers(12)},s{second % 2},{second},{level:.4f},{'high' if level > 0 else 'low'}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def model(events, tmp_path_factory):
    path = tmp_path_factory.mktemp("keyed") / "model"
    assert call("learn", events, "--key", "device", "--model", path).exit_code == 0
    return path


def test_keys_that_had_to_go_are_counted(events, tmp_path):
    page = tmp_path / "report.html"
    result = call("learn", events, "--key", "device", "--max-keys", 4, "--worst", 2, "--report", page)
    found = json.loads(call("learn", events, "--key", "device", "--max-keys", 4, "--json").stdout)
    assert found["keys"] == 4
    assert found["dropped"] > 8
    said = f"4 keys; a key was dropped {found['dropped']} times (--max-keys)"
    assert said in result.stdout
    assert f"A{said[9:]}, and what it had learned was lost." in page.read_text()


def test_dropped_keys_are_kept_on_disk_with_spill(events, model, tmp_path):
    spilled = tmp_path / "model"
    result = call(
        "learn", events, "--key", "device", "--max-keys", 4, "--spill", tmp_path / "keys.db", "--model", spilled
    )
    assert result.exit_code == 0, result.output
    assert "12 keys; the worst" in result.stdout
    one, two = gristmill.load(model), gristmill.load(spilled)
    assert all(one[key].to_bytes() == two[key].to_bytes() for key in one.keys_)
    refused("--spill stores the keys beyond --max-keys", "learn", events, "--key", "device", "--spill", "x.db")
    refused("there is no folder", "learn", events, "--key", "device", "--max-keys", 4, "--spill", tmp_path / "no" / "x")


def test_keys_go_by_age_in_events_or_on_a_clock(events, tmp_path):
    told = json.loads(call("learn", events, "--key", "device", "--ttl", 20, "--json").stdout)
    assert told["expired"] > 0
    assert (
        f"a key expired {told['expired']} times (--ttl)" in call("learn", events, "--key", "device", "--ttl", 20).stdout
    )
    clock = ("--time", "seconds")
    assert (
        json.loads(call("learn", events, "--key", "device", "--ttl", 20, *clock, "--json").stdout)["expired"]
        == told["expired"]
    )
    dated = tmp_path / "dated.csv"
    rows = [line.split(",") for line in events.read_text().splitlines()[1:]]
    stamps = [f"2026-01-01T00:{int(row[2]) // 60:02d}:{int(row[2]) % 60:02d}" for row in rows]
    lines = [",".join([*row[:2], stamp, *row[3:]]) for row, stamp in zip(rows, stamps, strict=True)]
    dated.write_text("\n".join(["device,site,seconds,level,state", *lines]))
    found = json.loads(
        call("learn", dated, "--key", "device", "--ttl", 20, *clock, "--drop", "seconds", "--json").stdout
    )
    assert found["expired"] == told["expired"]
    dated.write_text(dated.read_text() + "\nd1,s1,,1,high\n")
    refused("line 602, column 'seconds': the time is missing", "learn", dated, "--key", "device", "--ttl", 20, *clock)
    refused("there is no column 'hours' for --time", "learn", events, "--key", "device", "--ttl", 20, "--time", "hours")
    refused("--time is the clock of --ttl; give --ttl too", "learn", events, "--key", "device", *clock)


def test_a_model_goes_on_with_the_clock_that_it_has(events, tmp_path):
    for clock, other, said in [
        (("--time", "seconds"), (), "was learned with --time; give the same column again"),
        ((), ("--time", "seconds"), "was learned without it"),
    ]:
        path = tmp_path / "model"
        assert call("learn", events, "--key", "device", "--ttl", 50, *clock, "--model", path).exit_code == 0
        refused(said, "learn", events, "--resume", path, *other)
        assert call("learn", events, "--resume", path, *clock).exit_code == 0


def test_what_a_saved_model_has_settled_is_not_contradicted(events, model):
    said = "--key site: the model of --resume was learned with the keys of column 'device'"
    refused(said, "learn", events, "--key", "site", "--resume", model)
    refused("was learned with the keys of column 'device'", "predict", model, events, "--key", "site")
    assert call("learn", events, "--key", "device", "--resume", model).exit_code == 0
    for option in (("--max-keys", 4), ("--ttl", 9), ("--prior",)):
        refused(f"{option[0]} is fixed by the model of --resume", "learn", events, "--resume", model, *option)


def test_what_means_nothing_without_keys_is_refused(events):
    for option in (
        ("--max-keys", 4), ("--ttl", 9), ("--time", "seconds"), ("--spill", "x.db"), ("--worst", 3), ("--prior",),
        ("--no-prior",), ("--shards", 2),
    ):  # fmt: skip
        refused(f"{option[0]} needs --key", "learn", events, *option)


def test_the_column_of_the_keys_is_not_the_target(events):
    for more in ((), ("--target", "state")):
        refused(
            "the column 'state' of --key is the target; --target names another",
            "learn",
            events,
            "--key",
            "state",
            *more,
        )
    refused("there is no column 'nothing' for --key", "learn", events, "--key", "nothing")


def test_one_key_and_no_key_to_show(events, tmp_path):
    assert call("learn", events, "--key", "device", "--worst", 0).stdout.splitlines()[-1] == "12 keys"
    page = tmp_path / "report.html"
    assert call("learn", events, "--key", "device", "--worst", 0, "--report", page).exit_code == 0
    assert "orst keys" not in page.read_text()
    few = tmp_path / "few.csv"
    few.write_text("device,level,state\nd1,1,a\nd1,2,b\n")
    assert call("learn", few, "--key", "device").stdout.splitlines()[-1] == "1 key; none has had 10 events"


def test_unused_labels_may_be_empty(events, model, tmp_path):
    new, alone = tmp_path / "new.csv", tmp_path / "alone"
    new.write_text("device,site,seconds,level,state\nd1,s1,1,2,high\nd1,s1,2,-2,\nd2,s1,3,2,?\n")
    assert call("predict", model, new).stdout.splitlines() == ["high", "low", "high"]
    call("learn", events, "--drop", "device", "--model", alone)
    assert call("predict", alone, new).stdout.splitlines() == ["high", "low", "high"]


def test_probabilities_of_each_key(model, events):
    lines = call("predict", model, events, "--proba", "--limit", 3).stdout.splitlines()
    assert lines[0] == "prediction,high,low"
    assert len(lines) == 4
    shares = [float(share) for share in lines[1].split(",")[1:]]
    assert sum(shares) == pytest.approx(1)
    told = json.loads(call("predict", model, events, "--proba", "--json", "--limit", 1).stdout)
    assert list(told) == ["key", "known", "prediction", "score", "proba"]
    refused("has no predict_interval", "predict", model, events, "--interval", 0.9)


def test_keys_that_the_model_does_not_hold_are_counted(model, events, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("device,site,seconds,level\nd1,s1,1,2\nx1,s1,2,-2\nx2,s1,3,2\nx1,s1,3,2\n")
    result = call("predict", model, new)
    assert (
        "3 rows of 2 keys that the model has not learned, such as 'x1': predicted by the model of all keys"
        in result.stderr
    )
    bare = tmp_path / "bare"
    call("learn", events, "--key", "device", "--no-prior", "--model", bare)
    assert "predicted by an untrained model" in call("predict", bare, new).stderr
    assert call("predict", bare, events).stderr == ""
