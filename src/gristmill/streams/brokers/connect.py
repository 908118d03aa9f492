"""`connect`: which class reads or writes which scheme of URL; the one place that a further broker is entered in."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, overload

from .contract import Reader, Writer
from .url import parse

#: scheme -> (module, class of the reader or None, class of the writer or None, extra of the package)
_SCHEMES: dict[str, tuple[str, str | None, str | None, str | None]] = {
    "kafka": (f"{__package__}.kafka", "KafkaReader", "KafkaWriter", "kafka"),
    "redis": (f"{__package__}.redis_streams", "RedisReader", "RedisWriter", "redis"),
    "rediss": (f"{__package__}.redis_streams", "RedisReader", "RedisWriter", "redis"),
    "mqtt": (f"{__package__}.mqtt", "MqttReader", "MqttWriter", "mqtt"),
    "mqtts": (f"{__package__}.mqtt", "MqttReader", "MqttWriter", "mqtt"),
    "file": (f"{__package__}.files", None, "FileWriter", None),
}


def register(scheme: str, module: str, reader: str | None, writer: str | None = None) -> None:
    """Enter a broker: from then on `connect`, `read` and `gristmill learn` take its URLs.

    Parameters
    ----------
    scheme : str
        What stands before `://`.
    module : str
        Imported when the first such URL is opened.
    reader, writer : str or None
        Names of the classes in that module, a `Reader` and a `Writer`.

    Examples
    --------
    >>> from gristmill.streams.brokers import is_broker, register
    >>> register("nats", "my_package.nats", "NatsReader", "NatsWriter")
    >>> is_broker("nats://127.0.0.1:4222/orders")
    True
    """
    _SCHEMES[scheme] = (module, reader, writer, None)


def is_broker(path: object) -> bool:
    """Whether a name is the URL of a broker that events can be read from."""
    scheme, colon, _ = str(path).partition("://")
    return bool(colon) and scheme in _SCHEMES and _SCHEMES[scheme][1] is not None


def _class(scheme: str, place: int, what: str) -> Any:
    known = _SCHEMES.get(scheme)
    names = sorted(name for name, entry in _SCHEMES.items() if entry[place] is not None)
    if known is None or known[place] is None:
        raise ValueError(f"{scheme}://: there is no {what} for this; there are {', '.join(names)}")
    module, extra = known[0], known[3]
    try:
        return getattr(import_module(module), str(known[place]))
    except ImportError as error:
        hint = f": pip install 'gristmill[{extra}]'" if extra else ""
        raise ImportError(f"{scheme}:// needs the package {error.name}{hint}", name=error.name) from error


@overload
def connect(url: str, direction: Literal["in"] = "in") -> Reader: ...
@overload
def connect(url: str, direction: Literal["out"]) -> Writer: ...


def connect(url: str, direction: str = "in") -> Reader | Writer:
    """A `Reader` of what a URL names, or a `Writer` to it.

    A further broker is one file: a class with `open`, `poll`, `advanced` and `close` (`Reader`), a class with `send`,
    `flush` and `close` (`Writer`), and one call of `register`. The tests in tests/brokers/test_contract.py run
    over every scheme.

    Parameters
    ----------
    url : str
        `kafka://host:9092/topic?group=g`, `redis://host:6379/0/stream`, `mqtt://host/plant/+/pump`; to write also
        `file:///path` or a path.
    direction : {"in", "out"}

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gristmill.streams import connect
    >>> from gristmill.streams.brokers import Record
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.jsonl")
    >>> with connect(path, "out") as writer:
    ...     writer.send([Record("orders", "0", 17, b'{"prediction": 1}')])
    >>> path.read_text()
    '{"position": {"source": "orders", "partition": "0", "offset": 17}, "prediction": 1}\\n'
    """
    if direction not in ("in", "out"):
        raise ValueError(f"direction must be 'in' or 'out', got {direction!r}")
    if direction == "out" and "://" not in str(url):
        from .files import FileWriter

        return FileWriter.at(url)
    parsed = parse(url)
    made = _class(parsed.scheme, 1 if direction == "in" else 2, "reader" if direction == "in" else "writer")(parsed)
    assert isinstance(made, Reader | Writer)
    return made
