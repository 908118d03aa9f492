"""What is asked most: learning, predicting and late labels."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from .._common.types import Json
from . import access, inference
from .call import Call
from .store import batch as batches
from .store.answers import Reply, in_kind
from .store.batch import Batch, Query
from .store.contender import Contender, Reader
from .store.errors import ServiceError, refused
from .store.learners import explanation
from .store.writer import Request as Work
from .store.writer import Writer

#: rows above which predictions leave the event loop, and bytes above which bodies are read beside it
_MANY, _LARGE = 200, 200_000


class Asking:
    """Handlers of events."""

    def __init__(self, service: Any) -> None:
        self.service, self.store, self.settings = service, service.store, service.store.settings

    # ---- learning -------------------------------------------------------------------------------------------

    async def learn(self, call: Call) -> Reply:
        start = time.perf_counter()
        writer, kind = self.store.get(call.name), call.kind
        body = await call.body()
        options = {} if kind == "json" else {"target": call.query.get("target", "label")}
        batch = self._limited(await _read(batches.read, kind, options, body))
        if (
            kind == "csv" and writer.served.task != "novelty" and "" in (batch.labels or ())
        ):  # not in `read`: what a journal holds keeps its meaning
            row = (batch.labels or []).index("")
            raise ServiceError(f"row {row}: its label is empty", row=row, value="")
        work = Work("learn", batch, kind, batches.options_text(options), body, **key_of(call, "learn", body))
        reply = await self.done(writer, work)
        self.service.measured(writer.served.name, "learn", batch.count, start)
        return reply

    async def labels(self, call: Call) -> Reply:
        start = time.perf_counter()
        writer = self.store.get(call.name)
        if call.kind != "json":
            raise ServiceError("labels are sent as application/json", 415)
        body = await call.body()
        labels = await _read(batches.read_labels, body)
        if len(labels) > self.settings.rows:
            raise ServiceError(f"{len(labels)} labels came, at most {self.settings.rows} are taken", 413)
        work = Work("labels", body=body, events=labels, **key_of(call, "labels", body))
        reply = await self.done(writer, work)
        self.service.measured(writer.served.name, "learn", len(labels), start)
        return reply

    def _limited(self, batch: Batch) -> Batch:
        if batch.count > self.settings.rows:
            raise ServiceError(f"{batch.count} rows came, at most {self.settings.rows} are taken; send fewer", 413)
        return batch

    async def done(self, writer: Writer, work: Work) -> Reply:
        """What the writer answers."""
        deadlines = self.service.deadlines
        future = writer.put(work, deadlines.loop)
        deadlines.add(future)
        try:
            return await future
        except asyncio.CancelledError:
            if not deadlines.remove(future):
                raise
            raise ServiceError(
                "no answer in time; the request may still be done: send it again with the same idempotency key", 503, 5
            ) from None
        finally:
            deadlines.remove(future)

    # ---- predicting -----------------------------------------------------------------------------------------

    async def predict(self, call: Call) -> Reply:
        start = time.perf_counter()
        writer, kind = self.store.get(call.name), call.kind
        body = await call.body()
        if kind == "json":
            batch, query = await _read(batches.read_query, body)
        else:
            asked = call.query
            options = {"target": asked.get("target"), "id": asked.get("id")}
            batch = await _read(batches.read, kind, {name: value for name, value in options.items() if value}, body)
            query = Query([], proba=asked.get("proba") == "true", explain=asked.get("explain") == "true")
            query.interval = _share(asked.get("interval"))
        if batch.ids is not None and not call.writes:
            raise ServiceError(f"{access.READS_ONLY}, and ids keep events on disk", 403)
        key = {} if batch.ids is None else key_of(call, "predict", body)
        reply = await self._predicted(writer, kind, self._limited(batch), query, key)
        self.service.measured(writer.served.name, "predict", batch.count, start)
        return reply

    async def _predicted(self, writer: Writer, kind: str, batch: Batch, query: Query, key: Json) -> Reply:
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
        answered = {str(champion.id): columns["predictions"]}
        challenger = writer.served.challenger
        if challenger is not None and challenger.role == "challenger" and challenger.is_fitted:
            answered[str(challenger.id)] = (await self._asked(challenger, batch, Query([])))[1]["predictions"]
        encode = msgspec.json.encode
        try:
            events = [
                (id_, encode(batch.row(place)), encode({who: values[place] for who, values in answered.items()}))
                for place, id_ in enumerate(batch.ids)
            ]
        except (TypeError, ValueError) as error:
            raise ServiceError(f"these rows cannot be kept for a label: {error}") from None
        size = b"".join(event[1] for event in events)
        reply = in_kind(kind, columns, {"position": position})
        return await self.done(writer, Work("keep", body=size, events=events, answer=reply, **key))

    async def _asked(self, contender: Contender, batch: Batch, query: Query) -> tuple[int, Json]:
        """What a learner predicts, without waiting for what it learns."""
        if batch.count > _MANY or query.explain:
            return await self.with_reader(contender, _ask, batch, query)
        reader = contender.reader()
        if reader is None:
            return await self.with_reader(contender, _ask, batch, query)
        return _ask(reader, batch, query)

    async def with_reader(
        self, contender: Contender, call: Callable[..., Any], *given: Any, seconds: float | None = None
    ) -> Any:
        """Let another thread ask a learner. That thread takes and releases the lock, so a cancelled request leaves none."""
        patience = self.settings.timeout if seconds is None else seconds
        return await asyncio.to_thread(_read_by, contender, patience, call, *given)

    async def infer(self, call: Call) -> Response:
        """Predict by the Open Inference Protocol."""
        start = time.perf_counter()
        writer = self.store.get(call.name)
        body = await call.body()
        batch, asked = inference.read(body, call.header(b"inference-header-content-length"))
        wants = any(one.name == "probability" for one in asked.outputs or ())
        _, columns = await self._asked(writer.served.champion, self._limited(batch), Query([], proba=wants))
        chances = columns.get("probabilities")
        classes = None
        if chances is not None:
            classes = list(chances[0])
            chances = [list(one.values()) for one in chances]
        content, headers = inference.answer(writer.served.name, asked, columns["predictions"], chances, classes)
        self.service.measured(writer.served.name, "predict", batch.count, start)
        return Response(content, 200, headers)


def key_of(call: Call, what: str, body: bytes) -> Json:
    """The idempotency key of a request and a digest of what it asks."""
    key = call.header(b"idempotency-key")
    if key is None:
        return {}
    if not 0 < len(key) <= 200:
        raise ServiceError(f"an idempotency key has 1 to 200 characters, got {len(key)}", 400)
    head = f"{what} {call.scope['query_string']!r} {call.header(b'content-type')}\0".encode()
    return {"key": key, "digest": hashlib.sha256(head + body).digest()}


async def _read(read: Callable[..., Any], *given: Any) -> Any:
    """Read a body, a large one in another thread."""
    if len(given[-1]) > _LARGE:
        return await asyncio.to_thread(read, *given)
    return read(*given)


def _share(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise ServiceError(f"interval must be a number above 0 and below 1, got {text[:50]!r}") from None  # type: ignore[index]


def _read_by(contender: Contender, seconds: float, call: Callable[..., Any], *given: object) -> Any:
    """Call with a reader, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while (reader := contender.reader()) is None:
        if time.monotonic() > deadline:
            raise ServiceError("the model is busy; try again", 503, 1)
        time.sleep(0.002)
    return call(reader, *given)


def _ask(reader: Reader, batch: Batch, query: Query) -> tuple[int, Json]:
    """What a model predicts of rows, and how sure it is."""
    with reader as model:
        if not model.__sklearn_is_fitted__():
            raise ServiceError("the model has learned nothing yet; send events to learn first", 409)
        try:
            columns: Json = {"predictions": model.predict(batch.X).tolist()}
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
