"""The rows that are being filled: dense, or sparse where there are texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .cells import circle
from .column import Reading
from .layout import Column, Layout

Floats = npt.NDArray[np.float64]

#: in a category's column: two different values then lie 1 apart, as two numbers one standard deviation apart do;
#: two texts without a common word, too
ONE_HOT = 0.7071067811865476


class Sheet:
    """Zeros at first. The columns of texts are kept apart, so that the others can be filled as in an array."""

    def __init__(self, count: int, layout: Layout, sparse: bool) -> None:
        self.count, self._layout, self._sparse = count, layout, sparse
        self._texts: list[tuple[int, Any]] = []
        self._narrow: npt.NDArray[np.int64] | None = (
            None  # place in the rows -> place among the columns that are no text
        )
        width = max(layout.width, 1)
        if sparse:
            keep = np.ones(width, dtype=bool)
            for column in layout.columns:
                if column.kind == "text":
                    keep[column.place : column.place + layout.text_features] = False
            self._narrow = np.cumsum(keep) - 1
            self._kept = np.flatnonzero(keep)
            width = len(self._kept)
        self._rows: Floats = np.zeros((count, width))

    def put(self, places: npt.NDArray[np.int64], values: Floats) -> None:
        """Columns at their places."""
        self._rows[:, places if self._narrow is None else self._narrow[places]] = values

    def _column(self, place: int) -> int:
        return place if self._narrow is None else int(self._narrow[place])

    def fill_flag(self, column: Column, reading: Reading) -> None:
        """1 where a value is missing, from the first value on."""
        if column.missing >= 0:
            self._rows[reading.start :, self._column(column.missing)] = reading.gone[reading.start :]

    def fill_category(self, column: Column, reading: Reading) -> None:
        """One column of each row, by its value; a value that is not known and has no other leaves zeros."""
        coded = reading.values
        places = [column.values.get(text, column.other) for text in coded.values]
        place = np.array([*places, column.missing], dtype=np.int64)[coded.codes]
        place[: reading.start] = -1
        rows = np.flatnonzero(place >= 0)
        where = place[rows] if self._narrow is None else self._narrow[place[rows]]
        self._rows[rows, where] = ONE_HOT

    def fill_circles(self, column: Column, reading: Reading) -> None:
        """Hour and weekday; the middle of the circle where the time is missing."""
        day = np.floor(reading.values)
        turns = (reading.values - day, np.mod(day + 3.0, 7.0) / 7.0)  # 1970 began on a Thursday
        there = ~reading.gone
        for offset, turn in zip((1, 3), turns, strict=True):
            sine, cosine = circle(turn)
            self._rows[there, self._column(column.place + offset)] = sine[there]
            self._rows[there, self._column(column.place + offset + 1)] = cosine[there]

    def fill_text(self, column: Column, reading: Reading) -> None:
        """The words, hashed; of length `ONE_HOT` whatever their number."""
        from sklearn.feature_extraction.text import HashingVectorizer

        hashed = HashingVectorizer(n_features=self._layout.text_features).transform(reading.values)
        self._texts.append((column.place, hashed * ONE_HOT))

    def finish(self) -> Any:
        """The rows."""
        if not self._sparse:
            return self._rows
        from scipy.sparse import csr_array

        shape = (self.count, max(self._layout.width, 1))
        dense = csr_array(self._rows)
        total = csr_array((dense.data, self._kept[dense.indices], dense.indptr), shape=shape)
        for place, hashed in self._texts:
            total = total + csr_array((hashed.data, hashed.indices + place, hashed.indptr), shape=shape)
        total.sort_indices()
        return total
