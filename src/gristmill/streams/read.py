"""`read`: a stream from any file, by the ending of its name or the given format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from .brokers import is_broker
from .errors import BadRows, StreamError
from .files.arrow import arrow_chunks
from .files.columns import Columns
from .files.csv import csv_chunks
from .files.frames import Labels, arrow_frames, csv_frames, json_frames, raw_chunks
from .files.json_lines import json_chunks
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
        raise StreamError(f"{path}: the name does not tell the format; say one of {', '.join(FORMATS)}")
    return found


def read(
    path: Any,
    format: str | None = None,
    columns: Columns | None = None,
    *,
    target: Any = "last",
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
    if format is not None and format not in FORMATS:
        raise StreamError(f"unknown format {format!r}: there are {', '.join(FORMATS)}")
    if str(path) != "-" and os.path.isdir(path):
        raise StreamError(f"{os.fspath(path)}: Is a directory; give a file")
    if n_features is not None and not 1 <= n_features <= LARGEST:
        raise StreamError(f"n_features must be between 1 and {LARGEST}, got {n_features!r}")
    kind = format or format_of(path)
    if kind in ("parquet", "arrow") and str(path) == "-":
        raise StreamError(f"{kind} needs a file: it cannot be read from standard input")
    name = "standard input" if str(path) == "-" else os.fspath(path)
    settled = columns if columns is not None else Columns(target=target, categorical=categorical)

    def chunks() -> Iterator[Chunk]:
        # A second reading starts from what the first settled, so both give the same columns.
        if kind == "libsvm":
            return libsvm_chunks(path, name, n_features, bad, labels=settled.target is not None)
        if kind == "csv":
            return csv_chunks(path, name, settled, bad, header, delimiter)
        if kind == "jsonl":
            return json_chunks(path, name, settled, bad)
        return arrow_chunks(path, name, settled)

    def tables() -> Iterator[Chunk]:
        return raw_chunks(_frames(kind, path, name, header, delimiter, bad, set(keep)), name, labels, bad)

    if str(path) != "-" and not os.path.exists(path):
        raise StreamError(f"{name}: there is no such file")
    if raw and kind != "libsvm":
        labels = target if isinstance(target, Labels) else Labels(target, require_target)
        return Stream(tables, name=os.path.basename(name))
    return Stream(chunks, name=os.path.basename(name))


def _frames(
    kind: str, path: Any, name: str, header: bool | None, delimiter: str | None, bad: BadRows | None, keep: set[str]
) -> Iterator[Frame]:
    if kind == "csv":
        return csv_frames(path, name, header, delimiter, bad, keep)
    if kind == "jsonl":
        return json_frames(path, name, bad)
    return arrow_frames(path, name)
