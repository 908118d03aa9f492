"""Clusters of a stream in the space of a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._common.types import Labels, RandomState
from ..budgets import Budget
from ..kernels import Kernel
from .base import ATTRIBUTES, PARAMETERS, UnsupervisedLearner
from .core import Groups, Learned, Settings
from .span import Floats


class _Clusters(NamedTuple):
    coefficients: Floats  #: of each centre (column) over the stored points
    norms: Floats  #: squared norm of each centre
    weights: Floats  #: samples of each cluster
    inertia: float


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedLearner):
    __doc__ = f"""Kernel k-means of a stream, in bounded memory.

    The samples nearest to a stored point in the RKHS are a group, of which number and sum are kept, as coefficients over
    the stored points. The clusters are those of k-means over the means of the groups, weighted by their numbers, computed
    when they are asked for; with n stored points for n samples this is batch kernel k-means. A sample costs m^2 operations
    with m stored points. Memory is 3 m^2 numbers. Labels of learned samples are not kept: there is no `labels_`.

    Parameters
    ----------
    n_clusters : int from 1 to 10,000, default=8
        Fewer where fewer points are stored.
    {PARAMETERS}
    random_state : int, Generator, RandomState or None
        Seeds the ten starts of k-means, of which the best counts.

    Attributes
    ----------
    inertia_ : sum of squared distances in the RKHS of all samples to the centre of the cluster of their group
    dual_coef_ : coefficients of the centres, a row a stored point; the cluster of the oldest stored point is the first
    {ATTRIBUTES}

    References
    ----------
    I. S. Dhillon, Y. Guan, B. Kulis, Kernel k-means, Spectral Clustering and Normalized Cuts, KDD 2004.
    T. Zhang, R. Ramakrishnan, M. Livny, BIRCH, SIGMOD 1996 (numbers and sums of groups).

    Examples
    --------
    >>> import numpy as np
    >>> from gristmill import Gaussian
    >>> from gristmill.budgets import Merge
    >>> from gristmill.unsupervised import KernelKMeans
    >>> rng = np.random.default_rng(0)
    >>> ring = np.arange(400) % 2  # a disc inside of a ring
    >>> angle = rng.uniform(0, 2 * np.pi, size=400)
    >>> X = np.where(ring, 3.0, rng.random(400))[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    >>> found = KernelKMeans(2, Gaussian(0.5), Merge(40), random_state=0).fit_predict(X)
    >>> [int((found[ring == part] == found[part]).sum()) for part in (0, 1)]
    [200, 200]
    """

    _statistics = Groups
    _count = "n_clusters"

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Kernel | None = None,
        budget: Budget | None = None,
        decay: float = 1.0,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.budget = budget
        self.decay = decay
        self.random_state = random_state

    def _solve(self, parts: Settings, learned: Learned) -> _Clusters:
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        span, groups = learned.span, learned.statistics.arrays
        counts, sums = groups["counts"], groups["sums"]
        used = np.flatnonzero(counts > 0)
        if not len(used):
            return _Clusters(np.zeros((len(span), 1)), np.zeros(1), np.zeros(1), 0.0)
        root = span.root()
        means = (sums[used] / counts[used, None]) @ root
        number = min(parts.number, len(np.unique(means, axis=0)))
        seed = parts.seed % 2**32
        with threadpool_limits(1):  # sums in one order
            start = KMeans(number, n_init=10, random_state=seed).fit(means, sample_weight=counts[used])
        labels = start.labels_
        order = list(dict.fromkeys(labels.tolist()))  # by the oldest stored point
        chosen = [labels == cluster for cluster in order]
        weights = np.array([counts[used][rows].sum() for rows in chosen])
        centres = np.array([counts[used][rows] @ means[rows] for rows in chosen]) / weights[:, None]
        norms = (centres**2).sum(axis=1)
        inertia = float(groups["weight"][1] - weights @ norms)
        return _Clusters(solve_triangular(root.T, centres.T), norms, weights, max(inertia, 0.0))

    def transform(self, X: Any) -> Floats:
        """Distance in the RKHS of each row to each centre; `n_clusters` columns, infinite where there is none."""
        found, squares = self._squares(X)
        distances = np.full((len(squares), int(self._started().parts.number)), np.inf)
        distances[:, : len(found.norms)] = np.sqrt(np.maximum(squares, 0.0))
        return distances

    def _squares(self, X: Any) -> tuple[_Clusters, Floats]:
        learned, found = self._derived()
        values, selves = self._values(learned, X)
        products = np.array([row @ found.coefficients for row in values]).reshape(len(values), -1)
        return found, selves[:, None] - 2 * products + found.norms

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The nearest cluster of each row."""
        return np.asarray(self._squares(X)[1].argmin(axis=1))

    def predict_one(self, x: object) -> int | None:
        """The nearest cluster of one sample; None before anything was learned."""
        return None if self._run is None else int(self.predict(np.asarray(x, dtype=np.float64)[None])[0])

    def fit_predict(self, X: Any, y: Labels = None) -> npt.NDArray[np.int64]:
        """`fit`, then `predict` of the same rows."""
        return self.fit(X).predict(X)

    @property
    def inertia_(self) -> float:
        """Sum of squared distances of all samples to the centre of the cluster of their group."""
        return float(self._derived()[1].inertia)

    @property
    def cluster_weights_(self) -> Floats:
        """Samples of each cluster; with `decay`, what is left of their weights."""
        weights: Floats = self._derived()[1].weights
        return weights

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the centres: a row a stored point, a column a cluster."""
        coefficients: Floats = self._derived()[1].coefficients
        return coefficients

    @property
    def _n_features_out(self) -> int:
        return int(self._started().parts.number)
