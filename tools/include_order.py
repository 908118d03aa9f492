"""Check the direction of includes in src: a folder includes headers only from itself and the folders listed before it.

Run by `make lint`. The order of the core's folders is the order of `add_subdirectory` in src/core/CMakeLists.txt.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^\s*#include "core/([\w]+)/', re.MULTILINE)


def violations(core: Path) -> list[str]:
    """One line per include that points to a later folder, or from the core to the bindings."""
    order = re.findall(r"^add_subdirectory\((\w+)\)", (core / "CMakeLists.txt").read_text("utf-8"), re.MULTILINE)
    rank = {name: place for place, name in enumerate(order)}
    found = [f"{folder.name}: not in src/core/CMakeLists.txt" for folder in core.iterdir()
             if folder.is_dir() and folder.name not in rank]  # fmt: skip
    for path in sorted(core.rglob("*.[hc]pp")):
        text, folder = path.read_text("utf-8"), path.relative_to(core).parts[0]
        if '#include "bind/' in text:
            found.append(f"{path.relative_to(core)}: the core does not include the bindings")
        for other in INCLUDE.findall(text):
            if rank.get(other, len(rank)) > rank.get(folder, -1):
                found.append(f"{path.relative_to(core)}: {folder} may not include {other}")
    return found


if __name__ == "__main__":
    found = violations(SRC / "core")
    print(*found, sep="\n")
    sys.exit(bool(found))
