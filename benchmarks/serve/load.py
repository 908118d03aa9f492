"""A client that costs little: requests are bytes, and connections wait in one `select`."""

from __future__ import annotations

import dataclasses
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"


@dataclasses.dataclass
class Measured:
    """What a run of requests took."""

    requests: int
    seconds: float
    latencies: list[float]
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.latencies, share))


def request(path: str, body: bytes, kind: str = JSON, key: str = "") -> bytes:
    """A POST as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{key}\r\n"
    )
    return head.encode() + body


def events(count: int, width: int = 5, seed: int = 0) -> tuple[list[dict[str, float]], list[bool]]:
    """Rows of numbers, as a sensor sends them, and labels that depend on two columns."""
    values = np.random.default_rng(seed).normal(size=(count, width)).round(4)
    names = [f"sensor_{place}" for place in range(width)]
    labels = (values[:, 0] * values[:, 1] > 0).tolist()
    return [dict(zip(names, row, strict=True)) for row in values.tolist()], labels


def learning(path: str, rows: int, distinct: int = 200, arrow: bool = False) -> list[bytes]:
    """Requests that learn, each of so many rows."""
    table, labels = events(rows * distinct)
    found = []
    for start in range(0, rows * distinct, rows):
        part, truth = table[start : start + rows], labels[start : start + rows]
        if arrow:
            found.append(request(path, _arrow(part, truth), ARROW))
        else:
            found.append(request(path, msgspec.json.encode({"rows": part, "labels": truth})))
    return found


def _arrow(rows: list[dict[str, float]], labels: list[bool]) -> bytes:
    import pyarrow as pa

    table = pa.Table.from_pylist(rows).append_column("label", pa.array(labels))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


class Connection:
    """One connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._held = b""
        self.sent = 0.0

    def send(self, data: bytes) -> None:
        self.sent = time.perf_counter()
        self.socket.sendall(data)

    def receive(self) -> int | None:
        """Read once; the status when an answer is whole."""
        more = self.socket.recv(1 << 20)
        if not more:
            raise ConnectionError("the server hung up")
        self._held += more
        end = self._held.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self._held[:end].lower()
        place = head.find(b"content-length:")
        length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
        if len(self._held) < end + 4 + length:
            return None
        self._held = self._held[end + 4 + length :]
        status = int(head[9:12])
        return None if status < 200 else status  # 100: go on


def drive(port: int, requests: list[bytes], connections: int, seconds: float, pause: float = 0.0) -> Measured:
    """Send requests round and round for some seconds; `pause` lies between two of a connection."""
    poll = selectors.DefaultSelector()
    lines = [Connection(port) for _ in range(connections)]
    for line in lines:
        poll.register(line.socket, selectors.EVENT_READ, line)
    following = _cycle(requests)
    latencies: list[float] = []
    statuses: dict[int, int] = {}
    start = time.perf_counter()
    end = start + seconds
    for line in lines:
        line.send(next(following))
    open_requests = connections
    try:
        while open_requests:
            ready = poll.select(60)
            if not ready:
                raise TimeoutError("no answer within 60 s")
            for found, _ in ready:
                line = found.data
                status = line.receive()
                if status is None:
                    continue
                now = time.perf_counter()
                latencies.append(now - line.sent)
                statuses[status] = statuses.get(status, 0) + 1
                if now >= end:
                    open_requests -= 1
                    continue
                if pause:
                    time.sleep(pause)
                line.send(next(following))
    finally:
        for line in lines:
            line.socket.close()
        poll.close()
    return Measured(len(latencies), time.perf_counter() - start, latencies, statuses)


def _cycle(requests: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from requests


def background(port: int, requests: list[bytes], connections: int, seconds: float, answer: Any) -> None:
    """`drive` in a process of its own."""
    found = drive(port, requests, connections, seconds)
    answer.put((found.rate, found.statuses))
