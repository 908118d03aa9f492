"""One protocol for every source: a stream is a sequence of chunks, a chunk a few rows with their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._common.tables import html_table, text_table
from .._common.types import Labels
from .errors import BadRows

#: rows in a chunk unless the caller says otherwise: large enough for the core's look-ahead, small enough for
#: any memory
ROWS = 1000


class Chunk(NamedTuple):
    """Consecutive events of a stream."""

    X: Any  #: array or CSR array, a row an event; or a list of objects
    y: Any = None  #: labels or targets, one an event; None where the stream has none
    names: tuple[str, ...] | None = None  #: of the columns, where the source knows them


@dataclass(frozen=True)
class Stream:
    """A stream of chunks that can be read from its beginning as often as its source can.

    Parameters
    ----------
    chunks : callable
        Called without arguments, returns an iterator of `Chunk`.
    n_events : int, optional
        How many events there are, where that is known beforehand.
    name : str
        For tables and pictures.
    classes : sequence, optional
        All labels that will come, where they are known beforehand.
    bayes_error : float, optional
        The error of the best possible classifier, where it is known.
    bad : BadRows, optional
        Takes rows that a learner cannot take; the first ends a run otherwise.

    Examples
    --------
    >>> from gristmill.streams import drifting_digits
    >>> stream = drifting_digits(n_events=2500, random_state=0)
    >>> [len(chunk.y) for chunk in stream]
    [1000, 1000, 500]
    """

    chunks: Callable[[], Iterator[Chunk]]
    n_events: int | None = None
    name: str = "stream"
    classes: tuple[Any, ...] | None = None
    bayes_error: float | None = None
    bad: BadRows | None = None

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def __repr__(self) -> str:
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """What is known without reading anything."""
        known = "-" if self.classes is None else ", ".join(map(str, self.classes[:20]))
        more = "" if self.classes is None or len(self.classes) <= 20 else ", ..."
        events = "unknown" if self.n_events is None else f"{self.n_events:,}"
        best = "-" if self.bayes_error is None else f"{self.bayes_error:.4f}"
        return ["stream", "events", "classes", "least possible error"], [[self.name, events, known + more, best]]

    def take(self, n_events: int) -> Stream:
        """The first `n_events` events."""
        if n_events < 1:
            raise ValueError(f"take: n_events must be at least 1, got {n_events!r}")
        known = n_events if self.n_events is None else min(n_events, self.n_events)
        return replace(self, chunks=lambda: _take(self.chunks(), n_events), n_events=known)

    def skip(self, n_events: int) -> Stream:
        """What comes after the first `n_events` events."""
        if n_events < 0:
            raise ValueError(f"skip: n_events must be at least 0, got {n_events!r}")
        known = None if self.n_events is None else max(0, self.n_events - n_events)
        return replace(self, chunks=lambda: _skip(self.chunks(), n_events), n_events=known)

    def arrays(self) -> tuple[Any, Any]:
        """The whole stream in memory, as X and y."""
        parts = list(self)
        if not parts:
            raise ValueError(f"{self.name}: the stream holds no event")
        X = _join([part.X for part in parts])
        return X, None if parts[0].y is None else np.concatenate([np.asarray(part.y) for part in parts])


def cut(chunk: Chunk, start: int, stop: int) -> Chunk:
    """A part of a chunk, by position."""
    return Chunk(chunk.X[start:stop], None if chunk.y is None else chunk.y[start:stop], chunk.names)


def size(chunk: Chunk) -> int:
    """How many events a chunk holds."""
    return int(chunk.X.shape[0]) if hasattr(chunk.X, "shape") else len(chunk.X)


def _take(chunks: Iterator[Chunk], n_events: int) -> Iterator[Chunk]:
    left = n_events
    for chunk in chunks:
        count = size(chunk)
        yield chunk if count <= left else cut(chunk, 0, left)
        left -= count
        if left <= 0:
            return


def _skip(chunks: Iterator[Chunk], n_events: int) -> Iterator[Chunk]:
    left = n_events
    for chunk in chunks:
        count = size(chunk)
        if left < count:
            yield cut(chunk, left, count) if left else chunk
        left = max(0, left - count)


def _join(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [x for part in parts for x in part]
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def from_arrays(X: Any, y: Any = None, rows: int = ROWS, name: str = "arrays", names: Any = None) -> Stream:
    """A stream over what is in memory: arrays, CSR, pandas and polars frames, or a list of objects.

    Parameters
    ----------
    X : array, CSR matrix or array, DataFrame, or list of objects
    y : array, Series or list, optional
    rows : int
        Events in a chunk.
    name : str
    names : sequence of str, optional
        Of the columns; a DataFrame's own otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill.streams import from_arrays
    >>> stream = from_arrays(np.zeros((5, 2)), np.arange(5), rows=2)
    >>> [chunk.y.tolist() for chunk in stream]
    [[0, 1], [2, 3], [4]]
    """
    if names is None and hasattr(X, "columns"):
        names = [str(column) for column in X.columns]
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    if y is not None:
        y = np.asarray(y)
        if len(y) != size(Chunk(X)):
            raise ValueError(f"X has {size(Chunk(X))} rows and y has {len(y)}: they must be as many")
    whole = Chunk(X, y, None if names is None else tuple(names))
    count = size(whole)

    def chunks() -> Iterator[Chunk]:
        return (cut(whole, start, min(start + rows, count)) for start in range(0, count, rows))

    return Stream(chunks, n_events=count, name=name)


def as_stream(source: object, y: Labels = None) -> Stream:
    """Whatever a person holds, as a stream: a `Stream`, a pair (X, y), X with y, or an iterable of chunks."""
    if isinstance(source, Stream):
        return source
    if y is not None or hasattr(source, "shape"):
        return from_arrays(source, y)
    if isinstance(source, tuple) and len(source) == 2 and not isinstance(source, Chunk):
        return from_arrays(*source)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | dict):
        return Stream(lambda: (part if isinstance(part, Chunk) else Chunk(*part) for part in source))
    raise TypeError(
        f"a stream is a Stream, a pair (X, y), or an iterable of chunks (X, y), got {type(source).__name__}; "
        "see gristmill.streams for readers of files"
    )
