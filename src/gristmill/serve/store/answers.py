"""Answers as bytes: JSON, JSON lines, CSV or an Arrow stream, as the request came."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

import msgspec

from ..._common.types import Json


class Reply(NamedTuple):
    """What a request is answered."""

    status: int
    kind: str  #: json, ndjson, csv or arrow
    body: bytes
    headers: dict[str, str]


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    return Reply(status, "json", msgspec.json.encode(value), headers)


def in_kind(kind: str, columns: Json, about: Json) -> Reply:
    """Columns of an answer, one entry a row, and values of the whole answer.

    JSON has both; in the other kinds the values of the whole answer are headers, such as `Gristmill-Position`.
    """
    if kind == "json":
        return Reply(200, kind, msgspec.json.encode({**about, **columns}), {})
    headers = {f"gristmill-{name.replace('_', '-')}": str(value) for name, value in about.items()}
    names = [_SINGULAR.get(name, name) for name in columns]
    values = list(columns.values())
    if kind == "arrow":
        return Reply(200, kind, _arrow(names, values), headers)
    if kind == "ndjson":
        lines = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        return Reply(200, kind, msgspec.json.encode_lines(lines) if hasattr(msgspec.json, "encode_lines") else
                     b"".join(msgspec.json.encode(line) + b"\n" for line in lines), headers)  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    cells = [[cell if isinstance(cell, str | float | int) else _text(cell) for cell in column] for column in values]
    writer.writerows(zip(*cells, strict=True))
    return Reply(200, kind, text.getvalue().encode(), headers)


_SINGULAR = {
    "predictions": "prediction",
    "probabilities": "probability",
    "intervals": "interval",
    "explanations": "explanation",
}


def _text(cell: object) -> str:
    return "" if cell is None else msgspec.json.encode(cell).decode()


def _arrow(names: list[str], values: list[Any]) -> bytes:
    import pyarrow as pa

    arrays = []
    for column in values:
        if any(isinstance(cell, dict) for cell in column):
            column = [_text(cell) for cell in column]
        arrays.append(pa.array(column))
    sink = io.BytesIO()
    table = pa.table(arrays, names=names)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
