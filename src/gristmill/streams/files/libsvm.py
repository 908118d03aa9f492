"""LIBSVM / SVMlight text: blocks of lines through scikit-learn's compiled parser, into CSR rows."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import BadRows, StreamError, shown
from ..stream import Chunk
from .labels import as_labels
from .source import Block, text_blocks

#: the largest index: rows are kept with indices of 32 bits
LARGEST = 2**31 - 2


def libsvm_chunks(
    path: object, name: str, n_features: int | None, bad: BadRows | None, labels: bool = True
) -> Iterator[Chunk]:
    """The chunks of a LIBSVM file or pipe.

    The width is `n_features`; of a file, else, the largest index in it; of a pipe the largest in its first
    block.
    """
    if n_features is None and str(path) != "-":
        n_features = max((largest_index(block.data) for block in text_blocks(path)), default=0) or None
    empty = True
    for block in text_blocks(path):
        width = n_features or largest_index(block.data)
        parsed, error = _parse(block.data, width), None
        if parsed is None:
            good, error = _until_bad(block, name, width, bad)
            parsed = _parse(good, width)
            if parsed is None:
                raise StreamError(f"{name}, line {block.line}: this is not LIBSVM text")
        if not width and parsed[0].shape[0]:
            raise StreamError(f"{name}, line {block.line}: there is no pair index:value, so there is no feature")
        n_features = width or None
        if parsed is not None and parsed[0].shape[0]:
            empty = False
            yield Chunk(parsed[0], as_labels(parsed[1]) if labels else None)
        if error is not None:
            raise error
    if empty:
        raise StreamError(f"{name}: the file is empty")


def _parse(data: bytes, width: int) -> Any:
    from sklearn.datasets import load_svmlight_file

    if indices(data).max(initial=0) > width:  # the parser wraps what does not fit into 32 bits
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X, y = load_svmlight_file(io.BytesIO(data), n_features=max(width, 1), zero_based=False)
    except (ValueError, OverflowError, Warning):
        return None
    return (X, y) if np.isfinite(X.data).all() and np.isfinite(y).all() else None


def indices(data: bytes) -> npt.NDArray[np.int64]:
    """All feature indices in a block of lines, found without parsing the values; LARGEST + 1 for larger ones."""
    text = np.frombuffer(re.sub(rb"#[^\n]*", b"", data) if b"#" in data else data, dtype=np.uint8)
    colons = np.flatnonzero(text == ord(":"))
    found = np.zeros(len(colons), dtype=np.int64)
    live = np.arange(len(colons))  # those whose digits have not ended
    for place in range(19):  # more would not fit into 64 bits
        at = colons[live] - 1 - place
        symbol = text[np.maximum(at, 0)].astype(np.int64) - ord("0")
        digit = (at >= 0) & (symbol >= 0) & (symbol <= 9)
        live, symbol = live[digit], symbol[digit]
        if not live.size:
            break
        found[live] += symbol * 10 ** min(place, 17)
    found[live] = LARGEST + 1
    return np.minimum(found, LARGEST + 1)


def largest_index(data: bytes) -> int:
    """The largest feature index in a block of lines, those aside that are too large to be one."""
    found = indices(data)
    return int(found[found <= LARGEST].max(initial=0))


def _until_bad(block: Block, name: str, width: int, bad: BadRows | None) -> tuple[bytes, StreamError | None]:
    """The good lines: all if bad rows are put aside, else those before the first, and the error."""
    kept: list[bytes] = []
    for number, line in enumerate(block.data.split(b"\n"), start=block.line):
        text = line.split(b"#", 1)[0].decode("utf-8", errors="replace").split()
        why = _fault(text, width) if text else None
        if why is None:
            kept.append(line.split(b"#", 1)[0])
        elif bad is None:
            return b"\n".join(kept), StreamError(f"{name}, line {number}: {why}")
        else:
            bad.take(f"{name}, line {number}: {why}", line.decode("utf-8", errors="replace"))
    return b"\n".join(kept), None


def _fault(cells: list[str], width: int) -> str | None:
    """What is wrong with a line, in words; None if nothing."""
    if not _finite(cells[0]):
        return f"the label {shown(cells[0])} is not a finite number"
    before = 0
    for cell in cells[1:]:
        index, colon, value = cell.partition(":")
        if not colon or not index.isascii() or not index.isdigit() or not _finite(value):
            return f"{shown(cell)} is not a pair index:value"
        number = int(index) if len(index) < 19 else LARGEST + 1
        if number < 1:
            return f"{shown(cell)}: indices start at 1"
        if number > LARGEST:
            return f"{shown(cell)}: an index is at most {LARGEST}"
        if number <= before:
            return f"{shown(cell)}: indices must ascend, and {before} came before"
        if number > width:
            return f"{shown(cell)}: there are only {width} features (say how many with n_features, --features)"
        before = number
    return None


def _finite(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and text.isascii() and "_" not in text
    except ValueError:
        return False
