"""One request: its headers, its body within limits, and its answer, with nothing between them and the server."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from . import access
from .store import batch as batches
from .store.answers import Reply
from .store.errors import ServiceError
from .store.settings import Settings

log = logging.getLogger("gristmill.serve")
_TYPES = {kind: text.encode() for kind, text in batches.TYPES.items()}
_KINDS = {text.encode(): kind for text, kind in batches.KINDS.items()}
_SNIFF = (b"x-content-type-options", b"nosniff")


class Gone(Exception):
    """The client has left before its request was whole."""


class Deadlines:
    """Ends what takes too long. All deadlines are looked at together, which is cheaper than a timer for each.

    Parameters
    ----------
    seconds : float
        For each wait.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._open: dict[Any, float] = {}  # in the order of their deadlines, as all have one length
        self._late: set[Any] = set()
        self.loop: asyncio.AbstractEventLoop | None = (
            None  #: of the service; to ask for the running one costs a system call
        )

    def task(self) -> asyncio.Task[Any]:
        """The task that runs."""
        found = asyncio.current_task(self.loop)
        assert found is not None
        return found

    def add(self, one: Any) -> None:
        """A task or a future that has to end in time."""
        self._open[one] = time.monotonic() + self.seconds

    def remove(self, one: Any) -> bool:
        """Tells whether it was cancelled because its time was over."""
        self._open.pop(one, None)
        if one in self._late:
            self._late.discard(one)
            return True
        return False

    def sweep(self) -> None:
        """Cancel what is late."""
        now = time.monotonic()
        for one, deadline in list(self._open.items()):
            if deadline > now:
                return
            del self._open[one]
            self._late.add(one)
            one.cancel()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(0.5, self.seconds / 4))
            self.sweep()


class Call:
    """A request.

    Parameters
    ----------
    scope, receive : as ASGI gives them
    settings : Settings
    deadlines : Deadlines

    Attributes
    ----------
    headers : dict of bytes
    writes : bool
        Whether its token allows it to change something.
    """

    __slots__ = ("_deadlines", "_receive", "_settings", "headers", "scope", "writes")

    def __init__(self, scope: Any, receive: Any, settings: Settings, deadlines: Deadlines) -> None:
        self.scope, self._receive, self._settings, self._deadlines = scope, receive, settings, deadlines
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.writes = False

    @property
    def name(self) -> str:
        """The model that the path names."""
        return str(self.scope["path_params"]["name"])

    def header(self, name: bytes) -> str | None:
        found = self.headers.get(name)
        return None if found is None else found.decode("latin-1")

    @property
    def query(self) -> dict[str, str]:
        """What stands behind the question mark; of a name that comes twice the last."""
        text = self.scope["query_string"].decode("latin-1")
        try:
            found = parse_qs(text, keep_blank_values=True, max_num_fields=20)
        except ValueError:
            raise ServiceError("the query string has more than 20 parameters", 400) from None
        return {name: values[-1] for name, values in found.items()}

    @property
    def kind(self) -> str:
        """The kind of its body."""
        given = self.headers.get(b"content-type", b"")
        kind = _KINDS.get(given) or _KINDS.get(given.partition(b";")[0].strip().lower())
        if kind is None:
            text = given.decode("latin-1")[:100]
            raise ServiceError(f"content-type must be one of {', '.join(batches.KINDS)}, got {text!r}", 415)
        return kind

    async def body(self) -> bytes:
        """The body, within its limits of size and time; one compressed by gzip is unpacked within the same limit of size."""
        most = self._settings.body_bytes
        packed = self._is_packed()
        length = self.headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > most:
            raise ServiceError(f"the body is larger than {most} bytes; send fewer rows", 413)
        task = self._deadlines.task()
        self._deadlines.add(task)
        try:
            parts = await self.checked_parts(most)
        except asyncio.CancelledError:
            if not self._deadlines.remove(task):
                raise
            task.uncancel()
            raise ServiceError(f"the body did not arrive within {self._settings.timeout:g} s", 408) from None
        finally:
            self._deadlines.remove(task)
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return unpacked(body, most) if packed else body

    def _is_packed(self) -> bool:
        """Whether the body is compressed by gzip; other encodings are refused."""
        coding = self.headers.get(b"content-encoding", b"identity").strip().lower()
        if coding not in (b"identity", b"gzip", b"x-gzip"):
            text = coding.decode("latin-1")[:100]
            raise ServiceError(f"content-encoding must be gzip or identity, got {text!r}", 415)
        return coding != b"identity"

    async def checked_parts(self, most: int) -> list[bytes]:
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Gone
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise ServiceError(f"the body is larger than {most} bytes; send fewer rows", 413)
            parts.append(part)
            if not message.get("more_body", False):
                return parts

    async def json(self, decoder: Any) -> Any:
        if self.kind != "json":
            raise ServiceError("this path takes application/json", 415)
        return batches.decode(decoder, await self.body())


