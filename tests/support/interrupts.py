"""Raise at the n-th call or return of a function: an interrupt at every moment at which Python could deliver one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Interrupted(BaseException):
    """As KeyboardInterrupt, and never raised by anything else."""


def interrupted(work: Callable[[], Any], moment: int) -> bool:
    """Run `work` and raise at its n-th call or return of a function; False if it has no so many."""
    left = moment

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal left
        left -= frame.f_code.co_filename != __file__
        if left == 0:
            sys.setprofile(None)
            raise Interrupted

    sys.setprofile(count)
    try:
        work()
    except Interrupted:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0
