"""The service is killed at random moments under load; nothing acknowledged is lost, nothing is learned twice.

Clients learn, predict with ids, send late labels and snapshots, and send some requests twice. During kills the model goes
back to an earlier position, or gets a challenger that takes the place of the champion and gives it back.
`make chaos` runs 50 rounds (GRISTMILL_CHAOS=50).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time

import httpx
import numpy as np
import pytest

import gristmill

ROUNDS = int(os.environ.get("GRISTMILL_CHAOS", "3"))
RNG = np.random.default_rng(int(os.environ.get("GRISTMILL_SEED", "1")))
CLIENTS = 3
X = np.random.default_rng(0).normal(size=(60_000, 3))
Y = (X[:, 0] * X[:, 1] > 0).tolist()
ROWS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]
OTHER = "passive_aggressive(Gaussian(2), size=30)"
#: seconds for which a request is sent again; the server comes back in one or two
PATIENCE = 90


class Sender:
    """Sends a request until it is answered; a server that was killed comes back under another address."""

    def __init__(self, shared):
        self.shared, self.errors = shared, []
        self.wait_for: tuple[int, ...] = ()  # further answers after which a request is sent again
        self.client = httpx.Client(timeout=10, trust_env=False)

    def send(self, path, body, key):
        deadline = time.monotonic() + PATIENCE
        why = None
        while time.monotonic() < deadline:
            try:
                url = f"{self.shared['url']}/v1/models/m/{path}"
                answer = self.client.post(url, json=body, headers={"Idempotency-Key": key})
            except httpx.HTTPError as error:
                why = repr(error)
                time.sleep(0.02)
                continue
            why = answer.text
            if answer.status_code == 200:
                return answer.json()
            if answer.status_code not in (429, 503, *self.wait_for):
                break
            time.sleep(0.02)
        self.errors.append((path, key, why))
        return None


class Client(Sender, threading.Thread):
    """Sends its requests in order, each with a key, and each again until it is answered."""

    def __init__(self, number, shared):
        threading.Thread.__init__(self, daemon=True)
        Sender.__init__(self, shared)
        self.number, self.count, self.done, self.stop = number, 0, [], False
        #: held during a request, so that a rollback has an order among the answers
        self.busy = threading.Lock()

    def run(self):
        place = self.number * len(ROWS) // CLIENTS
        while not self.stop and not self.errors:
            size = 1 + (place * 7) % 9
            with self.busy:
                self.one(place, place + size)
            place += size
            time.sleep(0.0005)  # the lock is free for a moment

    def one(self, start, stop):
        rows, labels, key = ROWS[start:stop], Y[start:stop], f"{self.number}-{self.count}"
        self.count += 1
        if self.count % 5 == 0:
            path, ids = "labels", [f"{key}-{one}" for one in range(stop - start)]
            asked = {"rows": rows, "ids": ids}
            said = self.send("predict", asked, f"{key}-p")
            if said is not None and self.count % 2 == 0:
                self.same(said, self.send("predict", asked, f"{key}-p"))
            body = {"labels": dict(zip(ids, labels, strict=True))}
        else:
            path, body = "learn", {"rows": rows, "labels": labels}
        answer = self.send(path, body, key)
        if answer is None:
            return
        if self.count % 7 == 0 or path == "labels":
            self.same(answer, self.send(path, body, key))
        self.done.append((answer["position"] - answer["learned"], answer["learned"], start))
        if self.count % 11 == 0:
            self.send("snapshots", {}, f"{key}-s")

    def same(self, answer, again):
        if again is not None and again != answer:
            self.errors.append((answer, again))


def roll_back(sender, clients, number):
    """Go back by up to 40 events while the clients wait; what came after leaves their lists."""
    with contextlib.ExitStack() as held:
        held.callback(sender.client.close)
        for client in clients:
            assert client.busy.acquire(timeout=PATIENCE)
            held.callback(client.busy.release)
        last = max([first + rows for client in clients for first, rows, _ in client.done], default=0)
        position = max(0, last - int(RNG.integers(0, 40)))
        answer = sender.send("rollback", {"position": position}, f"rollback-{number}")
        assert answer == {"position": position, "before": last}, sender.errors
        for client in clients:
            client.done = [
                (first, min(rows, position - first), start) for first, rows, start in client.done if first < position
            ]


def swap(sender, _, number):
    """A challenger takes the place of the champion, and gives it back."""
    sender.wait_for = (409,)  # until the challenger has learned an event
    with contextlib.closing(sender.client):
        begun = sender.send("challenger", {"learner": OTHER}, f"challenger-{number}")
        first, second = (sender.send("promote", {}, f"promote-{number}-{turn}") for turn in range(2))
        assert begun["position"] <= first["position"] <= second["position"], sender.errors
        assert first["learner"] == OTHER != second["learner"]


def alone(model, done, begun=0):
    """The bytes of a model that learns in one process what was acknowledged."""
    for first, rows, place in done:
        if first >= begun:
            model.partial_fit(ROWS[place : place + rows], Y[place : place + rows])
    return hashlib.sha256(model.to_bytes()).digest()


@pytest.mark.timeout(180 + 60 * ROUNDS)
def test_what_was_acknowledged_survives_kills_at_random_moments(start, until):
    server = start()
    shared = {"url": server.url}
    clients = [Client(number, shared) for number in range(CLIENTS)]
    for client in clients:
        client.start()

    def answered():
        return any(client.errors for client in clients) or sum(client.count for client in clients) > wanted

    for number in range(ROUNDS):
        wanted = sum(client.count for client in clients) + int(RNG.integers(10, 100))
        until(answered, "the clients go on")
        failed: list[BaseException] = []

        def change(number=number, failed=failed):
            try:
                (swap if number % 2 else roll_back)(Sender(shared), clients, number)
            except BaseException as error:
                failed.append(error)

        changing = threading.Thread(target=change, daemon=True)
        changing.start()
        time.sleep(float(RNG.uniform(0, 0.05)))
        server.end(signal.SIGKILL)
        server = start()
        shared["url"] = server.url
        changing.join(PATIENCE)
        assert not changing.is_alive()
        assert failed == []
    wanted = sum(client.count for client in clients) + 10
    until(answered, "the clients go on")
    for client in clients:
        client.stop = True
    for client in clients:
        client.join(PATIENCE)
        assert not client.is_alive()
        client.client.close()
    assert [error for client in clients for error in client.errors] == []
    address = f"{server.url}/v1/models/m"
    data = httpx.get(f"{address}/file", timeout=30, trust_env=False)
    beside = httpx.get(f"{address}/challenger", timeout=30, trust_env=False)
    if beside.status_code == 200:  # a rollback to before its first event removes it
        httpx.post(f"{address}/promote", timeout=30, trust_env=False).raise_for_status()
        other = httpx.get(f"{address}/file", timeout=30, trust_env=False)
    position = int(data.headers["gristmill-position"])
    assert server.end(signal.SIGTERM) in (0, -signal.SIGTERM)
    done = sorted(part for client in clients for part in client.done)
    expected = 0
    for first, rows, _ in done:
        assert first == expected, "an event was lost, or learned twice"
        expected = first + rows
    assert expected == position
    build, kernel = gristmill.passive_aggressive, gristmill.Gaussian
    champion = gristmill.Prepared(build(kernel(0.5), size=40, random_state=0))
    assert alone(champion, done) == hashlib.sha256(data.content).digest()
    if beside.status_code == 200:
        challenger = gristmill.Prepared(build(kernel(2), size=30, random_state=0))
        begun = beside.json()["challenger"]["begun"]
        assert alone(challenger, done, begun) == hashlib.sha256(other.content).digest()
    print(f"\n{ROUNDS} kills, {len(done)} requests, {position} events: none lost, none learned twice, digests equal")
