"""Learners on brokers that are killed: each message is learned once, and the model is that of one run, bit for bit."""

import json
import random
import time

import pytest

import gristmill

from .conftest import CHAOS, Place, events

KILLS = CHAOS or 4
HOW = (
    "--learner", "passive_aggressive(size=40)", "--kernel", "Gaussian(0.5)", "--target", "label", "--drop", "id",
    "--max-wait", "10ms", "--save-every", "10ms",
)  # fmt: skip


def digest(path):
    """The model of a file without how far it has read."""
    model = gristmill.load(path)
    model.__dict__.pop("stream_positions_", None)
    return model.to_bytes()


def in_one_run(starter, folder, values):
    """The model that a file of the same events gives."""
    (folder / "all.jsonl").write_bytes(b"\n".join(values) + b"\n")
    path = folder / "reference.safetensors"
    starter.run("learn", folder / "all.jsonl", "--skip-bad", *HOW[:8], "--model", path, log=folder / "log")
    return digest(path)


def test_random_kills_change_no_bit_and_repeat_no_answer(place, starter, tmp_path):
    chance = random.Random(7)
    model, answers = tmp_path / "m.safetensors", tmp_path / "answers.jsonl"
    learned = []
    killed = 0
    while killed < KILLS:
        new = events(60, seed=len(learned))
        learned += new
        place.produce(new)
        process = starter.start("learn", place.url, *HOW, "--model", model, "--to", answers, log=tmp_path / "log")
        time.sleep(chance.uniform(0.05, 0.6))
        assert starter.kill(process) == -9, (tmp_path / "log").read_text()[-2000:]
        killed += 1
    starter.run("learn", place.url, *HOW, "--model", model, "--to", answers, "--until-end", log=tmp_path / "log")
    assert gristmill.load(model).n_seen_ == len(learned)
    assert digest(model) == in_one_run(starter, tmp_path, learned)
    offsets = [json.loads(line)["position"]["offset"] for line in answers.read_text().splitlines()]
    assert len(offsets) == len(set(offsets)) == len(learned)


def test_the_order_of_several_partitions_is_recorded_and_can_be_replayed(servers, starter, tmp_path):
    kafka = servers["kafka"]
    kafka.topic("wide", 3)
    kafka.produce("wide", events(900), partitions=3)
    model, again = tmp_path / "m.safetensors", tmp_path / "again.safetensors"
    for limit in (400, 250):  # a run that is cut short goes on
        starter.run("learn", kafka.url("wide"), *HOW, "--model", model, "--limit", limit, log=tmp_path / "log")
    starter.run("learn", kafka.url("wide"), *HOW, "--model", model, "--until-end", log=tmp_path / "log")
    order = f"{model}.order"
    starter.run(
        "learn", kafka.url("wide"), *HOW, "--model", again, "--until-end", "--replay", order, log=tmp_path / "log"
    )
    assert gristmill.load(model).n_seen_ == 900
    assert digest(model) == digest(again)


def test_bad_messages_go_to_the_dead_letters_and_stop_nothing(place, starter, tmp_path):
    values = events(50)
    values[10:10] = [
        b"no json",
        b'{"a": "word", "b": 1.0, "hue": "red", "label": "no"}',
        b'{"a": 1.0, "b": 2.0, "hue": "red"}',
    ]
    place.produce(values)
    model, dead = tmp_path / "m.safetensors", tmp_path / "dead.jsonl"
    starter.run("learn", place.url, *HOW, "--model", model, "--until-end", "--dead-letters", dead, log=tmp_path / "log")
    letters = [json.loads(line) for line in dead.read_text().splitlines()]
    assert [letter["value"] for letter in letters] == [value.decode() for value in values[10:13]]
    assert "'word' is not a number" in letters[1]["reason"]
    assert digest(model) == in_one_run(starter, tmp_path, values)


def test_a_model_a_key_and_predictions_to_another_stream(servers, starter, tmp_path):
    redis = servers["redis"]
    place = Place("redis", redis)
    place.produce(events(400))
    model, to = tmp_path / "m.safetensors", redis.url(f"{place.topic}-out")
    said = starter.run(
        "learn", place.url, "--target", "label", "--drop", "id", "--key", "hue", "--model", model, "--to", to,
        "--until-end", log=tmp_path / "log",
    )  # fmt: skip
    assert "lag 0 seconds" in said
    answers = [json.loads(value) for value in redis.produced(f"{place.topic}-out")]
    assert len(answers) == 400
    assert {answer["key"] for answer in answers} == {"red", "blue"}
    place.produce(events(10, seed=1))
    keep = tmp_path / "position.json"
    for _ in range(2):  # the second finds nothing new
        starter.run(
            "predict", model, place.url, "--to", redis.url(f"{place.topic}-said"), "--until-end", "--position", keep,
            log=tmp_path / "log",
        )  # fmt: skip
    assert len(redis.produced(f"{place.topic}-said")) == 410


