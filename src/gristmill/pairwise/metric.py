"""A Mahalanobis metric learned from a stream of labelled events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._common.ranges import one_of
from .._common.types import RandomState, Table
from ._base import Array
from ._matrix import MatrixStreamLearner


class PairwiseMetric(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MatrixStreamLearner,
):
    """Online metric learning: events of one class shall be near, others at a squared distance of 2 or more.

    M(x, x') = (x - x')^T W (x - x') with W symmetric and without negative eigenvalues. The loss of a pair is
    phi(1 - M) for one class, phi(M - 1) for two; it is convex in W. Each event takes one step over its pairs
    with the buffer; eigenvalues are computed only where a step may have left the cone.

    Parameters
    ----------
    loss : Hinge, SquaredHinge, Logistic or ExponentialLoss, default=Hinge()
    buffer : buffer, default=ReservoirX(50)
    rate : float > 0, default=1.0
        eta; the step at event t is rate/sqrt(t), or rate/(reg t) with `reg`.
    radius : float > 0 or None, default=None
        Bound on the norm of W.
    norm : {"frobenius", "group", "l1", "trace"}, default="frobenius"
        (2,2), (2,1), (1,1) or trace norm; the last gives low rank, the two before it drop features.
    average : bool, default=False
        Use the mean of all W, as the theory does.
    random_state : int, Generator, RandomState or None
    reg : float >= 0, default=0.0
        sigma: adds reg/2 |W|^2 to the loss, with its faster rate.
    init : {"identity", "zero"}, default="identity"
        Where W starts. With the identity it helps to scale the data so that squared distances are about 2;
        zero finds the scale by itself, but sees only the directions it has learned.

    Attributes
    ----------
    metric_ : array of shape (n_features, n_features)
        W.
    components_ : array of shape (n_features, n_features)
        L with W = L^T L; `transform` is X L^T, directions of the largest eigenvalues first.
    buffer_ids_, n_seen_, n_pairs_, n_projections_, memory_bytes_, classes_

    References
    ----------
    P. Kar, Topics in Resource-efficient Kernel Learning, 2013, section 6.6.3 (with M where M^2 is printed);
    R. Jin, S. Wang, Y. Zhou, Regularized Distance Metric Learning, NIPS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from gristmill import PairwiseMetric
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> clusters = rng.normal(size=(600, 2)) + 3 * np.eye(3)[y][:, :2]
    >>> X = np.hstack([clusters, 2 * rng.normal(size=(600, 10))]) / 5
    >>> metric = PairwiseMetric(random_state=0).fit(X[:300], y[:300])
    >>> def accuracy(Z):
    ...     return KNeighborsClassifier(3).fit(Z[:300], y[:300]).score(Z[300:], y[300:])
    >>> print(f"{accuracy(X):.3f} before, {accuracy(metric.transform(X)):.3f} after")
    0.757 before, 0.880 after
    """

    _form = "metric"

    def __init__(
        self,
        loss: object = None,
        buffer: object = None,
        rate: float = 1.0,
        radius: float | None = None,
        norm: str = "frobenius",
        average: bool = False,
        random_state: RandomState = None,
        reg: float = 0.0,
        init: str = "identity",
    ) -> None:
        self.loss = loss
        self.buffer = buffer
        self.rate = rate
        self.radius = radius
        self.norm = norm
        self.average = average
        self.random_state = random_state
        self.reg = reg
        self.init = init

    def _settings(self) -> tuple[str, bool, bool]:
        return "metric", True, self._check_range("init", one_of("zero", "identity")) == "identity"

    @property
    def metric_(self) -> Array:
        """W."""
        return np.asarray(self._engine.matrix())

    def get_mahalanobis_matrix(self) -> Array:
        """W; the name is that of metric-learn."""
        return self.metric_

    @property
    def components_(self) -> Array:
        """L with W = L^T L, rows by falling eigenvalue."""
        values, vectors = np.linalg.eigh(self.metric_)
        order = np.argsort(values)[::-1]
        return np.asarray(np.sqrt(np.maximum(values[order], 0.0))[:, None] * vectors[:, order].T)

    @property
    def _n_features_out(self) -> int:
        return int(self._engine.width)

    def transform(self, X: Table) -> Array:
        """X L^T: Euclidean distances there are the learned ones here."""
        rows = self._table(X)
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(f"Input X contains NaN or infinity: row {row}, column {column} is {rows[row, column]}")
        return np.asarray(rows @ self.components_.T)

    def pair_distance(self, pairs: object) -> Array:
        """sqrt(M(x, x')) of each pair, an array of shape (n_pairs, 2, n_features)."""
        left, right = self._pairs(pairs)
        difference = left - right
        squares = np.einsum("ij,jk,ik->i", difference, self.metric_, difference)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def pair_score(self, pairs: object) -> Array:
        """Minus the distance: higher is more similar."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[npt.ArrayLike, npt.ArrayLike], float]:
        """The distance of two vectors as a function, for `KNeighborsClassifier(metric=...)` and the like."""
        matrix = self.metric_

        def distance(u: npt.ArrayLike, v: npt.ArrayLike, squared: bool = False) -> float:
            difference = np.asarray(u, dtype=float) - np.asarray(v, dtype=float)
            value = max(float(difference @ matrix @ difference), 0.0)
            return value if squared else float(np.sqrt(value))

        return distance
