"""What every estimator that a model file may name can do: become a file, or bytes."""

from __future__ import annotations

from typing import Any

from . import model_file as persist


class Storable:
    """Adds `save` and `to_bytes` to what has `_to_file` and `_from_file`."""

    def save(self, path: Any) -> None:
        """Write it to a file that holds numbers and parameters, and no code; see `gristmill.load`."""
        persist.save(self, path)

    def to_bytes(self) -> bytes:
        """What `save` would write, as bytes; see `gristmill.from_bytes`."""
        return persist.to_bytes(self)
