"""Ranking the documents of a query by similarities to landmarks."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._common.ranges import Range, one_of, positive
from .._common.types import Labels, RandomState, Table
from .model import OTHERS, SHARED, LinearLandmarkModel, all_or_nothing, check_same_length
from .regression import real_targets
from .solvers.gains import gains_of, groups_of, ndcg, normalised

Values = npt.NDArray[np.float64]


class LandmarkRanker(LinearLandmarkModel):
    __doc__ = f"""A ranker over similarities to landmarks: squared loss on each query's normalised gains.

    An object is a document together with its query. The normalised gain of a document is (2^r - 1) over the
    best discounted sum of its query, so that a small loss means an NDCG near 1.

    Parameters
    ----------
    {SHARED}
    n_landmarks : int >= 1, default=100
        d in the thesis; where there are fewer objects, each of them becomes a landmark.
    C : float > 0, default=1.0
        Weight of the squared loss against |w|^2 / 2.
    gain : {{"exponential", "linear"}}, default="exponential"
        G(r) = 2^r - 1, or r where relevances are large or not graded.
    selection : {{"random", "diverse"}} or positions, default="random"
    {OTHERS}

    Attributes
    ----------
    landmarks_, landmark_indices_, coef_, intercept_, scale_, n_evaluations_ : as `LandmarkRegressor`

    References
    ----------
    P. Ravikumar, A. Tewari, E. Yang, On NDCG Consistency of Listwise Ranking Methods, AISTATS 2011.
    P. Kar, P. Jain, Supervised Learning with Similarity Functions, NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian, LandmarkRanker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 3)), np.repeat(np.arange(30), 20)
    >>> r = np.clip(np.round(2 - np.abs(X[:, 0])), 0, None)
    >>> train = qid < 20
    >>> model = LandmarkRanker(Gaussian(0.5), n_landmarks=50, random_state=0)
    >>> model = model.fit(X[train], r[train], qid=qid[train])
    >>> print(f"NDCG {{model.score(X[~train], r[~train], qid=qid[~train]):.2f}}")
    NDCG 0.99
    """

    _ranges: ClassVar[dict[str, Range]] = {"C": positive, "gain": one_of("exponential", "linear")}

    def __init__(
        self,
        similarity: object = None,
        n_landmarks: int = 100,
        C: float = 1.0,
        gain: str = "exponential",
        selection: object = "random",
        distance: bool = False,
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.similarity = similarity
        self.n_landmarks = n_landmarks
        self.C = C
        self.gain = gain
        self.selection = selection
        self.distance = distance
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Table, y: Labels, qid: object = None) -> Self:
        """Learn from documents X with relevances y.

        Parameters
        ----------
        X : documents with their queries
        y : relevances, numbers >= 0
        qid : the query of each document, in any order; without it all belong to one query
            A query of a single document says nothing about order and is passed over.
        """
        from sklearn.linear_model import Ridge

        rng, X = self._reset(X)
        relevances = self._relevances(X, y)
        groups = self._groups(qid, len(relevances))
        gains = gains_of(relevances, self.gain)
        targets = np.zeros(len(gains))
        for rows in groups:
            targets[rows] = normalised(gains[rows])
        used = np.sort(np.concatenate(groups))
        positions, values, scale = self._compared(X, rng)
        # |w|^2 / 2 + C sum of squares is ridge regression with alpha = 1 / (2 C)
        machine = Ridge(alpha=0.5 / self.C).fit(values[used], targets[used])
        self.coef_, self.intercept_ = machine.coef_[None, :], np.array([float(machine.intercept_)])
        self._keep(X, positions, scale)
        return self

    def _relevances(self, X: Table, y: Labels) -> Values:
        relevances = real_targets(type(self).__name__, X, y)
        if (relevances < 0).any():
            row = int(np.flatnonzero(relevances < 0)[0])
            raise ValueError(f"relevances must be numbers >= 0, and y[{row}] is {relevances[row]}")
        if self.gain == "exponential" and relevances.max() > 1000:
            raise ValueError(f"the gain 2^r - 1 of the relevance {relevances.max()} is too large; use gain='linear'")
        return relevances

    @staticmethod
    def _groups(qid: Any, count: int) -> list[npt.NDArray[np.int64]]:
        if qid is not None:
            if np.ndim(qid) != 1:
                raise ValueError(f"qid must be one query identifier a document, got {np.ndim(qid)} dimensions")
            check_same_length(np.empty((count, 1)), qid)
        groups = [rows for rows in groups_of(qid, count) if len(rows) > 1]
        if not groups:
            raise ValueError(
                "every query group has a single document (n_samples=1 each): there is no order to learn from"
            )
        return groups

    def predict(self, X: Table) -> Values:
        """A score for each document; within a query the higher comes first."""
        return self._linear(X)

    def score(self, X: Table, y: Labels, qid: object = None) -> float:
        """The mean NDCG over the queries of two documents or more, by scikit-learn's `ndcg_score`."""
        scores = self.predict(X)
        relevances = self._relevances(scores, y)
        found = [
            ndcg(relevances[rows], scores[rows], self.gain, ties="average") for rows in self._groups(qid, len(scores))
        ]
        return float(np.mean(found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
