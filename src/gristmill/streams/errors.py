"""Errors of readers, how they show a value, and rows that are put aside because they cannot be read."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np


class StreamError(ValueError):
    """A source cannot be read on; the message names it, and where known the line and the column."""


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 60


def shown(value: object) -> str:
    """A value as an error shows it: its repr, on one line, and not longer than is good to read."""
    return " ".join(_brief.repr(value.item() if isinstance(value, np.generic) else value).split())


def listed(names: Sequence[str]) -> str:
    """Names for a message; of very many only the first."""
    return ", ".join(names) if len(names) <= 30 else f"{', '.join(names[:30])} and {len(names) - 30} more"


def refuse_twins(names: Sequence[str], source: str) -> None:
    """Each name stands for one column."""
    met: set[str] = set()
    for name in names:
        if name in met:
            raise StreamError(f"{source}: the column name {shown(name)} comes twice")
        met.add(name)


@dataclass
class BadRows:
    """What is done with rows that cannot be read: counted, and kept aside if there is a file for them.

    Parameters
    ----------
    path : path, optional
        Rows go there as they were, each after a comment that says where it stood and why it was refused.
    """

    path: Any = None
    count: int = 0
    first: str = ""
    _file: IO[str] | None = field(default=None, repr=False)

    def take(self, where: str, text: str) -> None:
        """Put one row aside."""
        self.count += 1
        self.first = self.first or where
        if self.path is not None:
            if self._file is None:
                self._file = open(self.path, "w", encoding="utf-8")  # noqa: SIM115  # closed by close
            self._file.write(f"# {where}\n{text}\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
