"""The paths of the service, as a Starlette application."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .._common.types import Json
from . import access, inference
from .asking import Asking, key_of
from .call import Call, Endpoint
from .describe import comparison, curves, description, state, summary
from .openapi import document
from .service import Service
from .store.answers import Reply, as_json
from .store.contender import Reader
from .store.errors import ServiceError
from .store.journal import Answer
from .store.learners import Spec
from .store.served import Served
from .store.settings import Settings
from .store.store import Store
from .store.writer import Request as Work
from .store.writer import Writer

Handler = Callable[[Call], Awaitable[Reply | Response]]
_spec = msgspec.json.Decoder(Spec)
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {"grafana.json", "page.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css"}
_WATCHERS = 64


class Position(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON body of `rollback`."""

    position: int


_position = msgspec.json.Decoder(Position)


class Application(Starlette):
    """Starlette, with a short way to the handlers of events.

    A third of the time of a small request is Starlette's own (its stack of middleware, then a regular expression for each
    route), so `POST /v1/models/{name}/learn`, `predict` and `labels` are found by their parts.
    """

    short: dict[str, Endpoint]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            parts = scope["path"].split("/")
            if len(parts) == 5 and parts[2] == "models" and parts[1] == "v1" and parts[4] in self.short:
                scope["path_params"] = {"name": parts[3]}
                await self.short[parts[4]](scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def app(store: object, settings: Settings | None = None, tokens: access.Tokens | None = None) -> Starlette:
    """The service as an ASGI application, for any server.

    Experimental: it may change in any minor version.

    Parameters
    ----------
    store : path or Store
        The folder of the models; it is created if it does not exist. Only one process may use it at a time.
    settings : Settings, optional
        Limits, for a path.
    tokens : access.Tokens, optional
        Without tokens only requests to 127.0.0.1 and localhost are accepted.

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
        service.begin()
        try:
            yield
        finally:
            await service.end()

    handlers = Handlers(service)
    application = Application(routes=handlers.routes(), lifespan=lifespan)
    asking = handlers.asking
    calls: dict[str, Handler] = {"learn": asking.learn, "predict": asking.predict, "labels": asking.labels}
    application.short = {name: Endpoint(call, service) for name, call in calls.items()}
    application.state.service = service
    application.router.redirect_slashes = False
    application.add_exception_handler(404, _plain_error)
    application.add_exception_handler(405, _plain_error)
    return application


async def _plain_error(_: Request, error: Any) -> Response:
    text = {404: "there is no such path; /openapi.json lists them", 405: "this path does not take this method"}
    message = text.get(error.status_code, str(error.detail))
    return JSONResponse({"error": {"status": error.status_code, "message": message}}, error.status_code, error.headers)


class Handlers:
    """One method a path, but for those of `asking.py`."""

    def __init__(self, service: Service) -> None:
        self.service, self.store, self.settings = service, service.store, service.store.settings
        self.asking = Asking(service)

    def routes(self) -> list[Route]:
        model, v2, asking = "/v1/models/{name}", "/v2/models/{name}", self.asking
        table: list[tuple[str, str, Handler]] = [
            ("POST", f"{model}/learn", asking.learn), ("POST", f"{model}/predict", asking.predict),
            ("POST", f"{model}/labels", asking.labels), ("GET", "/v1/models", self.models),
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
            ("GET", v2, self.described), ("GET", f"{v2}/ready", self.model_ready), ("POST", f"{v2}/infer", asking.infer),
        ]  # fmt: skip
        return [Route(path, Endpoint(call, self.service), methods=[method]) for method, path, call in table]

    def _writer(self, call: Call) -> Writer:
        return self.store.get(call.name)

    # ---- models ---------------------------------------------------------------------------------------------

    async def models(self, call: Call) -> Reply:
        writers = [self.store.writers[name] for name in self.store.names()]
        return as_json({"models": [summary(one.served, one.depth, one.failed) for one in writers]})

    async def model(self, call: Call) -> Reply:
        writer = self._writer(call)
        await self._look(writer)
        return as_json(description(writer.served, writer.depth, writer.failed))

    async def _look(self, writer: Writer) -> None:
        """Renew what is known of the champion; while it is busy and has no copy, what was known last remains."""
        champion = writer.served.champion
        if champion.is_fitted:
            with contextlib.suppress(ServiceError):
                champion.state = await self.asking.with_reader(champion, state, seconds=1.0)

    async def create(self, call: Call) -> Reply:
        spec = await call.json(_spec)
        return await self._created(call, msgspec.json.encode(spec), spec, None)

    async def upload(self, call: Call) -> Reply:
        data = await call.body()
        return await self._created(call, data, None, data)

    async def _created(self, call: Call, body: bytes, spec: Spec | None, data: bytes | None) -> Reply:
        """A new model, whose journal begins with the answer to the idempotency key."""
        key = key_of(call, "create", body)
        made: list[Reply] = []

        def began(served: Served) -> None:
            reader = served.champion.reader() if served.champion.is_fitted else None
            if reader is not None:
                served.champion.state = state(reader)
            made.append(as_json(description(served), 201))
            if key:
                with served.journal.transaction():
                    served.journal.remember(Answer.of(key["key"], key["digest"], made[0]), time.time())

        try:
            await asyncio.to_thread(self.store.create, call.name, spec, data, began)
        except ServiceError as error:
            if error.status != 409 or not key or call.name not in self.store.writers:
                raise
            return await self.asking.done(self._writer(call), Work("control", act=_raises(error), **key))
        return made[0]

    async def download(self, call: Call) -> Response:
        contender = self._writer(call).served.champion
        if not contender.is_fitted:
            raise ServiceError("the model has learned nothing yet", 409)
        position, data = await self.asking.with_reader(contender, _bytes)
        return Response(data, 200, {"gristmill-position": str(position)}, "application/octet-stream")

    async def delete(self, call: Call) -> Reply:
        name = self._writer(call).served.name
        await asyncio.to_thread(self.store.delete, name)
        self.service.meters.pop(name, None)
        return as_json({"deleted": name})

    async def curves(self, call: Call) -> Reply:
        writer = self._writer(call)
        try:
            after = float(call.query.get("after", "0"))
        except ValueError:
            raise ServiceError("after must be a number: seconds since 1970", 400) from None
        await self._look(writer)
        return as_json(curves(writer, self.service.meters[writer.served.name], after))

    async def snapshots(self, call: Call) -> Reply:
        served = self._writer(call).served
        return as_json({"snapshots": served.snapshots, "oldest": served.oldest, "position": served.position})

    async def _control(self, call: Call, what: str, act: Callable[[], Json], body: bytes = b"") -> Reply:
        work = Work("control", act=act, **key_of(call, what, body))
        return await self.asking.done(self._writer(call), work)

    async def snapshot(self, call: Call) -> Reply:
        return await self._control(call, "snapshot", self._writer(call).served.snapshot)

    async def rollback(self, call: Call) -> Reply:
        served, asked = self._writer(call).served, await call.json(_position)
        body = str(asked.position).encode()
        return await self._control(call, "rollback", lambda: served.rollback(asked.position), body)

    async def challenger(self, call: Call) -> Reply:
        return as_json(comparison(self._writer(call)))

    async def challenge(self, call: Call) -> Reply:
        served, spec = self._writer(call).served, await call.json(_spec)
        return await self._control(call, "challenge", lambda: served.challenge(spec), msgspec.json.encode(spec))

    async def drop_challenger(self, call: Call) -> Reply:
        return await self._control(call, "drop", self._writer(call).served.drop_challenger)

    async def promote(self, call: Call) -> Reply:
        return await self._control(call, "promote", self._writer(call).served.promote)

    async def events(self, call: Call) -> Response:
        writer = self._writer(call)
        if self.service.watchers >= _WATCHERS:
            raise ServiceError(f"{_WATCHERS} clients watch already", 429, 10)
        seen = call.header(b"last-event-id") or ""
        last = int(seen) if seen.isdecimal() and len(seen) < 16 else 0
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
                now = {**summary(writer.served, writer.depth, writer.failed), "now": self.service.summary(name)}
                yield b"event: metrics\ndata: " + msgspec.json.encode(now) + b"\n\n"
                await asyncio.sleep(1.0)
        finally:
            self.service.watchers -= 1

    # ---- the service itself ---------------------------------------------------------------------------------

    async def metrics(self, call: Call) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return Response(generate_latest(self.service.registry), 200, {"content-type": CONTENT_TYPE_LATEST})

    async def health(self, call: Call) -> Reply:
        return as_json({"status": "alive"})

    async def ready(self, call: Call) -> Reply:
        failed = {name: writer.failed for name, writer in self.store.writers.items() if writer.failed is not None}
        if failed:
            raise ServiceError(f"models that are not available: {', '.join(sorted(failed))}", 503, models=failed)
        return as_json({"status": "ready"})

    async def openapi(self, call: Call) -> Reply:
        return as_json(document())

    async def page(self, call: Call) -> Response:
        return self._file("index.html")

    async def page_file(self, call: Call) -> Response:
        name = call.scope["path_params"]["file"]
        if name not in _PAGE:
            raise ServiceError("there is no such file", 404)
        return self._file(name)

    @staticmethod
    def _file(name: str) -> Response:
        data = resources.files(__package__).joinpath("page", name).read_bytes()
        headers = {"content-security-policy": _CSP, "referrer-policy": "no-referrer", "cache-control": "no-cache"}
        return Response(data, 200, headers, mimetypes.guess_type(name)[0])

    # ---- Open Inference Protocol ----------------------------------------------------------------------------

    async def server(self, call: Call) -> Reply:
        from .._version import __version__

        return as_json({"name": "gristmill", "version": __version__, "extensions": ["binary_tensor_data"]})

    async def described(self, call: Call) -> Reply:
        served = self._writer(call).served
        return as_json(inference.metadata(served.name, served.task, served.champion.classes()))

    async def model_ready(self, call: Call) -> Reply:
        writer = self._writer(call)
        if writer.failed is not None or not writer.served.champion.is_fitted:
            raise ServiceError(writer.failed or "the model has learned nothing yet", 503)
        return as_json({"ready": True})


def _raises(error: ServiceError) -> Callable[[], Json]:
    """An act that is refused."""

    def act() -> Json:
        raise error

    return act


def _bytes(reader: Reader) -> tuple[int, bytes]:
    with reader as model:
        return reader.position, bytes(model.to_bytes())
