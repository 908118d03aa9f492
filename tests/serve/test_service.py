"""The service over HTTP: bodies of every kind, late labels, idempotency, rollback, challengers, access, recovery."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import math
import re
import sqlite3
import subprocess
import sys
import time

import msgspec
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import gristmill
from gristmill.serve import Settings, Store, app
from gristmill.serve.access import Tokens
from gristmill.serve.store.errors import Damaged
from gristmill.serve.store.recovery import plan, recover
from tests.serve.events import ROWS, TEXT, X, Y, digest, fresh, learn, served


def test_answers_are_the_predictions_before_learning_and_the_model_is_that_of_one_process(client):
    answers = []
    for start in range(0, 300, 7):
        found = learn(client, start, min(start + 7, 300)).json()
        assert found["position"] == min(start + 7, 300)
        answers += found["predictions"]
    alone = fresh()
    scores = alone.prequential(ROWS[:300], Y[:300])
    assert answers[1:] == (scores >= 0).tolist()[1:]
    assert digest(served(client).champion.model) == digest(alone)


def test_every_kind_of_body_gives_the_same_model(tmp_path):
    lines = b"".join(msgspec.json.encode({**row, "label": y}) + b"\n" for row, y in zip(ROWS[:60], Y, strict=False))
    table = pa.table({name: [row[name] for row in ROWS[:60]] for name in "abc"} | {"label": Y[:60]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    text = "a,b,c,label\n" + "".join(
        f"{row['a']!r},{row['b']!r},{row['c']!r},{int(y)}\n" for row, y in zip(ROWS[:60], Y, strict=False)
    )
    columns = {name: [row[name] for row in ROWS[:60]] for name in "abc"}
    lists = {"rows": [list(row.values()) for row in ROWS[:60]], "columns": list("abc"), "labels": Y[:60]}
    bodies = {
        "records": ("application/json", msgspec.json.encode({"rows": ROWS[:60], "labels": Y[:60]})),
        "columns": ("application/json", msgspec.json.encode({"rows": columns, "labels": Y[:60]})),
        "lists": ("application/json", msgspec.json.encode(lists)),
        "lines": ("application/x-ndjson", lines),
        "csv": ("text/csv", text.encode()),
        "arrow": ("application/vnd.apache.arrow.stream", sink.getvalue()),
    }
    found = {}
    with TestClient(app(tmp_path / "store")) as client:
        for name, (kind, body) in bodies.items():
            client.post(f"/v1/models/{name}", json={"learner": TEXT})
            answer = client.post(f"/v1/models/{name}/learn", content=body, headers={"content-type": kind})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith(kind)
            model = client.app.state.service.store.get(name).served.champion.model
            found[name] = model.predict(ROWS[60:]).astype(int).tolist()
        arrow = pa.ipc.open_stream(answer.content).read_all()
        assert (arrow.num_rows, answer.headers["gristmill-position"]) == (60, "60")
    assert all(one == found["records"] for one in found.values())


def test_late_labels_are_scored_against_what_was_predicted_then(client):
    learn(client, 0, 100)
    body = {"rows": ROWS[100:110], "ids": [f"e{place}" for place in range(10)]}
    said = client.post("/v1/models/m/predict", json=body).json()
    assert (said["position"], served(client).journal.waiting) == (100, 10)
    learn(client, 200, 300)
    labels = {f"e{place}": Y[100 + place] for place in range(10)} | {"strange": True}
    found = client.post("/v1/models/m/labels", json={"labels": labels}).json()
    assert found["predictions"] == said["predictions"]
    assert (found["learned"], found["position"], found["unknown"]) == (10, 210, ["strange"])
    again = client.post("/v1/models/m/labels", json={"labels": labels}).json()
    assert (again["learned"], len(again["unknown"]), served(client).journal.waiting) == (0, 11, 0)
    alone = fresh().partial_fit([*ROWS[:100], *ROWS[200:300], *ROWS[100:110]], [*Y[:100], *Y[200:300], *Y[100:110]])
    assert digest(served(client).champion.model) == digest(alone)


def test_the_first_labels_may_come_late_too(client):
    body = {"rows": ROWS[:4], "ids": [1, 2, 3, 4]}
    assert client.post("/v1/models/m/predict", json={"rows": ROWS[:4]}).status_code == 409
    assert client.post("/v1/models/m/predict", json=body).json()["predictions"] == [None] * 4
    found = client.post("/v1/models/m/labels", json={"labels": dict(zip("1234", Y, strict=False))}).json()
    assert (found["learned"], found["predictions"]) == (4, [None] * 4)
    assert client.get("/v1/models/m").json()["metrics"]["scored"] == 4
    assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS[:4], Y[:4]))


def test_labels_that_never_come_expire_and_are_counted(tmp_path):
    settings = Settings(label_space=1000)
    with TestClient(app(tmp_path / "store", settings)) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        learn(client, 0, 50)
        for start in range(0, 100, 10):
            ids = list(range(start, start + 10))
            client.post("/v1/models/m/predict", json={"rows": ROWS[start : start + 10], "ids": ids})
        about = client.get("/v1/models/m").json()
        assert (about["waiting"] + about["expired"], about["waiting"] < 10) == (100, True)
        found = client.post("/v1/models/m/labels", json={"labels": {"0": True}}).json()
        assert (found["learned"], found["unknown"]) == (0, ["0"])
        families = text_string_to_metric_families(client.get("/metrics").text)
        (expired,) = [one.samples[0].value for one in families if one.name == "gristmill_expired_labels"]
        assert expired == about["expired"]


def test_a_prediction_with_ids_and_a_key_that_comes_again_keeps_nothing(client):
    learn(client, 0, 100)
    body, key = {"rows": ROWS[100:103], "ids": ["x", "y", "z"]}, {"Idempotency-Key": "p"}
    first = client.post("/v1/models/m/predict", json=body, headers=key)
    client.post("/v1/models/m/labels", json={"labels": dict(zip("xyz", Y[100:103], strict=True))})
    again = client.post("/v1/models/m/predict", json=body, headers=key)
    assert (first.content, again.headers["idempotent-replay"]) == (again.content, "true")
    assert (served(client).journal.waiting, served(client).position) == (0, 103)


def test_more_requests_than_the_queue_takes_are_told_to_come_later(tmp_path):
    with TestClient(app(tmp_path / "store", Settings(queue_bytes=100))) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        answer = learn(client, 0, 5)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert served(client).position == 0


def test_a_key_that_comes_again_changes_nothing_and_gets_the_same_answer(client):
    first = learn(client, 0, 10, **{"Idempotency-Key": "k"})
    again = learn(client, 0, 10, **{"Idempotency-Key": "k"})
    assert (first.content, again.headers["idempotent-replay"]) == (again.content, "true")
    assert served(client).position == 10
    assert learn(client, 10, 20, **{"Idempotency-Key": "k"}).status_code == 409


def test_everything_comes_back_after_a_restart_and_after_a_rollback(tmp_path):
    settings = Settings(snapshot_events=100, keep_snapshots=3)
    with TestClient(app(tmp_path / "store", settings)) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        for start in range(0, 600, 50):
            learn(client, start, start + 50)
        metrics = served(client).champion.record.metrics()
        assert served(client).journal.start > 0  # pruned behind the oldest of three snapshots
        assert client.post("/v1/models/m/rollback", json={"position": 3}).status_code == 409
    with TestClient(app(tmp_path / "store", settings)) as client:
        assert served(client).champion.record.metrics() == metrics
        assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS, Y))
        assert client.post("/v1/models/m/rollback", json={"position": 533}).json()["position"] == 533
        assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS[:533], Y[:533]))
        assert learn(client, 533, 600).json()["position"] == 600
    with TestClient(app(tmp_path / "store", settings)) as client:
        assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS, Y))


def test_a_challenger_learns_the_same_events_and_takes_over(client):
    learn(client, 0, 100)
    client.post("/v1/models/m/challenger", json={"learner": "perceptron(Gaussian(0.5))"})
    learn(client, 100, 300)
    found = client.get("/v1/models/m/challenger").json()
    assert (found["challenger"]["metrics"]["scored"], found["champion"]["metrics"]["scored"]) == (200, 300)
    assert client.post("/v1/models/m/challenger/promote").status_code == 200
    assert "perceptron" in client.get("/v1/models/m").json()["learner"]
    assert client.post("/v1/models/m/challenger", json={"learner": "auto", "task": "novelty"}).status_code == 409


@pytest.mark.parametrize(
    ("row", "label", "status", "column"),
    [({"a": "x", "b": 1, "c": 1}, True, 422, "a"), ({"a": 1, "b": 1, "c": 1}, None, 422, None),
     ({"a": 1, "b": 1, "c": 1}, [1], 422, None), (7, True, 422, None)],
)  # fmt: skip
def test_a_bad_row_is_named_and_changes_nothing(client, row, label, status, column):
    learn(client, 0, 50)
    before = digest(served(client).champion.model)
    answer = client.post("/v1/models/m/learn", json={"rows": [ROWS[0], row], "labels": [True, label]})
    error = answer.json()["error"]
    assert (answer.status_code, error["row"], error.get("column")) == (status, 1, column)
    assert (digest(served(client).champion.model), served(client).position) == (before, 50)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"rows":' + b"[" * 99_999, 400),
        (b"{", 400),
        (b'{"rows": [], "labels": []}', 422),
        (b'{"row": 1}', 422),
        (b"\xff", 400),
    ],
)
def test_a_hostile_body_is_refused(client, body, status):
    headers = {"content-type": "application/json"}
    assert client.post("/v1/models/m/learn", content=body, headers=headers).status_code == status


@pytest.mark.parametrize(
    "text", ["1", "[]", "Gaussian(1)", "", "auto()", "perceptron(", "x" * 3000, "Prepared(1)", "KeyedFleet(1)"]
)
def test_what_is_no_learner_is_refused(client, text):
    for path in ("/v1/models/other", "/v1/models/m/challenger"):
        answer = client.post(path, json={"learner": text})
        assert (answer.status_code, "learner" in answer.text or "served" in answer.text) == (422, True), answer.text


def test_names_cannot_leave_the_store(client, tmp_path):
    for name in ("..", "%2e%2e", "a%2Fb", ".hidden", "a b"):
        assert client.post(f"/v1/models/{name}", json={"learner": TEXT}).status_code in (404, 405, 422)
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["gristmill-store", "m"]


def test_limits_of_size_are_413(tmp_path):
    with TestClient(app(tmp_path / "store", Settings(body_bytes=1000, rows=5))) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        assert learn(client, 0, 100).status_code == 413
        assert client.post("/v1/models/m/learn", json={"rows": [[1]] * 6, "labels": [1] * 6}).status_code == 413


def test_tokens_and_other_sites(tmp_path):
    tokens = Tokens((b"r" * 16,), (b"w" * 16,))
    with TestClient(app(tmp_path / "store", tokens=tokens)) as client:
        ask = {"authorization": "Bearer " + "r" * 16}
        write = {"authorization": "Bearer " + "w" * 16}
        assert client.get("/v1/models").status_code == 401
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/models", headers=ask).status_code == 200
        assert client.post("/v1/models/m", json={"learner": TEXT}, headers=ask).status_code == 403
        assert client.post("/v1/models/m", json={"learner": TEXT}, headers=write).status_code == 201
        assert client.post("/v1/models/predict", json={"learner": TEXT}, headers=ask).status_code == 403
        client.post("/v1/models/m/learn", json={"rows": ROWS[:9], "labels": Y[:9]}, headers=write)
        body = {"rows": ROWS[:1]}
        assert client.post("/v1/models/m/predict", json=body, headers=ask).status_code == 200
        assert client.post("/v1/models/m/predict", json={**body, "ids": [1]}, headers=ask).status_code == 403
        assert client.post("/v1/models/m/predict", json={**body, "ids": [1]}, headers=write).status_code == 200
        assert client.get("/v1/models", headers={**ask, "origin": "http://evil.example"}).status_code == 403
        link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        assert client.get("/", headers=link).status_code == 200
        assert client.get("/v1/models", headers={**ask, **link}).status_code == 403
    with TestClient(app(tmp_path / "other")) as client:
        assert client.get("/v1/models", headers={"host": "evil.example"}).status_code == 403


def test_a_full_disk_is_told_and_nothing_is_learned(client):
    learn(client, 0, 50)
    before = digest(served(client).champion.model)
    connection = served(client).journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    assert learn(client, 50, 600).status_code == 503
    assert (digest(served(client).champion.model), served(client).position) == (before, 50)
    connection.execute("PRAGMA max_page_count = 1000000")
    assert learn(client, 50, 60).json()["position"] == 60


def test_a_damaged_journal_is_reported_and_recovered(tmp_path):
    with TestClient(app(tmp_path / "store")) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        for start in range(0, 300, 100):
            learn(client, start, start + 100)
    folder = tmp_path / "store" / "m"
    for path in folder.glob("*.model"):
        path.unlink()
    with sqlite3.connect(folder / "journal.sqlite") as connection:
        connection.execute("UPDATE events SET body = zeroblob(50) WHERE first = 100")
    connection.close()
    with pytest.raises(Damaged, match="position 100 "):
        Store(tmp_path / "store").open()
    (loss,) = plan(tmp_path / "store")
    assert (loss.position, loss.last) == (100, 300)
    assert "at least 200 events would be lost" in loss.text()
    recover(folder, loss)
    with TestClient(app(tmp_path / "store")) as client:
        assert served(client).position == 100
        assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS[:100], Y[:100]))


def test_a_damaged_snapshot_falls_back_on_an_older_one(tmp_path):
    settings = Settings(snapshot_events=100)
    with TestClient(app(tmp_path / "store", settings)) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        for start in range(0, 300, 100):
            learn(client, start, start + 100)
    newest = max((tmp_path / "store" / "m").glob("*.model"), key=lambda path: int(path.stem.split("-")[-1]))
    newest.write_bytes(b"damaged")
    with TestClient(app(tmp_path / "store")) as client:
        assert digest(served(client).champion.model) == digest(fresh().partial_fit(ROWS[:300], Y[:300]))


def test_one_process_a_store(tmp_path):
    with Store(tmp_path / "store"), pytest.raises(ValueError, match="in use"):
        Store(tmp_path / "store")


def test_metrics_health_page_and_description(client):
    learn(client, 0, 100)
    families = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}
    assert families["gristmill_position"].samples[0].value == 100
    assert client.get("/readyz").json() == {"status": "ready"}
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/page/uPlot.iife.min.js").status_code == 200
    assert client.get("/page/..%2Fapplication.py").status_code == 404
    assert "/v1/models/{name}/learn" in client.get("/openapi.json").json()["paths"]
    found = client.get("/v1/models/m/curves").json()
    assert [entry[0] for entry in found["curve"]] == [50, 100]
    assert found["columns"] == dict.fromkeys("abc", "number")


def test_every_panel_of_grafana_has_its_metrics(client):
    learn(client, 0, 100)
    client.post("/v1/models/m/challenger", json={"learner": TEXT})
    learn(client, 100, 200)
    samples = {
        sample.name
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if not math.isnan(sample.value)
    }
    dashboard = client.get("/page/grafana.json").json()
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(asked) > 15
    named = {
        name for text in [*asked, json.dumps(dashboard["annotations"])] for name in re.findall(r"gristmill_\w+", text)
    }
    assert named - samples == set()


def test_novelty_tells_alarms_with_their_reasons(client):
    client.post("/v1/models/pump", json={"learner": "auto", "task": "novelty", "alarm_rate": 0.05})
    client.post("/v1/models/pump/learn", json={"rows": ROWS[:400]})
    strange = {"a": 0.0, "b": 40.0, "c": 0.0}
    found = client.post("/v1/models/pump/learn", json={"rows": [strange]}).json()
    assert found["predictions"] == [-1]
    alarm = client.get("/v1/models/pump/curves").json()["alarms"][-1]
    assert (alarm["position"], alarm["reasons"][0]["column"]) == (400, "b")


def test_columns_that_count_are_told(client):
    client.post("/v1/models/w", json={"learner": TEXT, "scale": "relevance"})
    rows = [{**row, "hue": "red" if place % 2 else "blue"} for place, row in enumerate(ROWS)]
    client.post("/v1/models/w/learn", json={"rows": rows, "labels": Y})
    found = client.get("/v1/models/w").json()["relevance"]
    assert (list(found), sum(found.values())) == ([*"abc", "hue"], pytest.approx(1))
    assert min(found["a"], found["b"]) > max(found["c"], found["hue"])


def test_probabilities_intervals_and_explanations(client):
    learn(client, 0, 300)
    asked = {"rows": ROWS[300:302], "proba": True, "explain": True}
    found = client.post("/v1/models/m/predict", json=asked).json()
    assert [sum(one.values()) for one in found["probabilities"]] == pytest.approx([1, 1])
    assert len(found["explanations"]) == 2
    client.post("/v1/models/r", json={"task": "regression", "memory": "50 kB"})
    client.post("/v1/models/r/learn", json={"rows": ROWS, "labels": (3 * X[:, 0]).tolist()})
    found = client.post("/v1/models/r/predict", json={"rows": ROWS[:5], "interval": 0.9}).json()
    for (low, high), value in zip(found["intervals"], found["predictions"], strict=True):
        assert low < value < high
    for wrong, text in (({"interval": 1.5}, "interval"), ({"proba": True}, "predict_proba"), ({"rows": []}, "rows")):
        answer = client.post("/v1/models/r/predict", json={"rows": ROWS[:1], **wrong})
        assert (answer.status_code, text in answer.json()["error"]["message"]) == (422, True), answer.text
    rows = "a,b,c\n" + "".join(f"{row['a']},{row['b']},{row['c']}\n" for row in ROWS[:3])
    answer = client.post("/v1/models/r/predict?interval=0.8", content=rows, headers={"content-type": "text/csv"})
    assert answer.text.splitlines()[0] == "prediction,interval"


def test_a_challenger_comes_back_as_it_was(tmp_path):
    settings = Settings(snapshot_events=150)
    with TestClient(app(tmp_path / "store", settings)) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        learn(client, 0, 100)
        client.post("/v1/models/m/challenger", json={"learner": "passive_aggressive(Gaussian(2), size=20)"})
        for start in range(100, 400, 100):
            learn(client, start, start + 100)
        before = digest(served(client).challenger.model), served(client).challenger.record.metrics()
    with TestClient(app(tmp_path / "store", settings)) as client:
        assert (digest(served(client).challenger.model), served(client).challenger.record.metrics()) == before
        client.post("/v1/models/m/challenger/promote")
        assert digest(served(client).champion.model) == before[0]
        assert client.post("/v1/models/m/rollback", json={"position": 50}).status_code == 409  # it began at 100
    with TestClient(app(tmp_path / "store", settings)) as client:
        assert digest(served(client).champion.model) == before[0]


def ask(application, *parts, path="/v1/models/m/learn", pause=0.0):
    """A POST whose body comes in parts with a pause before each, without a server between."""

    async def call():
        waiting = list(parts)

        async def receive():
            await asyncio.sleep(pause)
            if not waiting:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": waiting.pop(0), "more_body": True}

        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        async with application.router.lifespan_context(application):
            await asyncio.wait_for(application(scope, receive, send), 30)
        return sent

    return asyncio.run(call())


def test_a_body_that_comes_too_slowly_is_given_up(tmp_path):
    with Store(tmp_path / "store") as store:
        store.create("m", {"learner": TEXT})
    sent = ask(app(tmp_path / "store", Settings(timeout=0.2)), b"{", b'"rows"', pause=5)
    assert (sent[0]["status"], b"did not arrive" in sent[1]["body"]) == (408, True)
    assert ask(app(tmp_path / "store"), b"{") == []  # the client has left


def test_predictions_do_not_wait_for_learning(client):
    learn(client, 0, 100)
    champion = served(client).champion
    champion.publish()
    learn(client, 100, 110)
    with champion.lock:  # as it is held while the model learns
        found = client.post("/v1/models/m/predict", json={"rows": ROWS[:3]}).json()
    assert found["position"] == 100
    assert found["predictions"] == fresh().partial_fit(ROWS[:100], Y[:100]).predict(ROWS[:3]).tolist()
    assert client.post("/v1/models/m/predict", json={"rows": ROWS[:3]}).json()["position"] == 110


def test_a_writer_that_takes_too_long_is_not_waited_for(tmp_path):
    with TestClient(app(tmp_path / "store", Settings(timeout=0.3))) as client:
        client.post("/v1/models/m", json={"learner": TEXT})
        with served(client).champion.lock:  # as a long prediction holds it
            answer = learn(client, 0, 5)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        deadline = time.monotonic() + 30
        while served(client).position < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_model_file_goes_up_and_comes_down(client):
    alone = fresh().partial_fit(ROWS[:100], Y[:100])
    assert client.put("/v1/models/up/file", content=alone.to_bytes()).status_code == 201
    client.post("/v1/models/up/learn", json={"rows": ROWS[100:200], "labels": Y[100:200]})
    down = gristmill.from_bytes(client.get("/v1/models/up/file").content)
    assert digest(down) == digest(fresh().partial_fit(ROWS[:200], Y[:200]))
    assert client.put("/v1/models/bad/file", content=b"no model").status_code == 422


def test_inference_in_json(client):
    learn(client, 0, 200)
    body = {
        "inputs": [
            {"name": n, "shape": [5], "datatype": "FP64", "data": X[:5, j].tolist()} for j, n in enumerate("abc")
        ]
    }
    found = client.post("/v2/models/m/infer", json=body).json()
    expected = client.post("/v1/models/m/predict", json={"rows": ROWS[:5]}).json()["predictions"]
    assert found["outputs"][0]["data"] == expected
    assert json.dumps(client.get("/v2/models/m").json())


def test_probabilities_of_inference_name_their_classes(client):
    learn(client, 0, 200)
    columns = {n: X[:5, j].tolist() for j, n in enumerate("abc")}
    inputs = [{"name": n, "shape": [5], "datatype": "FP64", "data": values} for n, values in columns.items()]
    for wanted in ({"name": "probability"}, {"name": "probability", "parameters": {"binary_data": True}}):
        answer = client.post("/v2/models/m/infer", json={"inputs": inputs, "outputs": [wanted]})
        head = answer.content[: int(answer.headers.get("inference-header-content-length", len(answer.content)))]
        output = json.loads(head)["outputs"][0]
        shown = client.post("/v1/models/m/predict", json={"rows": ROWS[:5], "proba": True}).json()["probabilities"]
        assert output["parameters"]["classes"] == list(shown[0])
        if "data" in output:
            assert output["data"] == [value for row in shown for value in row.values()]
    described = client.get("/v2/models/m").json()["outputs"][1]
    assert described["parameters"]["classes"] == list(shown[0])
    assert described["shape"] == [-1, len(shown[0])]


def test_a_challenger_without_settings_has_the_task_of_the_model(client):
    learn(client, 0, 50)
    assert client.post("/v1/models/m/challenger", json={"learner": "auto"}).status_code == 200
    learn(client, 50, 150)
    assert client.get("/v1/models/m/challenger").json()["challenger"]["metrics"]["scored"] == 100


def test_a_gzip_body_is_unpacked_within_the_limit_of_size(client):
    text = json.dumps({"rows": ROWS[:50], "labels": Y[:50]}).encode()
    path, headers = "/v1/models/m/learn", {"content-type": "application/json", "content-encoding": "gzip"}
    assert client.post(path, content=gzip.compress(text), headers=headers).json()["learned"] == 50
    refused = {
        gzip.compress(text)[:-9]: 400, gzip.compress(text) + b"more": 400, text: 400,
        gzip.compress(b" " * (served(client).settings.body_bytes + 1)): 413,
    }  # fmt: skip
    for body, status in refused.items():
        assert client.post(path, content=body, headers=headers).status_code == status
    assert client.post(path, content=text, headers={**headers, "content-encoding": "br"}).status_code == 415
    assert client.get("/v1/models/m").json()["n_seen"] == 50


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-1"])
def test_a_header_that_is_no_number_is_refused(client, length):
    learn(client, 0, 50)
    headers = {b"Inference-Header-Content-Length": length.encode("latin-1")}
    assert client.post("/v2/models/m/infer", content=b"{}", headers=headers).status_code == 400


def test_a_number_that_is_too_large_is_shown_with_its_column(client):
    client.post("/v1/models/n", json={"learner": "auto", "task": "classification"})
    rows = [ROWS[0], {**ROWS[1], "b": 1e308}]
    answer = client.post("/v1/models/n/learn", json={"rows": rows, "labels": Y[:2]})
    error = answer.json()["error"]
    assert (answer.status_code, error["row"], error["column"], error["value"]) == (422, 1, "b", 1e308)


@pytest.mark.parametrize("memory", ["-1 MB", "1e30 MB", 2**63])
def test_a_memory_out_of_range_is_refused_in_words(client, memory):
    answer = client.post("/v1/models/n", json={"learner": "auto", "task": "novelty", "memory": memory})
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert "AutoNovelty: memory" in message
    assert repr(memory) in message


def test_a_name_that_the_store_needs_is_refused(client):
    answer = client.post("/v1/models/gristmill-store", json={"learner": TEXT})
    assert (answer.status_code, "another name" in answer.json()["error"]["message"]) == (409, True)


def test_credentials_of_systemd_may_show_bits_of_the_group(tmp_path, monkeypatch):
    place = tmp_path / "tokens"
    place.write_text("write " + "w" * 16)
    place.chmod(0o440)
    with pytest.raises(ValueError, match="chmod 600"):
        Tokens.of_file(place)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert Tokens.of_file(place).write == (b"w" * 16,)
    place.chmod(0o444)
    with pytest.raises(ValueError, match="chmod 600"):
        Tokens.of_file(place)


def test_an_empty_label_of_csv_is_refused(client):
    headers = {"content-type": "text/csv"}
    answer = client.post("/v1/models/m/learn", content="a,b,c,label\n1,2,3,x\n1,2,3,\n", headers=headers)
    assert (answer.status_code, answer.json()["error"]["row"]) == (422, 1)
    assert served(client).position == 0


def test_a_missing_package_is_named_with_its_extra(tmp_path):
    code = "import sys; sys.modules['msgspec'] = None; import gristmill.serve"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stderr.strip().endswith("needs the package msgspec: pip install 'gristmill[serve]'")
