"""Times of events and spans of time as numbers: as they come, or in seconds where they are dates."""

from __future__ import annotations

import datetime
import math
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

_SECOND = np.timedelta64(1, "s")
_UTC = datetime.UTC
_TAKES = "time takes a number an event, or dates with a time of day, which count in seconds"


def read_times(time: object, count: int) -> npt.NDArray[np.float64]:
    """One finite number an event."""
    values = np.asarray(time) if hasattr(time, "to_pylist") or not hasattr(time, "to_numpy") else time.to_numpy()
    if values.shape != (count,):
        raise ValueError(f"time must hold a number or date an event, {count}, got shape {values.shape}")
    times = _seconds(_dates(values)) if values.dtype.kind in "OM" and _has_dates(values) else _numbers(values)
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        row = int(bad[0])
        found = "NaT, not a time" if values.dtype.kind in "OM" else times[row]
        raise ValueError(f"time must hold finite numbers, or dates: row {row} is {found}")
    return np.ascontiguousarray(times)


def _has_dates(values: npt.NDArray[np.generic]) -> bool:
    return values.dtype.kind == "M" or any(isinstance(value, datetime.date | np.datetime64) for value in values)


def _dates(values: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    if values.dtype.kind == "M":
        return values
    out = np.empty(len(values), dtype="datetime64[us]")
    for row, value in enumerate(values):
        if not isinstance(value, datetime.date | np.datetime64):
            raise ValueError(f"{_TAKES}: row {row} is {value!r}")
        # A time without a zone is UTC, as in NumPy.
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(_UTC).replace(tzinfo=None)
        out[row] = np.datetime64(value)
    return out


def _seconds(dates: npt.NDArray[np.datetime64]) -> npt.NDArray[np.float64]:
    """Since 1970, whatever the unit."""
    seconds = (dates - np.datetime64(0, "s")) / _SECOND  # NaN for NaT
    return np.asarray(seconds, dtype=np.float64)


def _numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if values.dtype.kind == "m":
        return np.asarray(values / _SECOND, dtype=np.float64)
    try:
        if values.dtype.kind in "USV":  # NumPy would read digits in a text
            raise TypeError
        return values.astype(np.float64)
    except (TypeError, ValueError):
        row = next(row for row, value in enumerate(values.tolist()) if not isinstance(value, Real))
        raise ValueError(f"{_TAKES}: row {row} is {values.tolist()[row]!r}") from None


def is_span(ttl: object) -> bool:
    """Whether it is a time rather than a number."""
    return isinstance(ttl, datetime.timedelta | np.timedelta64)


def read_ttl(ttl: Any) -> float:
    """A time to live as a number; infinity for None."""
    if ttl is None:
        return math.inf
    if is_span(ttl):
        seconds = float(np.timedelta64(ttl) / _SECOND)
    else:
        seconds = float(ttl) if isinstance(ttl, Real) and not isinstance(ttl, bool | np.bool_) else math.nan
    if not seconds > 0:
        raise ValueError(
            "ttl must be a number above 0, of events or on the clock of time=, a timedelta above 0, or None, "
            f"got {ttl!r}"
        )
    return seconds
