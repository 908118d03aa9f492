"""Passwords and TLS: real brokers behind an end of TLS, a certificate that is not trusted, options of the clients."""

import gc
import json
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from gristmill.streams import connect
from gristmill.streams.brokers import BrokerError, Feed
from gristmill.streams.brokers.url import parse

from .conftest import Place, within

#: a key for 127.0.0.1 and its certificate, signed by itself; for these tests only
PEM = Path(__file__).with_name("loopback.pem")


class TlsEnd:
    """A port of the loopback address that speaks TLS, in front of a server that does not."""

    def __init__(self, port):
        self._to, self._context, self._open = port, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
        self._context.load_cert_chain(PEM)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._threads = []
        self._begin(self._accept)

    def _begin(self, action, *given):
        self._threads.append(threading.Thread(target=action, args=given, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            self._begin(self._serve, plain)

    def _serve(self, plain):
        plain.settimeout(30)
        with (
            plain, suppress(OSError), socket.create_connection(("127.0.0.1", self._to), 30) as inner,
            self._context.wrap_socket(plain, server_side=True) as outer,
        ):  # fmt: skip
            self._open += [outer, inner]
            back = threading.Thread(target=self._copy, args=[inner, outer], daemon=True)
            back.start()
            self._copy(outer, inner)
            back.join(60)

    @staticmethod
    def _copy(one, other):
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for one in self._open:
            with suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()


def look(reader):
    """Go to the beginning, and ask for a message."""
    reader.open(None)
    reader.poll(1, 0.1)


@pytest.fixture
def behind():
    """Opens ends of TLS, and closes them."""
    opened = []

    def begin(port):
        opened.append(TlsEnd(port))
        return opened[-1].port

    yield begin
    for one in opened:
        one.close()


CA = {"redis": "client.ssl_ca_certs", "mqtt": "client.ca_certs"}


def secured(place, port, options=""):
    url = place.url.replace(f":{place.server.port}/", f":{port}/").replace("://", "s://", 1)
    return f"{url}{'&' if '?' in url else '?'}{options}"


@pytest.mark.parametrize("kind", ["redis", "mqtt"])
def test_messages_are_read_and_written_over_tls(kind, servers, behind):
    place, answers = Place(kind, servers[kind]), Place(kind, servers[kind])
    port = behind(place.server.port)
    with connect(
        secured(place, port, f"{CA[kind]}={PEM}")
    ) as reader:  # MQTT keeps messages for those who have subscribed
        reader.open(None)
    place.produce([json.dumps({"n": number}).encode() for number in range(20)])
    with connect(secured(place, port, f"{CA[kind]}={PEM}")) as reader:
        feed = Feed(reader, wait=0.1, limit=20)
        feed.open(None)
        found = [json.loads(message.value)["n"] for batch in within(feed) for message in batch.messages]
        assert found == list(range(20))
    if kind == "redis":
        from gristmill.streams.brokers import Record

        with connect(secured(answers, port, f"{CA[kind]}={PEM}"), "out") as writer:
            writer.send([Record("s", "0", 1, b'{"prediction": 1}')])
        assert len(servers["redis"].produced(answers.topic)) == 1


# paho-mqtt leaves the socket of a handshake that failed to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["redis", "mqtt"])
def test_a_certificate_that_is_not_trusted_is_an_error_and_not_waited_for(kind, servers, behind):
    place = Place(kind, servers[kind])
    reader = connect(secured(place, behind(place.server.port)))
    with reader, pytest.raises(BrokerError, match="certificate verify failed"):
        look(reader)
    del reader
    gc.collect()


def test_a_user_without_the_right_password_is_refused(tmp_path):
    import redis

    from benchmarks.broker_servers import RedisServer

    with RedisServer() as server:
        with redis.Redis(port=server.port) as client:
            client.execute_command("ACL", "SETUSER", "reader", "on", ">s:cret", "~t", "+@read", "+@connection")
            client.xadd("t", {"value": b"{}"})
        secret = tmp_path / "password"
        secret.write_text("s:cret\n")
        address = f"127.0.0.1:{server.port}/0"
        for good in (f"redis://reader:s%3Acret@{address}/t", f"redis://reader@{address}/t?password_file={secret}"):
            with connect(good) as reader:
                reader.open(None)
                assert len(reader.poll(10, 1.0)) == 1
        for bad in (f"redis://reader:other@{address}/t", f"redis://reader:s%3Acret@{address}/forbidden"):
            with connect(bad) as reader, pytest.raises(BrokerError) as raised:
                look(reader)
            assert "cret" not in str(raised.value)


def test_options_of_the_clients(tmp_path):
    reader = connect("redis://h:1/0/s?client.socket_timeout=7&client.health_check_interval=0&client.ssl_cert_reqs=none")
    known = reader._client.connection_pool.connection_kwargs
    assert (known["socket_timeout"], known["health_check_interval"]) == (7, 0)
    for url, text in (
        ("redis://h:1/0/s?client.colour=red", "colour"), ("kafka://h:1/t?client.colour=red", "colour"),
        ("mqtts://h/t?client.colour=red", "client.colour"), ("mqtt://h/t?client.ca_certs=x", "client.ca_certs"),
        ("mqtts://h/t?client.ca_certs=/nowhere.pem", "nowhere.pem"),
        (f"redis://u@h/s?password_file={tmp_path}/none", "password_file"),
        (f"redis://u:p@h/s?password_file={tmp_path}/none", "no password in the URL"),
        (f"redis://h/s?password_file={tmp_path}/none", "needs a user"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            connect(url)
    (tmp_path / "secret").write_text("p:w\n")
    url = parse(f"kafka://u@h/t?password_file={tmp_path}/secret&group=g")
    assert (url.user, url.password, url.options) == ("u", "p:w", {"group": "g"})
