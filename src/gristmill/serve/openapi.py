"""The description of the paths for clients and tools, in OpenAPI 3.1."""

from __future__ import annotations

from functools import cache

import msgspec

from .._common.types import Json
from .._version import __version__
from .inference import Inference
from .store.batch import TYPES, Labels, Query, Rows
from .store.learners import Spec

_JSON, _BYTES = "application/json", "application/octet-stream"
#: other kinds of rows
_OTHERS = [text.partition(";")[0] for kind, text in TYPES.items() if kind != "json"]
_PATTERN = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}
_NAME = {"name": "name", "in": "path", "required": True, "schema": _PATTERN}
_KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}  # fmt: skip
_ERRORS = {
    400: "not readable", 401: "no token", 403: "not allowed", 404: "not there", 408: "too slow", 409: "not now",
    413: "too large", 415: "unknown type", 422: "does not fit", 429: "too many wait", 503: "not available",
}  # fmt: skip


@cache
def document() -> Json:
    """The whole description."""
    _, schemas = msgspec.json.schema_components(
        (Rows, Query, Labels, Spec, Inference), ref_template="#/components/schemas/{name}"
    )
    schemas["Error"] = {
        "type": "object", "required": ["error"],
        "properties": {"error": {"type": "object", "required": ["status", "message"]}},
    }  # fmt: skip
    model, v2 = "/v1/models/{name}", "/v2/models/{name}"
    table: list[tuple[str, str, str, str | None, int, str]] = [
        ("get", "/v1/models", "List the models", None, 200, _JSON),
        ("get", model, "What a model is and how it does", None, 200, _JSON),
        ("post", model, "Create a model", "Spec", 201, _JSON),
        ("delete", model, "Remove a model", None, 200, _JSON),
        ("put", f"{model}/file", "Create a model from a model file", "file", 201, _JSON),
        ("get", f"{model}/file", "The model as a file", None, 200, _BYTES),
        (
            "post",
            f"{model}/learn",
            "Learn events; returns their predictions from before they were learned",
            "Rows",
            200,
            _JSON,
        ),
        ("post", f"{model}/predict", "Predict events; those with ids wait for a label", "Query", 200, _JSON),
        ("post", f"{model}/labels", "Learn events whose labels came late", "Labels", 200, _JSON),
        ("get", f"{model}/events", "Metrics, drift and alarms as server-sent events", None, 200, "text/event-stream"),
        ("get", f"{model}/curves", "Curves of the page", None, 200, _JSON),
        ("get", f"{model}/snapshots", "List snapshots", None, 200, _JSON),
        ("post", f"{model}/snapshots", "Write a snapshot", None, 200, _JSON),
        ("post", f"{model}/rollback", "Go back to a position", "Position", 200, _JSON),
        ("get", f"{model}/challenger", "Compare champion and challenger", None, 200, _JSON),
        ("post", f"{model}/challenger", "Train another learner on the same events", "Spec", 200, _JSON),
        ("delete", f"{model}/challenger", "Drop the challenger", None, 200, _JSON),
        ("post", f"{model}/challenger/promote", "Replace the champion by the challenger", None, 200, _JSON),
        ("get", "/metrics", "Metrics for Prometheus", None, 200, "text/plain"),
        ("get", "/healthz", "Whether the process is alive", None, 200, _JSON),
        ("get", "/readyz", "Whether all models can be asked", None, 200, _JSON),
        ("get", "/v2", "The server, by the Open Inference Protocol", None, 200, _JSON),
        ("get", v2, "A model, by the Open Inference Protocol", None, 200, _JSON),
        ("get", f"{v2}/ready", "Whether a model can be asked", None, 200, _JSON),
        ("post", f"{v2}/infer", "Predict, by the Open Inference Protocol", "Inference", 200, _JSON),
    ]
    schemas["Position"] = {
        "type": "object", "required": ["position"], "additionalProperties": False,
        "properties": {"position": {"type": "integer", "minimum": 0, "maximum": 2**62}},
    }  # fmt: skip
    paths: Json = {}
    for method, path, text, schema, status, kind in table:
        paths.setdefault(path, {})[method] = _operation(method, path, text, schema, status, kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gristmill", "version": __version__, "description": "A durable learning service."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(method: str, path: str, text: str, schema: str | None, status: int, kind: str) -> Json:
    parameters = [_NAME] if "{name}" in path else []
    if method in ("post", "put") and path.startswith("/v1/models/{name}"):
        parameters = [*parameters, _KEY]
    answers: Json = {str(status): {"description": "done", "content": {kind: {}}}}
    for code, reason in _ERRORS.items():
        content: Json = {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
        answers[str(code)] = {"description": reason, "content": content}
    found: Json = {"summary": text, "parameters": parameters, "responses": answers}
    if schema == "file":
        content = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}
    elif schema is not None:
        content = {_JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        if schema in ("Rows", "Query"):
            content |= {other: {"schema": {"type": "string"}} for other in _OTHERS}
    if schema is not None:
        found["requestBody"] = {"required": True, "content": content}
    return found
