"""The server of the service with a handler that does nothing: the most that any handler can reach."""

from __future__ import annotations

from types import SimpleNamespace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gristmill.serve.run import run


async def nothing(_: Request) -> Response:
    return Response(b"{}", media_type="application/json")


if __name__ == "__main__":
    application = Starlette(routes=[Route("/v1/models/{name}/learn", nothing, methods=["POST"])])
    application.state.service = SimpleNamespace(stopping=False)
    run(application, "127.0.0.1", 0, "nothing")
