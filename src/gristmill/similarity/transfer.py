"""Transfer functions: how the difference of two similarities counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._common.ranges import Checked, Range, positive

Values = npt.NDArray[np.float64]

#: the slopes of the thesis (section 4.3)
SLOPES = (1.0, 5.0, 10.0, 50.0, 100.0, 1000.0)


class Transfer(Checked):
    """Base of the transfer functions: antisymmetric, f(-t) = -f(t), and bounded."""

    def __call__(self, t: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Ramp(Transfer):
    """clip(slope t, -1, 1): the identity for slope 1 and |t| <= 1, the sign as the slope grows.

    Parameters
    ----------
    slope : float > 0, default=1.0

    Examples
    --------
    >>> from gristmill.similarity import Ramp
    >>> float(Ramp(slope=5.0)(0.1))
    0.5
    """

    slope: float = 1.0

    _ranges: ClassVar[dict[str, Range]] = {"slope": positive}

    def __call__(self, t: Any) -> Any:
        return np.clip(self.slope * np.asarray(t, dtype=np.float64), -1.0, 1.0)


@dataclass(frozen=True)
class Identity(Transfer):
    """t itself: the pairs of Balcan and Blum.

    Examples
    --------
    >>> from gristmill.similarity import Identity
    >>> float(Identity()(0.25))
    0.25
    """

    def __call__(self, t: Any) -> Any:
        return np.asarray(t, dtype=np.float64)


@dataclass(frozen=True)
class Sign(Transfer):
    """-1, 0 or 1: the stumps of Wang, Yang and Feng.

    Examples
    --------
    >>> from gristmill.similarity import Sign
    >>> float(Sign()(-0.25))
    -1.0
    """

    def __call__(self, t: Any) -> Any:
        return np.sign(np.asarray(t, dtype=np.float64))


def family(transfer: Any, slopes: Any) -> list[Callable[[Any], Any]]:
    """The transfer functions that a parameter means: one, or those to choose among."""
    ramps = [Ramp(float(slope)) for slope in sorted(slopes)]  # refused here if they are none
    if isinstance(transfer, str):
        named: dict[str, Transfer] = {"identity": Identity(), "sign": Sign()}
        if transfer == "tune":
            return [*ramps]
        if transfer not in named:
            raise ValueError(
                "transfer must be 'tune', 'identity', 'sign', 'boost', a function f(t) with f(-t) = -f(t), "
                f"or a list of such functions, got {transfer!r}"
            )
        return [named[transfer]]
    members = list(transfer) if isinstance(transfer, list | tuple) else [transfer]
    if not members or not all(callable(member) and not isinstance(member, type) for member in members):
        raise TypeError(f"transfer must be a function f(t) of a difference, or a list of such, got {transfer!r}")
    return members


def apply(function: Callable[[Any], Any], differences: Values) -> Values:
    """f of each difference; a function of the user's is held to what a transfer function must be."""
    values = function(differences)
    if isinstance(function, Transfer):
        return np.asarray(values, dtype=np.float64)
    values = np.asarray(values)
    if values.shape != differences.shape or not np.issubdtype(values.dtype, np.number):
        raise ValueError(f"the transfer function {_name(function)} must map an array to one of the same shape")
    if not np.isfinite(values).all():
        where = differences[~np.isfinite(values)].flat[0]
        raise ValueError(f"the transfer function {_name(function)} is not finite at {where}")
    return values.astype(np.float64)


def check_antisymmetric(function: Callable[[Any], Any], differences: Values) -> None:
    """Refuse a function that is not antisymmetric, on a grid and on the training values."""
    if isinstance(function, Transfer):
        return
    met = np.unique(differences)
    grid = np.concatenate([np.linspace(0.0, 2.0, 41), met[:: max(1, len(met) // 200)]])
    forth, back = apply(function, grid), apply(function, -grid)
    wrong = np.flatnonzero(np.abs(forth + back) > 1e-9 * np.maximum(1.0, np.abs(forth)))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"the transfer function {_name(function)} is not antisymmetric: f({grid[at]:g}) = {forth[at]:g} "
            f"and f({-grid[at]:g}) = {back[at]:g}; f(-t) = -f(t) is needed, such as Ramp(10.0)"
        )


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
