"""A bilinear similarity learned from a stream of labelled events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._common.ranges import flag, one_of
from .._common.types import RandomState, Table
from ._base import Array
from ._matrix import MatrixStreamLearner


class PairwiseSimilarity(MatrixStreamLearner):
    """Online similarity learning: K(x, x') = x^T W x' shall be high for events of one class and low for two.

    Parameters
    ----------
    loss : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()
        phi.
    buffer : buffer, default=ReservoirX(50)
    rate : float > 0, default=0.1
        eta; the step at event t is rate/sqrt(t), or rate/(reg t) with `reg`.
    radius : float > 0 or None, default=None
        Bound on the norm of W.
    norm : {"frobenius", "group", "l1", "trace"}, default="frobenius"
        (2,2), (2,1), (1,1) or trace norm.
    psd : bool, default=False
        Keep W symmetric and without negative eigenvalues, so that K is a kernel.
    goal : {"alignment", "goodness"}, default="alignment"
        The mean over the buffer of phi(s K), s = +1 for one class and -1 for two; or phi of the mean of s K,
        which asks only that an event be right on average (S-goodness; outside the theorems, and never above
        the alignment loss).
    average : bool, default=False
    random_state : int, Generator, RandomState or None
    reg : float >= 0, default=0.0
        sigma: adds reg/2 |W|^2 to the loss, with its faster rate.
    init : {"zero", "identity"}, default="zero"

    Attributes
    ----------
    matrix_ : array of shape (n_features, n_features)
        W.
    buffer_ids_, n_seen_, n_pairs_, n_projections_, memory_bytes_, classes_

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 6.6.3;
    A. Bellet, A. Habrard, M. Sebban, Similarity Learning for Provably Accurate Sparse Linear Classification,
    ICML 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import PairwiseSimilarity
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=500)
    >>> X = rng.normal(size=(500, 3)) + np.outer(2 * y - 1, [2.0, 0.0, 0.0])
    >>> model = PairwiseSimilarity(psd=True, random_state=0).fit(X, y)
    >>> K = model.similarity(X)
    >>> print(f"{(np.sign(K) == np.where(y[:, None] == y, 1, -1)).mean():.3f}")
    0.957
    """

    _form = "similarity"

    def __init__(
        self,
        loss: object = None,
        buffer: object = None,
        rate: float = 0.1,
        radius: float | None = None,
        norm: str = "frobenius",
        psd: bool = False,
        goal: str = "alignment",
        average: bool = False,
        random_state: RandomState = None,
        reg: float = 0.0,
        init: str = "zero",
    ) -> None:
        self.loss = loss
        self.buffer = buffer
        self.rate = rate
        self.radius = radius
        self.norm = norm
        self.psd = psd
        self.goal = goal
        self.average = average
        self.random_state = random_state
        self.reg = reg
        self.init = init

    def _settings(self) -> tuple[str, bool, bool]:
        goal = self._check_range("goal", one_of("alignment", "goodness"))
        identity = self._check_range("init", one_of("zero", "identity")) == "identity"
        return goal, bool(self._check_range("psd", flag)), identity

    @property
    def matrix_(self) -> Array:
        """W."""
        return np.asarray(self._engine.matrix())

    def similarity(self, X: Table, Y: Table | None = None) -> Array:
        """The matrix of x^T W y over the rows of X and of Y (or of X)."""
        left = self._table(X)
        right = left if Y is None else self._table(Y)
        return np.asarray(left @ self.matrix_ @ right.T)

    def pair_score(self, pairs: object) -> Array:
        """x^T W x' of each pair, an array of shape (n_pairs, 2, n_features)."""
        left, right = self._pairs(pairs)
        return np.asarray(np.einsum("ij,jk,ik->i", left, self.matrix_, right))

    def get_similarity(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """x^T W y of two vectors as a function, for the learners here that take any similarity."""
        matrix = self.matrix_

        def similarity(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
            return float(np.asarray(x, dtype=float) @ matrix @ np.asarray(y, dtype=float))

        return similarity
