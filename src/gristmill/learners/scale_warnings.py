"""Warnings about badly scaled columns, raised once after the first hundred samples of a kernel learner."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

EVENTS = 100
NARROW, WIDE = 0.1, 10.0  #: spreads that a kernel or a rule can work with
FAR = 10.0  #: spreads that a mean may be off


class ScaleWarnings:
    """Sums over the first hundred events, from the first of them on: in any cut they come to the same.

    Parameters
    ----------
    columns : whether to check the columns
    targets : whether the targets are
    """

    def __init__(self, columns: bool, targets: bool) -> None:
        self._looks = columns, targets
        self.moved = False  #: whether a target was not 0
        self._seen = 0
        self._sums: dict[str, Any] = {}

    def take(self, X: Any, targets: npt.NDArray[np.float64]) -> bool:
        """More events; whether there have been a hundred now."""
        fresh = slice(0, EVENTS - self._seen)
        known = self._sums.get("columns")
        if self._looks[0] and (hasattr(X, "tocsr") or (known is not None and len(known[0]) != X.shape[1])):
            self._looks = False, self._looks[1]  # sparse rows and late columns need no warning
            self._sums = {what: sums for what, sums in self._sums.items() if what != "columns"}
        if self._looks[0]:
            self._add("columns", np.asarray(X[fresh], dtype=np.float64))
        if self._looks[1]:
            self._add("targets", np.asarray(targets[fresh], dtype=np.float64).reshape(len(targets[fresh]), -1))
        self.moved = self.moved or bool(targets[fresh].any())
        self._seen = min(EVENTS, self._seen + len(targets))
        return self._seen == EVENTS

    def _add(self, what: str, rows: npt.NDArray[np.float64]) -> None:
        first, sums, squares = self._sums.get(what, (rows[0].copy(), 0.0, 0.0))
        if what in self._sums or len(rows) > 1:  # the first row of all is 0 from itself
            with np.errstate(over="ignore", invalid="ignore"):  # bad rows are refused by the core; then this is dropped
                rows = rows - first  # a large mean must not drown a small spread
                # For single samples a sum per row would cost more than learning it.
                sums = sums + (rows[0] if len(rows) == 1 else rows.sum(axis=0))
                squares = squares + (rows[0] * rows[0] if len(rows) == 1 else (rows * rows).sum(axis=0))
        self._sums = {**self._sums, what: (first, sums, squares)}  # a copy of the whole keeps what it had

    def copied(self) -> ScaleWarnings:
        """What it has by now, to go on with or to drop."""
        other = ScaleWarnings(*self._looks)
        other.moved, other._seen, other._sums = self.moved, self._seen, self._sums
        return other

    def _found(self, what: str) -> tuple[int, str] | None:
        """The first column that is out of range, and what is wrong with it."""
        if what not in self._sums:
            return None
        first, sums, squares = self._sums[what]
        with np.errstate(over="ignore", invalid="ignore"):
            mean = first + sums / EVENTS
            spread = np.sqrt(np.maximum(squares - sums * sums / EVENTS, 0.0) / (EVENTS - 1))
            # Rounding: an indicator that is set once in a hundred has a spread of just 0.1.
            odd = (spread < NARROW * (1 - 1e-9)) | ~(spread <= WIDE) | (np.abs(mean) > FAR * spread)
        odd &= spread > 0  # a constant column is harmless
        if not odd.any():
            return None
        at = int(odd.argmax())
        return at, f"a mean of {mean[at]:.4g} and a spread of {spread[at]:.4g}"

    def warn(self, owner: str, names: Any) -> None:
        """Warn and recommend a scaler."""
        column, target = self._found("columns"), self._found("targets")
        if column is not None:
            at, what = column
            name = f"column {at}" if names is None else f"column {names[at]!r}"
            _say(
                f"{owner}: {name} has {what} in the first {EVENTS} events, but distances need columns of about unit "
                f"spread; Prepared({owner}(...)) scales columns as it learns"
            )
        if target is not None:
            _say(
                f"{owner}: the target has {target[1]} in the first {EVENTS} events, but steps need targets around 0 of "
                f"about unit spread; Prepared({owner}(...)) scales columns and targets as it learns"
            )


def warn_that_nothing_is_stored(owner: str, rule: object) -> None:
    """A regressor that has learned nothing from a hundred events."""
    epsilon = getattr(rule, "epsilon", None)
    why = "" if epsilon is None else f": every target lay within epsilon={epsilon!r} of it; take a smaller one"
    _say(
        f"{owner} stores nothing after {EVENTS} events, so that every prediction is the same{why}; {rule!r} made no step"
    )


def _say(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)
