"""LIBSVM / SVMlight text: blocks of lines through scikit-learn's compiled parser, into CSR rows."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .chunks import Chunk
from .columns import as_labels
from .source import BadRows, Block, StreamError, text_blocks


def libsvm_chunks(
    path: Any, name: str, n_features: int | None, bad: BadRows | None, labels: bool = True
) -> Iterator[Chunk]:
    """The chunks of a LIBSVM file or pipe.

    The width is `n_features`; of a file, else, the largest index in it; of a pipe the largest in its first
    block.
    """
    if n_features is None and str(path) != "-":
        n_features = max((largest_index(block.data) for block in text_blocks(path)), default=0) or None
    empty = True
    for block in text_blocks(path):
        data, width = block.data, n_features or largest_index(block.data)
        parsed, error = _parse(data, width), None
        if parsed is None:
            good, error = _until_bad(block, name, width, bad)
            parsed = _parse(good, width)
        n_features = width
        if parsed is not None and parsed[0].shape[0]:
            empty = False
            yield Chunk(parsed[0], as_labels(parsed[1]) if labels else None)
        if error is not None:
            raise error
    if empty:
        raise StreamError(f"{name}: the file is empty")


def _parse(data: bytes, width: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X, y = load_svmlight_file(io.BytesIO(data), n_features=width, zero_based=False)
    except (ValueError, OverflowError, Warning):
        return None
    return (X, y) if np.isfinite(X.data).all() and np.isfinite(y).all() else None


def largest_index(data: bytes) -> int:
    """The largest feature index in a block of lines, found without parsing the values."""
    text = np.frombuffer(data, dtype=np.uint8)
    colons = np.flatnonzero(text == ord(":"))
    largest = np.zeros(len(colons), dtype=np.int64)
    digit = np.ones(len(colons), dtype=bool)
    for place in range(10):  # an index has at most ten digits
        at = colons - 1 - place
        symbol = text[np.maximum(at, 0)].astype(np.int64) - ord("0")
        digit &= (at >= 0) & (symbol >= 0) & (symbol <= 9)
        if not digit.any():
            break
        largest[digit] += symbol[digit] * 10**place
    return int(largest.max(initial=0))


def _until_bad(block: Block, name: str, width: int, bad: BadRows | None) -> tuple[bytes, StreamError | None]:
    """The good lines: all if bad rows are put aside, else those before the first, and the error."""
    kept: list[bytes] = []
    for number, line in enumerate(block.data.split(b"\n"), start=block.line):
        text = line.split(b"#", 1)[0].decode("utf-8", errors="replace").split()
        why = _fault(text, width) if text else None
        if why is None:
            kept.append(line)
        elif bad is None:
            return b"\n".join(kept), StreamError(f"{name}, line {number}: {why}")
        else:
            bad.take(f"{name}, line {number}: {why}", line.decode("utf-8", errors="replace"))
    return b"\n".join(kept), None


def _fault(cells: list[str], width: int) -> str | None:
    """What is wrong with a line, in words; None if nothing."""
    if not _finite(cells[0]):
        return f"the label {cells[0]!r} is not a finite number"
    before = 0
    for cell in cells[1:]:
        index, colon, value = cell.partition(":")
        if not colon or not index.isdigit() or not _finite(value):
            return f"{cell!r} is not a pair index:value"
        if int(index) < 1:
            return f"{cell!r}: indices start at 1"
        if int(index) <= before:
            return f"{cell!r}: indices must ascend, and {before} came before"
        if int(index) > width:
            return f"{cell!r}: there are only {width} features (say how many with n_features, --features)"
        before = int(index)
    return None


def _finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
