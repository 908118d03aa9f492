"""The Open Inference Protocol (v2) with its binary tensors, as KServe, Triton and their clients speak it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from .._common.types import Json, Options
from .store.batch import Batch, decode
from .store.errors import ServiceError

_TYPES = {
    "BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8,
    "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip


class Tensor(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: Options | None = None


class Wanted(msgspec.Struct):
    name: str
    parameters: Options | None = None


class Inference(msgspec.Struct):
    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Wanted] | None = None
    parameters: Options | None = None


_body = msgspec.json.Decoder(Inference)


def read(body: bytes, header_length: str | None) -> tuple[Batch, Inference]:
    """The rows of a request: one tensor (rows, columns), or a tensor of one value a row for each column."""
    size = len(body)
    if header_length is not None:
        if not header_length.isdecimal() or len(header_length) > 15 or int(header_length) > size:
            raise ServiceError("Inference-Header-Content-Length does not fit the body", 400)
        size = int(header_length)
    asked = decode(_body, body[:size])
    binary, columns = body[size:], {}
    if not asked.inputs:
        raise ServiceError("inputs is empty")
    for tensor in asked.inputs:
        values, binary = _values(tensor, binary)
        columns[tensor.name] = values
    first = next(iter(columns.values()))
    if len(columns) == 1 and first.ndim == 2 and first.shape[1] > 1:
        return Batch(first.tolist(), len(first)), asked
    table = {name: values.reshape(len(values), -1)[:, 0].tolist() for name, values in columns.items()}
    if any(values.size != len(values) for values in columns.values()) or len({len(v) for v in table.values()}) > 1:
        raise ServiceError("inputs are one tensor of rows and columns, or a tensor of one value a row for each column")
    return Batch(table, len(first)), asked


def _values(tensor: Tensor, binary: bytes) -> tuple[Any, bytes]:
    count = 1
    for side in tensor.shape:
        if not 0 < side < 10**9:
            raise ServiceError(f"input {tensor.name[:100]!r}: shape {tensor.shape[:4]} is not one of rows")
        count *= side
    if not 1 <= len(tensor.shape) <= 2:
        raise ServiceError(
            f"input {tensor.name[:100]!r}: shape {tensor.shape[:4]} has {len(tensor.shape)} sides, not 1 or 2"
        )
    size = (tensor.parameters or {}).get("binary_data_size")
    if tensor.datatype != "BYTES" and tensor.datatype not in _TYPES:
        raise ServiceError(f"input {tensor.name[:100]!r}: datatype {tensor.datatype[:50]!r} is not known")
    values: Any
    if size is not None:
        if type(size) is not int or not 0 <= size <= len(binary):
            raise ServiceError(f"input {tensor.name[:100]!r}: binary_data_size does not fit the body", 400)
        raw, binary = binary[:size], binary[size:]
        values = _strings(raw) if tensor.datatype == "BYTES" else None
        if values is None:
            kind = np.dtype(_TYPES[tensor.datatype])
            if len(raw) != count * kind.itemsize:
                raise ServiceError(f"input {tensor.name[:100]!r}: {len(raw)} bytes for {count} values", 400)
            return np.frombuffer(raw, kind).reshape(tensor.shape), binary
    else:
        values = _flat(tensor.data or [])
    if len(values) != count:
        raise ServiceError(f"input {tensor.name[:100]!r}: {len(values)} values for the shape {tensor.shape}")
    found = np.empty(count, dtype=object)
    found[:] = values
    return found.reshape(tensor.shape), binary


def _flat(data: Sequence[object]) -> list[Any]:
    return [value for row in data for value in (row if isinstance(row, list) else [row])]


def _strings(raw: bytes) -> list[str]:
    found, place = [], 0
    try:
        while place < len(raw):
            (size,) = struct.unpack_from("<I", raw, place)
            if place + 4 + size > len(raw):
                raise struct.error
            found.append(raw[place + 4 : place + 4 + size].decode())
            place += 4 + size
    except (struct.error, UnicodeDecodeError):
        raise ServiceError("a tensor of BYTES is damaged", 400) from None
    return found


def answer(
    name: str, asked: Inference, predictions: list[Any], chances: Any, classes: list[str] | None = None
) -> tuple[bytes, dict[str, str]]:
    """The body of the answer, and its headers; the parameters of the output "probability" list the class of each column."""
    outputs, parts = [], []
    wanted = {one.name: one.parameters or {} for one in asked.outputs or [Wanted("prediction")]}
    everything = (asked.parameters or {}).get("binary_data_output") is True
    for output, parameters in wanted.items():
        if output not in ("prediction", "probability"):
            raise ServiceError(f"output {output[:100]!r} is not known; there are 'prediction' and 'probability'")
        values = np.asarray(predictions if output == "prediction" else chances)
        kind = {"b": "BOOL", "i": "INT64", "u": "UINT64", "f": "FP64"}.get(values.dtype.kind, "BYTES")
        entry: Json = {"name": output, "datatype": kind, "shape": list(values.shape)}
        details: Json = {"classes": classes} if output == "probability" and classes else {}
        if parameters.get("binary_data", everything) is True:
            raw = values.tobytes() if kind != "BYTES" else b"".join(
                struct.pack("<I", len(text)) + text for text in (str(one).encode() for one in values.ravel())
            )  # fmt: skip
            details["binary_data_size"] = len(raw)
            parts.append(raw)
        else:
            entry["data"] = [str(one) for one in values.ravel()] if kind == "BYTES" else values.ravel().tolist()
        if details:
            entry["parameters"] = details
        outputs.append(entry)
    head: Json = {"model_name": name, "model_version": "1", "outputs": outputs}
    if asked.id is not None:
        head["id"] = asked.id
    text = msgspec.json.encode(head)
    if not parts:
        return text, {"content-type": "application/json"}
    return text + b"".join(parts), {
        "content-type": "application/octet-stream", "inference-header-content-length": str(len(text))
    }  # fmt: skip


def metadata(name: str, task: str, classes: list[str] | None = None) -> Json:
    """Inputs and outputs of a model; a classifier that has learned lists its classes in the order of the probabilities."""
    kind = "FP64" if task == "regression" else "BYTES" if task == "classification" else "INT64"
    outputs: list[Json] = [{"name": "prediction", "datatype": kind, "shape": [-1]}]
    if classes is not None:
        outputs.append({
            "name": "probability", "datatype": "FP64", "shape": [-1, len(classes)], "parameters": {"classes": classes}
        })  # fmt: skip
    return {
        "name": name, "versions": ["1"], "platform": "gristmill",
        "inputs": [{"name": "rows", "datatype": "FP64", "shape": [-1, -1]}], "outputs": outputs,
    }  # fmt: skip
