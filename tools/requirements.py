"""Print the requirements of dependency groups of pyproject.toml: `python tools/requirements.py dev docs`.

pip installs groups by itself from 25.1 on; this works with every pip.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(group: str, groups: dict[str, Any]) -> list[str]:
    """Requirements of a group, with those of the groups that it includes."""
    found: list[str] = []
    for entry in groups[group]:
        found += [entry] if isinstance(entry, str) else requirements(entry["include-group"], groups)
    return found


if __name__ == "__main__":
    declared = tomllib.loads(PROJECT.read_text("utf-8"))["dependency-groups"]
    for name in sys.argv[1:]:
        print(*requirements(name, declared), sep="\n")
