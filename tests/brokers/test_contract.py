"""What any reader must do: order, resume, repeated opening, bad messages, the end, an interrupt, a broker that goes away."""

import json
import signal
import threading

import pytest

from gristmill.streams import connect, read
from gristmill.streams.brokers import BrokerError, Feed
from gristmill.streams.errors import BadRows, StreamError

from .conftest import Place, events, within


def numbers(count):
    return [json.dumps({"n": number, "label": number % 2}).encode() for number in range(count)]


def read_some(reader, count):
    """So many messages and the position behind them."""
    feed = Feed(reader, most=7, wait=0.2, limit=count)
    feed.position = reader.start()
    found = []
    for batch in within(feed):
        found += batch.messages
        if batch.messages:
            reader.acknowledge({})
    return found, feed.position


def poll_often(reader):
    for _ in range(100):
        reader.poll(10, 0.1)


def values(messages):
    return [json.loads(message.value)["n"] for message in messages]


def test_messages_come_in_order_and_go_on_from_any_position(place):
    place.produce(numbers(40))
    with connect(place.url) as reader:
        reader.open(None)
        first, position = read_some(reader, 25)
        assert values(first) == list(range(25))
        json.dumps(position)  # plain values, for a model file
        reader.acknowledge(position)
    with connect(place.url) as reader:
        reader.open(json.loads(json.dumps(position)))
        rest, _ = read_some(reader, 15)
        assert values(rest) == list(range(25, 40))


def test_messages_that_are_there_are_read_at_once_however_few(place):
    place.produce(numbers(3))
    with connect(place.url) as reader:
        reader.open(None)
        found = []
        while len(found) < 3:
            new = reader.poll(1000, 600.0)  # a reader that waits for a thousand exceeds the time of a test
            assert new
            found += new
        assert values(found) == [0, 1, 2]


def test_what_was_not_acknowledged_is_read_again(place):
    place.produce(numbers(20))
    with connect(place.url) as reader:
        reader.open(None)
        start = reader.start()
        assert values(read_some(reader, 8)[0]) == list(range(8))
        reader.open(start)  # a first look at a stream ends like this
        assert values(read_some(reader, 5)[0]) == list(range(5))
    with connect(place.url) as reader:
        reader.open(start)
        assert values(read_some(reader, 20)[0]) == list(range(20))


def test_a_message_that_was_saved_and_not_acknowledged_is_not_read_twice(place):
    place.produce(numbers(10))
    with connect(place.url) as reader:
        reader.open(None)
        _, position = read_some(reader, 6)  # saved, and then the process dies
    with connect(place.url) as reader:
        reader.open(position)
        assert values(read_some(reader, 4)[0]) == [6, 7, 8, 9]


def test_a_feed_ends_behind_the_newest_message(place):
    place.produce(numbers(30))
    with connect(place.url) as reader:
        feed = Feed(reader, most=8, until_end=True)
        feed.open(None)
        found = []
        for batch in within(feed):
            found += batch.messages
            reader.acknowledge(batch.position)
        assert values(found) == list(range(30))


def test_an_empty_stream_ends_at_once(place):
    with connect(place.url) as reader:
        feed = Feed(reader, until_end=True)
        feed.open(None)
        assert [batch.messages for batch in within(feed) if batch.messages] == []


def test_a_feed_that_is_told_to_stop_ends_behind_its_batch(place):
    place.produce(numbers(30))
    with connect(place.url) as reader:
        feed = Feed(reader, most=10)
        feed.open(None)
        found = []
        for batch in within(feed):
            found += batch.messages
            if found:
                feed.stop.set()
        assert values(found) == list(range(10))
        assert reader.advanced(reader.start(), []) is not None


def test_an_interrupt_while_waiting_loses_nothing(place):
    with connect(place.url) as reader:
        reader.open(None)
        start = reader.start()
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            poll_often(reader)
        timer.join()
        place.produce(numbers(5))
        reader.open(start)
        assert values(read_some(reader, 5)[0]) == list(range(5))


def test_a_stream_is_read_as_tables_with_labels(place):
    place.produce([b'{"a": 1.5, "label": "yes"}', b'{"a": 2.5, "label": "no"}'])
    stream = read(f"{place.url}?target=label")
    chunk = next(iter(stream))
    assert chunk.y.tolist() == ["yes", "no"]
    assert chunk.X.columns[0].tolist() == [1.5, 2.5]


