"""The service is killed at random moments under load; nothing acknowledged is lost, nothing is learned twice.

`make chaos` runs 50 rounds (GRISTMILL_CHAOS=50).
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import numpy as np

import gristmill

ROUNDS = int(os.environ.get("GRISTMILL_CHAOS", "3"))
RNG = np.random.default_rng(1)
X = RNG.normal(size=(20_000, 3))
Y = (X[:, 0] * X[:, 1] > 0).tolist()
ROWS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]


class Server:
    """A real process on a free port of this machine."""

    def __init__(self, store):
        command = [sys.executable, "-m", "gristmill", "serve", "--store", str(store), "--port", "0"]
        command += ["--name", "m", "--learner", "passive_aggressive(Gaussian(0.5), size=40)"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert " at http://" in line, line
        self.url = line.split(" at ")[1].strip().rstrip("/")

    def end(self, sign):
        self.process.send_signal(sign)
        self.process.wait(30)
        self.process.stdout.close()


class Client(threading.Thread):
    """Sends its requests in order, each with a key, and each again until it is answered."""

    def __init__(self, number, shared):
        super().__init__(daemon=True)
        self.number, self.shared, self.done, self.stop = number, shared, [], False
        self.errors = []

    def run(self):
        place = self.number * 5000
        count = 0
        while not self.stop:
            size = 1 + (place * 7) % 9
            start, place = place, place + size
            rows, labels, key = ROWS[start:place], Y[start:place], f"{self.number}-{count}"
            count += 1
            if count % 5 == 0:
                ids = [f"{key}-{one}" for one in range(size)]
                self.send("predict", {"rows": rows, "ids": ids}, f"{key}-p")
                answer = self.send("labels", {"labels": dict(zip(ids, labels, strict=True))}, key)
            else:
                answer = self.send("learn", {"rows": rows, "labels": labels}, key)
                if answer is not None and count % 7 == 0:
                    again = self.send("learn", {"rows": rows, "labels": labels}, key)
                    if again is not None and again != answer:
                        self.errors.append((answer, again))
            if answer is None:
                return
            self.done.append((answer["position"] - answer["learned"], answer["learned"], start))
            if count % 11 == 0:
                self.send("snapshots", {}, f"{key}-s")

    def send(self, path, body, key):
        while True:
            try:
                url = f"{self.shared['url']}/v1/models/m/{path}"
                answer = httpx.post(url, json=body, headers={"Idempotency-Key": key}, timeout=10)
            except httpx.HTTPError:
                time.sleep(0.02)
                continue
            if answer.status_code == 409 and path == "predict":
                return {}
            if answer.status_code != 200:
                if answer.status_code in (429, 503):
                    continue
                self.errors.append(answer.text)
                return None
            return answer.json()


def test_what_was_acknowledged_survives_kills_at_random_moments(tmp_path):
    store = tmp_path / "store"
    server = Server(store)
    shared = {"url": server.url}
    clients = [Client(number, shared) for number in range(3)]
    for client in clients:
        client.start()
    for _ in range(ROUNDS):
        time.sleep(float(RNG.uniform(0.05, 0.6)))
        server.end(signal.SIGKILL)
        server = Server(store)
        shared["url"] = server.url
    time.sleep(0.3)
    for client in clients:
        client.stop = True
    for client in clients:
        client.join(30)
    try:
        assert [error for client in clients for error in client.errors] == []
        data = httpx.get(f"{server.url}/v1/models/m/file")
        position = int(data.headers["gristmill-position"])
    finally:
        server.end(signal.SIGTERM)
    assert server.process.returncode in (0, -signal.SIGTERM)
    done = sorted(part for client in clients for part in client.done)
    model = gristmill.Prepared(gristmill.passive_aggressive(gristmill.Gaussian(0.5), size=40, random_state=0))
    expected = 0
    for first, rows, start in done:
        assert first == expected, "an event was lost, or learned twice"
        model.partial_fit(ROWS[start : start + rows], Y[start : start + rows])
        expected = first + rows
    assert expected == position
    assert len(done) > 10 * ROUNDS
    assert hashlib.sha256(model.to_bytes()).digest() == hashlib.sha256(data.content).digest()
