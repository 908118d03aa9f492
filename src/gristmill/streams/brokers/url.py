"""Addresses of brokers: `scheme://user:password@host:port/path?option=value`, checked before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

#: options that every reader has
READING = (
    "name", "start", "format", "columns", "delimiter", "target", "key", "headers", "timestamp", "message_key", "topic",
)  # fmt: skip


@dataclass(frozen=True)
class Url:
    """The parts of a broker's URL.

    Parameters
    ----------
    scheme : str
    hosts : str
        `host:port`, or several separated by commas.
    path : str
        The topic, stream or subscription, decoded.
    options : dict
        What stands behind the question mark, by name.
    user, password : str, optional
        The option `password_file` names a file with the password, so that no list of processes shows it.

    Examples
    --------
    >>> from gristmill.streams.brokers.url import parse
    >>> url = parse("kafka://alice:secret@10.0.0.1:9092/orders?group=g&target=label")
    >>> str(url), url.options["group"], url.password
    ('kafka://10.0.0.1:9092/orders', 'g', 'secret')
    """

    scheme: str
    hosts: str
    path: str
    options: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The address without user, password and options: for messages, and as the name of the source."""
        return f"{self.scheme}://{self.hosts}/{quote(self.path, safe='/+#,:')}"

    @property
    def name(self) -> str:
        """Under which a position is saved: the address, or the option `name` where brokers move."""
        return self.options.get("name") or str(self)

    def address(self, port: int) -> tuple[str, int]:
        """Host and port of a broker that has one; `port` is the default."""
        try:
            parts = urlsplit(f"//{self.hosts}")
            host, found = parts.hostname, parts.port
        except ValueError:
            host, found = None, None
        if not host or found == 0:
            raise ValueError(f"{self}: write host or host:port, with a port from 1 to 65535, got {self.hosts!r}")
        return host, port if found is None else found

    def listed(self, option: str) -> list[str]:
        """The values of an option that takes several, separated by commas."""
        return [part for part in self.options.get(option, "").split(",") if part]

    def passed(self, prefix: str) -> dict[str, str]:
        """Options that go to the client as they are: `client.NAME=value`."""
        return {name.removeprefix(prefix): value for name, value in self.options.items() if name.startswith(prefix)}

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """An option that has no meaning is an error, and names those that have one."""
        names = sorted({*known, *READING})
        for option in self.options:
            if option not in names and not option.startswith("client."):
                raise ValueError(f"{self}: there is no option {option!r}; there are {', '.join(names)} and client.*")

    def choice(self, option: str, allowed: tuple[str, ...]) -> str:
        """The value of an option that takes one of a few words; the first is the default."""
        value = self.options.get(option, allowed[0])
        if value not in allowed:
            raise ValueError(f"{self}: {option} must be one of {', '.join(allowed)}, got {value!r}")
        return value

    def count(self, option: str, default: int) -> int:
        """The value of an option that takes a whole number of at least 1."""
        text = self.options.get(option, str(default))
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"{self}: {option} must be a whole number of at least 1, got {text!r}")
        return int(text)


def parse(text: object) -> Url:
    """A URL taken apart; what is missing is an error that shows the right form."""
    parts = urlsplit(str(text))
    form = "scheme://host:port/topic?option=value"
    if not parts.scheme or "://" not in str(text):
        raise ValueError(f"{_hidden(str(text))}: this is not a URL; write {form}")
    user, at, hosts = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    path = unquote(parts.path.removeprefix("/")) + (f"#{unquote(parts.fragment)}" if parts.fragment else "")
    if str(text).endswith("#"):  # an MQTT subscription to everything below a topic
        path += "#"
    options: dict[str, str] = {}
    query = parts.query
    if "?" in path:  # behind the '#' of such a subscription
        path, _, query = path.partition("?")
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key in options:
            raise ValueError(f"{parts.scheme}://{hosts}/{path}: the option {key!r} comes twice")
        options[key] = value
    secret = unquote(password) if colon else None
    if "password_file" in options:
        if secret is not None or not at:
            raise ValueError(f"{parts.scheme}://{hosts}/{path}: password_file needs a user, and no password in the URL")
        try:
            secret = Path(options.pop("password_file")).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{parts.scheme}://{hosts}/{path}: password_file: {error}") from error
    if not hosts and parts.scheme != "file":
        raise ValueError(f"{_hidden(str(text))}: there is no host; write {form}")
    if not path:
        raise ValueError(f"{parts.scheme}://{hosts}: there is no topic; write {form}")
    return Url(
        parts.scheme, hosts, path, options,
        unquote(name) if at else None, secret,
    )  # fmt: skip


def _hidden(text: str) -> str:
    """A text in which what may be a password is not shown."""
    _, at, tail = text.rpartition("@")
    return f"...@{tail}" if at else text
