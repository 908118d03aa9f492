"""The service under uvicorn: one process, stopped gracefully by SIGTERM and SIGINT."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any


def run(application: Any, host: str, port: int, store: str) -> None:
    """Serve until a signal ends it; requests that came are answered first.

    Parameters
    ----------
    application : ASGI application
    host, port : where to listen; port 0 takes a free one, which is printed
    store : folder, for the first line
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
        _server(application)(config, store).run()


def _server(application: Any) -> Any:
    import uvicorn

    class Server(uvicorn.Server):
        """Prints where it listens, and ends server-sent events before it waits for open requests."""

        def __init__(self, config: Any, store: str) -> None:
            super().__init__(config)
            self._store = store

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started and self.servers:
                for socket in self.servers[0].sockets[:1]:
                    host, port = socket.getsockname()[:2]
                    place = f"[{host}]" if ":" in host else host
                    print(f"gristmill serves {self._store} at http://{place}:{port}/", flush=True)

        async def shutdown(self, sockets: Any = None) -> None:
            application.state.service.stopping = True
            await super().shutdown(sockets)

    return Server
