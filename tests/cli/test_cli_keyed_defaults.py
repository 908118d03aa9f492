"""What `gristmill learn --key` does without settings: numbers at any level and in any unit, alarms, a model of all keys."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import gristmill
from gristmill import KernelRegressor, KeyedFleet, Merge, Prepared
from gristmill.cli import main


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False, **kwargs)


def levels_apart(path, spread, keys=40, unit=1.0, offset=0.0):
    """y = 2 x0 + the level of the key."""
    rng = np.random.default_rng(0)
    key, X = rng.integers(0, keys, size=3000), rng.normal(size=(3000, 2))
    y = unit * (2 * X[:, 0] + spread * rng.normal(size=keys)[key]) + offset
    lines = [f"d{k},{a!r},{b!r},{t!r}" for k, (a, b), t in zip(key, X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["device,a,b,y", *lines]))
    return key, X, y


def second_half(path, *more):
    found = call("learn", path, "--key", "device", "--warmup", 1500, "--json", "--task", "regression", *more)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)["metrics"]["mae"]


def test_numbers_are_predicted_as_well_as_by_a_model_a_key_at_any_level(tmp_path):
    path, errors = tmp_path / "events.csv", []
    for spread in (0.0, 1.15, 34.6):
        key, X, y = levels_apart(path, spread)
        errors.append(second_half(path))
    alone = np.zeros(3000)
    for one in range(40):
        alone[key == one] = Prepared(KernelRegressor(budget=Merge(100))).prequential(X[key == one], y[key == one])
    assert max(errors) < 0.8 * np.abs(alone - y)[1500:].mean()
    assert max(errors) < 1.25 * min(errors)
    assert second_half(path, "--no-prior") < 1.1 * np.abs(alone - y)[1500:].mean()


def test_units_of_numbers_do_not_matter(tmp_path):
    path = tmp_path / "events.csv"
    levels_apart(path, 1.15)
    one = second_half(path)
    for unit, offset in ((2.0**-40, 0.0), (2.0**40, 0.0), (1000.0, 50_000.0)):
        levels_apart(path, 1.15, unit=unit, offset=offset)
        assert second_half(path) == pytest.approx(unit * one, rel=1e-3)


def test_a_model_of_all_keys_is_switched_on_and_off(tmp_path):
    path, model = tmp_path / "events.csv", tmp_path / "model"
    levels_apart(path, 1.0)
    for arguments, center, prior in [
        ((), True, True),
        (("--prior",), True, True),
        (("--no-prior",), True, False),
        (("--target", "none"), False, False),
    ]:
        assert call("learn", path, "--key", "device", "--model", model, *arguments).exit_code == 0
        fleet = gristmill.load(model)
        assert (type(fleet), fleet.center, fleet.prior is not None) == (KeyedFleet, center, prior)
    for arguments in (("--target", "none"), ("--task", "novelty"), ("--cluster", "local")):
        result = call("learn", path, "--key", "device", "--prior", *arguments)
        assert result.exit_code == 2
        assert "--prior: " in result.output


@pytest.fixture
def machines(tmp_path):
    """Five machines; m3 is read three times as often as the others, and m9 has come three times."""
    rng, path = np.random.default_rng(0), tmp_path / "machines.csv"
    lines = ["machine,heat,noise,state"]
    for event in range(3500):
        heat, noise = rng.normal(), rng.normal()
        lines.append(f"m{(0, 1, 2, 3, 4, 3, 3)[event % 7]},{heat:.4f},{noise:.4f},{'ok' if noise > 0 else 'so'}")
    lines += ["m9,0,0,ok"] * 3
    path.write_text("\n".join(lines))
    return path


def test_strange_events_are_counted_for_each_key(machines, tmp_path):
    model = tmp_path / "model"
    result = call("learn", machines, "--target", "none", "--drop", "state", "--key", "machine", "--model", model)
    assert result.exit_code == 0, result.output
    assert "6 keys; the keys with the most alarms of those with at least 10 events" in result.stdout
    lines = result.stdout.splitlines()
    place = next(row for row, line in enumerate(lines) if line.startswith("key "))
    assert lines[place].split()[:3] == ["key", "events", "alarms"]
    key, events, alarms, rate = lines[place + 1].split()[:4]
    assert (key, events) == ("m3", "1,500")
    assert float(rate) == pytest.approx(int(alarms) / 1500, abs=1e-4)
    shown = [line.split() for line in lines if line.startswith("m")]
    assert len(shown) == 5
    assert [int(cells[2]) for cells in shown] == sorted((int(cells[2]) for cells in shown), reverse=True)
    assert 0.02 < float(rate) < 0.08
    new = tmp_path / "new.csv"
    new.write_text("machine,heat,noise\nm1,0,0\nm1,40,0\n")
    assert call("predict", model, new).stdout.splitlines() == ["1", "-1"]


def test_the_task_may_be_said_and_labels_are_left_alone(machines):
    result = call("learn", machines, "--task", "novelty", "--key", "machine", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["task"] == "novelty"
    worst = found["worst"][0]
    assert worst["key"] == "m3"
    assert worst["alarms"] == round(worst["alarm_rate"] * worst["events"])


def test_classes_that_come_late_and_few_events_a_key_go_with_a_model_of_all_keys(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "events.csv"
    lines = ["shop,a,b,c"]
    for event in range(3000):
        a, b = rng.normal(size=2)
        label = "low" if a < -0.5 else "high" if a > 0.5 and event > 800 else "mid"
        lines.append(f"s{rng.integers(300)},{a:.4f},{b:.4f},{label}")
    path.write_text("\n".join(lines))
    errors = []
    for more in ((), ("--no-prior",)):
        result = call("learn", path, "--key", "shop", "--json", *more)
        assert result.exit_code == 0, result.output
        errors.append(json.loads(result.stdout)["rolling"]["error"])
    assert errors[0] < 0.5 * errors[1]
