"""Distributed data: files, arrays or parts of a Ray dataset, each read where it is stored."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..streams.errors import listed
from ..streams.files.columns import Columns
from ..streams.read import read
from ..streams.stream import Chunk

_ROWS = 4096


def sources_of(given: Any, target: object, shards: int) -> list[object]:
    """The data as one source per shard: a path, a list of paths, a pair (X, y), or a part of a Ray dataset."""
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
        if _is_pair(source) and source[1] is not None and _rows(source[0]) != _rows(source[1]):
            raise ValueError(f"shard {at}: X has {_rows(source[0])} rows and y has {_rows(source[1])}")
        if not (_is_pair(source) or _is_dataset(source) or all(_is_path(path) for path in _paths(source))):
            raise TypeError(
                f"shard {at} is no path, list of paths, pair (X, y) or Ray dataset: {type(source).__name__}"
            )
    return found


class Agreed(NamedTuple):
    """The columns of all shards, by those of the first: their names in order, and that of the target."""

    target: Any
    names: tuple[str, ...] | None  # None: columns have no names, and their order is what they go by


def agreed(source: Any, target: Any) -> Agreed:
    """The columns of the first shard, which all others must have."""
    if _is_pair(source):
        return Agreed(target, _frame_names(source[0]))
    columns = Columns(target=target)
    for chunk in _chunks(source, columns):
        return Agreed(columns.target if chunk.names is not None else target, chunk.names)
    raise ValueError(f"{source!r} holds no event")


def chunks_of(source: Any, target: object) -> Iterator[tuple[Any, Any]]:
    """X and y of a shard, a few thousand rows at a time; y is None without a target.

    target : as for `Cluster.fit`, or what `agreed` gave: then columns come in the order of the first shard, by name
    """
    known = target if isinstance(target, Agreed) else None
    if _is_pair(source):
        X, y = source
        names = _frame_names(X)
        if known is not None and names != known.names:
            X = _in_order(X, names, known.names)
        X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        for first in range(0, len(X), _ROWS):
            yield X[first : first + _ROWS], None if y is None else np.asarray(y)[first : first + _ROWS]
        return
    columns = (
        Columns(target=target, exact=True)
        if known is None
        else Columns(target=known.target, exact=True, names=known.names)
    )
    for chunk in _chunks(source, columns):
        if known is not None and (chunk.names is None) != (known.names is None):
            _refuse_mixed(str(source), chunk.names, known.names)
        yield chunk.X, chunk.y


def _chunks(source: Any, columns: Columns) -> Iterator[Chunk]:
    if _is_dataset(source):
        for table in source.iter_batches(batch_size=_ROWS, batch_format="numpy"):
            yield columns.chunk(table, "dataset")
        return
    for path in _paths(source):
        with _at_hand(os.fspath(path)) as local:
            yield from read(local, columns=columns)


def _frame_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; arrays have none."""
    found = getattr(X, "columns", None)
    return None if found is None else tuple(str(name) for name in found)


def _in_order(X: Any, names: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> Any:
    """A frame with the columns of another one."""
    if names is None or wanted is None:
        _refuse_mixed("a pair (X, y)", names, wanted)
    assert names is not None
    assert wanted is not None
    if sorted(names) != sorted(wanted):
        raise ValueError(
            f"fit: shards must have the same columns; the first has {listed(wanted)}, another {listed(names)}"
        )
    return X[[X.columns[names.index(name)] for name in wanted]]


def _refuse_mixed(source: str, names: Any, wanted: Any) -> None:
    has, first = ("has no names of columns", "has") if names is None else ("has names of columns", "has not")
    raise ValueError(f"fit: {source} {has}, and the first shard {first}: give all of them, or none, with names")


def _rows(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


@contextmanager
def _at_hand(path: str) -> Iterator[str]:
    """A local file; one at a URL is downloaded and deleted afterwards."""
    if "://" not in path:
        yield path
        return
    import fsspec

    system, place = fsspec.core.url_to_fs(path)
    with tempfile.TemporaryDirectory() as folder:
        local = str(Path(folder) / place.rsplit("/", 1)[-1])
        system.get_file(place, local)
        yield local


def _paths(source: object) -> list[Any]:
    return list(source) if isinstance(source, list) else [source]


def _is_path(path: Any) -> bool:
    return isinstance(path, str | os.PathLike)


def _is_pair(source: object) -> bool:
    return isinstance(source, tuple) and len(source) == 2 and not _is_path(source[0])


def _is_dataset(source: object) -> bool:
    return hasattr(source, "iter_batches") and hasattr(source, "split")
