"""The description of the paths for clients and tools, in OpenAPI 3.1."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from .._version import __version__
from .store.batch import Labels, Query, Rows
from .store.learners import Spec

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
def document() -> dict[str, Any]:
    """The whole description."""
    _, schemas = msgspec.json.schema_components((Rows, Query, Labels, Spec), ref_template="#/components/schemas/{name}")
    schemas["Error"] = {
        "type": "object", "required": ["error"],
        "properties": {"error": {"type": "object", "required": ["status", "message"]}},
    }  # fmt: skip
    model = "/v1/models/{name}"
    table: list[tuple[str, str, str, str | None, int]] = [
        ("get", "/v1/models", "List the models", None, 200),
        ("get", model, "What a model is and how it does", None, 200),
        ("post", model, "Create a model", "Spec", 201),
        ("delete", model, "Remove a model", None, 200),
        ("post", f"{model}/learn", "Learn events; answers what was predicted before", "Rows", 200),
        ("post", f"{model}/predict", "Predict events; those with ids wait for a label", "Query", 200),
        ("post", f"{model}/labels", "Learn events whose labels came late", "Labels", 200),
        ("get", f"{model}/curves", "Curves of the page", None, 200),
        ("get", f"{model}/snapshots", "List snapshots", None, 200),
        ("post", f"{model}/snapshots", "Write a snapshot", None, 200),
        ("post", f"{model}/rollback", "Go back to a position", "Position", 200),
        ("get", f"{model}/challenger", "Compare champion and challenger", None, 200),
        ("post", f"{model}/challenger", "Let another learner learn beside", "Spec", 200),
        ("delete", f"{model}/challenger", "Drop the challenger", None, 200),
        ("post", f"{model}/challenger/promote", "Champion and challenger change places", None, 200),
        ("get", "/healthz", "Whether the process lives", None, 200),
        ("get", "/readyz", "Whether all models can be asked", None, 200),
    ]
    schemas["Position"] = {
        "type": "object", "required": ["position"], "additionalProperties": False,
        "properties": {"position": {"type": "integer", "minimum": 0, "maximum": 2**62}},
    }  # fmt: skip
    paths: dict[str, Any] = {}
    for method, path, text, schema, status in table:
        paths.setdefault(path, {})[method] = _operation(method, path, text, schema, status)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gristmill", "version": __version__, "description": "A durable learning service."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(method: str, path: str, text: str, schema: str | None, status: int) -> dict[str, Any]:
    parameters = [_NAME] if "{name}" in path else []
    if method == "post" and path.count("/") > 3:
        parameters = [*parameters, _KEY]
    answers: dict[str, Any] = {str(status): {"description": "done", "content": {"application/json": {}}}}
    for code, reason in _ERRORS.items():
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        answers[str(code)] = {"description": reason, "content": content}
    found: dict[str, Any] = {"summary": text, "parameters": parameters, "responses": answers}
    if schema is not None:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        found["requestBody"] = {"required": True, "content": content}
    return found
