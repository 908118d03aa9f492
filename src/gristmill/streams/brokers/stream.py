"""Batches of a feed as rows with labels and places; and a whole topic as a `Stream`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import BadRows, StreamError
from ..files.bad_cells import good_parts, text_of_row
from ..files.labels import Labels
from ..stream import Chunk, Stream
from .connect import connect
from .contract import Message
from .decode import Decoder, Place, Places
from .feed import Feed
from .letters import DeadLetters
from .url import parse


class Events(NamedTuple):
    """Consecutive good rows of a batch, with their labels and where they came from."""

    X: Any
    y: Any
    places: Places
    frame: Any  #: the rows as they came, without the label


class Rows:
    """Makes rows of messages: decoded, with their labels, checked by a table; bad ones go to the dead letters.

    Parameters
    ----------
    decoder : Decoder
    labels : Labels
    letters : DeadLetters
    take : callable, optional
        Makes of a frame what is learned; raises `CellError` for a bad cell. The frame itself is learned otherwise.
    key : callable, optional
        Of a frame, the reasons of rows that have no key, by their number.
    """

    def __init__(self, decoder: Decoder, labels: Labels, letters: Any, take: Any = None, key: Any = None) -> None:
        self.labels, self.letters = labels, letters
        self._decoder, self._take, self._key = decoder, take or (lambda frame: frame), key

    def __call__(self, messages: list[Message]) -> Iterator[Events]:
        if isinstance(self.letters, DeadLetters):
            self.letters.begin(messages)
        frame, bad = self._decoder.frame(messages)
        for message, why in bad:
            what = f"{Place(self._decoder.source, message)}: {why}"
            if self.letters is None:
                raise StreamError(what)
            self.letters.take(what, repr(message.value))
        if frame is None:
            return
        try:
            self.labels.settle([name for name, since in zip(frame.names, frame.since, strict=True) if not since], "")
        except StreamError as error:
            if self.labels.name is not None or self.letters is None:
                raise
            for row in range(frame.count):  # nothing is known yet: these messages have no target
                self.letters.take(f"{frame.where(row)}{error}", text_of_row(frame, row))  # type: ignore[misc]
            return
        for part, y in self._labelled(frame):
            for good, X, labels in good_parts(part, y, self._take, self.letters):
                yield Events(X, labels, Places.of(good), good)

    def _labelled(self, frame: Any) -> Iterator[tuple[Any, Any]]:
        """The parts of a frame between rows without a key or a label, and their labels."""
        lacking = {} if self._key is None else self._key(frame)
        for row, why in lacking.items():
            self._refuse(frame, row, why)
        for part in _without(frame, set(lacking)):
            yield from self._labelled_part(part)

    def _labelled_part(self, frame: Any) -> Iterator[tuple[Any, Any]]:
        while frame.count:
            if self.labels.required and self.labels.name is not None and self.labels.name not in frame.names:
                for row in range(frame.count):
                    self._refuse(frame, row, f"the column {self.labels.name!r} is missing")
                return
            chunk, fault = self.labels.cut(frame, self._decoder.source)
            if chunk.X.count:
                yield chunk.X, chunk.y
            if fault is None:
                return
            self._refuse(frame, *fault)
            frame = frame[fault[0] + 1 :]

    def _refuse(self, frame: Any, row: int, why: str) -> None:
        what = f"{frame.where(row)}, {why}"
        if self.letters is None:
            raise StreamError(what)
        self.letters.take(what, text_of_row(frame, row))


def _without(frame: Any, rows: set[int]) -> Iterator[Any]:
    start = 0
    for row in sorted(rows):
        if row > start:
            yield frame[start:row]
        start = row + 1
    if start < frame.count:
        yield frame[start:]


def broker_stream(
    text: str, format: str | None, target: Any, bad: BadRows | None, keep: set[str], require_target: bool
) -> Stream:
    """A topic from its beginning (or what its URL says) to the newest message, as tables with their labels."""
    url = parse(text)
    aim = url.options.get("target", target) if target == "last" else target

    def chunks() -> Iterator[Chunk]:
        labels = Labels(aim, require_target)
        rows = Rows(Decoder(url, format, keep), labels, bad)
        with connect(text) as reader:
            feed = Feed(reader, until_end=True)
            feed.open(None)
            for batch in feed.batches():
                for events in rows(batch.messages):
                    yield Chunk(events.X, events.y, events.frame.names)
                reader.acknowledge(batch.position)

    connect(text).close()  # a wrong option is an error now, not when the stream is read
    return Stream(chunks, name=url.name)
