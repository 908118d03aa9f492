"""Dead letters: messages that cannot be learned, with the reason, to a topic or a file of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import BadRows
from .contract import Message, Record, Writer
from .decode import Place

_LONGEST = 1 << 16  # characters of a message that are kept


def letter(source: str, message: Message, reason: str) -> Record:
    """What is sent for a bad message."""
    value = {"reason": reason, "value": _text(message.value)}
    return Record(source, message.partition, message.offset, json.dumps(value).encode())


class DeadLetters(BadRows):
    """Bad messages: counted, and sent to a writer if there is one. They never stop the stream.

    Parameters
    ----------
    source : str
        Name of the stream.
    writer : Writer, optional
    """

    def __init__(self, source: str, writer: Writer | None = None) -> None:
        super().__init__()
        self._source, self._writer = source, writer
        self._batch: dict[str, Message] = {}
        self._letters: list[Record] = []

    def begin(self, messages: Sequence[Message]) -> None:
        """The messages that the next rows come from."""
        self._batch = {Place(self._source, message): message for message in messages} if self._writer else {}

    def take(self, where: str, text: str) -> None:
        """A row that does not fit; `where` begins with the place of its message."""
        found = (m for place, m in self._batch.items() if where.startswith((f"{place},", f"{place}:")))
        self._take(where, next(found, None))

    def _take(self, reason: str, message: Message | None) -> None:
        self.count += 1
        self.first = self.first or reason
        if self._writer is not None and message is not None:
            self._letters.append(letter(self._source, message, reason))

    def send(self) -> None:
        """Hand the letters of this batch to the writer, in the order of their messages."""
        if self._writer is not None and self._letters:
            order = {(m.partition, m.offset): n for n, m in enumerate(self._batch.values())}
            self._letters.sort(key=lambda letter: order.get((letter.partition, letter.offset), -1))
            self._writer.send(self._letters)
            self._letters = []

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value[:_LONGEST].decode("utf-8", errors="backslashreplace")
    return {name: str(cell)[:_LONGEST] for name, cell in value.items()}
