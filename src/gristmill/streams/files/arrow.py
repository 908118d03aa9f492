"""Parquet and Arrow (Feather) files, batch by batch through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import StreamError, shown
from ..stream import Chunk
from .columns import Columns, as_labels

_ROWS = 16_384


def arrow_chunks(path: Any, name: str, columns: Columns) -> Iterator[Chunk]:
    """The chunks of a Parquet or Arrow file, which may be larger than memory."""
    row = 1
    for batch in batches_of(path, name):
        if columns.names is None:
            text = [field.name for field in batch.schema if _is_text(field.type)]
            columns.settle(batch.schema.names, text, name)
        else:
            columns.settle(batch.schema.names, (), name)
        if batch.num_rows:
            yield columns.chunk(_table(batch, columns, name, row), f"{name}, row {row}")
        row += batch.num_rows
    if row == 1:
        raise StreamError(f"{name}: the file is empty")


def batches_of(path: Any, name: str) -> Iterator[Any]:
    """Batches of a Parquet or Arrow file; errors of pyarrow become StreamError."""
    try:
        import pyarrow as pa
    except ImportError:
        raise StreamError(f"{name}: reading this needs pyarrow: pip install 'gristmill[data]'") from None
    try:
        yield from _batches(path)
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"{name}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error


def _batches(path: Any) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import ipc, parquet

    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        yield from parquet.ParquetFile(path).iter_batches(batch_size=_ROWS)
    elif magic.startswith(b"ARROW1"):
        with pa.memory_map(str(path)) as source:
            reader = ipc.open_file(source)
            for place in range(reader.num_record_batches):
                yield reader.get_batch(place)
    else:
        with pa.memory_map(str(path)) as source:
            yield from ipc.open_stream(source)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def _table(batch: Any, columns: Columns, name: str, row: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    place = {key: at for at, key in enumerate(batch.schema.names)}
    text = set(columns.text)
    for key in (*(columns.names or ()), columns.target):
        if key is None or key not in place:
            continue
        column = batch.column(place[key])
        where = f"{name}, row {row}, column {key!r}"
        if column.null_count:
            at = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise StreamError(f"{name}, row {row + at}, column {key!r}: the value is missing")
        values = column.to_numpy(zero_copy_only=False)
        if key in text:
            columns.check_text(key, values[0], f"{name}, row {row}")
        elif key != columns.target and values.dtype.kind not in "biuf":
            raise StreamError(f"{where}: {shown(values[0])} is not a number")
        elif values.dtype.kind == "f" and not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise StreamError(f"{name}, row {row + at}, column {key!r}: {values[at]} is not a finite number")
        found[key] = as_labels(values) if key == columns.target else values
    return found
