"""Means so far of columns that may have gaps, in sums whose order does not depend on how the stream is cut."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ... import _core

Floats = npt.NDArray[np.float64]
Gaps = npt.NDArray[np.bool_]


class RunningMeans:
    """First value, sum of differences from it, and count, of each column; `core` holds them."""

    def __init__(self, core: _core.Means) -> None:
        self.core = core

    @property
    def width(self) -> int:
        return int(self.core.width)

    @property
    def first(self) -> Floats:
        """The first value of each column."""
        return np.asarray(self.core.first)

    def widen(self, first: object) -> None:
        """More columns, which begin with these values."""
        self.core.widen(np.ascontiguousarray(first, dtype=np.float64))

    def learn_plain(self, rows: Floats) -> None:
        """Take in rows without gaps."""
        self.core.learn(np.ascontiguousarray(rows, dtype=np.float64))

    def fill(self, values: Floats, gone: Gaps, learn: bool) -> Floats:
        """Rows with the mean at that time in place of each gap; taken in or not."""
        if not gone.any():
            if learn:
                self.learn_plain(values)
            return values
        return np.asarray(self.core.fill(np.ascontiguousarray(values), np.ascontiguousarray(gone), learn))

    def to_file(self) -> dict[str, Floats]:
        """Arrays under their names in a model file."""
        first, total, count = self.core.state()
        return {"table.first": first, "table.total": total, "table.count": count}

    def read(self, arrays: Mapping[str, object], size: int) -> None:
        """Back from `to_file`; what does not fit is refused."""
        lines = [np.asarray(arrays[f"table.{name}"], dtype=np.float64) for name in ("first", "total", "count")]
        if any(line.shape != (size,) for line in lines) or not np.isfinite(lines[0]).all() or not (lines[2] >= 0).all():
            raise ValueError("its table is damaged")
        self.core.restore(np.stack(lines))