def unpacked(body: bytes, most: int) -> bytes:
    """The content of a gzip body; never more than `most` bytes are unpacked.

    Parameters
    ----------
    body : bytes
        One gzip member.
    most : int
        The largest content in bytes.
    """
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        found = stream.decompress(body, most + 1)
    except zlib.error:
        raise ServiceError("the body is not gzip, though content-encoding names it", 400) from None
    if len(found) > most:
        raise ServiceError(f"the unpacked body is larger than {most} bytes; send fewer rows", 413)
    if not stream.eof or stream.unused_data:
        raise ServiceError("the gzip body is cut off, or something follows it", 400)
    return found


class Endpoint:
    """A handler as an ASGI application: access is checked first, and every refusal is JSON.

    Parameters
    ----------
    handler : callable
        Takes a `Call`, gives a `Reply` or a response of Starlette.
    service : what the handlers share
    """

    def __init__(self, handler: Callable[[Call], Awaitable[Reply | Response]], service: Any) -> None:
        self._handler, self._service = handler, service
        self._settings, self._deadlines = service.store.settings, service.deadlines

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            call = Call(scope, receive, self._settings, self._deadlines)
            call.writes = access.check(self._service.tokens, scope["method"], scope["path"], call.headers)
            found = await self._handler(call)
        except ServiceError as error:
            found = _refusal(error)
        except Gone:
            self._service.count(400)
            return
        except MemoryError:
            found = _refusal(ServiceError("there is not enough memory for this request", 503, retry_after=5))
        except Exception:
            log.exception("%s %s", scope["method"], scope["path"][:200])
            found = _refusal(ServiceError("an unexpected error; the log of the service has it", 500))
        if not isinstance(found, Reply):
            found.headers["x-content-type-options"] = "nosniff"
            self._service.count(found.status_code)
            try:
                await found(scope, receive, self._in_time(send))
            except (TimeoutError, ClientDisconnect):
                log.debug("a client left, or did not read its answer")
            return
        self._service.count(found.status)
        headers = [(b"content-type", _TYPES[found.kind]), (b"content-length", b"%d" % len(found.body)), _SNIFF]
        if found.headers:
            headers += [(name.encode("latin-1"), text.encode("latin-1")) for name, text in found.headers.items()]
        try:
            await send({"type": "http.response.start", "status": found.status, "headers": headers})
            await send({"type": "http.response.body", "body": found.body})
        except (OSError, RuntimeError):  # uvloop raises what asyncio drops: the client has gone
            log.debug("a client left before its answer")

    def _in_time(self, send: Any) -> Any:
        """Send, but do not wait longer than the limit for a client that reads nothing."""

        async def patient(message: Any) -> None:
            async with asyncio.timeout(self._settings.timeout):
                await send(message)

        return patient


def _refusal(error: ServiceError) -> Reply:
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Reply(error.status, "json", msgspec.json.encode(error.body()), headers)
