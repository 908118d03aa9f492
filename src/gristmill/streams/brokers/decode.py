"""Messages to rows: JSON objects, lines of CSV, Arrow, or fields; what cannot be decoded is a dead letter."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..._common.types import Json
from ..tables.frame import Frame, frame_of
from .contract import Message
from .url import Url

FORMATS = ("json", "csv", "arrow")
_DIGITS = re.compile(r"[-+0-9.eE]+")


class Place(str):
    """Where a row came from, as errors show it, and the parts of that."""

    part: str  #: the partition
    offset: int | str

    def __new__(cls, source: str, message: Message) -> Place:
        made = super().__new__(cls, f"{source}, partition {message.partition}, offset {message.offset}")
        made.part, made.offset = message.partition, message.offset
        return made


class Undecoded(NamedTuple):
    """A message that gives no row, and why."""

    message: Message
    why: str


class Decoder:
    """Makes frames of messages, by the options of a URL.

    Parameters
    ----------
    url : Url
    format : {"json", "csv", "arrow"}, optional
        By the option `format` otherwise; JSON by default.
    keep : container of str
        Columns that are wanted as text although they look like numbers.
    """

    def __init__(self, url: Url, format: str | None = None, keep: Any = ()) -> None:
        self._url, self._keep, self.source = url, keep, url.name
        short = "json" if format == "jsonl" else format
        self._format = short or url.choice("format", FORMATS)
        if self._format not in FORMATS:
            raise ValueError(f"{url}: format must be one of {', '.join(FORMATS)}, got {self._format!r}")
        self._columns = url.listed("columns")
        self._delimiter = url.options.get("delimiter", ",")
        self._headers = url.listed("headers")
        self._extra = {
            name: column for name in ("timestamp", "message_key", "topic") if (column := url.options.get(name))
        }
        self._comma = f",{secrets.randbits(60)},".encode()  # between objects; no message can hold it on purpose

    def row(self, message: Message) -> Json:
        """The one row of a message, with what the URL takes from beside its value; an error tells what is wrong."""
        rows, _, bad = self._rows([message])
        if bad:
            raise ValueError(bad[0].why)
        if len(rows) != 1:
            raise ValueError(f"the message holds {len(rows)} rows where there should be one")
        return {**rows[0], **self._beside(message)}

    def records(self, messages: Sequence[Message]) -> tuple[list[tuple[Json, Message]], list[Undecoded]]:
        """The rows of messages as dicts, each with its message; and the messages that give none."""
        rows, owners, bad = self._rows(messages)
        found = []
        for row, owner in zip(rows, owners, strict=True):
            found.append(({**row, **self._beside(messages[owner])}, messages[owner]))
        return found, bad

    def frame(self, messages: Sequence[Message]) -> tuple[Frame | None, list[Undecoded]]:
        """The rows of messages with their places, and the messages that give none."""
        rows, owners, bad = self._rows(messages)
        if not rows:
            return None, bad
        if self._headers or self._extra:
            rows = [{**row, **self._beside(messages[owner])} for row, owner in zip(rows, owners, strict=True)]
        return replace(frame_of(rows), where=_Where(self._url.name, messages, owners)), bad

    def _rows(self, messages: Sequence[Message]) -> tuple[list[Mapping[str, Any]], Sequence[int], list[Undecoded]]:
        if self._format == "json" and (together := self._at_once(messages)) is not None:
            return together, range(len(together)), []
        rows: list[Mapping[str, Any]] = []
        owners: list[int] = []
        bad: list[Undecoded] = []
        decode = {"json": self._json, "csv": self._csv, "arrow": self._arrow}[self._format]
        for number, message in enumerate(messages):
            try:
                found = self._fields(message.value) if isinstance(message.value, Mapping) else decode(message.value)
            except RecursionError:
                bad.append(Undecoded(message, "the JSON is nested too deeply"))
            except ValueError as error:
                bad.append(Undecoded(message, str(error)))
            else:
                rows += found
                owners += [number] * len(found)
        return rows, owners, bad

    def _at_once(self, messages: Sequence[Message]) -> list[Mapping[str, Any]] | None:
        """All messages as one JSON array; None if anything is wrong, so that each is decoded by itself.

        Between the objects stands a random number, so that parts of objects in neighbouring messages cannot join.
        """
        values = [message.value for message in messages]
        if {*map(type, values)} != {bytes}:
            return None
        try:
            parsed = json.loads(b"[" + self._comma.join(values) + b"]")  # type: ignore[arg-type]
        except (ValueError, RecursionError):
            return None
        mark = int(self._comma.strip(b","))
        if len(parsed) != 2 * len(values) - 1 or parsed[1::2].count(mark) != len(values) - 1:
            return None
        rows = parsed[::2]
        return rows if {*map(type, rows)} == {dict} and all(rows) else None

    def _json(self, value: bytes) -> list[Mapping[str, Any]]:
        found = json.loads(value)
        if not isinstance(found, dict):
            raise ValueError("this is not a JSON object")
        if not found:
            raise ValueError("the JSON object is empty")
        return [found]

    def _csv(self, value: bytes) -> list[Mapping[str, Any]]:
        try:
            lines = list(csv.reader(io.StringIO(value.decode()), delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise ValueError(f"not CSV: {error}") from error
        lines = [cells for cells in lines if cells]
        if not lines:
            raise ValueError("the message is empty")
        found: list[Mapping[str, Any]] = []
        for cells in lines:
            names = self._columns or [f"x{place}" for place in range(len(cells))]
            if len(cells) != len(names):
                raise ValueError(f"{len(cells)} columns where there should be {len(names)}")
            found.append(self._typed(dict(zip(names, cells, strict=True)))[0])
        return found

    def _typed(self, cells: Mapping[str, str]) -> list[Mapping[str, Any]]:
        return [{name: cell if name in self._keep else _number(cell) for name, cell in cells.items()}]

    def _fields(self, fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Fields that the broker has taken apart; numbers come as text."""
        return self._typed(fields)

    def _arrow(self, value: bytes) -> list[Mapping[str, Any]]:
        import pyarrow as pa

        try:
            table = pa.ipc.open_stream(value).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"not an Arrow stream: {error}") from error
        return list(table.to_pylist())

    def _beside(self, message: Message) -> Json:
        """What does not stand in the value, under the names that the URL gives."""
        found: Json = {}
        for name in self._headers:
            value = (message.headers or {}).get(name)
            found[name] = _number(value.decode(errors="replace")) if isinstance(value, bytes) else value
        for what, column in self._extra.items():
            value = message.key if what == "message_key" else getattr(message, what)
            found[column] = value.decode(errors="replace") if isinstance(value, bytes) else value
        return found


class _Where:
    """Tells of a row of a frame where it came from."""

    def __init__(self, source: str, messages: Sequence[Message], owners: Sequence[int]) -> None:
        self._source, self._messages, self._owners = source, messages, owners

    def __call__(self, row: int) -> Place:
        return Place(self._source, self._messages[self._owners[row]])


class Places(Sequence[Place]):
    """Where the rows of a frame came from; made one by one, since a stream without answers needs none of them."""

    def __init__(self, where: Callable[[int], Place], rows: range) -> None:
        self._where, self._rows = where, rows

    @classmethod
    def of(cls, frame: Frame) -> Places:
        where: Any = frame.where
        return cls(where, range(frame.count))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Places(self._where, self._rows[place])
        return self._where(self._rows[place])


def _number(cell: str) -> Any:
    """A number in plain digits as one; any other text as it is, and no text as no value."""
    if not cell:
        return None
    if _DIGITS.fullmatch(cell):
        try:
            found = float(cell)
        except ValueError:
            return cell
        if math.isfinite(found):
            return found
    return cell
