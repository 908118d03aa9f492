"""Columns weighed by how much they move the answer: the scaling behind `Prepared(scale="relevance")`.

Columns are standardised on the way and multiplied by weights. At positions of the stream that double, the gradient of what
has been learned says how much each column moves it (the diagonal of the average gradient outer product); the weights follow,
the stored points are rescaled in place and their coefficients relearned. Between those positions nothing changes, so that
a renewal, whose Gram matrix (8 bytes a pair of stored points) is there for a moment, happens a dozen times in a life.
Columns of the rows that are made of one column of the table (values of a category, circles of a time) share a weight.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base.estimator import core_of
from .._common.positions import next_double
from .._common.types import Fields, FileFields, Fitted
from .rank import RankScaler, united
from .scaling import StreamScaler

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

FIRST = 500  #: events before the first renewal; each later one waits for as many again
POINTS = 256  #: stored points that the gradient is taken at; half with many outputs
SPREAD = 128  #: of these, whose median distance is kept: there are 8,128 pairs
PASSES = 3
LEAST = 0.05  #: of the largest weight: none is smaller
WIDEST = 1024  #: columns of sparse rows that may have weights: a weighed row is written out
STEADY = 0.02  #: of the squared weights would go to other columns, for 1,000 stored points: less is not worth the time,
#: which grows with the square of the points, and so does this, up to
STEADIEST = 0.1
MOST = 4096  #: stored points that are learned again: their kernel values take 8 bytes a pair, 134 MB, for a moment
SLACK = (
    0.1  #: relative increase of errors on the stored points that is accepted with new weights: a few errors are chance
)


@dataclasses.dataclass(frozen=True)
class Renewal:
    """What was found at one position of the stream."""

    position: int
    shares: Floats  #: of the mean square of the gradient by each column; they add up to 1
    taken: bool  #: whether the new weights were accepted: they differ, and errors on the stored points did not increase


class RelevanceScaler:
    """Standardised columns times weights that are learned: what `Prepared` puts between its table and its learner."""

    def __init__(self, warmup: int | None = None, position: int | None = None, by_rank: bool = False) -> None:
        self.standard: StreamScaler = RankScaler(warmup) if by_rank else StreamScaler("standard", warmup)
        self.weights: Floats = np.empty(0)  # of the columns of the rows; one that comes later begins with 1
        self.history: tuple[Renewal, ...] = ()
        self.position = position  # in the stream; None: as far as the standardising is

    # ---- as a scaling --------------------------------------------------------------------------------------

    @property
    def n_seen_(self) -> int:
        return self.standard.n_seen_ if self.position is None else self.position

    @property
    def n_features_in_(self) -> int:
        return len(self.weights)

    @property
    def memory_bytes(self) -> int:
        return self.standard.memory_bytes + 8 * len(self.weights) * (1 + len(self.history))

    def widen(self, width: int, owners: Places | None = None) -> None:
        """Rows have so many columns from now on; those that are made of one and the same column have one weight."""
        known = len(self.weights)
        if width == known:
            return
        fresh = np.ones(width - known)
        if owners is not None:
            by_owner = dict(zip(owners[:known].tolist(), self.weights.tolist(), strict=True))
            found = [by_owner.get(owner, 1.0) for owner in owners[known:width].tolist()]
            fresh[: len(found)] = found  # a row of missing values only has one column, which belongs to no input column
        self.weights = np.append(self.weights, fresh)

    def weighed_rows(self, rows: Any) -> Floats:
        """Standardised rows times the weights."""
        if hasattr(rows, "tocsr"):
            if rows.shape[1] > WIDEST:
                raise TypeError(
                    f'Prepared: scale="relevance" weighs sparse rows of at most {WIDEST:,} columns, and these (texts are '
                    f'sparse, too) have {rows.shape[1]:,}; use scale="standard"'
                )
            rows = rows.toarray()
        return np.asarray(rows * self.weights)

    def snapshot(self) -> Any:
        return self.standard.snapshot(), self.weights, self.history, self.position

    def rollback(self, mark: Any) -> None:
        standard, self.weights, self.history, self.position = mark
        self.standard.rollback(standard)

    # ---- relevance -----------------------------------------------------------------------------------------

    def due(self) -> int:
        """Events until the next renewal, which comes right after the last of them."""
        return next_double(FIRST, self.n_seen_) - self.n_seen_

    def renewals(self, count: int) -> set[int]:
        """After how many of the next events weights are renewed."""
        found, position = set(), self.n_seen_ + self.due()
        while position <= self.n_seen_ + count:
            found.add(position - self.n_seen_)
            position *= 2
        return found

    @property
    def shares(self) -> Floats:
        """How much of the gradient's mean square is each column's; alike before anything is known."""
        if not self.history:
            return np.full(len(self.weights), 1 / len(self.weights))
        known = self.history[-1].shares
        return np.append(known, np.zeros(len(self.weights) - len(known)))

    def by_column(self, table: Any) -> tuple[Floats, tuple[Renewal, ...]]:
        """Shares of the columns of the table, now and at each renewal; alike before anything is known."""
        history = tuple(dataclasses.replace(found, shares=table.by_column(found.shares)) for found in self.history)
        count = table.n_features_in_
        return (history[-1].shares if history else np.full(count, 1 / count)), history

    def renew(self, model: Any, owners: Places | None = None, always: bool = False) -> None:
        """New weights from the learned function, if errors on its stored points do not increase.

        Parameters
        ----------
        model : kernel learner
        owners : array, optional
            Columns with the same number here share one weight.
        always : bool, default=False
            Also where the weights hardly change.
        """
        core, old = core_of(model), self.weights
        points, order = core.points()
        count = min(len(order), POINTS if core.outputs == 1 else POINTS // 2)
        if count < 2:
            return
        sample = np.ascontiguousarray(points[[order[place * len(order) // count] for place in range(count)]])
        shares = _shares(core.gradient(sample)[0] * old)
        if shares is None:
            return
        if owners is not None:
            shares = _levelled(shares, owners[: len(shares)])
        fresh = _weights(shares)
        least = 0.0 if always else min(STEADY * max(1.0, len(order) / 1000) ** 2, STEADIEST)
        if _moved(old, fresh) < least or len(order) > MOST:
            self.history = (*self.history, Renewal(self.n_seen_, shares, False))
            return
        spread = _Spread(model.kernel_)
        few = sample[:: -(-count // SPREAD)]
        before, after = spread(few), spread(few * (fresh / old))
        if not (before > 0 and after > 0):
            return
        fresh = fresh * (before / after)
        _, _, taken = core.relearn(fresh / old, PASSES, SLACK)
        if taken:
            self.weights = fresh
        self.history = (*self.history, Renewal(self.n_seen_, shares, taken))

    def unscaled_values(self, points: Floats) -> Floats:
        return self.standard.unscaled_values(np.ascontiguousarray(points / self.weights))

    def scaled_values(self, values: Floats) -> Floats:
        return np.asarray(self.standard.scaled_values(values) * self.weights)

    @property
    def is_affine(self) -> bool:
        return self.standard.is_affine

    def affine_map(self) -> tuple[Floats, Floats]:
        centre, slope = self.standard.affine_map()
        return centre, slope * self.weights

    @staticmethod
    def merged_of(scalers: list[RelevanceScaler], shares: Floats) -> RelevanceScaler:
        """One scaling of all that these have seen; the weights of columns are averaged."""
        merged = RelevanceScaler(scalers[0].standard.warmup)
        merged.standard = united([one.standard for one in scalers])
        merged.weights = np.asarray(shares @ np.array([one.weights for one in scalers]))
        if any(one.history for one in scalers):
            found = np.asarray(shares @ np.array([one.shares for one in scalers]))
            merged.history = (Renewal(merged.n_seen_, found, True),)
        return merged

    # ---- part of a model file ------------------------------------------------------------------------------

    def saved_fields(self) -> FileFields:
        arrays, fitted = self.standard.saved_fields() if self.standard.n_seen_ else ({}, {})
        width = len(self.weights)
        shares = np.array([np.pad(found.shares, (0, width - len(found.shares))) for found in self.history])
        fitted["renewals"] = [[found.position, found.taken, len(found.shares)] for found in self.history]
        fitted["n_seen"] = self.n_seen_
        return {**arrays, "relevance_weights": self.weights, "relevance_shares": shares.reshape(-1, width)}, fitted

    def restore_fields(self, arrays: Fields, fitted: Fitted) -> None:
        if "scaler_state" in arrays or "rank_maps" in arrays:
            self.standard.restore_fields(arrays, fitted)
        weights = np.array(arrays["relevance_weights"], dtype=np.float64)
        shares = np.array(arrays["relevance_shares"], dtype=np.float64)
        marks = [(int(position), bool(taken), int(width)) for position, taken, width in fitted["renewals"]]
        whole = np.isfinite(weights).all() and (weights > 0).all() and np.isfinite(shares).all()
        fits = weights.ndim == 1 and all(0 < width <= len(weights) for _, _, width in marks)
        if not fits or shares.shape != (len(marks), len(weights)) or not whole:
            raise ValueError("its relevance is damaged")
        self.weights = weights
        if self.position is not None:
            self.position = int(fitted["n_seen"])
        self.history = tuple(
            Renewal(position, row[:width].copy(), taken)
            for (position, taken, width), row in zip(marks, shares, strict=True)
        )


def _shares(gradient: Floats) -> Floats | None:
    """Shares of the columns in the mean square of (points, outputs, columns); None where there is nothing to share."""
    squares = gradient.reshape(-1, gradient.shape[-1])
    # Row after row, then exactly: the order does not depend on the machine.
    by_column = np.add.reduce(squares * squares, axis=0)
    total = math.fsum(by_column)
    return by_column / total if 0 < total < math.inf else None


def _levelled(shares: Floats, owners: Places) -> Floats:
    """Columns of one owner have the mean of what they had."""
    return np.asarray((np.bincount(owners, shares) / np.maximum(np.bincount(owners), 1))[owners])


def _weights(shares: Floats) -> Floats:
    """The root of shares that are tempered, so that a drift finds no column gone: share^(11/16), by roots alone.

    A root is rounded alike on every machine; a power is not.
    """
    half = np.sqrt(len(shares) * shares)
    eighth = np.sqrt(np.sqrt(half))
    weights = np.sqrt(half * eighth * np.sqrt(eighth))
    return np.maximum(weights, LEAST * weights.max())


def _moved(old: Floats, fresh: Floats) -> float:
    """Which share of the squared weights has gone to other columns."""
    before, after = old * old, fresh * fresh
    return 0.5 * math.fsum(np.abs(before / math.fsum(before) - after / math.fsum(after)))


class _Spread:
    """The median distance of points, as their kernel measures it: by coordinates, or straight."""

    def __init__(self, kernel: Any) -> None:
        from ..kernels import Manhattan, SquaredEuclidean

        self.by_coordinates = any(node[0] in ("laplacian", "manhattan") for node in kernel.kernel_program())
        self._distance = Manhattan() if self.by_coordinates else SquaredEuclidean()

    def __call__(self, points: Floats) -> float:
        pairs = -self._distance(points, points)[np.tri(len(points), k=-1, dtype=bool)]
        middle = (len(pairs) - 1) // 2, len(pairs) // 2
        few = np.partition(pairs, middle)
        median = float(0.5 * (few[middle[0]] + few[middle[1]]))
        return median if self.by_coordinates else math.sqrt(max(median, 0.0))
