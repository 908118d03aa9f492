"""One column of a table that was given: its kind, its values, its gaps, and what it brings to the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .cells import CellError, Coded, categories_in, kind_of, missing_in, numbers_in, texts_in, value_at
from .layout import Column, Entry

NUMBERS = ("number", "boolean", "time")


class Reading:
    """A column with its values as its kind has them: nothing is changed by reading.

    Parameters
    ----------
    name : str
    column : array or Coded
    known : Column or None
        What the layout knows of it.
    kind : str or None
        Given by the user, or detected.
    """

    def __init__(self, name: str, column: object, known: Column | None, kind: str | None) -> None:
        self.name = name
        self.gone: npt.NDArray[np.bool_] = missing_in(column)
        self.start = 0  # the row in which the kind was found; nothing is filled in before it
        self.kind = known.kind if known is not None else None
        if self.kind is None and not self.gone.all():
            self.start = int(np.argmin(self.gone))
            self.kind = kind or kind_of(value_at(column, self.start))
        self.values: Any = None
        if self.kind in NUMBERS:
            self.values = numbers_in(column, self.kind, self.gone, name)
        elif self.kind == "category":
            self.values = categories_in(column, self.gone, name)
        elif self.kind == "text":
            self.values = texts_in(column, self.gone, name)

    def refuse_gaps(self) -> None:
        """Raise if a value is missing."""
        if self.gone.any():
            raise CellError(int(np.argmax(self.gone)), self.name, None, "the value is missing (NaN)")

    def entries(
        self, index: int, known: Column | None, since: int, late: bool, max_values: int, flags: bool
    ) -> list[tuple[int, Entry]]:
        """What the column brings, each with its row: its name if it is new, its kind, gaps, and new values.

        `since` is its first row; `late` is True if there were samples before it.
        """
        found: list[tuple[int, Entry]] = []
        gap = known is not None and known.gap
        settled = known is not None and known.kind is not None
        if known is None:
            found.append((since, ("column", index, self.name)))
        end = self.start if self.kind is not None else len(self.gone)
        if not settled and not gap and (self.gone[:end].any() or (known is None and late)):
            gap = True
            early = known is None and (late or since > 0)
            found.append((since if early else int(np.argmax(self.gone)), ("gap", index)))
        if self.kind is None:
            return found
        if not settled:
            found.append((self.start, ("kind", index, self.kind)))
        if (known is None or known.missing < 0) and (flags or self.kind == "category"):
            later = np.flatnonzero(self.gone[self.start :])
            if gap and not settled:
                found.append((self.start, ("missing", index)))
            elif later.size:
                found.append((self.start + int(later[0]), ("missing", index)))
        if self.kind == "category":
            found += self._new_values(index, known, max_values)
        return found

    def _new_values(self, index: int, known: Column | None, max_values: int) -> list[tuple[int, Entry]]:
        coded: Coded = self.values
        met: dict[str, int] = {} if known is None else known.values
        fresh = [place for place, text in enumerate(coded.values) if text not in met]
        if not fresh:
            return []
        places, rows = np.unique(coded.codes, return_index=True)
        first = dict(zip(places.tolist(), rows.tolist(), strict=True))
        found: list[tuple[int, Entry]] = []
        left, other = max_values - len(met), known is not None and known.other >= 0
        for place in sorted((place for place in fresh if place in first), key=first.__getitem__):
            if left > 0:
                found.append((first[place], ("value", index, coded.values[place])))
                left -= 1
            elif not other:
                found.append((first[place], ("other", index)))
                other = True
        return found
