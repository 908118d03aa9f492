"""Hostile requests: those of schemathesis over /openapi.json, and bytes that no client of good will sends.

Every answer must be whole and of another status than 500, a refusal must be JSON, its memory must not grow, and
afterwards the model must still learn. Traffic goes to this machine only and is bounded in count.
"""

from __future__ import annotations

import random
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec

from .load import ARROW, JSON, Connection, learning, request
from .servers import Server, service

PATH = "/v1/models/m"
#: JSON of which some reader somewhere breaks
VALUES = [
    "1e400", "-1e400", "1e-400", "1" + "0" * 400, "-" + "9" * 5000, "0.1" + "7" * 2000, "NaN", "Infinity", "-0",
    "1E+2147483648", "null", "true", '""', '"\\ud800"', '"\\u0000"', '"' + "x" * 20_000 + '"', "[]", "{}",
    "[" * 500 + "]" * 500, '{"a":' * 300 + "1" + "}" * 300,
    '"2026-13-45T99:99:99Z"', '"1,5"', "[1,2]", "9007199254740993", "18446744073709551616",
]  # fmt: skip
NAMES = [
    "m",
    "..",
    "%2e%2e",
    "a%2fb",
    "%00",
    "m%0d%0aX: 1",
    "x" * 300,
    "%ff%fe",
    ".hidden",
    "m/",
    "con",
    "-",
    "'; drop table events; --",
]
KINDS = [
    JSON,
    "application/x-ndjson",
    "text/csv",
    ARROW,
    "application/xml",
    "",
    "application/json; charset=utf-16",
    "x" * 3000,
]


def requests(rng: random.Random) -> Iterator[bytes]:
    """Requests without end."""
    good = learning(f"{PATH}/learn", 3, 50)
    arrow = learning(f"{PATH}/learn", 3, 10, arrow=True)
    makers = (
        _values, _nested, lambda r: _flipped(r, good), lambda r: _flipped(r, arrow, ARROW), _names, _shapes,
        _heads, _queries,
    )  # fmt: skip
    while True:
        yield rng.choice(makers)(rng)


def _values(rng: random.Random) -> bytes:
    """Strange values in every place of a body."""
    a, b, c = (rng.choice(VALUES) for _ in range(3))
    bodies = {
        "learn": f'{{"rows": [{{"a": {a}, "b": {b}}}], "labels": [{c}]}}',
        "predict": f'{{"rows": [{{"a": {a}}}], "ids": [{b}], "interval": {c}, "proba": true, "explain": true}}',
        "labels": f'{{"labels": {{"e": {a}, "f": {b}}}}}',
        "rollback": f'{{"position": {a}}}',
        "challenger": f'{{"learner": {a}, "task": {b}, "memory": {c}}}',
        "snapshots": a,
    }
    what = rng.choice(list(bodies))
    return request(f"{PATH}/{what}", bodies[what].encode("utf-8", "surrogatepass"))


def _nested(rng: random.Random) -> bytes:
    depth = rng.choice([10, 1000, 100_000])
    opened = rng.choice(["[", '{"a":', '[{"rows":'])
    body = '{"rows": ' + opened * depth
    return request(f"{PATH}/{rng.choice(['learn', 'predict', 'labels'])}", body.encode())