def test_probabilities_and_reasons_on_request(servers, starter, tmp_path):
    place = Place("redis", servers["redis"])
    place.produce(events(30))
    to = tmp_path / "answers.jsonl"
    plain, rich = tmp_path / "plain.safetensors", tmp_path / "rich.safetensors"
    starter.run("learn", place.url, *HOW, "--model", plain, "--until-end", log=tmp_path / "log")
    starter.run("learn", place.url, *HOW, "--model", rich, "--to", to, "--proba", "--until-end", log=tmp_path / "log")
    last = json.loads(to.read_text().splitlines()[-1])
    assert abs(sum(last["proba"].values()) - 1) < 1e-9
    assert digest(plain) == digest(rich)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--interval", "0.9"), "--interval: AutoClassifier has no predict_interval"),
        (("--learner", "PairwiseAUC", "--reasons", "2"), "--reasons: PairwiseAUC has no explain"),
        (("--key", "hue", "--reasons", "2"), "--reasons: KeyedFleet has no explain"),
    ],
)
def test_an_answer_that_the_learner_does_not_have_is_refused_before_it_learns(
    servers, starter, tmp_path, options, text
):
    place = Place("redis", servers["redis"])
    place.produce(events(20))
    how = ("--target", "label", "--until-end", "--model", tmp_path / "m.safetensors")
    starter.start("learn", place.url, *how, "--to", tmp_path / "a.jsonl", *options, log=tmp_path / "log")
    assert starter.wait() == 2
    assert text in (tmp_path / "log").read_text()
    assert not (tmp_path / "m.safetensors").exists()


def test_probabilities_of_one_model_a_key(servers, starter, tmp_path):
    place, to = Place("redis", servers["redis"]), tmp_path / "answers.jsonl"
    place.produce(events(60))
    how = ("--target", "label", "--drop", "id", "--key", "hue", "--learner", "passive_aggressive(size=40)")
    starter.run("learn", place.url, *how, "--to", to, "--proba", "--until-end", log=tmp_path / "log")
    answers = [json.loads(line) for line in to.read_text().splitlines()]
    assert len(answers) == 60
    assert {"no", "yes"} == set(answers[-1]["proba"])
    assert abs(sum(answers[-1]["proba"].values()) - 1) < 1e-9


def test_a_model_that_has_read_another_stream_is_not_overwritten(servers, starter, tmp_path):
    place, other = Place("redis", servers["redis"]), Place("redis", servers["redis"])
    place.produce(events(20))
    model = tmp_path / "m.safetensors"
    starter.run("learn", place.url, *HOW, "--model", model, "--until-end", log=tmp_path / "log")
    before = model.read_bytes()
    starter.start("learn", other.url, *HOW, "--model", model, "--until-end", log=tmp_path / "log2")
    assert starter.wait() == 2
    assert "has not read" in (tmp_path / "log2").read_text()
    assert model.read_bytes() == before


def test_partitions_move_between_processes_of_a_group_and_each_message_is_learned_once(servers, tmp_path):
    import threading

    from gristmill import Gaussian, Prepared, passive_aggressive
    from gristmill.evaluate.follower import Follower
    from gristmill.evaluate.live import LiveRun
    from gristmill.streams import connect
    from gristmill.streams.brokers import Feed
    from gristmill.streams.brokers.decode import Decoder
    from gristmill.streams.brokers.letters import DeadLetters
    from gristmill.streams.brokers.stream import Rows
    from gristmill.streams.brokers.url import parse
    from gristmill.streams.files.labels import Labels

    kafka = servers["kafka"]
    kafka.topic("shared", 4)
    # The mock cluster waits for members for as long as a session lasts, less a second, and takes no offsets meanwhile.
    url = f"{kafka.url('shared')}?group=team&client.session.timeout.ms=3000&client.heartbeat.interval.ms=200"
    members = []

    def member(name):
        feed = Feed(connect(url), most=20, wait=0.01)
        rows = Rows(Decoder(parse(url)), Labels("label", True), DeadLetters("shared"))
        model = Prepared(passive_aggressive(Gaussian(0.5), size=30), columns={"id": "drop"})
        follower = Follower(model, name, None, 1000, 0, None)
        path = tmp_path / f"{name}.safetensors"
        run = LiveRun(follower, feed, rows, lambda model: model.save(path), every=0.05)
        thread = threading.Thread(target=run.run, args=[False], daemon=True)
        thread.start()
        members.append((run, thread))
        return run

    def learned():
        return sum(run.events for run, _ in members)

    def told():
        return not any(run._unsaved or run._untold for run, _ in members)

    def wait_for(count):
        for _ in range(600):
            if learned() >= count and told():
                return
            time.sleep(0.05)
        raise TimeoutError(f"{learned()} of {count} messages were learned within 30 s")

    first = member("first")
    kafka.produce("shared", events(400), partitions=4)
    wait_for(400)
    second = member("second")
    for _ in range(300):  # until partitions were given to both
        if second.feed.reader._mine and first.feed.reader._mine:
            break
        time.sleep(0.05)
    else:
        raise TimeoutError("no partition was given to the second process within 15 s")
    kafka.produce("shared", events(400, seed=1), partitions=4)
    wait_for(800)
    time.sleep(0.5)
    for run, thread in members:
        run.feed.stop.set()
        thread.join(30)
        assert not thread.is_alive()
        run.feed.reader.close()
    assert learned() == 800
    assert 400 <= first.events < 800
    models = [gristmill.load(tmp_path / f"{name}.safetensors") for name in ("first", "second")]
    assert sum(model.n_seen_ for model in models) == 800
    assert gristmill.merge(models).n_seen_ == 800
