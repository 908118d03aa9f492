"""Results kept as JSON, one file a result, so that what is slow and does not change is measured once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


class Store:
    """A folder of records; a record is taken back only if all that identifies it is the same as now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, *names: str) -> Path:
        plain = [re.sub(r"[^a-z0-9+.]+", "-", name.lower()).strip("-") for name in names]
        return self.folder.joinpath(*plain[:-1], f"{plain[-1]}.json")

    def find(self, *names: str, **identity: Any) -> dict[str, Any] | None:
        path = self.path(*names)
        if not path.exists():
            return None
        record: dict[str, Any] = json.loads(path.read_text())
        return record if all(record.get(key) == value for key, value in identity.items()) else None

    def put(self, *names: str, **record: Any) -> dict[str, Any]:
        path = self.path(*names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")
        return record
