"""What only a real process shows: server-sent events, signals, slow and broken requests, the command line."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import sys

import httpx
import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(300, 3))
Y = (X[:, 0] * X[:, 1] > 0).tolist()
ROWS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]


@pytest.fixture
def client():
    with httpx.Client(timeout=30, trust_env=False) as found:
        yield found


def notices(lines, kind):
    """The data of the next server-sent event of a kind; metrics come every second, so that this ends."""
    here = None
    for count, line in enumerate(lines):
        assert count < 400, f"no event {kind}"
        if line.startswith("event: "):
            here = line[7:]
        elif line.startswith("data: ") and here == kind:
            return json.loads(line[6:])
    raise AssertionError(f"the stream ended without {kind}")


def test_events_are_streamed_until_the_server_is_asked_to_stop(start, client):
    server = start(model=None)
    model = f"{server.url}/v1/models/pump"
    assert client.post(model, json={"task": "novelty", "alarm_rate": 0.05}).status_code == 201
    with client.stream("GET", f"{model}/events") as answer:
        lines = answer.iter_lines()
        assert notices(lines, "metrics")["position"] == 0
        httpx.post(f"{model}/learn", json={"rows": ROWS}, timeout=30, trust_env=False)
        strange = {"a": 0.0, "b": 40.0, "c": 0.0}
        httpx.post(f"{model}/learn", json={"rows": [strange]}, timeout=30, trust_env=False)
        while (alarm := notices(lines, "alarm"))["position"] < 300:
            pass
        assert alarm["reasons"][0]["column"] == "b"
        server.process.send_signal(signal.SIGTERM)
        assert list(lines) is not None  # the stream ends
    assert server.end() in (0, -signal.SIGTERM)


def test_after_sigterm_everything_is_in_a_snapshot(start, client, tmp_path):
    server = start()
    body = {"rows": ROWS, "labels": Y}
    assert client.post(f"{server.url}/v1/models/m/learn", json=body).json()["position"] == 300
    server.end(signal.SIGTERM)
    assert (tmp_path / "store" / "m" / "learner-1-at-300.model").is_file()
    again = start()
    assert client.get(f"{again.url}/v1/models/m").json()["n_seen"] == 300


def test_a_damaged_journal_is_told_and_recovered_by_command(start, client, tmp_path):
    server = start()
    for first in range(0, 300, 100):
        body = {"rows": ROWS[first : first + 100], "labels": Y[first : first + 100]}
        client.post(f"{server.url}/v1/models/m/learn", json=body)
    server.end(signal.SIGKILL)
    with sqlite3.connect(tmp_path / "store" / "m" / "journal.sqlite") as journal:
        journal.execute("UPDATE events SET body = zeroblob(50) WHERE first = 200")
    journal.close()
    command = [sys.executable, "-m", "gristmill", "serve", "--store", str(tmp_path / "store"), "--port", "0"]
    for options, said in (([], "position 200"), (["--recover"], "100 events would be lost")):
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False
        )
        assert (done.returncode != 0, said in done.stderr) == (True, True), done.stderr
    again = start("--recover", "--yes")
    assert client.get(f"{again.url}/v1/models/m").json()["position"] == 200


def exchange(port, *parts, close=False):
    """Send bytes as they are; the status line of the answer, or nothing where the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        for part in parts:
            line.sendall(part)
        if close:
            line.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while b"\r\n" not in found and (more := line.recv(4096)):
                found += more
        except ConnectionError:
            pass
        return found.partition(b"\r\n")[0].decode()


def test_broken_requests_are_refused_and_the_service_goes_on(start, client):
    server = start()
    head = b"POST /v1/models/m/learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    assert " 400 " in exchange(server.port, b"nonsense\r\n\r\n")
    assert " 413 " in exchange(server.port, head + b"Content-Length: 99999999999\r\n\r\n")
    assert " 400 " in exchange(server.port, head + b"Content-Length: -5\r\n\r\n")
    exchange(server.port, head + b'Content-Length: 50\r\n\r\n{"rows": [', close=True)  # half a body
    for _ in range(20):  # connections that are left in the middle
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
            line.sendall(head + b"Content-Length: 1000\r\n\r\n{")
    body = {"rows": ROWS[:10], "labels": Y[:10]}
    assert client.post(f"{server.url}/v1/models/m/learn", json=body).json()["position"] == 10


