"""The meaning of a cell of a table: a string means what it would mean in a CSV file.

There are five kinds of columns. The first value that is not missing tells which one a column is.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import shown

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

KINDS = ("number", "boolean", "category", "time", "text")
#: characters of the longest category: what is longer is a text, and texts are read on request
LONGEST = 200
#: spellings of a missing value, in every format
MISSING = {"", "?", "-", ".", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null", "none", "nil", "missing"}
_TRUTH = {"true": 1.0, "false": 0.0}
_DAY = 86_400_000_000  # microseconds
_EPOCH = dt.datetime(1970, 1, 1)


class CellError(ValueError):
    """A value does not fit its column; the message names row, column and value.

    Attributes
    ----------
    row : int
        Position in the table that was given, from 0.
    column : str
    value : the value itself
    why : what is wrong with it
    """

    def __init__(self, row: int, column: str, value: object, why: str) -> None:
        self.row, self.column, self.value, self.why = row, column, value, why
        super().__init__(f"row {row}, column {column!r}: {why}")


class Misfit(ValueError):
    """What is wrong with one value, without its place."""


@dataclass(frozen=True)
class Coded:
    """A column as positions in a list of its distinct values; -1 where it is missing."""

    codes: npt.NDArray[np.int64]
    values: list[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice) -> Coded:
        return Coded(self.codes[part], self.values)

    def objects(self) -> npt.NDArray[np.object_]:
        """The values themselves."""
        found = np.empty(len(self.values) + 1, dtype=object)
        found[: len(self.values)] = self.values  # the last one, where -1 leads to, is None
        return found[self.codes]


# ---- one value ----------------------------------------------------------------------------------------------------


def is_missing(value: object) -> bool:
    """None, NaN, NaT, pandas' NA, an empty string, and the usual words for nothing."""
    if value is None:
        return True
    if isinstance(value, str):
        return len(value) < 10 and value.strip().lower() in MISSING
    if isinstance(value, float | np.floating):
        return value != value
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def kind_of(value: object) -> str:
    """The kind of a column whose first value this is."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, dt.date | np.datetime64):
        return "time"
    if not isinstance(value, str):
        return "number"
    if value.strip().lower() in _TRUTH:
        return "boolean"
    for kind in ("number", "time"):
        try:
            _OF[kind](value)
        except Misfit:
            continue
        return kind
    return "category"


def number_of(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool | np.bool_):
        raise Misfit(f"{shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        raise Misfit(f"{shown(value)} is not a number") from None
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise Misfit(f"{shown(value)} is not a number")
    if not math.isfinite(number):
        raise Misfit(f"{shown(value)} is not a finite number")
    return number


def boolean_of(value: object) -> float:
    """0 or 1."""
    found = _TRUTH.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool | np.bool_ | int | float | np.number) or found not in (0, 1):
        try:
            found = number_of(value)  # "0" and "1" too
        except Misfit:
            found = None
        if found not in (0.0, 1.0):
            raise Misfit(f"{shown(value)} is not true or false")
    return float(found)


def time_of(value: object) -> float:
    """Days since 1970, from a date or time, its ISO 8601 text, or seconds since then; UTC unless it says otherwise."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").astype(np.int64)) / _DAY
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise Misfit(f"{shown(value)} is not a time such as 2024-05-17T08:30:00") from None
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    elif not isinstance(value, dt.datetime):
        return number_of(value) / 86_400.0
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return ((value - _EPOCH) // dt.timedelta(microseconds=1)) / _DAY


def category_of(value: object) -> str:
    """A category as text; 7, 7.0 and "7" are one and the same, and so are True and "true"."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if not isinstance(value, str) and not _is_value(value):
        raise Misfit(f"{shown(value)} is not a category: a category is a text, a number, a truth value or a date")
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        value = int(value)
    text = str(value.item() if isinstance(value, np.generic) else value).strip()
    if len(text) > LONGEST:
        raise Misfit(
            f"{shown(text)} is too long for a category ({len(text):,} characters); say that the column is a text, or drop it"
        )
    if (
        text.endswith(".0")
        and text[:-2].removeprefix("-").isdigit()
        and (text[:-2] == "0" or text.lstrip("-")[0] != "0")
    ):
        return text[:-2]
    return text.lower() if text.lower() in _TRUTH else text


def _is_value(value: object) -> bool:
    """Whether the text of a value tells what it is; that of a bare object, a function or a container does not."""
    kind: Any = type(value)
    bare = (kind.__str__, kind.__repr__) == (object.__str__, object.__repr__)
    return not (bare or callable(value) or isinstance(value, list | tuple | dict | set | frozenset | np.ndarray))


def text_of(value: object) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise Misfit(f"{shown(value)} is not a text")
    return value


_OF: dict[str, Callable[[Any], Any]] = {
    "number": number_of,
    "boolean": boolean_of,
    "time": time_of,
    "category": category_of,
    "text": text_of,
}


# ---- a column -----------------------------------------------------------------------------------------------------


def missing_in(column: Any) -> Mask:
    """Where a column has no value."""
    if isinstance(column, Coded):
        gone = np.array([is_missing(value) for value in column.values] + [True])
        return gone[column.codes]
    kind = column.dtype.kind
    if kind == "f":
        return np.isnan(column)
    if kind == "M":
        return np.isnat(column)
    if kind in "biu":
        return np.zeros(len(column), dtype=bool)
    if {*map(type, column)} <= {int, bool}:
        return np.zeros(len(column), dtype=bool)
    return np.fromiter((is_missing(value) for value in column), dtype=bool, count=len(column))


def value_at(column: Any, row: int) -> Any:
    """One value of a column."""
    if isinstance(column, Coded):
        return column.values[column.codes[row]] if column.codes[row] >= 0 else None
    return column[row]


def numbers_in(column: Any, kind: str, gone: Mask, name: str) -> Floats:
    """Numbers, truths as 0 and 1, or times in days; anything where the value is missing."""
    if not isinstance(column, Coded):
        quick = _quick(column, kind)
        if quick is not None:
            bad = ~np.isfinite(quick) & ~gone
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise CellError(row, name, column[row], f"{shown(column[row])} is not a finite number")
            return quick
        return np.array(_each(column, kind, gone, name, 0.0), dtype=np.float64)
    known = _known(column, kind, gone, name)
    return np.array([0.0 if value is None else value for value in known] + [0.0])[column.codes]


def _quick(column: npt.NDArray[Any], kind: str) -> Floats | None:
    if kind == "number" and column.dtype.kind in "iuf":
        return column.astype(np.float64)
    if kind == "boolean" and column.dtype.kind == "b":
        return column.astype(np.float64)
    if kind == "time" and column.dtype.kind == "M":
        return np.asarray(column.astype("datetime64[us]").astype(np.int64) / _DAY)
    return None


def _each(column: npt.NDArray[Any], kind: str, gone: Mask, name: str, blank: object) -> list[Any]:
    read, found = _OF[kind], []
    for row, value in enumerate(column):
        try:
            found.append(blank if gone[row] else read(value))
        except Misfit as error:
            raise CellError(row, name, value, str(error)) from None
    return found


def _known(column: Coded, kind: str, gone: Mask, name: str) -> list[Any]:
    """What each of the distinct values means; None for missing ones and those that do not occur."""
    found: list[Any] = [None] * len(column.values)
    worst: CellError | None = None
    places, rows = np.unique(column.codes, return_index=True)
    for place, row in zip(places.tolist(), rows.tolist(), strict=True):
        if place < 0 or gone[row]:
            continue
        try:
            found[place] = _OF[kind](column.values[place])
        except Misfit as error:
            if worst is None or row < worst.row:
                worst = CellError(row, name, column.values[place], str(error))
    if worst is not None:
        raise worst
    return found


def categories_in(column: Any, gone: Mask, name: str) -> Coded:
    """Categories as text, each once; -1 where missing."""
    coded = column if isinstance(column, Coded) else _coded(column, gone)
    known = _known(coded, "category", gone, name)
    texts: dict[str, int] = {}
    place = [-1 if text is None else texts.setdefault(text, len(texts)) for text in known]
    codes = np.array([*place, -1], dtype=np.int64)[coded.codes]
    return Coded(codes, list(texts))


def _coded(column: npt.NDArray[Any], gone: Mask) -> Coded:
    met: dict[Any, int] = {}
    values: list[Any] = []
    codes = np.full(len(column), -1, dtype=np.int64)
    for row, value in enumerate(column.tolist() if column.dtype.kind in "biuf" else column):
        if gone[row]:
            continue
        key = value if type(value) is str else (type(value), str(value))
        code = met.setdefault(key, len(values))
        if code == len(values):
            values.append(value)
        codes[row] = code
    return Coded(codes, values)


def texts_in(column: Any, gone: Mask, name: str) -> list[str]:
    """Texts; empty where missing."""
    return _each(column.objects() if isinstance(column, Coded) else column, "text", gone, name, "")


# ---- the circle ---------------------------------------------------------------------------------------------------

# sin(x) / x and cos(x) in powers of x², on [0, pi / 4]: Taylor's series, longer than a double can tell.
_SINE = [1.0 / math.factorial(2 * k + 1) * (-1) ** k for k in range(10)]
_COSINE = [1.0 / math.factorial(2 * k) * (-1) ** k for k in range(10)]


def circle(turns: Floats) -> tuple[Floats, Floats]:
    """Sine and cosine of turns in [0, 1), by sums and products only: the same bits on every machine and in every cut."""
    eighth = np.floor(turns * 8.0)
    odd = eighth % 2 == 1
    rest = turns * 8.0 - eighth
    angle = np.where(odd, 1.0 - rest, rest) * (math.pi / 4)
    square = angle * angle
    sine, cosine = np.zeros_like(angle), np.zeros_like(angle)
    for odd_power, even_power in zip(reversed(_SINE), reversed(_COSINE), strict=True):
        sine = sine * square + odd_power
        cosine = cosine * square + even_power
    sine = sine * angle
    # In every second eighth of the circle sine and cosine change roles; signs follow the quadrant.
    swap = ((eighth + 1) // 2) % 2 == 1
    up, right = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    return np.where(eighth >= 4, -up, up), np.where((eighth >= 2) & (eighth < 6), -right, right)
