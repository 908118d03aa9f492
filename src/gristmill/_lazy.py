"""Packages whose names are listed once, in the stub beside them, and imported when they are first used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def listed(file: str) -> dict[str, str]:
    """Each name that the stub of a package imports, and the module it comes from; "" for a module itself."""
    found: dict[str, str] = {}
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found |= {str(name.asname or name.name): node.module or "" for name in node.names}
    return found


def attach(package: str, names: dict[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` over such a list."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = names[name]
        if not home:
            return import_module(f".{name}", package)
        return getattr(import_module(f".{home}", package), name)

    return find