def test_a_bad_message_is_an_error_with_its_place_or_put_aside(place):
    place.produce([b'{"a": 1.0, "label": 1}', b"{", b'{"a": 2.0, "label": 0}', b"[1]", b"{}"])
    bad = BadRows()
    if place.kind != "mqtt":  # which does not give them again
        with pytest.raises(StreamError, match=r"partition .*, offset .*: Expecting property name"):
            list(read(place.url, target="label"))
    chunks = list(read(place.url, target="label", bad=bad))
    assert sum(len(chunk.y) for chunk in chunks) == 2
    assert bad.count == 3


def test_an_option_that_does_not_exist_is_an_error(place):
    with pytest.raises(ValueError, match=r"there is no option 'colour'; there are .*columns"):
        connect(f"{place.url}?colour=red")


def test_the_password_is_not_shown():
    with pytest.raises(ValueError, match=r"there is no option") as caught:
        connect("redis://user:secret@127.0.0.1:1/0/s?colour=red")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["redis", "mqtt", "kafka"])
def test_a_broker_that_goes_away_is_waited_for(kind, servers):
    from benchmarks.broker_servers import MqttServer, RedisServer

    said = []
    if kind == "kafka":
        server, away, back = servers["kafka"], servers["kafka"].down, servers["kafka"].up
    else:
        server = (RedisServer if kind == "redis" else MqttServer)().start()
        away, back = server.stop, server.start
    try:
        place = Place(kind, server)
        place.begin()
        place.produce(numbers(5))
        with connect(place.url) as reader:
            feed = Feed(reader, say=said.append, limit=10)
            feed.open(None)
            found, returned, more = [], None, numbers(5)
            for batch in within(feed):
                found += batch.messages
                if batch.messages:
                    reader.acknowledge(batch.position)
                if len(found) == 5 and returned is None:
                    away()
                    returned = threading.Timer(1.0, back)
                    returned.start()
                elif more and returned is not None and not returned.is_alive():
                    place.produce(more)  # the reader has subscribed again: a batch came
                    more = []
        assert values(found) == [0, 1, 2, 3, 4] * 2
        if kind != "kafka":  # librdkafka reconnects by itself, and may do so before it says anything
            told = [line.partition(":")[0] for line in said]
            assert [line for line in told if line in ("away", "back")][:2] == ["away", "back"]
            assert feed.counts.outages >= 1
        if kind == "mqtt":
            assert any("has lost the session" in line for line in said)
    finally:
        if kind != "kafka":
            server.__exit__()


def test_redis_fields_are_columns(servers):
    import redis

    with redis.Redis(port=servers["redis"].port) as client:
        client.xadd("fields", {"a": "1.5", "hue": "red", "label": "1"})
        client.xadd("fields", {"a": "2.5", "hue": "blue", "label": "0"})
    chunk = next(iter(read(servers["redis"].url("fields") + "?target=label")))
    assert chunk.y.tolist() == [1, 0]
    assert dict(zip(chunk.X.names, (column.tolist() for column in chunk.X.columns), strict=True)) == {
        "a": [1.5, 2.5], "hue": ["red", "blue"],
    }  # fmt: skip


