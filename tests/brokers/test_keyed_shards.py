"""A keyed fleet over shards reads partitions: places are in the log with each batch, and each event is learned once."""

import json

import numpy as np
import pytest
from cluster_workers import Killed, LocalWorkers, Program, digest
from sklearn.base import clone

from gristmill import Gaussian, KeyedFleet, norma_novelty
from gristmill.streams import connect
from gristmill.streams.brokers.feed import Feed

FLEET = KeyedFleet(norma_novelty(Gaussian(0.5), nu=0.05, rate=0.05, size=6))


def readings(count):
    """Objects with a device and two numbers."""
    rng = np.random.default_rng(3)
    found = zip(rng.integers(0, 9, size=count).tolist(), rng.normal(size=(count, 2)).tolist(), strict=True)
    return [json.dumps({"device": device, "x": x}).encode() for device, x in found]


def decoded(messages):
    rows = [json.loads(message.value) for message in messages]
    return np.array([row["device"] for row in rows]), np.array([row["x"] for row in rows])


def follow(keyed, url, learned, stop_after=None):
    """Read on from the place in the log; `learned` gets what is learned. Dies where `stop_after` batches are learned."""
    with connect(url) as reader:
        feed = Feed(reader, most=40, wait=0.01, until_end=True)
        feed.open(keyed.position_ or None)
        for number, batch in enumerate(feed.batches()):
            if batch.messages:
                part = decoded(batch.messages)
                keyed.partial_fit(*part, position=batch.position)
                learned.append(part)
            if number + 1 == stop_after:
                raise Killed


@pytest.mark.parametrize("kind", ["kafka", "redis"])
def test_partitions_are_learned_once_whatever_is_killed(kind, servers, tmp_path):
    server, topic = servers[kind], f"keyed-{kind}"
    values = readings(500)
    if kind == "kafka":
        server.topic(topic, 3)
        server.produce(topic, values, partitions=3)
    else:
        server.produce(topic, values)
    workers = LocalWorkers(np.random.default_rng(1), kill=0.05)
    learned: list = []
    for stop_after in (2, 3, 1):
        with Program(FLEET, tmp_path, shards=2, every=50, workers=workers) as keyed:  # which ends as if killed
            follow(keyed, server.url(topic), learned, stop_after)
    with Program(FLEET, tmp_path, shards=2, every=50, workers=workers) as keyed:
        follow(keyed, server.url(topic), learned)
        assert len(keyed.position_) == (3 if kind == "kafka" else 1)
        assert keyed.n_seen_ == 500
        found = digest(keyed.collect())
    assert workers.kills > 3
    one = clone(FLEET)
    for part in learned:
        one.partial_fit(*part)
    assert found == digest(one)


def test_places_and_numbers_do_not_mix(tmp_path):
    X = np.zeros((4, 2))
    with Program(FLEET, tmp_path) as keyed:
        keyed.partial_fit([1, 2, 3, 4], X, position={"0": 4, "1": "7-0"})
        assert keyed.position_ == {"0": 4, "1": "7-0"}
        keyed.partial_fit([1, 2, 3, 4], X, position={"0": 4, "1": "7-0"})
        assert keyed.n_seen_ == 4
        for position, error in ((5, ValueError), (None, ValueError), ({"0": 1.5}, TypeError), ({0: 5}, TypeError)):
            with pytest.raises(error, match="position must"):
                keyed.partial_fit([1, 2, 3, 4], X, position=position)
        assert keyed.n_seen_ == 4
