"""What goes wrong beside the requests: full disks, clients that do not read, busy models, requests that are sent again."""

from __future__ import annotations

import asyncio
import io

import pyarrow as pa
from starlette.testclient import TestClient

from gristmill.serve import Settings, Store, app
from tests.serve.events import ROWS, TEXT, Y, digest, fresh, learn, served


def test_a_watcher_that_reads_nothing_loses_its_place(tmp_path):
    with Store(tmp_path / "store") as store:
        store.create("m", {"learner": TEXT})
    application = app(tmp_path / "store", Settings(timeout=0.2))
    service = application.state.service

    async def watch():
        seen = []

        async def receive():
            await asyncio.sleep(60)

        async def send(message):
            seen.append(service.watchers)
            if message["type"] == "http.response.body":
                await asyncio.sleep(60)  # as a full buffer makes it wait

        scope = {
            "type": "http", "method": "GET", "path": "/v1/models/m/events", "query_string": b"",
            "headers": [(b"host", b"localhost")], "asgi": {"spec_version": "2.3"},
        }  # fmt: skip
        async with application.router.lifespan_context(application):
            await asyncio.wait_for(application(scope, receive, send), 30)
        return seen

    assert max(asyncio.run(watch())) == 1
    assert service.watchers == 0


def test_a_model_that_is_created_twice_with_one_key_is_created_once(tmp_path):
    body, key = {"learner": TEXT}, {"idempotency-key": "first"}
    with TestClient(app(tmp_path / "store")) as client:
        first = client.post("/v1/models/m", json=body, headers=key)
        learn(client, 0, 50)
    with TestClient(app(tmp_path / "store")) as client:
        again = client.post("/v1/models/m", json=body, headers=key)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["idempotent-replay"] == "true"
        for other, headers in (
            ({"learner": "auto", "task": "novelty"}, key),
            (body, {"idempotency-key": "second"}),
            (body, {}),
        ):
            assert client.post("/v1/models/m", json=other, headers=headers).status_code == 409
        assert served(client).position == 50
        data = client.get("/v1/models/m/file").content
        sent = [client.put("/v1/models/up/file", content=data, headers=key) for _ in range(2)]
        assert (sent[0].status_code, sent[0].content) == (201, sent[1].content)
        assert sent[0].json()["n_seen"] == 50


def test_a_busy_model_is_described_by_what_was_known_last(client):
    learn(client, 0, 50)
    assert client.get("/v1/models/m").json()["n_seen"] == 50
    champion = served(client).champion
    with champion.lock:  # as it is held while the model learns; there is no copy yet
        found = client.get("/v1/models/m").json()
        assert (found["n_seen"], found["columns"]) == (50, dict.fromkeys("abc", "number"))
    champion.publish()
    learn(client, 50, 60)
    with champion.lock:
        assert client.get("/v1/models/m/curves").json()["n_seen"] == 50
    assert client.get("/v1/models/m").json()["n_seen"] == 60


def test_while_the_disk_is_full_nothing_is_learned_in_vain(client, monkeypatch):
    learn(client, 0, 50)
    writer = client.app.state.service.store.get("m")
    connection = writer.served.journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    loads, load = [], writer.served.load
    monkeypatch.setattr(writer.served, "load", lambda: (loads.append(1), load()))
    for _ in range(4):
        answer = learn(client, 50, 600)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert len(loads) == 1  # only the first had been learned when it could not be written
    connection.execute("PRAGMA max_page_count = 1000000")
    assert learn(client, 50, 100).json()["position"] == 100
    assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS[:100], Y[:100]))


def test_a_model_that_the_disk_does_not_take_is_answered_503(client, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gristmill.serve.store.journal.Journal.create", full)
    answer = client.post("/v1/models/n", json={"learner": TEXT})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "No space left" in answer.json()["error"]["message"]
    monkeypatch.undo()
    assert client.post("/v1/models/n", json={"learner": TEXT}).status_code == 201


def test_a_number_that_json_does_not_have_is_shown_as_text(client):
    table = pa.table({"a": [1.0, float("inf")], "label": ["u", "v"]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    error = client.post("/v1/models/m/learn", content=sink.getvalue(), headers=headers).json()["error"]
    assert (error["row"], error["column"], error["value"]) == (1, "a", "inf")
