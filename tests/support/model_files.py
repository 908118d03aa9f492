"""Model files that somebody has changed, with a checksum that fits: what is refused then is refused for its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from gristmill import persist


def opened(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a model file and its text."""
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    text = json.loads(header["__metadata__"]["gristmill"])
    text.pop("checksum", None)
    return from_bytes(data), text


def closed(arrays: dict[str, Any], text: dict[str, Any]) -> bytes:
    """The bytes of a file with these arrays and this text, and a checksum that fits."""
    signed = {**text, "checksum": persist.checksum(json.dumps(text), arrays)} if isinstance(text, dict) else text
    return to_bytes(arrays, metadata={"gristmill": json.dumps(signed)})