def _flipped(rng: random.Random, found: list[bytes], kind: str = JSON) -> bytes:
    """A good body with changed bytes, cut off, or with another content type."""
    body = bytearray(rng.choice(found).partition(b"\r\n\r\n")[2])
    for _ in range(rng.randint(1, 8)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    if rng.random() < 0.3:
        del body[rng.randrange(len(body)) :]
    return request(
        f"{PATH}/{rng.choice(['learn', 'predict'])}", bytes(body), kind if rng.random() < 0.8 else rng.choice(KINDS)
    )


def _names(rng: random.Random) -> bytes:
    path = (
        f"/v{rng.choice('12')}/models/{rng.choice(NAMES)}{rng.choice(['', '/learn', '/infer', '/file', '/events/..'])}"
    )
    return request(path, b'{"learner": "auto", "task": "classification", "memory": "20 kB"}')


def _shapes(rng: random.Random) -> bytes:
    """Tensors whose shapes and bytes do not fit."""
    shape = [rng.choice([-1, 0, 1, 3, 2**31, 2**63]) for _ in range(rng.randint(0, 4))]
    tensor: dict[str, Any] = {
        "name": rng.choice(["a", "", "x" * 1000]),
        "shape": shape,
        "datatype": rng.choice(["FP64", "BYTES", "INT8", "FP8", ""]),
    }
    if rng.random() < 0.5:
        tensor["data"] = [rng.choice([1, "x", None, [1, [2]], 1e308])] * rng.randint(0, 4)
    else:
        tensor["parameters"] = {"binary_data_size": rng.choice([-1, 0, 7, 8, 2**40, "8", None])}
    head = msgspec.json.encode(
        {"inputs": [tensor] * rng.randint(0, 2), "outputs": [{"name": rng.choice(["prediction", "probability", "?"])}]}
    )
    size = rng.choice([len(head), 0, len(head) - 1, 10**9, -1])
    return request("/v2/models/m/infer", head + bytes(8), JSON, f"Inference-Header-Content-Length: {size}\r\n")


def _heads(rng: random.Random) -> bytes:
    line = rng.choice(
        [
            f"Idempotency-Key: {'k' * rng.choice([0, 1, 201, 5000])}", f"Last-Event-ID: {'9' * rng.choice([1, 15, 400])}",
            "Origin: http://elsewhere.example", "Sec-Fetch-Site: cross-site", "Host: elsewhere.example",
            "Authorization: Bearer \xff", f"X-Long: {'y' * 8000}", "Content-Encoding: gzip", "Expect: 100-continue",
        ]
    )  # fmt: skip
    return request(f"{PATH}/learn", b'{"rows": [[1, 2, 3]], "labels": [true]}', rng.choice(KINDS), line + "\r\n")


def _queries(rng: random.Random) -> bytes:
    query = rng.choice(
        [
            "target=",
            "target=%ff",
            "id=a",
            "interval=1e999&id=b",
            "&".join("a=1" for _ in range(50)),
            "proba=true&explain=true",
        ]
    )
    body = rng.choice(
        [
            b"a,b,label\n1,2,x\n",
            b'a,b\n"1,2\n',
            b"a,a\n1,2\n",
            b"\xef\xbb\xbfa\n1\n",
            b"a\n" + b"1\n" * 500,
            b"\0\0\0",
            b"",
        ]
    )
    return request(f"{PATH}/{rng.choice(['learn', 'predict'])}?{query}", body, "text/csv")


def _half(port: int, rng: random.Random, found: Iterator[bytes]) -> None:
    """A request that is broken off, or sent in small pieces."""
    data = next(found)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        if rng.random() < 0.5:
            line.sendall(data[: rng.randrange(1, len(data))])
            return
        for start in range(0, min(len(data), 2000), 97):
            line.sendall(data[start : start + 97])


def raw(server: Server, count: int, seed: int = 0) -> Counter[int]:
    """So many requests as bytes; statuses of the answers."""
    rng = random.Random(seed)
    found, statuses = requests(rng), Counter[int]()
    line = Connection(server.port)
    for number in range(count):
        if number % 10 == 9:
            _half(server.port, rng, found)
            statuses[0] += 1  # not answered, as it was not whole
            continue
        try:
            line.send(next(found))
            while (status := line.receive()) is None:
                pass
        except ConnectionError:
            line.socket.close()
            line = Connection(server.port)
            statuses[1] += 1  # the server hung up, as it may with what is no HTTP
            continue
        statuses[status] += 1
        if number % 500 == 0:
            line.socket.close()
            line = Connection(server.port)
    line.socket.close()
    return statuses


def by_schema(server: Server, count: int) -> tuple[Counter[int], list[str]]:
    """So many requests of schemathesis over the description of the service, and answers that break it."""
    import schemathesis

    url = f"http://127.0.0.1:{server.port}"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if not found.ok().path.endswith("/events")]
    statuses, broken = Counter[int](), list[str]()
    with httpx.Client(timeout=60, trust_env=False) as client:
        for operation in operations:
            _send_all(operation, url, -(-count // len(operations)), statuses, broken)
            _clear(client, url)
    return statuses, broken


def _send_all(operation: Any, url: str, count: int, statuses: Counter[int], broken: list[str]) -> None:
    """So many requests to one path."""
    from hypothesis import HealthCheck, Phase, given, settings

    described = set(operation.definition.raw["responses"]) | {"405"}

    def send(case: Any) -> None:
        case.path_parameters = {**(case.path_parameters or {}), **_mostly_known(case)}
        answer = case.call(base_url=url, timeout=60)
        statuses[answer.status_code] += 1
        if str(answer.status_code) not in described:
            broken.append(f"{operation.label}: {answer.status_code} {answer.text[:200]}")
        elif answer.status_code >= 400 and "message" not in answer.json()["error"]:
            broken.append(f"{operation.label}: a refusal without a message")

    calm = settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    calm(given(case=operation.as_strategy())(send))()


def _mostly_known(case: Any) -> dict[str, str]:
    """Half of the requests go to the model that is there."""
    name = (case.path_parameters or {}).get("name")
    return {"name": "m"} if name is not None and len(str(name)) % 2 else {}


def _clear(client: httpx.Client, url: str) -> None:
    """Remove models that hostile requests created; the model `m` is there again if it was removed."""
    for model in client.get(f"{url}/v1/models").json()["models"]:
        if model["name"] != "m":
            client.delete(f"{url}/v1/models/{model['name']}")
    client.post(f"{url}{PATH}", json={"learner": "passive_aggressive(Gaussian(0.5), size=50)"})


def run(count: int) -> Iterator[tuple[str, float, float, str, bool]]:
    """Lines of the table of floors."""
    with (
        tempfile.TemporaryDirectory() as folder, service(folder, "passive_aggressive(Gaussian(0.5), size=50)") as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60, trust_env=False) as client,
    ):  # fmt: skip
        _warm_up(client)
        schemed = max(count // 5, 100)
        total = raw(server, count // 10, seed=1)
        first, broken = by_schema(server, schemed // 4)
        total += first
        _clear(client, str(client.base_url).rstrip("/"))
        before = server.memory_bytes()
        second, more = by_schema(server, schemed - schemed // 4)
        total += second + raw(server, count - sum(total.values()) - sum(second.values()))
        _clear(client, str(client.base_url).rstrip("/"))
        after = server.memory_bytes()
        client.delete(PATH)
        _clear(client, str(client.base_url).rstrip("/"))
        good = client.post(f"{PATH}/learn", json={"rows": [{"a": 1.0, "b": 2.0}], "labels": [True]})
        known = ", ".join(f"{status}: {number}" for status, number in sorted(total.items()))
        yield f"hostile requests ({sum(total.values()):,}): answers 500", float(total[500] + total[502]), 0, known, True
        for text in [*broken, *more][:10]:
            print("  ", text)
        yield "answers that /openapi.json does not describe", float(len(broken) + len(more)), 0, f"of {schemed:,}", True
        yield (
            "memory afterwards, times that before", after / before, 1.2,
            f"{after / 1e6:.0f} beside {before / 1e6:.0f} MB", True,
        )  # fmt: skip
        yield "the model still learns", float(good.status_code == 200), 1, good.text[:100], False


def _warm_up(client: httpx.Client) -> None:
    rows = [{"a": float(place % 5), "b": float(place % 3)} for place in range(200)]
    client.post(f"{PATH}/learn", json={"rows": rows, "labels": [row["a"] > 2 for row in rows]})
