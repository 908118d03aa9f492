"""A broker inside the service: what it learns survives kills, and predictions go to another stream once."""

import json
import os
import random
import signal
import time
import urllib.request

import pytest

from .conftest import CHAOS, Place, events

LEARNER = "passive_aggressive(Gaussian(0.5), size=40)"


class Service:
    """`gristmill serve` with a broker; ends with its block."""

    def __init__(self, starter, folder, url, *options, learner=("--learner", LEARNER)):
        self.log, self._starter = folder / "serve.log", starter
        self.log.unlink(missing_ok=True)
        self._process = starter.start(
            "serve", "--store", folder / "store", "--port", "0", "--name", "m", *learner, "--from", url, *options,
            log=self.log,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._starter.end()

    def end(self, sign=signal.SIGTERM):
        os.kill(self._process, sign)
        return self._starter.wait()

    def wait(self, condition, seconds=40.0):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(self.log.read_text()[-2000:])
            time.sleep(0.02)

    def ask(self, path):
        """The body of an answer of the newest process, or None while it does not listen."""
        text = self.log.read_text() if self.log.exists() else ""
        lines = [line for line in text.splitlines() if " at http://" in line]
        if not lines:
            return None
        try:
            with urllib.request.urlopen(lines[-1].rpartition(" at ")[2].rstrip("/") + path, timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return None

    def position(self):
        body = self.ask("/v1/models/m")
        return -1 if body is None else json.loads(body)["position"]


def digest(folder):
    from gristmill.serve import Store

    with Store(folder / "store") as store:
        return store.get("m").served.champion.model.to_bytes(), store.get("m").served.position


def written(server, place, topic):
    """The answers in a stream or topic."""
    return [json.loads(value) for value in server.produced(topic)]


@pytest.mark.parametrize("kind", ["redis", "kafka"])
def test_a_service_that_is_killed_learns_each_message_once(kind, servers, starter, tmp_path):
    server, chance = servers[kind], random.Random(5)
    place, answers = Place(kind, server), Place(kind, server)
    to = answers.url + ("?transaction=serve" if kind == "kafka" else "")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    whole.mkdir()
    total = 0
    for number in range(CHAOS or 2):
        place.produce(events(60, seed=number))
        total += 60
        with Service(starter, killed, place.url, "--to", to, "--max-wait", "5ms") as service:
            # after a random number of events, and a little later: inside the next transaction, or the sending behind it
            enough = chance.randrange(total - 59, total)
            service.wait(lambda service=service, enough=enough: service.position() >= enough)
            time.sleep(chance.uniform(0, 0.02))
            service.end(signal.SIGKILL)
    place.produce(events(60, seed=1000))
    total += 60
    with Service(starter, killed, place.url, "--to", to) as service:
        service.wait(lambda: service.position() >= total)
        service.wait(lambda: len(server.produced(answers.topic)) >= total)
        assert f'gristmill_source_up{{model="m",source="{server.url(place.topic)}"}} 1.0' in service.ask("/metrics")
        assert service.end() == 0
    found = [answer["position"]["offset"] for answer in written(server, place, answers.topic)]
    assert len(found) == len(set(found)) == total
    with Service(starter, whole, place.url) as service:
        service.wait(lambda: service.position() >= total)
        service.end()
    assert digest(killed) == digest(whole)


def test_bad_messages_of_a_service_are_dead_letters(servers, starter, tmp_path):
    place = Place("redis", servers["redis"])
    values = events(30)
    values[10:10] = [
        b"no json",
        b'{"id": "x", "a": "word", "b": 1.0, "hue": "red", "label": "no"}',
        b'{"id": "y", "a": 1.0}',
    ]
    place.produce(values)
    dead = tmp_path / "dead.jsonl"
    with Service(starter, tmp_path, place.url, "--dead-letters", dead) as service:
        service.wait(lambda: service.position() >= 30)
        service.wait(lambda: dead.exists() and dead.read_bytes().count(b"\n") >= 3)
        assert "gristmill_source_bad_messages_total" in service.ask("/metrics")
        service.end()
    letters = [json.loads(line) for line in dead.read_text().splitlines()]
    assert [letter["value"] for letter in letters] == [value.decode() for value in values[10:13]]
    assert "the column 'label' is missing" in letters[2]["reason"]


def test_a_source_needs_a_model(servers, starter, tmp_path):
    place = Place("redis", servers["redis"])
    with Service(starter, tmp_path, place.url, learner=()) as service:
        assert starter.wait() == 2
        assert "the store has no model 'm'" in service.log.read_text()


def test_further_answers_of_a_service_are_those_of_gristmill_learn(servers, starter, tmp_path):
    place, answers = Place("redis", servers["redis"]), Place("redis", servers["redis"])
    place.produce(events(40))
    asked = ("--proba", "--reasons", "2")
    url = f"{place.url}?target=label"
    with Service(starter, tmp_path, url, "--to", answers.url, *asked) as service:
        service.wait(lambda: len(servers["redis"].produced(answers.topic)) == 40)
        service.end()
    how = ("--learner", LEARNER, "--target", "label", "--scale", "standard")
    starter.run("learn", place.url, *how, "--to", tmp_path / "a.jsonl", *asked, "--until-end", log=tmp_path / "log")
    served, learned = written(servers["redis"], place, answers.topic), (tmp_path / "a.jsonl").read_text().splitlines()
    for one, line in zip(served, learned, strict=True):
        other = json.loads(line)
        other.pop("score")
        assert one == other
    assert served[-1].keys() == {"position", "prediction", "proba", "reasons"}


def test_an_answer_that_the_model_does_not_have_is_refused_at_the_start(servers, starter, tmp_path):
    place = Place("redis", servers["redis"])
    with Service(starter, tmp_path, place.url, "--to", tmp_path / "a.jsonl", "--interval", "0.9") as service:
        assert starter.wait() == 2
        assert "--interval: KernelClassifier has no predict_interval" in service.log.read_text()
