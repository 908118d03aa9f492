"""`read`: a stream from any file, by the ending of its name or the given format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .brokers import is_broker
from .errors import BadRows, StreamError
from .files.arrow import arrow_frames
from .files.columns import Columns
from .files.csv import csv_frames
from .files.json_lines import json_frames
from .files.labels import Labels, labelled
from .files.libsvm import LARGEST, libsvm_chunks
from .stream import Chunk, Stream
from .tables.frame import Frame

FORMATS = ("csv", "libsvm", "jsonl", "parquet", "arrow")
_ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv",
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
    ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def format_of(path: Any) -> str:
    """The format by the ending of a file name."""
    if str(path) == "-":
        return "csv"
    stem = os.fspath(path).lower()
    for ending in _PACKED:
        stem = stem.removesuffix(ending)
    found = _ENDINGS.get(os.path.splitext(stem)[1])
    if found is None:
        raise StreamError(f"{path}: the name does not show the format; give one of {', '.join(FORMATS)}")
    return found


def read(
    path: object,
    format: str | None = None,
    columns: Columns | None = None,
    *,
    target: object = "last",
    categorical: str | None = None,
    n_features: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    bad: BadRows | None = None,
    raw: bool = False,
    keep: Iterable[str] = (),
    require_target: bool = True,
) -> Stream:
    """A stream over a file, or standard input for "-". Nothing larger than a block is ever held in memory.

    Parameters
    ----------
    path : path, "-" or URL
        CSV, LIBSVM, JSON lines (each plain or packed by gz, bz2, xz or zst), Parquet or Arrow. Or a broker:
        "kafka://host:9092/topic?group=g&target=label", "redis://host:6379/0/stream", "mqtt://host/plant/+/pump", which is
        read from its beginning to the newest message that is there then, as JSON, CSV or Arrow; always as tables
        (`raw=True`). See `gristmill.streams.connect` and `gristmill learn` for streams without an end.
    format : {"csv", "libsvm", "jsonl", "parquet", "arrow"}, optional
        By the file's name otherwise; of standard input CSV.
    columns : Columns, optional
        Settled columns, such as a model was trained on; `target` and `categorical` otherwise make new ones.
    target : str, int, "last" or None
        The column of the labels.
    categorical : {"onehot", "hash"}, optional
        What becomes of columns that are not numbers; refused otherwise.
    n_features : int, optional
        Of LIBSVM text; the largest index in the file otherwise.
    header : bool, optional
        Of CSV; found out otherwise.
    delimiter : str, optional
        Of CSV; found out otherwise.
    bad : BadRows, optional
        Takes rows that cannot be read; they are an error otherwise.
    raw : bool
        Hand out tables as they stand in the file, gaps, categories and times included, for a `Table` or a learner
        behind one; `columns` and `categorical` mean nothing then.
    keep : iterable of str
        With `raw`, columns of CSV that are wanted as text, such as postal codes that begin with 0.
    require_target : bool
        With `raw`, False: a table without the target is read without labels.

    Examples
    --------
    >>> import os, tempfile
    >>> from gristmill.streams import read
    >>> path = os.path.join(tempfile.mkdtemp(), "few.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("a,b,label\\n1,2,yes\\n3,4,no\\n")
    >>> X, y = read(path).arrays()
    >>> X.tolist(), y.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], ['yes', 'no'])
    """
    if is_broker(path):
        from .brokers.stream import broker_stream

        return broker_stream(str(path), format, target, bad, set(keep), require_target)
    source = Source(path, format, bad, header=header, delimiter=delimiter, keep=keep, n_features=n_features)
    if raw and source.format != "libsvm":
        return source.tables(Labels(target, require_target))
    settled = columns if columns is not None else Columns(target=target, categorical=categorical)
    return source.rows(settled)


class Source:
    """A file or standard input, checked; it can be read as tables or as rows of numbers.

    Parameters
    ----------
    path, format, bad, header, delimiter, keep, n_features :
        As for `read`.
    """

    def __init__(
        self,
        path: Any,
        format: str | None = None,
        bad: BadRows | None = None,
        *,
        header: bool | None = None,
        delimiter: str | None = None,
        keep: Iterable[str] = (),
        n_features: int | None = None,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise StreamError(f"unknown format {format!r}: there are {', '.join(FORMATS)}")
        if str(path) != "-" and os.path.isdir(path):
            raise StreamError(f"{os.fspath(path)}: Is a directory; give a file")
        if n_features is not None and not 1 <= n_features <= LARGEST:
            raise StreamError(f"n_features must be between 1 and {LARGEST}, got {n_features!r}")
        self.path, self.bad, self.format = path, bad, format or format_of(path)
        if self.format in ("parquet", "arrow") and str(path) == "-":
            raise StreamError(f"{self.format} needs a file: it cannot be read from standard input")
        self.name = "standard input" if str(path) == "-" else os.fspath(path)
        if str(path) != "-" and not os.path.exists(path):
            raise StreamError(f"{self.name}: there is no such file")
        self._header, self._delimiter, self._keep, self._n_features = header, delimiter, set(keep), n_features

    def tables(self, labels: Labels) -> Stream:
        """Frames with their labels; a second reading has the label column of the first."""
        return self._stream(lambda: labelled(self._frames(), self.name, labels, self.bad))

    def rows(self, columns: Columns) -> Stream:
        """Rows of numbers with their labels; a second reading has the columns of the first."""
        if self.format == "libsvm":
            labels = columns.target is not None
            return self._stream(lambda: libsvm_chunks(self.path, self.name, self._n_features, self.bad, labels))
        return self._stream(lambda: columns.chunks(self._frames(), self.name, self.bad))

    def _stream(self, chunks: Callable[[], Iterator[Chunk]]) -> Stream:
        return Stream(chunks, name=os.path.basename(self.name), bad=self.bad)

    def _frames(self) -> Iterator[Frame]:
        if self.format == "csv":
            return csv_frames(self.path, self.name, self._header, self._delimiter, self.bad, self._keep)
        if self.format == "jsonl":
            return json_frames(self.path, self.name, self.bad)
        return arrow_frames(self.path, self.name)
