"""Open files and pipes: the first bytes decide the compression; text comes in blocks of whole lines."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from lzma import LZMAError
from typing import IO, Any, NamedTuple

from ..errors import StreamError

#: bytes of text decoded at a time; what a reader holds in memory does not depend on the file
BLOCK = 1 << 21
#: bytes of the longest line: no text asks for more memory than this and a block
LONGEST = 1 << 26

_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}


class Block(NamedTuple):
    """Whole lines of a text, and the number of the first of them, from 1."""

    line: int
    data: bytes


def open_binary(path: Any) -> tuple[IO[bytes], str]:
    """A file, or standard input for "-", decompressed, and its name for messages."""
    if str(path) == "-":
        pipe: Any = sys.stdin.buffer
        pipe = pipe if hasattr(pipe, "peek") else io.BufferedReader(pipe)
        return _decompressed(pipe, pipe.peek(6)[:6], "standard input"), "standard input"
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            head = file.read(6)
        return _decompressed(path, head, name), name
    except OSError as error:
        raise StreamError(f"{name}: {error.strerror or error}") from error


def _decompressed(source: Any, head: bytes, name: str) -> Any:
    """A path or a pipe, decompressed by its first bytes."""
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind == "zst":
        return _zstd(source, name)
    if kind is not None:
        module = import_module({"gz": "gzip", "bz2": "bz2", "xz": "lzma"}[kind])
        return module.open(source)
    return source if hasattr(source, "read") else open(source, "rb")


def _zstd(source: object, name: str) -> IO[bytes]:
    try:
        import pyarrow as pa
    except ImportError:
        raise StreamError(f"{name}: reading zstd needs pyarrow: pip install 'gristmill[data]'") from None
    stream = pa.PythonFile(source) if hasattr(source, "read") else pa.OSFile(str(source))
    return io.BufferedReader(_Raw(pa.CompressedInputStream(stream, "zstd")))


class _Raw(io.RawIOBase):
    """An Arrow stream as a raw file of Python."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def text_blocks(path: object, quoted: bool = False, block: int = BLOCK) -> Iterator[Block]:
    """The text of a file or pipe in blocks of whole lines; damage is reported with the line it struck at.

    With `quoted`, a line break inside double quotes does not end a line, as in CSV.
    """
    file, name = open_binary(path)
    # A pipe hands over what has arrived; a file fills its block.
    fill = str(path) != "-"
    parts, held, line = list[bytes](), 0, 1  # the parts of a line that has not ended yet, and their bytes
    damage: Exception | None = None
    try:
        while damage is None:
            data, damage = _read(file, block, fill)
            if not data:
                break
            if b"\0" in data:
                raise StreamError(f"{name}: this is a binary file, not text")
            parts.append(data)
            held += len(data)
            if b"\n" in data:
                data = b"".join(parts)
                cut = _last_whole_line(data, quoted)
                parts, held = [data[cut:]], len(data) - cut
                if cut:
                    yield Block(line, data[:cut])
                    line += data.count(b"\n", 0, cut)
            if held > LONGEST:
                raise StreamError(f"{name}, line {line}: {_endless(b''.join(parts))}")
        rest = b"".join(parts)
        if damage is not None:
            lines = line - 1 + rest.count(b"\n")
            raise StreamError(f"{name}: damaged or cut off after line {lines}: {damage}") from damage
        if rest.strip():
            yield Block(line, rest)
    finally:
        if str(path) != "-":
            file.close()


def _endless(rest: bytes) -> str:
    """The likely reason why a line does not end."""
    if b"\n" in rest:
        return "a double quote is opened here and never closed"
    if b"\r" in rest:
        return LONE_CR
    return f"the line is longer than {LONGEST:,} bytes"


#: message for files whose lines end in a carriage return only
LONE_CR = "a carriage return without a line feed; lines must end in LF or CR LF (tr '\\r' '\\n' repairs such a file)"


def _read(file: Any, block: int, fill: bool) -> tuple[bytes, Exception | None]:
    """The next bytes and the error after them: bytes decompressed before the damage are good."""
    read, parts, left = getattr(file, "read1", file.read), list[bytes](), block
    try:
        while left > 0 and (part := read(left)):
            parts.append(part)
            left -= len(part)
            if not fill:
                break
    except (EOFError, LZMAError, zlib.error, OSError) as error:
        return b"".join(parts), error
    return b"".join(parts), None


def _last_whole_line(data: bytes, quoted: bool) -> int:
    """Where the last whole line ends."""
    cut = data.rfind(b"\n") + 1
    if not quoted or b'"' not in data:
        return cut
    odd = data.count(b'"', 0, cut) % 2
    while cut and odd:
        before = data.rfind(b"\n", 0, cut - 1) + 1
        odd ^= data.count(b'"', before, cut) % 2
        cut = before
    return cut
