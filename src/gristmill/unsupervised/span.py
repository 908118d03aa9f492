"""The span of stored points in the RKHS: coefficients of projections, and points that enter and leave.

phi(x) is projected to sum_j c_j phi(d_j) with c = K^-1 k(x), where K is the Gram matrix of the stored points d_j. K^-1 is
kept and updated, at a cost of m^2 for a point that enters or leaves, and recomputed after every `_RENEW` of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

Floats = npt.NDArray[np.float64]

_RENEW = 16
#: a sample whose squared distance from the span is a smaller share of k(x, x) is projected, so that K stays invertible
DEPENDENT = 1e-4


class Span:
    """Stored points, oldest first, with their Gram matrix and its inverse. Methods make a new span and change none."""

    def __init__(self, points: Floats, ids: npt.NDArray[np.int64], gram: Floats, inverse: Floats, changes: int) -> None:
        self.points, self.ids, self.gram, self.inverse, self.changes = points, ids, gram, inverse, changes

    @classmethod
    def empty(cls, width: int) -> Span:
        square = np.empty((0, 0))
        return cls(np.empty((0, width)), np.empty(0, dtype=np.int64), square, square, 0)

    def __len__(self) -> int:
        return len(self.ids)

    def coefficients(self, row: Floats) -> Floats:
        """Of the projection of a point with these kernel values."""
        return np.asarray(self.inverse @ row)

    def grown(self, x: Floats, at: int, row: Floats, self_value: float, coefficients: Floats, rest: float) -> Span:
        """With one point more; rest: its squared distance from the span."""
        m = len(self)
        gram, inverse = np.empty((m + 1, m + 1)), np.empty((m + 1, m + 1))
        gram[:m, :m], gram[m, :m], gram[:m, m], gram[m, m] = self.gram, row, row, self_value
        inverse[:m, :m] = self.inverse + np.outer(coefficients, coefficients / rest)
        inverse[m, :m] = inverse[:m, m] = -coefficients / rest
        inverse[m, m] = 1 / rest
        return Span(
            np.concatenate([self.points, x[None]]), np.append(self.ids, at), gram, inverse, self.changes + 1
        )._renewed()

    def without(self, place: int) -> Span:
        """With one point less."""
        stay = np.delete(np.arange(len(self)), place)
        beside = self.inverse[stay, place]
        inverse = self.inverse[np.ix_(stay, stay)] - np.outer(beside, beside / self.inverse[place, place])
        gram = np.ascontiguousarray(self.gram[np.ix_(stay, stay)])
        return Span(self.points[stay], self.ids[stay], gram, inverse, self.changes)

    def _renewed(self) -> Span:
        if self.changes % _RENEW == 0:
            self.inverse = np.ascontiguousarray(cho_solve(cho_factor(self.gram), np.eye(len(self))))
            self.inverse = (self.inverse + self.inverse.T) / 2
        return self

    def distances(self) -> Floats:
        """Squared distance of each stored point from the span of the others."""
        return np.asarray(1 / np.diag(self.inverse))

    def root(self) -> Floats:
        """Lower L with K = L L^T: L^T c are the coordinates of sum_j c_j phi(d_j) in an orthonormal basis."""
        return np.asarray(np.linalg.cholesky(self.gram))

    def nbytes(self) -> int:
        return self.points.nbytes + self.ids.nbytes + self.gram.nbytes + self.inverse.nbytes


def moved(vector: Floats, place: int, onto: Floats) -> Floats:
    """Coefficients (in the last axis) after the point at `place` has left and another one has entered at the end.

    onto: coefficients of the projection of the point that left.
    """
    rest = np.concatenate([np.delete(vector, place, axis=-1), np.zeros((*vector.shape[:-1], 1))], axis=-1)
    return np.asarray(rest + vector[..., place, None] * onto)
