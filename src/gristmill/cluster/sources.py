"""Data that live apart: a shard of files, arrays or a Ray dataset, read where it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..streams.files.columns import Columns
from ..streams.read import read

_ROWS = 4096


def sources_of(given: Any, target: Any, shards: int) -> list[Any]:
    """What was given, as one source a shard: a path, a list of paths, a pair (X, y), or a part of a Ray dataset."""
    if _is_dataset(given):
        found = [part for part in given.split(shards) if part.count() > 0]  # blocks stay where they are
        if not found:
            raise ValueError("fit was given a dataset without a row")
        return found
    if isinstance(given, str | os.PathLike) or not hasattr(given, "__iter__"):
        raise TypeError(
            f"fit takes a list of shards (paths, lists of paths, pairs (X, y)) or a Ray dataset, got {given!r}"
        )
    found = list(given)
    if not found:
        raise ValueError("fit was given no shard")
    for at, source in enumerate(found):
        if not (_is_pair(source) or _is_dataset(source) or all(_is_path(path) for path in _paths(source))):
            raise TypeError(
                f"shard {at} is no path, list of paths, pair (X, y) or Ray dataset: {type(source).__name__}"
            )
    return found


def chunks_of(source: Any, target: Any) -> Iterator[tuple[Any, Any]]:
    """X and y of a shard, a few thousand rows at a time; y is None without a target."""
    if _is_pair(source):
        X, y = source
        X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        for first in range(0, len(X), _ROWS):
            yield X[first : first + _ROWS], None if y is None else np.asarray(y)[first : first + _ROWS]
        return
    columns = Columns(target=target)
    if _is_dataset(source):
        for table in source.iter_batches(batch_size=_ROWS, batch_format="numpy"):
            chunk = columns.chunk(table, "dataset")
            yield chunk.X, chunk.y
        return
    for path in _paths(source):
        with _at_hand(os.fspath(path)) as local:
            for chunk in read(local, columns=columns):
                yield chunk.X, chunk.y


@contextmanager
def _at_hand(path: str) -> Iterator[str]:
    """A file of this machine; one at a URL is fetched, and goes afterwards."""
    if "://" not in path:
        yield path
        return
    import fsspec

    system, place = fsspec.core.url_to_fs(path)
    with tempfile.TemporaryDirectory() as folder:
        local = str(Path(folder) / place.rsplit("/", 1)[-1])
        system.get_file(place, local)
        yield local


def _paths(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list) else [source]


def _is_path(path: Any) -> bool:
    return isinstance(path, str | os.PathLike)


def _is_pair(source: Any) -> bool:
    return isinstance(source, tuple) and len(source) == 2 and not _is_path(source[0])


def _is_dataset(source: Any) -> bool:
    return hasattr(source, "iter_batches") and hasattr(source, "split")
