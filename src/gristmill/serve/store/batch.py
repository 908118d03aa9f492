"""Bodies of requests as rows: JSON (records, columns, lists), JSON lines, CSV and Arrow streams.

A journal holds bodies as they came, so what a body means must never change: a record is read by this module again
after every crash.
"""

from __future__ import annotations

import csv
import io
import json
import math
import struct
from typing import Any

import msgspec

from ..._common.types import Json, Options
from .errors import ServiceError

#: content types of requests -> kinds of bodies
KINDS = {
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}
TYPES = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
_READ = "rows must be a list of objects, a list of lists, or an object of columns"


class Rows(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON body of `learn`."""

    rows: list[Any] | Json
    labels: list[Any] | None = None
    columns: list[str] | None = None


class Query(Rows, forbid_unknown_fields=True):
    """The JSON body of `predict`."""

    ids: list[str | int] | None = None
    proba: bool = False
    interval: float | None = None
    explain: bool = False


class Labels(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON body of `labels`."""

    labels: Json


_rows, _query, _labels = msgspec.json.Decoder(Rows), msgspec.json.Decoder(Query), msgspec.json.Decoder(Labels)
_any = msgspec.json.Decoder()
_late = msgspec.json.Decoder(list[tuple[str, float, msgspec.Raw, msgspec.Raw, Any]])


class Batch:
    """Rows of one request.

    Parameters
    ----------
    X : list of dicts, list of lists, dict of columns, or Arrow table
    count : int
        Number of rows.
    labels : list, optional
    ids : list of str, optional
    """

    __slots__ = ("X", "count", "ids", "labels")

    def __init__(self, X: Any, count: int, labels: list[Any] | None = None, ids: list[str] | None = None) -> None:
        self.X, self.count, self.labels, self.ids = X, count, labels, ids

    @property
    def is_records(self) -> bool:
        return type(self.X) is list and type(self.X[0]) is dict

    def row(self, place: int) -> Any:
        """One row as plain values."""
        if isinstance(self.X, list):
            return self.X[place]
        if isinstance(self.X, dict):
            return {name: values[place] for name, values in self.X.items()}
        return self.X.slice(place, 1).to_pylist()[0]

    def value(self, row: int, column: str) -> Any:
        """What stands in a cell, for an error message."""
        found = self.row(row)
        if isinstance(found, list):
            place = int(column[1:]) if column[:1] == "x" and column[1:].isdecimal() else len(found)
            return shown(found[place]) if place < len(found) else None
        return shown(found.get(column))

    def label(self, row: int) -> Any:
        return None if self.labels is None else shown(self.labels[row])

    def names(self) -> set[str]:
        """Names of its columns; none for lists."""
        if isinstance(self.X, dict):
            return set(self.X)
        if isinstance(self.X, list):
            return set().union(*self.X) if type(self.X[0]) is dict else set()
        return set(self.X.column_names)

    def width(self) -> int:
        return len(self.X[0]) if isinstance(self.X, list) and type(self.X[0]) is list else len(self.names())

    def cut(self, start: int, stop: int) -> Batch:
        """Some of its rows."""
        if isinstance(self.X, list):
            X: Any = self.X[start:stop]
        elif isinstance(self.X, dict):
            X = {name: values[start:stop] for name, values in self.X.items()}
        else:
            X = self.X.slice(start, stop - start)
        labels = None if self.labels is None else self.labels[start:stop]
        return Batch(X, stop - start, labels, None if self.ids is None else self.ids[start:stop])


def shown(value: Any) -> Any:
    """A value of a request for an error message: short, and JSON in any case."""
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return repr(value)[:200]


def joined(batches: list[Batch]) -> Batch:
    """Rows of several requests as those of one; all are records. Labels that some lack are left out (novelty)."""
    rows = [row for batch in batches for row in batch.X]
    if any(batch.labels is None for batch in batches):
        return Batch(rows, len(rows))
    return Batch(rows, len(rows), [label for batch in batches for label in batch.labels or ()])


# ---- reading --------------------------------------------------------------------------------------------------------


def decode(decoder: Any, body: bytes) -> Any:
    """JSON of a known shape; anything else is refused with 400."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ServiceError(f"the body does not fit: {error}", 422) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(f"the body is not JSON: {error}", 400) from None
    except RecursionError:
        raise ServiceError("the body is nested too deeply", 400) from None


def read(kind: str, options: Options, body: bytes) -> Batch:
    """The rows and labels of a body.

    Parameters
    ----------
    kind : {"json", "ndjson", "csv", "arrow"}
    options : dict
        `target`: the column of the labels, where they stand among the others; `id`: that of the ids.
    body : bytes
    """
    if kind == "json":
        found = decode(_rows, body)
        return table(found.rows, found.columns, found.labels)
    batch = _with_labels(_READERS[kind](body), options)
    if kind == "csv" and batch.labels is not None:
        batch.labels = [_number(label) for label in batch.labels]
    return batch


def read_query(body: bytes) -> tuple[Batch, Query]:
    """Rows to predict, and what is asked about them."""
    query = decode(_query, body)
    batch = table(query.rows, query.columns, None)
    if query.ids is not None:
        if len(query.ids) != batch.count:
            raise ServiceError(f"ids has {len(query.ids)} entries for {batch.count} rows")
        batch.ids = checked_ids(query.ids)
    return batch, query


def read_labels(body: bytes) -> Json:
    labels: Json = decode(_labels, body).labels
    for id_, label in labels.items():
        if label is None:
            raise ServiceError(f"the label of {id_!r} is null", id=shown(id_))
    checked_ids(list(labels))
    if not labels:
        raise ServiceError("labels is empty; give {id: label}")
    return labels


def late(body: bytes) -> list[tuple[str, float, bytes, bytes, Any]]:
    """A record of late labels: id, time, row, predictions and label of each event."""
    return [
        (id_, moment, bytes(row), bytes(predicted), label) for id_, moment, row, predicted, label in _late.decode(body)
    ]


def late_body(events: list[tuple[str, float, bytes, bytes, Any]]) -> bytes:
    """What `late` reads."""
    raw = msgspec.Raw
    return msgspec.json.encode(
        [(id_, moment, raw(row), raw(answered), label) for id_, moment, row, answered, label in events]
    )


def plain(text: bytes) -> Any:
    """JSON that was written by the service itself."""
    return _any.decode(text)


def checked_ids(ids: list[Any]) -> list[str]:
    found = [str(id_) for id_ in ids]
    for place, id_ in enumerate(found):
        if not 0 < len(id_) <= 200:
            raise ServiceError(
                f"row {place}: an id has 1 to 200 characters, got {len(id_)}", row=place, value=shown(id_)
            )
    if len(set(found)) < len(found):
        twice = next(id_ for place, id_ in enumerate(found) if id_ in found[:place])
        raise ServiceError(f"the id {twice!r} comes twice", value=twice)
    return found


def table(rows: Any, names: list[str] | None, labels: list[Any] | None) -> Batch:
    """Rows of a JSON body, whose shape is checked; their values are checked by the learner."""
    if isinstance(rows, dict):
        batch = _columns(rows)
    else:
        if not rows:
            raise ServiceError(f"rows is empty; {_READ}")
        first = type(rows[0])
        if first is not dict and first is not list:
            raise ServiceError(f"row 0 is {shown(rows[0])!r}; {_READ}", row=0, value=shown(rows[0]))
        for place, row in enumerate(rows):
            if type(row) is not first:
                kind = "an object" if first is dict else "a list"
                raise ServiceError(f"row {place} is not {kind}, as row 0 is", row=place, value=shown(row))
        if first is list:
            rows = _lists(rows, names)
        batch = Batch(rows, len(rows))
    return _labelled(batch, labels)


def _columns(rows: Json) -> Batch:
    counts = {name: len(values) if isinstance(values, list) else -1 for name, values in rows.items()}
    for name, count in counts.items():
        if count < 0:
            raise ServiceError(
                f"column {name[:200]!r} is {shown(rows[name])!r}, not a list; {_READ}", column=name[:200]
            )
    if len(set(counts.values())) != 1 or not next(iter(counts.values())):
        lengths = ", ".join(f"{name[:50]!r} {count}" for name, count in list(counts.items())[:5])
        raise ServiceError(f"columns must have one length, at least 1: {lengths or 'there is none'}")
    return Batch(rows, next(iter(counts.values())))


def _lists(rows: list[Any], names: list[str] | None) -> list[Any]:
    width = len(rows[0]) if names is None else len(names)
    for place, row in enumerate(rows):
        if len(row) != width or not width:
            raise ServiceError(f"row {place} has {len(row)} values, expected {width or 'at least 1'}", row=place)
    if names is None:
        return rows
    if len(set(names)) < width:
        raise ServiceError("columns holds a name twice")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _labelled(batch: Batch, labels: list[Any] | None) -> Batch:
    if labels is not None:
        if len(labels) != batch.count:
            raise ServiceError(f"labels has {len(labels)} entries for {batch.count} rows")
        for place, label in enumerate(labels):
            if label is None:
                raise ServiceError(
                    f"row {place}: its label is missing; predict it with an id, and send the label later",
                    row=place, value=None,
                )  # fmt: skip
        batch.labels = labels
    return batch


def _with_labels(batch: Batch, options: Options) -> Batch:
    """Labels and ids taken out of the columns."""
    target, id_ = options.get("target"), options.get("id")
    labels = _taken(batch, target) if target is not None and target in batch.names() else None
    if id_ is not None:
        if id_ not in batch.names():
            raise ServiceError(f"there is no column {id_[:200]!r} for the ids", column=id_[:200])
        batch.ids = checked_ids(_taken(batch, id_))
    return _labelled(batch, labels)


def _taken(batch: Batch, name: str) -> list[Any]:
    """A column, which is one of the batch no longer."""
    if isinstance(batch.X, dict):
        return list(batch.X.pop(name))
    if isinstance(batch.X, list):
        return [row.pop(name, None) for row in batch.X]
    column = batch.X.column(name)
    batch.X = batch.X.drop_columns([name])
    return list(column.to_pylist())


def _ndjson(body: bytes) -> Batch:
    try:
        rows = _any.decode_lines(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServiceError(f"a line of the body is not JSON: {error}", 400) from None
    except RecursionError:
        raise ServiceError("the body is nested too deeply", 400) from None
    batch = table(rows, None, None)
    if not batch.is_records:
        raise ServiceError("each line must be an object", row=0, value=shown(rows[0]))
    return batch


def _csv(body: bytes) -> Batch:
    try:
        text = body.decode("utf-8-sig")
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ServiceError(f"the body is not CSV: {error}", 400) from None
    if len(lines) < 2:
        raise ServiceError("CSV needs a line of names and at least one row")
    names, rows = lines[0], lines[1:]
    if len(set(names)) < len(names):
        raise ServiceError("the first line of CSV names a column twice")
    for place, row in enumerate(rows):
        if len(row) != len(names):
            raise ServiceError(f"row {place} has {len(row)} values, expected {len(names)}", row=place)
    return Batch(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), len(rows))


def _number(text: str) -> Any:
    """A label of a CSV file: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _arrow(body: bytes) -> Batch:
    try:
        import pyarrow as pa
    except ImportError:
        raise ServiceError("Arrow bodies need pyarrow on the server: pip install 'gristmill[data]'", 415) from None
    try:
        _refuse_compressed(pa, body)
        found = pa.ipc.open_stream(body).read_all()
        found.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        raise ServiceError(f"the body is not an Arrow stream: {' '.join(str(error).split())[:500]}", 400) from None
    if not found.num_rows or not found.num_columns:
        raise ServiceError("the Arrow stream holds no row")
    if len(set(found.column_names)) < found.num_columns:
        raise ServiceError("the Arrow stream names a column twice")
    return Batch(found, found.num_rows)


def _refuse_compressed(pa: Any, body: bytes) -> None:
    """A few bytes can unpack to any size; so buffers must come as they are."""
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type not in ("record batch", "dictionary"):
            continue
        head = message.metadata.to_pybytes()
        header = _field(head, struct.unpack_from("<I", head)[0], 2)
        batch = header and _pointed(head, header)
        if batch and message.type == "dictionary":
            data = _field(head, batch, 1)
            batch = data and _pointed(head, data)
        if batch and _field(head, batch, 3):
            raise ServiceError("the Arrow stream is compressed; write it without compression", 400)


def _pointed(head: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", head, place)[0])


def _field(head: bytes, start: int, slot: int) -> int:
    """Place of a field of a FlatBuffers table; 0 if it is not there."""
    names = start - struct.unpack_from("<i", head, start)[0]
    size = struct.unpack_from("<H", head, names)[0]
    offset = struct.unpack_from("<H", head, names + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
    return start + offset if offset else 0


_READERS = {"ndjson": _ndjson, "csv": _csv, "arrow": _arrow}


def options_text(options: Options) -> str | None:
    """Options as a journal keeps them."""
    return json.dumps(options, sort_keys=True) if options else None