def test_binary_tensors_of_the_inference_protocol(start, client):
    server = start()
    client.post(f"{server.url}/v1/models/m/learn", json={"rows": X.tolist(), "labels": Y})
    raw = X[:7].tobytes()
    tensor = {"name": "rows", "shape": [7, 3], "datatype": "FP64", "parameters": {"binary_data_size": len(raw)}}
    wanted = {"name": "prediction", "parameters": {"binary_data": True}}
    head = json.dumps({"id": "q", "inputs": [tensor], "outputs": [wanted]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    answer = client.post(f"{server.url}/v2/models/m/infer", content=head + raw, headers=headers)
    size = int(answer.headers["inference-header-content-length"])
    (output,) = json.loads(answer.content[:size])["outputs"]
    found = np.frombuffer(answer.content[size:], np.bool_)
    assert (output["datatype"], output["shape"]) == ("BOOL", [7])
    expected = client.post(f"{server.url}/v1/models/m/predict", json={"rows": X[:7].tolist()}).json()["predictions"]
    assert found.tolist() == expected
    cut = client.post(f"{server.url}/v2/models/m/infer", content=head + raw[:-1], headers=headers)
    assert (cut.status_code, "binary_data_size" in cut.text) == (400, True)
    texts = b"".join(struct.pack("<I", len(word)) + word for word in (b"red", b"blue"))
    tensor = {"name": "hue", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(texts)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    headers["Inference-Header-Content-Length"] = str(len(head))
    answer = client.post(f"{server.url}/v2/models/m/infer", content=head + texts, headers=headers)
    assert (answer.status_code, "hue" in answer.text) == (422, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--token-file", "open.txt"], "chmod 600"),
        (["--token-file", "short.txt"], "line 1"),
        (["--learner", "perceptron(Gaussian(-1))", "--name", "m"], "gamma"),
        (["--learner", "auto"], "task"),
        (["no-model.bin"], "no-model.bin"),
    ],
)
def test_a_wrong_command_ends_with_a_reason(tmp_path, options, said):
    for name, text, mode in (("open.txt", "write " + "w" * 16, 0o644), ("short.txt", "write me", 0o600)):
        (tmp_path / name).write_text(text)
        os.chmod(tmp_path / name, mode)
    command = [sys.executable, "-m", "gristmill", "serve", "--store", "store", "--port", "0", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


RUN = """
import sys
from gristmill.serve import app
from gristmill.serve.run import run

run(app(sys.argv[1]), "127.0.0.1", 0, sys.argv[1], 1.0)
"""


def test_connections_on_which_nothing_moves_are_closed(tmp_path):
    """Half a head of a request, and an answer that is not read."""
    process = subprocess.Popen([sys.executable, "-c", RUN, tmp_path / "s"], stdout=subprocess.PIPE, text=True)
    held = []
    try:
        url = process.stdout.readline().split(" at ")[1].strip()
        port = int(url.rstrip("/").rpartition(":")[2])
        with httpx.Client(base_url=f"{url}v1/models", timeout=30, trust_env=False) as client:
            client.post("/m", json={"learner": "passive_aggressive(Gaussian(0.5))"}).raise_for_status()
            wide = np.random.default_rng(0).normal(size=(3000, 200))
            body = {"rows": wide.tolist(), "labels": (wide[:, 0] > 0).tolist()}
            client.post("/m/learn", json=body).raise_for_status()
            size = len(client.get("/m/file").content)
        assert size > 1_000_000  # more than the buffers of the kernel take
        for text in ("GET /healthz HTTP/1.1\r\nHo", "GET /v1/models/m/file HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            held.append(socket.socket())
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            held[-1].settimeout(60)
            held[-1].connect(("127.0.0.1", port))
            held[-1].sendall(text.encode())
        with contextlib.suppress(ConnectionResetError):
            assert held[0].recv(1) == b""
        select.select([], [], [held[1]], 3.0)  # reads nothing for longer than the limit
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while data := held[1].recv(65536):
                received += len(data)
        assert received < size
    finally:
        for one in held:
            one.close()
        process.terminate()
        process.communicate(timeout=60)


def test_a_store_that_cannot_be_opened_is_not_called_damaged(start, tmp_path):
    """A right or space that is missing says nothing about the events, so --recover must not drop them."""
    server = start()
    httpx.post(f"{server.url}/v1/models/m/learn", json={"rows": ROWS, "labels": Y}, trust_env=False).raise_for_status()
    server.end(signal.SIGKILL)  # so that the log of SQLite has to be taken in
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from gristmill.cli.app import main\n"
        "main(['serve', '--port', '0', '--store', sys.argv[1], *sys.argv[2:]])\n"
    )
    for options in ((), ("--recover", "--yes")):
        command = [sys.executable, "-c", code, tmp_path / "store", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, done
        assert "journal.sqlite cannot be opened" in done.stderr
        assert "--recover" not in done.stderr
    server = start()
    assert httpx.get(f"{server.url}/v1/models/m", trust_env=False).json()["position"] == len(ROWS)
