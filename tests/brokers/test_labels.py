"""Labels that come on another topic: predicted when the event comes, learned when the label does, across kills."""

import json
import random
import sqlite3
import time

import pytest

import gristmill

from .conftest import CHAOS, Place, events
from .test_resume import HOW, digest

LATE = (*HOW[:6], "--max-wait", "10ms", "--save-every", "10ms", "--join", "id")


def parted(values):
    """Events without labels, and their labels."""
    rows = [json.loads(value) for value in values]
    labels = [json.dumps({"id": row["id"], "label": row.pop("label")}).encode() for row in rows]
    return [json.dumps(row).encode() for row in rows], labels


@pytest.fixture(params=["kafka", "redis"])
def two(request, servers):
    return Place(request.param, servers[request.param]), Place(request.param, servers[request.param])


def test_late_labels_are_learned_once_whatever_is_killed(two, starter, tmp_path):
    place, late = two
    chance = random.Random(3)
    model, again, answers = tmp_path / "m.safetensors", tmp_path / "again.safetensors", tmp_path / "answers.jsonl"
    how = [*LATE, "--labels", late.url]
    held, total, sent = [], 0, 0
    for number in range(CHAOS or 3):
        values, labels = parted(events(60, seed=number))
        held += labels
        chance.shuffle(held)
        ready, held = held[10:], held[:10]  # some labels are late, one comes before its event
        if number == 0:
            late.produce(ready[:1])
        place.produce(values)
        late.produce(ready[1:] if number == 0 else ready)
        total, sent = total + len(values), sent + len(ready)
        process = starter.start("learn", place.url, *how, "--model", model, "--to", answers, log=tmp_path / "log")
        time.sleep(chance.uniform(0.1, 0.7))
        assert starter.kill(process) == -9, (tmp_path / "log").read_text()[-2000:]
    said = starter.run("learn", place.url, *how, "--model", model, "--to", answers, "--until-end", log=tmp_path / "log")
    assert "10 wait for a label, 0 waited in vain" in said
    assert gristmill.load(model).n_seen_ == sent
    offsets = [json.loads(line)["position"]["offset"] for line in answers.read_text().splitlines()]
    assert len(offsets) == len(set(offsets)) == total
    order = f"{model}.order"
    starter.run("learn", place.url, *how, "--model", again, "--replay", order, "--until-end", log=tmp_path / "log")
    assert digest(model) == digest(again)


def test_a_model_is_scored_by_what_it_predicted_when_the_events_came(servers, starter, tmp_path):
    place, late = Place("redis", servers["redis"]), Place("redis", servers["redis"])
    values, labels = parted(events(200))
    how = [*LATE, "--labels", late.url, "--model", tmp_path / "m.safetensors", "--until-end"]
    place.produce(values[:100])
    late.produce(labels[:100])
    starter.run("learn", place.url, *how, log=tmp_path / "log")
    place.produce(values[100:])
    to = tmp_path / "answers.jsonl"
    starter.run("learn", place.url, *how, "--to", to, log=tmp_path / "log")
    predicted = [json.loads(line)["prediction"] for line in to.read_text().splitlines()]
    late.produce(labels[100:])
    (tmp_path / "log").unlink()
    starter.run("learn", place.url, *how, "--json", log=tmp_path / "log")
    wrong = sum(one != json.loads(label)["label"] for one, label in zip(predicted, labels[100:], strict=True))
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    assert abs(lines[-1]["metrics"]["error"] - wrong / 100) < 1e-12


def test_events_wait_within_their_time_and_space(servers, starter, tmp_path):
    import redis

    server = servers["redis"]
    place, late = Place("redis", server), Place("redis", server)
    values, labels = parted(events(40))
    with redis.Redis(port=server.port) as client:
        for number, value in enumerate(values):
            client.xadd(place.topic, {"value": value}, id=f"{1_000_000 + 1000 * number}-0")
        for number, label in enumerate(labels):  # the label of event k comes k seconds after it
            client.xadd(late.topic, {"value": label}, id=f"{1_000_000 + 2000 * number + 1}-0")
    model = tmp_path / "m.safetensors"
    how = [*LATE, "--labels", late.url, "--model", model]
    starter.run("learn", place.url, *how, "--wait", "20s", "--until-end", log=tmp_path / "log")
    assert gristmill.load(model).n_seen_ <= 21
    with sqlite3.connect(f"{model}.waiting") as connection:
        assert connection.execute("SELECT count(*) FROM waiting").fetchone()[0] <= 21
    starter.start("learn", place.url, *HOW, "--model", model, log=tmp_path / "log")
    assert starter.wait() == 2
    assert "with --labels; continue in the same way" in (tmp_path / "log").read_text()
    small = tmp_path / "small.safetensors"
    starter.run(
        "learn",
        place.url,
        *how[:-1],
        small,
        "--wait",
        "1h",
        "--wait-space",
        "5 kB",
        "--until-end",
        log=tmp_path / "log",
    )
    assert 0 < gristmill.load(small).n_seen_ < 40


def test_a_bad_label_is_a_dead_letter(servers, starter, tmp_path):
    place, late = Place("redis", servers["redis"]), Place("redis", servers["redis"])
    values, labels = parted(events(20))
    place.produce([*values, b'{"a": 1.0}'])
    late.produce([*labels[:10], b'{"id": "0-10"}', b"{", *labels[10:]])
    model, dead = tmp_path / "m.safetensors", tmp_path / "dead.jsonl"
    starter.run(
        "learn", place.url, *LATE, "--labels", late.url, "--model", model, "--dead-letters", dead, "--until-end",
        log=tmp_path / "log",
    )  # fmt: skip
    reasons = [json.loads(line)["reason"] for line in dead.read_text().splitlines()]
    assert len(reasons) == 3
    assert any("column 'id': the id is missing" in reason for reason in reasons)
    assert any("column 'label': the label is missing" in reason for reason in reasons)
    assert gristmill.load(model).n_seen_ == 20
