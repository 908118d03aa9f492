"""The paths of the service, as a Starlette application."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import hashlib
import mimetypes
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import access, inference
from .describe import comparison, curves, description, summary
from .meter import Collector, Meter
from .openapi import document
from .store import batch as batches
from .store.answers import Reply, as_json, in_kind
from .store.batch import Batch, Query
from .store.contender import Contender, Reader
from .store.errors import ServiceError, refused
from .store.learners import Spec, explanation
from .store.settings import Settings
from .store.store import Store
from .store.writer import Request as Work
from .store.writer import Writer

_spec = msgspec.json.Decoder(Spec)
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {"grafana.json", "page.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css"}
#: rows above which predictions leave the event loop
_MANY = 200
_WATCHERS = 64


class Position(msgspec.Struct, forbid_unknown_fields=True):
    position: int


_position = msgspec.json.Decoder(Position)


class Service:
    """What the handlers share."""

    def __init__(self, store: Store, tokens: access.Tokens | None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.store, self.tokens = store, tokens
        self.meters: collections.defaultdict[str, Meter] = collections.defaultdict(Meter)
        self.watchers = 0
        self.stopping = False  #: streams of server-sent events end
        self.registry = CollectorRegistry()
        self.registry.register(Collector(self))
        self.requests = Counter("gristmill_requests", "Requests by status", ["status"], registry=self.registry)
        self.seconds = Histogram(
            "gristmill_request_seconds", "Seconds of requests", ["what"], registry=self.registry,
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
        )  # fmt: skip
        self._statuses: dict[int, Any] = {}
        self.spans = {what: self.seconds.labels(what) for what in ("learn", "predict")}

    def count(self, status: int) -> None:
        found = self._statuses.get(status)
        if found is None:
            found = self._statuses[status] = self.requests.labels(str(status))
        found.inc()

    def measured(self, name: str, what: str, rows: int, start: float) -> None:
        seconds = time.perf_counter() - start
        self.meters[name].add(what, rows, seconds)
        self.spans[what].observe(seconds)

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            for name, writer in list(self.store.writers.items()):
                self.meters[name].tick(writer.served.champion.size())


def app(store: Any, settings: Settings | None = None, tokens: access.Tokens | None = None) -> Starlette:
    """The service as an ASGI application, for any server.

    Parameters
    ----------
    store : path or Store
        The folder of the models; it is created if it is not there. Only one process may use it at a time.
    settings : Settings, optional
        Limits, for a path.
    tokens : access.Tokens, optional
        Without tokens only requests to 127.0.0.1 and localhost are answered.

    Examples
    --------
    >>> import tempfile
    >>> from gristmill.serve import app
    >>> from starlette.testclient import TestClient
    >>> with tempfile.TemporaryDirectory() as folder, TestClient(app(folder)) as client:
    ...     client.post("/v1/models/doors", json={"learner": "auto", "task": "classification"}).status_code
    ...     body = {"rows": [{"a": 1.0}, {"a": 2.0}], "labels": ["open", "shut"]}
    ...     client.post("/v1/models/doors/learn", json=body).json()["position"]
    201
    2
    """
    opened = store if isinstance(store, Store) else Store(store, settings)
    service = Service(opened, tokens)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        opened.open()
        ticking = asyncio.create_task(service.tick())
        try:
            yield
        finally:
            service.stopping = True
            ticking.cancel()
            await asyncio.to_thread(opened.close)

    handlers = Handlers(service)
    application = Starlette(routes=handlers.routes(), lifespan=lifespan)
    application.state.service = service
    application.router.redirect_slashes = False
    application.add_exception_handler(404, _plain_error)
    application.add_exception_handler(405, _plain_error)
    return application


async def _plain_error(_: Request, error: Any) -> Response:
    text = {404: "there is no such path; /openapi.json lists them", 405: "this path does not take this method"}
    message = text.get(error.status_code, str(error.detail))
    return JSONResponse({"error": {"status": error.status_code, "message": message}}, error.status_code, error.headers)


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, reply.headers, batches.TYPES[reply.kind])


class Handlers:
    """One method a path."""

    def __init__(self, service: Service) -> None:
        self.service, self.store, self.settings = service, service.store, service.store.settings

    def routes(self) -> list[Route]:
        model, v2 = "/v1/models/{name}", "/v2/models/{name}"
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("POST", f"{model}/learn", self.learn), ("POST", f"{model}/predict", self.predict),
            ("POST", f"{model}/labels", self.labels), ("GET", "/v1/models", self.models),
            ("GET", model, self.model), ("POST", model, self.create), ("DELETE", model, self.delete),
            ("PUT", f"{model}/file", self.upload), ("GET", f"{model}/file", self.download),
            ("GET", f"{model}/curves", self.curves), ("GET", f"{model}/events", self.events),
            ("GET", f"{model}/snapshots", self.snapshots), ("POST", f"{model}/snapshots", self.snapshot),
            ("POST", f"{model}/rollback", self.rollback), ("GET", f"{model}/challenger", self.challenger),
            ("POST", f"{model}/challenger", self.challenge), ("DELETE", f"{model}/challenger", self.drop_challenger),
            ("POST", f"{model}/promote", self.promote), ("POST", f"{model}/challenger/promote", self.promote),
            ("GET", "/metrics", self.metrics), ("GET", "/healthz", self.health), ("GET", "/readyz", self.ready),
            ("GET", "/openapi.json", self.openapi), ("GET", "/", self.page), ("GET", "/page/{file}", self.page_file),
            ("GET", "/v2", self.server), ("GET", "/v2/health/live", self.health), ("GET", "/v2/health/ready", self.ready),
            ("GET", v2, self.described), ("GET", f"{v2}/ready", self.model_ready), ("POST", f"{v2}/infer", self.infer),
        ]  # fmt: skip
        return [Route(path, self._guarded(call), methods=[method]) for method, path, call in table]

    def _guarded(self, call: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Every request: access first; every refusal is JSON."""

        async def handle(request: Request) -> Response:
            try:
                request.state.writes = access.check(
                    self.service.tokens, request.method, request.url.path, request.headers
                )
                response = await call(request)
            except ServiceError as error:
                headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
                if error.status == 401:
                    headers["www-authenticate"] = "Bearer"
                response = Response(msgspec.json.encode(error.body()), error.status, headers, "application/json")
            except ClientDisconnect:
                response = Response(status_code=400)
            except MemoryError:
                response = JSONResponse({"error": {"status": 503, "message": "not enough memory"}}, 503)
            response.headers["x-content-type-options"] = "nosniff"
            self.service.count(response.status_code)
            return response

        return handle

    # ---- bodies ---------------------------------------------------------------------------------------------

    async def _body(self, request: Request) -> bytes:
        """The body, within its limits of size and time."""
        most = self.settings.body_bytes
        length = request.headers.get("content-length")
        too_large = ServiceError(f"the body is larger than {most} bytes; send fewer rows", 413)
        if length is not None and length.isdigit() and int(length) > most:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.settings.timeout):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
        except TimeoutError:
            raise ServiceError(f"the body did not arrive within {self.settings.timeout:g} s", 408) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    @staticmethod
    def _kind(request: Request) -> str:
        text = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        kind = batches.KINDS.get(text)
        if kind is None:
            raise ServiceError(f"content-type must be one of {', '.join(batches.KINDS)}, got {text[:100]!r}", 415)
        return kind

    async def _json(self, request: Request, decoder: Any) -> Any:
        if self._kind(request) != "json":
            raise ServiceError("this path takes application/json", 415)
        return batches.decode(decoder, await self._body(request))

    def _limited(self, batch: Batch) -> Batch:
        if batch.count > self.settings.rows:
            raise ServiceError(f"{batch.count} rows came, at most {self.settings.rows} are taken; send fewer", 413)
        return batch

    def _writer(self, request: Request) -> Writer:
        return self.store.get(request.path_params["name"])

    def _key(self, request: Request, what: str, body: bytes) -> dict[str, Any]:
        key = request.headers.get("idempotency-key")
        if key is None:
            return {}
        if not 0 < len(key) <= 200:
            raise ServiceError(f"an idempotency key has 1 to 200 characters, got {len(key)}", 400)
        head = f"{what} {request.url.query} {request.headers.get('content-type')}\0".encode()
        return {"key": key, "digest": hashlib.sha256(head + body).digest()}

    async def _done(self, writer: Writer, work: Work) -> Reply:
        future = writer.put(work)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.settings.timeout)
        except TimeoutError:
            raise ServiceError(
                "no answer in time; the request may still be done: send it again with the same idempotency key", 503, 5
            ) from None

    # ---- learning and predicting ----------------------------------------------------------------------------

    async def learn(self, request: Request) -> Response:
        start = time.perf_counter()
        writer, kind = self._writer(request), self._kind(request)
        body = await self._body(request)
        options = {} if kind == "json" else {"target": request.query_params.get("target", "label")}
        batch = self._limited(batches.read(kind, options, body))
        work = Work("learn", batch, kind, batches.options_text(options), body, **self._key(request, "learn", body))
        reply = await self._done(writer, work)
        self.service.measured(writer.served.name, "learn", batch.count, start)
        return _response(reply)

    async def predict(self, request: Request) -> Response:
        start = time.perf_counter()
        writer, kind = self._writer(request), self._kind(request)
        body = await self._body(request)
        if kind == "json":
            batch, query = batches.read_query(body)
        else:
            asked = request.query_params
            options = {"target": asked.get("target"), "id": asked.get("id")}
            batch = batches.read(kind, {name: value for name, value in options.items() if value}, body)
            query = Query([], proba=asked.get("proba") == "true", explain=asked.get("explain") == "true")
            query.interval = _share(asked.get("interval"))
        if batch.ids is not None and not request.state.writes:
            raise ServiceError(f"{access.READS_ONLY}, and ids keep events on disk", 403)
        key = {} if batch.ids is None else self._key(request, "predict", body)
        reply = await self._predicted(writer, kind, self._limited(batch), query, key)
        self.service.measured(writer.served.name, "predict", batch.count, start)
        return _response(reply)

    async def _predicted(self, writer: Writer, kind: str, batch: Batch, query: Query, key: dict[str, Any]) -> Reply:
        if query.explain and batch.count > 100:
            raise ServiceError(f"explain is for at most 100 rows, got {batch.count}")
        if query.interval is not None and not 0 < query.interval < 1:
            raise ServiceError(f"interval must be a number above 0 and below 1, got {query.interval}")
        champion = writer.served.champion
        if batch.ids is None:
            position, columns = await self._asked(champion, batch, query)
            return in_kind(kind, columns, {"position": position})
        if not champion.is_fitted:  # the first labels may come late, too
            position, columns = writer.served.position, {"predictions": [None] * batch.count}
        else:
            position, columns = await self._asked(champion, batch, query)
        said = {str(champion.id): columns["predictions"]}
        challenger = writer.served.challenger
        if challenger is not None and challenger.role == "challenger" and challenger.is_fitted:
            said[str(challenger.id)] = (await self._asked(challenger, batch, Query([])))[1]["predictions"]
        encode = msgspec.json.encode
        try:
            events = [
                (id_, encode(batch.row(place)), encode({who: values[place] for who, values in said.items()}))
                for place, id_ in enumerate(batch.ids)
            ]
        except (TypeError, ValueError) as error:
            raise ServiceError(f"these rows cannot be kept for a label: {error}") from None
        size = b"".join(event[1] for event in events)
        reply = in_kind(kind, columns, {"position": position})
        return await self._done(writer, Work("keep", body=size, events=events, answer=reply, **key))

    async def _asked(self, contender: Contender, batch: Batch, query: Query) -> tuple[int, dict[str, Any]]:
        """What a learner predicts, without waiting for what it learns."""
        if batch.count > _MANY or query.explain:
            return await self._with_reader(contender, _ask, batch, query)
        reader = contender.reader()
        if reader is None:
            return await self._with_reader(contender, _ask, batch, query)
        return _ask(reader, batch, query)

    async def _with_reader(self, contender: Contender, call: Callable[..., Any], *given: Any) -> Any:
        """Let another thread ask a learner. That thread takes and releases the lock, so a cancelled request leaves none."""
        return await asyncio.to_thread(_read_by, contender, self.settings.timeout, call, *given)

    async def labels(self, request: Request) -> Response:
        start = time.perf_counter()
        writer = self._writer(request)
        if self._kind(request) != "json":
            raise ServiceError("labels are sent as application/json", 415)
        body = await self._body(request)
        labels = batches.read_labels(body)
        if len(labels) > self.settings.rows:
            raise ServiceError(f"{len(labels)} labels came, at most {self.settings.rows} are taken", 413)
        work = Work("labels", body=body, events=labels, **self._key(request, "labels", body))
        reply = await self._done(writer, work)
        self.service.measured(writer.served.name, "learn", len(labels), start)
        return _response(reply)

    # ---- models ---------------------------------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        return _response(as_json({"models": [summary(self.store.writers[name]) for name in self.store.names()]}))

    async def model(self, request: Request) -> Response:
        return _response(as_json(description(self._writer(request))))

    async def create(self, request: Request) -> Response:
        spec = await self._json(request, _spec)
        writer = await asyncio.to_thread(self.store.create, request.path_params["name"], spec)
        return _response(as_json(description(writer), 201))

    async def upload(self, request: Request) -> Response:
        data = await self._body(request)
        writer = await asyncio.to_thread(self.store.create, request.path_params["name"], None, data)
        return _response(as_json(description(writer), 201))

    async def download(self, request: Request) -> Response:
        contender = self._writer(request).served.champion
        if not contender.is_fitted:
            raise ServiceError("the model has learned nothing yet", 409)
        position, data = await self._with_reader(contender, _bytes)
        return Response(data, 200, {"gristmill-position": str(position)}, "application/octet-stream")

    async def delete(self, request: Request) -> Response:
        name = self._writer(request).served.name
        await asyncio.to_thread(self.store.delete, name)
        self.service.meters.pop(name, None)
        return _response(as_json({"deleted": name}))

    async def curves(self, request: Request) -> Response:
        writer = self._writer(request)
        return _response(as_json(curves(writer, self.service.meters[writer.served.name])))

    async def snapshots(self, request: Request) -> Response:
        served = self._writer(request).served
        return _response(as_json({"snapshots": served.snapshots, "oldest": served.oldest, "position": served.position}))

    async def _control(
        self, request: Request, what: str, act: Callable[[], dict[str, Any]], body: bytes = b""
    ) -> Response:
        work = Work("control", act=act, **self._key(request, what, body))
        return _response(await self._done(self._writer(request), work))

    async def snapshot(self, request: Request) -> Response:
        return await self._control(request, "snapshot", self._writer(request).served.snapshot)

    async def rollback(self, request: Request) -> Response:
        served, asked = self._writer(request).served, await self._json(request, _position)
        body = str(asked.position).encode()
        return await self._control(request, "rollback", lambda: served.rollback(asked.position), body)

    async def challenger(self, request: Request) -> Response:
        return _response(as_json(comparison(self._writer(request))))

    async def challenge(self, request: Request) -> Response:
        served, spec = self._writer(request).served, await self._json(request, _spec)
        return await self._control(request, "challenge", lambda: served.challenge(spec), msgspec.json.encode(spec))

    async def drop_challenger(self, request: Request) -> Response:
        return await self._control(request, "drop", self._writer(request).served.drop_challenger)

    async def promote(self, request: Request) -> Response:
        return await self._control(request, "promote", self._writer(request).served.promote)

    async def events(self, request: Request) -> Response:
        writer = self._writer(request)
        if self.service.watchers >= _WATCHERS:
            raise ServiceError(f"{_WATCHERS} clients watch already", 429, 10)
        seen = request.headers.get("last-event-id", "")
        last = int(seen) if seen.isdigit() and len(seen) < 16 else 0
        return StreamingResponse(
            self._stream(writer, last), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _stream(self, writer: Writer, last: int) -> AsyncIterator[bytes]:
        self.service.watchers += 1
        name = writer.served.name
        try:
            while self.store.writers.get(name) is writer and not writer.ending and not self.service.stopping:
                for number, what, details in list(writer.served.notices):
                    if number > last:
                        last = number
                        yield f"id: {number}\nevent: {what}\ndata: ".encode() + msgspec.json.encode(details) + b"\n\n"
                meter = self.service.meters[name]
                now = {**summary(writer), "now": meter.points[-1] if meter.points else None}
                yield b"event: metrics\ndata: " + msgspec.json.encode(now) + b"\n\n"
                await asyncio.sleep(1.0)
        finally:
            self.service.watchers -= 1

    # ---- the service itself ---------------------------------------------------------------------------------

    async def metrics(self, request: Request) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return Response(generate_latest(self.service.registry), 200, {"content-type": CONTENT_TYPE_LATEST})

    async def health(self, request: Request) -> Response:
        return _response(as_json({"status": "alive"}))

    async def ready(self, request: Request) -> Response:
        failed = {name: writer.failed for name, writer in self.store.writers.items() if writer.failed is not None}
        return _response(
            as_json({"status": "failed", "models": failed}, 503) if failed else as_json({"status": "ready"})
        )

    async def openapi(self, request: Request) -> Response:
        return _response(as_json(document()))

    async def page(self, request: Request) -> Response:
        return self._file("index.html")

    async def page_file(self, request: Request) -> Response:
        if request.path_params["file"] not in _PAGE:
            raise ServiceError("there is no such file", 404)
        return self._file(request.path_params["file"])

    @staticmethod
    def _file(name: str) -> Response:
        data = resources.files(__package__).joinpath("page", name).read_bytes()
        headers = {"content-security-policy": _CSP, "referrer-policy": "no-referrer", "cache-control": "no-cache"}
        return Response(data, 200, headers, mimetypes.guess_type(name)[0])

    # ---- Open Inference Protocol ----------------------------------------------------------------------------

    async def server(self, request: Request) -> Response:
        from .._version import __version__

        return _response(as_json({"name": "gristmill", "version": __version__, "extensions": ["binary_tensor_data"]}))

    async def described(self, request: Request) -> Response:
        served = self._writer(request).served
        return _response(as_json(inference.metadata(served.name, served.task)))

    async def model_ready(self, request: Request) -> Response:
        writer = self._writer(request)
        fitted = writer.failed is None and writer.served.champion.is_fitted
        return _response(as_json({"ready": fitted}, 200 if fitted else 503))

    async def infer(self, request: Request) -> Response:
        start = time.perf_counter()
        writer = self._writer(request)
        body = await self._body(request)
        batch, asked = inference.read(body, request.headers.get("inference-header-content-length"))
        wants = any(one.name == "probability" for one in asked.outputs or ())
        _, columns = await self._asked(writer.served.champion, self._limited(batch), Query([], proba=wants))
        chances = columns.get("probabilities")
        if chances is not None:
            chances = [list(one.values()) for one in chances]
        content, headers = inference.answer(writer.served.name, asked, columns["predictions"], chances)
        self.service.measured(writer.served.name, "predict", batch.count, start)
        return Response(content, 200, headers)


def _share(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise ServiceError(f"interval must be a number above 0 and below 1, got {text[:50]!r}") from None  # type: ignore[index]


def _read_by(contender: Contender, seconds: float, call: Callable[..., Any], *given: Any) -> Any:
    """Call with a reader, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while (reader := contender.reader()) is None:
        if time.monotonic() > deadline:
            raise ServiceError("the model is busy; try again", 503, 1)
        time.sleep(0.002)
    return call(reader, *given)


def _bytes(reader: Reader) -> tuple[int, bytes]:
    with reader as model:
        return reader.position, bytes(model.to_bytes())


def _ask(reader: Reader, batch: Batch, query: Query) -> tuple[int, dict[str, Any]]:
    """What a model predicts of rows, and how sure it is."""
    with reader as model:
        if not model.__sklearn_is_fitted__():
            raise ServiceError("the model has learned nothing yet; send events to learn first", 409)
        try:
            columns: dict[str, Any] = {"predictions": model.predict(batch.X).tolist()}
            if query.proba:
                columns["probabilities"] = _chances(model, batch)
            if query.interval is not None:
                columns["intervals"] = _has(model, "predict_interval")(batch.X, query.interval).tolist()
            if query.explain:
                columns["explanations"] = [explanation(model, batch.row(place)) for place in range(batch.count)]
        except ServiceError:
            raise
        except Exception as error:
            raise refused(error, batch) from error
        return reader.position, columns


def _has(model: Any, method: str) -> Any:
    found = getattr(model, method, None)
    if found is None:
        raise ServiceError(f"{type(getattr(model, 'model', model)).__name__} has no {method}")
    return found


def _chances(model: Any, batch: Batch) -> list[dict[str, float]]:
    chances = _has(model, "predict_proba")(batch.X).tolist()
    names = [str(name) for name in model.classes_.tolist()]
    return [dict(zip(names, row, strict=True)) for row in chances]