def test_csv_arrow_headers_keys_and_timestamps(servers):
    import pyarrow as pa
    from confluent_kafka import Producer

    kafka = servers["kafka"]
    kafka.topic("lines")
    producer = Producer({"bootstrap.servers": kafka.hosts})
    producer.produce("lines", b"1.5,red,yes", key=b"k1", headers={"site": b"north"}, timestamp=1_700_000_000_000)
    producer.flush()
    how = "format=csv&columns=a,hue,label&headers=site&timestamp=when&message_key=machine"
    chunk = next(iter(read(f"{kafka.url('lines')}?{how}", target="label")))
    assert dict(zip(chunk.X.names, (column.tolist()[0] for column in chunk.X.columns), strict=True)) == {
        "a": 1.5, "hue": "red", "site": "north", "when": 1_700_000_000.0, "machine": "k1",
    }  # fmt: skip
    kafka.topic("arrow")
    table = pa.table({"a": [1.0, 2.0, 3.0], "label": ["x", "y", "x"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    kafka.produce("arrow", [sink.getvalue().to_pybytes(), b"no arrow"])
    bad = BadRows()
    chunk = next(iter(read(f"{kafka.url('arrow')}?format=arrow", target="label", bad=bad)))
    assert chunk.y.tolist() == ["x", "y", "x"]
    assert bad.count == 1


def test_parts_of_objects_in_neighbouring_messages_do_not_join(servers):
    from gristmill.streams.brokers.contract import Message
    from gristmill.streams.brokers.decode import Decoder
    from gristmill.streams.brokers.url import parse

    parts = [b'{"a":[{}', b"{}]}", b'{"a":1},{"b":2}', b'{"a": 3}']
    frame, bad = Decoder(parse("redis://h/0/s")).frame([Message("s", n, part) for n, part in enumerate(parts)])
    assert frame.count == 1
    assert [found.message.offset for found in bad] == [0, 1, 2]


def test_kafka_messages_that_are_gone_are_an_error_and_not_a_gap(servers):
    kafka = servers["kafka"]
    kafka.topic("short")
    kafka.produce("short", numbers(5))
    with connect(kafka.url("short")) as reader:
        reader.open({"0": 500})
        with pytest.raises(BrokerError, match=r"no longer kept by the broker; lost=skip"):
            poll_often(reader)


def test_writers_put_each_record_there_once(servers, tmp_path):
    from gristmill.streams.brokers import Record

    kafka, redis = servers["kafka"], servers["redis"]
    kafka.topic("once")
    records = [Record("source", "0", offset, b'{"n": %d}' % offset) for offset in range(10)]
    for url, produced in (
        (redis.url("once"), lambda: redis.produced("once")),
        (f"{kafka.url('once')}?transaction=once", lambda: kafka.produced("once")),
        (str(tmp_path / "once.jsonl"), lambda: (tmp_path / "once.jsonl").read_bytes().splitlines()),
    ):
        with connect(url, "out") as writer:
            writer.send(records[:6])
            writer.flush()
        with connect(url, "out") as writer:  # after a crash some come again
            writer.send(records[3:])
        assert [json.loads(value)["position"]["offset"] for value in produced()] == list(range(10)), url


def test_a_transaction_that_the_broker_has_given_up_is_written_again(servers):
    from gristmill.streams.brokers import BrokerAway, Record

    kafka = servers["kafka"]
    kafka.topic("given-up")
    records = [Record("source", "0", offset, b'{"n": %d}' % offset) for offset in range(8)]
    failed = []
    with connect(f"{kafka.url('given-up')}?transaction=t&client.transaction.timeout.ms=1000", "out") as writer:
        writer.send(records[:3])
        writer.flush()
        kafka.down()
        writer.send(records[3:6])
        for _ in range(20):
            try:
                writer.flush()
                break
            except BrokerAway as error:
                failed.append(str(error))
                kafka.up()
        writer.send(records[5:])
    assert "timed out" in failed[0]
    assert [json.loads(value)["n"] for value in kafka.produced("given-up")] == list(range(8))


def test_a_file_that_holds_something_else_is_not_written_to(tmp_path):
    from gristmill.streams.brokers import Record

    mine = tmp_path / "data.csv"
    mine.write_text("a,b\n1,2")
    with connect(mine, "out") as writer, pytest.raises(ValueError, match="does not hold predictions of gristmill"):
        writer.send([Record("s", "0", 1, b"{}")])
    assert mine.read_text() == "a,b\n1,2"


def test_several_streams_of_redis_are_partitions(servers):
    redis = servers["redis"]
    for name in ("east", "west"):
        redis.produce(name, events(10))
    with connect(redis.url("east,west")) as reader:
        reader.open(None)
        found, position = read_some(reader, 20)
        assert {message.partition for message in found} == {"east", "west"} == set(position)
        assert reader.reached(position, reader.ends())


@pytest.mark.parametrize("hosts", ["h:x", "h:99999", "h:0", "h:\u00b2", ":6379", "[::1"])
def test_an_address_that_cannot_be_one_is_refused(hosts):
    from gristmill.streams.brokers.url import Url

    with pytest.raises(ValueError, match="1 to 65535"):
        Url("redis", hosts, "0/s").address(6379)


def test_addresses_with_and_without_a_port():
    from gristmill.streams.brokers.url import parse

    assert [parse(f"redis://{hosts}/0/s").address(6379) for hosts in ("h", "h:1", "[::1]:2", "[::1]")] == [
        ("h", 6379), ("h", 1), ("::1", 2), ("::1", 6379)
    ]  # fmt: skip
