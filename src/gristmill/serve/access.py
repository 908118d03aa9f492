"""Who may ask: tokens, the host that a request names, and the page that sends it."""

from __future__ import annotations

import dataclasses
import functools
import hmac
import os
import re
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .store.errors import ServiceError

_LOCAL = {"127.0.0.1", "localhost", "::1", "testserver"}
#: paths that hold no data
OPEN = {"/", "/healthz", "/readyz", "/openapi.json", "/v2/health/live", "/v2/health/ready"}
READS_ONLY = "this token allows reading only"
#: what is asked by POST
_ASKS = re.compile(r"/v1/models/[^/]+/predict|/v2/models/[^/]+/infer")


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Tokens that allow reading, and tokens that allow reading and changing."""

    read: tuple[bytes, ...] = ()
    write: tuple[bytes, ...] = ()

    @classmethod
    def of_file(cls, path: Any) -> Tokens:
        """Read a file of lines `read TOKEN` and `write TOKEN`; other users must not be able to read it."""
        place = Path(path)
        # systemd gives the user of a service its credentials by an access list, which shows as the bits of the group.
        granted = os.environ.get("CREDENTIALS_DIRECTORY")
        open_to = 0o037 if granted and place.parent == Path(granted) else 0o077
        if stat.S_IMODE(place.stat().st_mode) & open_to:
            raise ValueError(f"{path}: other users can read this file; run chmod 600 {path}")
        found: dict[str, list[bytes]] = {"read": [], "write": []}
        for number, line in enumerate(place.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in found or len(words[1]) < 16:
                raise ValueError(f"{path}, line {number}: write 'read TOKEN' or 'write TOKEN', 16 characters at least")
            found[words[0]].append(words[1].encode())
        if not found["write"]:
            raise ValueError(f"{path}: there is no line 'write TOKEN'")
        return cls(tuple(found["read"]), tuple(found["write"]))


def check(tokens: Tokens | None, method: str, path: str, headers: dict[bytes, bytes]) -> bool:
    """Refuse a request that may not be answered; tells whether it may also change something."""
    _same_site(path, headers)
    if tokens is None:
        if not _is_local(headers.get(b"host", b"localhost")):
            raise ServiceError("without tokens the service answers requests to 127.0.0.1 and localhost only", 403)
        return True
    if path in OPEN or path.startswith("/page/"):
        return False
    scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
    sent = given.strip() if scheme.lower() == b"bearer" else b""
    # Every token is compared, so that the time does not tell which one was nearly right.
    writes = max([hmac.compare_digest(sent, token) for token in tokens.write], default=False)
    reads = max([hmac.compare_digest(sent, token) for token in tokens.read], default=False) or writes
    if not reads:
        raise ServiceError("a token is needed: send 'Authorization: Bearer TOKEN'", 401)
    if not writes and method not in ("GET", "HEAD") and not _ASKS.fullmatch(path):
        raise ServiceError(READS_ONLY, 403)
    return writes


@functools.lru_cache(maxsize=256)
def _is_local(host: bytes) -> bool:
    try:
        return urlsplit("//" + host.decode("latin-1")).hostname in _LOCAL
    except ValueError:
        return False


def _same_site(path: str, headers: dict[bytes, bytes]) -> None:
    """Refuse what a page of another site sends through the browser of a user; a link to the page may be followed."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is None and origin is None:
        return
    if path == "/" and (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document"):
        return
    if site in (b"cross-site", b"same-site"):
        raise ServiceError("requests from pages of other sites are refused", 403)
    if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
        raise ServiceError("requests from pages of other sites are refused", 403)
