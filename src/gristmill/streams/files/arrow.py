"""Parquet and Arrow (Feather) files as frames, batch by batch through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import StreamError, refuse_twins
from ..tables.frame import Frame, frame_of

_ROWS = 16_384


def arrow_frames(path: object, name: str) -> Iterator[Frame]:
    """One a batch; the file may be larger than memory."""
    row = 1
    for batch in batches_of(path, name):
        refuse_twins(batch.schema.names, name)
        frame = frame_of(batch)
        yield replace(frame, where=partial(_row, name, row))
        row += frame.count


def _row(name: str, first: int, row: int) -> str:
    return f"{name}, row {first + row}"


def batches_of(path: object, name: str) -> Iterator[Any]:
    """Batches of a Parquet or Arrow file; errors of pyarrow become StreamError."""
    try:
        import pyarrow as pa
    except ImportError:
        raise StreamError(f"{name}: reading this needs pyarrow: pip install 'gristmill[data]'") from None
    try:
        yield from _batches(path)
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"{name}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error


def _batches(path: Any) -> Iterator[object]:
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
