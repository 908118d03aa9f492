"""Parameter ranges as data, checked in one place, with messages that name parameter, value and what would work."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True)
class Range:
    """What one parameter may be: a test, and the words for it."""

    says: str
    allows: Callable[[Any], bool]
    optional: bool = False

    def check(self, owner: str, name: str, value: object) -> None:
        if value is None and self.optional:
            return
        try:
            fine = bool(self.allows(value))
        except (TypeError, ValueError, OverflowError):  # the last: a whole number beyond all floats
            fine = False
        if not fine:
            kind = TypeError if isinstance(value, str | bytes | list | dict | type(None)) else ValueError
            says = f"{self.says} or None" if self.optional else self.says
            raise kind(f"{owner}: {name} must be {says}, got {value!r}")


def is_real(value: object) -> bool:
    """A finite real number that is not a bool."""
    if type(value) is float or type(value) is int:  # asking an abstract class costs more than the check
        return math.isfinite(value)
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def bytes_in(text: str) -> int:
    """A memory in words, such as "1 MB" or "512 KiB", as bytes."""
    number, _, unit = text.strip().partition(" ")
    if unit not in _UNITS:
        raise ValueError(f"write a number and one of {', '.join(_UNITS)}, such as '1 MB', got {text!r}")
    found = float(number) * _UNITS[unit]
    if not 0 < found < 2**63:
        raise ValueError(f"it must be above 0 and below 2^63 bytes, got {text!r}")
    return int(found)


def is_whole(value: object) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


real = Range("a finite number", is_real)
positive = Range("a number > 0", lambda v: is_real(v) and v > 0)
# An infinite C is the hard-margin limit of the papers, so it is a legal value where a bound is meant.
positive_or_inf = Range(
    "a number > 0 (inf allowed)",
    lambda v: isinstance(v, numbers.Real) and not isinstance(v, bool) and float(v) > 0,
)
non_negative = Range("a number >= 0", lambda v: is_real(v) and v >= 0)
count = Range("a whole number >= 1", lambda v: is_whole(v) and v >= 1)
capacity = Range("a whole number from 1 to 2**62", lambda v: is_whole(v) and 1 <= v <= 2**62)
size = Range(
    'a whole number from 1 to 2**62, or bytes in words such as "1 MB"',
    lambda v: (is_whole(v) and 1 <= v <= 2**62) or (isinstance(v, str) and bytes_in(v) > 0),
)
fraction = Range("a number in (0, 1]", lambda v: is_real(v) and 0 < v <= 1)
open_fraction = Range("a number in (0, 1)", lambda v: is_real(v) and 0 < v < 1)
flag = Range("True or False", lambda v: isinstance(v, bool))


def optional(range_: Range) -> Range:
    return dataclasses.replace(range_, optional=True)


def one_of(*choices: object) -> Range:
    return Range("one of " + ", ".join(repr(c) for c in choices), lambda v: v in choices)


def instance_of(kind: Any, says: str) -> Range:
    return Range(says, lambda v: isinstance(v, kind))


class Checked:
    """Base of frozen parameter dataclasses: `_ranges` defines the valid values of each field."""

    _ranges: ClassVar[dict[str, Range]] = {}

    def __post_init__(self) -> None:
        for name, range_ in self._ranges.items():
            range_.check(type(self).__name__, name, getattr(self, name))
