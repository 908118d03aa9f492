"""Gains of ranked documents: the normalised target of a ranker, and NDCG."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


def gains_of(relevances: object, gain: str) -> Values:
    """2^r - 1, or r itself."""
    r = np.asarray(relevances, dtype=np.float64)
    return np.exp2(r) - 1.0 if gain == "exponential" else r


def ideal(gains: Values) -> float:
    """The discounted sum of the gains in their best order, ||G||_D."""
    return float(np.sort(gains)[::-1] @ (1.0 / np.log2(np.arange(len(gains)) + 2.0)))


def normalised(gains: Values) -> Values:
    """eta(r) = G / ||G||_D; zeros where nothing is relevant."""
    best = ideal(gains)
    return gains / best if best > 0 else np.zeros_like(gains)


def ndcg(relevances: object, scores: object, gain: str = "exponential", ties: str = "stable") -> float:
    """Normalised discounted cumulative gain of one query: 1 for the best order, 0 where nothing is relevant.

    Parameters
    ----------
    relevances : numbers >= 0, one a document
    scores : numbers, one a document
    gain : {"exponential", "linear"}
        G(r) = 2^r - 1 or r.
    ties : {"stable", "average"}
        Equal scores in the order given, or the mean over their orders, as scikit-learn does.

    Examples
    --------
    >>> from gristmill.similarity.solvers.gains import ndcg
    >>> round(ndcg([2, 0, 1], [0.1, 0.3, 0.2]), 4)
    0.5869
    """
    gains, scores = gains_of(relevances, gain), np.asarray(scores, dtype=np.float64)
    if ties == "average":
        from sklearn.metrics import ndcg_score

        return float(ndcg_score(gains[None, :], scores[None, :]))
    best = ideal(gains)
    order = np.argsort(-scores, kind="stable")
    return float(gains[order] @ (1.0 / np.log2(np.arange(len(gains)) + 2.0))) / best if best > 0 else 0.0


def groups_of(qid: object, count: int) -> Iterator[npt.NDArray[np.int64]]:
    """The rows of each query, whatever their order; one query where no qid is given."""
    if qid is None:
        yield np.arange(count)
        return
    _, codes = np.unique(np.asarray(qid), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
