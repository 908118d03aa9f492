"""The service under uvicorn: one process, stopped gracefully by SIGTERM and SIGINT."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Iterable
from typing import Any


def run(application: Any, host: str, port: int, store: str, timeout: float = 60.0) -> None:
    """Serve until a signal ends it; requests that came are answered first.

    Parameters
    ----------
    application : ASGI application
    host, port : where to listen; port 0 takes a free one, which is printed
    store : folder, for the first line
    timeout : seconds for which a connection may stay as it is without a request being worked on
    """
    import uvicorn

    warnings.simplefilter("ignore", UserWarning)  # one for each strange request would fill the log
    # The thread that learns and the one that answers share the interpreter: neither may keep it for long (5 ms unless set).
    sys.setswitchinterval(0.0001)
    config = uvicorn.Config(
        application, host=host, port=port, log_level="warning", access_log=False, timeout_keep_alive=30,
        timeout_graceful_shutdown=20, limit_concurrency=1024, server_header=False, ws="none", lifespan="on",
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again after it has stopped gracefully
        _server(application, timeout)(config, store).run()


class Idle:
    """Aborts connections on which nothing moves: a head of a request that does not end, an answer that is not read.

    uvicorn closes only those that are idle between two requests, and a close waits until the answer is read.

    Parameters
    ----------
    seconds : float
        For which a connection may stay as it is.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[Any, tuple[Any, float]] = {}

    def sweep(self, connections: Iterable[Any]) -> None:
        """Look at all connections; called about once a second."""
        now, known = time.monotonic(), {}
        for one in list(connections):
            if one.transport is None or (
                one.cycle is not None and not one.cycle.response_complete and not one.transport.is_closing()
            ):
                continue  # a request is worked on: the application has its own limits
            state = (one.cycle, one.transport.get_write_buffer_size())
            before, since = self._known.get(one, (None, now))
            known[one] = state, since if state == before else now
            if now - known[one][1] > self._seconds:
                one.transport.abort()
        self._known = known


def _server(application: Any, timeout: float) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Prints where it listens, and ends server-sent events before it waits for open requests."""

        def __init__(self, config: Any, store: str) -> None:
            super().__init__(config)
            self._store = store
            self._idle = Idle(timeout)

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started and self.servers:
                for socket in self.servers[0].sockets[:1]:
                    host, port = socket.getsockname()[:2]
                    place = f"[{host}]" if ":" in host else host
                    print(f"gristmill serves {self._store} at http://{place}:{port}/", flush=True)

        async def on_tick(self, counter: int) -> bool:
            if counter % 10 == 0:
                self._idle.sweep(self.server_state.connections)
            return await super().on_tick(counter)

        async def shutdown(self, sockets: Any = None) -> None:
            application.state.service.stopping = True
            await super().shutdown(sockets)

    return Server
